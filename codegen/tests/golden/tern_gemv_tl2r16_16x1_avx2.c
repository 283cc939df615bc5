/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemv_tl2r16_16x1_avx2 of kernels/kernels.toml
 * and template kernels/matmul_lookup.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemv_tl2r16_16x1_avx2;

/*
 * Ternary matrix product by table lookup, layout TL2R16: lanes are rows. The products of
 * 3 activations with every possible 3 weights stand in a table of 16-bit entries, low and high
 * bytes apart; a nibble of each row picks its entry, a bit its sign. Exact: no entry is rounded.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
#include "kernels/isa/avx2_lookup.h"

enum {
    PICKED = 3,                 /* weights that one nibble stands for */
    CHUNK_COLS = 8 * PICKED,    /* eight nibbles a row: four bytes in four segments of 16 rows */
    CHUNK_BYTES = 80,
    BLOCK_COLS = 192,           /* columns that share one set of tables: multiple of 16 and 24 */
    BLOCK_CHUNKS = BLOCK_COLS / CHUNK_COLS,
    SEGMENTS = 4 * BLOCK_CHUNKS /* bytes that a row has in a block */
};

/*
 * tables.bytes[h][b][s]: for nibble h (0 low, 1 high) of the byte in segment s, byte b of the 16
 * entries. The largest sum is 64 * 3 * 128 = 24,576 a row and block: 16 bits hold it.
 */
typedef struct tables {
    _Alignas(TERN_ALIGN) uint8_t bytes[2][2][SEGMENTS][16];
} tables;

/* Weight j of entry i: entries[j][i]. */
static const int16_t entries[PICKED][16] = {
    {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {0, 0, 1, 1, 1, -1, -1, -1, 0, 0, 0, 1, 1, 1},
    {0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1},
};

/* Moves the sign of nibble h in segment s, bit 2s + h of a byte that stands twice, to bit 15. */
static const int16_t places[2][4][8] = {
    { { 128, 128, 128, 128, 128, 128, 128, 128}, { 32, 32, 32, 32, 32, 32, 32, 32}, { 8, 8, 8, 8,
        8, 8, 8, 8}, { 2, 2, 2, 2, 2, 2, 2, 2}},
    { { 64, 64, 64, 64, 64, 64, 64, 64}, { 16, 16, 16, 16, 16, 16, 16, 16}, { 4, 4, 4, 4, 4, 4, 4,
        4}, { 1, 1, 1, 1, 1, 1, 1, 1}},
};

/* The table of one nibble: sums of 3 activations, at most 384, split into bytes. */
static inline void fill_table(const int8_t *x, uint8_t *low, uint8_t *high) {
    int16_t sums[16];
    for (int i = 0; i < 16; i++)
        sums[i] = (int16_t)(entries[0][i] * x[0] + entries[1][i] * x[1] + entries[2][i] * x[2]);
    for (int i = 0; i < 16; i++)
        low[i] = (uint8_t)sums[i];
    for (int i = 0; i < 16; i++)
        high[i] = (uint8_t)(sums[i] >> 8);
}

/* Tables of the n <= BLOCK_COLS activations at q. */
static void fill_tables(const int8_t *q, size_t n, tables *t) {
    int8_t padded[BLOCK_COLS] = {0};
    memcpy(padded, q, n);
    for (size_t s = 0; s < SEGMENTS; s++)
        for (size_t h = 0; h < 2; h++)
            fill_table(padded + (2 * s + h) * PICKED, t->bytes[h][0][s], t->bytes[h][1][s]);
}

/* Adds the products of a block's chunks to the sums of 16 rows; the next group is at w + next. */
static void add_block(const uint8_t *w, size_t chunks, size_t next, const tables *t,
                      int32_t *rows) {
    vs low0 = vs_zero();
    vs high0 = vs_zero();
    vs low1 = vs_zero();
    vs high1 = vs_zero();
    for (size_t c = 0; c < chunks; c++) {
        const uint8_t *chunk = w + c * CHUNK_BYTES;
        ask_ahead(chunk + next);
        const vt signs = vt_repeat16(chunk + 64);
        const vs signs_low = vt_zip_low(signs, signs);
        const vs signs_high = vt_zip_high(signs, signs);
        const vt both0 = vt_load(chunk + 0);
        {
            const vt index = vt_low4(both0);
            const vt a = vt_lookup(vt_load(t->bytes[0][0][4 * c + 0]), index);
            const vt b = vt_lookup(vt_load(t->bytes[0][1][4 * c + 0]), index);
            const vs low = vs_negate(vt_zip_low(a, b), signs_low,
                                            (vs)vt_load(places[0][0]));
            low0 = vs_add(low0, low);
            const vs high = vs_negate(vt_zip_high(a, b), signs_high,
                                            (vs)vt_load(places[0][0]));
            high0 = vs_add(high0, high);
        }
        {
            const vt index = vt_high4(both0);
            const vt a = vt_lookup(vt_load(t->bytes[1][0][4 * c + 0]), index);
            const vt b = vt_lookup(vt_load(t->bytes[1][1][4 * c + 0]), index);
            const vs low = vs_negate(vt_zip_low(a, b), signs_low,
                                            (vs)vt_load(places[1][0]));
            low1 = vs_add(low1, low);
            const vs high = vs_negate(vt_zip_high(a, b), signs_high,
                                            (vs)vt_load(places[1][0]));
            high1 = vs_add(high1, high);
        }
        const vt both2 = vt_load(chunk + 32);
        {
            const vt index = vt_low4(both2);
            const vt a = vt_lookup(vt_load(t->bytes[0][0][4 * c + 2]), index);
            const vt b = vt_lookup(vt_load(t->bytes[0][1][4 * c + 2]), index);
            const vs low = vs_negate(vt_zip_low(a, b), signs_low,
                                            (vs)vt_load(places[0][2]));
            low0 = vs_add(low0, low);
            const vs high = vs_negate(vt_zip_high(a, b), signs_high,
                                            (vs)vt_load(places[0][2]));
            high0 = vs_add(high0, high);
        }
        {
            const vt index = vt_high4(both2);
            const vt a = vt_lookup(vt_load(t->bytes[1][0][4 * c + 2]), index);
            const vt b = vt_lookup(vt_load(t->bytes[1][1][4 * c + 2]), index);
            const vs low = vs_negate(vt_zip_low(a, b), signs_low,
                                            (vs)vt_load(places[1][2]));
            low1 = vs_add(low1, low);
            const vs high = vs_negate(vt_zip_high(a, b), signs_high,
                                            (vs)vt_load(places[1][2]));
            high1 = vs_add(high1, high);
        }
    }
    vs_flush(rows, vs_add(low0, low1));
    vs_flush(rows + 8, vs_add(high0, high1));
}

/* One token: y holds the 32-bit sums until the last block is in. */
static void multiply(const tern_matrix *w, const int8_t *q, const tern_tile *tile, float *y) {
    const size_t chunks = (w->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    tables t;
    memset(y, 0, (tile->r1 - tile->r0) * sizeof *y);
    for (size_t first = 0; first < chunks; first += BLOCK_CHUNKS) {
        const size_t n = chunks - first < BLOCK_CHUNKS ? chunks - first : BLOCK_CHUNKS;
        const size_t left = w->cols - first * CHUNK_COLS;
        fill_tables(q + first * CHUNK_COLS, left < BLOCK_COLS ? left : BLOCK_COLS, &t);
        for (size_t r = tile->r0; r < tile->r1; r += TERN_ROW_GROUP) {
            const size_t group = r / TERN_ROW_GROUP * chunks + first;
            const size_t bytes = tail_lanes(tile->r1, r, TERN_ROW_GROUP) * sizeof *y;
            int32_t rows[TERN_ROW_GROUP] = {0};
            memcpy(rows, y + (r - tile->r0), bytes);
            add_block((const uint8_t *)w->data + group * CHUNK_BYTES, n, chunks * CHUNK_BYTES, &t,
                rows);
            memcpy(y + (r - tile->r0), rows, bytes);
        }
    }
}

void tern_gemv_tl2r16_16x1_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    for (size_t t = tile->t0; t < tile->t1; t++) {
        float *out = y + t * y_stride + tile->r0;
        multiply(w, x->q + t * x->q_stride, tile, out);
        for (size_t r = tile->r0; r < tile->r1; r++, out++) {
            int32_t sum;
            memcpy(&sum, out, sizeof sum);
            *out = (float)sum / x->s[t] * (w->row_scale ? w->row_scale[r] : w->scale);
        }
    }
}
