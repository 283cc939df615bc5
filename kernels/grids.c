/* SPDX-License-Identifier: Apache-2.0 */

#include "kernels/grids.h"

#include <string.h>

#include "kernels/facts.h"
#include "kernels/half.h"

/* ---- how blocks are put together ------------------------------------------------------------- */

#define GRID(name, base_, run_, signs_, scales_)                                                   \
    .entries = tern_grid_##name, .count = sizeof tern_grid_##name / sizeof *tern_grid_##name,      \
    .base = (base_), .run = (run_), .sign_span = (signs_), .scale_span = (scales_)
#define FIELD(byte, bit, four_, one_, bits_)                                                       \
    { .at = 8 * (byte) + (bit), .four = (four_), .one = (one_), .bits = (bits_) }

/* docs/formats.md has pictures of these. */
static const tern_grid grids[TERN_FORMAT_COUNT] = {
    [TERN_FORMAT_IQ2_XXS] = {GRID(iq2_xxs, 3, 8, 8, 32), .low = FIELD(2, 0, 64, 8, 8),
                             .signs = FIELD(6, 0, 64, 7, 7), .scales = FIELD(6, 28, 256, 64, 4)},
    [TERN_FORMAT_IQ2_XS] = {GRID(iq2_xs, 3, 8, 8, 16), .low = FIELD(2, 0, 64, 16, 9),
                            .signs = FIELD(2, 9, 64, 16, 7), .scales = FIELD(66, 0, 16, 4, 4)},
    [TERN_FORMAT_IQ2_S] = {GRID(iq2_s, 3, 8, 8, 16), .low = FIELD(2, 0, 32, 8, 8),
                           .high = FIELD(66, 0, 8, 2, 2), .signs = FIELD(34, 0, 32, 8, 8),
                           .scales = FIELD(74, 0, 16, 4, 4)},
    [TERN_FORMAT_IQ3_XXS] = {GRID(iq3_xxs, 8, 4, 8, 32), .low = FIELD(2, 0, 32, 8, 8),
                             .signs = FIELD(66, 0, 32, 7, 7), .scales = FIELD(66, 28, 128, 32, 4)},
    [TERN_FORMAT_IQ3_S] = {GRID(iq3_s, 8, 4, 8, 32), .low = FIELD(2, 0, 32, 8, 8),
                           .high = FIELD(66, 0, 4, 1, 1), .signs = FIELD(74, 0, 32, 8, 8),
                           .scales = FIELD(106, 0, 16, 4, 4)},
    [TERN_FORMAT_IQ1_S] = {GRID(iq1, 3, 8, 32, 32), .low = FIELD(2, 0, 32, 8, 8),
                           .high = FIELD(34, 0, 16, 3, 3), .signs = FIELD(34, 15, 64, 16, 1),
                           .scales = FIELD(34, 12, 64, 16, 3)},
    [TERN_FORMAT_IQ1_M] = {GRID(iq1, 3, 8, 8, 16), .low = FIELD(0, 0, 32, 8, 8),
                           .high = FIELD(32, 0, 16, 4, 3), .signs = FIELD(32, 3, 16, 4, 1),
                           .scales = FIELD(48, 0, 16, 3, 3)},
};

const tern_grid *tern_grid_of(tern_format format) {
    return (unsigned)format < TERN_FORMAT_COUNT && grids[format].run > 0 ? &grids[format] : NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Bits that have no room in the field are left out. */
static void put(uint8_t *block, const tern_grid_field *f, size_t i, unsigned value) {
    const size_t at = tern_grid_place(f, i), end = (at + f->bits + 7) / 8;
    const unsigned word = (value & ((1u << f->bits) - 1)) << at % 8;

    for (size_t byte = at / 8; byte < end && f->bits > 0; byte++)
        block[byte] = (uint8_t)(block[byte] | word >> 8 * (byte - at / 8));
}

void tern_grid_put_d(tern_format format, uint16_t d, uint8_t *block) {
    if (format != TERN_FORMAT_IQ1_M) {
        block[0] = (uint8_t)d;
        block[1] = (uint8_t)(d >> 8);
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        uint8_t *byte = &block[TERN_IQ1_M_SCALES + 2 * i + 1];
        *byte = (uint8_t)((*byte & 15) | (d >> 4 * i & 15) << 4);
    }
}

/* ---- the inverse ----------------------------------------------------------------------------- */

/* The number of the entry with these digits: entries count upwards. */
static unsigned entry_of(const tern_grid *g, unsigned digits) {
    unsigned low = 0, high = g->count - 1u;

    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (g->entries[middle] < digits)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_negative(const tern_grid *g, uint8_t code) {
    return g->signs.bits == 1 ? code % 2 == 0 : code < g->base;
}

static unsigned digit_of(const tern_grid *g, uint8_t code) {
    if (g->signs.bits == 1)
        return code / 2;
    return is_negative(g, code) ? g->base - 1u - code : (unsigned)code - g->base;
}

static void put_run(const tern_grid *g, size_t run, const uint8_t *codes, uint8_t *block) {
    const size_t first = run * g->run;
    unsigned digits = 0, signs = 0;

    for (size_t j = g->run; j-- > 0;) {
        digits = digits * g->base + digit_of(g, codes[j]);
        signs = signs << 1 | is_negative(g, codes[j]);
    }
    const unsigned entry = entry_of(g, digits);
    put(block, &g->low, run, entry);
    put(block, &g->high, run, entry >> g->low.bits);
    put(block, &g->signs, first / g->sign_span, signs << first % 8);
}

void tern_grid_write(const tern_grid *g, const uint8_t factors[TERN_GRID_HALVES],
                     const uint8_t codes[TERN_GRID_BLOCK], uint8_t *block) {
    const size_t halves = g->scale_span / 16;

    for (size_t i = 0; i < TERN_GRID_HALVES / halves; i++)
        put(block, &g->scales, i, factors[halves * i] / 2u);
    for (size_t run = 0; run < TERN_GRID_BLOCK / g->run; run++)
        put_run(g, run, codes + run * g->run, block);
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Products of levels, factors and d are exact. */
void tern_grid_floats(tern_format format, const void *blocks, size_t n, float *y) {
    const tern_format_facts *facts = tern_format_facts_of(format);
    const size_t bytes = tern_format_describe(format)->block_bytes;
    const tern_grid *g = tern_grid_of(format);
    const uint8_t *block = blocks;
    uint8_t codes[8];

    for (size_t k = 0; k < n; k++) {
        const size_t at = k % TERN_GRID_BLOCK;
        if (at == 0 && k > 0)
            block += bytes;
        if (at % g->run == 0)
            tern_grid_codes(g, block, at / g->run, codes);
        y[k] =
            (float)(facts->levels[codes[at % g->run]] * (int)tern_grid_factor(g, block, at / 16)) *
            (tern_f16_to_f32(tern_grid_d(format, block)) * facts->unit);
    }
}
