/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_i2_s_16x4_avx2 of kernels/kernels.toml
 * and template kernels/matmul_ternary_gemm.c.j2. Do not edit.
 */

#include "gen/kernels.h"

/*
 * Ternary matrix product for many tokens over layout T2R16 (matmul_ternary.c.j2 has its picture):
 * the codes of a part of the columns are unpacked to bytes once, into the first-level cache, and
 * meet all tokens of a block there; otherwise every tile would unpack them again for a few tokens.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

enum {
    CHUNK_BYTES = 64,
    CHUNK_COLS = 16,
    PLANES = 4,
    /* 15 chunks of 4 planes stay within TERN_MACS_2BIT of 16-bit sums; as bytes they are 4 KB. */
    PART_CHUNKS = 15,
    /* 64 tokens of a part are 15 KB of activations and 4 KB of sums: all of it fits into 32 KB. */
    BLOCK_TOKENS = 64,
    ROWS = 16
};

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
static void tile_4(const uint8_t *codes, size_t chunks, const int8_t *q, size_t q_stride,
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
static void tile_2(const uint8_t *codes, size_t chunks, const int8_t *q, size_t q_stride,
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
static void tile_1(const uint8_t *codes, size_t chunks, const int8_t *q, size_t q_stride,
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

/* Rescales the sums of tokens [t0, t0 + n) and rows [r, r + rows); as matmul_ternary.c.j2 does. */
static void finish(const tern_matrix *m, const tern_activations *x, const scratch *part, size_t t0,
                   size_t n, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t n0 = tail_lanes(rows, 0, 8);
    const vf scale0 = m->row_scale ? vf_load_fill(m->row_scale + r + 0, n0,
        0.0f) : vf_set1(m->scale);
    const size_t n1 = tail_lanes(rows, 8, 8);
    const vf scale1 = m->row_scale ? vf_load_fill(m->row_scale + r + 8, n1,
        0.0f) : vf_set1(m->scale);
    for (size_t t = 0; t < n; t++) {
        const vf sum = vf_set1((float)x->sum[t0 + t]), s = vf_set1(x->s[t0 + t]);
        float *out = y + (t0 + t) * y_stride + r;
        vi a0;
        memcpy(&a0, part->sums + t * ROWS + 0, sizeof(vi));
        vf_store_n(out + 0, vf_mul(vf_div(vf_sub(vi_to_f(a0), sum), s), scale0), n0);
        vi a1;
        memcpy(&a1, part->sums + t * ROWS + 8, sizeof(vi));
        vf_store_n(out + 8, vf_mul(vf_div(vf_sub(vi_to_f(a1), sum), s), scale1), n1);
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
            tile_4(part.codes, here, q + t * x->q_stride, x->q_stride, part.sums + t * ROWS);
        for (; t + 2 <= n; t += 2)
            tile_2(part.codes, here, q + t * x->q_stride, x->q_stride, part.sums + t * ROWS);
        for (; t + 1 <= n; t += 1)
            tile_1(part.codes, here, q + t * x->q_stride, x->q_stride, part.sums + t * ROWS);
    }
    finish(m, x, &part, t0, n, r, rows, y, y_stride);
}

void tern_gemm_i2_s_16x4_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t chunks = (w->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    for (size_t r = tile->r0; r < tile->r1; r += ROWS) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * chunks * CHUNK_BYTES;
        const size_t rows = tile->r1 - r < ROWS ? tile->r1 - r : ROWS;
        for (size_t t = tile->t0; t < tile->t1; t += BLOCK_TOKENS)
            block(w, group + r % TERN_ROW_GROUP * 4, x, t,
                  tile->t1 - t < BLOCK_TOKENS ? tile->t1 - t : BLOCK_TOKENS, r, rows, y, y_stride);
    }
}
