/* SPDX-License-Identifier: Apache-2.0 */
/* A dense matrix as a file of sparse blocks. */
#include "kernels/half.h"
#include "kernels/iebs.h"

/* Adds the ternary weight in row r, column k of a block whose codes are all 1 as yet. */
static void put_trit(const tern_iebs *m, uint8_t *block, size_t r, size_t k, float weight) {
    const tern_iebs_place at = tern_iebs_trit_place(m, r, k);
    const int change = (weight > 0.0f) - (weight < 0.0f);
    block[at.byte] = (uint8_t)(block[at.byte] + change * (1 << at.shift));
}

static void put_value(const tern_iebs *m, uint8_t *block, size_t r, size_t k, float weight) {
    const size_t i = r * m->block_cols + k;
    if (m->format == TERN_FORMAT_I2_S)
        put_trit(m, block, r, k, weight);
    else if (m->format == TERN_FORMAT_F16)
        tern_f16_store(block + 2 * i, weight);
    else
        memcpy(block + 4 * i, &weight, sizeof weight);
}

/* Block (i, j) of the weights; what lies past the edge is 0. */
static void put_block(const tern_iebs *m, size_t i, size_t j, const float *weights,
                      uint8_t *block) {
    const size_t r0 = i * m->block_rows, k0 = j * m->block_cols;
    memset(block, m->format == TERN_FORMAT_I2_S ? 0x55 : 0, m->block_bytes);
    for (size_t r = 0; r < m->block_rows && r0 + r < m->rows; r++)
        for (size_t k = 0; k < m->block_cols && k0 + k < m->cols; k++)
            put_value(m, block, r, k, weights[(r0 + r) * m->cols + k0 + k]);
}

void tern_iebs_write(const tern_iebs *m, const bool *stored, const float *weights, void *out) {
    tern_iebs_write_header(m, out);
    const tern_iebs to = tern_iebs_view(out);
    uint8_t *const bytes = out;
    uint32_t *const start = out;
    uint32_t *const column = start + (to.column - (const uint32_t *)out);
    uint8_t *values = bytes + (to.values - bytes);
    const size_t block_rows = tern_iebs_block_rows(m), columns = tern_iebs_block_columns(m);
    uint32_t n = 0;
    memset(column + m->blocks, 0, (size_t)(values - (uint8_t *)(column + m->blocks)));
    for (size_t i = 0; i < block_rows; i++) {
        start[to.start - (const uint32_t *)out + (ptrdiff_t)i] = n;
        for (size_t j = 0; j < columns; j++) {
            if (!stored[i * columns + j])
                continue;
            column[n++] = (uint32_t)j;
            put_block(&to, i, j, weights, values);
            values += to.block_bytes;
        }
    }
    start[to.start - (const uint32_t *)out + (ptrdiff_t)block_rows] = n;
}
