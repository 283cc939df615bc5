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
    TURN_FROM = 16, /* heads of a tile for which it pays to turn keys */
    SUMS_FLOATS = TERN_ATTEND_MANY * SUMS * FOLDED
};

/* Of the sixteen sums of a score, 0 and 8 are added first, then 4 and 12, then these two. */
static const uint8_t sum_order[TERN_LANES] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
/* A cache row, the keys or values of one position, is dim elements. */
typedef uint16_t element;

typedef struct tile_operands {
    const float *all; /* [heads][tern_attend_padded(dim)] query heads, rounded to 13 bits */
    const float *q[TILE_HEADS];
    float *wide; /* keys, or some columns of the values of a chunk, as floats */
    const float *factors; /* of states that the tile's are merged into,
        then of the tile's; NULL: of none */
    float *sums; /* [TERN_ATTEND_MANY][SUMS][FOLDED] */
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
    float *s;     /* [n][TERN_ATTEND_CHUNK] scores, then weights */
    float *parts; /* [n] states, before they are merged */
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

/* Whether all heads see the same positions. */
static bool all_alike(const tile *t) {
    return t->seen[0] == t->seen[t->n - 1];
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

/* The weight of a score that is x <= 0 beside the largest, to 13 bits; NaN has none. */
static inline vf weight(vf x) {
    return vf_round13_weight(vf_exp(x));
}

/*
 * The weights of 64 scores in place, added to `sum`. All vectors take a step before the next step:
 * those of one vector wait for each other, and there are so many that a processor does not see
 * past them to the next vector.
 */
static inline vf weigh_many(float *s, vf largest, vf sum) {
    const vf x0 = vf_max(vf_sub(vf_load(s + 0), largest), vf_set1(-104.0f));
    const vf x1 = vf_max(vf_sub(vf_load(s + 16), largest), vf_set1(-104.0f));
    const vf x2 = vf_max(vf_sub(vf_load(s + 32), largest), vf_set1(-104.0f));
    const vf x3 = vf_max(vf_sub(vf_load(s + 48), largest), vf_set1(-104.0f));
    const vf n0 = vf_exp_steps(x0);
    const vf n1 = vf_exp_steps(x1);
    const vf n2 = vf_exp_steps(x2);
    const vf n3 = vf_exp_steps(x3);
    const vf r0 = vf_exp_remainder(x0, n0);
    vf q0 = vf_exp_factor(0);
    const vf r1 = vf_exp_remainder(x1, n1);
    vf q1 = vf_exp_factor(0);
    const vf r2 = vf_exp_remainder(x2, n2);
    vf q2 = vf_exp_factor(0);
    const vf r3 = vf_exp_remainder(x3, n3);
    vf q3 = vf_exp_factor(0);
    q0 = vf_exp_next(q0, r0, 1);
    q1 = vf_exp_next(q1, r1, 1);
    q2 = vf_exp_next(q2, r2, 1);
    q3 = vf_exp_next(q3, r3, 1);
    q0 = vf_exp_next(q0, r0, 2);
    q1 = vf_exp_next(q1, r1, 2);
    q2 = vf_exp_next(q2, r2, 2);
    q3 = vf_exp_next(q3, r3, 2);
    q0 = vf_exp_next(q0, r0, 3);
    q1 = vf_exp_next(q1, r1, 3);
    q2 = vf_exp_next(q2, r2, 3);
    q3 = vf_exp_next(q3, r3, 3);
    q0 = vf_exp_next(q0, r0, 4);
    q1 = vf_exp_next(q1, r1, 4);
    q2 = vf_exp_next(q2, r2, 4);
    q3 = vf_exp_next(q3, r3, 4);
    q0 = vf_exp_next(q0, r0, 5);
    q1 = vf_exp_next(q1, r1, 5);
    q2 = vf_exp_next(q2, r2, 5);
    q3 = vf_exp_next(q3, r3, 5);
    const vf e0 = vf_round13_weight(vf_scale(vf_add(vf_exp_less1(q0, r0), vf_set1(1.0f)), n0));
    const vf e1 = vf_round13_weight(vf_scale(vf_add(vf_exp_less1(q1, r1), vf_set1(1.0f)), n1));
    const vf e2 = vf_round13_weight(vf_scale(vf_add(vf_exp_less1(q2, r2), vf_set1(1.0f)), n2));
    const vf e3 = vf_round13_weight(vf_scale(vf_add(vf_exp_less1(q3, r3), vf_set1(1.0f)), n3));
    vf_store(s + 0, e0);
    sum = vf_add(sum, e0);
    vf_store(s + 16, e1);
    sum = vf_add(sum, e1);
    vf_store(s + 32, e2);
    sum = vf_add(sum, e2);
    vf_store(s + 48, e3);
    sum = vf_add(sum, e3);
    return sum;
}

/* The weights of n scores of a chunk in place, zeros after; returns their sum. */
static inline float weigh(float *s, size_t n, float m) {
    const vf largest = vf_set1(m);
    vf sum0 = vf_zero();
    size_t j = 0;
    for (; j + 4 * TERN_LANES <= n; j += 4 * TERN_LANES)
        sum0 = weigh_many(s + j, largest, sum0);
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

/* total * a + part * b */
static inline vf mixed(vf total, vf a, vf part, vf b) {
    return vf_add(vf_mul(total, a), vf_mul(part, b));
}

static inline void blend(float *total, float a, const float *part, float b, size_t dim) {
    const vf va = vf_set1(a);
    const vf vb_ = vf_set1(b);
    for (size_t i = 0; i < dim; i += 16) /* both are padded to whole vectors */
        vf_store(total + i, mixed(vf_load(total + i), va, vf_load(part + i), vb_));
}

enum { FACTORS = 2 * TILE_HEADS < TERN_LANES ? TERN_LANES : 2 * TILE_HEADS };

/*
 * What n states are multiplied by, and then n that are merged into them, whose maxima stand `step`
 * floats apart. The first ones' maxima become those of both.
 */
static void merge_maxima(float *total, const float *largest, size_t step, size_t n, size_t dim,
    float *factors) {
    const size_t stride = tern_attend_state(dim);
    total += tern_attend_padded(dim);
    memset(factors, 0, FACTORS * sizeof *factors);
    for (size_t h = 0; h < n; h++) {
        const float old = total[h * stride];
        const float new = largest[h * step];
        const float m = new > old ? new : old;
        factors[h] = old - m;
        factors[n + h] = new - m;
        total[h * stride] = m;
    }
    for (size_t i = 0; i < 2 * n; i += 16)
        vf_store(factors + i, vf_exp(vf_load(factors + i)));
}

/* Merges n <= TILE_HEADS states that follow into those of the heads so far. */
static void merge_heads(float *total, const float *part, size_t n, size_t dim) {
    const size_t stride = tern_attend_state(dim);
    const size_t at = tern_attend_padded(dim);
    float factors[FACTORS];
    merge_maxima(total, part + at, stride, n, dim, factors);
    for (size_t h = 0; h < n; h++) {
        float *const sum = total + h * stride + at + 1;
        blend(total + h * stride, factors[h], part + h * stride, factors[n + h], dim);
        *sum = *sum * factors[h] + part[h * stride + at + 1] * factors[n + h];
    }
}

/* Gathers values and merges them into the states of the tile's heads, which are all alike. */
static void gather_into(tile *t, float *total) {
    const size_t stride = tern_attend_state(t->dim);
    float factors[FACTORS];
    float *sum = total + tern_attend_padded(t->dim) + 1;
    merge_maxima(total, t->largest, 1, t->n, t->dim, factors);
    t->own.factors = factors;
    gather(t, total);
    t->own.factors = NULL;
    for (size_t h = 0; h < t->n; h++, sum += stride)
        *sum = *sum * factors[h] + t->sum[h] * factors[t->n + h];
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
        if (!fresh && t->n > TERN_ATTEND_HEADS && all_alike(t)) {
            gather_into(t, state);
            continue;
        }
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
    const size_t heads = args->heads.tokens * args->heads.group;
    const size_t most = heads < TILE_HEADS ? heads : TILE_HEADS;
    float *const scores = args->scratch;
    float *const parts = scores + most * TERN_ATTEND_CHUNK;
    const size_t dim = args->heads.dim;
    tile t = {.dim = dim, .s = scores, .parts = parts};
    t.own = share(args, parts + most * tern_attend_state(dim));
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
 * s[h][j] =
     (q[h] . k[j]) * scale for 1 heads from h0 on and n positions; what lies after them in s is
 * overwritten.
 */
static void score1(const tile *t, size_t h0, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 8)
            dots1(t->own.q + h0, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 1, t->s + h0 * TERN_ATTEND_CHUNK + j);
    }
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
 * s[h][j] =
     (q[h] . k[j]) * scale for 2 heads from h0 on and n positions; what lies after them in s is
 * overwritten.
 */
static void score2(const tile *t, size_t h0, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 8)
            dots2(t->own.q + h0, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 2, t->s + h0 * TERN_ATTEND_CHUNK + j);
    }
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
 * s[h][j] =
     (q[h] . k[j]) * scale for 3 heads from h0 on and n positions; what lies after them in s is
 * overwritten.
 */
static void score3(const tile *t, size_t h0, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 4)
            dots3(t->own.q + h0, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 3, t->s + h0 * TERN_ATTEND_CHUNK + j);
    }
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
 * s[h][j] =
     (q[h] . k[j]) * scale for 4 heads from h0 on and n positions; what lies after them in s is
 * overwritten.
 */
static void score4(const tile *t, size_t h0, size_t n) {
    const size_t row = t->dim;
    for (size_t j = 0; j < n; j += SUMS) {
        for (size_t p = 0; p < SUMS && j + p < n; p += 4)
            dots4(t->own.q + h0, t->k, j + p, n, row, t->by_score + (j + p) * row,
                t->own.sums + p * FOLDED);
        fold(t, 4, t->s + h0 * TERN_ATTEND_CHUNK + j);
    }
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

/*
 * The same from +0 for the columns of 4 vectors from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather1_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o0_1 = vf_zero();
    vf o0_2 = vf_zero();
    vf o0_3 = vf_zero();
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
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        o0_1 = mixed(vf_load(o + 0 * stride + i + 16), keep0, o0_1, take0);
        o0_2 = mixed(vf_load(o + 0 * stride + i + 32), keep0, o0_2, take0);
        o0_3 = mixed(vf_load(o + 0 * stride + i + 48), keep0, o0_3, take0);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 0 * stride + i + 16, o0_1);
    vf_store(o + 0 * stride + i + 32, o0_2);
    vf_store(o + 0 * stride + i + 48, o0_3);
}

/*
 * The same from +0 for the columns of one vector from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather1_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 1 + 0) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
    }
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
}

/*
 * The same from +0 for the columns of 4 vectors from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather2_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o0_1 = vf_zero();
    vf o0_2 = vf_zero();
    vf o0_3 = vf_zero();
    vf o1_0 = vf_zero();
    vf o1_1 = vf_zero();
    vf o1_2 = vf_zero();
    vf o1_3 = vf_zero();
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
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        o0_1 = mixed(vf_load(o + 0 * stride + i + 16), keep0, o0_1, take0);
        o0_2 = mixed(vf_load(o + 0 * stride + i + 32), keep0, o0_2, take0);
        o0_3 = mixed(vf_load(o + 0 * stride + i + 48), keep0, o0_3, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        o1_1 = mixed(vf_load(o + 1 * stride + i + 16), keep1, o1_1, take1);
        o1_2 = mixed(vf_load(o + 1 * stride + i + 32), keep1, o1_2, take1);
        o1_3 = mixed(vf_load(o + 1 * stride + i + 48), keep1, o1_3, take1);
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

/*
 * The same from +0 for the columns of one vector from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather2_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o1_0 = vf_zero();
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 1 + 0) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
    }
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
}

/*
 * The same from +0 for the columns of 4 vectors from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather3_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o0_1 = vf_zero();
    vf o0_2 = vf_zero();
    vf o0_3 = vf_zero();
    vf o1_0 = vf_zero();
    vf o1_1 = vf_zero();
    vf o1_2 = vf_zero();
    vf o1_3 = vf_zero();
    vf o2_0 = vf_zero();
    vf o2_1 = vf_zero();
    vf o2_2 = vf_zero();
    vf o2_3 = vf_zero();
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
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        o0_1 = mixed(vf_load(o + 0 * stride + i + 16), keep0, o0_1, take0);
        o0_2 = mixed(vf_load(o + 0 * stride + i + 32), keep0, o0_2, take0);
        o0_3 = mixed(vf_load(o + 0 * stride + i + 48), keep0, o0_3, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        o1_1 = mixed(vf_load(o + 1 * stride + i + 16), keep1, o1_1, take1);
        o1_2 = mixed(vf_load(o + 1 * stride + i + 32), keep1, o1_2, take1);
        o1_3 = mixed(vf_load(o + 1 * stride + i + 48), keep1, o1_3, take1);
        const vf keep2 = vf_set1(t->own.factors[h0 + 2]), take2 =
            vf_set1(t->own.factors[t->n + h0 + 2]);
        o2_0 = mixed(vf_load(o + 2 * stride + i + 0), keep2, o2_0, take2);
        o2_1 = mixed(vf_load(o + 2 * stride + i + 16), keep2, o2_1, take2);
        o2_2 = mixed(vf_load(o + 2 * stride + i + 32), keep2, o2_2, take2);
        o2_3 = mixed(vf_load(o + 2 * stride + i + 48), keep2, o2_3, take2);
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

/*
 * The same from +0 for the columns of one vector from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather3_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o1_0 = vf_zero();
    vf o2_0 = vf_zero();
    for (size_t j = from; j < to; j++) {
        const vf v0 = vf_load(wide + (j * 1 + 0) * 16);
        const vf e0 = vf_set1(e[0 * TERN_ATTEND_CHUNK + j]);
        o0_0 = vf_mac_exact(o0_0, e0, v0);
        const vf e1 = vf_set1(e[1 * TERN_ATTEND_CHUNK + j]);
        o1_0 = vf_mac_exact(o1_0, e1, v0);
        const vf e2 = vf_set1(e[2 * TERN_ATTEND_CHUNK + j]);
        o2_0 = vf_mac_exact(o2_0, e2, v0);
    }
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        const vf keep2 = vf_set1(t->own.factors[h0 + 2]), take2 =
            vf_set1(t->own.factors[t->n + h0 + 2]);
        o2_0 = mixed(vf_load(o + 2 * stride + i + 0), keep2, o2_0, take2);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 2 * stride + i + 0, o2_0);
}

/*
 * The same from +0 for the columns of 4 vectors from i on, which are kept in `wide`.
 * With factors they are merged into o.
 */
static void first_gather4_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const size_t dim = t->dim;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o0_1 = vf_zero();
    vf o0_2 = vf_zero();
    vf o0_3 = vf_zero();
    vf o1_0 = vf_zero();
    vf o1_1 = vf_zero();
    vf o1_2 = vf_zero();
    vf o1_3 = vf_zero();
    vf o2_0 = vf_zero();
    vf o2_1 = vf_zero();
    vf o2_2 = vf_zero();
    vf o2_3 = vf_zero();
    vf o3_0 = vf_zero();
    vf o3_1 = vf_zero();
    vf o3_2 = vf_zero();
    vf o3_3 = vf_zero();
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
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        o0_1 = mixed(vf_load(o + 0 * stride + i + 16), keep0, o0_1, take0);
        o0_2 = mixed(vf_load(o + 0 * stride + i + 32), keep0, o0_2, take0);
        o0_3 = mixed(vf_load(o + 0 * stride + i + 48), keep0, o0_3, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        o1_1 = mixed(vf_load(o + 1 * stride + i + 16), keep1, o1_1, take1);
        o1_2 = mixed(vf_load(o + 1 * stride + i + 32), keep1, o1_2, take1);
        o1_3 = mixed(vf_load(o + 1 * stride + i + 48), keep1, o1_3, take1);
        const vf keep2 = vf_set1(t->own.factors[h0 + 2]), take2 =
            vf_set1(t->own.factors[t->n + h0 + 2]);
        o2_0 = mixed(vf_load(o + 2 * stride + i + 0), keep2, o2_0, take2);
        o2_1 = mixed(vf_load(o + 2 * stride + i + 16), keep2, o2_1, take2);
        o2_2 = mixed(vf_load(o + 2 * stride + i + 32), keep2, o2_2, take2);
        o2_3 = mixed(vf_load(o + 2 * stride + i + 48), keep2, o2_3, take2);
        const vf keep3 = vf_set1(t->own.factors[h0 + 3]), take3 =
            vf_set1(t->own.factors[t->n + h0 + 3]);
        o3_0 = mixed(vf_load(o + 3 * stride + i + 0), keep3, o3_0, take3);
        o3_1 = mixed(vf_load(o + 3 * stride + i + 16), keep3, o3_1, take3);
        o3_2 = mixed(vf_load(o + 3 * stride + i + 32), keep3, o3_2, take3);
        o3_3 = mixed(vf_load(o + 3 * stride + i + 48), keep3, o3_3, take3);
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

/*
 * The same from +0 for the columns of one vector from i on, which are kept in `wide`.
 * With factors they are merged into o.
 */
static void first_gather4_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const size_t dim = t->dim;
    const element *const v = t->v;
    const element *const ahead = t->by_gather;
    float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o1_0 = vf_zero();
    vf o2_0 = vf_zero();
    vf o3_0 = vf_zero();
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
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        const vf keep2 = vf_set1(t->own.factors[h0 + 2]), take2 =
            vf_set1(t->own.factors[t->n + h0 + 2]);
        o2_0 = mixed(vf_load(o + 2 * stride + i + 0), keep2, o2_0, take2);
        const vf keep3 = vf_set1(t->own.factors[h0 + 3]), take3 =
            vf_set1(t->own.factors[t->n + h0 + 3]);
        o3_0 = mixed(vf_load(o + 3 * stride + i + 0), keep3, o3_0, take3);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 2 * stride + i + 0, o2_0);
    vf_store(o + 3 * stride + i + 0, o3_0);
    for (size_t j = to; j < t->seen[t->n - 1]; j++) {
        vf_store(wide + (j * 1 + 0) * 16, cached_n(v + j * dim, i, 0, tail_lanes(dim, i, 16)));
    }
}

/*
 * The same from +0 for the columns of 4 vectors from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather4_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o0_1 = vf_zero();
    vf o0_2 = vf_zero();
    vf o0_3 = vf_zero();
    vf o1_0 = vf_zero();
    vf o1_1 = vf_zero();
    vf o1_2 = vf_zero();
    vf o1_3 = vf_zero();
    vf o2_0 = vf_zero();
    vf o2_1 = vf_zero();
    vf o2_2 = vf_zero();
    vf o2_3 = vf_zero();
    vf o3_0 = vf_zero();
    vf o3_1 = vf_zero();
    vf o3_2 = vf_zero();
    vf o3_3 = vf_zero();
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
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        o0_1 = mixed(vf_load(o + 0 * stride + i + 16), keep0, o0_1, take0);
        o0_2 = mixed(vf_load(o + 0 * stride + i + 32), keep0, o0_2, take0);
        o0_3 = mixed(vf_load(o + 0 * stride + i + 48), keep0, o0_3, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        o1_1 = mixed(vf_load(o + 1 * stride + i + 16), keep1, o1_1, take1);
        o1_2 = mixed(vf_load(o + 1 * stride + i + 32), keep1, o1_2, take1);
        o1_3 = mixed(vf_load(o + 1 * stride + i + 48), keep1, o1_3, take1);
        const vf keep2 = vf_set1(t->own.factors[h0 + 2]), take2 =
            vf_set1(t->own.factors[t->n + h0 + 2]);
        o2_0 = mixed(vf_load(o + 2 * stride + i + 0), keep2, o2_0, take2);
        o2_1 = mixed(vf_load(o + 2 * stride + i + 16), keep2, o2_1, take2);
        o2_2 = mixed(vf_load(o + 2 * stride + i + 32), keep2, o2_2, take2);
        o2_3 = mixed(vf_load(o + 2 * stride + i + 48), keep2, o2_3, take2);
        const vf keep3 = vf_set1(t->own.factors[h0 + 3]), take3 =
            vf_set1(t->own.factors[t->n + h0 + 3]);
        o3_0 = mixed(vf_load(o + 3 * stride + i + 0), keep3, o3_0, take3);
        o3_1 = mixed(vf_load(o + 3 * stride + i + 16), keep3, o3_1, take3);
        o3_2 = mixed(vf_load(o + 3 * stride + i + 32), keep3, o3_2, take3);
        o3_3 = mixed(vf_load(o + 3 * stride + i + 48), keep3, o3_3, take3);
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

/*
 * The same from +0 for the columns of one vector from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather4_1(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o1_0 = vf_zero();
    vf o2_0 = vf_zero();
    vf o3_0 = vf_zero();
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
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        const vf keep2 = vf_set1(t->own.factors[h0 + 2]), take2 =
            vf_set1(t->own.factors[t->n + h0 + 2]);
        o2_0 = mixed(vf_load(o + 2 * stride + i + 0), keep2, o2_0, take2);
        const vf keep3 = vf_set1(t->own.factors[h0 + 3]), take3 =
            vf_set1(t->own.factors[t->n + h0 + 3]);
        o3_0 = mixed(vf_load(o + 3 * stride + i + 0), keep3, o3_0, take3);
    }
    vf_store(o + 0 * stride + i + 0, o0_0);
    vf_store(o + 1 * stride + i + 0, o1_0);
    vf_store(o + 2 * stride + i + 0, o2_0);
    vf_store(o + 3 * stride + i + 0, o3_0);
}

/*
 * The same for 6 heads from +0 for the columns of 4 vectors from i on, which are in `wide`.
 * With factors they are merged into o.
 */
static void later_gather6_4(const tile *t, size_t h0, size_t i, float *o) {
    const size_t stride = tern_attend_state(t->dim);
    const float *const e = t->s + h0 * TERN_ATTEND_CHUNK;
    const size_t from = 0;
    const size_t to = t->seen[h0];
    const float *const wide = t->own.wide;
    vf o0_0 = vf_zero();
    vf o0_1 = vf_zero();
    vf o0_2 = vf_zero();
    vf o0_3 = vf_zero();
    vf o1_0 = vf_zero();
    vf o1_1 = vf_zero();
    vf o1_2 = vf_zero();
    vf o1_3 = vf_zero();
    vf o2_0 = vf_zero();
    vf o2_1 = vf_zero();
    vf o2_2 = vf_zero();
    vf o2_3 = vf_zero();
    vf o3_0 = vf_zero();
    vf o3_1 = vf_zero();
    vf o3_2 = vf_zero();
    vf o3_3 = vf_zero();
    vf o4_0 = vf_zero();
    vf o4_1 = vf_zero();
    vf o4_2 = vf_zero();
    vf o4_3 = vf_zero();
    vf o5_0 = vf_zero();
    vf o5_1 = vf_zero();
    vf o5_2 = vf_zero();
    vf o5_3 = vf_zero();
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
        const vf e4 = vf_set1(e[4 * TERN_ATTEND_CHUNK + j]);
        o4_0 = vf_mac_exact(o4_0, e4, v0);
        o4_1 = vf_mac_exact(o4_1, e4, v1);
        o4_2 = vf_mac_exact(o4_2, e4, v2);
        o4_3 = vf_mac_exact(o4_3, e4, v3);
        const vf e5 = vf_set1(e[5 * TERN_ATTEND_CHUNK + j]);
        o5_0 = vf_mac_exact(o5_0, e5, v0);
        o5_1 = vf_mac_exact(o5_1, e5, v1);
        o5_2 = vf_mac_exact(o5_2, e5, v2);
        o5_3 = vf_mac_exact(o5_3, e5, v3);
    }
    if (t->own.factors) {
        const vf keep0 = vf_set1(t->own.factors[h0 + 0]), take0 =
            vf_set1(t->own.factors[t->n + h0 + 0]);
        o0_0 = mixed(vf_load(o + 0 * stride + i + 0), keep0, o0_0, take0);
        o0_1 = mixed(vf_load(o + 0 * stride + i + 16), keep0, o0_1, take0);
        o0_2 = mixed(vf_load(o + 0 * stride + i + 32), keep0, o0_2, take0);
        o0_3 = mixed(vf_load(o + 0 * stride + i + 48), keep0, o0_3, take0);
        const vf keep1 = vf_set1(t->own.factors[h0 + 1]), take1 =
            vf_set1(t->own.factors[t->n + h0 + 1]);
        o1_0 = mixed(vf_load(o + 1 * stride + i + 0), keep1, o1_0, take1);
        o1_1 = mixed(vf_load(o + 1 * stride + i + 16), keep1, o1_1, take1);
        o1_2 = mixed(vf_load(o + 1 * stride + i + 32), keep1, o1_2, take1);
        o1_3 = mixed(vf_load(o + 1 * stride + i + 48), keep1, o1_3, take1);
        const vf keep2 = vf_set1(t->own.factors[h0 + 2]), take2 =
            vf_set1(t->own.factors[t->n + h0 + 2]);
        o2_0 = mixed(vf_load(o + 2 * stride + i + 0), keep2, o2_0, take2);
        o2_1 = mixed(vf_load(o + 2 * stride + i + 16), keep2, o2_1, take2);
        o2_2 = mixed(vf_load(o + 2 * stride + i + 32), keep2, o2_2, take2);
        o2_3 = mixed(vf_load(o + 2 * stride + i + 48), keep2, o2_3, take2);
        const vf keep3 = vf_set1(t->own.factors[h0 + 3]), take3 =
            vf_set1(t->own.factors[t->n + h0 + 3]);
        o3_0 = mixed(vf_load(o + 3 * stride + i + 0), keep3, o3_0, take3);
        o3_1 = mixed(vf_load(o + 3 * stride + i + 16), keep3, o3_1, take3);
        o3_2 = mixed(vf_load(o + 3 * stride + i + 32), keep3, o3_2, take3);
        o3_3 = mixed(vf_load(o + 3 * stride + i + 48), keep3, o3_3, take3);
        const vf keep4 = vf_set1(t->own.factors[h0 + 4]), take4 =
            vf_set1(t->own.factors[t->n + h0 + 4]);
        o4_0 = mixed(vf_load(o + 4 * stride + i + 0), keep4, o4_0, take4);
        o4_1 = mixed(vf_load(o + 4 * stride + i + 16), keep4, o4_1, take4);
        o4_2 = mixed(vf_load(o + 4 * stride + i + 32), keep4, o4_2, take4);
        o4_3 = mixed(vf_load(o + 4 * stride + i + 48), keep4, o4_3, take4);
        const vf keep5 = vf_set1(t->own.factors[h0 + 5]), take5 =
            vf_set1(t->own.factors[t->n + h0 + 5]);
        o5_0 = mixed(vf_load(o + 5 * stride + i + 0), keep5, o5_0, take5);
        o5_1 = mixed(vf_load(o + 5 * stride + i + 16), keep5, o5_1, take5);
        o5_2 = mixed(vf_load(o + 5 * stride + i + 32), keep5, o5_2, take5);
        o5_3 = mixed(vf_load(o + 5 * stride + i + 48), keep5, o5_3, take5);
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
    vf_store(o + 4 * stride + i + 0, o4_0);
    vf_store(o + 4 * stride + i + 16, o4_1);
    vf_store(o + 4 * stride + i + 32, o4_2);
    vf_store(o + 4 * stride + i + 48, o4_3);
    vf_store(o + 5 * stride + i + 0, o5_0);
    vf_store(o + 5 * stride + i + 16, o5_1);
    vf_store(o + 5 * stride + i + 32, o5_2);
    vf_store(o + 5 * stride + i + 48, o5_3);
}

/*
 * Keys are kept in vectors of positions, those that go into one sum one after the other:
 * wide[element % TERN_LANES][element / TERN_LANES][TERN_ATTEND_CHUNK].
 */
static inline size_t vectors_of_sum(size_t dim) {
    return (dim + TERN_ATTEND_TURNED - 1) / TERN_ATTEND_TURNED * (TERN_ATTEND_TURNED / TERN_LANES);
}

/*
 * Turns TERN_ATTEND_TURNED elements from i on, zeros after the last one, of the keys of TERN_LANES
 * positions from j on. The last of n positions stands in for more.
 */
static void turn(const tile *t, size_t i, size_t j, size_t n) {
    const element *const k = t->k + i;
    const size_t left = t->dim - i;
    const size_t vectors = vectors_of_sum(t->dim);
    float *const wide = t->own.wide + i / TERN_LANES * TERN_ATTEND_CHUNK + j;
    element halves[TERN_ATTEND_TURNED * TERN_LANES];
    ask(t->by_score + j * t->dim + i * TERN_LANES, sizeof halves);

    const vb r00 = vh_load_n(k + j * t->dim, left);
    const vb r01 = vh_load_n(k + (j + 1 < n ? j + 1 : n - 1) * t->dim, left);
    const vb r02 = vh_load_n(k + (j + 2 < n ? j + 2 : n - 1) * t->dim, left);
    const vb r03 = vh_load_n(k + (j + 3 < n ? j + 3 : n - 1) * t->dim, left);
    const vb r04 = vh_load_n(k + (j + 4 < n ? j + 4 : n - 1) * t->dim, left);
    const vb r05 = vh_load_n(k + (j + 5 < n ? j + 5 : n - 1) * t->dim, left);
    const vb r06 = vh_load_n(k + (j + 6 < n ? j + 6 : n - 1) * t->dim, left);
    const vb r07 = vh_load_n(k + (j + 7 < n ? j + 7 : n - 1) * t->dim, left);
    const vb a00 = vb_zip2_low(r00, r01), a01 = vb_zip2_high(r00, r01);
    const vb a02 = vb_zip2_low(r02, r03), a03 = vb_zip2_high(r02, r03);
    const vb a04 = vb_zip2_low(r04, r05), a05 = vb_zip2_high(r04, r05);
    const vb a06 = vb_zip2_low(r06, r07), a07 = vb_zip2_high(r06, r07);
    const vb b00 = vb_zip4_low(a00, a02), b01 = vb_zip4_high(a00, a02);
    const vb b02 = vb_zip4_low(a01, a03), b03 = vb_zip4_high(a01, a03);
    const vb b04 = vb_zip4_low(a04, a06), b05 = vb_zip4_high(a04, a06);
    const vb b06 = vb_zip4_low(a05, a07), b07 = vb_zip4_high(a05, a07);
    const vb c00 = vb_zip8_low(b00, b04), c01 = vb_zip8_high(b00, b04);
    const vb c02 = vb_zip8_low(b01, b05), c03 = vb_zip8_high(b01, b05);
    const vb c04 = vb_zip8_low(b02, b06), c05 = vb_zip8_high(b02, b06);
    const vb c06 = vb_zip8_low(b03, b07), c07 = vb_zip8_high(b03, b07);
    const vb r10 = vh_load_n(k + (j + 8 < n ? j + 8 : n - 1) * t->dim, left);
    const vb r11 = vh_load_n(k + (j + 9 < n ? j + 9 : n - 1) * t->dim, left);
    const vb r12 = vh_load_n(k + (j + 10 < n ? j + 10 : n - 1) * t->dim, left);
    const vb r13 = vh_load_n(k + (j + 11 < n ? j + 11 : n - 1) * t->dim, left);
    const vb r14 = vh_load_n(k + (j + 12 < n ? j + 12 : n - 1) * t->dim, left);
    const vb r15 = vh_load_n(k + (j + 13 < n ? j + 13 : n - 1) * t->dim, left);
    const vb r16 = vh_load_n(k + (j + 14 < n ? j + 14 : n - 1) * t->dim, left);
    const vb r17 = vh_load_n(k + (j + 15 < n ? j + 15 : n - 1) * t->dim, left);
    const vb a10 = vb_zip2_low(r10, r11), a11 = vb_zip2_high(r10, r11);
    const vb a12 = vb_zip2_low(r12, r13), a13 = vb_zip2_high(r12, r13);
    const vb a14 = vb_zip2_low(r14, r15), a15 = vb_zip2_high(r14, r15);
    const vb a16 = vb_zip2_low(r16, r17), a17 = vb_zip2_high(r16, r17);
    const vb b10 = vb_zip4_low(a10, a12), b11 = vb_zip4_high(a10, a12);
    const vb b12 = vb_zip4_low(a11, a13), b13 = vb_zip4_high(a11, a13);
    const vb b14 = vb_zip4_low(a14, a16), b15 = vb_zip4_high(a14, a16);
    const vb b16 = vb_zip4_low(a15, a17), b17 = vb_zip4_high(a15, a17);
    const vb c10 = vb_zip8_low(b10, b14), c11 = vb_zip8_high(b10, b14);
    const vb c12 = vb_zip8_low(b11, b15), c13 = vb_zip8_high(b11, b15);
    const vb c14 = vb_zip8_low(b12, b16), c15 = vb_zip8_high(b12, b16);
    const vb c16 = vb_zip8_low(b13, b17), c17 = vb_zip8_high(b13, b17);
    vb_store(halves + 0 * TERN_LANES, vb_zip16_low(c00, c10));
    vb_store(halves + 2 * TERN_LANES, vb_zip16_high(c00, c10));
    vb_store(halves + 4 * TERN_LANES, vb_zip16_low(c01, c11));
    vb_store(halves + 6 * TERN_LANES, vb_zip16_high(c01, c11));
    vb_store(halves + 8 * TERN_LANES, vb_zip16_low(c02, c12));
    vb_store(halves + 10 * TERN_LANES, vb_zip16_high(c02, c12));
    vb_store(halves + 12 * TERN_LANES, vb_zip16_low(c03, c13));
    vb_store(halves + 14 * TERN_LANES, vb_zip16_high(c03, c13));
    vb_store(halves + 16 * TERN_LANES, vb_zip16_low(c04, c14));
    vb_store(halves + 18 * TERN_LANES, vb_zip16_high(c04, c14));
    vb_store(halves + 20 * TERN_LANES, vb_zip16_low(c05, c15));
    vb_store(halves + 22 * TERN_LANES, vb_zip16_high(c05, c15));
    vb_store(halves + 24 * TERN_LANES, vb_zip16_low(c06, c16));
    vb_store(halves + 26 * TERN_LANES, vb_zip16_high(c06, c16));
    vb_store(halves + 28 * TERN_LANES, vb_zip16_low(c07, c17));
    vb_store(halves + 30 * TERN_LANES, vb_zip16_high(c07, c17));
    vf_store(wide + (0 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 0 * TERN_LANES));
    vf_store(wide + (8 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 1 * TERN_LANES));
    vf_store(wide + (0 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 2 * TERN_LANES));
    vf_store(wide + (8 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 3 * TERN_LANES));
    vf_store(wide + (1 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 4 * TERN_LANES));
    vf_store(wide + (9 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 5 * TERN_LANES));
    vf_store(wide + (1 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 6 * TERN_LANES));
    vf_store(wide + (9 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 7 * TERN_LANES));
    vf_store(wide + (2 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 8 * TERN_LANES));
    vf_store(wide + (10 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 9 * TERN_LANES));
    vf_store(wide + (2 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 10 * TERN_LANES));
    vf_store(wide + (10 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 11 * TERN_LANES));
    vf_store(wide + (3 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 12 * TERN_LANES));
    vf_store(wide + (11 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 13 * TERN_LANES));
    vf_store(wide + (3 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 14 * TERN_LANES));
    vf_store(wide + (11 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 15 * TERN_LANES));
    vf_store(wide + (4 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 16 * TERN_LANES));
    vf_store(wide + (12 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 17 * TERN_LANES));
    vf_store(wide + (4 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 18 * TERN_LANES));
    vf_store(wide + (12 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 19 * TERN_LANES));
    vf_store(wide + (5 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 20 * TERN_LANES));
    vf_store(wide + (13 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 21 * TERN_LANES));
    vf_store(wide + (5 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 22 * TERN_LANES));
    vf_store(wide + (13 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 23 * TERN_LANES));
    vf_store(wide + (6 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 24 * TERN_LANES));
    vf_store(wide + (14 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 25 * TERN_LANES));
    vf_store(wide + (6 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 26 * TERN_LANES));
    vf_store(wide + (14 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 27 * TERN_LANES));
    vf_store(wide + (7 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 28 * TERN_LANES));
    vf_store(wide + (15 * vectors + 0) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 29 * TERN_LANES));
    vf_store(wide + (7 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 30 * TERN_LANES));
    vf_store(wide + (15 * vectors + 1) * TERN_ATTEND_CHUNK, vf_load_f16(halves + 31 * TERN_LANES));
}

/*
 * The scores of 6 heads from `head` on at 64 positions; the tile's last head stands in for more.
 * A sum begins with its first product, not with +0: it may be -0 then, which no result shows.
 */
static void turned_score6_4(const tile *t, size_t head) {
    const size_t last = t->n - 1;
    const size_t padded = tern_attend_padded(t->dim);
    const size_t next_sum = vectors_of_sum(t->dim) * TERN_ATTEND_CHUNK;
    const vf factor = vf_set1(t->own.scale);
    const size_t h0 = head;
    const float *const q0 = t->own.q[h0];
    vf s0_0;
    vf s0_1;
    vf s0_2;
    vf s0_3;
    const size_t h1 = head + 1 < last ? head + 1 : last;
    const float *const q1 = t->own.q[h1];
    vf s1_0;
    vf s1_1;
    vf s1_2;
    vf s1_3;
    const size_t h2 = head + 2 < last ? head + 2 : last;
    const float *const q2 = t->own.q[h2];
    vf s2_0;
    vf s2_1;
    vf s2_2;
    vf s2_3;
    const size_t h3 = head + 3 < last ? head + 3 : last;
    const float *const q3 = t->own.q[h3];
    vf s3_0;
    vf s3_1;
    vf s3_2;
    vf s3_3;
    const size_t h4 = head + 4 < last ? head + 4 : last;
    const float *const q4 = t->own.q[h4];
    vf s4_0;
    vf s4_1;
    vf s4_2;
    vf s4_3;
    const size_t h5 = head + 5 < last ? head + 5 : last;
    const float *const q5 = t->own.q[h5];
    vf s5_0;
    vf s5_1;
    vf s5_2;
    vf s5_3;
    for (size_t done = 0; done < TERN_LANES; done++) {
        size_t i = sum_order[done];
        const float *k = t->own.wide + i * next_sum;
        float *kept = t->own.sums;
        const vf first0 = vf_load(k + 0);
        const vf first1 = vf_load(k + 16);
        const vf first2 = vf_load(k + 32);
        const vf first3 = vf_load(k + 48);
        const vf first_q0 = vf_set1(q0[i]);
        s0_0 = vf_mul(first_q0, first0);
        s0_1 = vf_mul(first_q0, first1);
        s0_2 = vf_mul(first_q0, first2);
        s0_3 = vf_mul(first_q0, first3);
        const vf first_q1 = vf_set1(q1[i]);
        s1_0 = vf_mul(first_q1, first0);
        s1_1 = vf_mul(first_q1, first1);
        s1_2 = vf_mul(first_q1, first2);
        s1_3 = vf_mul(first_q1, first3);
        const vf first_q2 = vf_set1(q2[i]);
        s2_0 = vf_mul(first_q2, first0);
        s2_1 = vf_mul(first_q2, first1);
        s2_2 = vf_mul(first_q2, first2);
        s2_3 = vf_mul(first_q2, first3);
        const vf first_q3 = vf_set1(q3[i]);
        s3_0 = vf_mul(first_q3, first0);
        s3_1 = vf_mul(first_q3, first1);
        s3_2 = vf_mul(first_q3, first2);
        s3_3 = vf_mul(first_q3, first3);
        const vf first_q4 = vf_set1(q4[i]);
        s4_0 = vf_mul(first_q4, first0);
        s4_1 = vf_mul(first_q4, first1);
        s4_2 = vf_mul(first_q4, first2);
        s4_3 = vf_mul(first_q4, first3);
        const vf first_q5 = vf_set1(q5[i]);
        s5_0 = vf_mul(first_q5, first0);
        s5_1 = vf_mul(first_q5, first1);
        s5_2 = vf_mul(first_q5, first2);
        s5_3 = vf_mul(first_q5, first3);
        for (i += TERN_LANES; i < padded; i += TERN_LANES) {
            k += TERN_ATTEND_CHUNK;
            const vf k0 = vf_load(k + 0);
            const vf k1 = vf_load(k + 16);
            const vf k2 = vf_load(k + 32);
            const vf k3 = vf_load(k + 48);
            const vf q0_i = vf_set1(q0[i]);
            s0_0 = vf_mac_exact(s0_0, q0_i, k0);
            s0_1 = vf_mac_exact(s0_1, q0_i, k1);
            s0_2 = vf_mac_exact(s0_2, q0_i, k2);
            s0_3 = vf_mac_exact(s0_3, q0_i, k3);
            const vf q1_i = vf_set1(q1[i]);
            s1_0 = vf_mac_exact(s1_0, q1_i, k0);
            s1_1 = vf_mac_exact(s1_1, q1_i, k1);
            s1_2 = vf_mac_exact(s1_2, q1_i, k2);
            s1_3 = vf_mac_exact(s1_3, q1_i, k3);
            const vf q2_i = vf_set1(q2[i]);
            s2_0 = vf_mac_exact(s2_0, q2_i, k0);
            s2_1 = vf_mac_exact(s2_1, q2_i, k1);
            s2_2 = vf_mac_exact(s2_2, q2_i, k2);
            s2_3 = vf_mac_exact(s2_3, q2_i, k3);
            const vf q3_i = vf_set1(q3[i]);
            s3_0 = vf_mac_exact(s3_0, q3_i, k0);
            s3_1 = vf_mac_exact(s3_1, q3_i, k1);
            s3_2 = vf_mac_exact(s3_2, q3_i, k2);
            s3_3 = vf_mac_exact(s3_3, q3_i, k3);
            const vf q4_i = vf_set1(q4[i]);
            s4_0 = vf_mac_exact(s4_0, q4_i, k0);
            s4_1 = vf_mac_exact(s4_1, q4_i, k1);
            s4_2 = vf_mac_exact(s4_2, q4_i, k2);
            s4_3 = vf_mac_exact(s4_3, q4_i, k3);
            const vf q5_i = vf_set1(q5[i]);
            s5_0 = vf_mac_exact(s5_0, q5_i, k0);
            s5_1 = vf_mac_exact(s5_1, q5_i, k1);
            s5_2 = vf_mac_exact(s5_2, q5_i, k2);
            s5_3 = vf_mac_exact(s5_3, q5_i, k3);
        }

        for (size_t carry = done; carry % 2 > 0; carry /= 2, kept += 24 * TERN_LANES) {
            s0_0 = vf_add(vf_load(kept + 0 * TERN_LANES), s0_0);
            s0_1 = vf_add(vf_load(kept + 1 * TERN_LANES), s0_1);
            s0_2 = vf_add(vf_load(kept + 2 * TERN_LANES), s0_2);
            s0_3 = vf_add(vf_load(kept + 3 * TERN_LANES), s0_3);
            s1_0 = vf_add(vf_load(kept + 4 * TERN_LANES), s1_0);
            s1_1 = vf_add(vf_load(kept + 5 * TERN_LANES), s1_1);
            s1_2 = vf_add(vf_load(kept + 6 * TERN_LANES), s1_2);
            s1_3 = vf_add(vf_load(kept + 7 * TERN_LANES), s1_3);
            s2_0 = vf_add(vf_load(kept + 8 * TERN_LANES), s2_0);
            s2_1 = vf_add(vf_load(kept + 9 * TERN_LANES), s2_1);
            s2_2 = vf_add(vf_load(kept + 10 * TERN_LANES), s2_2);
            s2_3 = vf_add(vf_load(kept + 11 * TERN_LANES), s2_3);
            s3_0 = vf_add(vf_load(kept + 12 * TERN_LANES), s3_0);
            s3_1 = vf_add(vf_load(kept + 13 * TERN_LANES), s3_1);
            s3_2 = vf_add(vf_load(kept + 14 * TERN_LANES), s3_2);
            s3_3 = vf_add(vf_load(kept + 15 * TERN_LANES), s3_3);
            s4_0 = vf_add(vf_load(kept + 16 * TERN_LANES), s4_0);
            s4_1 = vf_add(vf_load(kept + 17 * TERN_LANES), s4_1);
            s4_2 = vf_add(vf_load(kept + 18 * TERN_LANES), s4_2);
            s4_3 = vf_add(vf_load(kept + 19 * TERN_LANES), s4_3);
            s5_0 = vf_add(vf_load(kept + 20 * TERN_LANES), s5_0);
            s5_1 = vf_add(vf_load(kept + 21 * TERN_LANES), s5_1);
            s5_2 = vf_add(vf_load(kept + 22 * TERN_LANES), s5_2);
            s5_3 = vf_add(vf_load(kept + 23 * TERN_LANES), s5_3);
        }
        if (done + 1 < TERN_LANES) {
            vf_store(kept + 0 * TERN_LANES, s0_0);
            vf_store(kept + 1 * TERN_LANES, s0_1);
            vf_store(kept + 2 * TERN_LANES, s0_2);
            vf_store(kept + 3 * TERN_LANES, s0_3);
            vf_store(kept + 4 * TERN_LANES, s1_0);
            vf_store(kept + 5 * TERN_LANES, s1_1);
            vf_store(kept + 6 * TERN_LANES, s1_2);
            vf_store(kept + 7 * TERN_LANES, s1_3);
            vf_store(kept + 8 * TERN_LANES, s2_0);
            vf_store(kept + 9 * TERN_LANES, s2_1);
            vf_store(kept + 10 * TERN_LANES, s2_2);
            vf_store(kept + 11 * TERN_LANES, s2_3);
            vf_store(kept + 12 * TERN_LANES, s3_0);
            vf_store(kept + 13 * TERN_LANES, s3_1);
            vf_store(kept + 14 * TERN_LANES, s3_2);
            vf_store(kept + 15 * TERN_LANES, s3_3);
            vf_store(kept + 16 * TERN_LANES, s4_0);
            vf_store(kept + 17 * TERN_LANES, s4_1);
            vf_store(kept + 18 * TERN_LANES, s4_2);
            vf_store(kept + 19 * TERN_LANES, s4_3);
            vf_store(kept + 20 * TERN_LANES, s5_0);
            vf_store(kept + 21 * TERN_LANES, s5_1);
            vf_store(kept + 22 * TERN_LANES, s5_2);
            vf_store(kept + 23 * TERN_LANES, s5_3);
        }
    }
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 0, vf_mul(s0_0, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 16, vf_mul(s0_1, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 32, vf_mul(s0_2, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 48, vf_mul(s0_3, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 0, vf_mul(s1_0, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 16, vf_mul(s1_1, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 32, vf_mul(s1_2, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 48, vf_mul(s1_3, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 0, vf_mul(s2_0, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 16, vf_mul(s2_1, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 32, vf_mul(s2_2, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 48, vf_mul(s2_3, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 0, vf_mul(s3_0, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 16, vf_mul(s3_1, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 32, vf_mul(s3_2, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 48, vf_mul(s3_3, factor));
    vf_store(t->s + h4 * TERN_ATTEND_CHUNK + 0, vf_mul(s4_0, factor));
    vf_store(t->s + h4 * TERN_ATTEND_CHUNK + 16, vf_mul(s4_1, factor));
    vf_store(t->s + h4 * TERN_ATTEND_CHUNK + 32, vf_mul(s4_2, factor));
    vf_store(t->s + h4 * TERN_ATTEND_CHUNK + 48, vf_mul(s4_3, factor));
    vf_store(t->s + h5 * TERN_ATTEND_CHUNK + 0, vf_mul(s5_0, factor));
    vf_store(t->s + h5 * TERN_ATTEND_CHUNK + 16, vf_mul(s5_1, factor));
    vf_store(t->s + h5 * TERN_ATTEND_CHUNK + 32, vf_mul(s5_2, factor));
    vf_store(t->s + h5 * TERN_ATTEND_CHUNK + 48, vf_mul(s5_3, factor));
}

/*
 * The scores of 4 heads from `head` on at 64 positions; the tile's last head stands in for more.
 * A sum begins with its first product, not with +0: it may be -0 then, which no result shows.
 */
static void turned_score4_4(const tile *t, size_t head) {
    const size_t last = t->n - 1;
    const size_t padded = tern_attend_padded(t->dim);
    const size_t next_sum = vectors_of_sum(t->dim) * TERN_ATTEND_CHUNK;
    const vf factor = vf_set1(t->own.scale);
    const size_t h0 = head;
    const float *const q0 = t->own.q[h0];
    vf s0_0;
    vf s0_1;
    vf s0_2;
    vf s0_3;
    const size_t h1 = head + 1 < last ? head + 1 : last;
    const float *const q1 = t->own.q[h1];
    vf s1_0;
    vf s1_1;
    vf s1_2;
    vf s1_3;
    const size_t h2 = head + 2 < last ? head + 2 : last;
    const float *const q2 = t->own.q[h2];
    vf s2_0;
    vf s2_1;
    vf s2_2;
    vf s2_3;
    const size_t h3 = head + 3 < last ? head + 3 : last;
    const float *const q3 = t->own.q[h3];
    vf s3_0;
    vf s3_1;
    vf s3_2;
    vf s3_3;
    for (size_t done = 0; done < TERN_LANES; done++) {
        size_t i = sum_order[done];
        const float *k = t->own.wide + i * next_sum;
        float *kept = t->own.sums;
        const vf first0 = vf_load(k + 0);
        const vf first1 = vf_load(k + 16);
        const vf first2 = vf_load(k + 32);
        const vf first3 = vf_load(k + 48);
        const vf first_q0 = vf_set1(q0[i]);
        s0_0 = vf_mul(first_q0, first0);
        s0_1 = vf_mul(first_q0, first1);
        s0_2 = vf_mul(first_q0, first2);
        s0_3 = vf_mul(first_q0, first3);
        const vf first_q1 = vf_set1(q1[i]);
        s1_0 = vf_mul(first_q1, first0);
        s1_1 = vf_mul(first_q1, first1);
        s1_2 = vf_mul(first_q1, first2);
        s1_3 = vf_mul(first_q1, first3);
        const vf first_q2 = vf_set1(q2[i]);
        s2_0 = vf_mul(first_q2, first0);
        s2_1 = vf_mul(first_q2, first1);
        s2_2 = vf_mul(first_q2, first2);
        s2_3 = vf_mul(first_q2, first3);
        const vf first_q3 = vf_set1(q3[i]);
        s3_0 = vf_mul(first_q3, first0);
        s3_1 = vf_mul(first_q3, first1);
        s3_2 = vf_mul(first_q3, first2);
        s3_3 = vf_mul(first_q3, first3);
        for (i += TERN_LANES; i < padded; i += TERN_LANES) {
            k += TERN_ATTEND_CHUNK;
            const vf k0 = vf_load(k + 0);
            const vf k1 = vf_load(k + 16);
            const vf k2 = vf_load(k + 32);
            const vf k3 = vf_load(k + 48);
            const vf q0_i = vf_set1(q0[i]);
            s0_0 = vf_mac_exact(s0_0, q0_i, k0);
            s0_1 = vf_mac_exact(s0_1, q0_i, k1);
            s0_2 = vf_mac_exact(s0_2, q0_i, k2);
            s0_3 = vf_mac_exact(s0_3, q0_i, k3);
            const vf q1_i = vf_set1(q1[i]);
            s1_0 = vf_mac_exact(s1_0, q1_i, k0);
            s1_1 = vf_mac_exact(s1_1, q1_i, k1);
            s1_2 = vf_mac_exact(s1_2, q1_i, k2);
            s1_3 = vf_mac_exact(s1_3, q1_i, k3);
            const vf q2_i = vf_set1(q2[i]);
            s2_0 = vf_mac_exact(s2_0, q2_i, k0);
            s2_1 = vf_mac_exact(s2_1, q2_i, k1);
            s2_2 = vf_mac_exact(s2_2, q2_i, k2);
            s2_3 = vf_mac_exact(s2_3, q2_i, k3);
            const vf q3_i = vf_set1(q3[i]);
            s3_0 = vf_mac_exact(s3_0, q3_i, k0);
            s3_1 = vf_mac_exact(s3_1, q3_i, k1);
            s3_2 = vf_mac_exact(s3_2, q3_i, k2);
            s3_3 = vf_mac_exact(s3_3, q3_i, k3);
        }

        for (size_t carry = done; carry % 2 > 0; carry /= 2, kept += 16 * TERN_LANES) {
            s0_0 = vf_add(vf_load(kept + 0 * TERN_LANES), s0_0);
            s0_1 = vf_add(vf_load(kept + 1 * TERN_LANES), s0_1);
            s0_2 = vf_add(vf_load(kept + 2 * TERN_LANES), s0_2);
            s0_3 = vf_add(vf_load(kept + 3 * TERN_LANES), s0_3);
            s1_0 = vf_add(vf_load(kept + 4 * TERN_LANES), s1_0);
            s1_1 = vf_add(vf_load(kept + 5 * TERN_LANES), s1_1);
            s1_2 = vf_add(vf_load(kept + 6 * TERN_LANES), s1_2);
            s1_3 = vf_add(vf_load(kept + 7 * TERN_LANES), s1_3);
            s2_0 = vf_add(vf_load(kept + 8 * TERN_LANES), s2_0);
            s2_1 = vf_add(vf_load(kept + 9 * TERN_LANES), s2_1);
            s2_2 = vf_add(vf_load(kept + 10 * TERN_LANES), s2_2);
            s2_3 = vf_add(vf_load(kept + 11 * TERN_LANES), s2_3);
            s3_0 = vf_add(vf_load(kept + 12 * TERN_LANES), s3_0);
            s3_1 = vf_add(vf_load(kept + 13 * TERN_LANES), s3_1);
            s3_2 = vf_add(vf_load(kept + 14 * TERN_LANES), s3_2);
            s3_3 = vf_add(vf_load(kept + 15 * TERN_LANES), s3_3);
        }
        if (done + 1 < TERN_LANES) {
            vf_store(kept + 0 * TERN_LANES, s0_0);
            vf_store(kept + 1 * TERN_LANES, s0_1);
            vf_store(kept + 2 * TERN_LANES, s0_2);
            vf_store(kept + 3 * TERN_LANES, s0_3);
            vf_store(kept + 4 * TERN_LANES, s1_0);
            vf_store(kept + 5 * TERN_LANES, s1_1);
            vf_store(kept + 6 * TERN_LANES, s1_2);
            vf_store(kept + 7 * TERN_LANES, s1_3);
            vf_store(kept + 8 * TERN_LANES, s2_0);
            vf_store(kept + 9 * TERN_LANES, s2_1);
            vf_store(kept + 10 * TERN_LANES, s2_2);
            vf_store(kept + 11 * TERN_LANES, s2_3);
            vf_store(kept + 12 * TERN_LANES, s3_0);
            vf_store(kept + 13 * TERN_LANES, s3_1);
            vf_store(kept + 14 * TERN_LANES, s3_2);
            vf_store(kept + 15 * TERN_LANES, s3_3);
        }
    }
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 0, vf_mul(s0_0, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 16, vf_mul(s0_1, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 32, vf_mul(s0_2, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 48, vf_mul(s0_3, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 0, vf_mul(s1_0, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 16, vf_mul(s1_1, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 32, vf_mul(s1_2, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 48, vf_mul(s1_3, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 0, vf_mul(s2_0, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 16, vf_mul(s2_1, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 32, vf_mul(s2_2, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 48, vf_mul(s2_3, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 0, vf_mul(s3_0, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 16, vf_mul(s3_1, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 32, vf_mul(s3_2, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 48, vf_mul(s3_3, factor));
}

/*
 * The scores of 4 heads from `head` on at 48 positions; the tile's last head stands in for more.
 * A sum begins with its first product, not with +0: it may be -0 then, which no result shows.
 */
static void turned_score4_3(const tile *t, size_t head) {
    const size_t last = t->n - 1;
    const size_t padded = tern_attend_padded(t->dim);
    const size_t next_sum = vectors_of_sum(t->dim) * TERN_ATTEND_CHUNK;
    const vf factor = vf_set1(t->own.scale);
    const size_t h0 = head;
    const float *const q0 = t->own.q[h0];
    vf s0_0;
    vf s0_1;
    vf s0_2;
    const size_t h1 = head + 1 < last ? head + 1 : last;
    const float *const q1 = t->own.q[h1];
    vf s1_0;
    vf s1_1;
    vf s1_2;
    const size_t h2 = head + 2 < last ? head + 2 : last;
    const float *const q2 = t->own.q[h2];
    vf s2_0;
    vf s2_1;
    vf s2_2;
    const size_t h3 = head + 3 < last ? head + 3 : last;
    const float *const q3 = t->own.q[h3];
    vf s3_0;
    vf s3_1;
    vf s3_2;
    for (size_t done = 0; done < TERN_LANES; done++) {
        size_t i = sum_order[done];
        const float *k = t->own.wide + i * next_sum;
        float *kept = t->own.sums;
        const vf first0 = vf_load(k + 0);
        const vf first1 = vf_load(k + 16);
        const vf first2 = vf_load(k + 32);
        const vf first_q0 = vf_set1(q0[i]);
        s0_0 = vf_mul(first_q0, first0);
        s0_1 = vf_mul(first_q0, first1);
        s0_2 = vf_mul(first_q0, first2);
        const vf first_q1 = vf_set1(q1[i]);
        s1_0 = vf_mul(first_q1, first0);
        s1_1 = vf_mul(first_q1, first1);
        s1_2 = vf_mul(first_q1, first2);
        const vf first_q2 = vf_set1(q2[i]);
        s2_0 = vf_mul(first_q2, first0);
        s2_1 = vf_mul(first_q2, first1);
        s2_2 = vf_mul(first_q2, first2);
        const vf first_q3 = vf_set1(q3[i]);
        s3_0 = vf_mul(first_q3, first0);
        s3_1 = vf_mul(first_q3, first1);
        s3_2 = vf_mul(first_q3, first2);
        for (i += TERN_LANES; i < padded; i += TERN_LANES) {
            k += TERN_ATTEND_CHUNK;
            const vf k0 = vf_load(k + 0);
            const vf k1 = vf_load(k + 16);
            const vf k2 = vf_load(k + 32);
            const vf q0_i = vf_set1(q0[i]);
            s0_0 = vf_mac_exact(s0_0, q0_i, k0);
            s0_1 = vf_mac_exact(s0_1, q0_i, k1);
            s0_2 = vf_mac_exact(s0_2, q0_i, k2);
            const vf q1_i = vf_set1(q1[i]);
            s1_0 = vf_mac_exact(s1_0, q1_i, k0);
            s1_1 = vf_mac_exact(s1_1, q1_i, k1);
            s1_2 = vf_mac_exact(s1_2, q1_i, k2);
            const vf q2_i = vf_set1(q2[i]);
            s2_0 = vf_mac_exact(s2_0, q2_i, k0);
            s2_1 = vf_mac_exact(s2_1, q2_i, k1);
            s2_2 = vf_mac_exact(s2_2, q2_i, k2);
            const vf q3_i = vf_set1(q3[i]);
            s3_0 = vf_mac_exact(s3_0, q3_i, k0);
            s3_1 = vf_mac_exact(s3_1, q3_i, k1);
            s3_2 = vf_mac_exact(s3_2, q3_i, k2);
        }

        for (size_t carry = done; carry % 2 > 0; carry /= 2, kept += 12 * TERN_LANES) {
            s0_0 = vf_add(vf_load(kept + 0 * TERN_LANES), s0_0);
            s0_1 = vf_add(vf_load(kept + 1 * TERN_LANES), s0_1);
            s0_2 = vf_add(vf_load(kept + 2 * TERN_LANES), s0_2);
            s1_0 = vf_add(vf_load(kept + 3 * TERN_LANES), s1_0);
            s1_1 = vf_add(vf_load(kept + 4 * TERN_LANES), s1_1);
            s1_2 = vf_add(vf_load(kept + 5 * TERN_LANES), s1_2);
            s2_0 = vf_add(vf_load(kept + 6 * TERN_LANES), s2_0);
            s2_1 = vf_add(vf_load(kept + 7 * TERN_LANES), s2_1);
            s2_2 = vf_add(vf_load(kept + 8 * TERN_LANES), s2_2);
            s3_0 = vf_add(vf_load(kept + 9 * TERN_LANES), s3_0);
            s3_1 = vf_add(vf_load(kept + 10 * TERN_LANES), s3_1);
            s3_2 = vf_add(vf_load(kept + 11 * TERN_LANES), s3_2);
        }
        if (done + 1 < TERN_LANES) {
            vf_store(kept + 0 * TERN_LANES, s0_0);
            vf_store(kept + 1 * TERN_LANES, s0_1);
            vf_store(kept + 2 * TERN_LANES, s0_2);
            vf_store(kept + 3 * TERN_LANES, s1_0);
            vf_store(kept + 4 * TERN_LANES, s1_1);
            vf_store(kept + 5 * TERN_LANES, s1_2);
            vf_store(kept + 6 * TERN_LANES, s2_0);
            vf_store(kept + 7 * TERN_LANES, s2_1);
            vf_store(kept + 8 * TERN_LANES, s2_2);
            vf_store(kept + 9 * TERN_LANES, s3_0);
            vf_store(kept + 10 * TERN_LANES, s3_1);
            vf_store(kept + 11 * TERN_LANES, s3_2);
        }
    }
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 0, vf_mul(s0_0, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 16, vf_mul(s0_1, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 32, vf_mul(s0_2, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 0, vf_mul(s1_0, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 16, vf_mul(s1_1, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 32, vf_mul(s1_2, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 0, vf_mul(s2_0, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 16, vf_mul(s2_1, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 32, vf_mul(s2_2, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 0, vf_mul(s3_0, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 16, vf_mul(s3_1, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 32, vf_mul(s3_2, factor));
}

/*
 * The scores of 4 heads from `head` on at 32 positions; the tile's last head stands in for more.
 * A sum begins with its first product, not with +0: it may be -0 then, which no result shows.
 */
static void turned_score4_2(const tile *t, size_t head) {
    const size_t last = t->n - 1;
    const size_t padded = tern_attend_padded(t->dim);
    const size_t next_sum = vectors_of_sum(t->dim) * TERN_ATTEND_CHUNK;
    const vf factor = vf_set1(t->own.scale);
    const size_t h0 = head;
    const float *const q0 = t->own.q[h0];
    vf s0_0;
    vf s0_1;
    const size_t h1 = head + 1 < last ? head + 1 : last;
    const float *const q1 = t->own.q[h1];
    vf s1_0;
    vf s1_1;
    const size_t h2 = head + 2 < last ? head + 2 : last;
    const float *const q2 = t->own.q[h2];
    vf s2_0;
    vf s2_1;
    const size_t h3 = head + 3 < last ? head + 3 : last;
    const float *const q3 = t->own.q[h3];
    vf s3_0;
    vf s3_1;
    for (size_t done = 0; done < TERN_LANES; done++) {
        size_t i = sum_order[done];
        const float *k = t->own.wide + i * next_sum;
        float *kept = t->own.sums;
        const vf first0 = vf_load(k + 0);
        const vf first1 = vf_load(k + 16);
        const vf first_q0 = vf_set1(q0[i]);
        s0_0 = vf_mul(first_q0, first0);
        s0_1 = vf_mul(first_q0, first1);
        const vf first_q1 = vf_set1(q1[i]);
        s1_0 = vf_mul(first_q1, first0);
        s1_1 = vf_mul(first_q1, first1);
        const vf first_q2 = vf_set1(q2[i]);
        s2_0 = vf_mul(first_q2, first0);
        s2_1 = vf_mul(first_q2, first1);
        const vf first_q3 = vf_set1(q3[i]);
        s3_0 = vf_mul(first_q3, first0);
        s3_1 = vf_mul(first_q3, first1);
        for (i += TERN_LANES; i < padded; i += TERN_LANES) {
            k += TERN_ATTEND_CHUNK;
            const vf k0 = vf_load(k + 0);
            const vf k1 = vf_load(k + 16);
            const vf q0_i = vf_set1(q0[i]);
            s0_0 = vf_mac_exact(s0_0, q0_i, k0);
            s0_1 = vf_mac_exact(s0_1, q0_i, k1);
            const vf q1_i = vf_set1(q1[i]);
            s1_0 = vf_mac_exact(s1_0, q1_i, k0);
            s1_1 = vf_mac_exact(s1_1, q1_i, k1);
            const vf q2_i = vf_set1(q2[i]);
            s2_0 = vf_mac_exact(s2_0, q2_i, k0);
            s2_1 = vf_mac_exact(s2_1, q2_i, k1);
            const vf q3_i = vf_set1(q3[i]);
            s3_0 = vf_mac_exact(s3_0, q3_i, k0);
            s3_1 = vf_mac_exact(s3_1, q3_i, k1);
        }

        for (size_t carry = done; carry % 2 > 0; carry /= 2, kept += 8 * TERN_LANES) {
            s0_0 = vf_add(vf_load(kept + 0 * TERN_LANES), s0_0);
            s0_1 = vf_add(vf_load(kept + 1 * TERN_LANES), s0_1);
            s1_0 = vf_add(vf_load(kept + 2 * TERN_LANES), s1_0);
            s1_1 = vf_add(vf_load(kept + 3 * TERN_LANES), s1_1);
            s2_0 = vf_add(vf_load(kept + 4 * TERN_LANES), s2_0);
            s2_1 = vf_add(vf_load(kept + 5 * TERN_LANES), s2_1);
            s3_0 = vf_add(vf_load(kept + 6 * TERN_LANES), s3_0);
            s3_1 = vf_add(vf_load(kept + 7 * TERN_LANES), s3_1);
        }
        if (done + 1 < TERN_LANES) {
            vf_store(kept + 0 * TERN_LANES, s0_0);
            vf_store(kept + 1 * TERN_LANES, s0_1);
            vf_store(kept + 2 * TERN_LANES, s1_0);
            vf_store(kept + 3 * TERN_LANES, s1_1);
            vf_store(kept + 4 * TERN_LANES, s2_0);
            vf_store(kept + 5 * TERN_LANES, s2_1);
            vf_store(kept + 6 * TERN_LANES, s3_0);
            vf_store(kept + 7 * TERN_LANES, s3_1);
        }
    }
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 0, vf_mul(s0_0, factor));
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 16, vf_mul(s0_1, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 0, vf_mul(s1_0, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 16, vf_mul(s1_1, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 0, vf_mul(s2_0, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 16, vf_mul(s2_1, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 0, vf_mul(s3_0, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 16, vf_mul(s3_1, factor));
}

/*
 * The scores of 4 heads from `head` on at 16 positions; the tile's last head stands in for more.
 * A sum begins with its first product, not with +0: it may be -0 then, which no result shows.
 */
static void turned_score4_1(const tile *t, size_t head) {
    const size_t last = t->n - 1;
    const size_t padded = tern_attend_padded(t->dim);
    const size_t next_sum = vectors_of_sum(t->dim) * TERN_ATTEND_CHUNK;
    const vf factor = vf_set1(t->own.scale);
    const size_t h0 = head;
    const float *const q0 = t->own.q[h0];
    vf s0_0;
    const size_t h1 = head + 1 < last ? head + 1 : last;
    const float *const q1 = t->own.q[h1];
    vf s1_0;
    const size_t h2 = head + 2 < last ? head + 2 : last;
    const float *const q2 = t->own.q[h2];
    vf s2_0;
    const size_t h3 = head + 3 < last ? head + 3 : last;
    const float *const q3 = t->own.q[h3];
    vf s3_0;
    for (size_t done = 0; done < TERN_LANES; done++) {
        size_t i = sum_order[done];
        const float *k = t->own.wide + i * next_sum;
        float *kept = t->own.sums;
        const vf first0 = vf_load(k + 0);
        const vf first_q0 = vf_set1(q0[i]);
        s0_0 = vf_mul(first_q0, first0);
        const vf first_q1 = vf_set1(q1[i]);
        s1_0 = vf_mul(first_q1, first0);
        const vf first_q2 = vf_set1(q2[i]);
        s2_0 = vf_mul(first_q2, first0);
        const vf first_q3 = vf_set1(q3[i]);
        s3_0 = vf_mul(first_q3, first0);
        for (i += TERN_LANES; i < padded; i += TERN_LANES) {
            k += TERN_ATTEND_CHUNK;
            const vf k0 = vf_load(k + 0);
            const vf q0_i = vf_set1(q0[i]);
            s0_0 = vf_mac_exact(s0_0, q0_i, k0);
            const vf q1_i = vf_set1(q1[i]);
            s1_0 = vf_mac_exact(s1_0, q1_i, k0);
            const vf q2_i = vf_set1(q2[i]);
            s2_0 = vf_mac_exact(s2_0, q2_i, k0);
            const vf q3_i = vf_set1(q3[i]);
            s3_0 = vf_mac_exact(s3_0, q3_i, k0);
        }

        for (size_t carry = done; carry % 2 > 0; carry /= 2, kept += 4 * TERN_LANES) {
            s0_0 = vf_add(vf_load(kept + 0 * TERN_LANES), s0_0);
            s1_0 = vf_add(vf_load(kept + 1 * TERN_LANES), s1_0);
            s2_0 = vf_add(vf_load(kept + 2 * TERN_LANES), s2_0);
            s3_0 = vf_add(vf_load(kept + 3 * TERN_LANES), s3_0);
        }
        if (done + 1 < TERN_LANES) {
            vf_store(kept + 0 * TERN_LANES, s0_0);
            vf_store(kept + 1 * TERN_LANES, s1_0);
            vf_store(kept + 2 * TERN_LANES, s2_0);
            vf_store(kept + 3 * TERN_LANES, s3_0);
        }
    }
    vf_store(t->s + h0 * TERN_ATTEND_CHUNK + 0, vf_mul(s0_0, factor));
    vf_store(t->s + h1 * TERN_ATTEND_CHUNK + 0, vf_mul(s1_0, factor));
    vf_store(t->s + h2 * TERN_ATTEND_CHUNK + 0, vf_mul(s2_0, factor));
    vf_store(t->s + h3 * TERN_ATTEND_CHUNK + 0, vf_mul(s3_0, factor));
}

/* The scores of many heads. */
static void score_turned(const tile *t, size_t n) {
    for (size_t j = 0; j < n; j += TERN_LANES)
        for (size_t i = 0; i < t->dim; i += TERN_ATTEND_TURNED)
            turn(t, i, j, n);
    size_t head = 0;
    for (; n == TERN_ATTEND_CHUNK && head + TERN_ATTEND_MANY <= t->n; head += TERN_ATTEND_MANY)
        turned_score6_4(t, head);
    for (; head < t->n; head += TERN_ATTEND_HEADS) {
    switch ((n + TERN_LANES - 1) / TERN_LANES) {
    case 1:
        turned_score4_1(t, head);
        break;
    case 2:
        turned_score4_2(t, head);
        break;
    case 3:
        turned_score4_3(t, head);
        break;
    default:
        turned_score4_4(t, head);
        break;
    }
    }
}

static void gather_columns4(const tile *t, size_t i, float *o) {
    first_gather4_4(t, 0, i, o);
    size_t h0 = TERN_ATTEND_HEADS;
    for (; all_alike(t) && h0 + TERN_ATTEND_MANY <= t->n; h0 += TERN_ATTEND_MANY)
        later_gather6_4(t, h0, i, o + h0 * tern_attend_state(t->dim));
    for (; h0 < t->n; h0 += TERN_ATTEND_HEADS) {
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
    size_t h0 = TERN_ATTEND_HEADS;
    for (; h0 < t->n; h0 += TERN_ATTEND_HEADS) {
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
    if (t->n >= TURN_FROM) {
        score_turned(t, n);
        return;
    }
    for (size_t h0 = 0; h0 < t->n; h0 += TERN_ATTEND_HEADS) {
    switch (t->n - h0) {
    case 1:
        score1(t, h0, n);
        break;
    case 2:
        score2(t, h0, n);
        break;
    case 3:
        score3(t, h0, n);
        break;
    default:
        score4(t, h0, n);
        break;
    }
    }
}

/* The values of up to four heads, as far as the first sees, from +0. */
static void gather_few(const tile *t, float *o) {
    const size_t to = t->seen[0];
    for (size_t h = 0; h < t->n; h++)
        memset(o + h * tern_attend_state(t->dim), 0, tern_attend_padded(t->dim) * sizeof *o);
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

static void gather(const tile *t, float *o) {
    const size_t stride = tern_attend_state(t->dim);
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
