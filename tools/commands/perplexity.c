/* SPDX-License-Identifier: Apache-2.0 */
/* tern perplexity: how well a model predicts a text. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sha256.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/eval/perplexity_record.h"
#include "tools/load/loaded_json.h"
#include "tools/load/loader.h"
#include "tools/record/receipt.h"

/* ---- results --------------------------------------------------------------------------------- */

/* Shows one line that overwrites itself on a terminal, elsewhere a line per window (--verbose). */
static void show_progress(const perplexity_result *r, size_t windows, void *user) {
    (void)user;
    const bool terminal = isatty(STDERR_FILENO) == 1;
    fprintf(stderr, "%swindow %zu of %zu: perplexity %.4f +- %.4f%s", terminal ? "\r\x1b[K" : "",
            r->windows, windows, r->value, r->value_error,
            terminal && r->windows < windows ? "" : "\n");
}

static int print_json(const loaded *l, const perplexity_params *p, const perplexity_result *r,
                      const text_file *t) {
    char hex[65];
    tern_sha256 h;
    tern_sha256_start(&h);
    tern_sha256_add(&h, t->bytes, t->size);
    tern_sha256_finish(&h, hex);
    json_t *root = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:s, s:i}", "perplexity", r->value,
        "perplexity_error", r->value_error, "low", r->low, "high", r->high, "nll", r->nll,
        "nll_error", r->nll_error, "windows", (json_int_t)r->windows, "ctx", (json_int_t)p->ctx,
        "stride", (json_int_t)p->stride, "scored_tokens", (json_int_t)r->scored, "text_tokens",
        (json_int_t)t->n, "text_sha256", hex, "threads", (int)l->threads);
    if (root != NULL) {
        json_set_kernels(root, l);
        json_object_set_new(root, "model", json_string(l->info.path));
    }
    return json_print(root);
}

static void print_result(const perplexity_params *p, const perplexity_result *r,
                         const text_file *t) {
    out_print("perplexity %.4f +- %.4f, 95 %% between %.4f and %.4f\n", r->value, r->value_error,
              r->low, r->high);
    out_print("-ln p      %.6f +- %.6f nats a token\n", r->nll, r->nll_error);
    out_print("%zu windows of %zu tokens, stride %zu; %zu of the text's %zu tokens scored\n",
              r->windows, p->ctx, p->stride, r->scored, t->n);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Reports the measurement as text or JSON, and as a document if that is asked for. */
static int report(const options *o, const loaded *l, const perplexity_params *p,
                  const perplexity_result *r, const text_file *t) {
    const perplexity_record record = {.o = o, .l = l, .text = t, .params = p, .result = r};
    if (options_given(o, OPT_RECORD)) {
        const int status = perplexity_write_record(&record);
        if (status != EXIT_DONE)
            return status;
    }
    if (options_switch(o, OPT_JSON))
        return print_json(l, p, r, t);
    print_result(p, r, t);
    return EXIT_DONE;
}

static int run(const options *o, const loaded *l, const perplexity_params *p, const text_file *t) {
    const bool remarks = wants_remarks(options_switch(o, OPT_VERBOSE));
    perplexity_result r = {0};
    tern_error err = {0};
    if (perplexity_run(l->engine, p, t->ids, t->n, remarks ? show_progress : NULL, NULL, &r,
                       &err) == TERN_OK)
        return report(o, l, p, &r, t);
    complain("%s: %s", strcmp(t->path, "-") == 0 ? "standard input" : t->path, err.message);
    return EXIT_FAILED;
}

static int measure(const options *o, loaded *l, const text_file *t) {
    const size_t ctx = text_file_window(o, l);
    const size_t stride = options_integer(o, OPT_STRIDE);
    perplexity_params p = {.ctx = ctx,
                           .stride = stride > 0 ? stride : ctx,
                           .max_windows = options_integer(o, OPT_WINDOWS),
                           .bos = text_file_leading_token(l->tokenizer)};
    int status = loader_open_engine_of(o, (uint32_t)ctx, l);
    if (status != EXIT_DONE)
        return status;
    p.means = calloc(perplexity_windows(&p, t->n) + 1, sizeof *p.means); /* + 1: never 0 bytes */
    if (p.means != NULL) {
        status = run(o, l, &p, t);
    } else {
        complain("no memory for the windows of %s", t->path);
        status = EXIT_FAILED;
    }
    free(p.means);
    return status;
}

int cmd_perplexity(const options *o) {
    loaded l = {0};
    text_file t = {0};
    int status = receipt_check_key(o);
    if (status == EXIT_DONE)
        status = loader_open_model(o, true, &l);
    if (status == EXIT_DONE)
        status = text_file_read(o, &l, &t);
    if (status == EXIT_DONE)
        status = measure(o, &l, &t);
    text_file_free(&t);
    loader_close(&l);
    return status;
}
