/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tiled files of table-lookup kernels, TL1 and TL2, to an I2_S stream and back. Both store a
 * ternary matrix in the order in which one program walks it, cut by tile sizes that the file does
 * not hold. docs/formats.md has the addressing.
 */

#include <stdlib.h>
#include <string.h>

#include "kernels/import.h"

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
    size_t signs_at, pairs_at, used, scale_at;
} tiled;

/* ---- shapes -------------------------------------------------------------------------------- */

static tern_status fail_shape(const tiled *t, const char *what, tern_error *err) {
    return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                     "a matrix of %zu x %zu cannot be cut into TL%d tiles of %u x %u, blocks of %u "
                     "rows: %s",
                     t->rows, t->cols, t->kind == TERN_TL1 ? 1 : 2, t->tiles.rows, t->tiles.cols,
                     t->tiles.block_rows, what);
}

bool tern_tl_scale_at(tern_tl_kind kind, uint64_t rows, uint64_t cols, uint64_t *at) {
    uint64_t bytes;

    if (tern_format_bytes(TERN_FORMAT_I2_S, rows, cols, &bytes) != TERN_OK ||
        rows % TL2_ROWS != 0 || (kind == TERN_TL2 && cols < 256))
        return false;
    *at = rows * cols / 4;
    if (kind == TERN_TL2) {
        const uint64_t nominal = (cols - 256) * rows / 3 * 5 / 8 + 256 * rows / 2 * 4 / 8;
        *at = (nominal + 31) / 32 * 32;
    }
    return true;
}

static tern_status check_tl1(tiled *t, tern_error *err) {
    const tern_tl_tiles *s = &t->tiles;

    if (s->block_rows != 32 && s->block_rows != 64)
        return fail_shape(t, "blocks have 32 or 64 rows", err);
    if (s->rows == 0 || s->rows % s->block_rows != 0 || t->rows % s->rows != 0)
        return fail_shape(t, "rows do not divide", err);
    if (s->cols == 0 || s->cols % (256 / s->block_rows) != 0 || t->cols % s->cols != 0)
        return fail_shape(t, "columns do not divide", err);
    t->used = t->scale_at;
    return TERN_OK;
}

static tern_status check_tl2(tiled *t, tern_error *err) {
    const tern_tl_tiles *s = &t->tiles;

    if (s->rows == 0 || s->rows % TL2_ROWS != 0 || t->rows % s->rows != 0)
        return fail_shape(t, "rows do not divide", err);
    if (s->cols == 0 || s->cols % 24 != 0)
        return fail_shape(t, "columns of tiles must be a multiple of 24", err);
    t->triple_cols = t->cols / s->cols * s->cols;
    if ((t->cols - t->triple_cols) % TL2_PAIR_COLS != 0)
        return fail_shape(t, "what the tiles leave over is not a multiple of 32 columns", err);
    t->signs_at = t->triple_cols * t->rows / 6;
    t->pairs_at = t->signs_at + t->triple_cols * t->rows / 24;
    t->used = t->pairs_at + (t->cols - t->triple_cols) * t->rows / 4;
    return t->used <= t->scale_at ? TERN_OK : fail_shape(t, "the sections exceed the tensor", err);
}

static tern_status tiled_init(tiled *t, tern_tl_kind kind, size_t rows, size_t cols,
                              const tern_tl_tiles *tiles, tern_error *err) {
    uint64_t scale_at;

    if (tiles == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no tile sizes");
    if (kind != TERN_TL1 && kind != TERN_TL2)
        return tern_fail(err, TERN_ERR_ARG, "kind %d is not TL1 or TL2", (int)kind);
    *t = (tiled){.kind = kind, .rows = rows, .cols = cols, .tiles = *tiles};
    if (!tern_tl_scale_at(kind, rows, cols, &scale_at))
        return fail_shape(t, "not a shape of such matrices", err);
    t->scale_at = (size_t)scale_at;
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

/* The places of a row's bytes of a section, in the order of its columns: tile by tile, block by
 * block. */
typedef struct row_walk {
    size_t first;               /* byte of the file */
    size_t tiles, tile_bytes;   /* tiles, and from one to the next */
    size_t blocks, block_bytes; /* in a tile */
    size_t quads, quad_bytes;   /* in a block: bytes of the row */
} row_walk;

/* TL1: blocks of 64 bytes for bm rows and by columns, 16 rows and 4 columns side by side. */
static row_walk tl1_walk(const tiled *t, size_t row) {
    const size_t bm = t->tiles.block_rows, by = 256 / bm, lanes = 16;
    const size_t in_tile = row % t->tiles.rows;
    row_walk w = {.tiles = t->cols / t->tiles.cols,
                  .tile_bytes = (size_t)t->tiles.rows * t->tiles.cols / 4,
                  .blocks = t->tiles.cols / by,
                  .block_bytes = bm * by / 4,
                  .quads = by / 4,
                  .quad_bytes = lanes};

    w.first = row / t->tiles.rows * w.tiles * w.tile_bytes +
              in_tile / bm * w.blocks * w.block_bytes + in_tile % bm / lanes * w.quads * lanes +
              row % lanes;
    return w;
}

/* TL2 keeps the second and third eight of its 32 rows in each other's place. */
static size_t tl2_lane(size_t row) {
    static const size_t order[4] = {0, 2, 1, 3};
    return order[row % TL2_ROWS / 8] * 8 + row % 8;
}

/* A section of TL2 whose tiles have `blocks` blocks of 32 bytes for 32 rows. */
static row_walk tl2_walk(const tiled *t, size_t row, size_t at, size_t tiles, size_t blocks) {
    const size_t registers = t->tiles.rows / TL2_ROWS;
    row_walk w = {.tiles = tiles,
                  .tile_bytes = registers * blocks * TL2_ROWS,
                  .blocks = blocks,
                  .block_bytes = TL2_ROWS,
                  .quads = 1};

    w.first = at + (row / t->tiles.rows * tiles * registers + row % t->tiles.rows / TL2_ROWS) *
                       blocks * TL2_ROWS;
    return w;
}

static row_walk triples_walk(const tiled *t, size_t row) {
    row_walk w = tl2_walk(t, row, 0, t->triple_cols / t->tiles.cols, t->tiles.cols / 6);
    w.first += tl2_lane(row);
    return w;
}

/* Words of two bytes, for eight triples of rows r and r + 16. */
static row_walk signs_walk(const tiled *t, size_t row) {
    row_walk w = tl2_walk(t, row, t->signs_at, t->triple_cols / t->tiles.cols, t->tiles.cols / 24);
    w.first += row % 16 * 2;
    return w;
}

static row_walk pairs_walk(const tiled *t, size_t row) {
    if (t->kind == TERN_TL1)
        return tl1_walk(t, row);
    row_walk w = tl2_walk(t, row, t->pairs_at, (t->cols - t->triple_cols) / TL2_PAIR_COLS,
                          TL2_PAIR_COLS / 4);
    w.first += tl2_lane(row);
    return w;
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Two pairs of weights, the first in the high nibble. */
static void get_pairs(uint8_t byte, uint8_t *codes) {
    static const uint8_t pairs[16][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2},
                                         {2, 0}, {2, 1}, {2, 2}, {3, 3}, {3, 3}, {3, 3},
                                         {3, 3}, {3, 3}, {3, 3}, {3, 3}};
    memcpy(codes, pairs[byte >> 4], 2);
    memcpy(codes + 2, pairs[byte & 15], 2);
}

static uint8_t put_pairs(const uint8_t *codes) {
    return (uint8_t)((3 * codes[0] + codes[1]) << 4 | (3 * codes[2] + codes[3]));
}

/* The three weights of a magnitude, with 16 where it is negative; no writer gives 0 a sign. */
static const uint8_t triples[32][3] = {
    {1, 1, 1}, {1, 1, 2}, {1, 2, 0}, {1, 2, 1}, {1, 2, 2}, {2, 0, 0}, {2, 0, 1}, {2, 0, 2},
    {2, 1, 0}, {2, 1, 1}, {2, 1, 2}, {2, 2, 0}, {2, 2, 1}, {2, 2, 2}, {3, 3, 3}, {3, 3, 3},
    {3, 3, 3}, {1, 1, 0}, {1, 0, 2}, {1, 0, 1}, {1, 0, 0}, {0, 2, 2}, {0, 2, 1}, {0, 2, 0},
    {0, 1, 2}, {0, 1, 1}, {0, 1, 0}, {0, 0, 2}, {0, 0, 1}, {0, 0, 0}, {3, 3, 3}, {3, 3, 3}};

static int triple_value(const uint8_t *codes) {
    return 9 * codes[0] + 3 * codes[1] + codes[2] - 13;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static uint8_t *get_row_pairs(const row_walk *w, const uint8_t *file, uint8_t *codes) {
    for (size_t tile = 0; tile < w->tiles; tile++)
        for (size_t block = 0; block < w->blocks; block++)
            for (size_t quad = 0; quad < w->quads; quad++, codes += 4)
                get_pairs(file[w->first + tile * w->tile_bytes + block * w->block_bytes +
                               quad * w->quad_bytes],
                          codes);
    return codes;
}

static void put_row_pairs(const row_walk *w, const uint8_t *codes, uint8_t *file) {
    for (size_t tile = 0; tile < w->tiles; tile++)
        for (size_t block = 0; block < w->blocks; block++)
            for (size_t quad = 0; quad < w->quads; quad++, codes += 4)
                file[w->first + tile * w->tile_bytes + block * w->block_bytes +
                     quad * w->quad_bytes] = put_pairs(codes);
}

/* Bit of the sign of the first of two triples of a block; the second's is two below. */
static unsigned sign_bit(size_t block, size_t row) {
    return 15 - (unsigned)(4 * (block % 4) + row % TL2_ROWS / 16);
}

static uint8_t *get_row_triples(const tiled *t, const uint8_t *file, size_t row, uint8_t *codes) {
    const row_walk w = triples_walk(t, row), s = signs_walk(t, row);

    for (size_t tile = 0; tile < w.tiles; tile++)
        for (size_t block = 0; block < w.blocks; block++, codes += 6) {
            const uint8_t byte = file[w.first + tile * w.tile_bytes + block * w.block_bytes];
            const uint8_t *sign = file + s.first + tile * s.tile_bytes + block / 4 * s.block_bytes;
            const unsigned word = sign[0] | (unsigned)sign[1] << 8, bit = sign_bit(block, row);
            memcpy(codes, triples[byte >> 4 | (word >> bit & 1) << 4], 3);
            memcpy(codes + 3, triples[(byte & 15) | (word >> (bit - 2) & 1) << 4], 3);
        }
    return codes;
}

/* Bytes of signs are shared by two rows: they are 0 before. */
static const uint8_t *put_row_triples(const tiled *t, const uint8_t *codes, size_t row,
                                      uint8_t *file) {
    const row_walk w = triples_walk(t, row), s = signs_walk(t, row);

    for (size_t tile = 0; tile < w.tiles; tile++)
        for (size_t block = 0; block < w.blocks; block++, codes += 6) {
            const int high = triple_value(codes), low = triple_value(codes + 3);
            uint8_t *sign = file + s.first + tile * s.tile_bytes + block / 4 * s.block_bytes;
            const unsigned bit = sign_bit(block, row);
            const unsigned word = (unsigned)(high < 0) << bit | (unsigned)(low < 0) << (bit - 2);
            file[w.first + tile * w.tile_bytes + block * w.block_bytes] =
                (uint8_t)(abs(high) << 4 | abs(low));
            sign[0] = (uint8_t)(sign[0] | word);
            sign[1] = (uint8_t)(sign[1] | word >> 8);
        }
    return codes;
}

void tern_tl_read_row(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                      size_t row, uint8_t *codes) {
    tiled t;
    (void)tiled_init(&t, how->kind, rows, cols, &how->tiles, NULL); /* was checked */
    if (t.kind == TERN_TL2)
        codes = get_row_triples(&t, file, row, codes);
    const row_walk pairs = pairs_walk(&t, row);
    (void)get_row_pairs(&pairs, file, codes);
}

/* ---- entry points -------------------------------------------------------------------------- */

tern_status tern_tl_check(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                          tern_error *err) {
    tiled t;
    const tern_status status = tiled_init(&t, how->kind, rows, cols, &how->tiles, err);

    if (status != TERN_OK)
        return status;
    for (size_t at = t.used; at < t.scale_at; at++)
        if (file[at] != 0)
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "byte %zu, after the weights, is not 0: other tile sizes?", at);
    return TERN_OK;
}

tern_status tern_tl_export(tern_tl_kind kind, const void *i2s, size_t rows, size_t cols,
                           const tern_tl_tiles *tiles, void *file, tern_error *err) {
    const uint8_t *stream = i2s;
    uint8_t *target = file;
    tiled t;
    tern_status status = tiled_init(&t, kind, rows, cols, tiles, err);
    uint8_t *row_codes = status == TERN_OK ? malloc(cols) : NULL;

    if (status == TERN_OK && row_codes == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for a row of %zu columns", cols);
    if (status == TERN_OK)
        memset(target, 0, t.scale_at + TERN_I2S_TRAILER_BYTES);
    for (size_t row = 0; status == TERN_OK && row < rows; row++) {
        const uint8_t *codes = row_codes;
        tern_ternary_read(TERN_FORMAT_I2_S, stream, row * cols, cols, row_codes);
        if (tern_ternary_invalid(codes, cols)) {
            status = tern_ternary_fail(TERN_FORMAT_I2_S, stream, cols, row, err);
            break;
        }
        if (kind == TERN_TL2)
            codes = put_row_triples(&t, codes, row, target);
        const row_walk pairs = pairs_walk(&t, row);
        put_row_pairs(&pairs, codes, target);
    }
    if (status == TERN_OK)
        memcpy(target + t.scale_at, stream + rows * cols / 4, sizeof(float));
    free(row_codes);
    return status;
}

bool tern_tl_tiles_known(tern_tl_kind kind, size_t rows, size_t cols, tern_tl_tiles *tiles) {
    /* Tiles that files of these model shapes were written with: TL1's, then TL2's. */
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
