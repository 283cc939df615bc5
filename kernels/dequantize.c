/* SPDX-License-Identifier: Apache-2.0 */
/* File layouts to float, for tools and tests. Never on the hot path: every call is counted. */

#include <stdatomic.h>
#include <string.h>

#include "kernels/codes.h"
#include "kernels/facts.h"
#include "kernels/grids.h"
#include "kernels/half.h"
#include "kernels/ternary.h"

static atomic_uint_fast64_t calls;

/* The codes of a plain block, less their bias. */
static void plain_codes(const tern_plain *p, const uint8_t *block, int8_t codes[TERN_BLOCK]) {
    const uint8_t *bytes = block + p->codes_at;

    if (p->bits == 5)
        tern_fives(bytes - 4, p->bias, codes);
    if (p->levels != NULL)
        tern_levels(bytes, p->levels, codes);
    for (int j = 0; p->bits == 4 && p->levels == NULL && j < 16; j++) {
        codes[j] = (int8_t)((bytes[j] & 15) - p->bias);
        codes[j + 16] = (int8_t)((bytes[j] >> 4) - p->bias);
    }
    if (p->bits == 8)
        memcpy(codes, bytes, TERN_BLOCK);
}

static void dequantize_plain(const tern_plain *p, const uint8_t *block, float *y) {
    const float d = p->power ? tern_power(*block) : tern_f16_load(block);
    int8_t codes[TERN_BLOCK];

    plain_codes(p, block, codes);
    for (int j = 0; j < TERN_BLOCK; j++)
        y[j] = (float)codes[j] * d;
    for (int j = 0; p->minimum && j < TERN_BLOCK; j++)
        y[j] += tern_f16_load(block + 2);
}

/* Q4_K and Q5_K: the codes of a sub-block, which differ, times its scale, less its minimum. */
static void dequantize_minima(const uint8_t *block, size_t s, const int8_t *codes, float *y) {
    const uint8_t *scales = block + TERN_K_SCALES;
    const float d = tern_f16_load(block) * (float)tern_k_scale(scales, s);
    const float m = tern_f16_load(block + 2) * (float)tern_k_min(scales, s);

    for (size_t j = 0; j < TERN_BLOCK; j++)
        y[j] = (float)codes[j] * d - m;
}

/* Runs of 16 columns with signed scales: Q6_K and Q3_K. */
static void dequantize_runs(tern_format format, const uint8_t *block, size_t s, float *y) {
    const bool six = format == TERN_FORMAT_Q6_K;
    const float d = tern_f16_load(block + (six ? TERN_Q6_K_D : TERN_Q3_K_D));
    int8_t codes[TERN_BLOCK];

    if (six)
        tern_q6_k_codes(block, s, codes);
    else
        tern_q3_k_codes(block, s, codes);
    for (size_t j = 0; j < TERN_BLOCK; j++) {
        const size_t run = 2 * s + j / 16;
        const int scale = six ? tern_q6_k_scale(block, run) : tern_q3_k_scale(block, run);
        y[j] = (float)codes[j] * (d * (float)scale);
    }
}

static void dequantize_q2_k(const uint8_t *block, size_t s, float *y) {
    const float d = tern_f16_load(block + TERN_Q2_K_D);
    const float dmin = tern_f16_load(block + TERN_Q2_K_D + 2);
    int8_t codes[TERN_BLOCK];

    tern_q2_k_codes(block, s, codes);
    for (size_t j = 0; j < TERN_BLOCK; j++) {
        const float scale = d * (float)tern_q2_k_scale(block, 2 * s + j / 16);
        y[j] = (float)codes[j] * scale - dmin * (float)tern_q2_k_min(block, 2 * s + j / 16);
    }
}

static void dequantize_iq4_xs(const uint8_t *block, size_t s, float *y) {
    const int8_t *levels = tern_format_facts_of(TERN_FORMAT_IQ4_XS)->levels;
    const float d = tern_f16_load(block) * (float)tern_iq4_xs_scale(block, s);
    int8_t codes[TERN_BLOCK];

    tern_levels(block + TERN_IQ4_XS_NIBBLES + TERN_BLOCK / 2 * s, levels, codes);
    for (size_t j = 0; j < TERN_BLOCK; j++)
        y[j] = (float)codes[j] * d;
}

static void dequantize_nvfp4(const uint8_t *block, float *y) {
    const int8_t *levels = tern_format_facts_of(TERN_FORMAT_NVFP4)->levels;
    int8_t codes[TERN_BLOCK];

    for (size_t s = 0; s < 2; s++, y += TERN_BLOCK) {
        tern_nvfp4_codes(block, levels, s, codes);
        for (size_t j = 0; j < TERN_BLOCK; j++)
            y[j] = (float)codes[j] * tern_e4m3(tern_nvfp4_scale(block, 2 * s + j / TERN_NVFP4_RUN));
    }
}

/* Sub-block s of a format with super-blocks. */
static void dequantize_sub(tern_format format, const uint8_t *block, size_t s, float *y) {
    int8_t codes[TERN_BLOCK];

    switch (format) {
    case TERN_FORMAT_IQ4_XS:
        dequantize_iq4_xs(block, s, y);
        break;
    case TERN_FORMAT_Q2_K:
        dequantize_q2_k(block, s, y);
        break;
    case TERN_FORMAT_Q4_K:
        tern_q4_k_codes(block, s, codes);
        dequantize_minima(block, s, codes, y);
        break;
    case TERN_FORMAT_Q5_K:
        tern_q5_k_codes(block, s, codes);
        dequantize_minima(block, s, codes, y);
        break;
    default:
        dequantize_runs(format, block, s, y);
        break;
    }
}

/* Blocks of 64 to 256 columns, 32 at a time. */
static void dequantize_group(tern_format format, const uint8_t *block, float *y) {
    const size_t blocks = tern_format_describe(format)->block_elements / TERN_BLOCK;
    const size_t scale_at = format == TERN_FORMAT_PTQ1_0   ? TERN_PTQ1_0_D
                            : format == TERN_FORMAT_STQ1_0 ? TERN_STQ1_0_D
                                                           : 0;
    const float d = tern_f16_load(block + scale_at);
    int8_t codes[TERN_BLOCK];

    for (size_t s = 0; s < blocks; s++, y += TERN_BLOCK) {
        if (format == TERN_FORMAT_Q1_0)
            tern_q1_0_codes(block, s, codes);
        else if (format == TERN_FORMAT_PTQ1_0)
            tern_ptq1_0_codes(block, s, codes);
        else if (format == TERN_FORMAT_STQ1_0)
            tern_stq1_0_codes(block, s, codes);
        else
            tern_q2_0_codes(block, s, codes);
        for (size_t j = 0; j < TERN_BLOCK; j++)
            y[j] = (float)codes[j] * d;
    }
}

static void dequantize_int4(const uint8_t *block, float *y) {
    const float d = tern_f16_load(block);

    for (int j = 0; j < 16; j++) {
        y[j] = (float)((block[4 + j] & 15) - block[2]) * d;
        y[j + 16] = (float)((block[4 + j] >> 4) - block[2]) * d;
    }
}

/* A run of elements that share a scale. */
static void dequantize_codes(tern_format format, const uint8_t *file, size_t first, size_t n,
                             float scale, float *y) {
    uint8_t codes[TERN_TQ_BLOCK];

    tern_ternary_read(format, file, first, n, codes);
    for (size_t k = 0; k < n; k++)
        y[k] = (float)((int)codes[k] - 1) * scale;
}

static void dequantize_ternary(tern_format format, const uint8_t *file, size_t first, size_t cols,
                               float scale, float *y) {
    for (size_t k = 0; k < cols; k += TERN_TQ_BLOCK) {
        const size_t n = cols - k < TERN_TQ_BLOCK ? cols - k : TERN_TQ_BLOCK;
        if (format != TERN_FORMAT_I2_S)
            scale = tern_f16_load(file + tern_ternary_scale_at(format, first + k));
        dequantize_codes(format, file, first + k, n, scale, y + k);
    }
}

static void dequantize_block(tern_format format, const uint8_t *block, float *y) {
    switch (format) {
    case TERN_FORMAT_F32:
        memcpy(y, block, sizeof *y);
        break;
    case TERN_FORMAT_F16:
        *y = tern_f16_load(block);
        break;
    case TERN_FORMAT_BF16:
        *y = tern_bf16_load(block);
        break;
    case TERN_FORMAT_INT4:
        dequantize_int4(block, y);
        break;
    case TERN_FORMAT_Q2_K:
    case TERN_FORMAT_Q3_K:
    case TERN_FORMAT_Q4_K:
    case TERN_FORMAT_Q5_K:
    case TERN_FORMAT_Q6_K:
    case TERN_FORMAT_IQ4_XS:
        for (size_t s = 0; s < TERN_SUPER / TERN_BLOCK; s++)
            dequantize_sub(format, block, s, y + s * TERN_BLOCK);
        break;
    case TERN_FORMAT_Q1_0:
    case TERN_FORMAT_Q2_0:
    case TERN_FORMAT_PQ2_0:
    case TERN_FORMAT_PTQ1_0:
    case TERN_FORMAT_STQ1_0:
        dequantize_group(format, block, y);
        break;
    case TERN_FORMAT_NVFP4:
        dequantize_nvfp4(block, y);
        break;
    default:
        if (tern_grid_of(format) != NULL)
            tern_grid_floats(format, block, TERN_GRID_BLOCK, y);
        else
            dequantize_plain(&tern_format_facts_of(format)->plain, block, y);
        break;
    }
}

void tern_dequantize_row(tern_format format, const void *file, size_t cols, size_t row, float scale,
                         float *y) {
    const tern_format_info *info = tern_format_describe(format);

    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (info == NULL)
        return;
    if (tern_format_is_ternary(format)) {
        dequantize_ternary(format, file, row * cols, cols, scale, y);
        return;
    }

    if (format == TERN_FORMAT_INT8) {
        for (size_t k = 0; k < cols; k++)
            y[k] = (float)((const int8_t *)file)[row * cols + k] * scale;
        return;
    }
    const size_t blocks = cols / info->block_elements;
    const uint8_t *src = (const uint8_t *)file + row * blocks * info->block_bytes;
    for (size_t b = 0; b < blocks; b++, src += info->block_bytes)
        dequantize_block(format, src, y + b * info->block_elements);
}

uint64_t tern_dequantize_calls(void) {
    return atomic_load_explicit(&calls, memory_order_relaxed);
}
