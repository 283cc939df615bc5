/* SPDX-License-Identifier: Apache-2.0 */
/* tern imatrix: finds which columns of a model's matrices matter, from a text. */

#include <stdio.h>
#include <unistd.h>

#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/cli/whole_file.h"
#include "tools/commands/commands.h"
#include "tools/eval/importance.h"
#include "tools/load/loader.h"
#include "tools/prompt/text_file.h"

/* Shows one line that overwrites itself on a terminal, elsewhere a line per window (--verbose). */
static void show_progress(size_t done, size_t windows, void *user) {
    (void)user;
    const bool terminal = isatty(STDERR_FILENO) == 1;
    fprintf(stderr, "%swindow %zu of %zu%s", terminal ? "\r\x1b[K" : "", done, windows,
            terminal && done < windows ? "" : "\n");
}

/* The number of experts' matrices that no row of the text reached. */
static size_t unseen(const tern_importance *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->entries[i].matrices; k++)
            n += !(m->entries[i].rows[k] > 0.0);
    return n;
}

static int report(const options *o, const tern_importance *m, const char *path) {
    if (options_switch(o, OPT_JSON))
        return json_print(json_pack("{s:s, s:I, s:I, s:I, s:I}", "output", path, "matrices",
                                    (json_int_t)m->n, "unseen", (json_int_t)unseen(m), "windows",
                                    (json_int_t)m->chunks, "ctx", (json_int_t)m->chunk_tokens));
    out_print("%s: %zu matrices, %u windows of %u tokens\n", path, m->n, m->chunks,
              m->chunk_tokens);
    if (unseen(m) > 0)
        out_print("%zu of experts that no token reached: they follow all experts of their layer\n",
                  unseen(m));
    return EXIT_DONE;
}

static int measure(const options *o, loaded *l, const text_file *t, const char *path) {
    const importance_params p = {.ctx = text_file_window(o, l),
                                 .max_windows = options_integer(o, OPT_WINDOWS),
                                 .bos = text_file_leading_token(l->tokenizer)};
    const int status = loader_open_session_of(o, (uint32_t)p.ctx, l);
    if (status != EXIT_DONE)
        return status;
    const bool remarks = wants_remarks(options_switch(o, OPT_VERBOSE));
    tern_importance m = {.n = 0};
    tern_error err = {0};
    tern_status done = importance_run(l->session, &p, t->ids, t->n, remarks ? show_progress : NULL,
                                      NULL, &m, &err);
    (void)snprintf(m.text, sizeof m.text, "%s", file_base_name(t->path));
    if (done == TERN_OK)
        done = tern_importance_write(&m, path, targets_mode(o), &err);
    const int exit = done == TERN_OK ? report(o, &m, path) : complain_error(&err);
    tern_importance_free(&m);
    return exit;
}

int cmd_imatrix(const options *o) {
    const char *path = options_text(o, OPT_OUTPUT);
    loaded l = {0};
    text_file t = {0};
    if (path == NULL) {
        complain("imatrix needs -o FILE, to write to");
        return EXIT_USAGE;
    }
    int status = loader_open_model(o, true, &l);
    if (status == EXIT_DONE)
        status = text_file_read(o, &l, &t);
    if (status == EXIT_DONE)
        status = measure(o, &l, &t, path);
    text_file_free(&t);
    loader_close(&l);
    return status;
}
