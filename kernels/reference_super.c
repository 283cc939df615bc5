/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's K-quants: super-blocks of 256 columns, each code and scale found by the definition
 * of its place in the file.
 */

#include "kernels/reference_lanes.h"

enum { SUPER = 256 };

static float half_at(const uint8_t *p) {
    return tern_ref_half(tern_ref_read16(p));
}

static const uint8_t *super_at(tern_format format, const void *file, size_t super) {
    const size_t bytes = format == TERN_FORMAT_Q4_K ? 144 : format == TERN_FORMAT_Q5_K ? 176 : 210;
    return (const uint8_t *)file + super * bytes;
}

/* Code e of a super-block, as it enters the integer product. */
static int super_code(tern_format format, const uint8_t *block, size_t e) {
    const size_t l = e % 32;

    if (format == TERN_FORMAT_Q6_K) {
        const size_t half = e / 128, quarter = e % 128 / 32;
        const uint8_t low = block[64 * half + quarter % 2 * 32 + l];
        const uint8_t high = block[128 + 32 * half + l];
        return (quarter < 2 ? low % 16 : low / 16) + 16 * (high >> 2 * quarter & 3) - 32;
    }
    const uint8_t byte = block[(format == TERN_FORMAT_Q4_K ? 16 : 48) + e / 64 * 32 + l];
    const int nibble = e % 64 < 32 ? byte % 16 : byte / 16;
    return format == TERN_FORMAT_Q4_K ? nibble : nibble + 16 * (block[16 + l] >> e / 32 & 1);
}

/* The factor of code e: six bits, or (Q6_K) a signed byte. */
static int super_scale(tern_format format, const uint8_t *block, size_t e) {
    const size_t s = e / 32;

    if (format == TERN_FORMAT_Q6_K)
        return block[192 + e / 16] < 128 ? block[192 + e / 16] : block[192 + e / 16] - 256;
    return s < 4 ? block[4 + s] % 64 : block[8 + s] % 16 + 16 * (block[s] / 64);
}

/* The six bits of a sub-block's minimum. */
static int super_min(const uint8_t *block, size_t s) {
    return s < 4 ? block[8 + s] % 64 : block[8 + s] / 16 + 16 * (block[4 + s] / 64);
}

float tern_ref_super_value(tern_format format, const void *file, size_t index) {
    const uint8_t *block = super_at(format, file, index / SUPER);
    const size_t e = index % SUPER;
    const float d = half_at(block + (format == TERN_FORMAT_Q6_K ? 208 : 0));
    const float product =
        (float)super_code(format, block, e) * (d * (float)super_scale(format, block, e));

    if (format == TERN_FORMAT_Q6_K)
        return product;
    return product - half_at(block + 2) * (float)super_min(block, e / 32);
}

/* Sub-block s of Q4_K or Q5_K. */
static float add_minima(tern_format format, const uint8_t *block, size_t s, const int8_t *q,
                        float d, int32_t block_sum, float acc) {
    const float scale = half_at(block) * (float)super_scale(format, block, 32 * s);
    const float min = half_at(block + 2) * (float)super_min(block, s);
    int64_t dot = 0;

    for (size_t j = 0; j < TERN_BLOCK; j++)
        dot += super_code(format, block, 32 * s + j) * q[j];
    acc += (float)dot * (scale * d);
    return acc - min * (d * (float)block_sum);
}

/* Sub-block s of Q6_K, with its two integer scales. */
static float add_scaled(tern_format format, const uint8_t *block, size_t s, const int8_t *q,
                        float d, float acc) {
    int64_t dot = 0;

    for (size_t j = 0; j < TERN_BLOCK; j++) {
        const size_t e = 32 * s + j;
        dot += super_scale(format, block, e) * super_code(format, block, e) * q[j];
    }
    return acc + (float)dot * (half_at(block + 208) * d);
}

float tern_ref_super_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x,
                         size_t t) {
    const size_t supers = w->cols / SUPER;
    float acc = 0.0f;

    for (size_t b = 0; b < w->cols / TERN_BLOCK; b++) {
        const uint8_t *block = super_at(w->format, w->file, row * supers + b / 8);
        const int8_t *q = x->q + t * x->q_stride + b * TERN_BLOCK;
        const float d = x->d[t * x->d_stride + b];
        const int32_t sum = x->block_sum[t * x->d_stride + b];
        acc = w->format == TERN_FORMAT_Q6_K ? add_scaled(w->format, block, b % 8, q, d, acc)
                                            : add_minima(w->format, block, b % 8, q, d, sum, acc);
    }
    return acc;
}
