/* SPDX-License-Identifier: Apache-2.0 */
/* Heads as a layer treats them: q and k rotated, k and v stored, each watched. A device may fuse
 * adjacent operations. */

#include <math.h>
#include <string.h>

#include "kernels/reference.h"
#include "tests/device/device_case.h"

enum { TOKENS = 3, Q_HEADS = 6, KV_HEADS = 2, SEQUENCES = 2, CODE_Q = 5, CODE_K = 6, CODE_V = 7 };

static const tern_device_place places[TOKENS] = {{1, 63}, {1, 64}, {0, 2}};

/* q, k and v are [TOKENS][heads][dim]; c and s are the angles; the caches have 3 pages each. */
typedef struct heads_case {
    size_t dim, half;
    check_buffer q, k, v, c, s, keys, values;
    uint32_t notes[SEQUENCES];
} heads_case;

static check_buffer normal(size_t n, check_rng *rng) {
    check_buffer b = check_buffer_new(n * sizeof(float), sizeof(float), CHECK_END);
    for (size_t i = 0; i < n; i++)
        ((float *)b.data)[i] = check_normal(rng);
    return b;
}

static size_t page_floats(const heads_case *h) {
    return (size_t)KV_HEADS * TERN_ATTEND_CHUNK * h->dim;
}

/* planted 0, 1, 2: an infinity in q, k or v of token `who`; 3: none. */
static heads_case heads_new(size_t dim, size_t half, int planted, size_t who, check_rng *rng) {
    heads_case h = {.dim = dim, .half = half, .notes = {UINT32_MAX, UINT32_MAX}};
    h.q = normal(TOKENS * Q_HEADS * dim, rng);
    h.k = normal(TOKENS * KV_HEADS * dim, rng);
    h.v = normal(TOKENS * KV_HEADS * dim, rng);
    h.c = normal(TOKENS * half, rng);
    h.s = normal(TOKENS * half, rng);
    h.keys = normal(3 * page_floats(&h), rng);
    h.values = normal(3 * page_floats(&h), rng);
    float *const rows[] = {h.q.data, h.k.data, h.v.data};
    const size_t heads = planted == 0 ? Q_HEADS : KV_HEADS;
    if (planted < 3)
        rows[planted][(who * heads + heads - 1) * dim + dim / 2] = INFINITY;
    return h;
}

static void heads_free(heads_case *h) {
    check_buffer *const all[] = {&h->q, &h->k, &h->v, &h->c, &h->s, &h->keys, &h->values};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_buffer_free(all[i]);
}

/* ---- the reference ------------------------------------------------------------------------- */

static const uint32_t pages[SEQUENCES][2] = {{1, 1}, {2, 0}};

static void turn(const heads_case *h, tern_op op, float *x, size_t heads) {
    for (size_t i = 0; i < TOKENS * heads; i++)
        tern_ref_rope(op == TERN_OP_ROPE_NORM ? TERN_REF_PAIR_NORM : TERN_REF_PAIR_NEOX,
                      x + i * h->dim, (const float *)h->c.data + i / heads * h->half,
                      (const float *)h->s.data + i / heads * h->half, h->half);
}

static void store(const heads_case *h, const float *x, float *cache) {
    for (size_t i = 0; i < TOKENS * KV_HEADS; i++) {
        const tern_device_place at = places[i / KV_HEADS];
        const size_t page = pages[at.sequence][at.position / TERN_ATTEND_CHUNK];
        const size_t row = i % KV_HEADS * TERN_ATTEND_CHUNK + at.position % TERN_ATTEND_CHUNK;
        memcpy(cache + page * page_floats(h) + row * h->dim, x + i * h->dim,
               h->dim * sizeof(float));
    }
}

static void look(const heads_case *h, const float *x, size_t heads, uint32_t code,
                 uint32_t *notes) {
    for (size_t i = 0; i < TOKENS * heads * h->dim; i++) {
        uint32_t *note = &notes[places[i / h->dim / heads].sequence];
        if (!isfinite(x[i]) && code < *note)
            *note = code;
    }
}

/* The expected result: q, k, v, caches and notes after all steps. */
static void treat(heads_case *h, tern_op op) {
    turn(h, op, h->q.data, Q_HEADS);
    look(h, h->q.data, Q_HEADS, CODE_Q, h->notes);
    turn(h, op, h->k.data, KV_HEADS);
    look(h, h->k.data, KV_HEADS, CODE_K, h->notes);
    store(h, h->k.data, h->keys.data);
    look(h, h->v.data, KV_HEADS, CODE_V, h->notes);
    store(h, h->v.data, h->values.data);
}

/* ---- the device ---------------------------------------------------------------------------- */

typedef struct on_device {
    float *q, *k, *v, *c, *s, *keys, *values;
    uint32_t *notes;
    tern_device_place *at;
    const uint32_t *numbers;
    const uint32_t **tables;
} on_device;

static on_device put_all(const device_run *r, const heads_case *h) {
    on_device d = {.q = device_put_buffer(r, &h->q),
                   .k = device_put_buffer(r, &h->k),
                   .v = device_put_buffer(r, &h->v),
                   .c = device_put_buffer(r, &h->c),
                   .s = device_put_buffer(r, &h->s),
                   .keys = device_put_buffer(r, &h->keys),
                   .values = device_put_buffer(r, &h->values),
                   .notes = device_put(r, h->notes, sizeof h->notes),
                   .at = device_put(r, places, sizeof places),
                   .numbers = device_put(r, pages, sizeof pages)};
    const uint32_t *const tables[SEQUENCES] = {d.numbers, d.numbers + 2};
    d.tables = device_put(r, tables, sizeof tables);
    return d;
}

static void call_rope(const device_run *r, const heads_case *h, const on_device *d, tern_op op,
                      float *x, size_t heads) {
    const tern_device_rope a = {.op = op,
                                .x = x,
                                .stride = heads * h->dim,
                                .c = d->c,
                                .s = d->s,
                                .half = h->half,
                                .heads = heads,
                                .tokens = TOKENS,
                                .dim = h->dim};
    DEVICE_CALL(r, rope, r->stream, &a);
}

static void call_watch(const device_run *r, const heads_case *h, const on_device *d, float *x,
                       size_t heads, uint32_t code) {
    const tern_device_watch a = {
        .x = {.data = x, .stride = h->dim, .n = h->dim, .rows = TOKENS * heads},
        .group = heads,
        .limit = INFINITY,
        .code = code,
        .notes = d->notes,
        .at = d->at};
    DEVICE_CALL(r, watch, r->stream, &a);
}

static void call_store(const device_run *r, const heads_case *h, const on_device *d, float *x,
                       float *cache) {
    const tern_device_store a = {.to = {.format = TERN_FORMAT_F32,
                                        .data = cache,
                                        .head_stride = TERN_ATTEND_CHUNK * h->dim * sizeof(float),
                                        .page_stride = page_floats(h) * sizeof(float),
                                        .tables = d->tables},
                                 .x = x,
                                 .stride = KV_HEADS * h->dim,
                                 .at = d->at,
                                 .tokens = TOKENS,
                                 .heads = KV_HEADS,
                                 .dim = h->dim};
    DEVICE_CALL(r, store_pages, r->stream, &a);
}

static void treat_on_device(const device_run *r, const heads_case *h, const on_device *d,
                            tern_op op) {
    call_rope(r, h, d, op, d->q, Q_HEADS);
    call_watch(r, h, d, d->q, Q_HEADS, CODE_Q);
    call_rope(r, h, d, op, d->k, KV_HEADS);
    call_watch(r, h, d, d->k, KV_HEADS, CODE_K);
    call_store(r, h, d, d->k, d->keys);
    call_watch(r, h, d, d->v, KV_HEADS, CODE_V);
    call_store(r, h, d, d->v, d->values);
}

/* The same heads rotated twice, and stored to the same place: the order must be kept. */
static void treat_again(const device_run *r, heads_case *h, const on_device *d, tern_op op) {
    turn(h, op, h->k.data, KV_HEADS);
    turn(h, op, h->k.data, KV_HEADS);
    store(h, h->k.data, h->keys.data);
    store(h, h->v.data, h->keys.data);
    call_rope(r, h, d, op, d->k, KV_HEADS);
    call_rope(r, h, d, op, d->k, KV_HEADS);
    call_store(r, h, d, d->k, d->keys);
    call_store(r, h, d, d->v, d->keys);
}

static void check_heads(const device_run *r, tern_op op, size_t dim, size_t half, int planted,
                        size_t who) {
    check_rng rng = {dim + half};
    uint32_t notes[SEQUENCES];
    heads_case h = heads_new(dim, half, planted, who, &rng);
    on_device d = put_all(r, &h);

    check_case("%s, heads, %s, dim %zu, half %zu, planted %d of token %zu", r->d->name,
               tern_op_name(op), dim, half, planted, who);
    treat_on_device(r, &h, &d, op);
    treat(&h, op);
    treat_again(r, &h, &d, op);
    device_get(r, notes, d.notes, sizeof notes);
    check_bytes("notes", h.notes, notes, sizeof notes);
    device_expect_floats(r, "q", &h.q, d.q);
    device_expect_floats(r, "k", &h.k, d.k);
    device_expect_floats(r, "keys", &h.keys, d.keys);
    device_expect_floats(r, "values", &h.values, d.values);
    void *const rest[] = {d.v, d.c, d.s, d.notes, d.at, (void *)d.numbers, (void *)d.tables};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        device_drop(r, rest[i]);
    heads_free(&h);
}

void device_check_heads(const device_run *r) {
    for (int planted = 0; planted <= 3; planted++)
        for (size_t who = 0; who < TOKENS; who++) {
            check_heads(r, TERN_OP_ROPE_NEOX, 64, 32, planted, who);
            check_heads(r, TERN_OP_ROPE_NORM, 32, 16, planted, who);
            check_heads(r, TERN_OP_ROPE_NEOX, 40, 16, planted, who); /* some not rotated */
        }
}
