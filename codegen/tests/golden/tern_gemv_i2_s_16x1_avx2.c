/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from kernel tern_gemv_i2_s_16x1_avx2 of kernels/kernels.toml
 * and template kernels/matmul_ternary_masked.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemv_i2_s_16x1_avx2;

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

/* 16 rows from r x 1 token(s) from t; codes of the row group (or its part) at w. */
static void tile_1(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;

    /* Two vp_mac go into each sum per chunk, those of the odd planes four times as large. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4 / 2;
    vi even0_0 = vi_zero();
    vi odd0_0 = vi_zero();
    vi even0_1 = vi_zero();
    vi odd0_1 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp e0_0 = vp_zero();
        vp o0_0 = vp_zero();
        vp e0_1 = vp_zero();
        vp o0_1 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            ask_ahead(next.at + c * next.step);
            const vb c0_0 = vb_load(chunk + 0);
            const vb c0_2 = vb_high4(c0_0);
            const vb c1_0 = vb_load(chunk + 32);
            const vb c1_2 = vb_high4(c1_0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            e0_0 = vp_mac(e0_0, vb_even2(c0_0), b0_0);
            e0_1 = vp_mac(e0_1, vb_even2(c1_0), b0_0);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            o0_0 = vp_mac(o0_0, vb_odd2(c0_0), b1_0);
            o0_1 = vp_mac(o0_1, vb_odd2(c1_0), b1_0);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            e0_0 = vp_mac(e0_0, vb_even2(c0_2), b2_0);
            e0_1 = vp_mac(e0_1, vb_even2(c1_2), b2_0);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            o0_0 = vp_mac(o0_0, vb_odd2(c0_2), b3_0);
            o0_1 = vp_mac(o0_1, vb_odd2(c1_2), b3_0);
        }
        even0_0 = vi_flush(even0_0, e0_0);
        odd0_0 = vi_flush(odd0_0, o0_0);
        even0_1 = vi_flush(even0_1, e0_1);
        odd0_1 = vi_flush(odd0_1, o0_1);
    }
    const vi a0_0 = vi_add(even0_0, vi_quarter(odd0_0));
    const vi a0_1 = vi_add(even0_1, vi_quarter(odd0_1));
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
    const size_t passes = n;
    size_t t = tile->t0;
    size_t pass = 0;
    for (; t + 1 <= tile->t1; t += 1)
        tile_1(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
}

void tern_gemv_i2_s_16x1_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t chunks = (w->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    for (size_t r = tile->r0; r < tile->r1; r += 16) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * chunks * CHUNK_BYTES;
        const size_t rows = tile->r1 - r < 16 ? tile->r1 - r : 16;
        direct(w, group + r % TERN_ROW_GROUP * 4, chunks, x, tile, r, rows, y, y_stride);
    }
}
