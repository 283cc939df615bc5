/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemv_bsr_t2_16x1_avx2 of kernels/kernels.toml
 * and template kernels/matmul_bsr_ternary.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemv_bsr_t2_16x1_avx2;

/*
 * Matrix product over blocks of ternary weights (kernels/iebs.h): lanes are rows. A chunk of
 * 16 x 16 is one of layout T2R16: plane p meets columns 4p .. 4p + 3 of the chunk, which a splat
 * hands to all rows. Codes are weights + 1, so the sum of the activations that met stored blocks
 * is counted beside and taken off: what is left is the sum of weights times activations, an
 * integer, whatever blocks are stored.
 */
#include "kernels/isa/avx2.h"

#include "kernels/iebs.h"
#include "kernels/isa/vmath.h"

enum {
    CHUNK_BYTES = 64,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* Scales of n rows from row r. */
static inline vf scales(const tern_matrix *m, size_t r, size_t n) {
    return m->row_scale ? vf_load_fill(m->row_scale + r, n, 0.0f) : vf_set1(m->scale);
}

static inline vf rescale(vi sum, float s, vf scale) {
    return vf_mul(vf_div(vi_to_f(sum), vf_set1(s)), scale);
}

/* 16 rows from r, a multiple of 16, x 1 token(s) from t. */
static void tile_1(const tern_matrix *w, const tern_iebs *m, const tern_activations *x, size_t r,
    size_t rows,
    size_t t, float *y, size_t y_stride) {
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    const size_t i = r / m->block_rows;
    const size_t strip = r % m->block_rows / 16 * (m->block_cols / 16) * CHUNK_BYTES;
    const vb one = vb_set1(1);
    const int8_t *const x0 = x->q + (t + 0) * x->q_stride;
    vi met0 = vi_zero();
    vi a0_0 = vi_zero();
    vi a0_1 = vi_zero();
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++) {
        const uint8_t *const block = tern_iebs_block(m, b) + strip;
        const size_t first = (size_t)m->column[b] * m->block_cols;
        const size_t chunks = (tern_iebs_width(m, b) + 15) / 16;
        for (size_t c = 0; c < chunks;) {
            const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
            vp n0 = vp_zero();
            vp s0_0 = vp_zero();
            vp s0_1 = vp_zero();
            for (; c < stop; c++) {
                const uint8_t *const chunk = block + c * CHUNK_BYTES;
                const size_t k = first + c * 16;
                ask_ahead(chunk + PREFETCH_BYTES);
                const vb c0 = vb_load(chunk + 0);
                const vb c1 = vb_load(chunk + 32);
                const vb p0_0 = vb_plane2(c0, 0);
                const vb p0_1 = vb_plane2(c1, 0);
                const vb b0_0 = vb_splat4(x0 + k + 0);
                n0 = vp_mac(n0, one, b0_0);
                s0_0 = vp_mac(s0_0, p0_0, b0_0);
                s0_1 = vp_mac(s0_1, p0_1, b0_0);
                const vb p1_0 = vb_plane2(c0, 1);
                const vb p1_1 = vb_plane2(c1, 1);
                const vb b1_0 = vb_splat4(x0 + k + 4);
                n0 = vp_mac(n0, one, b1_0);
                s0_0 = vp_mac(s0_0, p1_0, b1_0);
                s0_1 = vp_mac(s0_1, p1_1, b1_0);
                const vb p2_0 = vb_plane2(c0, 2);
                const vb p2_1 = vb_plane2(c1, 2);
                const vb b2_0 = vb_splat4(x0 + k + 8);
                n0 = vp_mac(n0, one, b2_0);
                s0_0 = vp_mac(s0_0, p2_0, b2_0);
                s0_1 = vp_mac(s0_1, p2_1, b2_0);
                const vb p3_0 = vb_plane2(c0, 3);
                const vb p3_1 = vb_plane2(c1, 3);
                const vb b3_0 = vb_splat4(x0 + k + 12);
                n0 = vp_mac(n0, one, b3_0);
                s0_0 = vp_mac(s0_0, p3_0, b3_0);
                s0_1 = vp_mac(s0_1, p3_1, b3_0);
            }
            met0 = vi_flush(met0, n0);
            a0_0 = vi_flush(a0_0, s0_0);
            a0_1 = vi_flush(a0_1, s0_1);
        }
    }
    const size_t n_0 = tail_lanes(rows, 0, 8);
    const vf scale0 = scales(w, r + 0, n_0);
    vf_store_n(y + 0 * y_stride + 0, rescale(vi_sub(a0_0, met0), x->s[t + 0], scale0), n_0);
    const size_t n_1 = tail_lanes(rows, 8, 8);
    const vf scale1 = scales(w, r + 8, n_1);
    vf_store_n(y + 0 * y_stride + 8, rescale(vi_sub(a0_1, met0), x->s[t + 0], scale1), n_1);
    (void)y_stride;
}

/* Row r in blocks whose sides are no multiples of 16, x token t. */
static float any_size(const tern_matrix *w, const tern_iebs *m, const tern_activations *x,
    size_t r, size_t t) {
    const int8_t *const q = x->q + t * x->q_stride;
    const size_t i = r / m->block_rows;
    int32_t sum = 0;
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++) {
        const uint8_t *const block = tern_iebs_block(m, b);
        const size_t n = tern_iebs_width(m, b);
        for (size_t k = 0; k < n; k++)
            sum += tern_iebs_trit(m, block, r % m->block_rows,
                k) * q[(size_t)m->column[b] * m->block_cols + k];
    }
    return (float)sum / x->s[t] * (w->row_scale ? w->row_scale[r] : w->scale);
}

/* Rows [r, r + rows) of one strip x the tokens of the tile. */
static void whole_chunks(const tern_matrix *w, const tern_iebs *m, const tern_activations *x,
    const tern_tile *tile,
    size_t r, size_t rows, float *y, size_t y_stride) {
    size_t t = tile->t0;
    for (; t + 1 <= tile->t1; t += 1)
        tile_1(w, m, x, r, rows, t, y + t * y_stride + r, y_stride);
}

void tern_gemv_bsr_t2_16x1_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const tern_iebs m = tern_iebs_view(w->data);
    const bool whole = m.block_rows % 16 == 0 && m.block_cols % 16 == 0;
    for (size_t r = tile->r0; r < tile->r1; r += 16) {
        const size_t end = tile->r1 - r < 16 ? tile->r1 : r + 16;
        if (whole) {
            whole_chunks(w, &m, x, tile, r, end - r, y, y_stride);
            continue;
        }
        for (size_t t = tile->t0; t < tile->t1; t++)
            for (size_t i = r; i < end; i++)
                y[t * y_stride + i] = any_size(w, &m, x, i, t);
    }
}
