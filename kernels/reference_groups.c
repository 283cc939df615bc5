/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's blocks of 64 and 128 columns with one scale: each code found by the definition of
 * its place in the file.
 */

#include "kernels/reference_lanes.h"

static const uint8_t *group_at(tern_format format, const void *file, size_t index) {
    const size_t bytes = format == TERN_FORMAT_PQ2_0 ? 34 : format == TERN_FORMAT_PTQ1_0 ? 28 : 18;
    return (const uint8_t *)file + index / (format == TERN_FORMAT_Q2_0 ? 64 : 128) * bytes;
}

/* Digit n of the base-3 fraction byte/256, rounded up. */
static int trit(uint8_t byte, size_t n) {
    static const int power[] = {1, 3, 9, 27, 81};
    return byte * power[n] % 256 * 3 / 256;
}

/* Weight `index` of the stream in units of its scale. */
static int group_weight(tern_format format, const void *file, size_t index) {
    const uint8_t *block = group_at(format, file, index);
    const size_t k = index % (format == TERN_FORMAT_Q2_0 ? 64 : 128);
    static const int place[] = {1, 4, 16, 64};

    if (format == TERN_FORMAT_Q1_0)
        return (block[2 + k / 8] >> k % 8 & 1) != 0 ? 1 : -1;
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
    return tern_ref_half(tern_ref_read16(block + (format == TERN_FORMAT_PTQ1_0 ? 26 : 0)));
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
