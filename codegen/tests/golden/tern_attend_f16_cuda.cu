/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_attend_f16_cuda of kernels/kernels.toml
 * and template kernels/cuda/attend.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"

namespace code_of_tern_attend_f16_cuda {
/*
 * Causal attention: one block of threads for each query head of a token. Chunks of
 * TERN_ATTEND_CHUNK positions follow each other and are merged in order (docs/numerics.md). Sixteen
 * threads take the virtual lanes of a score; an element of the output belongs to one thread.
 */

typedef uint16_t element;

/* What the threads of a head share. */
struct chunk_weights {
    float e[TERN_ATTEND_CHUNK]; /* scores, then weights */
    float largest, sum;
};

/* e[j] = (q . k[j]) * scale of the n positions at k; minus infinity of the first, hidden ones. */
TERN_VERB void score(const tern_device_attend_pages &a, const float *q, const element *k, size_t n,
                            size_t hidden, chunk_weights &c) {
    const float never = vf_mul(-0x1p127f, 0x1p127f);
    const unsigned lane = threadIdx.x % TERN_LANES;

    for (size_t j0 = 0; j0 < n; j0 += TERN_CUDA_ATTEND_THREADS / TERN_LANES) {
        const size_t j = j0 + threadIdx.x / TERN_LANES;
        const element *row = k + smaller(j, n - 1) * a.dim; /* all threads stay for the fold */
        float p = 0.0f;
        for (size_t i = lane; i < a.dim; i += TERN_LANES)
            p = vf_add(p, vf_mul(vf_round13(q[i]), vf_f16(row[i])));
        p = fold16(p);
        if (lane == 0 && j < n)
            c.e[j] = j < hidden ? never : vf_mul(p, a.scale);
    }
}

/* e[j] = exp(e[j] - largest), and their sum. One warp. */
TERN_VERB void weigh(size_t n, chunk_weights &c) {
    float m = c.e[0];
    float p = 0.0f;

    for (size_t j = threadIdx.x; j < n; j += TERN_CUDA_WARP)
        m = vf_max(c.e[j], m);
    m = warp_max(m);
    for (size_t j = threadIdx.x; j < n; j += TERN_CUDA_WARP)
        c.e[j] = vf_round13(vf_exp(vf_sub(c.e[j], m)));
    __syncwarp();
    if (threadIdx.x < TERN_LANES)
        p = lanes_add(p, c.e, n, threadIdx.x);
    p = fold16(p);
    if (threadIdx.x == 0) {
        c.largest = m;
        c.sum = p;
    }
}

/* The keys, or the values, of a chunk of one head. */
TERN_VERB const element *chunk_at(const tern_device_pages &p, const uint32_t *table, size_t head,
                                  size_t chunk) {
    const size_t page = table == nullptr ? chunk : table[chunk];
    return (const element *)((const uint8_t *)p.data + page * p.page_stride + head * p.head_stride);
}

TERN_VERB void attend_head(const tern_cuda_attend &job, size_t t, size_t head, chunk_weights &c) {
    const tern_device_attend_pages &a = job.a;
    const size_t group = a.heads / a.kv_heads;
    const float *q = a.q + t * a.q_stride + head * a.dim;
    const uint32_t *table = a.at == nullptr ? nullptr : a.k.tables[a.at[t].sequence];
    float *out = a.out + t * a.out_stride + head * a.dim;
    const size_t positions = (a.at == nullptr ? job.before + t : a.at[t].position) + 1;
    const size_t begin = a.window > 0 && positions > a.window ? positions - a.window : 0;
    const size_t begin_chunk = begin - begin % TERN_ATTEND_CHUNK;
    float largest = 0.0f;
    float sum = 0.0f;

    for (size_t first = begin_chunk; first < positions; first += TERN_ATTEND_CHUNK) {
        const size_t n = smaller(positions - first, TERN_ATTEND_CHUNK);
        const element *v = chunk_at(a.v, table, head / group, first / TERN_ATTEND_CHUNK);
        const size_t hidden = begin > first ? begin - first : 0;
        score(a, q, chunk_at(a.k, table, head / group, first / TERN_ATTEND_CHUNK), n, hidden, c);
        __syncthreads();
        if (threadIdx.x < TERN_CUDA_WARP)
            weigh(n, c);
        __syncthreads();
        const float new_largest = first == begin_chunk || c.largest > largest ? c.largest : largest;
        const float keep = vf_exp(vf_sub(largest, new_largest)); /* not used in the first chunk */
        const float take = vf_exp(vf_sub(c.largest, new_largest));
        for (size_t i = threadIdx.x; i < a.dim; i += TERN_CUDA_ATTEND_THREADS) {
            float o = 0.0f;
            for (size_t j = 0; j < n; j++)
                o = vf_add(o, vf_mul(c.e[j], vf_f16(v[j * a.dim + i])));
            out[i] = first == begin_chunk ? o : vf_add(vf_mul(out[i], keep), vf_mul(o, take));
        }
        sum = first == begin_chunk ? c.sum : vf_add(vf_mul(sum, keep), vf_mul(c.sum, take));
        largest = new_largest;
        __syncthreads(); /* the next chunk writes c */
    }
    for (size_t i = threadIdx.x; i < a.dim; i += TERN_CUDA_ATTEND_THREADS)
        out[i] = vf_div(out[i], sum);
}

TERN_KERNEL(TERN_CUDA_ATTEND_THREADS, tern_attend_f16_cuda) {
    __shared__ chunk_weights c;

    for (size_t t = blockIdx.y; t < job.attend.a.tokens; t += gridDim.y)
        for (size_t head = blockIdx.x; head < job.attend.a.heads; head += gridDim.x)
            attend_head(job.attend, t, head, c);
}
} // namespace code_of_tern_attend_f16_cuda
