/* SPDX-License-Identifier: Apache-2.0 */
/* tern rm: removes models of the Hugging Face Hub from this machine. */

#include <inttypes.h>
#include <string.h>

#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/hub/hub_cache.h"

/* Removes all parts of the one model that the name means, from all snapshots; *n: the number of
 * files. */
static tern_status remove_file(const hub_name *name, const hub_list *list, size_t *n,
                               uint64_t *freed, tern_error *err) {
    const char *wanted = NULL;
    *n = 0;
    for (size_t i = 0; i < list->n; i++) {
        const char *file = list->entries[i].file;
        size_t found;
        if (hub_choose(&file, 1, name->file, &found) == 0)
            continue;
        if (wanted != NULL && strcmp(wanted, file) != 0 && strcmp(file, name->file) != 0)
            return tern_fail(err, TERN_ERR_NAME, "%s: '%s' means %s and %s", name->repo, name->file,
                             wanted, file);
        wanted = file;
    }
    for (size_t i = 0; wanted != NULL && i < list->n; i++) {
        for (unsigned part = 1; part <= hub_parts(wanted); part++) {
            char file[HUB_FILE_BYTES];
            uint64_t one;
            hub_part(wanted, part, file);
            if (strcmp(list->entries[i].file, file) != 0)
                continue;
            const tern_status status = hub_cache_remove(&list->entries[i], &one, err);
            if (status != TERN_OK)
                return status;
            *freed += one;
            ++*n;
        }
    }
    return TERN_OK;
}

int cmd_rm(const options *o) {
    hub_name name;
    hub_list list = {0};
    uint64_t freed = 0;
    size_t n;
    tern_error err = {0};
    if (!hub_name_read(o->operands[0], &name)) {
        complain("rm wants OWNER/NAME or OWNER/NAME:FILE, not '%.100s'", o->operands[0]);
        return EXIT_USAGE;
    }
    tern_status status = hub_cache_list(name.repo, &list, &err);
    n = list.n;
    if (status == TERN_OK && n > 0)
        status = name.file[0] != '\0' ? remove_file(&name, &list, &n, &freed, &err)
                                      : hub_cache_remove_repository(name.repo, &freed, &err);
    hub_list_free(&list);
    if (status != TERN_OK) {
        (void)complain_error(&err);
        return status == TERN_ERR_NAME ? EXIT_USAGE : EXIT_FAILED;
    }
    if (n == 0) {
        complain("%s: no such model is here; tern list shows those that are", o->operands[0]);
        return EXIT_FAILED;
    }
    out_print("%s: %" PRIu64 " MiB freed\n", o->operands[0], freed >> 20);
    return EXIT_DONE;
}
