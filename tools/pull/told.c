/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/pull/told.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree/text.h"
#include "tools/cli/output.h"

/* Prints an object of a step and further members. */
static bool print(const options *o, const char *step, const text *rest) {
    text line = {0};
    if (!options_switch(o, OPT_JSON))
        return true;
    text_print(&line, "{\"status\":\"%s\"", step);
    text_add(&line, rest->bytes, rest->size);
    text_print(&line, "}\n");
    const bool told = !line.failed && out_write(line.bytes, line.size) && out_flush();
    text_free(&line);
    return told;
}

bool told_step(const options *o, const char *step) {
    return print(o, step, &(text){0});
}

static bool tell_size(const download *d, uint64_t have) {
    char step[32];
    text rest = {0};
    const char *name = strrchr(d->path, '/') + 1; /* by its hash */
    (void)snprintf(step, sizeof step, "pulling %.12s", name);
    text_print(&rest, ",\"digest\":\"%s%s\",\"total\":%" PRIu64 ",\"completed\":%" PRIu64,
               d->sha256 != NULL ? "sha256:" : "", name, d->bytes, have);
    const bool told = print(d->user, step, &rest);
    text_free(&rest);
    return told;
}

bool told_bytes(const download *d, uint64_t have) {
    const bool told = tell_size(d, have);
    return told &&
           (have < d->bytes || d->sha256 == NULL || told_step(d->user, "verifying sha256 digest"));
}

void told_size(const download *d) {
    (void)tell_size(d, d->bytes);
}

void told_path(const options *o, const char *path) {
    text rest = {0};
    if (!options_switch(o, OPT_JSON)) {
        out_print("%s\n", path);
        return;
    }
    text_print(&rest, ",\"path\":");
    text_quote(&rest, path, strlen(path));
    (void)print(o, "success", &rest);
    text_free(&rest);
}
