/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of type I2_S whose codes lie in another order than the published models': the same codes,
 * scale and size, so that nothing in the file tells them apart. docs/formats.md has the orders.
 */

#include "kernels/import.h"

/* Units of 4 * strands codes: strand s, in bits 7 - 2s and 6 - 2s, has `strands` codes in a row. */
static inline void read_strided(const uint8_t *file, size_t strands, size_t first, size_t n,
                                uint8_t *codes) {
    for (size_t i = 0; i < n;) {
        const size_t in_unit = (first + i) % (4 * strands);
        const uint8_t *strand = file + (first + i) / (4 * strands) * strands + in_unit % strands;
        const unsigned shift = 6 - 2 * (unsigned)(in_unit / strands);
        const size_t left = strands - in_unit % strands;
        const size_t end = i + (left < n - i ? left : n - i);
        for (const uint8_t *byte = strand; i < end; i++, byte++)
            codes[i] = *byte >> shift & 3;
    }
}

/* Column k of rows 4g .. 4g + 3 in byte k of group g. */
static void read_of_four(const uint8_t *file, size_t cols, size_t row, uint8_t *codes) {
    const uint8_t *group = file + row / 4 * cols;
    const unsigned shift = 6 - 2 * (unsigned)(row % 4);

    for (size_t k = 0; k < cols; k++)
        codes[k] = group[k] >> shift & 3;
}

void tern_i2s_read_row(tern_i2s_order order, const uint8_t *file, size_t cols, size_t row,
                       uint8_t *codes) {
    switch (order) {
    case TERN_I2S_UNITS_64:
        read_strided(file, 16, row * cols, cols, codes);
        break;
    case TERN_I2S_ROWS_4:
        read_of_four(file, cols, row, codes);
        break;
    case TERN_I2S_SEQUENTIAL:
        read_strided(file, 1, row * cols, cols, codes);
        break;
    default:
        tern_ternary_read(TERN_FORMAT_I2_S, file, row * cols, cols, codes);
    }
}
