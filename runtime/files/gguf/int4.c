/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/gguf/int4.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"

enum { HALF_BLOCK = TERN_INT4_BLOCK / 2, MIDDLE = 8 };

/* The code of column k: 0 .. 15. */
static unsigned code_at(const tern_int4_rows *form, const uint8_t *nibbles, size_t k) {
    const bool high = (k % 2 == 1) != form->high_first;
    const unsigned nibble = (unsigned)nibbles[k / 2] >> (high ? 4 : 0) & 15u;
    return form->twos_complement ? nibble ^ MIDDLE : nibble;
}

void tern_int4_block(const tern_int4_rows *form, const uint8_t *row, size_t cols, size_t first,
                     uint8_t block[TERN_INT4_BLOCK_BYTES]) {
    const uint8_t *scales = row + cols / 2;
    const uint8_t *zeros = scales + 2 * tern_int4_groups(form, cols);
    const size_t group = first / form->group;
    memcpy(block, scales + 2 * group, 2);
    block[2] = form->zero_points ? zeros[group] : MIDDLE;
    block[3] = 0;
    for (size_t j = 0; j < HALF_BLOCK; j++) {
        const unsigned low = code_at(form, row, first + j);
        const unsigned high = code_at(form, row, first + j + HALF_BLOCK);
        block[4 + j] = (uint8_t)(low | high << 4);
    }
}

void tern_int4_blocks(const tern_int4_rows *form, const uint8_t *data, size_t rows, size_t cols,
                      uint8_t *blocks) {
    const size_t row_bytes = tern_int4_row_bytes(form, cols);
    for (size_t r = 0; r < rows; r++)
        for (size_t first = 0; first < cols; first += TERN_INT4_BLOCK) {
            tern_int4_block(form, data + r * row_bytes, cols, first, blocks);
            blocks += TERN_INT4_BLOCK_BYTES;
        }
}

void tern_int4_hash(tern_hash64 *hash, const tern_int4_rows *form) {
    const uint64_t fields[4] = {form->group, form->zero_points, form->twos_complement,
                                form->high_first};
    if (form->group > 0)
        tern_hash64_add(hash, fields, sizeof fields);
}

tern_status tern_int4_check(const tern_int4_rows *form, const uint8_t *rows, size_t cols, size_t r0,
                            size_t r1, tern_error *err) {
    const size_t row_bytes = tern_int4_row_bytes(form, cols);
    const size_t groups = tern_int4_groups(form, cols);
    for (size_t r = r0; r < r1; r++) {
        for (size_t g = 0; g < groups; g++) {
            const float scale = tern_f16_load(rows + r * row_bytes + cols / 2 + 2 * g);
            if (!isfinite(scale))
                return tern_fail(err, TERN_ERR_TENSOR_DATA,
                                 "row %zu, group %zu: the scale is %g, must be finite", r, g,
                                 (double)scale);
        }
    }
    return TERN_OK;
}

tern_status tern_int4_pack(const tern_int4_rows *form, const uint8_t *data,
                           const tern_matrix *matrix, size_t r0, size_t r1, void *packed,
                           tern_error *err) {
    const size_t cols = matrix->cols, row_bytes = tern_int4_row_bytes(form, cols);
    const size_t block_row = cols / TERN_INT4_BLOCK * TERN_INT4_BLOCK_BYTES;
    const size_t group_bytes = tern_packed_bytes(matrix->layout, TERN_ROW_GROUP, cols);
    tern_status status = tern_int4_check(form, data, cols, r0, r1, err);
    if (status != TERN_OK)
        return status;
    if (matrix->layout == TERN_LAYOUT_ROWS) {
        tern_int4_blocks(form, data + r0 * row_bytes, r1 - r0, cols,
                         (uint8_t *)packed + r0 * block_row);
        return TERN_OK;
    }
    uint8_t *strip = malloc(TERN_ROW_GROUP * block_row);
    if (strip == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %d rows of %zu columns",
                         (int)TERN_ROW_GROUP, cols);
    for (size_t r = r0; status == TERN_OK && r < r1; r += TERN_ROW_GROUP) {
        const size_t n = r1 - r < TERN_ROW_GROUP ? r1 - r : TERN_ROW_GROUP;
        tern_int4_blocks(form, data + r * row_bytes, n, cols, strip);
        status = tern_pack_rows(TERN_FORMAT_INT4, strip, n, cols, matrix->layout, 0, n,
                                (uint8_t *)packed + r / TERN_ROW_GROUP * group_bytes, err);
    }
    free(strip);
    return status;
}
