/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of type I2_S whose codes lie in another order than the published models': the same codes,
 * scale and size, so that nothing in the file tells them apart. docs/formats.md has the orders.
 */

#include <string.h>

#include "kernels/ternary.h"

/* A code of the file. */
typedef struct place {
    size_t byte;
    unsigned shift;
} place;

/* Units of 4 * strands codes: strand s, in bits 7 - 2s and 6 - 2s, has `strands` codes in a row. */
static place strided(size_t element, size_t strands) {
    const size_t in_unit = element % (4 * strands);
    return (place){element / (4 * strands) * strands + in_unit % strands,
                   6 - 2 * (unsigned)(in_unit / strands)};
}

static place place_of(tern_i2s_order order, size_t row, size_t col, size_t cols) {
    switch (order) {
    case TERN_I2S_UNITS_64:
        return strided(row * cols + col, 16);
    case TERN_I2S_ROWS_4:
        return (place){row / 4 * cols + col, 6 - 2 * (unsigned)(row % 4)};
    case TERN_I2S_SEQUENTIAL:
        return strided(row * cols + col, 1);
    default:
        return strided(row * cols + col, 32);
    }
}

tern_status tern_i2s_import(tern_i2s_order order, const void *file, size_t rows, size_t cols,
                            void *i2s, tern_error *err) {
    const uint8_t *source = file;
    uint8_t *stream = i2s;
    uint64_t bytes;
    float scale;

    if (file == NULL || i2s == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no tensor, or no place for it");
    if (order < TERN_I2S_UNITS_128 || order > TERN_I2S_SEQUENTIAL)
        return tern_fail(err, TERN_ERR_ARG, "order %d of I2_S codes is unknown", (int)order);
    if (tern_format_bytes(TERN_FORMAT_I2_S, rows, cols, &bytes) != TERN_OK ||
        (order == TERN_I2S_ROWS_4 && rows % 4 != 0))
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "a matrix of %zu x %zu has no I2_S tensor of order %d", rows, cols,
                         (int)order);
    const tern_status status = tern_ternary_tensor_scale(source, rows * cols / 4, &scale, err);
    if (status != TERN_OK)
        return status;
    memset(stream, 0, (size_t)bytes);
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++) {
            const place at = place_of(order, row, col, cols);
            const uint8_t code = source[at.byte] >> at.shift & 3;
            if (code == 3)
                return tern_fail(err, TERN_ERR_TENSOR_DATA, "code 3 at row %zu, column %zu", row,
                                 col);
            tern_ternary_write(TERN_FORMAT_I2_S, &code, row * cols + col, 1, stream);
        }
    memcpy(stream + rows * cols / 4, &scale, sizeof scale);
    return TERN_OK;
}
