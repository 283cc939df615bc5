/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites a model file or folder in other formats or in another container. */

#include <limits.h>

#include "authoring/convert/gguf_source.h"
#include "authoring/convert/merge.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/load/adapters.h"
#include "tools/load/model_hint.h"
#include "tools/load/params.h"
#include "tools/reformat/command.h"

/* A model that is rewritten, with everything that this needs. */
typedef struct quantization {
    const options *o;
    tern_model_params reading; /* how to read the file's ternary tensors */
    tern_gguf *file;
    convert_gguf source;
    convert_job job;
    convert_formats formats;
    convert_q4_map map;
    tern_importance importance;
    convert_sparse_rule rule;
    tern_model *adapted; /* the model with adapters that are merged; NULL: there are none */
    convert_merge merge;
} quantization;

/* Reads what to write, and how to read the file's ternary tensors. */
static tern_status read_options(quantization *q, tern_error *err) {
    q->reading = tern_model_params_default();
    tern_status status = convert_read_formats(q->o, &q->formats, err);
    if (status == TERN_OK)
        status = convert_read_rule(q->o, &q->rule, err);
    return status == TERN_OK ? params_read_codes(q->o, &q->reading, err) : status;
}

/* Puts adapters into the weights, if there are some. */
static tern_status merge(quantization *q, tern_error *err) {
    tern_model_params params = q->reading;
    params.no_weights = true;
    tern_status status = adapters_read(q->o, OPT_MERGE_LORA, &params, err);
    if (status != TERN_OK || params.n_adapters == 0)
        return status;
    status = tern_model_open(q->o->operands[0], &params, &q->adapted, err);
    return status == TERN_OK ? convert_merge_adapters(&q->merge, q->adapted, &q->job, err) : status;
}

static tern_status keep_sparse(quantization *q, tern_error *err) {
    return tern_gguf_version(q->file) > 0
               ? convert_sparse_alone(&q->job, err)
               : tern_fail(err, TERN_ERR_ARG,
                           "%s: is a folder, which holds sparse layers itself: --to sidecar is for "
                           "GGUF files",
                           q->o->operands[0]);
}

static void put_metadata(const quantization *q, tern_gguf_writer *w) {
    convert_gguf_copy_metadata(&q->source, w);
    const tern_format most =
        q->formats.body != TERN_FORMAT_NONE ? q->formats.body : convert_main_format(&q->job);
    tern_gguf_put_u32(w, "general.file_type", convert_file_type(&q->formats, most));
    tern_gguf_put_u32(w, "general.quantization_version", 2);
}

static tern_status quantize(quantization *q, tern_error *err) {
    tern_gguf_writer *w = NULL;
    tern_status status = convert_gguf_open(&q->source, q->file, &q->reading, &q->job, err);
    if (status == TERN_OK)
        status = convert_read_map(q->o, &q->map, &q->formats, err);
    if (status == TERN_OK)
        status = convert_read_importance(q->o, &q->importance, &q->formats, err);
    if (status == TERN_OK)
        status = convert_job_plan(&q->job, &q->formats, err);
    if (status == TERN_OK)
        status = merge(q, err);
    if (status == TERN_OK && q->rule.layers != NULL)
        status = convert_sparse_plan(&q->job, &q->rule, err);
    if (status == TERN_OK && convert_to_sidecar(q->o))
        status = keep_sparse(q, err);
    if (options_switch(q->o, OPT_PLAN))
        return status;
    if (status == TERN_OK)
        status = convert_writer_new(q->o, &w, err);
    if (status == TERN_OK && !convert_to_sidecar(q->o))
        put_metadata(q, w);
    if (status == TERN_OK)
        status = convert_write(&q->job, &w, q->o, err);
    tern_gguf_writer_abort(&w);
    return status;
}

/* Warns if tern cannot run the output. It is written anyway: other programs may run it. */
static void warn_unless_it_runs(const quantization *q) {
    char folder[PATH_MAX];
    const char *out = targets_out(q->o, folder);
    const char *path = convert_to_sidecar(q->o) ? q->o->operands[0] : out;
    tern_model_params params = q->reading;
    tern_model *model = NULL;
    tern_error why = {0};
    if (convert_to_sidecar(q->o) && q->o->n_operands > 1)
        return; /* tern does not look for it there */
    params.no_weights = true;
    if (tern_model_open(path, &params, &model, &why) != TERN_OK)
        complain("%s: written, but tern does not run it: %s", out, why.message);
    tern_model_free(&model);
}

static int report(const quantization *q) {
    return options_switch(q->o, OPT_PLAN) ? convert_plan_report(&q->job, q->o)
                                          : convert_report(&q->job, q->o);
}

int convert_model(const options *o) {
    quantization q = {.o = o};
    tern_error err = {0};
    if (read_options(&q, &err) != TERN_OK) {
        (void)complain_error(&err);
        return EXIT_USAGE;
    }
    tern_status status = tern_gguf_open(o->operands[0], &q.file, &err);
    if (status == TERN_OK)
        status = quantize(&q, &err);
    const int done = q.file == NULL      ? complain_of_model(o->operands[0], false, &err)
                     : status == TERN_OK ? report(&q)
                                         : complain_error(&err);
    if (done == EXIT_DONE && !options_switch(o, OPT_PLAN))
        warn_unless_it_runs(&q);
    convert_q4_map_free(&q.map);
    tern_importance_free(&q.importance);
    convert_gguf_free(&q.source);
    convert_job_free(&q.job);
    convert_merge_free(&q.merge);
    tern_model_free(&q.adapted);
    tern_gguf_close(&q.file);
    return done;
}
