/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_attend_f16_avx512 of kernels/kernels.toml
 * and template kernels/attend.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_attend_chunks_fn tern_attend_f16_avx512_chunks;
tern_attend_merge_fn tern_attend_f16_avx512_merge;
tern_attend_finish_fn tern_attend_f16_avx512_finish;

/*
 * Causal attention of the query heads of some tokens over one key/value head whose cache holds
 * halves, in chunks of TERN_ATTEND_CHUNK positions that are merged in order (docs/numerics.md).
 * Up to four heads go together: what is read of the cache is widened once for them.
 * The first four of several tokens' heads keep it for the others.
 */
#include "kernels/isa/avx512.h"

#include "kernels/attend.h"
#include "kernels/isa/vmath.h"

enum {
    TILE_HEADS = TERN_ATTEND_TILE,
    SUMS = 16, /* positions whose lanes are folded together */
    FOLDED = 16,                   /* lanes that are left of a score then */
    SUMS_FLOATS = TERN_ATTEND_HEADS * SUMS * FOLDED
};

/* A cache row, the keys or values of one position, is dim elements. */
typedef uint16_t element;

typedef struct tile_operands {
    const float *all; /* [heads][tern_attend_padded(dim)] query heads, rounded to 13 bits */
    const float *q[TILE_HEADS];
    float *wide; /* keys of SUMS positions, or some columns of the values of a chunk, as floats */
    float *sums; /* [TERN_ATTEND_HEADS][SUMS][FOLDED] */
    float scale;
} tile_operands;

static inline vf cached(const element *row, size_t i, size_t offset) {
    return vf_load_f16(row + i + offset);
}

static inline vf cached_n(const element *row, size_t i, size_t offset, size_t n) {
    return vf_load_f16_n(row + i + offset, n);
}

/*
 * Some query heads, of one token or several that follow each other, over one chunk. While a tile
 * computes it asks for memory that is read soon, a little with every step: the caches' own guesses
 * come too late, and more requests at once than a core keeps in flight hold everything up.
 * The first tile of a chunk asks for its values, the last one for the next keys: no further ahead,
 * since two chunks of these elements are more than a first-level cache holds.
 */
typedef struct tile {
    size_t n, dim;
    size_t seen[TILE_HEADS]; /* positions of the chunk, not decreasing */
    const element *k, *v;           /* the chunk's rows */
    const element *by_score;  /* score asks for as many bytes here as it reads of the keys, */
    const element *by_gather; /* gather here; in the caches already where there is nothing to ask */
    float largest[TILE_HEADS], sum[TILE_HEADS];
    float *s;     /* [TILE_HEADS][TERN_ATTEND_CHUNK] scores, then weights */
    float *parts; /* [TILE_HEADS] states, before they are merged */
    tile_operands own;
} tile;

/* What all tiles of a call share; `room` is 64-byte aligned. */
static tile_operands share(const tern_attend_args *a, float *room);

/* Takes up the tile's heads, of which the first is head h0 of all tokens'. */
static void take_heads(const tern_attend_args *a, size_t h0, tile *t);

/* The scores of the tile's heads, each as far as the last one sees. */
static void score(const tile *t);

/* The weighted values of the tile's heads, to o[h * tern_attend_state(dim) + i]. */
static void gather(const tile *t, float *o);

/* Asks for memory that is read soon; what lies after the cache does no harm. */
/* It goes into the second-level cache, which can wait for more lines at once than the first. */
static inline void ask(const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)from + i, 0, 2);
}

static void add_mask(float *s, const float *mask, size_t n) {
    for (size_t j = 0; j < n; j++)
        s[j] += mask[j];
}

/* Hides the positions before a token's window: the first ones of the first chunk. */
static void hide(float *s, const tern_attend_args *a, size_t token) {
    const size_t seen = a->heads.positions + token;
    const size_t hidden = seen > a->window ? seen - a->window : 0;
    for (size_t j = 0; j < hidden && j < TERN_ATTEND_CHUNK; j++)
        s[j] = -INFINITY;
}

/*
 * The largest of n scores; those after are set to the first, so that whole vectors can be read. A
 * NaN in front stays, others are passed over: every lane begins with the first score.
 */
static inline float largest_of(float *s, size_t n) {
    vf m = vf_set1(s[0]);
    for (size_t j = n; j < (n + TERN_LANES - 1) / TERN_LANES * TERN_LANES; j++)
        s[j] = s[0];
    for (size_t j = 0; j < n; j += 16)
        m = vf_max(vf_load(s + j), m);
    return vf_hmax(m);
}

/* The weight of a score that is x beside the largest, to 13 bits. */
static inline vf weight(vf x) {
    return vf_round13(vf_exp(x));
}

/* The weights of n scores of a chunk in place, zeros after; returns their sum. */
static inline float weigh(float *s, size_t n, float m) {
    const vf largest = vf_set1(m);
    vf sum0 = vf_zero();
    size_t j = 0;
    for (; j + TERN_LANES <= n; j += TERN_LANES) {
        const vf e0 = weight(vf_sub(vf_load(s + j + 0), largest));
        vf_store(s + j + 0, e0);
        sum0 = vf_add(sum0, e0);
    }
    if (j < n) {
        const vf e0 = vf_first_n(weight(vf_sub(vf_load(s + j + 0), largest)),
                                tail_lanes(n - j, 0, 16));
        vf_store(s + j + 0, e0);
        sum0 = vf_add(sum0, e0);
    }
    return vf_sum16(sum0);
}

/* total = total * a + part * b */
static inline void blend(float *total, float a, const float *part, float b, size_t dim) {
    const vf va = vf_set1(a);
    const vf vb_ = vf_set1(b);
    for (size_t i = 0; i < dim; i += 16) { /* both are padded to whole vectors */
        const vf kept = vf_mul(vf_load(total + i), va);
        vf_store(total + i, vf_add(kept, vf_mul(vf_load(part + i), vb_)));
    }
}

/* Merges n <= TILE_HEADS states that follow into those of the heads so far. */
static void merge_heads(float *total, const float *part, size_t n, size_t dim) {
    const size_t stride = tern_attend_state(dim);
    const size_t at = tern_attend_padded(dim);
    float x[2 * TILE_HEADS < TERN_LANES ? TERN_LANES : 2 * TILE_HEADS] =
        {0.0f}; /* what exp is taken of: the old states', then the new ones' */
    for (size_t h = 0; h < n; h++) {
        const float old = total[h * stride + at];
        const float new = part[h * stride + at];
        const float m = new > old ? new : old;
        x[h] = old - m;
        x[n + h] = new - m;
        total[h * stride + at] = m;
    }
    for (size_t i = 0; i < 2 * n; i += 16)
        vf_store(x + i, vf_exp(vf_load(x + i)));
    for (size_t h = 0; h < n; h++) {
        float *const sum = total + h * stride + at + 1;
        const float keep = x[h];
        const float take = x[n + h];
        blend(total + h * stride, keep, part + h * stride, take, dim);
        *sum = *sum * keep + part[h * stride + at + 1] * take;
    }
}

static inline void divide(const float *total, float sum, size_t dim, float *out) {
    const vf divisor = vf_set1(sum);
    size_t i = 0;
    for (; i + 16 <= dim; i += 16)
        vf_store(out + i, vf_div(vf_load(total + i), divisor));
    if (i < dim)
        vf_store_n(out + i, vf_div(vf_load(total + i), divisor), dim - i);
}

/* Head h of all tokens' heads. */
static inline const float *query(const tern_attend_args *a, size_t h) {
    const size_t group = a->heads.group;
    return a->q + h / group * a->q_stride + h % group * a->heads.dim;
}

/* The rows of a chunk of the keys or values. */
static inline const element *rows_of(const tern_attend_args *a, const void *rows, size_t chunk) {
    const size_t page = a->pages ? a->pages[chunk] : chunk;
    const void *const at = (const char *)rows + page * a->page_stride;
    return at;
}

/* The tile of a chunk that begins with head h0 of all tokens', and its scores as weights. */
static void weigh_tile(const tern_attend_args *a, size_t chunk, size_t h0, tile *t) {
    const size_t first = chunk * TERN_ATTEND_CHUNK;
    const size_t group = a->heads.group;
    const size_t left = a->heads.tokens * group - h0;
    const bool ends = left <= TILE_HEADS && chunk + 1 < tern_attend_chunks(&a->heads);
    t->n = left < TILE_HEADS ? left : TILE_HEADS;
    t->k = rows_of(a, a->k, chunk);
    t->v = rows_of(a, a->v, chunk);
    t->by_score = h0 == 0 ? t->v : t->k;
    t->by_gather = rows_of(a, a->k, chunk + ends);
    for (size_t h = 0; h < t->n; h++) {
        const size_t seen = a->heads.positions + (h0 + h) / group - first;
        t->seen[h] = seen < TERN_ATTEND_CHUNK ? seen : TERN_ATTEND_CHUNK;
    }
    take_heads(a, h0, t);
    score(t);
    for (size_t h = 0; h < t->n; h++) {
        float *const s = t->s + h * TERN_ATTEND_CHUNK;
        if (a->mask)
            add_mask(s, a->mask + (h0 + h) / group * a->mask_stride + first, t->seen[h]);
        if (a->window > 0 && chunk == 0)
            hide(s, a, (h0 + h) / group);
        t->largest[h] = largest_of(s, t->seen[h]);
    }
    for (size_t h = 0; h < t->n; h++)
        t->sum[h] = weigh(t->s + h * TERN_ATTEND_CHUNK, t->seen[h], t->largest[h]);
}

/* The first of all tokens' heads that sees the chunk. */
static size_t first_head(const tern_attend_heads *heads, size_t chunk) {
    const size_t first = chunk * TERN_ATTEND_CHUNK;
    return first < heads->positions ? 0 : (first - heads->positions + 1) * heads->group;
}

/* One chunk for all heads that see it; its states become `states`, or are merged into them. */
static void attend_chunk(const tern_attend_args *a, size_t chunk, tile *t, float *states,
                         bool fresh) {
    const size_t stride = tern_attend_state(t->dim);
    const size_t at = tern_attend_padded(t->dim);
    const size_t heads = a->heads.tokens * a->heads.group;
    for (size_t h0 = first_head(&a->heads, chunk); h0 < heads; h0 += t->n) {
        float *const state = states + h0 * stride;
        float *const part = fresh ? state : t->parts;
        weigh_tile(a, chunk, h0, t);
        gather(t, part);
        for (size_t h = 0; h < t->n; h++) {
            part[h * stride + at] = t->largest[h];
            part[h * stride + at + 1] = t->sum[h];
        }
        if (!fresh)
            merge_heads(state, part, t->n, t->dim);
    }
}

void tern_attend_f16_avx512_chunks(const tern_attend_args *args, size_t first, size_t last,
    void *states, size_t stride) {
    float *const scores = args->scratch;
    float *const parts = scores + TILE_HEADS * TERN_ATTEND_CHUNK;
    const size_t dim = args->heads.dim;
    tile t = {.dim = dim, .s = scores, .parts = parts};
    t.own = share(args, parts + TILE_HEADS * tern_attend_state(dim));
    for (size_t chunk = first; chunk < last; chunk++) {
        void *const place = (char *)states + (chunk - first) * stride;
        attend_chunk(args, chunk, &t, place, chunk == first || stride > 0);
    }
}

void tern_attend_f16_avx512_merge(const tern_attend_heads *heads, size_t first, size_t last,
    const void *states, size_t stride, void *total) {
    const size_t state = tern_attend_state(heads->dim);
    const size_t all = heads->tokens * heads->group;
    float *const kept = total;
    for (size_t chunk = first; chunk < last; chunk++) {
        const void *const place = (const char *)states + (chunk - first) * stride;
        const float *const part = place;
        for (size_t h = first_head(heads, chunk), n; h < all; h += n) {
            n = all - h < TILE_HEADS ? all - h : TILE_HEADS;
            merge_heads(kept + h * state, part + h * state, n, heads->dim);
        }
    }
}

void tern_attend_f16_avx512_finish(const tern_attend_heads *heads, const void *total, float *out,
    size_t out_stride) {
    const float *state = total;
    for (size_t h = 0; h < heads->tokens * heads->group; h++) {
        const size_t head = h % heads->group * heads->dim;
        divide(state, state[tern_attend_padded(heads->dim) + 1], heads->dim,
               out + h / heads->group * out_stride + head);
        state += tern_attend_state(heads->dim);
    }
}

static void round_query(const float *x, size_t dim, float *q) {
    size_t i = 0;
    for (; i + 16 <= dim; i += 16)
        vf_store(q + i, vf_round13(vf_load(x + i)));
    if (i < dim)
        vf_store(q + i, vf_round13(vf_load_fill(x + i, dim - i, 0.0f)));
}

/* Not all lanes are set, all are folded. */
static tile_operands share(const tern_attend_args *a, float *room) {
    memset(room, 0, SUMS_FLOATS * sizeof *room);
    float *const wide = room + SUMS_FLOATS;
    float *const all = wide + tern_attend_wide(a->heads.dim);
    for (size_t h = 0; h < a->heads.tokens * a->heads.group; h++)
        round_query(query(a, h), a->heads.dim, all + h * tern_attend_padded(a->heads.dim));
    return (tile_operands){.all = all, .wide = wide, .sums = room, .scale = a->scale};
}

static void take_heads(const tern_attend_args *a, size_t h0, tile *t) {
    for (size_t h = 0; h < t->n; h++)
        t->own.q[h] = t->own.all + (h0 + h) * tern_attend_padded(a->heads.dim);
}

/* The scores of SUMS positions from their lanes, to s[h * TERN_ATTEND_CHUNK] and on. */
static inline void fold(const tile *t, size_t heads, float *s) {
    const vf factor = vf_set1(t->own.scale);
    for (size_t h = 0; h < heads; h++)
        for (size_t p = 0; p < SUMS; p += 16)
            vf_store(s + h * TERN_ATTEND_CHUNK + p,
                vf_mul(vf_sum16_rows(t->own.sums + (h * SUMS + p) * FOLDED), factor));
}

/*
 * The lanes of the scores of 1 heads at 8 positions from j on; the last of n stands in for more.
 */
static inline void dots1(const float *const *q, const element *k, size_t j, size_t n, size_t dim,
    const element *ahead, float *sums) {
    const element *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const element *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const element *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const element *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    const element *const row4 = k + (j + 4 < n ? j + 4 : n - 1) * dim;
    const element *const row5 = k + (j + 5 < n ? j + 5 : n - 1) * dim;
    const element *const row6 = k + (j + 6 < n ? j + 6 : n - 1) * dim;
    const element *const row7 = k + (j + 7 < n ? j + 7 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s4_0_0 = vf_zero();
        vf s5_0_0 = vf_zero();
        vf s6_0_0 = vf_zero();
        vf s7_0_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            if (v == 0)
                ask(ahead + 8 * i, 8 * TERN_LANES * sizeof(element));
            const vf k0_0 = cached(row0, i, v + 0);
            const vf k1_0 = cached(row1, i, v + 0);
            const vf k2_0 = cached(row2, i, v + 0);
            const vf k3_0 = cached(row3, i, v + 0);
            const vf k4_0 = cached(row4, i, v + 0);
            const vf k5_0 = cached(row5, i, v + 0);
            const vf k6_0 = cached(row6, i, v + 0);
            const vf k7_0 = cached(row7, i, v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            s4_0_0 = vf_mac_exact(s4_0_0, q0_0, k4_0);
            s5_0_0 = vf_mac_exact(s5_0_0, q0_0, k5_0);
            s6_0_0 = vf_mac_exact(s6_0_0, q0_0, k6_0);
            s7_0_0 = vf_mac_exact(s7_0_0, q0_0, k7_0);
        }
        if (i < dim) {
            const size_t left0 = tail_lanes(dim - i, v + 0, 16);
            const vf k0_0 = cached_n(row0, i, v + 0, left0);
            const vf k1_0 = cached_n(row1, i, v + 0, left0);
            const vf k2_0 = cached_n(row2, i, v + 0, left0);
            const vf k3_0 = cached_n(row3, i, v + 0, left0);
            const vf k4_0 = cached_n(row4, i, v + 0, left0);
            const vf k5_0 = cached_n(row5, i, v + 0, left0);
            const vf k6_0 = cached_n(row6, i, v + 0, left0);
            const vf k7_0 = cached_n(row7, i, v + 0, left0);
            const vf q0_0 = vf_load_fill(q[0] + i + v + 0, left0, 0.0f);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            s4_0_0 = vf_mac_exact(s4_0_0, q0_0, k4_0);
            s5_0_0 = vf_mac_exact(s5_0_0, q0_0, k5_0);
            s6_0_0 = vf_mac_exact(s6_0_0, q0_0, k6_0);
            s7_0_0 = vf_mac_exact(s7_0_0, q0_0, k7_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (0 * SUMS + 4) * FOLDED + v, s4_0_0);
        vf_store(sums + (0 * SUMS + 5) * FOLDED + v, s5_0_0);
        vf_store(sums + (0 * SUMS + 6) * FOLDED + v, s6_0_0);
        vf_store(sums + (0 * SUMS + 7) * FOLDED + v, s7_0_0);
    }
}

/*
 * The lanes of the scores of 1 heads at 8 positions from j on; the last of n stands in for more.
 * Rows of keys are padded: there is no tail.
 */
static inline void later_dots1(const float *const *q, const float *k, size_t j, size_t n,
    size_t dim, float *sums) {
    const float *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const float *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const float *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const float *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    const float *const row4 = k + (j + 4 < n ? j + 4 : n - 1) * dim;
    const float *const row5 = k + (j + 5 < n ? j + 5 : n - 1) * dim;
    const float *const row6 = k + (j + 6 < n ? j + 6 : n - 1) * dim;
    const float *const row7 = k + (j + 7 < n ? j + 7 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s4_0_0 = vf_zero();
        vf s5_0_0 = vf_zero();
        vf s6_0_0 = vf_zero();
        vf s7_0_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            const vf k0_0 = vf_load(row0 + i + v + 0);
            const vf k1_0 = vf_load(row1 + i + v + 0);
            const vf k2_0 = vf_load(row2 + i + v + 0);
            const vf k3_0 = vf_load(row3 + i + v + 0);
            const vf k4_0 = vf_load(row4 + i + v + 0);
            const vf k5_0 = vf_load(row5 + i + v + 0);
            const vf k6_0 = vf_load(row6 + i + v + 0);
            const vf k7_0 = vf_load(row7 + i + v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            s4_0_0 = vf_mac_exact(s4_0_0, q0_0, k4_0);
            s5_0_0 = vf_mac_exact(s5_0_0, q0_0, k5_0);
            s6_0_0 = vf_mac_exact(s6_0_0, q0_0, k6_0);
            s7_0_0 = vf_mac_exact(s7_0_0, q0_0, k7_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (0 * SUMS + 4) * FOLDED + v, s4_0_0);
        vf_store(sums + (0 * SUMS + 5) * FOLDED + v, s5_0_0);
        vf_store(sums + (0 * SUMS + 6) * FOLDED + v, s6_0_0);
        vf_store(sums + (0 * SUMS + 7) * FOLDED + v, s7_0_0);
    }
}

/* s[h][j] = (q[h] . k[j]) * scale for n positions; what lies after them in s is overwritten. */
static void score1(const tile *t, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 8)
            dots1(t->own.q, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 1, t->s + j);
    }
}

/* The same for 1 heads from h0 on and SUMS positions from j on. */
static void later_score1(const tile *t, size_t h0, size_t j, size_t n) {
    const size_t padded = tern_attend_padded(t->dim);
    for (size_t p = 0; p < SUMS && j + p < n; p += 8)
        later_dots1(t->own.q + h0, t->own.wide, p, n - j, padded, t->own.sums + p * FOLDED);
    fold(t, 1, t->s + h0 * TERN_ATTEND_CHUNK + j);
}

/*
 * o[i] += sum over j of e[j] * v[j][i], j increasing, for 1 heads from h0 on, the first one's at o.
 * The heads that come first ask for as much of what is read next as they read.
 */
static inline void gather1(const tile *t, size_t h0, size_t from, size_t to, float *o) {
    const size_t dim = t->dim;
    const size_t stride = tern_attend_state(dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    size_t i = 0;
    for (; i + 128 <= dim; i += 128) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        vf o0_1 = vf_load(o + 0 * stride + i + 16);
        vf o0_2 = vf_load(o + 0 * stride + i + 32);
        vf o0_3 = vf_load(o + 0 * stride + i + 48);
        vf o0_4 = vf_load(o + 0 * stride + i + 64);
        vf o0_5 = vf_load(o + 0 * stride + i + 80);
        vf o0_6 = vf_load(o + 0 * stride + i + 96);
        vf o0_7 = vf_load(o + 0 * stride + i + 112);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 128, 128 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf v1 = cached(row, i, 16);
            const vf v2 = cached(row, i, 32);
            const vf v3 = cached(row, i, 48);
            const vf v4 = cached(row, i, 64);
            const vf v5 = cached(row, i, 80);
            const vf v6 = cached(row, i, 96);
            const vf v7 = cached(row, i, 112);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
            o0_1 = vf_mac_exact(o0_1, e0, v1);
            o0_2 = vf_mac_exact(o0_2, e0, v2);
            o0_3 = vf_mac_exact(o0_3, e0, v3);
            o0_4 = vf_mac_exact(o0_4, e0, v4);
            o0_5 = vf_mac_exact(o0_5, e0, v5);
            o0_6 = vf_mac_exact(o0_6, e0, v6);
            o0_7 = vf_mac_exact(o0_7, e0, v7);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
        vf_store(o + 0 * stride + i + 16, o0_1);
        vf_store(o + 0 * stride + i + 32, o0_2);
        vf_store(o + 0 * stride + i + 48, o0_3);
        vf_store(o + 0 * stride + i + 64, o0_4);
        vf_store(o + 0 * stride + i + 80, o0_5);
        vf_store(o + 0 * stride + i + 96, o0_6);
        vf_store(o + 0 * stride + i + 112, o0_7);
    }
    for (; i + 16 <= dim; i += 16) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 16, 16 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
    }
    if (i < dim) {
        const size_t left = dim - i;
        vf o0 = vf_load(o + 0 * stride + i); /* padded to whole vectors */
        for (size_t j = from; j < to; j++) {
            const vf part = cached_n(v + j * dim, i, 0, left);
            o0 = vf_mac_exact(o0, vf_set1(e[0 * TERN_ATTEND_CHUNK + j]), part);
        }
        vf_store(o + 0 * stride + i, o0);
    }
}

/* The same for the columns of 4 vectors from i on, which are in `wide`. */
static void later_gather1_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o0_1 = vf_load(o + 0 * stride + i + 16);
    vf o0_2 = vf_load(o + 0 * stride + i + 32);
    vf o0_3 = vf_load(o + 0 * stride + i + 48);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 4 + 0) * 16);
        const vf v1 = vf_load(wide + (j * 4 + 1) * 16);
        const vf v2 = vf_load(wide + (j * 4 + 2) * 16);
        const vf v3 = vf_load(wide + (j * 4 + 3) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        o0_1 = vf_mac_exact(o0_1, e0, v1);
        o0_2 = vf_mac_exact(o0_2, e0, v2);
        o0_3 = vf_mac_exact(o0_3, e0, v3);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 0 * stride + i + 16, o0_1);
    vf_store(o + 0 * stride + i + 32, o0_2);
    vf_store(o + 0 * stride + i + 48, o0_3);
}

/* The same for the columns of one vector from i on, which are in `wide`. */
static void later_gather1_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 1 + 0) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
}

/*
 * The lanes of the scores of 2 heads at 8 positions from j on; the last of n stands in for more.
 */
static inline void dots2(const float *const *q, const element *k, size_t j, size_t n, size_t dim,
    const element *ahead, float *sums) {
    const element *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const element *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const element *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const element *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    const element *const row4 = k + (j + 4 < n ? j + 4 : n - 1) * dim;
    const element *const row5 = k + (j + 5 < n ? j + 5 : n - 1) * dim;
    const element *const row6 = k + (j + 6 < n ? j + 6 : n - 1) * dim;
    const element *const row7 = k + (j + 7 < n ? j + 7 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s0_1_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s1_1_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s2_1_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s3_1_0 = vf_zero();
        vf s4_0_0 = vf_zero();
        vf s4_1_0 = vf_zero();
        vf s5_0_0 = vf_zero();
        vf s5_1_0 = vf_zero();
        vf s6_0_0 = vf_zero();
        vf s6_1_0 = vf_zero();
        vf s7_0_0 = vf_zero();
        vf s7_1_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            if (v == 0)
                ask(ahead + 8 * i, 8 * TERN_LANES * sizeof(element));
            const vf k0_0 = cached(row0, i, v + 0);
            const vf k1_0 = cached(row1, i, v + 0);
            const vf k2_0 = cached(row2, i, v + 0);
            const vf k3_0 = cached(row3, i, v + 0);
            const vf k4_0 = cached(row4, i, v + 0);
            const vf k5_0 = cached(row5, i, v + 0);
            const vf k6_0 = cached(row6, i, v + 0);
            const vf k7_0 = cached(row7, i, v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            s4_0_0 = vf_mac_exact(s4_0_0, q0_0, k4_0);
            s5_0_0 = vf_mac_exact(s5_0_0, q0_0, k5_0);
            s6_0_0 = vf_mac_exact(s6_0_0, q0_0, k6_0);
            s7_0_0 = vf_mac_exact(s7_0_0, q0_0, k7_0);
            const vf q1_0 = vf_load(q[1] + i + v + 0);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            s4_1_0 = vf_mac_exact(s4_1_0, q1_0, k4_0);
            s5_1_0 = vf_mac_exact(s5_1_0, q1_0, k5_0);
            s6_1_0 = vf_mac_exact(s6_1_0, q1_0, k6_0);
            s7_1_0 = vf_mac_exact(s7_1_0, q1_0, k7_0);
        }
        if (i < dim) {
            const size_t left0 = tail_lanes(dim - i, v + 0, 16);
            const vf k0_0 = cached_n(row0, i, v + 0, left0);
            const vf k1_0 = cached_n(row1, i, v + 0, left0);
            const vf k2_0 = cached_n(row2, i, v + 0, left0);
            const vf k3_0 = cached_n(row3, i, v + 0, left0);
            const vf k4_0 = cached_n(row4, i, v + 0, left0);
            const vf k5_0 = cached_n(row5, i, v + 0, left0);
            const vf k6_0 = cached_n(row6, i, v + 0, left0);
            const vf k7_0 = cached_n(row7, i, v + 0, left0);
            const vf q0_0 = vf_load_fill(q[0] + i + v + 0, left0, 0.0f);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            s4_0_0 = vf_mac_exact(s4_0_0, q0_0, k4_0);
            s5_0_0 = vf_mac_exact(s5_0_0, q0_0, k5_0);
            s6_0_0 = vf_mac_exact(s6_0_0, q0_0, k6_0);
            s7_0_0 = vf_mac_exact(s7_0_0, q0_0, k7_0);
            const vf q1_0 = vf_load_fill(q[1] + i + v + 0, left0, 0.0f);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            s4_1_0 = vf_mac_exact(s4_1_0, q1_0, k4_0);
            s5_1_0 = vf_mac_exact(s5_1_0, q1_0, k5_0);
            s6_1_0 = vf_mac_exact(s6_1_0, q1_0, k6_0);
            s7_1_0 = vf_mac_exact(s7_1_0, q1_0, k7_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (0 * SUMS + 4) * FOLDED + v, s4_0_0);
        vf_store(sums + (0 * SUMS + 5) * FOLDED + v, s5_0_0);
        vf_store(sums + (0 * SUMS + 6) * FOLDED + v, s6_0_0);
        vf_store(sums + (0 * SUMS + 7) * FOLDED + v, s7_0_0);
        vf_store(sums + (1 * SUMS + 0) * FOLDED + v, s0_1_0);
        vf_store(sums + (1 * SUMS + 1) * FOLDED + v, s1_1_0);
        vf_store(sums + (1 * SUMS + 2) * FOLDED + v, s2_1_0);
        vf_store(sums + (1 * SUMS + 3) * FOLDED + v, s3_1_0);
        vf_store(sums + (1 * SUMS + 4) * FOLDED + v, s4_1_0);
        vf_store(sums + (1 * SUMS + 5) * FOLDED + v, s5_1_0);
        vf_store(sums + (1 * SUMS + 6) * FOLDED + v, s6_1_0);
        vf_store(sums + (1 * SUMS + 7) * FOLDED + v, s7_1_0);
    }
}

/*
 * The lanes of the scores of 2 heads at 8 positions from j on; the last of n stands in for more.
 * Rows of keys are padded: there is no tail.
 */
static inline void later_dots2(const float *const *q, const float *k, size_t j, size_t n,
    size_t dim, float *sums) {
    const float *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const float *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const float *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const float *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    const float *const row4 = k + (j + 4 < n ? j + 4 : n - 1) * dim;
    const float *const row5 = k + (j + 5 < n ? j + 5 : n - 1) * dim;
    const float *const row6 = k + (j + 6 < n ? j + 6 : n - 1) * dim;
    const float *const row7 = k + (j + 7 < n ? j + 7 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s0_1_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s1_1_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s2_1_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s3_1_0 = vf_zero();
        vf s4_0_0 = vf_zero();
        vf s4_1_0 = vf_zero();
        vf s5_0_0 = vf_zero();
        vf s5_1_0 = vf_zero();
        vf s6_0_0 = vf_zero();
        vf s6_1_0 = vf_zero();
        vf s7_0_0 = vf_zero();
        vf s7_1_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            const vf k0_0 = vf_load(row0 + i + v + 0);
            const vf k1_0 = vf_load(row1 + i + v + 0);
            const vf k2_0 = vf_load(row2 + i + v + 0);
            const vf k3_0 = vf_load(row3 + i + v + 0);
            const vf k4_0 = vf_load(row4 + i + v + 0);
            const vf k5_0 = vf_load(row5 + i + v + 0);
            const vf k6_0 = vf_load(row6 + i + v + 0);
            const vf k7_0 = vf_load(row7 + i + v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            s4_0_0 = vf_mac_exact(s4_0_0, q0_0, k4_0);
            s5_0_0 = vf_mac_exact(s5_0_0, q0_0, k5_0);
            s6_0_0 = vf_mac_exact(s6_0_0, q0_0, k6_0);
            s7_0_0 = vf_mac_exact(s7_0_0, q0_0, k7_0);
            const vf q1_0 = vf_load(q[1] + i + v + 0);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            s4_1_0 = vf_mac_exact(s4_1_0, q1_0, k4_0);
            s5_1_0 = vf_mac_exact(s5_1_0, q1_0, k5_0);
            s6_1_0 = vf_mac_exact(s6_1_0, q1_0, k6_0);
            s7_1_0 = vf_mac_exact(s7_1_0, q1_0, k7_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (0 * SUMS + 4) * FOLDED + v, s4_0_0);
        vf_store(sums + (0 * SUMS + 5) * FOLDED + v, s5_0_0);
        vf_store(sums + (0 * SUMS + 6) * FOLDED + v, s6_0_0);
        vf_store(sums + (0 * SUMS + 7) * FOLDED + v, s7_0_0);
        vf_store(sums + (1 * SUMS + 0) * FOLDED + v, s0_1_0);
        vf_store(sums + (1 * SUMS + 1) * FOLDED + v, s1_1_0);
        vf_store(sums + (1 * SUMS + 2) * FOLDED + v, s2_1_0);
        vf_store(sums + (1 * SUMS + 3) * FOLDED + v, s3_1_0);
        vf_store(sums + (1 * SUMS + 4) * FOLDED + v, s4_1_0);
        vf_store(sums + (1 * SUMS + 5) * FOLDED + v, s5_1_0);
        vf_store(sums + (1 * SUMS + 6) * FOLDED + v, s6_1_0);
        vf_store(sums + (1 * SUMS + 7) * FOLDED + v, s7_1_0);
    }
}

/* s[h][j] = (q[h] . k[j]) * scale for n positions; what lies after them in s is overwritten. */
static void score2(const tile *t, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 8)
            dots2(t->own.q, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 2, t->s + j);
    }
}

/* The same for 2 heads from h0 on and SUMS positions from j on. */
static void later_score2(const tile *t, size_t h0, size_t j, size_t n) {
    const size_t padded = tern_attend_padded(t->dim);
    for (size_t p = 0; p < SUMS && j + p < n; p += 8)
        later_dots2(t->own.q + h0, t->own.wide, p, n - j, padded, t->own.sums + p * FOLDED);
    fold(t, 2, t->s + h0 * TERN_ATTEND_CHUNK + j);
}

/*
 * o[i] += sum over j of e[j] * v[j][i], j increasing, for 2 heads from h0 on, the first one's at o.
 * The heads that come first ask for as much of what is read next as they read.
 */
static inline void gather2(const tile *t, size_t h0, size_t from, size_t to, float *o) {
    const size_t dim = t->dim;
    const size_t stride = tern_attend_state(dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    size_t i = 0;
    for (; i + 128 <= dim; i += 128) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        vf o0_1 = vf_load(o + 0 * stride + i + 16);
        vf o0_2 = vf_load(o + 0 * stride + i + 32);
        vf o0_3 = vf_load(o + 0 * stride + i + 48);
        vf o0_4 = vf_load(o + 0 * stride + i + 64);
        vf o0_5 = vf_load(o + 0 * stride + i + 80);
        vf o0_6 = vf_load(o + 0 * stride + i + 96);
        vf o0_7 = vf_load(o + 0 * stride + i + 112);
        vf o1_0 = vf_load(o + 1 * stride + i + 0);
        vf o1_1 = vf_load(o + 1 * stride + i + 16);
        vf o1_2 = vf_load(o + 1 * stride + i + 32);
        vf o1_3 = vf_load(o + 1 * stride + i + 48);
        vf o1_4 = vf_load(o + 1 * stride + i + 64);
        vf o1_5 = vf_load(o + 1 * stride + i + 80);
        vf o1_6 = vf_load(o + 1 * stride + i + 96);
        vf o1_7 = vf_load(o + 1 * stride + i + 112);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 128, 128 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf v1 = cached(row, i, 16);
            const vf v2 = cached(row, i, 32);
            const vf v3 = cached(row, i, 48);
            const vf v4 = cached(row, i, 64);
            const vf v5 = cached(row, i, 80);
            const vf v6 = cached(row, i, 96);
            const vf v7 = cached(row, i, 112);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
            o0_1 = vf_mac_exact(o0_1, e0, v1);
            o0_2 = vf_mac_exact(o0_2, e0, v2);
            o0_3 = vf_mac_exact(o0_3, e0, v3);
            o0_4 = vf_mac_exact(o0_4, e0, v4);
            o0_5 = vf_mac_exact(o0_5, e0, v5);
            o0_6 = vf_mac_exact(o0_6, e0, v6);
            o0_7 = vf_mac_exact(o0_7, e0, v7);
            const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
            o1_0 = vf_mac_exact(o1_0, e1, v0);
            o1_1 = vf_mac_exact(o1_1, e1, v1);
            o1_2 = vf_mac_exact(o1_2, e1, v2);
            o1_3 = vf_mac_exact(o1_3, e1, v3);
            o1_4 = vf_mac_exact(o1_4, e1, v4);
            o1_5 = vf_mac_exact(o1_5, e1, v5);
            o1_6 = vf_mac_exact(o1_6, e1, v6);
            o1_7 = vf_mac_exact(o1_7, e1, v7);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
        vf_store(o + 0 * stride + i + 16, o0_1);
        vf_store(o + 0 * stride + i + 32, o0_2);
        vf_store(o + 0 * stride + i + 48, o0_3);
        vf_store(o + 0 * stride + i + 64, o0_4);
        vf_store(o + 0 * stride + i + 80, o0_5);
        vf_store(o + 0 * stride + i + 96, o0_6);
        vf_store(o + 0 * stride + i + 112, o0_7);
        vf_store(o + 1 * stride + i + 0, o1_0);
        vf_store(o + 1 * stride + i + 16, o1_1);
        vf_store(o + 1 * stride + i + 32, o1_2);
        vf_store(o + 1 * stride + i + 48, o1_3);
        vf_store(o + 1 * stride + i + 64, o1_4);
        vf_store(o + 1 * stride + i + 80, o1_5);
        vf_store(o + 1 * stride + i + 96, o1_6);
        vf_store(o + 1 * stride + i + 112, o1_7);
    }
    for (; i + 16 <= dim; i += 16) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        vf o1_0 = vf_load(o + 1 * stride + i + 0);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 16, 16 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
            const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
            o1_0 = vf_mac_exact(o1_0, e1, v0);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
        vf_store(o + 1 * stride + i + 0, o1_0);
    }
    if (i < dim) {
        const size_t left = dim - i;
        vf o0 = vf_load(o + 0 * stride + i); /* padded to whole vectors */
        vf o1 = vf_load(o + 1 * stride + i); /* padded to whole vectors */
        for (size_t j = from; j < to; j++) {
            const vf part = cached_n(v + j * dim, i, 0, left);
            o0 = vf_mac_exact(o0, vf_set1(e[0 * TERN_ATTEND_CHUNK + j]), part);
            o1 = vf_mac_exact(o1, vf_set1(e[1 * TERN_ATTEND_CHUNK + j]), part);
        }
        vf_store(o + 0 * stride + i, o0);
        vf_store(o + 1 * stride + i, o1);
    }
}

/* The same for the columns of 4 vectors from i on, which are in `wide`. */
static void later_gather2_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o0_1 = vf_load(o + 0 * stride + i + 16);
    vf o0_2 = vf_load(o + 0 * stride + i + 32);
    vf o0_3 = vf_load(o + 0 * stride + i + 48);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    vf o1_1 = vf_load(o + 1 * stride + i + 16);
    vf o1_2 = vf_load(o + 1 * stride + i + 32);
    vf o1_3 = vf_load(o + 1 * stride + i + 48);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 4 + 0) * 16);
        const vf v1 = vf_load(wide + (j * 4 + 1) * 16);
        const vf v2 = vf_load(wide + (j * 4 + 2) * 16);
        const vf v3 = vf_load(wide + (j * 4 + 3) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        o0_1 = vf_mac_exact(o0_1, e0, v1);
        o0_2 = vf_mac_exact(o0_2, e0, v2);
        o0_3 = vf_mac_exact(o0_3, e0, v3);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        o1_1 = vf_mac_exact(o1_1, e1, v1);
        o1_2 = vf_mac_exact(o1_2, e1, v2);
        o1_3 = vf_mac_exact(o1_3, e1, v3);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 0 * stride + i + 16, o0_1);
    vf_store(o + 0 * stride + i + 32, o0_2);
    vf_store(o + 0 * stride + i + 48, o0_3);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 1 * stride + i + 16, o1_1);
    vf_store(o + 1 * stride + i + 32, o1_2);
    vf_store(o + 1 * stride + i + 48, o1_3);
}

/* The same for the columns of one vector from i on, which are in `wide`. */
static void later_gather2_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 1 + 0) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
}

/*
 * The lanes of the scores of 3 heads at 4 positions from j on; the last of n stands in for more.
 */
static inline void dots3(const float *const *q, const element *k, size_t j, size_t n, size_t dim,
    const element *ahead, float *sums) {
    const element *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const element *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const element *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const element *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s0_1_0 = vf_zero();
        vf s0_2_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s1_1_0 = vf_zero();
        vf s1_2_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s2_1_0 = vf_zero();
        vf s2_2_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s3_1_0 = vf_zero();
        vf s3_2_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            if (v == 0)
                ask(ahead + 4 * i, 4 * TERN_LANES * sizeof(element));
            const vf k0_0 = cached(row0, i, v + 0);
            const vf k1_0 = cached(row1, i, v + 0);
            const vf k2_0 = cached(row2, i, v + 0);
            const vf k3_0 = cached(row3, i, v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load(q[1] + i + v + 0);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load(q[2] + i + v + 0);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
        }
        if (i < dim) {
            const size_t left0 = tail_lanes(dim - i, v + 0, 16);
            const vf k0_0 = cached_n(row0, i, v + 0, left0);
            const vf k1_0 = cached_n(row1, i, v + 0, left0);
            const vf k2_0 = cached_n(row2, i, v + 0, left0);
            const vf k3_0 = cached_n(row3, i, v + 0, left0);
            const vf q0_0 = vf_load_fill(q[0] + i + v + 0, left0, 0.0f);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load_fill(q[1] + i + v + 0, left0, 0.0f);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load_fill(q[2] + i + v + 0, left0, 0.0f);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (1 * SUMS + 0) * FOLDED + v, s0_1_0);
        vf_store(sums + (1 * SUMS + 1) * FOLDED + v, s1_1_0);
        vf_store(sums + (1 * SUMS + 2) * FOLDED + v, s2_1_0);
        vf_store(sums + (1 * SUMS + 3) * FOLDED + v, s3_1_0);
        vf_store(sums + (2 * SUMS + 0) * FOLDED + v, s0_2_0);
        vf_store(sums + (2 * SUMS + 1) * FOLDED + v, s1_2_0);
        vf_store(sums + (2 * SUMS + 2) * FOLDED + v, s2_2_0);
        vf_store(sums + (2 * SUMS + 3) * FOLDED + v, s3_2_0);
    }
}

/*
 * The lanes of the scores of 3 heads at 4 positions from j on; the last of n stands in for more.
 * Rows of keys are padded: there is no tail.
 */
static inline void later_dots3(const float *const *q, const float *k, size_t j, size_t n,
    size_t dim, float *sums) {
    const float *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const float *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const float *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const float *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s0_1_0 = vf_zero();
        vf s0_2_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s1_1_0 = vf_zero();
        vf s1_2_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s2_1_0 = vf_zero();
        vf s2_2_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s3_1_0 = vf_zero();
        vf s3_2_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            const vf k0_0 = vf_load(row0 + i + v + 0);
            const vf k1_0 = vf_load(row1 + i + v + 0);
            const vf k2_0 = vf_load(row2 + i + v + 0);
            const vf k3_0 = vf_load(row3 + i + v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load(q[1] + i + v + 0);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load(q[2] + i + v + 0);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (1 * SUMS + 0) * FOLDED + v, s0_1_0);
        vf_store(sums + (1 * SUMS + 1) * FOLDED + v, s1_1_0);
        vf_store(sums + (1 * SUMS + 2) * FOLDED + v, s2_1_0);
        vf_store(sums + (1 * SUMS + 3) * FOLDED + v, s3_1_0);
        vf_store(sums + (2 * SUMS + 0) * FOLDED + v, s0_2_0);
        vf_store(sums + (2 * SUMS + 1) * FOLDED + v, s1_2_0);
        vf_store(sums + (2 * SUMS + 2) * FOLDED + v, s2_2_0);
        vf_store(sums + (2 * SUMS + 3) * FOLDED + v, s3_2_0);
    }
}

/* s[h][j] = (q[h] . k[j]) * scale for n positions; what lies after them in s is overwritten. */
static void score3(const tile *t, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 4)
            dots3(t->own.q, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 3, t->s + j);
    }
}

/* The same for 3 heads from h0 on and SUMS positions from j on. */
static void later_score3(const tile *t, size_t h0, size_t j, size_t n) {
    const size_t padded = tern_attend_padded(t->dim);
    for (size_t p = 0; p < SUMS && j + p < n; p += 4)
        later_dots3(t->own.q + h0, t->own.wide, p, n - j, padded, t->own.sums + p * FOLDED);
    fold(t, 3, t->s + h0 * TERN_ATTEND_CHUNK + j);
}

/*
 * o[i] += sum over j of e[j] * v[j][i], j increasing, for 3 heads from h0 on, the first one's at o.
 * The heads that come first ask for as much of what is read next as they read.
 */
static inline void gather3(const tile *t, size_t h0, size_t from, size_t to, float *o) {
    const size_t dim = t->dim;
    const size_t stride = tern_attend_state(dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    size_t i = 0;
    for (; i + 64 <= dim; i += 64) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        vf o0_1 = vf_load(o + 0 * stride + i + 16);
        vf o0_2 = vf_load(o + 0 * stride + i + 32);
        vf o0_3 = vf_load(o + 0 * stride + i + 48);
        vf o1_0 = vf_load(o + 1 * stride + i + 0);
        vf o1_1 = vf_load(o + 1 * stride + i + 16);
        vf o1_2 = vf_load(o + 1 * stride + i + 32);
        vf o1_3 = vf_load(o + 1 * stride + i + 48);
        vf o2_0 = vf_load(o + 2 * stride + i + 0);
        vf o2_1 = vf_load(o + 2 * stride + i + 16);
        vf o2_2 = vf_load(o + 2 * stride + i + 32);
        vf o2_3 = vf_load(o + 2 * stride + i + 48);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 64, 64 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf v1 = cached(row, i, 16);
            const vf v2 = cached(row, i, 32);
            const vf v3 = cached(row, i, 48);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
            o0_1 = vf_mac_exact(o0_1, e0, v1);
            o0_2 = vf_mac_exact(o0_2, e0, v2);
            o0_3 = vf_mac_exact(o0_3, e0, v3);
            const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
            o1_0 = vf_mac_exact(o1_0, e1, v0);
            o1_1 = vf_mac_exact(o1_1, e1, v1);
            o1_2 = vf_mac_exact(o1_2, e1, v2);
            o1_3 = vf_mac_exact(o1_3, e1, v3);
            const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
            o2_0 = vf_mac_exact(o2_0, e2, v0);
            o2_1 = vf_mac_exact(o2_1, e2, v1);
            o2_2 = vf_mac_exact(o2_2, e2, v2);
            o2_3 = vf_mac_exact(o2_3, e2, v3);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
        vf_store(o + 0 * stride + i + 16, o0_1);
        vf_store(o + 0 * stride + i + 32, o0_2);
        vf_store(o + 0 * stride + i + 48, o0_3);
        vf_store(o + 1 * stride + i + 0, o1_0);
        vf_store(o + 1 * stride + i + 16, o1_1);
        vf_store(o + 1 * stride + i + 32, o1_2);
        vf_store(o + 1 * stride + i + 48, o1_3);
        vf_store(o + 2 * stride + i + 0, o2_0);
        vf_store(o + 2 * stride + i + 16, o2_1);
        vf_store(o + 2 * stride + i + 32, o2_2);
        vf_store(o + 2 * stride + i + 48, o2_3);
    }
    for (; i + 16 <= dim; i += 16) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        vf o1_0 = vf_load(o + 1 * stride + i + 0);
        vf o2_0 = vf_load(o + 2 * stride + i + 0);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 16, 16 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
            const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
            o1_0 = vf_mac_exact(o1_0, e1, v0);
            const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
            o2_0 = vf_mac_exact(o2_0, e2, v0);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
        vf_store(o + 1 * stride + i + 0, o1_0);
        vf_store(o + 2 * stride + i + 0, o2_0);
    }
    if (i < dim) {
        const size_t left = dim - i;
        vf o0 = vf_load(o + 0 * stride + i); /* padded to whole vectors */
        vf o1 = vf_load(o + 1 * stride + i); /* padded to whole vectors */
        vf o2 = vf_load(o + 2 * stride + i); /* padded to whole vectors */
        for (size_t j = from; j < to; j++) {
            const vf part = cached_n(v + j * dim, i, 0, left);
            o0 = vf_mac_exact(o0, vf_set1(e[0 * TERN_ATTEND_CHUNK + j]), part);
            o1 = vf_mac_exact(o1, vf_set1(e[1 * TERN_ATTEND_CHUNK + j]), part);
            o2 = vf_mac_exact(o2, vf_set1(e[2 * TERN_ATTEND_CHUNK + j]), part);
        }
        vf_store(o + 0 * stride + i, o0);
        vf_store(o + 1 * stride + i, o1);
        vf_store(o + 2 * stride + i, o2);
    }
}

/* The same for the columns of 4 vectors from i on, which are in `wide`. */
static void later_gather3_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o0_1 = vf_load(o + 0 * stride + i + 16);
    vf o0_2 = vf_load(o + 0 * stride + i + 32);
    vf o0_3 = vf_load(o + 0 * stride + i + 48);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    vf o1_1 = vf_load(o + 1 * stride + i + 16);
    vf o1_2 = vf_load(o + 1 * stride + i + 32);
    vf o1_3 = vf_load(o + 1 * stride + i + 48);
    vf o2_0 = vf_load(o + 2 * stride + i + 0);
    vf o2_1 = vf_load(o + 2 * stride + i + 16);
    vf o2_2 = vf_load(o + 2 * stride + i + 32);
    vf o2_3 = vf_load(o + 2 * stride + i + 48);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 4 + 0) * 16);
        const vf v1 = vf_load(wide + (j * 4 + 1) * 16);
        const vf v2 = vf_load(wide + (j * 4 + 2) * 16);
        const vf v3 = vf_load(wide + (j * 4 + 3) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        o0_1 = vf_mac_exact(o0_1, e0, v1);
        o0_2 = vf_mac_exact(o0_2, e0, v2);
        o0_3 = vf_mac_exact(o0_3, e0, v3);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        o1_1 = vf_mac_exact(o1_1, e1, v1);
        o1_2 = vf_mac_exact(o1_2, e1, v2);
        o1_3 = vf_mac_exact(o1_3, e1, v3);
        const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
        o2_0 = vf_mac_exact(o2_0, e2, v0);
        o2_1 = vf_mac_exact(o2_1, e2, v1);
        o2_2 = vf_mac_exact(o2_2, e2, v2);
        o2_3 = vf_mac_exact(o2_3, e2, v3);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 0 * stride + i + 16, o0_1);
    vf_store(o + 0 * stride + i + 32, o0_2);
    vf_store(o + 0 * stride + i + 48, o0_3);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 1 * stride + i + 16, o1_1);
    vf_store(o + 1 * stride + i + 32, o1_2);
    vf_store(o + 1 * stride + i + 48, o1_3);
    vf_store(o + 2 * stride + i + 0, o2_0);
    vf_store(o + 2 * stride + i + 16, o2_1);
    vf_store(o + 2 * stride + i + 32, o2_2);
    vf_store(o + 2 * stride + i + 48, o2_3);
}

/* The same for the columns of one vector from i on, which are in `wide`. */
static void later_gather3_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    vf o2_0 = vf_load(o + 2 * stride + i + 0);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 1 + 0) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
        o2_0 = vf_mac_exact(o2_0, e2, v0);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 2 * stride + i + 0, o2_0);
}

/*
 * The lanes of the scores of 4 heads at 4 positions from j on; the last of n stands in for more.
 */
static inline void dots4(const float *const *q, const element *k, size_t j, size_t n, size_t dim,
    const element *ahead, float *sums) {
    const element *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const element *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const element *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const element *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s0_1_0 = vf_zero();
        vf s0_2_0 = vf_zero();
        vf s0_3_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s1_1_0 = vf_zero();
        vf s1_2_0 = vf_zero();
        vf s1_3_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s2_1_0 = vf_zero();
        vf s2_2_0 = vf_zero();
        vf s2_3_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s3_1_0 = vf_zero();
        vf s3_2_0 = vf_zero();
        vf s3_3_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            if (v == 0)
                ask(ahead + 4 * i, 4 * TERN_LANES * sizeof(element));
            const vf k0_0 = cached(row0, i, v + 0);
            const vf k1_0 = cached(row1, i, v + 0);
            const vf k2_0 = cached(row2, i, v + 0);
            const vf k3_0 = cached(row3, i, v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load(q[1] + i + v + 0);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load(q[2] + i + v + 0);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
            const vf q3_0 = vf_load(q[3] + i + v + 0);
            s0_3_0 = vf_mac_exact(s0_3_0, q3_0, k0_0);
            s1_3_0 = vf_mac_exact(s1_3_0, q3_0, k1_0);
            s2_3_0 = vf_mac_exact(s2_3_0, q3_0, k2_0);
            s3_3_0 = vf_mac_exact(s3_3_0, q3_0, k3_0);
        }
        if (i < dim) {
            const size_t left0 = tail_lanes(dim - i, v + 0, 16);
            const vf k0_0 = cached_n(row0, i, v + 0, left0);
            const vf k1_0 = cached_n(row1, i, v + 0, left0);
            const vf k2_0 = cached_n(row2, i, v + 0, left0);
            const vf k3_0 = cached_n(row3, i, v + 0, left0);
            const vf q0_0 = vf_load_fill(q[0] + i + v + 0, left0, 0.0f);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load_fill(q[1] + i + v + 0, left0, 0.0f);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load_fill(q[2] + i + v + 0, left0, 0.0f);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
            const vf q3_0 = vf_load_fill(q[3] + i + v + 0, left0, 0.0f);
            s0_3_0 = vf_mac_exact(s0_3_0, q3_0, k0_0);
            s1_3_0 = vf_mac_exact(s1_3_0, q3_0, k1_0);
            s2_3_0 = vf_mac_exact(s2_3_0, q3_0, k2_0);
            s3_3_0 = vf_mac_exact(s3_3_0, q3_0, k3_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (1 * SUMS + 0) * FOLDED + v, s0_1_0);
        vf_store(sums + (1 * SUMS + 1) * FOLDED + v, s1_1_0);
        vf_store(sums + (1 * SUMS + 2) * FOLDED + v, s2_1_0);
        vf_store(sums + (1 * SUMS + 3) * FOLDED + v, s3_1_0);
        vf_store(sums + (2 * SUMS + 0) * FOLDED + v, s0_2_0);
        vf_store(sums + (2 * SUMS + 1) * FOLDED + v, s1_2_0);
        vf_store(sums + (2 * SUMS + 2) * FOLDED + v, s2_2_0);
        vf_store(sums + (2 * SUMS + 3) * FOLDED + v, s3_2_0);
        vf_store(sums + (3 * SUMS + 0) * FOLDED + v, s0_3_0);
        vf_store(sums + (3 * SUMS + 1) * FOLDED + v, s1_3_0);
        vf_store(sums + (3 * SUMS + 2) * FOLDED + v, s2_3_0);
        vf_store(sums + (3 * SUMS + 3) * FOLDED + v, s3_3_0);
    }
}

/*
 * The lanes of the scores of 4 heads at 4 positions from j on; the last of n stands in for more.
 */
static inline void first_dots4(const float *const *q, const element *k, size_t j, size_t n,
    size_t dim, const element *ahead, float *wide, float *sums) {
    const element *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const element *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const element *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const element *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s0_1_0 = vf_zero();
        vf s0_2_0 = vf_zero();
        vf s0_3_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s1_1_0 = vf_zero();
        vf s1_2_0 = vf_zero();
        vf s1_3_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s2_1_0 = vf_zero();
        vf s2_2_0 = vf_zero();
        vf s2_3_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s3_1_0 = vf_zero();
        vf s3_2_0 = vf_zero();
        vf s3_3_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            if (v == 0)
                ask(ahead + 4 * i, 4 * TERN_LANES * sizeof(element));
            const vf k0_0 = cached(row0, i, v + 0);
            vf_store(wide + 0 * tern_attend_padded(dim) + i + v + 0, k0_0);
            const vf k1_0 = cached(row1, i, v + 0);
            vf_store(wide + 1 * tern_attend_padded(dim) + i + v + 0, k1_0);
            const vf k2_0 = cached(row2, i, v + 0);
            vf_store(wide + 2 * tern_attend_padded(dim) + i + v + 0, k2_0);
            const vf k3_0 = cached(row3, i, v + 0);
            vf_store(wide + 3 * tern_attend_padded(dim) + i + v + 0, k3_0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load(q[1] + i + v + 0);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load(q[2] + i + v + 0);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
            const vf q3_0 = vf_load(q[3] + i + v + 0);
            s0_3_0 = vf_mac_exact(s0_3_0, q3_0, k0_0);
            s1_3_0 = vf_mac_exact(s1_3_0, q3_0, k1_0);
            s2_3_0 = vf_mac_exact(s2_3_0, q3_0, k2_0);
            s3_3_0 = vf_mac_exact(s3_3_0, q3_0, k3_0);
        }
        if (i < dim) {
            const size_t left0 = tail_lanes(dim - i, v + 0, 16);
            const vf k0_0 = cached_n(row0, i, v + 0, left0);
            vf_store(wide + 0 * tern_attend_padded(dim) + i + v + 0, k0_0);
            const vf k1_0 = cached_n(row1, i, v + 0, left0);
            vf_store(wide + 1 * tern_attend_padded(dim) + i + v + 0, k1_0);
            const vf k2_0 = cached_n(row2, i, v + 0, left0);
            vf_store(wide + 2 * tern_attend_padded(dim) + i + v + 0, k2_0);
            const vf k3_0 = cached_n(row3, i, v + 0, left0);
            vf_store(wide + 3 * tern_attend_padded(dim) + i + v + 0, k3_0);
            const vf q0_0 = vf_load_fill(q[0] + i + v + 0, left0, 0.0f);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load_fill(q[1] + i + v + 0, left0, 0.0f);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load_fill(q[2] + i + v + 0, left0, 0.0f);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
            const vf q3_0 = vf_load_fill(q[3] + i + v + 0, left0, 0.0f);
            s0_3_0 = vf_mac_exact(s0_3_0, q3_0, k0_0);
            s1_3_0 = vf_mac_exact(s1_3_0, q3_0, k1_0);
            s2_3_0 = vf_mac_exact(s2_3_0, q3_0, k2_0);
            s3_3_0 = vf_mac_exact(s3_3_0, q3_0, k3_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (1 * SUMS + 0) * FOLDED + v, s0_1_0);
        vf_store(sums + (1 * SUMS + 1) * FOLDED + v, s1_1_0);
        vf_store(sums + (1 * SUMS + 2) * FOLDED + v, s2_1_0);
        vf_store(sums + (1 * SUMS + 3) * FOLDED + v, s3_1_0);
        vf_store(sums + (2 * SUMS + 0) * FOLDED + v, s0_2_0);
        vf_store(sums + (2 * SUMS + 1) * FOLDED + v, s1_2_0);
        vf_store(sums + (2 * SUMS + 2) * FOLDED + v, s2_2_0);
        vf_store(sums + (2 * SUMS + 3) * FOLDED + v, s3_2_0);
        vf_store(sums + (3 * SUMS + 0) * FOLDED + v, s0_3_0);
        vf_store(sums + (3 * SUMS + 1) * FOLDED + v, s1_3_0);
        vf_store(sums + (3 * SUMS + 2) * FOLDED + v, s2_3_0);
        vf_store(sums + (3 * SUMS + 3) * FOLDED + v, s3_3_0);
    }
}

/*
 * The lanes of the scores of 4 heads at 4 positions from j on; the last of n stands in for more.
 * Rows of keys are padded: there is no tail.
 */
static inline void later_dots4(const float *const *q, const float *k, size_t j, size_t n,
    size_t dim, float *sums) {
    const float *const row0 = k + (j + 0 < n ? j + 0 : n - 1) * dim;
    const float *const row1 = k + (j + 1 < n ? j + 1 : n - 1) * dim;
    const float *const row2 = k + (j + 2 < n ? j + 2 : n - 1) * dim;
    const float *const row3 = k + (j + 3 < n ? j + 3 : n - 1) * dim;
    for (size_t v = 0; v < TERN_LANES; v += 16) {
        vf s0_0_0 = vf_zero();
        vf s0_1_0 = vf_zero();
        vf s0_2_0 = vf_zero();
        vf s0_3_0 = vf_zero();
        vf s1_0_0 = vf_zero();
        vf s1_1_0 = vf_zero();
        vf s1_2_0 = vf_zero();
        vf s1_3_0 = vf_zero();
        vf s2_0_0 = vf_zero();
        vf s2_1_0 = vf_zero();
        vf s2_2_0 = vf_zero();
        vf s2_3_0 = vf_zero();
        vf s3_0_0 = vf_zero();
        vf s3_1_0 = vf_zero();
        vf s3_2_0 = vf_zero();
        vf s3_3_0 = vf_zero();
        size_t i = 0;
        for (; i + TERN_LANES <= dim; i += TERN_LANES) {
            const vf k0_0 = vf_load(row0 + i + v + 0);
            const vf k1_0 = vf_load(row1 + i + v + 0);
            const vf k2_0 = vf_load(row2 + i + v + 0);
            const vf k3_0 = vf_load(row3 + i + v + 0);
            const vf q0_0 = vf_load(q[0] + i + v + 0);
            s0_0_0 = vf_mac_exact(s0_0_0, q0_0, k0_0);
            s1_0_0 = vf_mac_exact(s1_0_0, q0_0, k1_0);
            s2_0_0 = vf_mac_exact(s2_0_0, q0_0, k2_0);
            s3_0_0 = vf_mac_exact(s3_0_0, q0_0, k3_0);
            const vf q1_0 = vf_load(q[1] + i + v + 0);
            s0_1_0 = vf_mac_exact(s0_1_0, q1_0, k0_0);
            s1_1_0 = vf_mac_exact(s1_1_0, q1_0, k1_0);
            s2_1_0 = vf_mac_exact(s2_1_0, q1_0, k2_0);
            s3_1_0 = vf_mac_exact(s3_1_0, q1_0, k3_0);
            const vf q2_0 = vf_load(q[2] + i + v + 0);
            s0_2_0 = vf_mac_exact(s0_2_0, q2_0, k0_0);
            s1_2_0 = vf_mac_exact(s1_2_0, q2_0, k1_0);
            s2_2_0 = vf_mac_exact(s2_2_0, q2_0, k2_0);
            s3_2_0 = vf_mac_exact(s3_2_0, q2_0, k3_0);
            const vf q3_0 = vf_load(q[3] + i + v + 0);
            s0_3_0 = vf_mac_exact(s0_3_0, q3_0, k0_0);
            s1_3_0 = vf_mac_exact(s1_3_0, q3_0, k1_0);
            s2_3_0 = vf_mac_exact(s2_3_0, q3_0, k2_0);
            s3_3_0 = vf_mac_exact(s3_3_0, q3_0, k3_0);
        }
        vf_store(sums + (0 * SUMS + 0) * FOLDED + v, s0_0_0);
        vf_store(sums + (0 * SUMS + 1) * FOLDED + v, s1_0_0);
        vf_store(sums + (0 * SUMS + 2) * FOLDED + v, s2_0_0);
        vf_store(sums + (0 * SUMS + 3) * FOLDED + v, s3_0_0);
        vf_store(sums + (1 * SUMS + 0) * FOLDED + v, s0_1_0);
        vf_store(sums + (1 * SUMS + 1) * FOLDED + v, s1_1_0);
        vf_store(sums + (1 * SUMS + 2) * FOLDED + v, s2_1_0);
        vf_store(sums + (1 * SUMS + 3) * FOLDED + v, s3_1_0);
        vf_store(sums + (2 * SUMS + 0) * FOLDED + v, s0_2_0);
        vf_store(sums + (2 * SUMS + 1) * FOLDED + v, s1_2_0);
        vf_store(sums + (2 * SUMS + 2) * FOLDED + v, s2_2_0);
        vf_store(sums + (2 * SUMS + 3) * FOLDED + v, s3_2_0);
        vf_store(sums + (3 * SUMS + 0) * FOLDED + v, s0_3_0);
        vf_store(sums + (3 * SUMS + 1) * FOLDED + v, s1_3_0);
        vf_store(sums + (3 * SUMS + 2) * FOLDED + v, s2_3_0);
        vf_store(sums + (3 * SUMS + 3) * FOLDED + v, s3_3_0);
    }
}

/* s[h][j] = (q[h] . k[j]) * scale for n positions; what lies after them in s is overwritten. */
static void score4(const tile *t, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 4)
            dots4(t->own.q, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 4, t->s + j);
    }
}

/* The same for 4 heads from h0 on and SUMS positions from j on. */
static void first_score4(const tile *t, size_t h0, size_t j, size_t n) {
    const size_t padded = tern_attend_padded(t->dim);
    for (size_t p = 0; p < SUMS && j + p < n; p += 4)
        first_dots4(t->own.q + h0, t->k, j + p, n, t->dim, t->by_score + (j + p) * t->dim,
            t->own.wide + p * padded, t->own.sums + p * FOLDED);
    fold(t, 4, t->s + h0 * TERN_ATTEND_CHUNK + j);
}

/* The same for 4 heads from h0 on and SUMS positions from j on. */
static void later_score4(const tile *t, size_t h0, size_t j, size_t n) {
    const size_t padded = tern_attend_padded(t->dim);
    for (size_t p = 0; p < SUMS && j + p < n; p += 4)
        later_dots4(t->own.q + h0, t->own.wide, p, n - j, padded, t->own.sums + p * FOLDED);
    fold(t, 4, t->s + h0 * TERN_ATTEND_CHUNK + j);
}

/*
 * o[i] += sum over j of e[j] * v[j][i], j increasing, for 4 heads from h0 on, the first one's at o.
 * The heads that come first ask for as much of what is read next as they read.
 */
static inline void gather4(const tile *t, size_t h0, size_t from, size_t to, float *o) {
    const size_t dim = t->dim;
    const size_t stride = tern_attend_state(dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    size_t i = 0;
    for (; i + 64 <= dim; i += 64) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        vf o0_1 = vf_load(o + 0 * stride + i + 16);
        vf o0_2 = vf_load(o + 0 * stride + i + 32);
        vf o0_3 = vf_load(o + 0 * stride + i + 48);
        vf o1_0 = vf_load(o + 1 * stride + i + 0);
        vf o1_1 = vf_load(o + 1 * stride + i + 16);
        vf o1_2 = vf_load(o + 1 * stride + i + 32);
        vf o1_3 = vf_load(o + 1 * stride + i + 48);
        vf o2_0 = vf_load(o + 2 * stride + i + 0);
        vf o2_1 = vf_load(o + 2 * stride + i + 16);
        vf o2_2 = vf_load(o + 2 * stride + i + 32);
        vf o2_3 = vf_load(o + 2 * stride + i + 48);
        vf o3_0 = vf_load(o + 3 * stride + i + 0);
        vf o3_1 = vf_load(o + 3 * stride + i + 16);
        vf o3_2 = vf_load(o + 3 * stride + i + 32);
        vf o3_3 = vf_load(o + 3 * stride + i + 48);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 64, 64 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf v1 = cached(row, i, 16);
            const vf v2 = cached(row, i, 32);
            const vf v3 = cached(row, i, 48);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
            o0_1 = vf_mac_exact(o0_1, e0, v1);
            o0_2 = vf_mac_exact(o0_2, e0, v2);
            o0_3 = vf_mac_exact(o0_3, e0, v3);
            const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
            o1_0 = vf_mac_exact(o1_0, e1, v0);
            o1_1 = vf_mac_exact(o1_1, e1, v1);
            o1_2 = vf_mac_exact(o1_2, e1, v2);
            o1_3 = vf_mac_exact(o1_3, e1, v3);
            const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
            o2_0 = vf_mac_exact(o2_0, e2, v0);
            o2_1 = vf_mac_exact(o2_1, e2, v1);
            o2_2 = vf_mac_exact(o2_2, e2, v2);
            o2_3 = vf_mac_exact(o2_3, e2, v3);
            const vf e3 = vf_set1(e[3 * TERN_ATTEND_CHUNK + j]);
            o3_0 = vf_mac_exact(o3_0, e3, v0);
            o3_1 = vf_mac_exact(o3_1, e3, v1);
            o3_2 = vf_mac_exact(o3_2, e3, v2);
            o3_3 = vf_mac_exact(o3_3, e3, v3);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
        vf_store(o + 0 * stride + i + 16, o0_1);
        vf_store(o + 0 * stride + i + 32, o0_2);
        vf_store(o + 0 * stride + i + 48, o0_3);
        vf_store(o + 1 * stride + i + 0, o1_0);
        vf_store(o + 1 * stride + i + 16, o1_1);
        vf_store(o + 1 * stride + i + 32, o1_2);
        vf_store(o + 1 * stride + i + 48, o1_3);
        vf_store(o + 2 * stride + i + 0, o2_0);
        vf_store(o + 2 * stride + i + 16, o2_1);
        vf_store(o + 2 * stride + i + 32, o2_2);
        vf_store(o + 2 * stride + i + 48, o2_3);
        vf_store(o + 3 * stride + i + 0, o3_0);
        vf_store(o + 3 * stride + i + 16, o3_1);
        vf_store(o + 3 * stride + i + 32, o3_2);
        vf_store(o + 3 * stride + i + 48, o3_3);
    }
    for (; i + 16 <= dim; i += 16) {
        vf o0_0 = vf_load(o + 0 * stride + i + 0);
        vf o1_0 = vf_load(o + 1 * stride + i + 0);
        vf o2_0 = vf_load(o + 2 * stride + i + 0);
        vf o3_0 = vf_load(o + 3 * stride + i + 0);
        for (size_t j = from; j < to; j++) {
            const element *row = v + j * dim;
            if (h0 == 0)
                ask(ahead + i * TERN_ATTEND_CHUNK + j * 16, 16 * sizeof(element));
            const vf v0 = cached(row, i, 0);
            const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
            o0_0 = vf_mac_exact(o0_0, e0, v0);
            const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
            o1_0 = vf_mac_exact(o1_0, e1, v0);
            const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
            o2_0 = vf_mac_exact(o2_0, e2, v0);
            const vf e3 = vf_set1(e[3 * TERN_ATTEND_CHUNK + j]);
            o3_0 = vf_mac_exact(o3_0, e3, v0);
        }
        vf_store(o + 0 * stride + i + 0, o0_0);
        vf_store(o + 1 * stride + i + 0, o1_0);
        vf_store(o + 2 * stride + i + 0, o2_0);
        vf_store(o + 3 * stride + i + 0, o3_0);
    }
    if (i < dim) {
        const size_t left = dim - i;
        vf o0 = vf_load(o + 0 * stride + i); /* padded to whole vectors */
        vf o1 = vf_load(o + 1 * stride + i); /* padded to whole vectors */
        vf o2 = vf_load(o + 2 * stride + i); /* padded to whole vectors */
        vf o3 = vf_load(o + 3 * stride + i); /* padded to whole vectors */
        for (size_t j = from; j < to; j++) {
            const vf part = cached_n(v + j * dim, i, 0, left);
            o0 = vf_mac_exact(o0, vf_set1(e[0 * TERN_ATTEND_CHUNK + j]), part);
            o1 = vf_mac_exact(o1, vf_set1(e[1 * TERN_ATTEND_CHUNK + j]), part);
            o2 = vf_mac_exact(o2, vf_set1(e[2 * TERN_ATTEND_CHUNK + j]), part);
            o3 = vf_mac_exact(o3, vf_set1(e[3 * TERN_ATTEND_CHUNK + j]), part);
        }
        vf_store(o + 0 * stride + i, o0);
        vf_store(o + 1 * stride + i, o1);
        vf_store(o + 2 * stride + i, o2);
        vf_store(o + 3 * stride + i, o3);
    }
}

/* The same for the columns of 4 vectors from i on, which are kept in `wide`. */
static void first_gather4_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const size_t dim = t->dim;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o0_1 = vf_load(o + 0 * stride + i + 16);
    vf o0_2 = vf_load(o + 0 * stride + i + 32);
    vf o0_3 = vf_load(o + 0 * stride + i + 48);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    vf o1_1 = vf_load(o + 1 * stride + i + 16);
    vf o1_2 = vf_load(o + 1 * stride + i + 32);
    vf o1_3 = vf_load(o + 1 * stride + i + 48);
    vf o2_0 = vf_load(o + 2 * stride + i + 0);
    vf o2_1 = vf_load(o + 2 * stride + i + 16);
    vf o2_2 = vf_load(o + 2 * stride + i + 32);
    vf o2_3 = vf_load(o + 2 * stride + i + 48);
    vf o3_0 = vf_load(o + 3 * stride + i + 0);
    vf o3_1 = vf_load(o + 3 * stride + i + 16);
    vf o3_2 = vf_load(o + 3 * stride + i + 32);
    vf o3_3 = vf_load(o + 3 * stride + i + 48);
    for (size_t j = from; j < to; j++) {
        const element *row = v + j * dim;
        ask(ahead + i * TERN_ATTEND_CHUNK + j * 64, 64 * sizeof(element));
        const vf v0 = cached(row, i, 0);
        vf_store(wide + (j * 4 + 0) * 16, v0);
        const vf v1 = cached(row, i, 16);
        vf_store(wide + (j * 4 + 1) * 16, v1);
        const vf v2 = cached(row, i, 32);
        vf_store(wide + (j * 4 + 2) * 16, v2);
        const vf v3 = cached(row, i, 48);
        vf_store(wide + (j * 4 + 3) * 16, v3);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        o0_1 = vf_mac_exact(o0_1, e0, v1);
        o0_2 = vf_mac_exact(o0_2, e0, v2);
        o0_3 = vf_mac_exact(o0_3, e0, v3);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        o1_1 = vf_mac_exact(o1_1, e1, v1);
        o1_2 = vf_mac_exact(o1_2, e1, v2);
        o1_3 = vf_mac_exact(o1_3, e1, v3);
        const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
        o2_0 = vf_mac_exact(o2_0, e2, v0);
        o2_1 = vf_mac_exact(o2_1, e2, v1);
        o2_2 = vf_mac_exact(o2_2, e2, v2);
        o2_3 = vf_mac_exact(o2_3, e2, v3);
        const vf e3 = vf_set1(e[3 * TERN_ATTEND_CHUNK + j]);
        o3_0 = vf_mac_exact(o3_0, e3, v0);
        o3_1 = vf_mac_exact(o3_1, e3, v1);
        o3_2 = vf_mac_exact(o3_2, e3, v2);
        o3_3 = vf_mac_exact(o3_3, e3, v3);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 0 * stride + i + 16, o0_1);
    vf_store(o + 0 * stride + i + 32, o0_2);
    vf_store(o + 0 * stride + i + 48, o0_3);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 1 * stride + i + 16, o1_1);
    vf_store(o + 1 * stride + i + 32, o1_2);
    vf_store(o + 1 * stride + i + 48, o1_3);
    vf_store(o + 2 * stride + i + 0, o2_0);
    vf_store(o + 2 * stride + i + 16, o2_1);
    vf_store(o + 2 * stride + i + 32, o2_2);
    vf_store(o + 2 * stride + i + 48, o2_3);
    vf_store(o + 3 * stride + i + 0, o3_0);
    vf_store(o + 3 * stride + i + 16, o3_1);
    vf_store(o + 3 * stride + i + 32, o3_2);
    vf_store(o + 3 * stride + i + 48, o3_3);
    for (size_t j = to; j < t->seen[t->n - 1]; j++) {
        vf_store(wide + (j * 4 + 0) * 16, cached(v + j * dim, i, 0));
        vf_store(wide + (j * 4 + 1) * 16, cached(v + j * dim, i, 16));
        vf_store(wide + (j * 4 + 2) * 16, cached(v + j * dim, i, 32));
        vf_store(wide + (j * 4 + 3) * 16, cached(v + j * dim, i, 48));
    }
}

/* The same for the columns of one vector from i on, which are kept in `wide`. */
static void first_gather4_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const size_t dim = t->dim;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    vf o2_0 = vf_load(o + 2 * stride + i + 0);
    vf o3_0 = vf_load(o + 3 * stride + i + 0);
    for (size_t j = from; j < to; j++) {
        const element *row = v + j * dim;
        ask(ahead + i * TERN_ATTEND_CHUNK + j * 16, 16 * sizeof(element));
        const vf v0 = cached_n(row, i, 0, tail_lanes(dim, i, 16));
        vf_store(wide + (j * 1 + 0) * 16, v0);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
        o2_0 = vf_mac_exact(o2_0, e2, v0);
        const vf e3 = vf_set1(e[3 * TERN_ATTEND_CHUNK + j]);
        o3_0 = vf_mac_exact(o3_0, e3, v0);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 2 * stride + i + 0, o2_0);
    vf_store(o + 3 * stride + i + 0, o3_0);
    for (size_t j = to; j < t->seen[t->n - 1]; j++) {
        vf_store(wide + (j * 1 + 0) * 16, cached_n(v + j * dim, i, 0, tail_lanes(dim, i, 16)));
    }
}

/* The same for the columns of 4 vectors from i on, which are in `wide`. */
static void later_gather4_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o0_1 = vf_load(o + 0 * stride + i + 16);
    vf o0_2 = vf_load(o + 0 * stride + i + 32);
    vf o0_3 = vf_load(o + 0 * stride + i + 48);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    vf o1_1 = vf_load(o + 1 * stride + i + 16);
    vf o1_2 = vf_load(o + 1 * stride + i + 32);
    vf o1_3 = vf_load(o + 1 * stride + i + 48);
    vf o2_0 = vf_load(o + 2 * stride + i + 0);
    vf o2_1 = vf_load(o + 2 * stride + i + 16);
    vf o2_2 = vf_load(o + 2 * stride + i + 32);
    vf o2_3 = vf_load(o + 2 * stride + i + 48);
    vf o3_0 = vf_load(o + 3 * stride + i + 0);
    vf o3_1 = vf_load(o + 3 * stride + i + 16);
    vf o3_2 = vf_load(o + 3 * stride + i + 32);
    vf o3_3 = vf_load(o + 3 * stride + i + 48);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 4 + 0) * 16);
        const vf v1 = vf_load(wide + (j * 4 + 1) * 16);
        const vf v2 = vf_load(wide + (j * 4 + 2) * 16);
        const vf v3 = vf_load(wide + (j * 4 + 3) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        o0_1 = vf_mac_exact(o0_1, e0, v1);
        o0_2 = vf_mac_exact(o0_2, e0, v2);
        o0_3 = vf_mac_exact(o0_3, e0, v3);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        o1_1 = vf_mac_exact(o1_1, e1, v1);
        o1_2 = vf_mac_exact(o1_2, e1, v2);
        o1_3 = vf_mac_exact(o1_3, e1, v3);
        const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
        o2_0 = vf_mac_exact(o2_0, e2, v0);
        o2_1 = vf_mac_exact(o2_1, e2, v1);
        o2_2 = vf_mac_exact(o2_2, e2, v2);
        o2_3 = vf_mac_exact(o2_3, e2, v3);
        const vf e3 = vf_set1(e[3 * TERN_ATTEND_CHUNK + j]);
        o3_0 = vf_mac_exact(o3_0, e3, v0);
        o3_1 = vf_mac_exact(o3_1, e3, v1);
        o3_2 = vf_mac_exact(o3_2, e3, v2);
        o3_3 = vf_mac_exact(o3_3, e3, v3);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 0 * stride + i + 16, o0_1);
    vf_store(o + 0 * stride + i + 32, o0_2);
    vf_store(o + 0 * stride + i + 48, o0_3);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 1 * stride + i + 16, o1_1);
    vf_store(o + 1 * stride + i + 32, o1_2);
    vf_store(o + 1 * stride + i + 48, o1_3);
    vf_store(o + 2 * stride + i + 0, o2_0);
    vf_store(o + 2 * stride + i + 16, o2_1);
    vf_store(o + 2 * stride + i + 32, o2_2);
    vf_store(o + 2 * stride + i + 48, o2_3);
    vf_store(o + 3 * stride + i + 0, o3_0);
    vf_store(o + 3 * stride + i + 16, o3_1);
    vf_store(o + 3 * stride + i + 32, o3_2);
    vf_store(o + 3 * stride + i + 48, o3_3);
}

/* The same for the columns of one vector from i on, which are in `wide`. */
static void later_gather4_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_load(o + 0 * stride + i + 0);
    vf o1_0 = vf_load(o + 1 * stride + i + 0);
    vf o2_0 = vf_load(o + 2 * stride + i + 0);
    vf o3_0 = vf_load(o + 3 * stride + i + 0);
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 1 + 0) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
        o2_0 = vf_mac_exact(o2_0, e2, v0);
        const vf e3 = vf_set1(e[3 * TERN_ATTEND_CHUNK + j]);
        o3_0 = vf_mac_exact(o3_0, e3, v0);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 2 * stride + i + 0, o2_0);
    vf_store(o + 3 * stride + i + 0, o3_0);
}

static void later_scores(const tile *t, size_t h0, size_t j, size_t n) {
    switch (t->n - h0) {
    case 1:
        later_score1(t, h0, j, n);
        break;
    case 2:
        later_score2(t, h0, j, n);
        break;
    case 3:
        later_score3(t, h0, j, n);
        break;
    default:
        later_score4(t, h0, j, n);
        break;
    }
}

/* The scores of more than four heads. */
static void score_all(const tile *t, size_t n) {
    for (size_t j = 0; j < n; j += SUMS) {
        first_score4(t, 0, j, n);
        for (size_t h0 = TERN_ATTEND_HEADS; h0 < t->n; h0 += TERN_ATTEND_HEADS)
            later_scores(t, h0, j, n);
    }
}

static void gather_columns4(const tile *t, size_t i, float *o) {
    first_gather4_4(t, 0, i, o);
    for (size_t h0 = TERN_ATTEND_HEADS; h0 < t->n; h0 += TERN_ATTEND_HEADS) {
        float *const to = o + h0 * tern_attend_state(t->dim);
    switch (t->n - h0) {
    case 1:
        later_gather1_4(t, h0, i, to);
        break;
    case 2:
        later_gather2_4(t, h0, i, to);
        break;
    case 3:
        later_gather3_4(t, h0, i, to);
        break;
    default:
        later_gather4_4(t, h0, i, to);
        break;
    }
    }
}

static void gather_columns1(const tile *t, size_t i, float *o) {
    first_gather4_1(t, 0, i, o);
    for (size_t h0 = TERN_ATTEND_HEADS; h0 < t->n; h0 += TERN_ATTEND_HEADS) {
        float *const to = o + h0 * tern_attend_state(t->dim);
    switch (t->n - h0) {
    case 1:
        later_gather1_1(t, h0, i, to);
        break;
    case 2:
        later_gather2_1(t, h0, i, to);
        break;
    case 3:
        later_gather3_1(t, h0, i, to);
        break;
    default:
        later_gather4_1(t, h0, i, to);
        break;
    }
    }
}

/* The values of more than four heads, each as far as the first of its group sees. */
static void gather_all(const tile *t, float *o) {
    size_t i = 0;
    for (; i + 64 <= t->dim; i += 64)
        gather_columns4(t, i, o);
    for (; i < t->dim; i += 16)
        gather_columns1(t, i, o);
}

static void score(const tile *t) {
    const size_t n = t->seen[t->n - 1];
    if (t->n > TERN_ATTEND_HEADS) {
        score_all(t, n);
        return;
    }
    switch (t->n) {
    case 1:
        score1(t, n);
        break;
    case 2:
        score2(t, n);
        break;
    case 3:
        score3(t, n);
        break;
    default:
        score4(t, n);
        break;
    }
}

/* The values of up to four heads, as far as the first sees. */
static void gather_few(const tile *t, float *o) {
    const size_t to = t->seen[0];
    switch (t->n) {
    case 1:
        gather1(t, 0, 0, to, o);
        break;
    case 2:
        gather2(t, 0, 0, to, o);
        break;
    case 3:
        gather3(t, 0, 0, to, o);
        break;
    default:
        gather4(t, 0, 0, to, o);
        break;
    }
}

/* From +0. */
static void gather(const tile *t, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    for (size_t h = 0; h < t->n; h++)
        memset(o + h * stride, 0, tern_attend_padded(t->dim) * sizeof *o);
    if (t->n > TERN_ATTEND_HEADS)
        gather_all(t, o);
    else
        gather_few(t, o);
    for (size_t h = 1; h < t->n; h++) {
        const size_t together = t->seen[h / TERN_ATTEND_HEADS * TERN_ATTEND_HEADS];
        if (together < t->seen[h]) /* a later token */
            gather1(t, h, together, t->seen[h], o + h * stride);
    }
}
