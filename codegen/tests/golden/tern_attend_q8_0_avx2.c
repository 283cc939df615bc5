/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_attend_q8_0_avx2 of kernels/kernels.toml
 * and template kernels/attend_codes.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_attend_chunks_fn tern_attend_q8_0_avx2_chunks;
tern_attend_merge_fn tern_attend_q8_0_avx2_merge;
tern_attend_finish_fn tern_attend_q8_0_avx2_finish;

/*
 * Causal attention of the query heads of some tokens over one key/value head whose cache holds
 * blocks of codes, in chunks of TERN_ATTEND_CHUNK positions that are merged in order
 * (docs/numerics.md). The codes are multiplied as integers. Query heads and weights become 16-bit
 * numbers, so that a pair of products goes into a lane, and all sums of a block or chunk are exact:
 * their order is free. Up to four heads share what is read of the cache.
 */
#include "kernels/isa/avx2.h"

#include "kernels/attend.h"
#include "kernels/isa/vmath.h"

enum {
    TILE_HEADS = TERN_ATTEND_HEADS,
    BLOCK_BYTES = 34 /* an f16 scale and 32 codes */
};

/* A cache row, the keys or values of one position, is whole blocks. */
typedef uint8_t element;

typedef struct tile_operands {
    int16_t *all;   /* [heads][blocks][32] query heads */
    float *factors; /* [heads] that turn their scores of codes into scores */
    const int16_t *q[TERN_ATTEND_HEADS];
    float factor[TERN_ATTEND_HEADS];
    float *scale;     /* [blocks][TERN_ATTEND_CHUNK] of the keys, then of the values */
    int16_t *weights; /* [blocks][TERN_ATTEND_HEADS][TERN_ATTEND_CHUNK] */
    float *step;      /* [blocks][TERN_ATTEND_HEADS]: sums of weighted codes to values */
    float *mixed;     /* [TERN_ATTEND_CHUNK][TERN_ATTEND_HEADS] scores */
} tile_operands;

static inline size_t row_elements(size_t dim) {
    return tern_attend_blocks(dim) * BLOCK_BYTES;
}

/*
 * Some query heads, of one token or several that follow each other, over one chunk. While a tile
 * computes it asks for memory that is read soon, a little with every step: the caches' own guesses
 * come too late, and more requests at once than a core keeps in flight hold everything up.
 * The last tile of a chunk asks for the next one's keys and values.
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
static inline void ask(const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)from + i);
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
    for (size_t j = 0; j < n; j += 8)
        m = vf_max(vf_load(s + j), m);
    return vf_hmax(m);
}

/* The weight of a score that is x <= 0 beside the largest; NaN has none. */
static inline vf weight(vf x) {
    return (vf_exp(x));
}

/* The weights of n scores of a chunk in place, zeros after; returns their sum. */
static inline float weigh(float *s, size_t n, float m) {
    const vf largest = vf_set1(m);
    vf sum0 = vf_zero();
    vf sum1 = vf_zero();
    size_t j = 0;
    for (; j + TERN_LANES <= n; j += TERN_LANES) {
        const vf e0 = weight(vf_sub(vf_load(s + j + 0), largest));
        vf_store(s + j + 0, e0);
        sum0 = vf_add(sum0, e0);
        const vf e1 = weight(vf_sub(vf_load(s + j + 8), largest));
        vf_store(s + j + 8, e1);
        sum1 = vf_add(sum1, e1);
    }
    if (j < n) {
        const vf e0 = vf_first_n(weight(vf_sub(vf_load(s + j + 0), largest)),
                                tail_lanes(n - j, 0, 8));
        vf_store(s + j + 0, e0);
        sum0 = vf_add(sum0, e0);
        const vf e1 = vf_first_n(weight(vf_sub(vf_load(s + j + 8), largest)),
                                tail_lanes(n - j, 8, 8));
        vf_store(s + j + 8, e1);
        sum1 = vf_add(sum1, e1);
    }
    return vf_sum16(sum0, sum1);
}

/* total * a + part * b */
static inline vf mixed(vf total, vf a, vf part, vf b) {
    return vf_add(vf_mul(total, a), vf_mul(part, b));
}

static inline void blend(float *total, float a, const float *part, float b, size_t dim) {
    const vf va = vf_set1(a);
    const vf vb_ = vf_set1(b);
    for (size_t i = 0; i < dim; i += 8) /* both are padded to whole vectors */
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
    for (size_t i = 0; i < 2 * n; i += 8)
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

static inline void divide(const float *total, float sum, size_t dim, float *out) {
    const vf divisor = vf_set1(sum);
    size_t i = 0;
    for (; i + 8 <= dim; i += 8)
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
    t->by_score = rows_of(a, a->k, chunk + ends);
    t->by_gather = rows_of(a, a->v, chunk + ends);
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

void tern_attend_q8_0_avx2_chunks(const tern_attend_args *args, size_t first, size_t last,
    void *states, size_t stride) {
    const size_t heads = args->heads.tokens * args->heads.group;
    const size_t most = heads < TILE_HEADS ? heads : TILE_HEADS;
    float *const scores = args->scratch;
    float *const parts = scores + most * TERN_ATTEND_CHUNK;
    const size_t dim = args->heads.dim;
    tile t = {.dim = dim, .s = scores, .parts = parts};
    t.own = share(args, parts + most * tern_attend_state(dim));
    ask(rows_of(args, args->v, first), TERN_ATTEND_CHUNK * row_elements(dim));
    for (size_t chunk = first; chunk < last; chunk++) {
        void *const place = (char *)states + (chunk - first) * stride;
        attend_chunk(args, chunk, &t, place, chunk == first || stride > 0);
    }
}

void tern_attend_q8_0_avx2_merge(const tern_attend_heads *heads, size_t first, size_t last,
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

void tern_attend_q8_0_avx2_finish(const tern_attend_heads *heads, const void *total, float *out,
    size_t out_stride) {
    const float *state = total;
    for (size_t h = 0; h < heads->tokens * heads->group; h++) {
        const size_t head = h % heads->group * heads->dim;
        divide(state, state[tern_attend_padded(heads->dim) + 1], heads->dim,
               out + h / heads->group * out_stride + head);
        state += tern_attend_state(heads->dim);
    }
}

/* Largest magnitude of the 16-bit numbers; docs/numerics.md has the bounds of their sums. */
static const float fine = 32767.0f;

/* A NaN product becomes `least` because vf_max keeps its second operand. */
static inline vi fine_codes(vf x, vf inverse, vf least) {
    return vi_round(vf_min(vf_max(vf_mul(x, inverse), least), vf_set1(fine)));
}

/* Blocks of 16-bit codes of a query head; returns what a score of codes is multiplied by. */
static float query_codes(const float *x, size_t dim, float scale, int16_t *codes) {
    vf m = vf_set1(1e-30f);
    for (size_t at = 0; at < dim; at += 8)
        m = vf_max(vf_abs(vf_load_fill(x + at, tail_lanes(dim, at, 8), 0.0f)), m);
    const float top = vf_hmax(m);
    const vf inverse = vf_set1(fine / top);
    size_t i = 0;
    for (; i < dim; i += 8) {
        const vf part = vf_load_fill(x + i, tail_lanes(dim, i, 8), 0.0f);
        const vi fine_part = fine_codes(part, inverse, vf_set1(-fine));
        vi_store_i16(codes + i, fine_part);
    }
    memset(codes + i, 0, (tern_attend_blocks(dim) * TERN_BLOCK - i) * sizeof *codes);
    return (top / fine) * scale;
}

/* Every query head as codes. */
static tile_operands share(const tern_attend_args *a, float *room) {
    const size_t heads = a->heads.tokens * a->heads.group;
    const size_t dim = a->heads.dim;
    const size_t blocks = tern_attend_blocks(dim);
    tile_operands o = {.mixed = room, .scale = room + TERN_ATTEND_HEADS * TERN_ATTEND_CHUNK};
    o.weights = (int16_t *)(o.scale + blocks * TERN_ATTEND_CHUNK);
    o.step = (float *)(o.weights + TERN_ATTEND_HEADS * blocks * TERN_ATTEND_CHUNK);
    o.all = (int16_t *)(o.step + TERN_ATTEND_HEADS * blocks);
    o.factors = (float *)(o.all + heads * blocks * TERN_BLOCK);
    for (size_t h = 0; h < heads; h++)
        o.factors[h] = query_codes(query(a, h), dim, a->scale, o.all + h * blocks * TERN_BLOCK);
    return o;
}

static void take_heads(const tern_attend_args *a, size_t h0, tile *t) {
    const size_t blocks = tern_attend_blocks(a->heads.dim);
    for (size_t h = 0; h < t->n; h++) {
        t->own.q[h] = t->own.all + (h0 + h) * blocks * TERN_BLOCK;
        t->own.factor[h] = t->own.factors[h0 + h];
    }
}

/*
 * Scales of n positions as floats, to scale[block][TERN_ATTEND_CHUNK]; up to a multiple of 16 they
 * are the last position's. All halves are collected in halves[block][TERN_ATTEND_CHUNK] first,
 * since a load that follows the stores of its parts at once would wait for these.
 */
static void widen_scales(const element *rows, size_t dim, size_t n, int16_t *halves, float *scale) {
    const size_t stride = row_elements(dim);
    const size_t room = tern_attend_blocks(dim) * TERN_ATTEND_CHUNK;
    const size_t end = (n + TERN_LANES - 1) / TERN_LANES * TERN_LANES;
    for (size_t b = 0; b < room; b += TERN_ATTEND_CHUNK, rows += BLOCK_BYTES) {
        int16_t *const of_block = halves + b;
        const element *at = rows;
        size_t j = 0;
        for (; j + 4 <= n; j += 4, at += 4 * stride) {
            memcpy(of_block + j + 0, at + 0 * stride, sizeof *halves);
            memcpy(of_block + j + 1, at + 1 * stride, sizeof *halves);
            memcpy(of_block + j + 2, at + 2 * stride, sizeof *halves);
            memcpy(of_block + j + 3, at + 3 * stride, sizeof *halves);
        }
        for (; j < end; j++)
            memcpy(of_block + j, rows + (j < n ? j : n - 1) * stride, sizeof *halves);
    }
    for (size_t b = 0; b < room; b += TERN_ATTEND_CHUNK)
        for (size_t j = b; j < b + end; j += 8)
            vf_store(scale + j, vf_load_f16(halves + j));
}

/*
 * Scores of 4 head(s), 2 position(s) at once, at n positions.
 * Of the heads `real` are asked for; the last of these stands in for more.
 */
static void score4(const tile *t, size_t n, size_t real) {
    const size_t stride = row_elements(t->dim);
    const size_t blocks = tern_attend_blocks(t->dim);
    float *const mixed = t->own.mixed; /* [position][head] */
    float factors[8];
    const int16_t *const q0 = t->own.q[0];
    const int16_t *const q1 = t->own.q[real > 1 ? 1 : real - 1];
    const int16_t *const q2 = t->own.q[real > 2 ? 2 : real - 1];
    const int16_t *const q3 = t->own.q[real > 3 ? 3 : real - 1];
    for (size_t i = 0; i < 8; i++)
        factors[i] = t->own.factor[i % 4 < real ? i % 4 : real - 1];
    for (size_t j = 0; j < n; j += 2) {
        const element *row0 = t->k + j * stride + 2;
        const element *row1 = t->k + (j + 1 < n ? j + 1 : n - 1) * stride + 2;
        vf sum = vf_zero();
        ask(t->by_score + j * stride, 2 * stride);
        for (size_t b = 0; b < blocks; b++) {
            const vh k0_0 = vh_load_i8((const int8_t *)row0 + b * BLOCK_BYTES + 0);
            const vh k0_1 = vh_load_i8((const int8_t *)row0 + b * BLOCK_BYTES + 16);
            vw s0_0 = vw_zero();
            s0_0 = vw_mac(s0_0, k0_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s0_0 = vw_mac(s0_0, k0_1, vh_load(q0 + b * TERN_BLOCK + 16));
            vw s0_1 = vw_zero();
            s0_1 = vw_mac(s0_1, k0_0, vh_load(q1 + b * TERN_BLOCK + 0));
            s0_1 = vw_mac(s0_1, k0_1, vh_load(q1 + b * TERN_BLOCK + 16));
            vw s0_2 = vw_zero();
            s0_2 = vw_mac(s0_2, k0_0, vh_load(q2 + b * TERN_BLOCK + 0));
            s0_2 = vw_mac(s0_2, k0_1, vh_load(q2 + b * TERN_BLOCK + 16));
            vw s0_3 = vw_zero();
            s0_3 = vw_mac(s0_3, k0_0, vh_load(q3 + b * TERN_BLOCK + 0));
            s0_3 = vw_mac(s0_3, k0_1, vh_load(q3 + b * TERN_BLOCK + 16));
            const vh k1_0 = vh_load_i8((const int8_t *)row1 + b * BLOCK_BYTES + 0);
            const vh k1_1 = vh_load_i8((const int8_t *)row1 + b * BLOCK_BYTES + 16);
            vw s1_0 = vw_zero();
            s1_0 = vw_mac(s1_0, k1_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s1_0 = vw_mac(s1_0, k1_1, vh_load(q0 + b * TERN_BLOCK + 16));
            vw s1_1 = vw_zero();
            s1_1 = vw_mac(s1_1, k1_0, vh_load(q1 + b * TERN_BLOCK + 0));
            s1_1 = vw_mac(s1_1, k1_1, vh_load(q1 + b * TERN_BLOCK + 16));
            vw s1_2 = vw_zero();
            s1_2 = vw_mac(s1_2, k1_0, vh_load(q2 + b * TERN_BLOCK + 0));
            s1_2 = vw_mac(s1_2, k1_1, vh_load(q2 + b * TERN_BLOCK + 16));
            vw s1_3 = vw_zero();
            s1_3 = vw_mac(s1_3, k1_0, vh_load(q3 + b * TERN_BLOCK + 0));
            s1_3 = vw_mac(s1_3, k1_1, vh_load(q3 + b * TERN_BLOCK + 16));
            const vi total = vi_sums(vw_total(s0_0), vw_total(s0_1), vw_total(s0_2),
                vw_total(s0_3), vw_total(s1_0), vw_total(s1_1), vw_total(s1_2), vw_total(s1_3));
            sum = vf_add(sum, vf_mul(vi_to_f(total),
                vf_repeat4(t->own.scale + b * TERN_ATTEND_CHUNK + j)));
        }
        vf_store(mixed + j * 4, vf_mul(sum, vf_load(factors)));
    }
    for (size_t h = 0; h < real; h++)
        for (size_t j = 0; j < n; j++)
            t->s[h * TERN_ATTEND_CHUNK + j] = mixed[j * 4 + h];
}

/*
 * Scores of 2 head(s), 4 position(s) at once, at n positions.
 * Of the heads `real` are asked for; the last of these stands in for more.
 */
static void score2(const tile *t, size_t n, size_t real) {
    const size_t stride = row_elements(t->dim);
    const size_t blocks = tern_attend_blocks(t->dim);
    float *const mixed = t->own.mixed; /* [position][head] */
    float factors[8];
    const int16_t *const q0 = t->own.q[0];
    const int16_t *const q1 = t->own.q[real > 1 ? 1 : real - 1];
    for (size_t i = 0; i < 8; i++)
        factors[i] = t->own.factor[i % 2 < real ? i % 2 : real - 1];
    for (size_t j = 0; j < n; j += 4) {
        const element *row0 = t->k + j * stride + 2;
        const element *row1 = t->k + (j + 1 < n ? j + 1 : n - 1) * stride + 2;
        const element *row2 = t->k + (j + 2 < n ? j + 2 : n - 1) * stride + 2;
        const element *row3 = t->k + (j + 3 < n ? j + 3 : n - 1) * stride + 2;
        vf sum = vf_zero();
        ask(t->by_score + j * stride, 4 * stride);
        for (size_t b = 0; b < blocks; b++) {
            const vh k0_0 = vh_load_i8((const int8_t *)row0 + b * BLOCK_BYTES + 0);
            const vh k0_1 = vh_load_i8((const int8_t *)row0 + b * BLOCK_BYTES + 16);
            vw s0_0 = vw_zero();
            s0_0 = vw_mac(s0_0, k0_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s0_0 = vw_mac(s0_0, k0_1, vh_load(q0 + b * TERN_BLOCK + 16));
            vw s0_1 = vw_zero();
            s0_1 = vw_mac(s0_1, k0_0, vh_load(q1 + b * TERN_BLOCK + 0));
            s0_1 = vw_mac(s0_1, k0_1, vh_load(q1 + b * TERN_BLOCK + 16));
            const vh k1_0 = vh_load_i8((const int8_t *)row1 + b * BLOCK_BYTES + 0);
            const vh k1_1 = vh_load_i8((const int8_t *)row1 + b * BLOCK_BYTES + 16);
            vw s1_0 = vw_zero();
            s1_0 = vw_mac(s1_0, k1_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s1_0 = vw_mac(s1_0, k1_1, vh_load(q0 + b * TERN_BLOCK + 16));
            vw s1_1 = vw_zero();
            s1_1 = vw_mac(s1_1, k1_0, vh_load(q1 + b * TERN_BLOCK + 0));
            s1_1 = vw_mac(s1_1, k1_1, vh_load(q1 + b * TERN_BLOCK + 16));
            const vh k2_0 = vh_load_i8((const int8_t *)row2 + b * BLOCK_BYTES + 0);
            const vh k2_1 = vh_load_i8((const int8_t *)row2 + b * BLOCK_BYTES + 16);
            vw s2_0 = vw_zero();
            s2_0 = vw_mac(s2_0, k2_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s2_0 = vw_mac(s2_0, k2_1, vh_load(q0 + b * TERN_BLOCK + 16));
            vw s2_1 = vw_zero();
            s2_1 = vw_mac(s2_1, k2_0, vh_load(q1 + b * TERN_BLOCK + 0));
            s2_1 = vw_mac(s2_1, k2_1, vh_load(q1 + b * TERN_BLOCK + 16));
            const vh k3_0 = vh_load_i8((const int8_t *)row3 + b * BLOCK_BYTES + 0);
            const vh k3_1 = vh_load_i8((const int8_t *)row3 + b * BLOCK_BYTES + 16);
            vw s3_0 = vw_zero();
            s3_0 = vw_mac(s3_0, k3_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s3_0 = vw_mac(s3_0, k3_1, vh_load(q0 + b * TERN_BLOCK + 16));
            vw s3_1 = vw_zero();
            s3_1 = vw_mac(s3_1, k3_0, vh_load(q1 + b * TERN_BLOCK + 0));
            s3_1 = vw_mac(s3_1, k3_1, vh_load(q1 + b * TERN_BLOCK + 16));
            const vi total = vi_sums(vw_total(s0_0), vw_total(s0_1), vw_total(s1_0),
                vw_total(s1_1), vw_total(s2_0), vw_total(s2_1), vw_total(s3_0), vw_total(s3_1));
            sum = vf_add(sum, vf_mul(vi_to_f(total),
                vf_repeat2(t->own.scale + b * TERN_ATTEND_CHUNK + j)));
        }
        vf_store(mixed + j * 2, vf_mul(sum, vf_load(factors)));
    }
    for (size_t h = 0; h < real; h++)
        for (size_t j = 0; j < n; j++)
            t->s[h * TERN_ATTEND_CHUNK + j] = mixed[j * 2 + h];
}

/*
 * Scores of 1 head(s), 8 position(s) at once, at n positions.
 */
static void score1(const tile *t, size_t n) {
    const size_t stride = row_elements(t->dim);
    const size_t blocks = tern_attend_blocks(t->dim);
    float *const mixed = t->own.mixed; /* [position][head] */
    float factors[8];
    const int16_t *const q0 = t->own.q[0];
    for (size_t i = 0; i < 8; i++)
        factors[i] = t->own.factor[0];
    for (size_t j = 0; j < n; j += 8) {
        const element *row0 = t->k + j * stride + 2;
        const element *row1 = t->k + (j + 1 < n ? j + 1 : n - 1) * stride + 2;
        const element *row2 = t->k + (j + 2 < n ? j + 2 : n - 1) * stride + 2;
        const element *row3 = t->k + (j + 3 < n ? j + 3 : n - 1) * stride + 2;
        const element *row4 = t->k + (j + 4 < n ? j + 4 : n - 1) * stride + 2;
        const element *row5 = t->k + (j + 5 < n ? j + 5 : n - 1) * stride + 2;
        const element *row6 = t->k + (j + 6 < n ? j + 6 : n - 1) * stride + 2;
        const element *row7 = t->k + (j + 7 < n ? j + 7 : n - 1) * stride + 2;
        vf sum = vf_zero();
        ask(t->by_score + j * stride, 8 * stride);
        for (size_t b = 0; b < blocks; b++) {
            const vh k0_0 = vh_load_i8((const int8_t *)row0 + b * BLOCK_BYTES + 0);
            const vh k0_1 = vh_load_i8((const int8_t *)row0 + b * BLOCK_BYTES + 16);
            vw s0_0 = vw_zero();
            s0_0 = vw_mac(s0_0, k0_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s0_0 = vw_mac(s0_0, k0_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vh k1_0 = vh_load_i8((const int8_t *)row1 + b * BLOCK_BYTES + 0);
            const vh k1_1 = vh_load_i8((const int8_t *)row1 + b * BLOCK_BYTES + 16);
            vw s1_0 = vw_zero();
            s1_0 = vw_mac(s1_0, k1_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s1_0 = vw_mac(s1_0, k1_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vh k2_0 = vh_load_i8((const int8_t *)row2 + b * BLOCK_BYTES + 0);
            const vh k2_1 = vh_load_i8((const int8_t *)row2 + b * BLOCK_BYTES + 16);
            vw s2_0 = vw_zero();
            s2_0 = vw_mac(s2_0, k2_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s2_0 = vw_mac(s2_0, k2_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vh k3_0 = vh_load_i8((const int8_t *)row3 + b * BLOCK_BYTES + 0);
            const vh k3_1 = vh_load_i8((const int8_t *)row3 + b * BLOCK_BYTES + 16);
            vw s3_0 = vw_zero();
            s3_0 = vw_mac(s3_0, k3_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s3_0 = vw_mac(s3_0, k3_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vh k4_0 = vh_load_i8((const int8_t *)row4 + b * BLOCK_BYTES + 0);
            const vh k4_1 = vh_load_i8((const int8_t *)row4 + b * BLOCK_BYTES + 16);
            vw s4_0 = vw_zero();
            s4_0 = vw_mac(s4_0, k4_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s4_0 = vw_mac(s4_0, k4_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vh k5_0 = vh_load_i8((const int8_t *)row5 + b * BLOCK_BYTES + 0);
            const vh k5_1 = vh_load_i8((const int8_t *)row5 + b * BLOCK_BYTES + 16);
            vw s5_0 = vw_zero();
            s5_0 = vw_mac(s5_0, k5_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s5_0 = vw_mac(s5_0, k5_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vh k6_0 = vh_load_i8((const int8_t *)row6 + b * BLOCK_BYTES + 0);
            const vh k6_1 = vh_load_i8((const int8_t *)row6 + b * BLOCK_BYTES + 16);
            vw s6_0 = vw_zero();
            s6_0 = vw_mac(s6_0, k6_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s6_0 = vw_mac(s6_0, k6_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vh k7_0 = vh_load_i8((const int8_t *)row7 + b * BLOCK_BYTES + 0);
            const vh k7_1 = vh_load_i8((const int8_t *)row7 + b * BLOCK_BYTES + 16);
            vw s7_0 = vw_zero();
            s7_0 = vw_mac(s7_0, k7_0, vh_load(q0 + b * TERN_BLOCK + 0));
            s7_0 = vw_mac(s7_0, k7_1, vh_load(q0 + b * TERN_BLOCK + 16));
            const vi total = vi_sums(vw_total(s0_0), vw_total(s1_0), vw_total(s2_0),
                vw_total(s3_0), vw_total(s4_0), vw_total(s5_0), vw_total(s6_0), vw_total(s7_0));
            sum = vf_add(sum, vf_mul(vi_to_f(total),
                vf_load(t->own.scale + b * TERN_ATTEND_CHUNK + j)));
        }
        vf_store(mixed + j * 1, vf_mul(sum, vf_load(factors)));
    }
    memcpy(t->s, mixed, n * sizeof *mixed);
}

static void score(const tile *t) {
    const size_t n = t->seen[t->n - 1];
    widen_scales(t->k, t->dim, n, t->own.weights, t->own.scale);
    if (t->n > 2)
        score4(t, n, t->n);
    else if (t->n == 2)
        score2(t, n, 2);
    else
        score1(t, n);
}

/*
 * The weights of head h at n positions, times the scales of the values of each block, as 16-bit
 * codes. n is a multiple of 16; weights after what the head sees are 0.
 */
static void weight_codes(const tile *t, size_t h, size_t n) {
    const float *const e = t->s + h * TERN_ATTEND_CHUNK;
    for (size_t b = 0; b < tern_attend_blocks(t->dim); b++) {
        const float *const scale = t->own.scale + b * TERN_ATTEND_CHUNK;
        int16_t *const codes = t->own.weights + (b * TERN_ATTEND_HEADS + h) * TERN_ATTEND_CHUNK;
        vf m = vf_set1(1e-30f);
        for (size_t j = 0; j < n; j += 8)
            m = vf_max(vf_mul(vf_load(e + j), vf_load(scale + j)), m);
        const float top = vf_hmax(m);
        const vf inverse = vf_set1(fine / top);
        for (size_t j = 0; j < n; j += 8)
            vi_store_i16(codes + j, fine_codes(vf_mul(vf_load(e + j), vf_load(scale + j)),
                inverse, vf_zero()));
        t->own.step[b * TERN_ATTEND_HEADS + h] = top / fine;
    }
}

/* The weighted values of 4 head(s) from h0 on at n positions, the first one's to o. */
static void gather4(const tile *t, size_t h0, size_t n, float *o) {
    const size_t stride = row_elements(t->dim);
    const size_t blocks = tern_attend_blocks(t->dim);
    for (size_t i = 0; i < blocks * TERN_BLOCK; i += 16) {
        const size_t b = i / TERN_BLOCK;
        const int8_t *row = (const int8_t *)t->v + b * BLOCK_BYTES + 2 + i % TERN_BLOCK;
        const int16_t *w = t->own.weights + (b * TERN_ATTEND_HEADS + h0) * TERN_ATTEND_CHUNK;
        vw o0_0 = vw_zero();
        vw o0_1 = vw_zero();
        vw o1_0 = vw_zero();
        vw o1_1 = vw_zero();
        vw o2_0 = vw_zero();
        vw o2_1 = vw_zero();
        vw o3_0 = vw_zero();
        vw o3_1 = vw_zero();
        size_t j = 0;
        for (; j + 2 <= n; j += 2, w += 2, row += 2 * stride) {
            if (h0 == 0)
                ask(t->by_gather + (i * TERN_ATTEND_CHUNK + j * 16) / TERN_BLOCK * BLOCK_BYTES,
                    32 * BLOCK_BYTES / TERN_BLOCK);
            const vh v0 = vh_zip_i8(row + 0, row + stride + 0);
            const vh v1 = vh_zip_i8(row + 8, row + stride + 8);
            const vh e0 = vh_splat2(w + 0 * TERN_ATTEND_CHUNK);
            o0_0 = vw_mac(o0_0, v0, e0);
            o0_1 = vw_mac(o0_1, v1, e0);
            const vh e1 = vh_splat2(w + 1 * TERN_ATTEND_CHUNK);
            o1_0 = vw_mac(o1_0, v0, e1);
            o1_1 = vw_mac(o1_1, v1, e1);
            const vh e2 = vh_splat2(w + 2 * TERN_ATTEND_CHUNK);
            o2_0 = vw_mac(o2_0, v0, e2);
            o2_1 = vw_mac(o2_1, v1, e2);
            const vh e3 = vh_splat2(w + 3 * TERN_ATTEND_CHUNK);
            o3_0 = vw_mac(o3_0, v0, e3);
            o3_1 = vw_mac(o3_1, v1, e3);

        }
        if (j < n) { /* times 0 */
            const vh v0 = vh_zip_i8(row + 0, row + 0);
            const vh v1 = vh_zip_i8(row + 8, row + 8);
            const vh e0 = vh_splat2(w + 0 * TERN_ATTEND_CHUNK);
            o0_0 = vw_mac(o0_0, v0, e0);
            o0_1 = vw_mac(o0_1, v1, e0);
            const vh e1 = vh_splat2(w + 1 * TERN_ATTEND_CHUNK);
            o1_0 = vw_mac(o1_0, v0, e1);
            o1_1 = vw_mac(o1_1, v1, e1);
            const vh e2 = vh_splat2(w + 2 * TERN_ATTEND_CHUNK);
            o2_0 = vw_mac(o2_0, v0, e2);
            o2_1 = vw_mac(o2_1, v1, e2);
            const vh e3 = vh_splat2(w + 3 * TERN_ATTEND_CHUNK);
            o3_0 = vw_mac(o3_0, v0, e3);
            o3_1 = vw_mac(o3_1, v1, e3);

        }
        const vf step0 = vf_set1(t->own.step[b * TERN_ATTEND_HEADS + h0 + 0]);
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 0, vf_mul(vi_to_f(vw_total(o0_0)), step0));
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 8, vf_mul(vi_to_f(vw_total(o0_1)), step0));
        const vf step1 = vf_set1(t->own.step[b * TERN_ATTEND_HEADS + h0 + 1]);
        vf_store(o + 1 * tern_attend_state(t->dim) + i + 0, vf_mul(vi_to_f(vw_total(o1_0)), step1));
        vf_store(o + 1 * tern_attend_state(t->dim) + i + 8, vf_mul(vi_to_f(vw_total(o1_1)), step1));
        const vf step2 = vf_set1(t->own.step[b * TERN_ATTEND_HEADS + h0 + 2]);
        vf_store(o + 2 * tern_attend_state(t->dim) + i + 0, vf_mul(vi_to_f(vw_total(o2_0)), step2));
        vf_store(o + 2 * tern_attend_state(t->dim) + i + 8, vf_mul(vi_to_f(vw_total(o2_1)), step2));
        const vf step3 = vf_set1(t->own.step[b * TERN_ATTEND_HEADS + h0 + 3]);
        vf_store(o + 3 * tern_attend_state(t->dim) + i + 0, vf_mul(vi_to_f(vw_total(o3_0)), step3));
        vf_store(o + 3 * tern_attend_state(t->dim) + i + 8, vf_mul(vi_to_f(vw_total(o3_1)), step3));
    }
}

/* The weighted values of 2 head(s) from h0 on at n positions, the first one's to o. */
static void gather2(const tile *t, size_t h0, size_t n, float *o) {
    const size_t stride = row_elements(t->dim);
    const size_t blocks = tern_attend_blocks(t->dim);
    for (size_t i = 0; i < blocks * TERN_BLOCK; i += 32) {
        const size_t b = i / TERN_BLOCK;
        const int8_t *row = (const int8_t *)t->v + b * BLOCK_BYTES + 2 + i % TERN_BLOCK;
        const int16_t *w = t->own.weights + (b * TERN_ATTEND_HEADS + h0) * TERN_ATTEND_CHUNK;
        vw o0_0 = vw_zero();
        vw o0_1 = vw_zero();
        vw o0_2 = vw_zero();
        vw o0_3 = vw_zero();
        vw o1_0 = vw_zero();
        vw o1_1 = vw_zero();
        vw o1_2 = vw_zero();
        vw o1_3 = vw_zero();
        size_t j = 0;
        for (; j + 2 <= n; j += 2, w += 2, row += 2 * stride) {
            if (h0 == 0)
                ask(t->by_gather + (i * TERN_ATTEND_CHUNK + j * 32) / TERN_BLOCK * BLOCK_BYTES,
                    64 * BLOCK_BYTES / TERN_BLOCK);
            const vh v0 = vh_zip_i8(row + 0, row + stride + 0);
            const vh v1 = vh_zip_i8(row + 8, row + stride + 8);
            const vh v2 = vh_zip_i8(row + 16, row + stride + 16);
            const vh v3 = vh_zip_i8(row + 24, row + stride + 24);
            const vh e0 = vh_splat2(w + 0 * TERN_ATTEND_CHUNK);
            o0_0 = vw_mac(o0_0, v0, e0);
            o0_1 = vw_mac(o0_1, v1, e0);
            o0_2 = vw_mac(o0_2, v2, e0);
            o0_3 = vw_mac(o0_3, v3, e0);
            const vh e1 = vh_splat2(w + 1 * TERN_ATTEND_CHUNK);
            o1_0 = vw_mac(o1_0, v0, e1);
            o1_1 = vw_mac(o1_1, v1, e1);
            o1_2 = vw_mac(o1_2, v2, e1);
            o1_3 = vw_mac(o1_3, v3, e1);

        }
        if (j < n) { /* times 0 */
            const vh v0 = vh_zip_i8(row + 0, row + 0);
            const vh v1 = vh_zip_i8(row + 8, row + 8);
            const vh v2 = vh_zip_i8(row + 16, row + 16);
            const vh v3 = vh_zip_i8(row + 24, row + 24);
            const vh e0 = vh_splat2(w + 0 * TERN_ATTEND_CHUNK);
            o0_0 = vw_mac(o0_0, v0, e0);
            o0_1 = vw_mac(o0_1, v1, e0);
            o0_2 = vw_mac(o0_2, v2, e0);
            o0_3 = vw_mac(o0_3, v3, e0);
            const vh e1 = vh_splat2(w + 1 * TERN_ATTEND_CHUNK);
            o1_0 = vw_mac(o1_0, v0, e1);
            o1_1 = vw_mac(o1_1, v1, e1);
            o1_2 = vw_mac(o1_2, v2, e1);
            o1_3 = vw_mac(o1_3, v3, e1);

        }
        const vf step0 = vf_set1(t->own.step[b * TERN_ATTEND_HEADS + h0 + 0]);
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 0, vf_mul(vi_to_f(vw_total(o0_0)), step0));
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 8, vf_mul(vi_to_f(vw_total(o0_1)), step0));
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 16, vf_mul(vi_to_f(vw_total(o0_2)),
            step0));
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 24, vf_mul(vi_to_f(vw_total(o0_3)),
            step0));
        const vf step1 = vf_set1(t->own.step[b * TERN_ATTEND_HEADS + h0 + 1]);
        vf_store(o + 1 * tern_attend_state(t->dim) + i + 0, vf_mul(vi_to_f(vw_total(o1_0)), step1));
        vf_store(o + 1 * tern_attend_state(t->dim) + i + 8, vf_mul(vi_to_f(vw_total(o1_1)), step1));
        vf_store(o + 1 * tern_attend_state(t->dim) + i + 16, vf_mul(vi_to_f(vw_total(o1_2)),
            step1));
        vf_store(o + 1 * tern_attend_state(t->dim) + i + 24, vf_mul(vi_to_f(vw_total(o1_3)),
            step1));
    }
}

/* The weighted values of 1 head(s) from h0 on at n positions, the first one's to o. */
static void gather1(const tile *t, size_t h0, size_t n, float *o) {
    const size_t stride = row_elements(t->dim);
    const size_t blocks = tern_attend_blocks(t->dim);
    for (size_t i = 0; i < blocks * TERN_BLOCK; i += 32) {
        const size_t b = i / TERN_BLOCK;
        const int8_t *row = (const int8_t *)t->v + b * BLOCK_BYTES + 2 + i % TERN_BLOCK;
        const int16_t *w = t->own.weights + (b * TERN_ATTEND_HEADS + h0) * TERN_ATTEND_CHUNK;
        vw o0_0 = vw_zero();
        vw o0_1 = vw_zero();
        vw o0_2 = vw_zero();
        vw o0_3 = vw_zero();
        size_t j = 0;
        for (; j + 2 <= n; j += 2, w += 2, row += 2 * stride) {
            if (h0 == 0)
                ask(t->by_gather + (i * TERN_ATTEND_CHUNK + j * 32) / TERN_BLOCK * BLOCK_BYTES,
                    64 * BLOCK_BYTES / TERN_BLOCK);
            const vh v0 = vh_zip_i8(row + 0, row + stride + 0);
            const vh v1 = vh_zip_i8(row + 8, row + stride + 8);
            const vh v2 = vh_zip_i8(row + 16, row + stride + 16);
            const vh v3 = vh_zip_i8(row + 24, row + stride + 24);
            const vh e0 = vh_splat2(w + 0 * TERN_ATTEND_CHUNK);
            o0_0 = vw_mac(o0_0, v0, e0);
            o0_1 = vw_mac(o0_1, v1, e0);
            o0_2 = vw_mac(o0_2, v2, e0);
            o0_3 = vw_mac(o0_3, v3, e0);

        }
        if (j < n) { /* times 0 */
            const vh v0 = vh_zip_i8(row + 0, row + 0);
            const vh v1 = vh_zip_i8(row + 8, row + 8);
            const vh v2 = vh_zip_i8(row + 16, row + 16);
            const vh v3 = vh_zip_i8(row + 24, row + 24);
            const vh e0 = vh_splat2(w + 0 * TERN_ATTEND_CHUNK);
            o0_0 = vw_mac(o0_0, v0, e0);
            o0_1 = vw_mac(o0_1, v1, e0);
            o0_2 = vw_mac(o0_2, v2, e0);
            o0_3 = vw_mac(o0_3, v3, e0);

        }
        const vf step0 = vf_set1(t->own.step[b * TERN_ATTEND_HEADS + h0 + 0]);
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 0, vf_mul(vi_to_f(vw_total(o0_0)), step0));
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 8, vf_mul(vi_to_f(vw_total(o0_1)), step0));
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 16, vf_mul(vi_to_f(vw_total(o0_2)),
            step0));
        vf_store(o + 0 * tern_attend_state(t->dim) + i + 24, vf_mul(vi_to_f(vw_total(o0_3)),
            step0));
    }
}

static void gather(const tile *t, float *o) {
    const size_t n = t->seen[t->n - 1];
    const size_t padded = (n + TERN_LANES - 1) / TERN_LANES * TERN_LANES;
    size_t h = 0;
    widen_scales(t->v, t->dim, n, t->own.weights, t->own.scale);
    for (size_t i = 0; i < t->n; i++) {
        const size_t own = (t->seen[i] + TERN_LANES - 1) / TERN_LANES * TERN_LANES;
        if (own < padded) /* earlier tokens see less */
            memset(t->s + i * TERN_ATTEND_CHUNK + own, 0, (padded - own) * sizeof(float));
        weight_codes(t, i, padded);
    }
    for (; h + 4 <= t->n; h += 4)
        gather4(t, h, n, o + h * tern_attend_state(t->dim));
    for (; h + 2 <= t->n; h += 2)
        gather2(t, h, n, o + h * tern_attend_state(t->dim));
    for (; h + 1 <= t->n; h += 1)
        gather1(t, h, n, o + h * tern_attend_state(t->dim));
}
