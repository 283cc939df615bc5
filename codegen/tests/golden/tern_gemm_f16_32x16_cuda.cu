/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_f16_32x16_cuda of kernels/kernels.toml
 * and template kernels/cuda/matmul_float.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_gemm_f16_32x16_cuda {
/*
 * Matrix product over float weights in the file's own layout. A block of threads takes a tile of
 * rows and tokens. Some columns of all of them are a stage: it is copied to shared memory while
 * earlier stages are added. Eight threads share a row's sixteen virtual lanes, so that each thread
 * adds the columns of its two lanes in the canonical order.
 */

enum {
    ROWS = 32,
    TOKENS = 16,
    STAGES = 3,
    COLS = 64, /* of a stage */
    ROW_STEP = COLS + TERN_LANES, /* rows that a warp reads at once lie in different banks */
    ROW_THREADS = 8,
    WARP_ROWS = TERN_CUDA_WARP / ROW_THREADS
};

typedef uint16_t element;

struct stage {
    alignas(16) element w[ROWS][ROW_STEP];
    alignas(16) float x[TOKENS][COLS];
};

/*
 * What a thread copies of LINES rows of a matrix: 16 bytes of every LINES_ONCE-th row, in the same
 * columns of each. There may be fewer rows; the others are left as they are.
 */
template <typename T, unsigned LINES>
struct share {
    enum {
        PIECE = 16 / sizeof(T),
        LINES_ONCE = TERN_CUDA_TILE_THREADS * PIECE / COLS,
        COUNT = (LINES + LINES_ONCE - 1) / LINES_ONCE
    };
    const T *from[COUNT];
    unsigned line, col, lines;
    bool aligned; /* all 16 bytes in all rows */
};

template <typename T, unsigned LINES>
TERN_VERB share<T, LINES> share_of(const T *first, size_t stride, size_t lines) {
    typedef share<T, LINES> S;
    S s;

    s.line = threadIdx.x / (COLS / S::PIECE);
    s.col = threadIdx.x % (COLS / S::PIECE) * S::PIECE;
    s.lines = (unsigned)smaller(lines, LINES);
    s.aligned = is_aligned(first, 16) && stride % S::PIECE == 0;
#pragma unroll
    for (unsigned i = 0; i < S::COUNT; i++)
        s.from[i] = first + (s.line + i * S::LINES_ONCE) * stride + s.col;
    return s;
}

/* Begins to copy the columns from k on to lines `step` apart; columns from `cols` on are +0. */
template <typename T, unsigned LINES>
TERN_VERB void copy(const share<T, LINES> &s, size_t k, size_t cols, T *to, unsigned step) {
    typedef share<T, LINES> S;
    const size_t n = cols - smaller(cols, k + s.col);
    T *piece = to + s.line * step + s.col;

    if (s.aligned && n >= S::PIECE) {
#pragma unroll
        for (unsigned i = 0; i < S::COUNT; i++)
            if (s.line + i * S::LINES_ONCE < s.lines)
                copy16_begin(piece + i * S::LINES_ONCE * step, s.from[i] + k);
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < S::COUNT; i++)
        for (unsigned e = 0; e < S::PIECE && s.line + i * S::LINES_ONCE < s.lines; e++)
            piece[i * S::LINES_ONCE * step + e] = e < n ? s.from[i][k + e] : (T)0;
}

/* Two neighbours as floats. */
TERN_VERB float2 load_pair(const element *p) {
    const uint32_t both = load4(p);
    return make_float2(vf_f16((uint16_t)both), vf_f16((uint16_t)(both >> 16)));
}

TERN_VERB float2 multiply_add(float2 p, float2 w, float2 x) {
    return make_float2(vf_add(p.x, vf_mul(w.x, x.x)), vf_add(p.y, vf_mul(w.y, x.y)));
}

/*
 * Adds a stage: R rows from `row` on, WARP_ROWS apart, times T tokens from `token` on. Zeros that
 * pad it change no sum.
 */
template <unsigned R, unsigned T>
TERN_VERB void add(float2 (&p)[R][T], const stage &s, unsigned row, unsigned token) {
#pragma unroll 2
    for (unsigned step = 0; step < COLS; step += TERN_LANES) {
        const unsigned k = step + threadIdx.x % ROW_THREADS * 2;
        float2 w[R];
#pragma unroll
        for (unsigned r = 0; r < R; r++)
            w[r] = load_pair(&s.w[row + r * WARP_ROWS][k]);
#pragma unroll
        for (unsigned i = 0; i < T; i++) {
            const float2 x = *(const float2 *)&s.x[token + i][k];
#pragma unroll
            for (unsigned r = 0; r < R; r++)
                p[r][i] = multiply_add(p[r][i], w[r], x);
        }
    }
}

/* The sixteen lanes of eight threads, folded; the total is the first thread's. */
TERN_VERB float fold(float2 p) {
    for (unsigned s = ROW_THREADS / 2; s >= 1; s /= 2) {
        p.x = vf_add(p.x, __shfl_down_sync(TERN_FULL_WARP, p.x, s, ROW_THREADS));
        p.y = vf_add(p.y, __shfl_down_sync(TERN_FULL_WARP, p.y, s, ROW_THREADS));
    }
    return vf_add(p.x, p.y);
}

/* The block's tile from row0 and t on; each warp takes R * WARP_ROWS rows times T tokens of it. */
template <unsigned R, unsigned T>
TERN_VERB void tile(const tern_cuda_matmul &m, size_t row0, size_t t, stage *stages) {
    const size_t cols = m.w.cols;
    const unsigned row_warps = ROWS / (R * WARP_ROWS);
    const unsigned warp = threadIdx.x / TERN_CUDA_WARP;
    const unsigned slot = threadIdx.x % TERN_CUDA_WARP / ROW_THREADS;
    const unsigned row = warp % row_warps * (R * WARP_ROWS) + slot;
    const unsigned token = warp / row_warps * T;
    const share<element, ROWS> w = share_of<element, ROWS>(
        (const element *)m.w.data + row0 * cols, cols, m.tile.r1 - row0);
    const share<float, TOKENS> x = share_of<float, TOKENS>(
        m.x.x + t * m.x.x_stride, m.x.x_stride, m.tile.t1 - t);
    float2 p[R][T] = {};

    for (unsigned ahead = 0; ahead < STAGES - 1; ahead++) {
        copy(w, ahead * COLS, cols, stages[ahead].w[0], ROW_STEP);
        copy(x, ahead * COLS, cols, stages[ahead].x[0], COLS);
        copies_commit();
    }
    for (unsigned i = 0; (size_t)i * COLS < cols; i++) {
        const size_t next = ((size_t)i + STAGES - 1) * COLS;
        stage &free = stages[(i + STAGES - 1) % STAGES];
        copies_wait(STAGES - 2);
        __syncthreads();
        if (next < cols) {
            copy(w, next, cols, free.w[0], ROW_STEP);
            copy(x, next, cols, free.x[0], COLS);
        }
        copies_commit();
        if (t + token < m.tile.t1)
            add(p, stages[i % STAGES], row, token);
    }
#pragma unroll
    for (unsigned i = 0; i < T; i++) {
#pragma unroll
        for (unsigned r = 0; r < R; r++) {
            const float y = fold(p[r][i]);
            const size_t at = row0 + row + r * WARP_ROWS;
            if (threadIdx.x % ROW_THREADS == 0 && at < m.tile.r1 && t + token + i < m.tile.t1)
                m.y[(t + token + i) * m.y_stride + at] = y;
        }
    }
    __syncthreads();
}

TERN_KERNEL(TERN_CUDA_TILE_THREADS, tern_gemm_f16_32x16_cuda) {
    __shared__ stage stages[STAGES];
    const tern_cuda_matmul &m = job.products[blockIdx.z];
    const size_t row0 = m.tile.r0 + blockIdx.x * (size_t)ROWS;

    if (row0 >= m.tile.r1) /* another product has more */
        return;
    for (size_t t = m.tile.t0 + blockIdx.y * TOKENS; t < m.tile.t1; t += gridDim.y * TOKENS) {
        if (m.tile.t1 - t > TOKENS / 2)
            tile<4, TOKENS / 2>(m, row0, t, stages);
        else /* all warps at the same tokens */
            tile<2, TOKENS / 2>(m, row0, t, stages);
    }
}
} // namespace code_of_tern_gemm_f16_32x16_cuda
