/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/sparse_case.h"

#include <math.h>
#include <string.h>

#include "kernels/reference.h"

void sparse_fill(sparse_case *s, uint32_t h, uint32_t w, check_rng *rng) {
    uint32_t n = 0;

    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i * h < SPARSE_ROWS; i++) {
        for (uint32_t j = 0; j * w < SPARSE_COLS; j++) {
            if (check_below(rng, 2) == 0)
                continue;
            s->column[n] = j;
            assert_true((n + 1) * h * w <= sizeof s->blocks / sizeof *s->blocks);
            for (uint32_t e = 0; e < h * w; e++) {
                const uint32_t r = i * h + e / w;
                const uint32_t k = j * w + e % w;
                const bool inside = r < SPARSE_ROWS && k < SPARSE_COLS;
                s->blocks[n * h * w + e] = inside ? check_normal(rng) : (float)NAN;
                if (inside)
                    s->dense[r * SPARSE_COLS + k] = s->blocks[n * h * w + e];
            }
            n++;
        }
        s->start[i + 1] = n;
    }
    for (int k = 0; k < SPARSE_COLS; k++)
        s->x[k] = k % 7 == 0 ? -0.0f : check_normal(rng);
    for (int r = 0; r < SPARSE_ROWS; r++)
        s->bias[r] = check_normal(rng);
    s->w =
        (tern_block_sparse){SPARSE_ROWS, SPARSE_COLS, s->start, s->column, s->blocks, NULL, h, w};
    if (h == 16 && w == 16)
        s->w.block_rows = s->w.block_cols = 0; /* the default size */
}

void sparse_expect(const sparse_case *s, float *want) {
    const tern_ref_matrix dense = {
        .format = TERN_FORMAT_F32, .file = s->dense, .rows = SPARSE_ROWS, .cols = SPARSE_COLS};
    const tern_activations x = {.cols = SPARSE_COLS, .x = s->x, .x_stride = SPARSE_COLS};
    const tern_tile all = {0, 1, 0, SPARSE_ROWS};

    tern_ref_matmul(&dense, &x, &all, want, SPARSE_ROWS);
    for (int r = 0; r < SPARSE_ROWS && s->w.bias != NULL; r++)
        want[r] += s->w.bias[r];
}
