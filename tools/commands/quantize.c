/* SPDX-License-Identifier: Apache-2.0 */
/* tern quantize: a model file with its weights in other formats. */

#include <stdlib.h>
#include <string.h>

#include "tools/cli/out.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"
#include "tools/convert/command.h"
#include "tools/model/loader.h"
#include "tools/model/model_hint.h"

/* A tensor of the file that is read. */
typedef struct source {
    const tern_gguf_tensor *tensor;
    const uint8_t *bytes; /* those of the tensor, or `imported` */
    uint8_t *imported;    /* ternary weights as I2_S of the published files; owned */
    tern_format format;
    float scale;
} source;

typedef struct quantization {
    tern_gguf *file;
    source *sources; /* [tensors] */
    convert_job job;
    convert_formats formats;
    tern_reading reading; /* of the file that is read */
} quantization;

static void source_row(const void *context, size_t row, float *out) {
    const source *s = context;
    tern_dequantize_row(s->format, s->bytes, (size_t)s->tensor->ne[0], row, s->scale, out);
}

static void drop_source(const convert_tensor *t, void *user) {
    const quantization *q = user;
    const source *s = t->context;
    tern_gguf_drop_pages(q->file, s->tensor);
}

/* What is to be written, and how the file's ternary tensors are read. */
static tern_status read_options(quantization *q, const options *o, tern_error *err) {
    tern_model_params params = tern_model_params_default();
    tern_status status = convert_read_formats(o, &q->formats, err);
    if (status == TERN_OK) {
        status = loader_set_reading(o, &params, err);
    }
    return status == TERN_OK ? tern_reading_init(&q->reading, params.i2s_order, params.i2s_map,
                                                 params.tl_tiles, err)
                             : status;
}

/* Ternary weights that the file holds in another way are brought into the usual one first. */
static tern_status import_ternary(source *s, const tern_reading *reading, size_t rows,
                                  tern_error *err) {
    const size_t cols = (size_t)s->tensor->ne[0];
    uint64_t bytes;
    tern_import how;
    tern_status status = tern_reading_of(reading, s->tensor, &how, err);
    if (status != TERN_OK || tern_import_is_plain(&how)) {
        return status;
    }
    status = tern_format_bytes(TERN_FORMAT_I2_S, rows, cols, &bytes);
    if (status != TERN_OK) {
        return status;
    }
    s->imported = malloc((size_t)bytes);
    if (s->imported == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to reorder a tensor");
    }
    s->bytes = s->imported;
    return tern_import_tensor(&how, s->tensor->data, rows, cols, s->imported, err);
}

static tern_status add_tensor(quantization *q, size_t index, tern_error *err) {
    const tern_gguf_tensor *from = tern_gguf_tensor_at(q->file, index);
    const tern_format format = tern_gguf_format(from);
    source *s = &q->sources[index];
    if (format == TERN_FORMAT_NONE || from->bytes == 0) {
        return tern_fail(err, TERN_ERR_TENSOR_TYPE,
                         "%s: tensor %.*s has type %s, which cannot be read here",
                         tern_gguf_name(q->file), (int)from->name.size, from->name.data,
                         tern_gguf_tensor_type(from));
    }
    convert_tensor *t = convert_job_add(&q->job);
    if (t == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", index + 1);
    }
    *s = (source){.tensor = from, .bytes = from->data, .format = format};
    memcpy(t->name, from->name.data, from->name.size); /* at most 255 bytes */
    t->n_dims = from->n_dims;
    memcpy(t->ne, from->ne, sizeof t->ne);
    t->rows = (size_t)(from->ne[1] * from->ne[2] * from->ne[3]);
    t->cols = (size_t)from->ne[0];
    t->origin = tern_gguf_tensor_type(from);
    t->source = format;
    t->row = source_row;
    t->context = s;
    if (format == TERN_FORMAT_I2_S) {
        tern_error why = {.status = TERN_OK};
        const tern_status status = import_ternary(s, &q->reading, t->rows, &why);
        if (status != TERN_OK) {
            return tern_fail(err, status, "%s: tensor %s: %s", tern_gguf_name(q->file), t->name,
                             why.message);
        }
    }
    s->scale = tern_format_scale(format, s->bytes, t->rows, t->cols);
    t->as_is = s->bytes;
    return TERN_OK;
}

static bool is_key(const tern_gguf_value *value, const char *key) {
    return value->key.size == strlen(key) && memcmp(value->key.data, key, value->key.size) == 0;
}

/* Everything but how the file is cut and what its weights are. */
static void copy_metadata(const tern_gguf *file, tern_gguf_writer *w) {
    static const char *const left_out[] = {"split.no", "split.count", "split.tensors.count",
                                           "general.file_type", "general.quantization_version"};
    for (size_t i = 0; i < tern_gguf_value_count(file); i++) {
        const tern_gguf_value *value = tern_gguf_value_at(file, i);
        bool copied = true;
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++) {
            copied = copied && !is_key(value, left_out[k]);
        }
        if (copied) {
            tern_gguf_put_value(w, value);
        }
    }
}

static tern_status quantize(quantization *q, const options *o, tern_error *err) {
    const size_t n = tern_gguf_tensor_count(q->file);
    tern_gguf_writer *w = NULL;
    q->sources = calloc(n + 1, sizeof *q->sources); /* + 1: never of size 0 */
    if (q->sources == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", n);
    }
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < n; i++) {
        status = add_tensor(q, i, err);
    }
    if (status == TERN_OK) {
        status = convert_job_plan(&q->job, &q->formats, err);
    }
    if (status == TERN_OK) {
        status = tern_gguf_writer_new(o->operands[1], targets_mode(o), &w, err);
    }
    if (status == TERN_OK) {
        copy_metadata(q->file, w);
        tern_gguf_put_u32(w, "general.file_type", convert_file_type(&q->formats, q->formats.body));
        tern_gguf_put_u32(w, "general.quantization_version", 2);
        q->job.done = drop_source;
        q->job.user = q;
        status = convert_write(&q->job, &w, o, err);
    }
    tern_gguf_writer_abort(&w);
    return status;
}

/* Other programs may run what tern does not: it is written, and said. */
static void warn_unless_it_runs(const options *o) {
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    tern_error why = {0};
    params.no_weights = true;
    tern_status status = loader_set_reading(o, &params, &why);
    if (status == TERN_OK) {
        status = tern_model_open(o->operands[1], &params, &model, &why);
    }
    if (status != TERN_OK) {
        complain("%s: written, but tern does not run it: %s", o->operands[1], why.message);
    }
    tern_model_free(&model);
}

int cmd_quantize(const options *o) {
    quantization q = {.file = NULL};
    tern_error err = {0};
    if (!options_given(o, OPT_TYPE)) {
        complain("quantize needs --type TYPE, the format of the weights, such as q8_0 or i2_s");
        return EXIT_USAGE;
    }
    if (read_options(&q, o, &err) != TERN_OK) {
        (void)complain_error(&err);
        return EXIT_USAGE;
    }
    tern_status status = tern_gguf_open(o->operands[0], &q.file, &err);
    if (status == TERN_OK) {
        status = quantize(&q, o, &err);
    }
    const int done = q.file == NULL      ? complain_of_model(o->operands[0], false, &err)
                     : status == TERN_OK ? convert_report(&q.job, o)
                                         : complain_error(&err);
    if (done == EXIT_DONE) {
        warn_unless_it_runs(o);
    }
    for (size_t i = 0; q.sources != NULL && i < q.job.n; i++) {
        free(q.sources[i].imported);
    }
    free(q.sources);
    convert_job_free(&q.job);
    tern_gguf_close(&q.file);
    return done;
}
