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
    const size_t bytes = format == TERN_FORMAT_Q2_K     ? 84
                         : format == TERN_FORMAT_Q3_K   ? 110
                         : format == TERN_FORMAT_IQ4_XS ? 136
                         : format == TERN_FORMAT_Q4_K   ? 144
                         : format == TERN_FORMAT_Q5_K   ? 176
                                                        : 210;
    return (const uint8_t *)file + super * bytes;
}

/* The place of a super-block's f16 scale; that of minima follows. */
static size_t scale_at(tern_format format) {
    return format == TERN_FORMAT_Q2_K   ? 80
           : format == TERN_FORMAT_Q3_K ? 108
           : format == TERN_FORMAT_Q6_K ? 208
                                        : 0;
}

/* ---- codes --------------------------------------------------------------------------------- */

/* The two bits of code e of Q2_K and Q3_K. */
static int two_bits(const uint8_t *twos, size_t e) {
    static const int place[] = {1, 4, 16, 64};
    return twos[e / 128 * 32 + e % 32] / place[e % 128 / 32] % 4;
}

static int q6_k_code(const uint8_t *block, size_t e) {
    const size_t half = e / 128, quarter = e % 128 / 32, l = e % 32;
    const uint8_t low = block[64 * half + quarter % 2 * 32 + l];
    const uint8_t high = block[128 + 32 * half + l];
    return (quarter < 2 ? low % 16 : low / 16) + 16 * (high >> 2 * quarter & 3) - 32;
}

static int iq4_xs_code(const uint8_t *block, size_t e) {
    static const int levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
    const uint8_t byte = block[8 + e / 32 * 16 + e % 16];
    return levels[e % 32 < 16 ? byte % 16 : byte / 16];
}

/* Code e of a super-block, as it enters the integer product. */
static int super_code(tern_format format, const uint8_t *block, size_t e) {
    const size_t l = e % 32;

    if (format == TERN_FORMAT_Q2_K)
        return two_bits(block + 16, e);
    if (format == TERN_FORMAT_Q3_K)
        return two_bits(block + 32, e) + 4 * (block[l] >> e / 32 & 1) - 4;
    if (format == TERN_FORMAT_Q6_K)
        return q6_k_code(block, e);
    if (format == TERN_FORMAT_IQ4_XS)
        return iq4_xs_code(block, e);
    const uint8_t byte = block[(format == TERN_FORMAT_Q4_K ? 16 : 48) + e / 64 * 32 + l];
    const int nibble = e % 64 < 32 ? byte % 16 : byte / 16;
    return format == TERN_FORMAT_Q4_K ? nibble : nibble + 16 * (block[16 + l] >> e / 32 & 1);
}

/* ---- scales -------------------------------------------------------------------------------- */

/* Six bits less 32: four of run r in 8 bytes, two in 4 more. */
static int q3_k_scale(const uint8_t *scales, size_t r) {
    const int low = r < 8 ? scales[r] % 16 : scales[r - 8] / 16;
    return low + 16 * (scales[8 + r % 4] >> r / 4 * 2 & 3) - 32;
}

static int iq4_xs_scale(const uint8_t *block, size_t s) {
    const int low = s % 2 == 0 ? block[4 + s / 2] % 16 : block[4 + s / 2] / 16;
    return low + 16 * (tern_ref_read16(block + 2) >> 2 * s & 3) - 32;
}

/* The factor of code e: six bits, or signed. */
static int super_scale(tern_format format, const uint8_t *block, size_t e) {
    const size_t s = e / 32;

    switch (format) {
    case TERN_FORMAT_Q2_K:
        return block[e / 16] % 16;
    case TERN_FORMAT_Q3_K:
        return q3_k_scale(block + 96, e / 16);
    case TERN_FORMAT_Q6_K:
        return block[192 + e / 16] < 128 ? block[192 + e / 16] : block[192 + e / 16] - 256;
    case TERN_FORMAT_IQ4_XS:
        return iq4_xs_scale(block, s);
    default:
        return s < 4 ? block[4 + s] % 64 : block[8 + s] % 16 + 16 * (block[s] / 64);
    }
}

/* The minimum that is taken off code e: six bits of its sub-block, or four of its run; or 0. */
static int super_min(tern_format format, const uint8_t *block, size_t e) {
    const size_t s = e / 32;

    if (format == TERN_FORMAT_Q2_K)
        return block[e / 16] / 16;
    if (format != TERN_FORMAT_Q4_K && format != TERN_FORMAT_Q5_K)
        return 0;
    return s < 4 ? block[8 + s] % 64 : block[8 + s] / 16 + 16 * (block[4 + s] / 64);
}

static bool has_minima(tern_format format) {
    return format == TERN_FORMAT_Q2_K || format == TERN_FORMAT_Q4_K || format == TERN_FORMAT_Q5_K;
}

float tern_ref_super_value(tern_format format, const void *file, size_t index) {
    const uint8_t *block = super_at(format, file, index / SUPER);
    const uint8_t *fields = block + scale_at(format);
    const size_t e = index % SUPER;
    const float scale = half_at(fields) * (float)super_scale(format, block, e);
    const float product = (float)super_code(format, block, e) * scale;

    return has_minima(format) ? product - half_at(fields + 2) * (float)super_min(format, block, e)
                              : product;
}

/* ---- products ------------------------------------------------------------------------------ */

/* Sub-block s where it has one scale, and maybe one minimum. */
static float add_sub(tern_format format, const uint8_t *block, size_t s, const int8_t *q, float d,
                     int32_t block_sum, float acc) {
    const float scale = half_at(block) * (float)super_scale(format, block, 32 * s);
    int64_t dot = 0;

    for (size_t j = 0; j < TERN_BLOCK; j++)
        dot += super_code(format, block, 32 * s + j) * q[j];
    acc += (float)dot * (scale * d);
    if (!has_minima(format))
        return acc;
    const float min = half_at(block + 2) * (float)super_min(format, block, 32 * s);
    return acc - min * (d * (float)block_sum);
}

/* Sub-block s where each half has a scale, and maybe a minimum: integers until both are added. */
static float add_halves(tern_format format, const uint8_t *block, size_t s, const int8_t *q,
                        float d, float acc) {
    const uint8_t *fields = block + scale_at(format);
    int64_t dot = 0, least = 0;

    for (size_t j = 0; j < TERN_BLOCK; j++) {
        const size_t e = 32 * s + j;
        dot += super_scale(format, block, e) * super_code(format, block, e) * q[j];
        least += super_min(format, block, e) * q[j];
    }
    acc += (float)dot * (half_at(fields) * d);
    return has_minima(format) ? acc - (float)least * (half_at(fields + 2) * d) : acc;
}

float tern_ref_super_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x,
                         size_t t) {
    const tern_format f = w->format;
    const bool halves = f == TERN_FORMAT_Q2_K || f == TERN_FORMAT_Q3_K || f == TERN_FORMAT_Q6_K;
    const size_t supers = w->cols / SUPER;
    float acc = 0.0f;

    for (size_t b = 0; b < w->cols / TERN_BLOCK; b++) {
        const uint8_t *block = super_at(f, w->file, row * supers + b / 8);
        const int8_t *q = x->q + t * x->q_stride + b * TERN_BLOCK;
        const float d = x->d[t * x->d_stride + b];
        const int32_t sum = x->block_sum[t * x->d_stride + b];
        acc = halves ? add_halves(f, block, b % 8, q, d, acc)
                     : add_sub(f, block, b % 8, q, d, sum, acc);
    }
    return acc;
}
