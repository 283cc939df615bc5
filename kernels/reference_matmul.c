/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's weights and matrix products. Every weight is decoded where it is used, from the
 * file, by the definition of its format. A plain format (kernels/formats.toml) is known; another
 * new one is a case of tern_ref_value and, when its product has a form of its own, of dot_any.
 */

#include <math.h>
#include <string.h>

#include "kernels/facts.h"
#include "kernels/grids.h"
#include "kernels/reference_lanes.h"

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- weights ------------------------------------------------------------------------------- */

static const uint8_t *block_at(tern_format format, const void *file, size_t block) {
    return (const uint8_t *)file + block * tern_format_describe(format)->block_bytes;
}

/* Code j of a plain block, as it enters the integer product. */
static int block_code(tern_format format, const uint8_t *block, size_t j) {
    const tern_plain *plain = &tern_format_facts_of(format)->plain;
    const uint8_t *codes = block + plain->codes_at;
    if (plain->bits == 8)
        return codes[j] < 128 ? codes[j] : codes[j] - 256;

    const int nibble = j < 16 ? codes[j % 16] % 16 : codes[j % 16] / 16;
    if (plain->levels != NULL)
        return plain->levels[nibble];
    const int fifth = plain->bits == 5 ? codes[(int)(j / 8) - 4] >> j % 8 & 1 : 0;
    return nibble + 16 * fifth - plain->bias;
}

/* The scale of a plain block. */
static float block_scale(tern_format format, const uint8_t *block) {
    return tern_format_facts_of(format)->plain.power ? ldexpf(1.0f, block[0] - 128)
                                                     : tern_ref_half(tern_ref_read16(block));
}

/* Digit n of the base-3 fraction byte/256, rounded up. */
static int trit(uint8_t byte, size_t n) {
    static const int power[] = {1, 3, 9, 27, 81};
    return byte * power[n] % 256 * 3 / 256;
}

/* Code (weight + 1) j of a TQ1_0 block. */
static int tq1_code(const uint8_t *block, size_t j) {
    if (j < 160)
        return trit(block[j % 32], j / 32);
    if (j < 240)
        return trit(block[32 + j % 16], (j - 160) / 16);
    return trit(block[48 + j % 4], (j - 240) / 4);
}

/* Code of an element of a ternary format; I2_S is one flat stream. */
static int ternary_code(tern_format format, const void *file, size_t element) {
    const size_t j = element % 256;

    if (format == TERN_FORMAT_TQ1_0)
        return tq1_code(block_at(format, file, element / 256), j);
    if (format == TERN_FORMAT_TQ2_0)
        return block_at(format, file, element / 256)[j / 128 * 32 + j % 32] >> (j % 128 / 32 * 2) &
               3;
    const uint8_t byte = ((const uint8_t *)file)[element / 128 * 32 + element % 32];
    static const int place[] = {64, 16, 4, 1};
    return byte / place[element % 128 / 32] % 4;
}

/* The f16 scale of the TQ block of an element: after its codes. */
static float tq_scale(tern_format format, const void *file, size_t element) {
    const size_t at = format == TERN_FORMAT_TQ1_0 ? 52 : 64;
    return tern_ref_half(tern_ref_read16(block_at(format, file, element / 256) + at));
}

/* Element `index` of a row-major stream, as its exact value (with a minimum: rounded once). */
float tern_ref_value(tern_format format, const void *file, size_t index) {
    const uint8_t *bytes = file;

    switch (format) {
    case TERN_FORMAT_F32:
        return float_of(tern_ref_read16(bytes + 4 * index) |
                        (uint32_t)tern_ref_read16(bytes + 4 * index + 2) << 16);
    case TERN_FORMAT_F16:
        return tern_ref_half(tern_ref_read16(bytes + 2 * index));
    case TERN_FORMAT_BF16:
        return float_of((uint32_t)tern_ref_read16(bytes + 2 * index) << 16);
    case TERN_FORMAT_I2_S:
        return (float)(ternary_code(format, file, index) - 1);
    case TERN_FORMAT_TQ1_0:
    case TERN_FORMAT_TQ2_0:
        return (float)(ternary_code(format, file, index) - 1) * tq_scale(format, file, index);
    case TERN_FORMAT_INT8:
    case TERN_FORMAT_INT4:
        return tern_ref_int_value(format, file, index);
    case TERN_FORMAT_Q2_K:
    case TERN_FORMAT_Q3_K:
    case TERN_FORMAT_Q4_K:
    case TERN_FORMAT_Q5_K:
    case TERN_FORMAT_Q6_K:
    case TERN_FORMAT_IQ4_XS:
        return tern_ref_super_value(format, file, index);
    case TERN_FORMAT_Q1_0:
    case TERN_FORMAT_Q2_0:
    case TERN_FORMAT_PQ2_0:
    case TERN_FORMAT_PTQ1_0:
    case TERN_FORMAT_STQ1_0:
        return tern_ref_group_value(format, file, index);
    case TERN_FORMAT_NVFP4:
        return tern_ref_runs_value(file, index);
    default:
        break;
    }
    if (tern_grid_of(format) != NULL)
        return tern_ref_grid_value(format, file, index);

    const uint8_t *block = block_at(format, file, index / TERN_BLOCK);
    const float product =
        (float)block_code(format, block, index % TERN_BLOCK) * block_scale(format, block);
    return tern_format_facts_of(format)->plain.minimum
               ? product + tern_ref_half(tern_ref_read16(block + 2))
               : product;
}

float tern_ref_weight(const tern_ref_matrix *w, size_t row, size_t col) {
    return tern_ref_value(w->format, w->file, row * w->cols + col);
}

/* ---- matrix products ----------------------------------------------------------------------- */

static float dot_float(const tern_ref_matrix *w, size_t row, const float *x) {
    lanes sum = {{0}, 0};

    for (size_t k = 0; k < w->cols; k++)
        lanes_add(&sum, tern_ref_weight(w, row, k) * x[k]);
    return lanes_total(&sum);
}

static float dot_ternary(const tern_ref_matrix *w, size_t row, const tern_activations *x,
                         size_t t) {
    const int8_t *q = x->q + t * x->q_stride;
    int64_t raw = 0;

    for (size_t k = 0; k < w->cols; k++)
        raw += ternary_code(w->format, w->file, row * w->cols + k) * q[k];
    const float scale = w->row_scale != NULL ? w->row_scale[row] : w->scale;
    return (((float)raw - (float)x->sum[t]) / x->s[t]) * scale;
}

static float dot_blocks(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    const size_t blocks = w->cols / TERN_BLOCK;
    float acc = 0.0f;

    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = block_at(w->format, w->file, row * blocks + b);
        const int8_t *q = x->q + t * x->q_stride + b * TERN_BLOCK;
        const float d = x->d[t * x->d_stride + b];
        int64_t dot = 0;

        for (size_t j = 0; j < TERN_BLOCK; j++)
            dot += block_code(w->format, block, j) * q[j];
        acc += (float)dot * (block_scale(w->format, block) * d);
        if (tern_format_facts_of(w->format)->plain.minimum)
            acc += tern_ref_half(tern_ref_read16(block + 2)) *
                   (d * (float)x->block_sum[t * x->d_stride + b]);
    }
    return acc;
}

/* TQ with the scale of each block of 256, summed by 32 columns as Q4_0 is. */
static float dot_tq(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    float acc = 0.0f;

    for (size_t b = 0; b < w->cols / TERN_BLOCK; b++) {
        const size_t first = row * w->cols + b * TERN_BLOCK;
        const int8_t *q = x->q + t * x->q_stride + b * TERN_BLOCK;
        int64_t dot = 0;

        for (size_t j = 0; j < TERN_BLOCK; j++)
            dot += (ternary_code(w->format, w->file, first + j) - 1) * q[j];
        acc += (float)dot * (tq_scale(w->format, w->file, first) * x->d[t * x->d_stride + b]);
    }
    return acc;
}

static float dot_any(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    const tern_format f = w->format;

    if (w->input == TERN_INPUT_FLOAT)
        return dot_float(w, row, x->x + t * x->x_stride);
    if (f == TERN_FORMAT_TQ1_0 || f == TERN_FORMAT_TQ2_0)
        return w->input == TERN_INPUT_BLOCK ? dot_tq(w, row, x, t) : dot_ternary(w, row, x, t);
    if (f == TERN_FORMAT_I2_S)
        return dot_ternary(w, row, x, t);
    if (tern_format_facts_of(f)->plain.bits > 0)
        return dot_blocks(w, row, x, t);
    if (tern_grid_of(f) != NULL)
        return tern_ref_grid_dot(w, row, x, t);
    if (f == TERN_FORMAT_INT8 || f == TERN_FORMAT_INT4)
        return tern_ref_int_dot(w, row, x, t);
    if (f == TERN_FORMAT_Q2_K || f == TERN_FORMAT_Q3_K || f == TERN_FORMAT_Q4_K ||
        f == TERN_FORMAT_Q5_K || f == TERN_FORMAT_Q6_K || f == TERN_FORMAT_IQ4_XS)
        return tern_ref_super_dot(w, row, x, t);
    if (f == TERN_FORMAT_Q1_0 || f == TERN_FORMAT_Q2_0 || f == TERN_FORMAT_PQ2_0 ||
        f == TERN_FORMAT_PTQ1_0 || f == TERN_FORMAT_STQ1_0)
        return tern_ref_group_dot(w, row, x, t);
    if (f == TERN_FORMAT_NVFP4)
        return tern_ref_runs_dot(w, row, x, t);
    return dot_float(w, row, x->x + t * x->x_stride);
}

void tern_ref_matmul(const tern_ref_matrix *w, const tern_activations *x, const tern_tile *tile,
                     float *y, size_t y_stride) {
    for (size_t t = tile->t0; t < tile->t1; t++)
        for (size_t r = tile->r0; r < tile->r1; r++)
            y[t * y_stride + r] = dot_any(w, r, x, t);
}

/* ---- block-sparse matrices ----------------------------------------------------------------- */

/* W[r][k], 0 where no block is stored. */
static float sparse_weight(const tern_block_sparse *w, size_t r, size_t k) {
    const size_t height = w->block_rows != 0 ? w->block_rows : 16;
    const size_t width = w->block_cols != 0 ? w->block_cols : 16;
    for (size_t b = w->start[r / height]; b < w->start[r / height + 1]; b++)
        if (w->column[b] == k / width)
            return w->blocks[(b * height + r % height) * width + k % width];
    return 0.0f;
}

void tern_ref_gemv_sparse(const tern_block_sparse *w, const float *x, float *y) {
    for (size_t r = 0; r < w->rows; r++) {
        lanes dot = {{0}, 0};
        for (size_t k = 0; k < w->cols; k++)
            lanes_add(&dot, sparse_weight(w, r, k) * x[k]);
        y[r] = w->bias != NULL ? lanes_total(&dot) + w->bias[r] : lanes_total(&dot);
    }
}
