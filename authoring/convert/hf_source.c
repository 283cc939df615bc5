/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tensors as a Hugging Face folder has them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/hf_tensors.h"
#include "base/file_map.h"
#include "kernels/half.h"

float hf_source_load(const safetensors_tensor *t, size_t index) {
    uint16_t half;
    float single;
    if (t->type == SAFETENSORS_F32) {
        memcpy(&single, t->data + index * sizeof single, sizeof single);
        return single;
    }
    memcpy(&half, t->data + index * sizeof half, sizeof half);
    return t->type == SAFETENSORS_F16 ? tern_f16_to_f32(half) : tern_bf16_to_f32(half);
}

/*
 * The source of element r of a list of heads. GGUF's llama rotates neighbours (2i, 2i + 1), Hugging
 * Face's rotates halves (i, i + d/2): element 2i + j of a head comes from j * d/2 + i.
 */
static size_t origin_of(size_t r, size_t head_dim) {
    if (head_dim == 0)
        return r;
    const size_t in_head = r % head_dim;
    return r - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
}

/* rne(w * scale) clamped to -1 .. 1, divided by the scale. */
static float make_ternary(float w, float scale) {
    const float code = nearbyintf(w * scale);
    return (code > 1.0f ? 1.0f : code < -1.0f ? -1.0f : code) / scale;
}

/*
 * Row r = i * rows/4 + p is in bits 2i + 1 : 2i of byte [p][column]; codes 0, 1, 2 mean -1, 0, 1.
 */
static void unpack_row(const hf_source *s, size_t row, float *out) {
    const size_t quarter = s->rows / 4;
    const uint8_t *bytes = s->tensor->data + row % quarter * s->cols;
    const size_t shift = row / quarter * 2;
    for (size_t k = 0; k < s->cols; k++)
        out[k] = (float)((bytes[k] >> shift & 3) - 1) * s->scale;
}

/* The place in the folder of an element whose heads files take in turns. */
static size_t turned_back(const hf_turns *t, size_t i) {
    if (t->of <= 1 || i < t->first)
        return i;
    const size_t head = (i - t->first) / t->each, in_head = (i - t->first) % t->each;
    return t->first + (head % t->groups * t->of + head / t->groups) * t->each + in_head;
}

/* The row of the folder's tensor that packs several kinds of rows. */
static size_t unpacked(const hf_packing *p, size_t row) {
    size_t i = 0;
    for (; i + 1 < HF_STRIPS && row >= p->groups * p->each[i]; i++)
        row -= p->groups * p->each[i];
    return row / p->each[i] * p->rows + p->at[i] + row % p->each[i];
}

size_t hf_source_origin(const hf_source *s, size_t row) {
    if (s->packing.rows > 0)
        return unpacked(&s->packing, row);
    return s->first +
           (s->turns_columns ? row : turned_back(&s->turns, origin_of(row, s->head_dim)));
}

static void read_vector(const hf_source *s, float *out) {
    for (size_t k = 0; k < s->cols; k++) { /* may consist of heads */
        const size_t from = turned_back(&s->turns, origin_of(k, s->head_dim));
        const float w = hf_source_load(s->tensor, from);
        out[k] = s->less_one ? 1.0f + w : s->rates ? (float)-exp((double)w) : w;
    }
}

void hf_source_row(const void *source, size_t row, float *out) {
    const hf_source *s = source;
    if (s->made != NULL) {
        memcpy(out, s->made + row * s->cols, s->cols * sizeof *out);
        return;
    }
    if (s->vector) {
        read_vector(s, out);
        return;
    }
    const safetensors_tensor *t = s->tensor;
    size_t from = hf_source_origin(s, row);
    if (s->experts != NULL) {
        t = s->experts[row / (size_t)t->shape[0]];
        from = row % (size_t)t->shape[0];
    }
    if (s->packed) {
        unpack_row(s, from, out);
        return;
    }
    for (size_t k = 0; k < s->cols; k++) {
        const size_t column = s->turns_columns ? turned_back(&s->turns, k) : k;
        const float w = hf_source_load(t, from * s->cols + column);
        out[k] = s->ternarized ? make_ternary(w, s->scale) : w;
    }
}

/* The matrix that holds a row, and *at: which of its rows. */
static const hf_fp4 *fp4_of(const hf_source *s, size_t row, size_t *at) {
    const size_t each = (size_t)s->fp4->codes->shape[0];
    *at = s->experts != NULL ? row % each : hf_source_origin(s, row);
    return s->fp4 + (s->experts != NULL ? row / each : 0);
}

void hf_source_fp4_row(const void *source, size_t row, float *out) {
    const hf_source *s = source;
    size_t at;
    const hf_fp4 *m = fp4_of(s, row, &at);
    hf_fp4_row_floats(m, at, s->cols, out);
}

void hf_source_fp4_bytes(const void *source, size_t row, uint8_t *out) {
    const hf_source *s = source;
    size_t at;
    const hf_fp4 *m = fp4_of(s, row, &at);
    hf_fp4_row_bytes(m, at, s->cols, out);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void hf_source_written(const void *source, size_t first, size_t n) {
    const hf_source *s = source;
    const size_t each = s->each > 0 ? s->each : (size_t)s->experts[0]->shape[0];
    const uint64_t bytes = s->tensor->bytes / (s->rows / each);
    for (size_t e = first / each; s->each > 0 && e < (first + n) / each; e++)
        tern_file_map_drop(s->tensor->data + e * bytes, bytes);
    for (size_t e = first / each; s->experts != NULL && e < (first + n) / each; e++)
        tern_file_map_drop(s->experts[e]->data, s->experts[e]->bytes);
}

void hf_source_drop(const hf_source *s) {
    if (s->tensor != NULL && s->experts == NULL)
        tern_file_map_drop(s->tensor->data, s->tensor->bytes);
}

/* ---- preparation ----------------------------------------------------------------------------- */

/* The mean is summed in double, row by row. */
static tern_status measure(hf_source *s, tern_error *err) {
    double sum = 0.0;
    for (size_t r = 0; r < s->rows; r++) {
        double of_row = 0.0;
        for (size_t k = 0; k < s->cols; k++)
            of_row += fabs((double)hf_source_load(s->tensor, r * s->cols + k));
        sum += of_row;
    }
    const float mean = (float)(sum / ((double)s->rows * (double)s->cols));
    if (!isfinite(mean)) {
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: tensor %s has values that are not finite",
                         s->tensor->file, s->tensor->name);
    }
    s->scale = 1.0f / (mean > 1e-5f ? mean : 1e-5f);
    return TERN_OK;
}

static tern_status check_codes(const hf_source *s, tern_error *err) {
    const uint8_t *bytes = s->tensor->data;
    for (uint64_t i = 0; i < s->tensor->bytes; i++) {
        if ((bytes[i] & bytes[i] >> 1 & 0x55) != 0) {
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "%s: tensor %s: code 3 in byte %llu is not a ternary weight",
                             s->tensor->file, s->tensor->name, (unsigned long long)i);
        }
    }
    return TERN_OK;
}

static tern_status read_scale(hf_source *s, hf_scale meaning, tern_error *err) {
    const float value = hf_source_load(s->scale_tensor, 0);
    const float scale = meaning == HF_SCALE_DIVIDES ? 1.0f / value : value;
    if (!isfinite(value) || !isfinite(scale) || value <= 0.0f || scale <= 0.0f) {
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: tensor %s is %g", s->scale_tensor->file,
                         s->scale_tensor->name, (double)value);
    }
    s->scale = scale;
    return TERN_OK;
}

/* A scale of 255 does not stand for a number. */
static tern_status check_blocks(const hf_source *s, tern_error *err) {
    const safetensors_tensor *t = s->scale_tensor;
    const uint8_t *found = memchr(t->data, 255, (size_t)t->bytes);
    if (found == NULL)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_TENSOR_DATA,
                     "%s: tensor %s: scale 255 in byte %zu does not stand for a number", t->file,
                     t->name, (size_t)(found - t->data));
}

tern_status hf_source_prepare(hf_source *s, hf_scale meaning, tern_error *err) {
    if (s->ternarized)
        return measure(s, err);
    if (s->each > 0 && s->scale_tensor != NULL)
        return check_blocks(s, err);
    if (!s->packed)
        return TERN_OK;
    const tern_status status = read_scale(s, meaning, err);
    return status == TERN_OK ? check_codes(s, err) : status;
}
