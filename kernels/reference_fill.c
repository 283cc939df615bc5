/* SPDX-License-Identifier: Apache-2.0 */
/* Random and extreme weights of every format. */

#include "kernels/reference_fill.h"

#include <string.h>

#include "kernels/facts.h"
#include "kernels/grids.h"
#include "kernels/half.h"

/* ---- random numbers ------------------------------------------------------------------------ */

uint64_t tern_ref_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t tern_ref_below(uint64_t *state, uint32_t n) {
    return (uint32_t)((tern_ref_random(state) >> 32) * n >> 32);
}

float tern_ref_normal(uint64_t *state) {
    int32_t sum = 0;

    for (int i = 0; i < 3; i++) /* three uniforms in [-1, 1) have variance 1 together */
        sum += (int32_t)tern_ref_below(state, 1u << 22) - (1 << 21);
    return (float)sum * 0x1p-21f;
}

float tern_ref_any_finite(uint64_t *state) {
    uint32_t bits;

    do {
        bits = (uint32_t)(tern_ref_random(state) >> 32);
        if (tern_ref_below(state, 16) == 0)
            bits &= 0x80000000u;
        else if (tern_ref_below(state, 8) == 0)
            bits &= 0x807fffffu;
    } while ((bits & 0x7f800000u) == 0x7f800000u);
    return tern_f32_from_bits(bits);
}

/* ---- codes --------------------------------------------------------------------------------- */

/* Which of smallest, largest, random the code at `index` is. */
typedef enum extremity { SMALLEST, LARGEST, ANY } extremity;

static extremity extremity_of(tern_ref_filling filling, size_t index) {
    switch (filling) {
    case TERN_REF_FILL_SMALLEST:
        return SMALLEST;
    case TERN_REF_FILL_LARGEST:
        return LARGEST;
    case TERN_REF_FILL_ALTERNATING:
        return index % 2 == 0 ? LARGEST : SMALLEST;
    default:
        return ANY;
    }
}

/* An f16 field: about 0.02, or anything finite below 2, denormal, or the largest. */
static uint16_t half_scale(tern_ref_filling filling, uint64_t *state) {
    if (filling != TERN_REF_FILL_EXTREME)
        return tern_f32_to_f16(0.02f * tern_ref_normal(state));
    switch (tern_ref_below(state, 4)) {
    case 0:
        return (uint16_t)(tern_ref_random(state) & 0x83ffu);
    case 1:
        return (uint16_t)(0x7bffu | (tern_ref_random(state) & 0x8000u)); /* 65504 */
    default:
        return (uint16_t)(tern_ref_random(state) & 0xbfffu);
    }
}

/* ---- block formats ------------------------------------------------------------------------- */

/* Bytes besides f16 fields are codes or small scales, where any value is valid. */
static uint8_t block_byte(const tern_format_facts *facts, extremity e, size_t at, uint64_t *state) {
    const bool is_signed = at >= facts->int8_from && at < facts->int8_to;

    if (e == ANY)
        return (uint8_t)tern_ref_random(state);
    if (is_signed)
        return e == LARGEST ? 0x7f : 0x80;
    return e == LARGEST ? 0xff : 0x00;
}

static void fill_blocks(tern_format format, tern_ref_filling filling, size_t elements,
                        uint64_t *state, uint8_t *file) {
    const tern_format_info *info = tern_format_describe(format);
    const tern_format_facts *facts = tern_format_facts_of(format);

    for (size_t b = 0; b < elements / info->block_elements; b++, file += info->block_bytes) {
        for (size_t i = 0; i < info->block_bytes; i++)
            file[i] = block_byte(facts, extremity_of(filling, i), i, state);
        for (size_t h = 0; h < facts->halves; h++) {
            const uint16_t half = half_scale(filling, state);
            memcpy(file + facts->half_at[h], &half, sizeof half);
        }
        if (facts->plain.power && filling != TERN_REF_FILL_EXTREME)
            file[0] = (uint8_t)(120 + tern_ref_below(state, 6));
        for (size_t i = 0; i < 4 && format == TERN_FORMAT_NVFP4; i++) /* scales that are numbers */
            file[i] = file[i] % 127;
        if (format == TERN_FORMAT_IQ1_M) /* d lies in pieces */
            tern_grid_put_d(format, half_scale(filling, state), file);
    }
}

/* ---- floats and ternary -------------------------------------------------------------------- */

static float float_value(tern_ref_filling filling, size_t index, uint64_t *state) {
    switch (extremity_of(filling, index)) {
    case LARGEST:
        return 1.984375f; /* exact in all three formats */
    case SMALLEST:
        return -1.984375f;
    default:
        return filling == TERN_REF_FILL_EXTREME ? tern_ref_any_finite(state)
                                                : tern_ref_normal(state);
    }
}

static void fill_floats(tern_format format, tern_ref_filling filling, size_t elements,
                        uint64_t *state, uint8_t *file) {
    for (size_t i = 0; i < elements; i++) {
        const float value = float_value(filling, i, state);
        const uint16_t brain = (uint16_t)(tern_f32_to_bits(value) >> 16);
        uint16_t half = tern_f32_to_f16(value);

        if (format == TERN_FORMAT_F16 && filling == TERN_REF_FILL_EXTREME)
            half = (uint16_t)(tern_ref_random(state) & 0xbfffu);
        if (format == TERN_FORMAT_F32)
            memcpy(file + 4 * i, &value, 4);
        else
            memcpy(file + 2 * i, format == TERN_FORMAT_F16 ? &half : &brain, 2);
    }
}

static unsigned ternary_code(extremity e, uint64_t *state) {
    return e == LARGEST ? 2 : e == SMALLEST ? 0 : tern_ref_below(state, 3);
}

/* TQ2_0 has no code 3; bytes of the others are those of five codes (the last ones: of four and a
 * 0), rounded up. */
static uint8_t tq_byte(tern_format format, size_t at, extremity e, uint64_t *state) {
    unsigned v = 0;

    for (int i = 0; i < 4; i++)
        v = v * (format == TERN_FORMAT_TQ2_0 ? 4 : 3) + ternary_code(e, state);
    if (format == TERN_FORMAT_TQ2_0)
        return (uint8_t)v;
    const size_t fours = format == TERN_FORMAT_PTQ1_0 ? 24 : 48;
    v = 3 * v + (at < fours ? ternary_code(e, state) : 0);
    return (uint8_t)((256 * v + 242) / 243);
}

static void fill_tq(tern_format format, tern_ref_filling filling, size_t elements, uint64_t *state,
                    uint8_t *file) {
    const tern_format_info *info = tern_format_describe(format);
    const size_t bytes = info->block_bytes;

    for (size_t b = 0; b < elements / info->block_elements; b++, file += bytes) {
        const uint16_t half = half_scale(filling, state);
        for (size_t i = 0; i < bytes - sizeof half; i++)
            file[i] = tq_byte(format, i, extremity_of(filling, i), state);
        memcpy(file + bytes - sizeof half, &half, sizeof half);
    }
}

static void fill_ternary(tern_ref_filling filling, size_t elements, float scale, uint64_t *state,
                         uint8_t *file) {
    for (size_t i = 0; i < elements / 4; i++) {
        unsigned byte = 0;
        for (int j = 0; j < 4; j++)
            byte = byte << 2 | ternary_code(extremity_of(filling, i), state);
        file[i] = (uint8_t)byte;
    }
    file += elements / 4;
    memcpy(file, &scale, sizeof scale);
    memset(file + sizeof scale, 0xee, 28); /* the trailer's garbage must not matter */
}

void tern_ref_fill_weights(tern_format format, tern_ref_filling filling, size_t rows, size_t cols,
                           float scale, uint64_t *state, void *file) {
    const size_t elements = rows * cols;

    switch (format) {
    case TERN_FORMAT_F32:
    case TERN_FORMAT_F16:
    case TERN_FORMAT_BF16:
        fill_floats(format, filling, elements, state, file);
        break;
    case TERN_FORMAT_I2_S:
        fill_ternary(filling, elements, scale, state, file);
        break;
    case TERN_FORMAT_TQ1_0:
    case TERN_FORMAT_TQ2_0:
    case TERN_FORMAT_PTQ1_0:
        fill_tq(format, filling, elements, state, file);
        break;
    default:
        fill_blocks(format, filling, elements, state, file);
        break;
    }
}
