/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Products with adapters (runtime/model/adapters/adapters.h), after those with the matrices
 * themselves: y += factor * B (A x), for each row of the batch by the adapters of its sequence, in
 * the order of their ids. First lanes share the products A x of all of them. Then each lane adds,
 * to rows of y that are its own, the columns of B times these, in their order. So no sum crosses a
 * lane or a row, and lanes meet once.
 */

#include "device/tally.h"
#include "runtime/engine/forward/pass.h"

enum {
    WORKS = 64, /* products that lanes share at once */
    RANKS = 32  /* columns of B at once */
};

/* Rows of a map with the same adapters. */
typedef struct run {
    tern_part rows; /* of the batch */
    const tern_adapter_set *set;
} run;

/* A map, and the adapters' parts of its matrix. */
typedef struct adapted {
    const map *of;
    size_t index; /* of the matrix in its layer */
    float *inner; /* [n_batch][stride] */
} adapted;

static const tern_adapter_set *set_of(const pass *p, size_t row) {
    static const tern_adapter_set none;
    const tern_batch *b = p->batch;
    const tern_adapter_set *set = b->spans[b->at[row].sequence].adapters;
    return set != NULL ? set : &none;
}

/* The rows from `begin` on that share their adapters. */
static run run_from(const pass *p, size_t begin, size_t end) {
    run r = {{begin, begin + 1}, set_of(p, begin)};
    while (r.rows.end < end && set_of(p, r.rows.end) == r.set)
        r.rows.end++;
    return r;
}

static const tern_adapter_pair *pair_of(const pass *p, const adapted *m, uint32_t id) {
    return tern_adapter_pair_of(&p->model->adapters.list[id], p->layer, m->index);
}

/* The part of an adapter for rows of a map. */
typedef struct part {
    run rows;
    size_t next; /* use of their set */
    const tern_adapter_use *use;
    const tern_adapter_pair *pair;
} part;

static part before_parts(const adapted *m) {
    return (part){.rows = {{0, m->of->rows.begin}, NULL}};
}

/* Goes on to the next part of a map: by rows, then by ids. False: there are no more. */
static bool next_part(const pass *p, const adapted *m, part *at) {
    const size_t end = m->of->rows.end;
    at->pair = NULL;
    while (at->pair == NULL) {
        if (at->rows.set != NULL && at->next < at->rows.set->n) {
            at->use = &at->rows.set->uses[at->next++];
            at->pair = pair_of(p, m, at->use->id);
        } else if (at->rows.rows.end < end) {
            at->rows = run_from(p, at->rows.rows.end, end);
            at->next = 0;
        } else {
            return false;
        }
    }
    return true;
}

/* The place of A x of a row. */
static float *inner_at(const pass *p, const adapted *m, uint32_t id, size_t row) {
    return m->inner + row * p->s->adapt.stride + p->model->adapters.first[id];
}

/* The kernel runs, and is counted by the first lane for all. */
static const tern_kernel_row *use_kernel(const pass *p, const tern_kernel_row *kernel) {
    if (p->lane.worker.index == 0)
        tern_tally_count(p->runner->tally, kernel);
    return kernel;
}

/* ---- A --------------------------------------------------------------------------------------- */

/* Products with A, until there are WORKS of them or the maps end. */
typedef struct inner_work {
    const adapted *map;
    const tern_adapter_pair *pair;
    tern_part rows;
    uint32_t id;
} inner_work;

static void multiply_inner(const pass *p, const inner_work *w, tern_part ranks) {
    const tern_adapters *a = &p->model->adapters;
    const tern_matrix *m = &w->pair->a;
    const tern_tile tile = {.t1 = count_of(w->rows), .r0 = ranks.begin, .r1 = ranks.end};
    const tern_activations x = {
        .cols = m->cols, .x = p->in->norm + w->rows.begin * p->s->width, .x_stride = p->s->width};
    use_kernel(p, (tile.t1 == 1 ? a->gemv : a->gemm)[m->format])
        ->fn.matmul(m, &x, &tile, inner_at(p, w->map, w->id, w->rows.begin), p->s->adapt.stride);
}

/* Lanes share the works that were collected. */
static void share_inner(pass *p, const inner_work *works, size_t n) {
    size_t counts[WORKS];
    for (size_t i = 0; i < n; i++)
        counts[i] = works[i].pair->a.rows;
    const tern_lane_works all = {counts, n, TERN_ROW_GROUP};
    tern_lane_pieces pieces = tern_lane_divide(&p->lane, &all, true);
    for (tern_lane_piece piece; n > 0 && tern_lane_next(&pieces, &piece);)
        multiply_inner(p, &works[piece.work], piece.items);
}

/* Computes A x of all rows. */
static void make_inner(pass *p, const adapted *maps, size_t n_maps) {
    inner_work works[WORKS];
    size_t n = 0;
    for (size_t i = 0; i < n_maps; i++)
        for (part at = before_parts(&maps[i]); next_part(p, &maps[i], &at);) {
            works[n++] = (inner_work){&maps[i], at.pair, at.rows.rows, at.use->id};
            if (n == WORKS) {
                share_inner(p, works, n);
                n = 0;
            }
        }
    if (n > 0)
        share_inner(p, works, n);
}

/* ---- B --------------------------------------------------------------------------------------- */

/* Columns of a group of B, as floats. */
typedef struct columns {
    const float *data; /* [n][rows] */
    size_t n, rows;
} columns;

/* The columns from `first` on of the group of B that begins with `row`, at most RANKS; `room` for
 * those that are not floats. */
static columns columns_of(const pass *p, const tern_adapter_pair *pair, size_t row, size_t first,
                          float *room) {
    const size_t left = pair->b.cols - first;
    const columns c = {.n = left < RANKS ? left : RANKS, .rows = tern_adapter_group(pair, row)};
    const void *at = tern_adapter_column(pair, row, first);
    if (pair->b.format == TERN_FORMAT_F32)
        return (columns){at, c.n, c.rows};
    use_kernel(p, p->model->adapters.embed[pair->b.format])->fn.embed(at, c.n * c.rows, room);
    return (columns){room, c.n, c.rows};
}

/* Four floats at any address: on every processor a compiler makes one operation of theirs. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* y[i] += factors[k] * column k, one column after the other, for sixteen rows, whose sums stay in
 * registers. */
static void add_sixteen(float *y, const columns *c, size_t i, const float *factors) {
    four *to = (four *)(void *)(y + i);
    four s0 = to[0], s1 = to[1], s2 = to[2], s3 = to[3];
    const float *data = c->data + i;
    for (size_t k = 0; k < c->n; k++, data += c->rows) {
        const four *w = (const four *)(const void *)data;
        s0 += factors[k] * w[0];
        s1 += factors[k] * w[1];
        s2 += factors[k] * w[2];
        s3 += factors[k] * w[3];
    }
    to[0] = s0;
    to[1] = s1;
    to[2] = s2;
    to[3] = s3;
}

static void add_columns(float *y, const columns *c, const float *factors) {
    size_t i = 0;
    for (; i + 16 <= c->rows; i += 16)
        add_sixteen(y, c, i, factors);
    for (; i < c->rows; i++)
        for (size_t k = 0; k < c->n; k++)
            y[i] += factors[k] * c->data[k * c->rows + i];
}

/* The rows of a group of B, for all tokens of a run. */
static void add_group(const pass *p, const adapted *m, const part *of, size_t row) {
    _Alignas(TERN_ALIGN) float room[RANKS * TERN_ADAPTER_ROWS];
    const float factor = of->use->scale * of->pair->factor;
    const tern_part tokens = of->rows.rows;
    for (size_t first = 0; first < of->pair->b.cols; first += RANKS) {
        const columns c = columns_of(p, of->pair, row, first, room);
        for (size_t t = tokens.begin; t < tokens.end; t++) {
            const float *inner = inner_at(p, m, of->use->id, t) + first;
            float factors[RANKS];
            for (size_t k = 0; k < c.n; k++)
                factors[k] = factor * inner[k];
            add_columns(m->of->y + t * m->of->stride + row, &c, factors);
        }
    }
}

/* The sums of a group of rows of a map's results: all tokens, one adapter after the other. */
static void add_outer(const pass *p, const adapted *m, size_t row) {
    for (part at = before_parts(m); next_part(p, m, &at);)
        add_group(p, m, &at, row);
}

static void share_outer(pass *p, const adapted *maps, size_t n) {
    size_t counts[MAPS];
    for (size_t i = 0; i < n; i++)
        counts[i] = maps[i].of->linear->matrix.rows;
    const tern_lane_works all = {counts, n, TERN_ADAPTER_ROWS};
    tern_lane_pieces pieces = tern_lane_divide(&p->lane, &all, true);
    for (tern_lane_piece piece; tern_lane_next(&pieces, &piece);)
        for (size_t row = piece.items.begin; row < piece.items.end; row += TERN_ADAPTER_ROWS)
            add_outer(p, &maps[piece.work], row);
}

/* ---- both ------------------------------------------------------------------------------------ */

static tern_lane_use use_inner(const pass *p, bool writes) {
    const tern_adapt_scratch *s = &p->s->adapt;
    const size_t floats = MAPS * p->runner->n_batch * s->stride;
    return tern_lane_use_all(s->inner, floats * sizeof *s->inner, writes);
}

static tern_lane_use use_norm(const pass *p) {
    const size_t floats = is_own(p) ? 0 : p->batch->n * p->s->width;
    return tern_lane_use_all(p->in->norm, floats * sizeof *p->in->norm, false);
}

static tern_lane_use use_results(const map *m) {
    float *first = m->y + m->rows.begin * m->stride;
    const size_t floats = (count_of(m->rows) - 1) * m->stride + m->linear->matrix.rows;
    return tern_lane_use_all(first, floats * sizeof *first, true);
}

/* True if a row of the map has an adapter with a part of its matrix. */
static bool is_adapted(const pass *p, const adapted *m) {
    part at = before_parts(m);
    return next_part(p, m, &at);
}

/* The maps to which adapters add. */
static size_t find_adapted(const pass *p, const map *maps, size_t count, adapted *out) {
    const tern_adapters *a = &p->model->adapters;
    const tern_layer *layer = &p->weights->layers[p->layer];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        out[n] =
            (adapted){.of = &maps[i],
                      .index = tern_adapters_index(a, layer, maps[i].linear),
                      .inner = p->s->adapt.inner + i * p->runner->n_batch * p->s->adapt.stride};
        n += is_adapted(p, &out[n]);
    }
    return n;
}

void tern_adapt(pass *p, const map *maps, size_t count) {
    adapted parts[MAPS];
    tern_lane_use uses[MAPS + 1];
    const size_t n = find_adapted(p, maps, count, parts);
    if (n == 0)
        return;
    uses[0] = use_norm(p);
    uses[1] = use_inner(p, true);
    tern_lane_enter(&p->lane, uses, 2);
    make_inner(p, parts, n);
    uses[0] = use_inner(p, false);
    for (size_t i = 0; i < n; i++)
        uses[1 + i] = use_results(parts[i].of);
    tern_lane_enter(&p->lane, uses, 1 + n);
    share_outer(p, parts, n);
}
