/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_q6_k_16x16_amx of kernels/kernels.toml
 * and template kernels/matmul_block_tiles.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_q6_k_16x16_amx;

/*
 * Matrix product over Q6_K in its R16 layout: lanes are rows. A super-block of 256 columns has 16
 * f16 d, then 8 blocks of 32 columns: two int8 scales a row, one for each half of the columns, four
 * chunks of nibbles and two of upper bits.
 *
 * Codes 0..63 are multiplied unsigned; 32 times the activations, which is the same for all rows, is
 * taken back from the partial sums. On sets whose partial sums have 16 bits these wrap on the way:
 * four products of codes up to 63 exceed 2^15, but (code - 32) * q is at most 8 * 32 * 127 = 32512
 * a lane, so the difference is right modulo 2^16 and fits.
 */
#include "kernels/isa/amx.h"

#include "kernels/isa/vmath.h"

enum {
    CHUNK_BYTES = 64,
    BLOCK_BYTES = 32 + 6 * CHUNK_BYTES,
    SUPER_BYTES = 32 + 8 * BLOCK_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* What codes of 32 add up to with 16 activations. */
static inline vp offset_of(const int8_t *x) {
    const vb offset = vb_set1(32);
    vp s = vp_mac(vp_zero(), offset, vb_splat4(x));
    s = vp_mac(s, offset, vb_splat4(x + 4));
    s = vp_mac(s, offset, vb_splat4(x + 8));
    return vp_mac(s, offset, vb_splat4(x + 12));
}

enum {
    LANES = 16,
    PARTS = 2, /* of a block, whose sums are kept apart */
    PART_COLS = TERN_BLOCK / PARTS,
    PANEL_BLOCKS = 16, /* blocks of a group whose codes are unpacked at once: 8 KB,
        since stacks may be small */
    CODE_BYTES = TERN_BLOCK / 4 * TILE_ROW_BYTES,
    ROWS_AT_ONCE = 256,
        /* whose outputs stay in the second-level cache until all columns are added */
    LEAST_TOKENS = TERN_TILE_TOKENS_HALVES /* in a tile */
};

_Static_assert((int)LANES == (int)TERN_ROW_GROUP, "a group is a vector");
_Static_assert((int)LANES == (int)TILE_ROWS, "a tile of sums has as many tokens as rows");
_Static_assert((int)LEAST_TOKENS <= (int)TERN_MANY_TOKENS, "tests of many tokens miss the tiles");

typedef int32_t block_products[PARTS][TILE_ROWS][LANES];

/* Sixteen tokens, of blocks [first,
    first + n) of their columns: rows of codes and what belongs to each block. */
typedef struct sixteen_tokens {
    const int8_t *q;
    const float *d;
    const int32_t *sum;
    size_t q_stride, d_stride;
} sixteen_tokens;

typedef struct scratch {
    _Alignas(TERN_ALIGN) uint8_t codes[PANEL_BLOCKS * CODE_BYTES];
    _Alignas(TERN_ALIGN) block_products products[2]; /* of a block and of the next one */
    /* The tokens after the last sixteen, filled up with zeros, since a tile is read whole. */
    _Alignas(TERN_ALIGN) int8_t q[TILE_ROWS * PANEL_BLOCKS * TERN_BLOCK];
    float d[TILE_ROWS * PANEL_BLOCKS];
    int32_t sum[TILE_ROWS * PANEL_BLOCKS];
} scratch;

/* What stands before block b of a group, and the block. */
static inline const uint8_t *block_at(const uint8_t *group, size_t b) {
    return group + b / 8 * SUPER_BYTES + 32 + b % 8 * BLOCK_BYTES;
}

static inline void keep(uint8_t *codes, vb w) {
    memcpy(codes, &w, sizeof w);
}

/* The weights of a block, as signed bytes: a chunk for each four columns. */
static inline void unpack(const uint8_t *chunks, uint8_t *codes) {
    const vb upper0 = vb_load(chunks + 4 * CHUNK_BYTES);
    const vb upper1 = vb_load(chunks + 5 * CHUNK_BYTES);
    const vb c0 = vb_load(chunks + 0 * CHUNK_BYTES);
    keep(codes + 0 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c0), upper0, 0), vb_set1(32)));
    keep(codes + 1 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c0), upper0, 1), vb_set1(32)));
    const vb c1 = vb_load(chunks + 1 * CHUNK_BYTES);
    keep(codes + 2 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c1), upper0, 2), vb_set1(32)));
    keep(codes + 3 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c1), upper0, 3), vb_set1(32)));
    const vb c2 = vb_load(chunks + 2 * CHUNK_BYTES);
    keep(codes + 4 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c2), upper1, 0), vb_set1(32)));
    keep(codes + 5 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c2), upper1, 1), vb_set1(32)));
    const vb c3 = vb_load(chunks + 3 * CHUNK_BYTES);
    keep(codes + 6 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c3), upper1, 2), vb_set1(32)));
    keep(codes + 7 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c3), upper1, 3), vb_set1(32)));
}

/* The sums of products of sixteen tokens with the codes of a block. */
static inline void multiply(const uint8_t *codes, const int8_t *q, size_t q_stride,
    block_products to) {
    tile_load(4, q + 0 * PART_COLS, q_stride);
    tile_load(6, codes + 0 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(0);
    tile_multiply(0, 4, 6);
    tile_load(5, q + 1 * PART_COLS, q_stride);
    tile_load(7, codes + 1 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(1);
    tile_multiply(1, 5, 7);
    tile_store(0, to[0], LANES * sizeof(int32_t));
    tile_store(1, to[1], LANES * sizeof(int32_t));
}

static inline vi load_products(const int32_t *p) {
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Asks for a block that is multiplied soon, with what stands before it,
    in the second-level cache. */
static inline void ask(const uint8_t *block) {
    for (size_t line = 0; line < 32 + BLOCK_BYTES; line += CHUNK_BYTES)
        ask_ahead(block - 32 + line);
}

/*
 * Adds n blocks from b0 of a group, whose unpacked codes are at `codes`
 * to the outputs of 16 tokens, `some` of which are written. The tiles
 * multiply a block while vectors add the one before. Blocks from `next` on are asked for, one with
 * each: all at once are more than a core waits for. NULL: none are.
 */
static void sixteen(scratch *part, const uint8_t *group, const uint8_t *next, size_t b0, size_t n,
    const sixteen_tokens *x,
                    size_t some, float *y, size_t y_stride, size_t lanes) {
    const size_t d_stride = x->d_stride;
    vf y0 = vf_zero();
    vf y1 = vf_zero();
    vf y2 = vf_zero();
    vf y3 = vf_zero();
    vf y4 = vf_zero();
    vf y5 = vf_zero();
    vf y6 = vf_zero();
    vf y7 = vf_zero();
    vf y8 = vf_zero();
    vf y9 = vf_zero();
    vf y10 = vf_zero();
    vf y11 = vf_zero();
    vf y12 = vf_zero();
    vf y13 = vf_zero();
    vf y14 = vf_zero();
    vf y15 = vf_zero();
    if (b0 > 0) {
        if (0 < some)
            y0 = vf_load_fill(y + 0 * y_stride, lanes, 0.0f);
        if (1 < some)
            y1 = vf_load_fill(y + 1 * y_stride, lanes, 0.0f);
        if (2 < some)
            y2 = vf_load_fill(y + 2 * y_stride, lanes, 0.0f);
        if (3 < some)
            y3 = vf_load_fill(y + 3 * y_stride, lanes, 0.0f);
        if (4 < some)
            y4 = vf_load_fill(y + 4 * y_stride, lanes, 0.0f);
        if (5 < some)
            y5 = vf_load_fill(y + 5 * y_stride, lanes, 0.0f);
        if (6 < some)
            y6 = vf_load_fill(y + 6 * y_stride, lanes, 0.0f);
        if (7 < some)
            y7 = vf_load_fill(y + 7 * y_stride, lanes, 0.0f);
        if (8 < some)
            y8 = vf_load_fill(y + 8 * y_stride, lanes, 0.0f);
        if (9 < some)
            y9 = vf_load_fill(y + 9 * y_stride, lanes, 0.0f);
        if (10 < some)
            y10 = vf_load_fill(y + 10 * y_stride, lanes, 0.0f);
        if (11 < some)
            y11 = vf_load_fill(y + 11 * y_stride, lanes, 0.0f);
        if (12 < some)
            y12 = vf_load_fill(y + 12 * y_stride, lanes, 0.0f);
        if (13 < some)
            y13 = vf_load_fill(y + 13 * y_stride, lanes, 0.0f);
        if (14 < some)
            y14 = vf_load_fill(y + 14 * y_stride, lanes, 0.0f);
        if (15 < some)
            y15 = vf_load_fill(y + 15 * y_stride, lanes, 0.0f);
    }
    multiply(part->codes, x->q, x->q_stride, part->products[0]);
    for (size_t i = 0; i < n; i++) {
        const float *d = x->d + i;
        int32_t(*const products)[TILE_ROWS][LANES] = part->products[i % 2];
        if (next != NULL)
            ask(next + (block_at(group, b0 + i) - block_at(group, b0)));
        if (i + 1 < n)
            multiply(part->codes + (i + 1) * CODE_BYTES, x->q + (i + 1) * TERN_BLOCK, x->q_stride,
                     part->products[(i + 1) % 2]);
        const uint8_t *block = block_at(group, b0 + i);
        const uint8_t *super = group + (b0 + i) / 8 * SUPER_BYTES;
        const vf dw = vf_load_f16(super);
        /* At most 16 * 32 * 127 * 128 each: as floats these products and their sum are exact. */
        const vf low = vi_to_f(vi_load_i8((const int8_t *)block));
        const vf high = vi_to_f(vi_load_i8((const int8_t *)block + 16));
        {
            const vi s0 = load_products(products[0][0]);
            const vi s1 = load_products(products[1][0]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y0 = vf_add(y0, vf_mul(s, vf_mul(dw, vf_set1(d[0 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][1]);
            const vi s1 = load_products(products[1][1]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y1 = vf_add(y1, vf_mul(s, vf_mul(dw, vf_set1(d[1 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][2]);
            const vi s1 = load_products(products[1][2]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y2 = vf_add(y2, vf_mul(s, vf_mul(dw, vf_set1(d[2 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][3]);
            const vi s1 = load_products(products[1][3]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y3 = vf_add(y3, vf_mul(s, vf_mul(dw, vf_set1(d[3 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][4]);
            const vi s1 = load_products(products[1][4]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y4 = vf_add(y4, vf_mul(s, vf_mul(dw, vf_set1(d[4 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][5]);
            const vi s1 = load_products(products[1][5]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y5 = vf_add(y5, vf_mul(s, vf_mul(dw, vf_set1(d[5 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][6]);
            const vi s1 = load_products(products[1][6]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y6 = vf_add(y6, vf_mul(s, vf_mul(dw, vf_set1(d[6 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][7]);
            const vi s1 = load_products(products[1][7]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y7 = vf_add(y7, vf_mul(s, vf_mul(dw, vf_set1(d[7 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][8]);
            const vi s1 = load_products(products[1][8]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y8 = vf_add(y8, vf_mul(s, vf_mul(dw, vf_set1(d[8 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][9]);
            const vi s1 = load_products(products[1][9]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y9 = vf_add(y9, vf_mul(s, vf_mul(dw, vf_set1(d[9 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][10]);
            const vi s1 = load_products(products[1][10]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y10 = vf_add(y10, vf_mul(s, vf_mul(dw, vf_set1(d[10 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][11]);
            const vi s1 = load_products(products[1][11]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y11 = vf_add(y11, vf_mul(s, vf_mul(dw, vf_set1(d[11 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][12]);
            const vi s1 = load_products(products[1][12]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y12 = vf_add(y12, vf_mul(s, vf_mul(dw, vf_set1(d[12 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][13]);
            const vi s1 = load_products(products[1][13]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y13 = vf_add(y13, vf_mul(s, vf_mul(dw, vf_set1(d[13 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][14]);
            const vi s1 = load_products(products[1][14]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y14 = vf_add(y14, vf_mul(s, vf_mul(dw, vf_set1(d[14 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][15]);
            const vi s1 = load_products(products[1][15]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y15 = vf_add(y15, vf_mul(s, vf_mul(dw, vf_set1(d[15 * d_stride]))));
        }
    }
    if (0 < some)
        vf_store_n(y + 0 * y_stride, y0, lanes);
    if (1 < some)
        vf_store_n(y + 1 * y_stride, y1, lanes);
    if (2 < some)
        vf_store_n(y + 2 * y_stride, y2, lanes);
    if (3 < some)
        vf_store_n(y + 3 * y_stride, y3, lanes);
    if (4 < some)
        vf_store_n(y + 4 * y_stride, y4, lanes);
    if (5 < some)
        vf_store_n(y + 5 * y_stride, y5, lanes);
    if (6 < some)
        vf_store_n(y + 6 * y_stride, y6, lanes);
    if (7 < some)
        vf_store_n(y + 7 * y_stride, y7, lanes);
    if (8 < some)
        vf_store_n(y + 8 * y_stride, y8, lanes);
    if (9 < some)
        vf_store_n(y + 9 * y_stride, y9, lanes);
    if (10 < some)
        vf_store_n(y + 10 * y_stride, y10, lanes);
    if (11 < some)
        vf_store_n(y + 11 * y_stride, y11, lanes);
    if (12 < some)
        vf_store_n(y + 12 * y_stride, y12, lanes);
    if (13 < some)
        vf_store_n(y + 13 * y_stride, y13, lanes);
    if (14 < some)
        vf_store_n(y + 14 * y_stride, y14, lanes);
    if (15 < some)
        vf_store_n(y + 15 * y_stride, y15, lanes);
}

/* The last n tokens from t, filled up to sixteen, for `blocks` blocks from b0. */
static sixteen_tokens fill_up(scratch *part, const tern_activations *x, size_t t, size_t n,
    size_t b0, size_t blocks) {
    memset(part->q, 0, sizeof part->q);
    memset(part->d, 0, sizeof part->d);
    memset(part->sum, 0, sizeof part->sum);
    for (size_t i = 0; i < n; i++) {
        const size_t d_at = (t + i) * x->d_stride + b0;
        memcpy(part->q + i * PANEL_BLOCKS * TERN_BLOCK,
            x->q + (t + i) * x->q_stride + b0 * TERN_BLOCK, blocks * TERN_BLOCK);
        memcpy(part->d + i * PANEL_BLOCKS, x->d + d_at, blocks * sizeof *x->d);
        memcpy(part->sum + i * PANEL_BLOCKS, x->block_sum + d_at, blocks * sizeof *x->block_sum);
    }
    return (sixteen_tokens){part->q, part->d, part->sum, PANEL_BLOCKS * TERN_BLOCK, PANEL_BLOCKS};
}

/* Unpacks n blocks from b0 of a group. */
static void open_panel(scratch *part, const uint8_t *group, size_t b0, size_t n) {
    for (size_t i = 0; i < n; i++)
        unpack(block_at(group, b0 + i) + 32, part->codes + i * CODE_BYTES);
}

/* Rows [r0, r1) x tokens [t0, t1), at least LEAST_TOKENS of them in the last sixteen. */
static void tiles(const tern_matrix *m, const tern_activations *x, const tern_tile *tile,
    size_t t1, size_t r0, size_t r1,
                  size_t group_bytes, scratch *part, float *y, size_t y_stride) {
    const size_t blocks = (m->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const uint8_t *first = (const uint8_t *)m->data + r0 / TERN_ROW_GROUP * group_bytes;
    for (size_t b0 = 0; b0 < blocks; b0 += PANEL_BLOCKS) {
        const size_t n = blocks - b0 < PANEL_BLOCKS ? blocks - b0 : PANEL_BLOCKS;
        const size_t over = (t1 - tile->t0) % TILE_ROWS;
        const sixteen_tokens rest = over > 0 ? fill_up(part, x, t1 - over, over, b0,
            n) : (sixteen_tokens){0};
        for (size_t r = r0; r < r1; r += TERN_ROW_GROUP) {
            const uint8_t *group = first + (r - r0) / TERN_ROW_GROUP * group_bytes;
            const size_t lanes = tail_lanes(r1 - r, 0, LANES);
            /* What is multiplied next: of the next group, or of the first one of these rows. */
            const uint8_t *next = r + TERN_ROW_GROUP < r1 ? block_at(group + group_bytes,
                b0) : block_at(first, b0 + n);
            open_panel(part, group, b0, n);
            for (size_t t = tile->t0; t < t1; t += TILE_ROWS) {
                const size_t d_at = t * x->d_stride + b0;
                const size_t some = t1 - t < TILE_ROWS ? t1 - t : TILE_ROWS;
                const sixteen_tokens whole = {x->q + t * x->q_stride + b0 * TERN_BLOCK,
                    x->d + d_at, x->block_sum + d_at,
                                              x->q_stride, x->d_stride};
                sixteen(part, group, t == tile->t0 ? next : NULL, b0, n,
                    some < TILE_ROWS ? &rest : &whole, some,
                        y + t * y_stride + r, y_stride, lanes);
            }
        }
    }
}

/* The row that multiplies few tokens fastest. Processors with tiles have what it needs. */
tern_matmul_fn tern_gemm_q6_k_32x8_avx512vnni;
static tern_matmul_fn *const few = tern_gemm_q6_k_32x8_avx512vnni;

void tern_gemm_q6_k_16x16_amx(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t group_bytes = blocks / 8 * SUPER_BYTES;
    const size_t over = (tile->t1 - tile->t0) % TILE_ROWS;
    const size_t t1 = over < LEAST_TOKENS ? tile->t1 - over : tile->t1;
    if (t1 > tile->t0) {
        scratch part;
        tiles_open(PART_COLS);
        for (size_t r0 = tile->r0, r1; r0 < tile->r1; r0 = r1) {
            r1 = tile->r1 - r0 < ROWS_AT_ONCE ? tile->r1 : r0 + ROWS_AT_ONCE;
            tiles(w, x, tile, t1, r0, r1, group_bytes, &part, y, y_stride);
        }
        tiles_close();
    }
    if (t1 < tile->t1)
        few(w, x, &(const tern_tile){.t0 = t1, .t1 = tile->t1, .r0 = tile->r0, .r1 = tile->r1}, y,
            y_stride);
}
