/* SPDX-License-Identifier: Apache-2.0 */
/* tern dedup: writes a model without bytes that it holds twice, or that another model holds. */

#include <inttypes.h>
#include <string.h>

#include "authoring/dedup/dedup.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"

typedef struct deduplication {
    const options *o;
    const char *out, *prefix; /* the output: a folder, or files only; both NULL: none */
    tern_gguf *model, *base;
    dedup_plan plan;
    dedup_sizes sizes;
} deduplication;

static bool finds_groups(const options *o) {
    return strcmp(options_text(o, OPT_GROUPS), "auto") == 0;
}

/* Reads what to write and how to find groups; false after a complaint. */
static bool read_options(deduplication *d) {
    const options *o = d->o;
    const bool plan = options_switch(o, OPT_PLAN), found = finds_groups(o);
    const char *out = o->n_operands > 1 ? o->operands[1] : NULL;
    const char *prefix = options_text(o, OPT_OUT_PREFIX);
    const char *wrong = NULL;
    if (!plan && (out == NULL) == (prefix == NULL))
        wrong = "needs OUT, a folder to write, or --out-prefix PREFIX; --plan writes nothing";
    else if (found == (options_text(o, OPT_TENSOR_MAP) != NULL))
        wrong = "takes --groups FILE and --tensor-map FILE together";
    else if (!found && options_text(o, OPT_BASE) != NULL)
        wrong = "takes --base with groups that it finds itself, not with --groups FILE";
    if (wrong != NULL)
        complain("dedup %s", wrong);
    d->out = plan ? NULL : out;
    d->prefix = plan ? NULL : prefix;
    return wrong == NULL;
}

static tern_status make_plan(deduplication *d, tern_error *err) {
    const options *o = d->o;
    const char *base = options_text(o, OPT_BASE);
    tern_status status = dedup_open(o->operands[0], d->prefix != NULL, &d->model, err);
    if (status == TERN_OK && base != NULL)
        status = tern_gguf_open(base, &d->base, err);
    if (status != TERN_OK)
        return status;
    return finds_groups(o) ? dedup_find(d->model, d->base, &d->plan, err)
                           : dedup_read_groups(d->model, options_text(o, OPT_TENSOR_MAP),
                                               options_text(o, OPT_GROUPS), &d->plan, err);
}

/* Reads the output again: it must give the model that it was made of. */
static tern_status check_folder(const deduplication *d, tern_error *err) {
    const tern_dedup_params params = {.use = TERN_DEDUP_STRICT, .cache_bytes = 1};
    tern_gguf *again = NULL;
    const tern_status status = tern_gguf_open_shared(d->out, &params, &again, err);
    tern_gguf_close(&again);
    return status;
}

static tern_status write_out(deduplication *d, tern_error *err) {
    const tern_out_mode mode = targets_mode(d->o);
    if (d->out == NULL)
        return dedup_write(&d->plan, d->prefix, mode, &d->sizes, err);
    const tern_status status = dedup_write_folder(&d->plan, d->out, mode, &d->sizes, err);
    return status == TERN_OK ? check_folder(d, err) : status;
}

static int report_json(const deduplication *d) {
    const dedup_sizes *s = &d->sizes;
    return json_print(json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "input",
        json_text(d->o->operands[0], strlen(d->o->operands[0])), "tensors", (json_int_t)s->tensors,
        "shared_tensors", (json_int_t)s->shared_tensors, "bytes_before", (json_int_t)s->before,
        "bytes_after", (json_int_t)s->after, "shared_bytes", (json_int_t)s->shared, "equal_bytes",
        (json_int_t)s->equal, "near_bytes", (json_int_t)s->near, "defaults_bytes",
        (json_int_t)s->defaults, "masks_bytes", (json_int_t)s->masks, "exceptions_bytes",
        (json_int_t)s->exceptions, "index_bytes", (json_int_t)s->index));
}

static int report(const deduplication *d) {
    const dedup_sizes *s = &d->sizes;
    const double mib = 1048576.0, before = (double)s->before, after = (double)s->after;
    if (options_switch(d->o, OPT_JSON))
        return report_json(d);
    if (s->shared_tensors == 0) {
        out_print("nothing is saved: no two tensors or blocks of %d KiB are equal or nearly so\n",
                  DEDUP_BLOCK_BYTES / 1024);
        return EXIT_DONE;
    }
    out_print(
        "%zu of %zu tensors share bytes: %.1f MiB equal to their defaults, %.1f MiB nearly so "
        "(%.1f MiB of masks, %.1f of exceptions)\n",
        s->shared_tensors, s->tensors, (double)s->equal / mib, (double)s->near / mib,
        (double)s->masks / mib, (double)s->exceptions / mib);
    out_print("%.1f MiB of tensors become %.1f MiB: %.1f %% saved%s\n", before / mib, after / mib,
              before > 0.0 ? 100.0 - 100.0 * after / before : 0.0,
              d->plan.base != NULL ? ", the base not counted" : "");
    return EXIT_DONE;
}

int cmd_dedup(const options *o) {
    deduplication d = {.o = o};
    tern_error err = {0};
    if (!read_options(&d))
        return EXIT_USAGE;
    tern_status status = make_plan(&d, &err);
    if (status == TERN_OK)
        status = write_out(&d, &err);
    const int done = status == TERN_OK ? report(&d) : complain_error(&err);
    dedup_plan_free(&d.plan);
    tern_gguf_close(&d.model);
    tern_gguf_close(&d.base);
    return done;
}
