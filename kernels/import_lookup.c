/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tiled files of table-lookup kernels, TL1 and TL2, to an I2_S stream and back. Both store a
 * ternary matrix in the order in which one program walks it, cut by tile sizes that the file does
 * not hold. docs/formats.md has the addressing.
 */

#include <string.h>

#include "kernels/ternary.h"

enum {
    TL2_ROWS = 32,     /* rows of a TL2 register block */
    TL2_PAIR_COLS = 32 /* columns of a tile of TL2's pair section */
};

/* A tiled matrix and where the sections of its file begin. */
typedef struct tiled {
    tern_tl_kind kind;
    size_t rows, cols;
    tern_tl_tiles tiles;
    size_t triple_cols; /* TL2: columns in triples; the others are pairs */
    size_t signs_at, pairs_at, scale_at;
} tiled;

/* ---- shapes -------------------------------------------------------------------------------- */

static tern_status fail_shape(const tiled *t, const char *what, tern_error *err) {
    return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                     "a matrix of %zu x %zu cannot be cut into TL%d tiles of %u x %u, blocks of %u "
                     "rows: %s",
                     t->rows, t->cols, t->kind == TERN_TL1 ? 1 : 2, t->tiles.rows, t->tiles.cols,
                     t->tiles.block_rows, what);
}

static tern_status check_tl1(tiled *t, tern_error *err) {
    const tern_tl_tiles *s = &t->tiles;

    if (s->block_rows != 32 && s->block_rows != 64)
        return fail_shape(t, "blocks have 32 or 64 rows", err);
    if (s->rows == 0 || s->rows % s->block_rows != 0 || t->rows % s->rows != 0)
        return fail_shape(t, "rows do not divide", err);
    if (s->cols == 0 || s->cols % (256 / s->block_rows) != 0 || t->cols % s->cols != 0)
        return fail_shape(t, "columns do not divide", err);
    t->scale_at = t->rows * t->cols / 4;
    return TERN_OK;
}

static tern_status check_tl2(tiled *t, tern_error *err) {
    const tern_tl_tiles *s = &t->tiles;

    if (s->rows == 0 || s->rows % TL2_ROWS != 0 || t->rows % s->rows != 0)
        return fail_shape(t, "rows do not divide", err);
    if (s->cols == 0 || s->cols % 24 != 0 || t->cols < 256)
        return fail_shape(t, "columns of tiles must be a multiple of 24, of the matrix 256 or more",
                          err);
    t->triple_cols = t->cols / s->cols * s->cols;
    if ((t->cols - t->triple_cols) % TL2_PAIR_COLS != 0)
        return fail_shape(t, "what the tiles leave over is no multiple of 32 columns", err);
    t->signs_at = t->triple_cols * t->rows / 6;
    t->pairs_at = t->signs_at + t->triple_cols * t->rows / 24;
    const size_t used = t->pairs_at + (t->cols - t->triple_cols) * t->rows / 4;
    const size_t nominal = (t->cols - 256) * t->rows / 3 * 5 / 8 + 256 * t->rows / 2 * 4 / 8;
    t->scale_at = (nominal + 31) / 32 * 32;
    return used <= t->scale_at ? TERN_OK : fail_shape(t, "the sections exceed the tensor", err);
}

static tern_status tiled_init(tiled *t, tern_tl_kind kind, size_t rows, size_t cols,
                              const tern_tl_tiles *tiles, tern_error *err) {
    uint64_t bytes;

    if (tiles == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no tile sizes");
    if (kind != TERN_TL1 && kind != TERN_TL2)
        return tern_fail(err, TERN_ERR_ARG, "kind %d is not TL1 or TL2", (int)kind);
    *t = (tiled){.kind = kind, .rows = rows, .cols = cols, .tiles = *tiles};
    if (tern_format_bytes(TERN_FORMAT_I2_S, rows, cols, &bytes) != TERN_OK)
        return fail_shape(t, "not a shape of ternary matrices", err);
    return kind == TERN_TL1 ? check_tl1(t, err) : check_tl2(t, err);
}

tern_status tern_tl_bytes(tern_tl_kind kind, size_t rows, size_t cols, const tern_tl_tiles *tiles,
                          size_t *bytes, tern_error *err) {
    tiled t;
    const tern_status status = tiled_init(&t, kind, rows, cols, tiles, err);

    if (status == TERN_OK)
        *bytes = t.scale_at + TERN_I2S_TRAILER_BYTES;
    return status;
}

/* ---- addresses ----------------------------------------------------------------------------- */

/* A nibble of the file. */
typedef struct place {
    size_t byte;
    unsigned shift;
} place;

/* TL1: the nibble of columns k, k + 1 of a row. */
static place tl1_place(const tiled *t, size_t row, size_t k) {
    const size_t bm = t->tiles.block_rows, by = 256 / bm, p = k / 2;
    const size_t half_tile = t->tiles.cols / 2;
    size_t at = row / t->tiles.rows * (t->cols / t->tiles.cols) + p / half_tile;

    at = at * (t->tiles.rows / bm) + row % t->tiles.rows / bm;
    at = at * (t->tiles.cols / by) + p % half_tile / (by / 2);
    at = at * (bm / 16) + row % bm / 16;
    at = at * (by / 4) + p % (by / 2) / 2;
    return (place){at * 16 + row % 16, p % 2 == 0 ? 4 : 0};
}

/* TL2 keeps the second and third eight of its 32 rows in each other's place. */
static size_t tl2_lane(size_t row) {
    static const size_t order[4] = {0, 2, 1, 3};
    return order[row % TL2_ROWS / 8] * 8 + row % 8;
}

/* Tile of TL2: (row tile, column tile, register block), counted in blocks of 32 rows. */
static size_t tl2_tile(const tiled *t, size_t row, size_t tile, size_t tiles) {
    const size_t at = row / t->tiles.rows * tiles + tile;
    return at * (t->tiles.rows / TL2_ROWS) + row % t->tiles.rows / TL2_ROWS;
}

static place tl2_triple(const tiled *t, size_t row, size_t k) {
    const size_t triple = k / 3, per_tile = t->tiles.cols / 3;
    const size_t tile = tl2_tile(t, row, triple / per_tile, t->triple_cols / t->tiles.cols);
    const size_t at = tile * (t->tiles.cols / 6) + triple % per_tile / 2;
    return (place){at * 32 + tl2_lane(row), triple % 2 == 0 ? 4 : 0};
}

/* Byte and bit of a triple's sign; words are little-endian, the first triple in the top bits. */
static place tl2_sign(const tiled *t, size_t row, size_t k) {
    const size_t triple = k / 3, per_tile = t->tiles.cols / 3, half = row % TL2_ROWS / 16;
    const size_t tile = tl2_tile(t, row, triple / per_tile, t->triple_cols / t->tiles.cols);
    const size_t word = (tile * (t->tiles.cols / 24) + triple % per_tile / 8) * 16 + row % 16;
    const size_t bit = 15 - (2 * (triple % 8) + half);
    return (place){t->signs_at + 2 * word + bit / 8, (unsigned)bit % 8};
}

static place tl2_pair(const tiled *t, size_t row, size_t k) {
    const size_t pair = (k - t->triple_cols) / 2, per_tile = TL2_PAIR_COLS / 2;
    const size_t tiles = (t->cols - t->triple_cols) / TL2_PAIR_COLS;
    const size_t tile = tl2_tile(t, row, pair / per_tile, tiles);
    const size_t at = tile * 8 + pair % per_tile / 2;
    return (place){t->pairs_at + at * 32 + tl2_lane(row), pair % 2 == 0 ? 4 : 0};
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Weights that the nibble at column k stands for: 3 in TL2's triples, else 2. */
static size_t width_at(const tiled *t, size_t k) {
    return t->kind == TERN_TL2 && k < t->triple_cols ? 3 : 2;
}

static place pair_place(const tiled *t, size_t row, size_t k) {
    return t->kind == TERN_TL1 ? tl1_place(t, row, k) : tl2_pair(t, row, k);
}

/* Codes of the nibble at (row, k). False for an index that no writer uses. */
static bool get(const tiled *t, const uint8_t *file, size_t row, size_t k, uint8_t *codes) {
    const bool triple = width_at(t, k) == 3;
    const place at = triple ? tl2_triple(t, row, k) : pair_place(t, row, k);
    const int index = file[at.byte] >> at.shift & 15;

    if (!triple) {
        codes[0] = (uint8_t)(index / 3);
        codes[1] = (uint8_t)(index % 3);
        return index < 9;
    }
    const place sign = tl2_sign(t, row, k);
    const bool negative = file[sign.byte] >> sign.shift & 1;
    const int value = 13 + (negative ? -index : index); /* 9 * c0 + 3 * c1 + c2 */
    codes[0] = (uint8_t)(value / 9);
    codes[1] = (uint8_t)(value / 3 % 3);
    codes[2] = (uint8_t)(value % 3);
    return index < 14;
}

static void put(const tiled *t, const uint8_t *codes, size_t row, size_t k, uint8_t *file) {
    if (width_at(t, k) == 2) {
        const place at = pair_place(t, row, k);
        file[at.byte] = (uint8_t)(file[at.byte] | (3 * codes[0] + codes[1]) << at.shift);
        return;
    }
    const place at = tl2_triple(t, row, k), sign = tl2_sign(t, row, k);
    const int value = 9 * codes[0] + 3 * codes[1] + codes[2] - 13;
    file[at.byte] = (uint8_t)(file[at.byte] | (value < 0 ? -value : value) << at.shift);
    file[sign.byte] = (uint8_t)(file[sign.byte] | (value < 0) << sign.shift);
}

/* ---- entry points -------------------------------------------------------------------------- */

tern_status tern_tl_import(tern_tl_kind kind, const void *file, size_t rows, size_t cols,
                           const tern_tl_tiles *tiles, void *i2s, tern_error *err) {
    const uint8_t *source = file;
    uint8_t *stream = i2s, codes[3];
    tiled t;
    float scale;
    tern_status status = tiled_init(&t, kind, rows, cols, tiles, err);

    if (status == TERN_OK)
        status = tern_ternary_tensor_scale(source, t.scale_at, &scale, err);
    if (status != TERN_OK)
        return status;
    memset(stream, 0, rows * cols / 4 + TERN_I2S_TRAILER_BYTES);
    for (size_t row = 0; row < rows; row++)
        for (size_t k = 0; k < cols; k += width_at(&t, k)) {
            if (!get(&t, source, row, k, codes))
                return tern_fail(err, TERN_ERR_TENSOR_DATA,
                                 "an index that no weights have, at row %zu, column %zu", row, k);
            tern_ternary_write(TERN_FORMAT_I2_S, codes, row * cols + k, width_at(&t, k), stream);
        }
    memcpy(stream + rows * cols / 4, &scale, sizeof scale);
    return TERN_OK;
}

tern_status tern_tl_export(tern_tl_kind kind, const void *i2s, size_t rows, size_t cols,
                           const tern_tl_tiles *tiles, void *file, tern_error *err) {
    const uint8_t *stream = i2s;
    uint8_t *target = file, codes[3];
    tiled t;
    tern_status status = tiled_init(&t, kind, rows, cols, tiles, err);

    if (status != TERN_OK)
        return status;
    memset(target, 0, t.scale_at + TERN_I2S_TRAILER_BYTES);
    for (size_t row = 0; row < rows; row++)
        for (size_t k = 0; k < cols; k += width_at(&t, k)) {
            const size_t n = width_at(&t, k);
            tern_ternary_read(TERN_FORMAT_I2_S, stream, row * cols + k, n, codes);
            if (tern_ternary_invalid(codes, n))
                return tern_ternary_fail(TERN_FORMAT_I2_S, stream, cols, row, err);
            put(&t, codes, row, k, target);
        }
    memcpy(target + t.scale_at, stream + rows * cols / 4, sizeof(float));
    return TERN_OK;
}

bool tern_tl_tiles_known(tern_tl_kind kind, size_t rows, size_t cols, tern_tl_tiles *tiles) {
    /* What the files of these model shapes were written with: TL1's, then TL2's. */
    static const struct {
        uint16_t rows, cols;
        tern_tl_tiles tl1, tl2;
    } known[] = {
        {1536, 4096, {256, 128, 32}, {256, 96, 32}},  {1536, 1536, {128, 64, 64}, {128, 192, 32}},
        {4096, 1536, {256, 128, 32}, {256, 96, 32}},  {3200, 8640, {160, 64, 32}, {160, 96, 32}},
        {3200, 3200, {320, 128, 64}, {320, 96, 32}},  {8640, 3200, {320, 64, 32}, {320, 96, 32}},
        {14336, 4096, {256, 128, 32}, {256, 96, 32}}, {4096, 14336, {128, 64, 64}, {128, 96, 32}},
        {1024, 4096, {256, 128, 32}, {256, 96, 32}},  {4096, 4096, {128, 64, 64}, {128, 96, 32}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].rows == rows && known[i].cols == cols) {
            *tiles = kind == TERN_TL1 ? known[i].tl1 : known[i].tl2;
            return true;
        }
    return false;
}
