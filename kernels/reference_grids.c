/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's formats with grids. A block's fields are found by kernels/grids.h, which tests
 * compare with another reader of the same bytes (e2e_oracle); products are those of
 * docs/numerics.md.
 */

#include "kernels/facts.h"
#include "kernels/grids.h"
#include "kernels/reference_lanes.h"

static const uint8_t *block_at(tern_format format, const void *file, size_t index) {
    return (const uint8_t *)file +
           index / TERN_GRID_BLOCK * tern_format_describe(format)->block_bytes;
}

static int level_of(tern_format format, const uint8_t *block, size_t k) {
    const tern_grid *grid = tern_grid_of(format);
    uint8_t codes[8];

    tern_grid_codes(grid, block, k / grid->run, codes);
    return tern_format_facts_of(format)->levels[codes[k % grid->run]];
}

static int factor_of(tern_format format, const uint8_t *block, size_t k) {
    return (int)tern_grid_factor(tern_grid_of(format), block, k / 16);
}

static float scale_of(tern_format format, const uint8_t *block) {
    return tern_ref_half(tern_grid_d(format, block)) * tern_format_facts_of(format)->unit;
}

float tern_ref_grid_value(tern_format format, const void *file, size_t index) {
    const uint8_t *block = block_at(format, file, index);
    const size_t k = index % TERN_GRID_BLOCK;

    return (float)(level_of(format, block, k) * factor_of(format, block, k)) *
           scale_of(format, block);
}

/* The levels of 32 columns from k on. */
static void levels_from(tern_format format, const uint8_t *block, size_t k,
                        int levels[TERN_BLOCK]) {
    const tern_grid *grid = tern_grid_of(format);
    uint8_t codes[TERN_BLOCK];

    for (size_t j = 0; j < TERN_BLOCK; j += grid->run)
        tern_grid_codes(grid, block, (k + j) / grid->run, codes + j);
    for (size_t j = 0; j < TERN_BLOCK; j++)
        levels[j] = tern_format_facts_of(format)->levels[codes[j]];
}

/* 32 columns whose halves differ in their factors have these in the sum; else they scale it. */
float tern_ref_grid_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    const bool by_halves = tern_grid_of(w->format)->scale_span == 16;
    const int8_t *q = x->q + t * x->q_stride;
    float acc = 0.0f;

    for (size_t first = 0; first < w->cols; first += TERN_BLOCK) {
        const uint8_t *block = block_at(w->format, w->file, row * w->cols + first);
        const size_t at = first % TERN_GRID_BLOCK;
        float scale = scale_of(w->format, block);
        int levels[TERN_BLOCK];
        int64_t dot = 0;

        levels_from(w->format, block, at, levels);
        for (size_t j = 0; j < TERN_BLOCK; j++)
            dot += (int64_t)levels[j] * q[first + j] *
                   (by_halves ? factor_of(w->format, block, at + j) : 1);
        if (!by_halves)
            scale *= (float)factor_of(w->format, block, at);
        acc += (float)dot * (scale * x->d[t * x->d_stride + first / TERN_BLOCK]);
    }
    return acc;
}
