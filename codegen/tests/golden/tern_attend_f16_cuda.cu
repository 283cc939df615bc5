/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_attend_f16_cuda of kernels/kernels.toml
 * and template kernels/cuda/attend.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_attend_f16_cuda {
/*
 * Causal attention. A block of threads takes one or several query heads of a token that read the
 * same keys and values. Each of its warps computes chunks of TERN_ATTEND_CHUNK positions on its
 * own; what the warps have is then merged in the order of the chunks (docs/numerics.md).
 */

enum {
    HALF_WARP = TERN_CUDA_WARP / 2, /* positions that a warp multiplies by: one a pair of threads */
    EIGHT = TERN_LANES / 2,         /* virtual lanes of a thread */
    FOUR = 4,                       /* columns of the output that a thread adds */
    STATES = TERN_CUDA_ATTEND_STATES,
    /* Loads that are under way before the sums that need them: steps of keys, rows of values. */
    STEPS_AHEAD = 4,
    ROWS_AHEAD = 16
};

typedef uint16_t element;

/* What the threads of a block share. */
struct block_memory {
    alignas(16) float floats[TERN_CUDA_ATTEND_FLOATS]; /* queries, then outputs */
    alignas(16) float weights[STATES][TERN_ATTEND_CHUNK]; /* scores first; [warp][query] */
    float largest[STATES], sum[STATES];
};

/* What a block works on. */
struct task {
    const tern_device_attend_pages &a;
    const uint32_t *table;
    unsigned t, head, queries; /* the token, its first query head, how many heads */
    unsigned kv_head;
    unsigned begin, end;   /* chunks that the token sees */
    unsigned hidden, last; /* positions: those unseen of the first one, those seen of the last */
    unsigned dim, stride;  /* of a row in shared memory: dim, up to a multiple of TERN_LANES */
    block_memory &m;
};

/* ---- elements in memory ---- */

/* Eight elements and four. */
typedef uint4 packed8;
typedef uint2 packed4;

TERN_VERB packed8 load_whole8(const element *p) {
    return load16(p);
}

TERN_VERB packed4 load_whole4(const element *p) {
    return load8(p);
}

TERN_VERB uint32_t load_two(const element *p, unsigned n) {
    return (n > 0 ? p[0] : 0u) | (n > 1 ? (uint32_t)p[1] << 16 : 0u);
}

/* n elements, or none; then +0. */
TERN_VERB packed4 load_part4(const element *p, unsigned n) {
    return make_uint2(load_two(p, n), load_two(p + 2, n > 2 ? n - 2 : 0));
}

TERN_VERB packed8 load_part8(const element *p, unsigned n) {
    const packed4 low = load_part4(p, n);
    const packed4 high = load_part4(p + 4, n > 4 ? n - 4 : 0);
    return make_uint4(low.x, low.y, high.x, high.y);
}

TERN_VERB float4 widen4(packed4 v) {
    return make_float4(vf_f16((uint16_t)v.x), vf_f16((uint16_t)(v.x >> 16)), vf_f16((uint16_t)v.y),
                       vf_f16((uint16_t)(v.y >> 16)));
}

TERN_VERB float4 widen_low(packed8 v) {
    return widen4(make_uint2(v.x, v.y));
}

TERN_VERB float4 widen_high(packed8 v) {
    return widen4(make_uint2(v.z, v.w));
}

/* Elements i .. of a row. WHOLE: it begins at a multiple of 16 bytes, dim is one of TERN_LANES. */
template <bool WHOLE> TERN_VERB packed8 load_row8(const element *row, unsigned i, unsigned dim) {
    return WHOLE ? load_whole8(row + i) : load_part8(row + i, i < dim ? dim - i : 0);
}

template <bool WHOLE> TERN_VERB packed4 load_row4(const element *row, unsigned i, unsigned dim) {
    return WHOLE ? load_whole4(row + i) : load_part4(row + i, dim - i);
}

/* The keys, or the values, of a page. */
TERN_VERB const element *rows_of(const task &w, const tern_device_pages &p, size_t page) {
    return (const element *)((const uint8_t *)p.data + page * p.page_stride +
                             w.kv_head * p.head_stride);
}

/* ---- scores and weights ---- */

/* p[0 .. 3] += q * k */
TERN_VERB void multiply_add(float *p, float4 q, float4 k) {
    p[0] = vf_add(p[0], vf_mul(q.x, k.x));
    p[1] = vf_add(p[1], vf_mul(q.y, k.y));
    p[2] = vf_add(p[2], vf_mul(q.z, k.z));
    p[3] = vf_add(p[3], vf_mul(q.w, k.w));
}

/*
 * The sums of two positions, of which a pair of threads has eight virtual lanes each: the even
 * thread gets the total of `first`, the odd one that of `second`.
 */
TERN_VERB float fold_pair(const float *first, const float *second) {
    const bool odd = threadIdx.x % 2 != 0;
    float p[EIGHT];

#pragma unroll
    for (int i = 0; i < EIGHT; i++) {
        const float other = __shfl_xor_sync(TERN_FULL_WARP, odd ? first[i] : second[i], 1);
        p[i] = vf_add(odd ? second[i] : first[i], other);
    }
#pragma unroll
    for (int s = EIGHT / 2; s >= 1; s /= 2)
#pragma unroll
        for (int i = 0; i < s; i++)
            p[i] = vf_add(p[i], p[i + s]);
    return p[0];
}

/* p += q * k of STEPS times TERN_LANES columns from column i on, all keys loaded first. */
template <int QUERIES, int ROWS, int STEPS, bool WHOLE>
TERN_VERB void score_steps(const task &w, float (*p)[QUERIES][EIGHT], const element *const *row,
                           unsigned i) {
    packed8 k[STEPS][ROWS];

#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            k[s][r] = load_row8<WHOLE>(row[r], i + s * TERN_LANES, w.dim);
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int query = 0; query < QUERIES; query++) {
            const float *q = w.m.floats + query * w.stride + i + s * TERN_LANES;
            const float4 low = *(const float4 *)q;
            const float4 high = *(const float4 *)(q + 4);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                multiply_add(p[r][query], low, widen_low(k[s][r]));
                multiply_add(p[r][query] + 4, high, widen_high(k[s][r]));
            }
        }
}

/*
 * e[j] = (q . k[j]) * scale of ROWS * HALF_WARP positions from j0 on, for each query; minus
 * infinity of those below `hidden`. Rows from n on are not read.
 */
template <int QUERIES, int ROWS, bool WHOLE>
TERN_VERB void score_rows(const task &w, const element *k, unsigned j0, unsigned n, unsigned hidden,
                          float (*e)[TERN_ATTEND_CHUNK]) {
    enum { STEPS = WHOLE && QUERIES == 1 ? STEPS_AHEAD : 1 };
    const float never = vf_mul(-0x1p127f, 0x1p127f);
    const unsigned half = threadIdx.x % 2;
    const unsigned j = j0 + threadIdx.x % TERN_CUDA_WARP / 2;
    const element *row[ROWS];
    float p[ROWS][QUERIES][EIGHT] = {};

#pragma unroll
    for (unsigned r = 0; r < ROWS; r++)
        row[r] = k + smaller(j + r * HALF_WARP, n - 1) * w.dim;
    unsigned i = half * EIGHT;
#pragma unroll 1
    for (; i + (STEPS - 1) * TERN_LANES < w.stride; i += STEPS * TERN_LANES)
        score_steps<QUERIES, ROWS, STEPS, WHOLE>(w, p, row, i);
#pragma unroll 1
    for (; i < w.stride; i += TERN_LANES)
        score_steps<QUERIES, ROWS, 1, WHOLE>(w, p, row, i);
#pragma unroll
    for (unsigned r = 0; r < ROWS; r += 2)
#pragma unroll
        for (int query = 0; query < QUERIES; query++) {
            const unsigned at = j + (r + half) * HALF_WARP;
            const float sum = fold_pair(p[r][query], p[r + 1][query]);
            e[query][at] = at < hidden ? never : vf_mul(sum, w.a.scale);
        }
}

/* e[j] = exp(e[j] - largest) of n scores, +0 of the rest of the chunk; and their sum. */
TERN_VERB void weigh(float *e, unsigned n, float *largest, float *sum) {
    const unsigned lane = threadIdx.x % TERN_CUDA_WARP;
    const unsigned next = lane + TERN_CUDA_WARP;
    const float low = lane < n ? e[lane] : e[0];
    const float high = next < n ? e[next] : e[0];
    const float m = warp_max(vf_max(high, vf_max(low, e[0])));

    __syncwarp(); /* all have read e */
    e[lane] = lane < n ? vf_round13(vf_exp(vf_sub(low, m))) : 0.0f;
    e[next] = next < n ? vf_round13(vf_exp(vf_sub(high, m))) : 0.0f;
    __syncwarp();
    float p = 0.0f;
#pragma unroll
    for (unsigned j = 0; j < TERN_ATTEND_CHUNK; j += TERN_LANES)
        p = vf_add(p, e[j + lane % TERN_LANES]);
    p = fold16(p);
    if (lane == 0) {
        *largest = m;
        *sum = p;
    }
}

/* ---- outputs of a chunk ---- */

/* ROWS rows of the values from j0 on; ALL: each is below n. Adds four columns, in order. */
template <int QUERIES, unsigned ROWS, bool ALL>
TERN_VERB void add_rows(float (*o)[FOUR], const packed4 *v, const float (*e)[TERN_ATTEND_CHUNK],
                        unsigned j0, unsigned n) {
#pragma unroll
    for (unsigned j = 0; j < ROWS; j += 4) {
#pragma unroll
        for (int i = 0; i < QUERIES; i++) {
            const float4 four = *(const float4 *)(e[i] + j0 + j);
            const float weights[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (unsigned r = 0; r < 4; r++)
                if (ALL || j0 + j + r < n)
                    multiply_add(o[i], make_float4(weights[r], weights[r], weights[r], weights[r]),
                                 widen4(v[j + r]));
        }
    }
}

/* out[i] = the sum of e[j] * v[j][i] over n positions, j increasing, for each query. */
template <int QUERIES, bool WHOLE>
TERN_VERB void add_values(const task &w, const element *v, unsigned n,
                          const float (*e)[TERN_ATTEND_CHUNK], float *out) {
    enum { AHEAD = WHOLE ? ROWS_AHEAD : 4 };
    const unsigned first = threadIdx.x % TERN_CUDA_WARP * FOUR;

    for (unsigned c = first; c < w.dim; c += TERN_CUDA_WARP * FOUR) {
        float o[QUERIES][FOUR] = {};
#pragma unroll 1
        for (unsigned j0 = 0; j0 < n; j0 += AHEAD) {
            packed4 values[AHEAD];
#pragma unroll
            for (unsigned j = 0; j < AHEAD; j++)
                values[j] = load_row4<WHOLE>(v + smaller(j0 + j, n - 1) * w.dim, c, w.dim);
            if (j0 + AHEAD <= n)
                add_rows<QUERIES, AHEAD, true>(o, values, e, j0, n);
            else
                add_rows<QUERIES, AHEAD, false>(o, values, e, j0, n);
        }
#pragma unroll
        for (int i = 0; i < QUERIES; i++)
            *(float4 *)(out + i * w.stride + c) = make_float4(o[i][0], o[i][1], o[i][2], o[i][3]);
    }
}

/* What one warp computes: the state of a chunk for each query, to the warp's places. */
template <int QUERIES, bool WHOLE> TERN_VERB void compute_chunk(const task &w, unsigned chunk) {
    enum { ROWS = QUERIES == 1 ? 4 : 2 };
    const size_t page = w.table == nullptr ? chunk : w.table[chunk];
    const unsigned n = chunk + 1 == w.end ? w.last : (unsigned)TERN_ATTEND_CHUNK;
    const unsigned hidden = chunk == w.begin ? w.hidden : 0;
    const unsigned state = threadIdx.x / TERN_CUDA_WARP * QUERIES;
    float(*e)[TERN_ATTEND_CHUNK] = w.m.weights + state;

    for (unsigned j0 = 0; j0 < n; j0 += ROWS * HALF_WARP)
        score_rows<QUERIES, ROWS, WHOLE>(w, rows_of(w, w.a.k, page), j0, n, hidden, e);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < QUERIES; i++)
        weigh(e[i], n, &w.m.largest[state + i], &w.m.sum[state + i]);
    add_values<QUERIES, WHOLE>(w, rows_of(w, w.a.v, page), n, e,
                               w.m.floats + (2 * QUERIES + state) * w.stride);
}

/* ---- merging ---- */

/* What is merged so far, for the query that a warp serves. */
struct merged {
    float largest, sum;
};

/* The factors of chunk `lane` and of what lies before it. */
struct factors {
    float keep, take;
};

/* Merges `count` chunks. The first one of all meets sums of +0, which any factor leaves. */
TERN_VERB factors merge_sums(merged &all, float largest, float sum, unsigned count, bool is_first) {
    const unsigned lane = threadIdx.x % TERN_CUDA_WARP;
    float before = 0.0f;
    float after = 0.0f;

    if (is_first)
        all = merged{__shfl_sync(TERN_FULL_WARP, largest, 0), 0.0f};
    for (unsigned c = 0; c < count; c++) {
        const float next = vf_max(__shfl_sync(TERN_FULL_WARP, largest, (int)c), all.largest);
        before = lane == c ? all.largest : before;
        after = lane == c ? next : after;
        all.largest = next;
    }
    const factors f = {vf_exp(vf_sub(before, after)), vf_exp(vf_sub(largest, after))};
    for (unsigned c = 0; c < count; c++)
        all.sum = vf_add(vf_mul(all.sum, __shfl_sync(TERN_FULL_WARP, f.keep, (int)c)),
                         vf_mul(__shfl_sync(TERN_FULL_WARP, sum, (int)c),
                                __shfl_sync(TERN_FULL_WARP, f.take, (int)c)));
    return f;
}

/*
 * Merges the outputs of `count` chunks from `first` on, in order. Warps share out the queries, then
 * their columns. After the last chunk the results are written.
 */
template <int QUERIES>
TERN_VERB void merge(const task &w, merged &all, unsigned first, unsigned count) {
    const unsigned warp = threadIdx.x / TERN_CUDA_WARP, lane = threadIdx.x % TERN_CUDA_WARP;
    const unsigned warps = blockDim.x / TERN_CUDA_WARP / QUERIES; /* of a query */
    const unsigned query = warp / warps;
    const unsigned state = (unsigned)smaller(lane, count - 1) * QUERIES + query;
    const bool is_first = first == w.begin, is_last = first + count == w.end;
    const factors f = merge_sums(all, w.m.largest[state], w.m.sum[state], count, is_first);
    float *running = w.m.floats + (QUERIES + query) * w.stride;
    const float *chunks = w.m.floats + (2 * QUERIES + query) * w.stride;

    for (unsigned c = warp % warps * TERN_CUDA_WARP; c < w.dim; c += warps * TERN_CUDA_WARP) {
        const unsigned i = (unsigned)smaller(c + lane, w.dim - 1); /* all stay for the shuffles */
        float o = is_first ? 0.0f : running[i];
#pragma unroll 4
        for (unsigned k = 0; k < count; k++)
            o = vf_add(vf_mul(o, __shfl_sync(TERN_FULL_WARP, f.keep, (int)k)),
                       vf_mul(chunks[k * QUERIES * w.stride + i],
                              __shfl_sync(TERN_FULL_WARP, f.take, (int)k)));
        if (c + lane < w.dim && !is_last)
            running[i] = o;
        else if (c + lane < w.dim && query < w.queries)
            w.a.out[w.t * w.a.out_stride + (w.head + query) * w.a.dim + i] = vf_div(o, all.sum);
    }
}

/* ---- a block ---- */

/* The queries to shared memory, as factors; +0 behind each. Past the last one it comes again. */
template <int QUERIES> TERN_VERB void load_queries(const task &w) {
    for (unsigned query = 0; query < QUERIES; query++) {
        const size_t head = w.head + smaller(query, w.queries - 1);
        const float *q = w.a.q + w.t * w.a.q_stride + head * w.a.dim;
        for (unsigned i = threadIdx.x; i < w.stride; i += blockDim.x)
            w.m.floats[query * w.stride + i] = i < w.dim ? vf_round13(q[i]) : 0.0f;
    }
    __syncthreads();
}

/* One token's query heads of a task, QUERIES at most. */
template <int QUERIES, bool WHOLE> TERN_VERB void attend_heads(const task &w) {
    const unsigned warp = threadIdx.x / TERN_CUDA_WARP;
    const unsigned room = TERN_CUDA_ATTEND_FLOATS / (QUERIES * w.stride) - 2;
    const unsigned at_once = (unsigned)smaller(blockDim.x / TERN_CUDA_WARP, room);
    merged all = {0.0f, 0.0f};

    load_queries<QUERIES>(w);
    for (unsigned first = w.begin; first < w.end; first += at_once) {
        const unsigned count = (unsigned)smaller(at_once, w.end - first);
        if (warp < count)
            compute_chunk<QUERIES, WHOLE>(w, first + warp);
        __syncthreads();
        merge<QUERIES>(w, all, first, count);
        __syncthreads(); /* the next chunks, and the next queries, take the same places */
    }
}

/* Tile `tile` of the heads of token t: QUERIES heads of a group, or what the group has left. */
template <int QUERIES>
TERN_VERB task task_of(const tern_cuda_attend &job, unsigned t, unsigned tile, block_memory &m) {
    const tern_device_attend_pages &a = job.a;
    const unsigned group = (unsigned)(a.heads / a.kv_heads);
    const unsigned tiles = (group + QUERIES - 1) / QUERIES;
    const unsigned in_group = tile % tiles * QUERIES;
    const size_t positions = (a.at == nullptr ? job.before + t : a.at[t].position) + 1;
    const size_t begin = a.window > 0 && positions > a.window ? positions - a.window : 0;

    return task{a,
                a.at == nullptr ? nullptr : a.k.tables[a.at[t].sequence],
                t,
                tile / tiles * group + in_group,
                (unsigned)smaller(group - in_group, QUERIES),
                tile / tiles,
                (unsigned)(begin / TERN_ATTEND_CHUNK),
                (unsigned)((positions - 1) / TERN_ATTEND_CHUNK + 1),
                (unsigned)(begin % TERN_ATTEND_CHUNK),
                (unsigned)((positions - 1) % TERN_ATTEND_CHUNK + 1),
                (unsigned)a.dim,
                (unsigned)(a.dim + TERN_LANES - 1) / TERN_LANES * TERN_LANES,
                m};
}

/* Token by token; the last ones of a call, which often see most, come first. */
template <int QUERIES, bool WHOLE>
TERN_VERB void attend_tokens(const tern_cuda_attend &job, block_memory &m) {
    const unsigned tiles = (unsigned)((job.a.heads / job.a.kv_heads + QUERIES - 1) / QUERIES);

    const unsigned tokens = (unsigned)job.a.tokens;

    for (unsigned y = blockIdx.y; y < tokens; y += gridDim.y)
        for (unsigned x = blockIdx.x; x < (unsigned)job.a.kv_heads * tiles; x += gridDim.x)
            attend_heads<QUERIES, WHOLE>(task_of<QUERIES>(job, tokens - 1 - y, x, m));
}

TERN_KERNEL(TERN_CUDA_ATTEND_THREADS, tern_attend_f16_cuda) {
    __shared__ block_memory m;

    if (job.attend.queries != 1)
        attend_tokens<TERN_CUDA_ATTEND_QUERIES, true>(job.attend, m);
    else if (job.attend.is_whole)
        attend_tokens<1, true>(job.attend, m);
    else
        attend_tokens<1, false>(job.attend, m);
}
} // namespace code_of_tern_attend_f16_cuda
