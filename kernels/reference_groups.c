/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's blocks of 64 to 256 columns with one scale: each code found by the definition of
 * its place in the file.
 */

#include "kernels/reference_lanes.h"

static size_t group_columns(tern_format format) {
    return format == TERN_FORMAT_Q2_0 ? 64 : format == TERN_FORMAT_STQ1_0 ? 256 : 128;
}

static const uint8_t *group_at(tern_format format, const void *file, size_t index) {
    const size_t bytes = format == TERN_FORMAT_PQ2_0    ? 34
                         : format == TERN_FORMAT_PTQ1_0 ? 28
                         : format == TERN_FORMAT_STQ1_0 ? 42
                                                        : 18;
    return (const uint8_t *)file + index / group_columns(format) * bytes;
}

/* Weight k of an STQ1_0 block. Of the four of a quad, 16 columns apart, one is 0. */
static int quad_weight(const uint8_t *block, size_t k) {
    const size_t quad = k / 64 * 16 + k % 16, lane = k % 64 / 16;
    const int slot = quad % 2 == 0 ? block[quad / 2] % 16 : block[quad / 2] / 16;
    const int first = block[32 + quad / 8] >> quad % 8 & 1 ? -1 : 1;
    const size_t zero = (size_t)slot / 4;
    const size_t others = lane > zero ? lane - 1 : lane; /* before it that are not 0 */

    if (lane == zero)
        return 0;
    if (others == 0)
        return first;
    return (others == 1 ? slot % 2 : slot / 2 % 2) != 0 ? -first : first;
}

/* Digit n of the base-3 fraction byte/256, rounded up. */
static int trit(uint8_t byte, size_t n) {
    static const int power[] = {1, 3, 9, 27, 81};
    return byte * power[n] % 256 * 3 / 256;
}

/* Weight `index` of the stream in units of its scale. */
static int group_weight(tern_format format, const void *file, size_t index) {
    const uint8_t *block = group_at(format, file, index);
    const size_t k = index % group_columns(format);
    static const int place[] = {1, 4, 16, 64};

    if (format == TERN_FORMAT_Q1_0)
        return (block[2 + k / 8] >> k % 8 & 1) != 0 ? 1 : -1;
    if (format == TERN_FORMAT_STQ1_0)
        return quad_weight(block, k);
    if (format != TERN_FORMAT_PTQ1_0)
        return block[2 + k / 4] / place[k % 4] % 4 - 1;
    if (k < 80)
        return trit(block[k % 16], k / 16) - 1;
    if (k < 120)
        return trit(block[16 + k % 8], (k - 80) / 8) - 1;
    return trit(block[24 + k % 2], (k - 120) / 2) - 1;
}

static float group_scale(tern_format format, const void *file, size_t index) {
    const uint8_t *block = group_at(format, file, index);
    const size_t at = format == TERN_FORMAT_PTQ1_0 ? 26 : format == TERN_FORMAT_STQ1_0 ? 40 : 0;
    return tern_ref_half(tern_ref_read16(block + at));
}

float tern_ref_group_value(tern_format format, const void *file, size_t index) {
    return (float)group_weight(format, file, index) * group_scale(format, file, index);
}

float tern_ref_group_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x,
                         size_t t) {
    float acc = 0.0f;

    for (size_t b = 0; b < w->cols / TERN_BLOCK; b++) {
        const size_t first = row * w->cols + b * TERN_BLOCK;
        const int8_t *q = x->q + t * x->q_stride + b * TERN_BLOCK;
        int64_t dot = 0;

        for (size_t j = 0; j < TERN_BLOCK; j++)
            dot += group_weight(w->format, w->file, first + j) * q[j];
        acc += (float)dot * (group_scale(w->format, w->file, first) * x->d[t * x->d_stride + b]);
    }
    return acc;
}
