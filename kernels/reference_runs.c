/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle's NVFP4: runs of 16 columns, each with a small float, found by their definitions. */

#include "kernels/reference_lanes.h"

enum { COLUMNS = 64, BYTES = 36, RUN = 16 };

/* Twice the value of E2M1: a sign, two bits of exponent, one of fraction. */
static int level_of(int code) {
    const int exponent = code / 2 % 4, fraction = code % 2;
    const int magnitude = exponent == 0 ? fraction : (2 + fraction) << (exponent - 1);
    return code < 8 ? magnitude : -magnitude;
}

/* Half of E4M3: a sign that does not count, four bits of exponent, three of fraction. */
static float scale_of(uint8_t byte) {
    const int exponent = byte / 8 % 16, fraction = byte % 8;
    if (byte == 0x7f) /* not a number: counts as 0 */
        return 0.0f;
    return exponent == 0 ? ldexpf((float)fraction, -10)
                         : ldexpf((float)(8 + fraction), exponent - 11);
}

static const uint8_t *block_at(const void *file, size_t index) {
    return (const uint8_t *)file + index / COLUMNS * BYTES;
}

static int weight_at(const void *file, size_t index) {
    const size_t k = index % COLUMNS;
    const uint8_t byte = block_at(file, index)[4 + k / RUN * 8 + k % 8];
    return level_of(k % RUN < 8 ? byte % 16 : byte / 16);
}

static float scale_at(const void *file, size_t index) {
    return scale_of(block_at(file, index)[index % COLUMNS / RUN]);
}

float tern_ref_runs_value(const void *file, size_t index) {
    return (float)weight_at(file, index) * scale_at(file, index);
}

float tern_ref_runs_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    float acc = 0.0f;

    for (size_t b = 0; b < w->cols / TERN_BLOCK; b++) {
        const size_t first = row * w->cols + b * TERN_BLOCK;
        const int8_t *q = x->q + t * x->q_stride + b * TERN_BLOCK;
        int64_t dot[2] = {0, 0};
        for (size_t j = 0; j < TERN_BLOCK; j++)
            dot[j / RUN] += weight_at(w->file, first + j) * q[j];
        const float low = (float)dot[0] * scale_at(w->file, first);
        const float high = (float)dot[1] * scale_at(w->file, first + RUN);
        acc += (low + high) * x->d[t * x->d_stride + b];
    }
    return acc;
}
