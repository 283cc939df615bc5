/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of foreign ternary tensors to I2_S, and from there to a packed layout. */

#include "kernels/import.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/pack.h"

const uint8_t tern_usual_map[4] = {0, 1, 2, TERN_NO_WEIGHT};

static bool is_mapped(const tern_import *how) {
    return memcmp(how->map, tern_usual_map, sizeof how->map) != 0;
}

bool tern_import_is_plain(const tern_import *how) {
    return how->kind == 0 && how->bn == 0 && how->order == TERN_I2S_UNITS_128 && !is_mapped(how);
}

static tern_status check_i2s(const tern_import *how, size_t rows, size_t cols, tern_error *err) {
    uint64_t bytes;

    if (tern_format_bytes(TERN_FORMAT_I2_S, rows, cols, &bytes) != TERN_OK ||
        (how->order == TERN_I2S_ROWS_4 && rows % 4 != 0))
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "a matrix of %zu x %zu has no I2_S tensor of order %d", rows, cols,
                         (int)how->order);
    return TERN_OK;
}

tern_status tern_import_check(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                              tern_error *err) {
    if (how->bn != 0)
        return tern_bn_check(how->bn, rows, cols, err);
    return how->kind == 0 ? check_i2s(how, rows, cols, err)
                          : tern_tl_check(how, file, rows, cols, err);
}

size_t tern_import_scale_at(const tern_import *how, size_t rows, size_t cols) {
    uint64_t at = (uint64_t)rows * cols / 4;

    if (how->kind != 0)
        (void)tern_tl_scale_at(how->kind, rows, cols, &at); /* the shape was checked */
    return (size_t)at;
}

tern_status tern_import_scales(const tern_import *how, const uint8_t *file, size_t rows,
                               size_t cols, float *scales, tern_error *err) {
    if (how->bn != 0)
        return tern_bn_scales(how->bn, file, rows, cols, scales, err);
    const tern_status status =
        tern_ternary_tensor_scale(file, tern_import_scale_at(how, rows, cols), scales, err);
    for (size_t r = 1; status == TERN_OK && r < rows; r++)
        scales[r] = scales[0];
    return status;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Codes of a row; TERN_NO_WEIGHT where there is none. */
static void read_row(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                     size_t row, uint8_t *codes) {
    if (how->bn != 0) {
        tern_bn_read_row(how->bn, file, cols, row, codes);
        return;
    }
    if (how->kind != 0) {
        tern_tl_read_row(how, file, rows, cols, row, codes);
        return;
    }
    tern_i2s_read_row(how->order, file, cols, row, codes);
    for (size_t k = 0; is_mapped(how) && k < cols; k++)
        codes[k] = how->map[codes[k]];
}

static tern_status fail_code(const tern_import *how, const uint8_t *codes, size_t row,
                             tern_error *err) {
    size_t k = 0;

    while (codes[k] != TERN_NO_WEIGHT)
        k++;
    if (how->kind != 0)
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "an index that no weights have, at row %zu, column %zu", row, k);
    if (!is_mapped(how))
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "code 3 at row %zu, column %zu", row, k);
    return tern_fail(err, TERN_ERR_TENSOR_DATA,
                     "a code that stands for no weight, at row %zu, column %zu", row, k);
}

static size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

tern_status tern_import_rows(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                             size_t r0, size_t r1, uint8_t *stream, tern_error *err) {
    const size_t n = round_up(r1 - r0, TERN_STRIP_ROWS);
    tern_status status = TERN_OK;
    uint8_t *codes = malloc(cols);

    if (codes == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a row of %zu columns", cols);
    memset(stream, 0, n * cols / 4);
    for (size_t row = r0; status == TERN_OK && row < r1; row++) {
        read_row(how, file, rows, cols, row, codes);
        if (tern_ternary_invalid(codes, cols))
            status = fail_code(how, codes, row, err);
        else
            tern_ternary_write(TERN_FORMAT_I2_S, codes, (row - r0) * cols, cols, stream);
    }
    memset(codes, 1, cols);
    for (size_t row = r1 - r0; row < n; row++)
        tern_ternary_write(TERN_FORMAT_I2_S, codes, row * cols, cols, stream);
    free(codes);
    return status;
}

tern_status tern_import_pack(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                             tern_layout layout, size_t r0, size_t r1, uint8_t *out,
                             tern_error *err) {
    const size_t group_bytes = tern_packed_bytes(layout, TERN_ROW_GROUP, cols);
    tern_status status = TERN_OK;
    uint8_t *strip = malloc(TERN_STRIP_ROWS * cols / 4);

    if (strip == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %d rows of %zu columns",
                         (int)TERN_STRIP_ROWS, cols);
    for (size_t row = r0; status == TERN_OK && row < r1; row += TERN_STRIP_ROWS) {
        const size_t end = r1 - row < TERN_STRIP_ROWS ? r1 : row + TERN_STRIP_ROWS;
        status = tern_import_rows(how, file, rows, cols, row, end, strip, err);
        if (status == TERN_OK)
            status = tern_pack_strip(strip, cols, layout, round_up(end - row, TERN_ROW_GROUP),
                                     out + row / TERN_ROW_GROUP * group_bytes, err);
    }
    free(strip);
    return status;
}

/* ---- whole tensors --------------------------------------------------------------------------- */

static tern_status first_scale(const tern_import *how, const uint8_t *file, size_t rows,
                               size_t cols, float *scale, tern_error *err) {
    float *scales = malloc(rows * sizeof *scales);
    if (scales == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu scales", rows);
    const tern_status status = tern_import_scales(how, file, rows, cols, scales, err);
    if (status == TERN_OK)
        *scale = scales[0];
    free(scales);
    return status;
}

tern_status tern_import_tensor(const tern_import *how, const uint8_t *file, size_t rows,
                               size_t cols, uint8_t *i2s, tern_error *err) {
    const size_t whole = rows / TERN_STRIP_ROWS * TERN_STRIP_ROWS, codes = rows * cols / 4;
    float scale = 0.0f;
    tern_status status = tern_import_check(how, file, rows, cols, err);

    if (status == TERN_OK)
        status = first_scale(how, file, rows, cols, &scale, err);
    if (status == TERN_OK && whole > 0)
        status = tern_import_rows(how, file, rows, cols, 0, whole, i2s, err);
    if (status == TERN_OK && whole < rows) { /* its padding must not go after the tensor */
        uint8_t *strip = malloc(TERN_STRIP_ROWS * cols / 4);
        status = strip != NULL
                     ? tern_import_rows(how, file, rows, cols, whole, rows, strip, err)
                     : tern_fail(err, TERN_ERR_NOMEM, "no memory for rows of %zu columns", cols);
        if (status == TERN_OK)
            memcpy(i2s + whole * cols / 4, strip, codes - whole * cols / 4);
        free(strip);
    }
    if (status != TERN_OK)
        return status;
    memset(i2s + codes, 0, TERN_I2S_TRAILER_BYTES);
    memcpy(i2s + codes, &scale, sizeof scale);
    return TERN_OK;
}

tern_status tern_i2s_import(tern_i2s_order order, const void *file, size_t rows, size_t cols,
                            void *i2s, tern_error *err) {
    tern_import how = {.order = order};

    if (file == NULL || i2s == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no tensor, or no place for it");
    if (order < TERN_I2S_UNITS_128 || order > TERN_I2S_SEQUENTIAL)
        return tern_fail(err, TERN_ERR_ARG, "order %d of I2_S codes is unknown", (int)order);
    memcpy(how.map, tern_usual_map, sizeof how.map);
    return tern_import_tensor(&how, file, rows, cols, i2s, err);
}

tern_status tern_tl_import(tern_tl_kind kind, const void *file, size_t rows, size_t cols,
                           const tern_tl_tiles *tiles, void *i2s, tern_error *err) {
    if (tiles == NULL || (kind != TERN_TL1 && kind != TERN_TL2))
        return tern_fail(err, TERN_ERR_ARG, "no tile sizes, or kind %d is not TL1 or TL2",
                         (int)kind);
    return tern_import_tensor(&(tern_import){.kind = kind, .tiles = *tiles}, file, rows, cols, i2s,
                              err);
}
