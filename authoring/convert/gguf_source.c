/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/gguf_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "authoring/convert/int4.h"
#include "kernels/iebs.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/files/gguf/iebin.h"

struct convert_gguf_tensor {
    const tern_gguf_tensor *tensor;
    const uint8_t *bytes; /* of the tensor in the file, or `imported` */
    uint8_t *imported;    /* ternary weights converted to I2_S as in published files; owned */
    tern_format format;
    float scale;
    float *scales; /* [rows] of ternary rows whose scales differ, in place of `scale`; owned */
};

static void source_row(const void *context, size_t row, float *out) {
    const convert_gguf_tensor *s = context;
    if (s->tensor->type == TERN_GGUF_SPARSE_TYPE) {
        const tern_iebs blocks = tern_iebs_view(s->bytes);
        tern_iebs_row(&blocks, row, out);
        return;
    }
    const tern_int4_rows *form = &s->tensor->int4;
    const size_t cols = (size_t)s->tensor->ne[0];
    if (s->format == TERN_FORMAT_INT4) {
        convert_int4_decode(form, s->bytes + row * tern_int4_row_bytes(form, cols), cols, out);
        return;
    }
    const float scale = s->scales != NULL ? s->scales[row] : s->scale;
    tern_dequantize_row(s->format, s->bytes, cols, row, scale, out);
}

static void drop_source(const convert_tensor *t, void *user) {
    const convert_gguf *g = user;
    const convert_gguf_tensor *s = t->context;
    tern_gguf_drop_pages(g->file, s->tensor);
}

/* Keeps the scales of rows if they differ. */
static tern_status read_scales(convert_gguf_tensor *s, const tern_import *how, size_t rows,
                               tern_error *err) {
    bool differ = false;
    s->scales = malloc(rows * sizeof *s->scales);
    if (s->scales == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu scales", rows);
    const tern_status status =
        tern_import_scales(how, s->tensor->data, rows, (size_t)s->tensor->ne[0], s->scales, err);
    for (size_t r = 0; status == TERN_OK && r < rows; r++)
        differ |= memcmp(&s->scales[r], s->scales, sizeof *s->scales) != 0;
    if (differ)
        return TERN_OK;
    free(s->scales);
    s->scales = NULL;
    return status;
}

/* Converts ternary weights that the file stores in another layout to the usual one. */
static tern_status import_ternary(convert_gguf_tensor *s, const tern_reading *reading, size_t rows,
                                  tern_error *err) {
    const size_t cols = (size_t)s->tensor->ne[0];
    uint64_t bytes;
    tern_import how;
    tern_status status = tern_reading_of(reading, s->tensor, &how, err);
    if (status != TERN_OK || tern_import_is_plain(&how))
        return status;
    status = tern_format_bytes(TERN_FORMAT_I2_S, rows, cols, &bytes);
    if (status != TERN_OK)
        return status;
    s->imported = malloc((size_t)bytes);
    if (s->imported == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to reorder a tensor");
    s->bytes = s->imported;
    status = tern_import_tensor(&how, s->tensor->data, rows, cols, s->imported, err);
    return status == TERN_OK ? read_scales(s, &how, rows, err) : status;
}

/* Sparse blocks are written dense unless they are to become sparse again. */
static tern_status check_blocks(const convert_gguf *g, const convert_tensor *t,
                                const tern_gguf_tensor *from, tern_error *err) {
    tern_error why = {.status = TERN_OK};
    const tern_iebs blocks = tern_iebs_view(from->data);
    const tern_status status = tern_iebs_values(&blocks, 0, tern_iebs_block_rows(&blocks), &why);
    return status == TERN_OK ? TERN_OK
                             : tern_fail(err, status, "%s: tensor %s: %s", tern_gguf_name(g->file),
                                         t->name, why.message);
}

static tern_status add_tensor(convert_gguf *g, const tern_reading *reading, convert_job *job,
                              size_t index, tern_error *err) {
    const tern_gguf_tensor *from = tern_gguf_tensor_at(g->file, index);
    const tern_format format = tern_gguf_format(from);
    convert_gguf_tensor *s = &g->tensors[index];
    if (format == TERN_FORMAT_NONE || from->bytes == 0) {
        return tern_fail(err, TERN_ERR_TENSOR_TYPE,
                         "%s: tensor %.*s has type %s, which cannot be read here",
                         tern_gguf_name(g->file), (int)from->name.size, from->name.data,
                         tern_gguf_tensor_type(from));
    }
    convert_tensor *t = convert_job_add(job);
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", index + 1);
    *s = (convert_gguf_tensor){.tensor = from, .bytes = from->data, .format = format};
    memcpy(t->name, from->name.data, from->name.size); /* at most 255 bytes */
    t->n_dims = from->n_dims;
    memcpy(t->ne, from->ne, sizeof t->ne);
    t->rows = (size_t)(from->ne[1] * from->ne[2] * from->ne[3]);
    t->cols = (size_t)from->ne[0];
    t->origin = tern_gguf_tensor_type(from);
    t->source = format;
    t->row = source_row;
    t->int4 = from->int4;
    t->before = from->bytes;
    t->stored = from->data;
    t->context = s;
    if (from->type == TERN_GGUF_SPARSE_TYPE)
        return check_blocks(g, t, from, err);
    if (format == TERN_FORMAT_I2_S) {
        tern_error why = {.status = TERN_OK};
        const tern_status status = import_ternary(s, reading, t->rows, &why);
        if (status != TERN_OK) {
            return tern_fail(err, status, "%s: tensor %s: %s", tern_gguf_name(g->file), t->name,
                             why.message);
        }
    }
    s->scale = tern_format_scale(format, s->bytes, t->rows, t->cols);
    t->as_is = s->scales == NULL ? s->bytes : NULL; /* I2_S has one scale */
    return TERN_OK;
}

tern_status convert_gguf_open(convert_gguf *g, const tern_gguf *file,
                              const tern_model_params *reading, convert_job *job, tern_error *err) {
    const size_t n = tern_gguf_tensor_count(file);
    tern_reading how;
    tern_status status =
        tern_reading_init(&how, reading->i2s_order, reading->i2s_map, reading->tl_tiles, err);
    if (status != TERN_OK)
        return status;
    *g = (convert_gguf){.file = file, .tensors = calloc(n + 1, sizeof *g->tensors), .n = n};
    if (g->tensors == NULL) /* + 1: never 0 bytes */
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", n);
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        status = add_tensor(g, &how, job, i, err);
    job->done = drop_source;
    job->user = g;
    return status;
}

void convert_gguf_free(convert_gguf *g) {
    for (size_t i = 0; g->tensors != NULL && i < g->n; i++) {
        free(g->tensors[i].imported);
        free(g->tensors[i].scales);
    }
    free(g->tensors);
    *g = (convert_gguf){.file = NULL};
}

bool convert_is_model(const char *path) {
    struct stat info;
    if (!tern_iebin_is(path))
        return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
    tern_gguf *file = NULL;
    const tern_status status = tern_iebin_open(path, NULL, &file, NULL);
    const bool keys =
        status != TERN_OK || tern_gguf_value_count(file) > 0; /* otherwise opening explains why */
    tern_gguf_close(&file);
    return keys;
}

static bool is_key(const tern_gguf_value *value, const char *key) {
    return value->key.size == strlen(key) && memcmp(value->key.data, key, value->key.size) == 0;
}

void convert_gguf_copy_metadata(const convert_gguf *g, tern_gguf_writer *w) {
    static const char *const left_out[] = {"split.no", "split.count", "split.tensors.count",
                                           "general.file_type", "general.quantization_version"};
    for (size_t i = 0; i < tern_gguf_value_count(g->file); i++) {
        const tern_gguf_value *value = tern_gguf_value_at(g->file, i);
        bool copied = true;
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            copied = copied && !is_key(value, left_out[k]);
        if (copied)
            tern_gguf_put_value(w, value);
    }
}
