/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_CUDA_ROWS_CUH
#define TERN_CUDA_ROWS_CUH

/*
 * Functions of a block of TERN_CUDA_ROW_THREADS threads for a row, for kernels that do one of it or
 * several. A row is taken in pieces, of which each thread holds TERN_CUDA_HELD elements in
 * registers, so that all are asked for before the first one is needed. A row that is one piece is
 * read once.
 */

#include "kernels/isa/cuda.cuh"

enum {
    TERN_CUDA_HELD = 8,
    TERN_CUDA_PIECE = TERN_CUDA_HELD * TERN_CUDA_ROW_THREADS,
    TERN_CUDA_ROW_WARPS = TERN_CUDA_ROW_THREADS / TERN_CUDA_WARP
};

/* Shared by the threads of a row; 32 KB. */
typedef struct row_shared {
    float terms[TERN_CUDA_PIECE];
    float factor;
    float floats[TERN_CUDA_ROW_WARPS];
    int32_t integers[TERN_CUDA_ROW_WARPS];
} row_shared;

/* Which element of a piece is held at k. */
TERN_VERB size_t held_at(int k) {
    return (size_t)k * TERN_CUDA_ROW_THREADS + threadIdx.x;
}

/* Elements of the piece that begins at `first`; +0 behind the end. */
TERN_VERB void hold(const float *x, size_t first, size_t n, float *v) {
#pragma unroll
    for (int k = 0; k < TERN_CUDA_HELD; k++)
        v[k] = first + held_at(k) < n ? x[first + held_at(k)] : 0.0f;
}

/* x += more of row t; the last piece stays in v. All of the row is there when it returns. */
TERN_VERB void add_more(const tern_cuda_norm &a, size_t t, float *v) {
    float *x = a.x.data + t * a.x.stride;
    const float *more = a.more.data + t * a.more.stride;
    float m[TERN_CUDA_HELD];

    for (size_t first = 0; first < a.x.n; first += TERN_CUDA_PIECE) {
        hold(x, first, a.x.n, v);
        hold(more, first, a.x.n, m);
#pragma unroll
        for (int k = 0; k < TERN_CUDA_HELD; k++) {
            v[k] = vf_add(v[k], m[k]);
            if (first + held_at(k) < a.x.n)
                x[first + held_at(k)] = v[k];
        }
    }
    __syncthreads();
}

/* 1 / sqrt(mean square + eps). All threads square, sixteen add up out of shared memory. The last
 * piece stays in v. */
TERN_VERB float norm_factor(const tern_cuda_norm &a, size_t t, row_shared &shared, float *v) {
    const float *x = a.x.data + t * a.x.stride;
    const size_t n = a.x.n;
    float p = 0.0f;

    if (a.more.data != NULL)
        add_more(a, t, v);
    for (size_t first = 0; first < n; first += TERN_CUDA_PIECE) {
        if (a.more.data == NULL || n > TERN_CUDA_PIECE)
            hold(x, first, n, v);
#pragma unroll
        for (int k = 0; k < TERN_CUDA_HELD; k++) {
            if (first + held_at(k) < n)
                watch(a.watch, t, v[k]);
            shared.terms[held_at(k)] = vf_mul(v[k], v[k]);
        }
        __syncthreads();
        if (threadIdx.x < TERN_LANES)
            p = lanes_add(p, shared.terms, smaller(n - first, TERN_CUDA_PIECE), threadIdx.x);
        __syncthreads();
    }
    if (threadIdx.x < TERN_CUDA_WARP) {
        p = fold16(p);
        if (threadIdx.x == 0)
            shared.factor = vf_div(1.0f, vf_sqrt(vf_add(vf_div(p, (float)n), a.eps)));
    }
    __syncthreads();
    return shared.factor;
}

/* Root mean square normalization of row t; the last piece of it stays in v. */
TERN_VERB void normalize(const tern_cuda_norm &a, size_t t, row_shared &shared, float *v) {
    const float *x = a.x.data + t * a.x.stride;
    float *y = a.y.data + t * a.y.stride;
    const size_t n = a.x.n;
    float g[TERN_CUDA_HELD];

    hold(a.g, 0, n, g); /* asked for before the sum needs its time */
    const float r = norm_factor(a, t, shared, v);
    for (size_t first = 0; first < n; first += TERN_CUDA_PIECE) {
        if (n > TERN_CUDA_PIECE) {
            hold(x, first, n, v);
            hold(a.g, first, n, g);
        }
#pragma unroll
        for (int k = 0; k < TERN_CUDA_HELD; k++) {
            v[k] = vf_mul(vf_mul(v[k], r), g[k]);
            if (first + held_at(k) < n)
                y[first + held_at(k)] = v[k];
        }
    }
}

/* The largest magnitude of row t; v holds it already if it is one piece. NaNs do not count. */
TERN_VERB float row_largest(const tern_device_rows &rows, size_t t, row_shared &shared, float *v) {
    const float *x = rows.data + t * rows.stride;
    float m = 0.0f;

    for (size_t first = 0; first < rows.n; first += TERN_CUDA_PIECE) {
        if (rows.n > TERN_CUDA_PIECE)
            hold(x, first, rows.n, v);
#pragma unroll
        for (int k = 0; k < TERN_CUDA_HELD; k++)
            m = vf_max(vf_abs(v[k]), m);
    }
    m = warp_max(m);
    if (threadIdx.x % TERN_CUDA_WARP == 0)
        shared.floats[threadIdx.x / TERN_CUDA_WARP] = m;
    __syncthreads();
    return warp_max(shared.floats[threadIdx.x % TERN_CUDA_ROW_WARPS]);
}

/* The block's sum of v, for thread 0. */
TERN_VERB int32_t row_sum(int32_t v, row_shared &shared) {
    v = warp_sum(v, 1, 16);
    if (threadIdx.x % TERN_CUDA_WARP == 0)
        shared.integers[threadIdx.x / TERN_CUDA_WARP] = v;
    __syncthreads();
    return threadIdx.x < TERN_CUDA_WARP
               ? warp_sum(shared.integers[threadIdx.x % TERN_CUDA_ROW_WARPS], 1, 16)
               : 0;
}

/* Codes of row t with one scale; v holds the row if it is one piece. What a thread reads of a
 * longer one it has written itself, where a norm comes before. */
TERN_VERB void quantize(const tern_cuda_quantize &a, size_t t, row_shared &shared, float *v) {
    const float *x = a.x.data + t * a.x.stride;
    int8_t *q = a.out.q + t * a.out.q_stride;
    const size_t end = (a.x.n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const double amax = (double)row_largest(a.x, t, shared, v);
    const float s = (float)__ddiv_rn(127.0, amax > 1e-5 ? amax : 1e-5);
    int32_t sum = 0;

    for (size_t first = 0; first < end; first += TERN_CUDA_PIECE) {
        if (a.x.n > TERN_CUDA_PIECE)
            hold(x, first, a.x.n, v);
#pragma unroll
        for (int k = 0; k < TERN_CUDA_HELD; k++) {
            const size_t i = first + held_at(k);
            const int32_t code = i < a.x.n ? vi_quantize(vf_mul(v[k], s), -128.0f) : 0;
            if (i < end)
                q[i] = (int8_t)code;
            sum += code;
        }
    }
    sum = row_sum(sum, shared);
    if (threadIdx.x == 0) {
        a.out.s[t] = s;
        a.out.sum[t] = sum;
    }
}

#endif
