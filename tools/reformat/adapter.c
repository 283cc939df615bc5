/* SPDX-License-Identifier: Apache-2.0 */
/* tern convert: the folder of a PEFT adapter as a GGUF file. */

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "authoring/convert/peft.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/hub/hub_cache.h"
#include "tools/reformat/command.h"

/* Finds the base model: --base, else what the folder names, if that is here or was fetched. */
static tern_status find_base(const options *o, char path[PATH_MAX], tern_error *err) {
    const char *folder = o->operands[0], *given = options_text(o, OPT_BASE);
    hub_name hub;
    if (given != NULL) {
        (void)snprintf(path, PATH_MAX, "%s", given);
        return TERN_OK;
    }
    const tern_status status = peft_base_name(folder, path, PATH_MAX, err);
    if (status != TERN_OK || access(path, F_OK) == 0)
        return status;
    char name[PATH_MAX];
    (void)snprintf(name, sizeof name, "%s", path);
    if (hub_name_read(name, &hub) && hub_cache_find_folder(&hub, path))
        return TERN_OK;
    return tern_fail(err, TERN_ERR_ARG,
                     "%s: its base model '%.200s' is not here: name a file or folder of it with "
                     "--base",
                     folder, name);
}

/* The last part of the folder's path. */
static void find_name(const char *folder, char name[256]) {
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/')
        begin--;
    (void)snprintf(name, 256, "%.*s", (int)(end - begin), folder + begin);
}

static int report(const options *o, size_t matrices) {
    if (options_switch(o, OPT_JSON)) {
        json_t *root = json_object();
        json_object_set_new(root, "matrices", json_integer((json_int_t)matrices));
        return json_print(root);
    }
    remark("%s: an adapter of %zu matrices\n", o->operands[1], matrices);
    return EXIT_DONE;
}

int convert_adapter(const options *o) {
    char path[PATH_MAX], name[256];
    tern_error err = {0};
    tern_gguf_writer *w = NULL;
    peft_base base;
    size_t matrices = 0;
    tern_status status = find_base(o, path, &err);
    if (status == TERN_OK)
        status = peft_base_read(path, &base, &err);
    find_name(o->operands[0], name);
    if (status == TERN_OK)
        status = convert_writer_new(o, &w, &err);
    if (status == TERN_OK)
        status = peft_write(o->operands[0], &base, name, &w, &matrices, &err);
    return status == TERN_OK ? report(o, matrices) : complain_error(&err);
}
