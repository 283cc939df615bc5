/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_i2_s_16x4_avx2 of kernels/kernels.toml
 * and template kernels/matmul_ternary_gemm.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_i2_s_16x4_avx2;

/*
 * Ternary matrix product: lanes are rows. A 64-byte chunk holds 16 rows x CHUNK_COLS columns as
 * planes of four; plane p of chunk c meets columns CHUNK_COLS * c + 4p .. + 3 of each token, which
 * a splat hands to all rows. Layout T2R16 has four planes of two bits.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

enum {
    CHUNK_BYTES = 64,
    CHUNK_COLS = 16,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* Where a pass over a row group prefetches: the address for its first chunk, bytes a chunk. */
typedef struct ahead {
    const uint8_t *at;
    size_t step;
} ahead;

/* Scales of n rows from row r. */
static inline vf scales(const tern_matrix *m, size_t r, size_t n) {
    return m->row_scale ? vf_load_fill(m->row_scale + r, n, 0.0f) : vf_set1(m->scale);
}

static inline vf rescale(vi raw, const tern_activations *x, size_t t, vf scale) {
    const vf y = vf_sub(vi_to_f(raw), vf_set1((float)x->sum[t]));
    return vf_mul(vf_quotient(y, x->s[t]), scale);
}

/* 16 rows from r x 4 token(s) from t; codes of the row group (or its part) at w. */
static void tile_4(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    vi a0_0 = vi_zero();
    vi a0_1 = vi_zero();
    vi a1_0 = vi_zero();
    vi a1_1 = vi_zero();
    vi a2_0 = vi_zero();
    vi a2_1 = vi_zero();
    vi a3_0 = vi_zero();
    vi a3_1 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0_0 = vp_zero();
        vp s0_1_0 = vp_zero();
        vp s1_0_0 = vp_zero();
        vp s1_1_0 = vp_zero();
        vp s2_0_0 = vp_zero();
        vp s2_1_0 = vp_zero();
        vp s3_0_0 = vp_zero();
        vp s3_1_0 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            ask_ahead(next.at + c * next.step);
            const vb c0 = vb_load(chunk + 0);
            const vb c1 = vb_load(chunk + 32);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb p0_1 = vb_plane2(c1, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0_0 = vp_mac(s0_0_0, p0_0, b0_0);
            s0_1_0 = vp_mac(s0_1_0, p0_1, b0_0);
            const vb b0_1 = vb_splat4(x1 + c * CHUNK_COLS + 0);
            s1_0_0 = vp_mac(s1_0_0, p0_0, b0_1);
            s1_1_0 = vp_mac(s1_1_0, p0_1, b0_1);
            const vb b0_2 = vb_splat4(x2 + c * CHUNK_COLS + 0);
            s2_0_0 = vp_mac(s2_0_0, p0_0, b0_2);
            s2_1_0 = vp_mac(s2_1_0, p0_1, b0_2);
            const vb b0_3 = vb_splat4(x3 + c * CHUNK_COLS + 0);
            s3_0_0 = vp_mac(s3_0_0, p0_0, b0_3);
            s3_1_0 = vp_mac(s3_1_0, p0_1, b0_3);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb p1_1 = vb_plane2(c1, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0_0 = vp_mac(s0_0_0, p1_0, b1_0);
            s0_1_0 = vp_mac(s0_1_0, p1_1, b1_0);
            const vb b1_1 = vb_splat4(x1 + c * CHUNK_COLS + 4);
            s1_0_0 = vp_mac(s1_0_0, p1_0, b1_1);
            s1_1_0 = vp_mac(s1_1_0, p1_1, b1_1);
            const vb b1_2 = vb_splat4(x2 + c * CHUNK_COLS + 4);
            s2_0_0 = vp_mac(s2_0_0, p1_0, b1_2);
            s2_1_0 = vp_mac(s2_1_0, p1_1, b1_2);
            const vb b1_3 = vb_splat4(x3 + c * CHUNK_COLS + 4);
            s3_0_0 = vp_mac(s3_0_0, p1_0, b1_3);
            s3_1_0 = vp_mac(s3_1_0, p1_1, b1_3);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb p2_1 = vb_plane2(c1, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0_0 = vp_mac(s0_0_0, p2_0, b2_0);
            s0_1_0 = vp_mac(s0_1_0, p2_1, b2_0);
            const vb b2_1 = vb_splat4(x1 + c * CHUNK_COLS + 8);
            s1_0_0 = vp_mac(s1_0_0, p2_0, b2_1);
            s1_1_0 = vp_mac(s1_1_0, p2_1, b2_1);
            const vb b2_2 = vb_splat4(x2 + c * CHUNK_COLS + 8);
            s2_0_0 = vp_mac(s2_0_0, p2_0, b2_2);
            s2_1_0 = vp_mac(s2_1_0, p2_1, b2_2);
            const vb b2_3 = vb_splat4(x3 + c * CHUNK_COLS + 8);
            s3_0_0 = vp_mac(s3_0_0, p2_0, b2_3);
            s3_1_0 = vp_mac(s3_1_0, p2_1, b2_3);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb p3_1 = vb_plane2(c1, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0_0 = vp_mac(s0_0_0, p3_0, b3_0);
            s0_1_0 = vp_mac(s0_1_0, p3_1, b3_0);
            const vb b3_1 = vb_splat4(x1 + c * CHUNK_COLS + 12);
            s1_0_0 = vp_mac(s1_0_0, p3_0, b3_1);
            s1_1_0 = vp_mac(s1_1_0, p3_1, b3_1);
            const vb b3_2 = vb_splat4(x2 + c * CHUNK_COLS + 12);
            s2_0_0 = vp_mac(s2_0_0, p3_0, b3_2);
            s2_1_0 = vp_mac(s2_1_0, p3_1, b3_2);
            const vb b3_3 = vb_splat4(x3 + c * CHUNK_COLS + 12);
            s3_0_0 = vp_mac(s3_0_0, p3_0, b3_3);
            s3_1_0 = vp_mac(s3_1_0, p3_1, b3_3);
        }
        a0_0 = vi_flush(a0_0, s0_0_0);
        a0_1 = vi_flush(a0_1, s0_1_0);
        a1_0 = vi_flush(a1_0, s1_0_0);
        a1_1 = vi_flush(a1_1, s1_1_0);
        a2_0 = vi_flush(a2_0, s2_0_0);
        a2_1 = vi_flush(a2_1, s2_1_0);
        a3_0 = vi_flush(a3_0, s3_0_0);
        a3_1 = vi_flush(a3_1, s3_1_0);
    }
    const size_t n0 = tail_lanes(rows, 0, 8);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
    vf_store_n(y + 2 * y_stride + 0, rescale(a2_0, x, t + 2, scale0), n0);
    vf_store_n(y + 3 * y_stride + 0, rescale(a3_0, x, t + 3, scale0), n0);
    const size_t n1 = tail_lanes(rows, 8, 8);
    const vf scale1 = scales(m, r + 8, n1);
    vf_store_n(y + 0 * y_stride + 8, rescale(a0_1, x, t + 0, scale1), n1);
    vf_store_n(y + 1 * y_stride + 8, rescale(a1_1, x, t + 1, scale1), n1);
    vf_store_n(y + 2 * y_stride + 8, rescale(a2_1, x, t + 2, scale1), n1);
    vf_store_n(y + 3 * y_stride + 8, rescale(a3_1, x, t + 3, scale1), n1);
}

/* 16 rows from r x 2 token(s) from t; codes of the row group (or its part) at w. */
static void tile_2(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    vi a0_0 = vi_zero();
    vi a0_1 = vi_zero();
    vi a1_0 = vi_zero();
    vi a1_1 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0_0 = vp_zero();
        vp s0_1_0 = vp_zero();
        vp s1_0_0 = vp_zero();
        vp s1_1_0 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            ask_ahead(next.at + c * next.step);
            const vb c0 = vb_load(chunk + 0);
            const vb c1 = vb_load(chunk + 32);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb p0_1 = vb_plane2(c1, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0_0 = vp_mac(s0_0_0, p0_0, b0_0);
            s0_1_0 = vp_mac(s0_1_0, p0_1, b0_0);
            const vb b0_1 = vb_splat4(x1 + c * CHUNK_COLS + 0);
            s1_0_0 = vp_mac(s1_0_0, p0_0, b0_1);
            s1_1_0 = vp_mac(s1_1_0, p0_1, b0_1);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb p1_1 = vb_plane2(c1, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0_0 = vp_mac(s0_0_0, p1_0, b1_0);
            s0_1_0 = vp_mac(s0_1_0, p1_1, b1_0);
            const vb b1_1 = vb_splat4(x1 + c * CHUNK_COLS + 4);
            s1_0_0 = vp_mac(s1_0_0, p1_0, b1_1);
            s1_1_0 = vp_mac(s1_1_0, p1_1, b1_1);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb p2_1 = vb_plane2(c1, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0_0 = vp_mac(s0_0_0, p2_0, b2_0);
            s0_1_0 = vp_mac(s0_1_0, p2_1, b2_0);
            const vb b2_1 = vb_splat4(x1 + c * CHUNK_COLS + 8);
            s1_0_0 = vp_mac(s1_0_0, p2_0, b2_1);
            s1_1_0 = vp_mac(s1_1_0, p2_1, b2_1);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb p3_1 = vb_plane2(c1, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0_0 = vp_mac(s0_0_0, p3_0, b3_0);
            s0_1_0 = vp_mac(s0_1_0, p3_1, b3_0);
            const vb b3_1 = vb_splat4(x1 + c * CHUNK_COLS + 12);
            s1_0_0 = vp_mac(s1_0_0, p3_0, b3_1);
            s1_1_0 = vp_mac(s1_1_0, p3_1, b3_1);
        }
        a0_0 = vi_flush(a0_0, s0_0_0);
        a0_1 = vi_flush(a0_1, s0_1_0);
        a1_0 = vi_flush(a1_0, s1_0_0);
        a1_1 = vi_flush(a1_1, s1_1_0);
    }
    const size_t n0 = tail_lanes(rows, 0, 8);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
    const size_t n1 = tail_lanes(rows, 8, 8);
    const vf scale1 = scales(m, r + 8, n1);
    vf_store_n(y + 0 * y_stride + 8, rescale(a0_1, x, t + 0, scale1), n1);
    vf_store_n(y + 1 * y_stride + 8, rescale(a1_1, x, t + 1, scale1), n1);
}

/* 16 rows from r x 1 token(s) from t; codes of the row group (or its part) at w. */
static void tile_1(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    vi a0_0 = vi_zero();
    vi a0_1 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0_0 = vp_zero();
        vp s0_1_0 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            ask_ahead(next.at + c * next.step);
            const vb c0 = vb_load(chunk + 0);
            const vb c1 = vb_load(chunk + 32);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb p0_1 = vb_plane2(c1, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0_0 = vp_mac(s0_0_0, p0_0, b0_0);
            s0_1_0 = vp_mac(s0_1_0, p0_1, b0_0);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb p1_1 = vb_plane2(c1, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0_0 = vp_mac(s0_0_0, p1_0, b1_0);
            s0_1_0 = vp_mac(s0_1_0, p1_1, b1_0);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb p2_1 = vb_plane2(c1, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0_0 = vp_mac(s0_0_0, p2_0, b2_0);
            s0_1_0 = vp_mac(s0_1_0, p2_1, b2_0);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb p3_1 = vb_plane2(c1, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0_0 = vp_mac(s0_0_0, p3_0, b3_0);
            s0_1_0 = vp_mac(s0_1_0, p3_1, b3_0);
        }
        a0_0 = vi_flush(a0_0, s0_0_0);
        a0_1 = vi_flush(a0_1, s0_1_0);
    }
    const size_t n0 = tail_lanes(rows, 0, 8);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    const size_t n1 = tail_lanes(rows, 8, 8);
    const vf scale1 = scales(m, r + 8, n1);
    vf_store_n(y + 0 * y_stride + 8, rescale(a0_1, x, t + 0, scale1), n1);
}

/*
 * Where pass `i` of `passes` over a row group prefetches. One pass: a little ahead of itself. More:
 * each its share of the group that follows, since after the first one this group is in the cache.
 */
static ahead prefetches(const uint8_t *group, size_t chunks, size_t i, size_t passes) {
    const size_t bytes = chunks * CHUNK_BYTES;
    if (passes == 1)
        return (ahead){group + PREFETCH_BYTES, CHUNK_BYTES};
    return (ahead){group + bytes + bytes / passes * i, CHUNK_BYTES / passes};
}

/* Rows [r, r + rows), whose codes are at w, x the tokens of the tile. */
static void direct(const tern_matrix *m, const uint8_t *w, size_t chunks, const tern_activations *x,
    const tern_tile *tile, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t n = tile->t1 - tile->t0;
    const size_t passes = n / 4 + n % 4 / 2 + n % 2;
    size_t t = tile->t0;
    size_t pass = 0;
    for (; t + 4 <= tile->t1; t += 4)
        tile_4(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 2 <= tile->t1; t += 2)
        tile_2(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 1 <= tile->t1; t += 1)
        tile_1(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
}

enum {
    PLANES = 4,
    /* 15 chunks of 4 planes stay within TERN_MACS_2BIT of 16-bit sums; as bytes they are 4 KB. */
    PART_CHUNKS = 15,
    /* 64 tokens of a part are 15 KB of activations and 4 KB of sums: all of it fits into 32 KB. */
    BLOCK_TOKENS = 64,
    LEAST_TOKENS = 16, /* for which unpacking once is faster */
    ROWS = 16
};

_Static_assert((int)LEAST_TOKENS <= (int)TERN_MANY_TOKENS, "tests of many tokens miss the blocks");
_Static_assert(PLANES * PART_CHUNKS <= TERN_MACS_2BIT, "partial sums of a part may overflow");

/* A part of a row group: [chunk][plane][vector], and raw sums of a block: [token][row]. */
typedef struct scratch {
    _Alignas(TERN_ALIGN) uint8_t codes[PART_CHUNKS * PLANES * 2 * sizeof(vb)];
    _Alignas(TERN_ALIGN) int32_t sums[BLOCK_TOKENS * ROWS];
} scratch;

/* Chunks [0, chunks) from w on. */
static void unpack(const uint8_t *w, size_t chunks, scratch *part) {
    uint8_t *out = part->codes;
    for (size_t c = 0; c < chunks; c++) {
        ask_ahead(w + c * CHUNK_BYTES + PREFETCH_BYTES);
        const vb c0 = vb_load(w + c * CHUNK_BYTES + 0);
        const vb c1 = vb_load(w + c * CHUNK_BYTES + 32);
        const vb p0_0 = vb_plane2(c0, 0);
        memcpy(out, &p0_0, sizeof(vb));
        out += sizeof(vb);
        const vb p0_1 = vb_plane2(c1, 0);
        memcpy(out, &p0_1, sizeof(vb));
        out += sizeof(vb);
        const vb p1_0 = vb_plane2(c0, 1);
        memcpy(out, &p1_0, sizeof(vb));
        out += sizeof(vb);
        const vb p1_1 = vb_plane2(c1, 1);
        memcpy(out, &p1_1, sizeof(vb));
        out += sizeof(vb);
        const vb p2_0 = vb_plane2(c0, 2);
        memcpy(out, &p2_0, sizeof(vb));
        out += sizeof(vb);
        const vb p2_1 = vb_plane2(c1, 2);
        memcpy(out, &p2_1, sizeof(vb));
        out += sizeof(vb);
        const vb p3_0 = vb_plane2(c0, 3);
        memcpy(out, &p3_0, sizeof(vb));
        out += sizeof(vb);
        const vb p3_1 = vb_plane2(c1, 3);
        memcpy(out, &p3_1, sizeof(vb));
        out += sizeof(vb);
    }
}

/* Adds the part's products with 4 token(s), whose columns of the part are at q, to `sums`. */
static void part_4(const uint8_t *codes, size_t chunks, const int8_t *q, size_t q_stride,
                   int32_t *sums) {
    vp s0_0 = vp_zero();
    vp s0_1 = vp_zero();
    vp s1_0 = vp_zero();
    vp s1_1 = vp_zero();
    vp s2_0 = vp_zero();
    vp s2_1 = vp_zero();
    vp s3_0 = vp_zero();
    vp s3_1 = vp_zero();
    for (size_t c = 0; c < chunks; c++) {
        {
            vb w0;
            memcpy(&w0, codes + 0 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 1 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 0);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 0);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
            const vb x2 = vb_splat4(q + 2 * q_stride + 0);
            s2_0 = vp_mac(s2_0, w0, x2);
            s2_1 = vp_mac(s2_1, w1, x2);
            const vb x3 = vb_splat4(q + 3 * q_stride + 0);
            s3_0 = vp_mac(s3_0, w0, x3);
            s3_1 = vp_mac(s3_1, w1, x3);
        }
        {
            vb w0;
            memcpy(&w0, codes + 2 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 3 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 4);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 4);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
            const vb x2 = vb_splat4(q + 2 * q_stride + 4);
            s2_0 = vp_mac(s2_0, w0, x2);
            s2_1 = vp_mac(s2_1, w1, x2);
            const vb x3 = vb_splat4(q + 3 * q_stride + 4);
            s3_0 = vp_mac(s3_0, w0, x3);
            s3_1 = vp_mac(s3_1, w1, x3);
        }
        {
            vb w0;
            memcpy(&w0, codes + 4 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 5 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 8);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 8);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
            const vb x2 = vb_splat4(q + 2 * q_stride + 8);
            s2_0 = vp_mac(s2_0, w0, x2);
            s2_1 = vp_mac(s2_1, w1, x2);
            const vb x3 = vb_splat4(q + 3 * q_stride + 8);
            s3_0 = vp_mac(s3_0, w0, x3);
            s3_1 = vp_mac(s3_1, w1, x3);
        }
        {
            vb w0;
            memcpy(&w0, codes + 6 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 7 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 12);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 12);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
            const vb x2 = vb_splat4(q + 2 * q_stride + 12);
            s2_0 = vp_mac(s2_0, w0, x2);
            s2_1 = vp_mac(s2_1, w1, x2);
            const vb x3 = vb_splat4(q + 3 * q_stride + 12);
            s3_0 = vp_mac(s3_0, w0, x3);
            s3_1 = vp_mac(s3_1, w1, x3);
        }
        codes += PLANES * 2 * sizeof(vb);
        q += CHUNK_COLS;
    }
    vi a0_0;
    memcpy(&a0_0, sums + 0 * ROWS + 0, sizeof(vi));
    a0_0 = vi_flush(a0_0, s0_0);
    memcpy(sums + 0 * ROWS + 0, &a0_0, sizeof(vi));
    vi a0_1;
    memcpy(&a0_1, sums + 0 * ROWS + 8, sizeof(vi));
    a0_1 = vi_flush(a0_1, s0_1);
    memcpy(sums + 0 * ROWS + 8, &a0_1, sizeof(vi));
    vi a1_0;
    memcpy(&a1_0, sums + 1 * ROWS + 0, sizeof(vi));
    a1_0 = vi_flush(a1_0, s1_0);
    memcpy(sums + 1 * ROWS + 0, &a1_0, sizeof(vi));
    vi a1_1;
    memcpy(&a1_1, sums + 1 * ROWS + 8, sizeof(vi));
    a1_1 = vi_flush(a1_1, s1_1);
    memcpy(sums + 1 * ROWS + 8, &a1_1, sizeof(vi));
    vi a2_0;
    memcpy(&a2_0, sums + 2 * ROWS + 0, sizeof(vi));
    a2_0 = vi_flush(a2_0, s2_0);
    memcpy(sums + 2 * ROWS + 0, &a2_0, sizeof(vi));
    vi a2_1;
    memcpy(&a2_1, sums + 2 * ROWS + 8, sizeof(vi));
    a2_1 = vi_flush(a2_1, s2_1);
    memcpy(sums + 2 * ROWS + 8, &a2_1, sizeof(vi));
    vi a3_0;
    memcpy(&a3_0, sums + 3 * ROWS + 0, sizeof(vi));
    a3_0 = vi_flush(a3_0, s3_0);
    memcpy(sums + 3 * ROWS + 0, &a3_0, sizeof(vi));
    vi a3_1;
    memcpy(&a3_1, sums + 3 * ROWS + 8, sizeof(vi));
    a3_1 = vi_flush(a3_1, s3_1);
    memcpy(sums + 3 * ROWS + 8, &a3_1, sizeof(vi));
}

/* Adds the part's products with 2 token(s), whose columns of the part are at q, to `sums`. */
static void part_2(const uint8_t *codes, size_t chunks, const int8_t *q, size_t q_stride,
                   int32_t *sums) {
    vp s0_0 = vp_zero();
    vp s0_1 = vp_zero();
    vp s1_0 = vp_zero();
    vp s1_1 = vp_zero();
    for (size_t c = 0; c < chunks; c++) {
        {
            vb w0;
            memcpy(&w0, codes + 0 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 1 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 0);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 0);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
        }
        {
            vb w0;
            memcpy(&w0, codes + 2 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 3 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 4);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 4);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
        }
        {
            vb w0;
            memcpy(&w0, codes + 4 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 5 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 8);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 8);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
        }
        {
            vb w0;
            memcpy(&w0, codes + 6 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 7 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 12);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
            const vb x1 = vb_splat4(q + 1 * q_stride + 12);
            s1_0 = vp_mac(s1_0, w0, x1);
            s1_1 = vp_mac(s1_1, w1, x1);
        }
        codes += PLANES * 2 * sizeof(vb);
        q += CHUNK_COLS;
    }
    vi a0_0;
    memcpy(&a0_0, sums + 0 * ROWS + 0, sizeof(vi));
    a0_0 = vi_flush(a0_0, s0_0);
    memcpy(sums + 0 * ROWS + 0, &a0_0, sizeof(vi));
    vi a0_1;
    memcpy(&a0_1, sums + 0 * ROWS + 8, sizeof(vi));
    a0_1 = vi_flush(a0_1, s0_1);
    memcpy(sums + 0 * ROWS + 8, &a0_1, sizeof(vi));
    vi a1_0;
    memcpy(&a1_0, sums + 1 * ROWS + 0, sizeof(vi));
    a1_0 = vi_flush(a1_0, s1_0);
    memcpy(sums + 1 * ROWS + 0, &a1_0, sizeof(vi));
    vi a1_1;
    memcpy(&a1_1, sums + 1 * ROWS + 8, sizeof(vi));
    a1_1 = vi_flush(a1_1, s1_1);
    memcpy(sums + 1 * ROWS + 8, &a1_1, sizeof(vi));
}

/* Adds the part's products with 1 token(s), whose columns of the part are at q, to `sums`. */
static void part_1(const uint8_t *codes, size_t chunks, const int8_t *q, size_t q_stride,
                   int32_t *sums) {
    vp s0_0 = vp_zero();
    vp s0_1 = vp_zero();
    for (size_t c = 0; c < chunks; c++) {
        {
            vb w0;
            memcpy(&w0, codes + 0 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 1 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 0);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
        }
        {
            vb w0;
            memcpy(&w0, codes + 2 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 3 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 4);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
        }
        {
            vb w0;
            memcpy(&w0, codes + 4 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 5 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 8);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
        }
        {
            vb w0;
            memcpy(&w0, codes + 6 * sizeof(vb), sizeof(vb));
            vb w1;
            memcpy(&w1, codes + 7 * sizeof(vb), sizeof(vb));
            const vb x0 = vb_splat4(q + 0 * q_stride + 12);
            s0_0 = vp_mac(s0_0, w0, x0);
            s0_1 = vp_mac(s0_1, w1, x0);
        }
        codes += PLANES * 2 * sizeof(vb);
        q += CHUNK_COLS;
    }
    vi a0_0;
    memcpy(&a0_0, sums + 0 * ROWS + 0, sizeof(vi));
    a0_0 = vi_flush(a0_0, s0_0);
    memcpy(sums + 0 * ROWS + 0, &a0_0, sizeof(vi));
    vi a0_1;
    memcpy(&a0_1, sums + 0 * ROWS + 8, sizeof(vi));
    a0_1 = vi_flush(a0_1, s0_1);
    memcpy(sums + 0 * ROWS + 8, &a0_1, sizeof(vi));
}

/* Rescales the sums of tokens [t0, t0 + n) and rows [r, r + rows). */
static void finish(const tern_matrix *m, const tern_activations *x, const scratch *part, size_t t0,
                   size_t n, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t n0 = tail_lanes(rows, 0, 8);
    const vf scale0 = scales(m, r + 0, n0);
    const size_t n1 = tail_lanes(rows, 8, 8);
    const vf scale1 = scales(m, r + 8, n1);
    for (size_t t = 0; t < n; t++) {
        vi a0;
        memcpy(&a0, part->sums + t * ROWS + 0, sizeof(vi));
        vf_store_n(y + (t0 + t) * y_stride + r + 0, rescale(a0, x, t0 + t, scale0), n0);
        vi a1;
        memcpy(&a1, part->sums + t * ROWS + 8, sizeof(vi));
        vf_store_n(y + (t0 + t) * y_stride + r + 8, rescale(a1, x, t0 + t, scale1), n1);
    }
}

/* Rows [r, r + rows) x tokens [t0, t0 + n), n <= BLOCK_TOKENS; the codes at w. */
static void block(const tern_matrix *m, const uint8_t *w, const tern_activations *x, size_t t0,
                  size_t n, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t chunks = (m->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    scratch part;
    memset(part.sums, 0, n * ROWS * sizeof *part.sums);
    for (size_t c = 0; c < chunks; c += PART_CHUNKS) {
        const size_t here = chunks - c < PART_CHUNKS ? chunks - c : PART_CHUNKS;
        const int8_t *q = x->q + t0 * x->q_stride + c * CHUNK_COLS;
        size_t t = 0;
        unpack(w + c * CHUNK_BYTES, here, &part);
        for (; t + 4 <= n; t += 4)
            part_4(part.codes, here, q + t * x->q_stride, x->q_stride, part.sums + t * ROWS);
        for (; t + 2 <= n; t += 2)
            part_2(part.codes, here, q + t * x->q_stride, x->q_stride, part.sums + t * ROWS);
        for (; t + 1 <= n; t += 1)
            part_1(part.codes, here, q + t * x->q_stride, x->q_stride, part.sums + t * ROWS);
    }
    finish(m, x, &part, t0, n, r, rows, y, y_stride);
}

void tern_gemm_i2_s_16x4_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t chunks = (w->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    const size_t tokens = tile->t1 - tile->t0;
    for (size_t r = tile->r0; r < tile->r1; r += ROWS) {
        const uint8_t *codes =
            (const uint8_t *)w->data + r / TERN_ROW_GROUP * chunks * CHUNK_BYTES +
                               r % TERN_ROW_GROUP * 4;
        const size_t rows = tile->r1 - r < ROWS ? tile->r1 - r : ROWS;
        if (tokens < LEAST_TOKENS)
            direct(w, codes, chunks, x, tile, r, rows, y, y_stride);
        for (size_t t = tile->t0; tokens >= LEAST_TOKENS && t < tile->t1; t += BLOCK_TOKENS)
            block(w, codes, x, t, tile->t1 - t < BLOCK_TOKENS ? tile->t1 - t : BLOCK_TOKENS, r,
                rows, y, y_stride);
    }
}
