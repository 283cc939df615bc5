/* SPDX-License-Identifier: Apache-2.0 */
/* tern list: the models of the Hugging Face Hub that are on this machine. */

#include <inttypes.h>
#include <string.h>

#include "base/json_tree/value.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/hub/hub_cache.h"
#include "tools/hub/short_names.h"

/* True for files with weights in a form that tern runs or converts. */
static bool is_weights(const char *file) {
    const size_t n = strlen(file);
    static const char other[] = ".safetensors";
    return hub_is_model(file) ||
           (n > sizeof other - 1 && strcmp(file + n - (sizeof other - 1), other) == 0);
}

static int print_json(const hub_list *list) {
    json_t *models = json_array();
    for (size_t i = 0; i < list->n; i++) {
        const hub_entry *e = &list->entries[i];
        if (is_weights(e->file))
            json_array_append_new(models,
                                  json_pack("{s:s, s:s, s:s, s:s, s:I}", "repository", e->repo,
                                            "commit", e->commit, "file", e->file, "path", e->path,
                                            "bytes", (json_int_t)e->bytes));
    }
    return json_print(json_pack("{s:o}", "models", models));
}

static void print_table(const hub_list *list) {
    size_t shown = 0;
    for (size_t i = 0; i < list->n; i++) {
        const hub_entry *e = &list->entries[i];
        if (is_weights(e->file)) {
            out_print("%7" PRIu64 " MiB  %.7s  %s:%s\n", e->bytes >> 20, e->commit, e->repo,
                      e->file);
            shown++;
        }
    }
    if (shown == 0)
        complain("no model of the Hub is here: tern pull OWNER/NAME fetches one");
}

/* Prints a short name, what it stands for, and the path if that is here. */
static void print_name(void *user, const short_name *name) {
    char whole[HUB_WHOLE_BYTES], path[PATH_MAX];
    (void)user;
    hub_name_write(&name->hub, whole);
    const bool here = short_name_path(name, path);
    out_print("%-16s %s%s%s\n", name->name, name->hub.repo[0] != '\0' ? whole : name->path,
              here ? "  here: " : "", here ? path : "");
}

static void add_name(void *user, const short_name *name) {
    char whole[HUB_WHOLE_BYTES], path[PATH_MAX];
    hub_name_write(&name->hub, whole);
    const bool here = short_name_path(name, path);
    json_array_append_new(user,
                          json_pack("{s:s, s:o, s:o}", "name", name->name, "repository",
                                    name->hub.repo[0] != '\0' ? json_string(whole) : json_null(),
                                    "path", here ? json_string(path) : json_null()));
}

static int list_names(const options *o) {
    if (!options_switch(o, OPT_JSON)) {
        short_names_each(print_name, NULL);
        return EXIT_DONE;
    }
    json_t *names = json_array();
    short_names_each(add_name, names);
    return json_print(json_pack("{s:o}", "names", names));
}

int cmd_list(const options *o) {
    if (options_switch(o, OPT_NAMES))
        return list_names(o);
    hub_list list;
    tern_error err = {0};
    int status = EXIT_DONE;
    if (hub_cache_list(NULL, &list, &err) != TERN_OK)
        return complain_error(&err);
    if (options_switch(o, OPT_JSON))
        status = print_json(&list);
    else
        print_table(&list);
    hub_list_free(&list);
    return status;
}
