/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_q6_k_32x8_avx512vnni of kernels/kernels.toml
 * and template kernels/matmul_block_wide.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_q6_k_32x8_avx512vnni;

/*
 * Matrix product of several tokens over q6_k in its R16 layout, two groups of rows together, each
 * a vector: a token's columns are loaded once for both. The codes of a block stay in registers for
 * all tokens of a pass. The sums of floats lie in the first-level cache, so that no token waits for
 * another one. What the codes exceed the weights by is what a sum of products begins with, which
 * costs no instruction. Floats are added as the canonical order wants them,
     a block after the other.
 */
#include "kernels/isa/avx512vnni.h"

#include "kernels/isa/vmath.h"

enum {
    HEADER_BYTES = 32,
    CHUNK_BYTES = 64,
    BLOCK_BYTES = HEADER_BYTES + 6 * CHUNK_BYTES,
    SUPER_BYTES = 32 + 8 * BLOCK_BYTES,
    PREFETCH_BYTES = 4096, /* ahead in the stream of a group that is long */
    NEAR_BYTES = 1 << 18, /* of the second-level cache: where the next groups are asked for early */
    GROUPS = 2,
    LANES = 16,
    BLOCK_TOKENS = 64, /* whose sums are 8 KB */
    AHEAD = 8          /* blocks whose terms are computed at once */
};

_Static_assert((int)LANES == (int)TERN_ROW_GROUP, "a group is a vector");

/* Of the tokens of a pass: sums of floats, and what all rows need of the next blocks. */
typedef struct scratch {
    _Alignas(TERN_ALIGN) float sums[BLOCK_TOKENS][GROUPS][LANES];
    _Alignas(TERN_ALIGN) int32_t starts[BLOCK_TOKENS][AHEAD * 2]; /* of sums of products */
} scratch;
/* Where half `part` of block b has its start: transposed by vi_quarter_sums. */
static inline size_t start_of(size_t b, size_t part) {
    const size_t half = 2 * (b % AHEAD) + part;
    return half % 4 * 4 + half / 4;
}

/* What all rows need of blocks b, ... of n tokens from t. */
static void prepare(scratch *part, const tern_activations *x, size_t t, size_t n, size_t b,
    size_t blocks) {
    (void)blocks; /* a multiple of AHEAD */
    const vb offset = vb_set1(32);
    for (size_t i = 0; i < n; i++) {
        const int8_t *q = x->q + (t + i) * x->q_stride + b * TERN_BLOCK;
        const vi sum0 = vi_flush(vi_zero(), vp_mac(vp_zero(), offset, vb_load(q + 0)));
        const vi sum1 = vi_flush(vi_zero(), vp_mac(vp_zero(), offset, vb_load(q + 64)));
        const vi sum2 = vi_flush(vi_zero(), vp_mac(vp_zero(), offset, vb_load(q + 128)));
        const vi sum3 = vi_flush(vi_zero(), vp_mac(vp_zero(), offset, vb_load(q + 192)));
        const vi start = vi_sub(vi_zero(), vi_quarter_sums(sum0, sum1, sum2, sum3));
        memcpy(part->starts[i], &start, sizeof start);
    }
}

/*
 * Block b of 2 group(s), super-blocks at w, `group_bytes` apart, x n tokens from t.
 * Inlined: called, it took a fifth longer.
 */
static inline __attribute__((always_inline)) void
add_to_2(scratch *part, const uint8_t *w, size_t group_bytes, const tern_activations *x,
         size_t t, size_t n, size_t b, size_t distance) {
    const uint8_t *head0 = w;
    const uint8_t *block0 = head0 + 32 + b % 8 * BLOCK_BYTES;
    const uint8_t *codes0 = block0 + HEADER_BYTES;
    for (size_t ahead = 0; ahead < BLOCK_BYTES; ahead += CHUNK_BYTES)
        ask_ahead(block0 + distance + ahead);
    const vb upper0_0 = vb_load(codes0 + 4 * CHUNK_BYTES);
    const vb upper0_1 = vb_load(codes0 + 5 * CHUNK_BYTES);
    const vb c0_0 = vb_join2(vb_nibble_lo(vb_load(codes0 + 0 * CHUNK_BYTES)), upper0_0, 0);
    const vb c0_1 = vb_join2(vb_nibble_hi(vb_load(codes0 + 0 * CHUNK_BYTES)), upper0_0, 1);
    const vb c0_2 = vb_join2(vb_nibble_lo(vb_load(codes0 + 1 * CHUNK_BYTES)), upper0_0, 2);
    const vb c0_3 = vb_join2(vb_nibble_hi(vb_load(codes0 + 1 * CHUNK_BYTES)), upper0_0, 3);
    const vb c0_4 = vb_join2(vb_nibble_lo(vb_load(codes0 + 2 * CHUNK_BYTES)), upper0_1, 0);
    const vb c0_5 = vb_join2(vb_nibble_hi(vb_load(codes0 + 2 * CHUNK_BYTES)), upper0_1, 1);
    const vb c0_6 = vb_join2(vb_nibble_lo(vb_load(codes0 + 3 * CHUNK_BYTES)), upper0_1, 2);
    const vb c0_7 = vb_join2(vb_nibble_hi(vb_load(codes0 + 3 * CHUNK_BYTES)), upper0_1, 3);
    const vf d0 = vf_load_f16(head0);
    const vf factor0_0 = vi_to_f(vi_load_i8((const int8_t *)block0 + 0));
    const vf factor0_1 = vi_to_f(vi_load_i8((const int8_t *)block0 + 16));

    const uint8_t *head1 = w + 1 * group_bytes;
    const uint8_t *block1 = head1 + 32 + b % 8 * BLOCK_BYTES;
    const uint8_t *codes1 = block1 + HEADER_BYTES;
    for (size_t ahead = 0; ahead < BLOCK_BYTES; ahead += CHUNK_BYTES)
        ask_ahead(block1 + distance + ahead);
    const vb upper1_0 = vb_load(codes1 + 4 * CHUNK_BYTES);
    const vb upper1_1 = vb_load(codes1 + 5 * CHUNK_BYTES);
    const vb c1_0 = vb_join2(vb_nibble_lo(vb_load(codes1 + 0 * CHUNK_BYTES)), upper1_0, 0);
    const vb c1_1 = vb_join2(vb_nibble_hi(vb_load(codes1 + 0 * CHUNK_BYTES)), upper1_0, 1);
    const vb c1_2 = vb_join2(vb_nibble_lo(vb_load(codes1 + 1 * CHUNK_BYTES)), upper1_0, 2);
    const vb c1_3 = vb_join2(vb_nibble_hi(vb_load(codes1 + 1 * CHUNK_BYTES)), upper1_0, 3);
    const vb c1_4 = vb_join2(vb_nibble_lo(vb_load(codes1 + 2 * CHUNK_BYTES)), upper1_1, 0);
    const vb c1_5 = vb_join2(vb_nibble_hi(vb_load(codes1 + 2 * CHUNK_BYTES)), upper1_1, 1);
    const vb c1_6 = vb_join2(vb_nibble_lo(vb_load(codes1 + 3 * CHUNK_BYTES)), upper1_1, 2);
    const vb c1_7 = vb_join2(vb_nibble_hi(vb_load(codes1 + 3 * CHUNK_BYTES)), upper1_1, 3);
    const vf d1 = vf_load_f16(head1);
    const vf factor1_0 = vi_to_f(vi_load_i8((const int8_t *)block1 + 0));
    const vf factor1_1 = vi_to_f(vi_load_i8((const int8_t *)block1 + 16));

    const size_t q_stride = x->q_stride, d_stride = x->d_stride;
    const int8_t *q = x->q + t * q_stride + b * TERN_BLOCK;
    const float *dx = x->d + t * d_stride + b;
    const int32_t *start = part->starts[0];
    const size_t low = start_of(b, 0), high = start_of(b, 1);
    float *to = part->sums[0][0];
    for (size_t i = 0; i < n; i++) {
        vp s0_0 = vp_set1(start[low]);
        vp s0_1 = vp_set1(start[high]);
        vp s1_0 = vp_set1(start[low]);
        vp s1_1 = vp_set1(start[high]);
        const vb x0 = vb_splat4(q + 0);
        s0_0 = vp_mac(s0_0, c0_0, x0);
        s1_0 = vp_mac(s1_0, c1_0, x0);
        const vb x1 = vb_splat4(q + 4);
        s0_0 = vp_mac(s0_0, c0_1, x1);
        s1_0 = vp_mac(s1_0, c1_1, x1);
        const vb x2 = vb_splat4(q + 8);
        s0_0 = vp_mac(s0_0, c0_2, x2);
        s1_0 = vp_mac(s1_0, c1_2, x2);
        const vb x3 = vb_splat4(q + 12);
        s0_0 = vp_mac(s0_0, c0_3, x3);
        s1_0 = vp_mac(s1_0, c1_3, x3);
        const vb x4 = vb_splat4(q + 16);
        s0_1 = vp_mac(s0_1, c0_4, x4);
        s1_1 = vp_mac(s1_1, c1_4, x4);
        const vb x5 = vb_splat4(q + 20);
        s0_1 = vp_mac(s0_1, c0_5, x5);
        s1_1 = vp_mac(s1_1, c1_5, x5);
        const vb x6 = vb_splat4(q + 24);
        s0_1 = vp_mac(s0_1, c0_6, x6);
        s1_1 = vp_mac(s1_1, c1_6, x6);
        const vb x7 = vb_splat4(q + 28);
        s0_1 = vp_mac(s0_1, c0_7, x7);
        s1_1 = vp_mac(s1_1, c1_7, x7);
        const vf scale = vf_set1(*dx);
        const vf f0_0 = vi_to_f(vi_flush(vi_zero(), s0_0));
        const vf f0_1 = vi_to_f(vi_flush(vi_zero(), s0_1));
        const vf f0 = vf_add(vf_mul(f0_0, factor0_0), vf_mul(f0_1, factor0_1));
        const vf y0 = vf_add(vf_load(to + 0 * LANES), vf_mul(f0, vf_mul(d0, scale)));
        vf_store(to + 0 * LANES, y0);
        const vf f1_0 = vi_to_f(vi_flush(vi_zero(), s1_0));
        const vf f1_1 = vi_to_f(vi_flush(vi_zero(), s1_1));
        const vf f1 = vf_add(vf_mul(f1_0, factor1_0), vf_mul(f1_1, factor1_1));
        const vf y1 = vf_add(vf_load(to + 1 * LANES), vf_mul(f1, vf_mul(d1, scale)));
        vf_store(to + 1 * LANES, y1);
        q += q_stride;
        dx += d_stride;
        to += GROUPS * LANES;
        start += AHEAD * 2;
    }
}

/*
 * Block b of 1 group(s), super-blocks at w, x n tokens from t.
 * Inlined: called, it took a fifth longer.
 */
static inline __attribute__((always_inline)) void
add_to_1(scratch *part, const uint8_t *w, size_t group_bytes, const tern_activations *x,
         size_t t, size_t n, size_t b, size_t distance) {
    (void)group_bytes;
    const uint8_t *head0 = w;
    const uint8_t *block0 = head0 + 32 + b % 8 * BLOCK_BYTES;
    const uint8_t *codes0 = block0 + HEADER_BYTES;
    for (size_t ahead = 0; ahead < BLOCK_BYTES; ahead += CHUNK_BYTES)
        ask_ahead(block0 + distance + ahead);
    const vb upper0_0 = vb_load(codes0 + 4 * CHUNK_BYTES);
    const vb upper0_1 = vb_load(codes0 + 5 * CHUNK_BYTES);
    const vb c0_0 = vb_join2(vb_nibble_lo(vb_load(codes0 + 0 * CHUNK_BYTES)), upper0_0, 0);
    const vb c0_1 = vb_join2(vb_nibble_hi(vb_load(codes0 + 0 * CHUNK_BYTES)), upper0_0, 1);
    const vb c0_2 = vb_join2(vb_nibble_lo(vb_load(codes0 + 1 * CHUNK_BYTES)), upper0_0, 2);
    const vb c0_3 = vb_join2(vb_nibble_hi(vb_load(codes0 + 1 * CHUNK_BYTES)), upper0_0, 3);
    const vb c0_4 = vb_join2(vb_nibble_lo(vb_load(codes0 + 2 * CHUNK_BYTES)), upper0_1, 0);
    const vb c0_5 = vb_join2(vb_nibble_hi(vb_load(codes0 + 2 * CHUNK_BYTES)), upper0_1, 1);
    const vb c0_6 = vb_join2(vb_nibble_lo(vb_load(codes0 + 3 * CHUNK_BYTES)), upper0_1, 2);
    const vb c0_7 = vb_join2(vb_nibble_hi(vb_load(codes0 + 3 * CHUNK_BYTES)), upper0_1, 3);
    const vf d0 = vf_load_f16(head0);
    const vf factor0_0 = vi_to_f(vi_load_i8((const int8_t *)block0 + 0));
    const vf factor0_1 = vi_to_f(vi_load_i8((const int8_t *)block0 + 16));

    const size_t q_stride = x->q_stride, d_stride = x->d_stride;
    const int8_t *q = x->q + t * q_stride + b * TERN_BLOCK;
    const float *dx = x->d + t * d_stride + b;
    const int32_t *start = part->starts[0];
    const size_t low = start_of(b, 0), high = start_of(b, 1);
    float *to = part->sums[0][0];
    for (size_t i = 0; i < n; i++) {
        vp s0_0 = vp_set1(start[low]);
        vp s0_1 = vp_set1(start[high]);
        const vb x0 = vb_splat4(q + 0);
        s0_0 = vp_mac(s0_0, c0_0, x0);
        const vb x1 = vb_splat4(q + 4);
        s0_0 = vp_mac(s0_0, c0_1, x1);
        const vb x2 = vb_splat4(q + 8);
        s0_0 = vp_mac(s0_0, c0_2, x2);
        const vb x3 = vb_splat4(q + 12);
        s0_0 = vp_mac(s0_0, c0_3, x3);
        const vb x4 = vb_splat4(q + 16);
        s0_1 = vp_mac(s0_1, c0_4, x4);
        const vb x5 = vb_splat4(q + 20);
        s0_1 = vp_mac(s0_1, c0_5, x5);
        const vb x6 = vb_splat4(q + 24);
        s0_1 = vp_mac(s0_1, c0_6, x6);
        const vb x7 = vb_splat4(q + 28);
        s0_1 = vp_mac(s0_1, c0_7, x7);
        const vf scale = vf_set1(*dx);
        const vf f0_0 = vi_to_f(vi_flush(vi_zero(), s0_0));
        const vf f0_1 = vi_to_f(vi_flush(vi_zero(), s0_1));
        const vf f0 = vf_add(vf_mul(f0_0, factor0_0), vf_mul(f0_1, factor0_1));
        const vf y0 = vf_add(vf_load(to + 0 * LANES), vf_mul(f0, vf_mul(d0, scale)));
        vf_store(to + 0 * LANES, y0);
        q += q_stride;
        dx += d_stride;
        to += GROUPS * LANES;
        start += AHEAD * 2;
    }
}

/* The group(s) from row r, `group_bytes` apart, x tokens [t, t + n), n <= BLOCK_TOKENS. */
static void pass(const tern_matrix *m, const uint8_t *w, size_t group_bytes,
    const tern_activations *x,
                 size_t r, size_t rows, size_t t, size_t n, float *y, size_t y_stride) {
    const size_t blocks = (m->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t groups = rows > LANES ? GROUPS : 1;
    const size_t distance =
        groups * group_bytes <= NEAR_BYTES ? groups * group_bytes : PREFETCH_BYTES;
    scratch part;
    memset(part.sums, 0, n * sizeof *part.sums);
    for (size_t b = 0; b < blocks; b++) {
        if (b % AHEAD == 0)
            prepare(&part, x, t, n, b, blocks);
        const uint8_t *first = w + b / 8 * SUPER_BYTES;
        if (groups == 1)
            add_to_1(&part, first, group_bytes, x, t, n, b, distance);
        else
            add_to_2(&part, first, group_bytes, x, t, n, b, distance);
    }
    for (size_t g = 0; g < groups; g++) {
        const size_t lanes = tail_lanes(rows, g * LANES, LANES);
        float *to = y + t * y_stride + r + g * LANES;
        for (size_t i = 0; i < n; i++)
            vf_store_n(to + i * y_stride, vf_load(part.sums[i][g]), lanes);
    }
}

void tern_gemm_q6_k_32x8_avx512vnni(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t group_bytes = blocks / 8 * SUPER_BYTES;
    for (size_t r = tile->r0; r < tile->r1; r += 32) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * group_bytes;
        for (size_t t = tile->t0; t < tile->t1; t += BLOCK_TOKENS) {
            const size_t n = tile->t1 - t < BLOCK_TOKENS ? tile->t1 - t : BLOCK_TOKENS;
            pass(w, group, group_bytes, x, r, tile->r1 - r, t, n, y, y_stride);
        }
    }
}
