/* SPDX-License-Identifier: Apache-2.0 */
/* Part of device_case.h: attention, and the operations that read and write stored formats. */

#include <string.h>

#include "kernels/reference.h"
#include "tests/device/device_case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- attention ----------------------------------------------------------------------------- */

typedef struct shape {
    tern_format cache;
    size_t before, tokens, dim, kv_heads, group;
    float steepness; /* scale of the keys: larger ones make most weights underflow */
} shape;

static size_t element_bytes(const shape *s) {
    return s->cache == TERN_FORMAT_F16 ? 2 : 4;
}

/* kv_heads x positions x dim elements, plus the gaps that the heads' stride leaves. */
static check_buffer new_cache(const shape *s, size_t stride, float factor, check_rng *rng) {
    check_buffer b = check_buffer_new(
        ((s->kv_heads - 1) * stride + (s->before + s->tokens) * s->dim) * element_bytes(s), 4,
        CHECK_END);

    for (size_t i = 0; i < b.bytes / element_bytes(s); i++) {
        const float value = factor * check_normal(rng);
        tern_ref_store(s->cache, &value, 1, (uint8_t *)b.data + i * element_bytes(s));
    }
    return b;
}

/* The reference, for one token and one key/value head at a time. */
static void reference_attend(const shape *s, const tern_device_attend *a, const check_buffer *k,
                             const check_buffer *v, const check_buffer *q, float *out) {
    for (size_t t = 0; t < s->tokens; t++) {
        for (size_t g = 0; g < s->kv_heads; g++) {
            const size_t at = g * a->kv_stride * element_bytes(s);
            const size_t head = g * s->group * s->dim;
            const tern_attend_args args = {.heads = {.positions = s->before + t + 1,
                                                     .tokens = 1,
                                                     .group = s->group,
                                                     .dim = s->dim},
                                           .q = (const float *)q->data + t * a->q_stride + head,
                                           .k = (const uint8_t *)k->data + at,
                                           .v = (const uint8_t *)v->data + at,
                                           .page_stride =
                                               TERN_ATTEND_CHUNK * s->dim * element_bytes(s),
                                           .scale = a->scale};
            tern_ref_attend(s->cache, &args, out + t * a->out_stride + head, s->group * s->dim);
        }
    }
}

static void check_attend(const device_run *r, const shape *s) {
    const size_t width = s->kv_heads * s->group * s->dim;
    const size_t stride = (s->before + s->tokens) * s->dim + 16;
    check_rng rng = {s->before * 4096 + s->dim * 8 + s->group};
    tern_error err = {0};

    check_case("%s, attend, %zu positions, %zu tokens, dim %zu, %zu heads of %zu", r->d->name,
               s->before, s->tokens, s->dim, s->kv_heads, s->group);
    check_buffer q = check_buffer_new(s->tokens * width * sizeof(float), 4, CHECK_END);
    for (size_t i = 0; i < s->tokens * width; i++)
        ((float *)q.data)[i] = s->steepness < 0 ? check_any_finite(&rng) : check_normal(&rng);
    check_buffer k = new_cache(s, stride, s->steepness, &rng);
    check_buffer v = new_cache(s, stride, 1.0f, &rng);
    check_buffer want = check_buffer_new(q.bytes, 4, CHECK_END);
    check_buffer got = check_buffer_new(q.bytes, 4, CHECK_END);
    const tern_device_attend a = {.format = s->cache,
                                  .q = device_put(r, q.data, q.bytes),
                                  .q_stride = width,
                                  .k = device_put(r, k.data, k.bytes),
                                  .v = device_put(r, v.data, v.bytes),
                                  .kv_stride = stride,
                                  .before = s->before,
                                  .tokens = s->tokens,
                                  .heads = s->kv_heads * s->group,
                                  .kv_heads = s->kv_heads,
                                  .dim = s->dim,
                                  .scale = 0.125f,
                                  .out = device_put(r, want.data, want.bytes),
                                  .out_stride = width};
    reference_attend(s, &a, &k, &v, &q, want.data);
    device_expect_ok(r->d->ops->attend(r->d, r->stream, &a, &err), &err);
    device_get(r, got.data, a.out, got.bytes);
    check_floats("out", want.data, got.data, s->tokens * width);
    if (r->d->kind == TERN_DEVICE_CPU) { /* which needs no stream */
        memset(got.data, 0, got.bytes);
        memset(a.out, 0, got.bytes);
        device_expect_ok(r->d->ops->attend(r->d, NULL, &a, &err), &err);
        device_get(r, got.data, a.out, got.bytes);
        check_floats("out without a stream", want.data, got.data, s->tokens * width);
    }

    void *const memory[] = {(void *)a.q, (void *)a.k, (void *)a.v, a.out};
    check_buffer *const buffers[] = {&q, &k, &v, &want, &got};
    for (size_t i = 0; i < COUNT(memory); i++)
        device_drop(r, memory[i]);
    for (size_t i = 0; i < COUNT(buffers); i++)
        check_buffer_free(buffers[i]);
}

void device_check_attend(const device_run *r) {
    static const size_t befores[] = {0, 1, 15, 16, 31, 62, 63, 64, 100, 127, 128, 200};
    static const size_t dims[] = {1, 4, 15, 16, 17, 20, 64, 128, 130};
    static const float steepness[] = {1.0f, 30.0f, 0.0f, -1.0f};

    for (size_t i = 0; i < COUNT(befores); i++) {
        for (size_t j = 0; j < COUNT(dims); j++) {
            const size_t n = i * COUNT(dims) + j;
            const shape s = {n % 2 ? TERN_FORMAT_F16 : TERN_FORMAT_F32,
                             befores[i],
                             1 + n % 3,
                             dims[j],
                             1 + n % 2,
                             1 + n % 4,
                             steepness[n % COUNT(steepness)]};
            check_attend(r, &s);
        }
    }
}

/* Numbers of chunks around, and beyond, what is computed at a time. */
void device_check_attend_long(const device_run *r) {
    static const size_t befores[] = {700, 958, 1023, 1024, 1500, 2047, 2240};
    static const size_t dims[] = {64, 128, 20};

    for (size_t i = 0; i < COUNT(befores); i++) {
        const shape s = {i % 3 == 2 ? TERN_FORMAT_F32 : TERN_FORMAT_F16,
                         befores[i],
                         1 + i % 2,
                         dims[i % COUNT(dims)],
                         1,
                         1 + i % 2,
                         i % 2 ? 30.0f : 1.0f};
        check_attend(r, &s);
    }
}

/* Prompts of several tokens, with groups of heads that share keys and values; dims of all sizes. */
void device_check_attend_prompt(const device_run *r) {
    static const struct {
        size_t before, tokens, dim, kv_heads, group;
    } prompts[] = {{0, 90, 16, 1, 3},     {60, 17, 64, 4, 4},   {250, 22, 128, 3, 4},
                   {300, 18, 96, 3, 5},   {190, 22, 80, 2, 6},  {0, 260, 32, 1, 1},
                   {255, 17, 256, 4, 4},  {500, 130, 64, 1, 2}, {310, 17, 20, 4, 4},
                   {200, 16, 512, 1, 17}, {130, 17, 528, 4, 4}, {700, 1, 400, 1, 1},
                   {520, 10, 128, 2, 13}, {200, 1, 2048, 1, 2}};

    for (size_t i = 0; i < COUNT(prompts); i++) {
        shape s = {TERN_FORMAT_F16,
                   prompts[i].before,
                   prompts[i].tokens,
                   prompts[i].dim,
                   prompts[i].kv_heads,
                   prompts[i].group,
                   i % 3 == 2   ? 30.0f
                   : i % 5 == 4 ? -1.0f
                                : 1.0f};
        check_attend(r, &s);
        s.cache = TERN_FORMAT_F32;
        if (i % 3 == 0)
            check_attend(r, &s);
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Sequences of different lengths with interleaved pages; the tokens are the last ones of each. */
enum { SEQUENCES = 3, TABLE = 20, PAGE_COUNT = SEQUENCES * TABLE, TOKENS = 9, MOST_HEADS = 30 };

typedef struct paged {
    tern_format cache;
    size_t dim, kv_heads, group;
    size_t row_bytes, head_bytes, page_bytes;
    uint32_t tables[SEQUENCES][TABLE];
    tern_device_place at[TOKENS];
    check_buffer k, v; /* [page][head][position][dim] */
} paged;

static void fill_cache(const paged *p, check_buffer *b, check_rng *rng) {
    *b = check_buffer_new(PAGE_COUNT * p->page_bytes, 4, CHECK_END);
    for (size_t i = 0; i < b->bytes / p->row_bytes; i++) {
        float row[160];
        for (size_t j = 0; j < p->dim; j++)
            row[j] = check_normal(rng);
        tern_ref_store(p->cache, row, p->dim, (uint8_t *)b->data + i * p->row_bytes);
    }
}

static paged paged_new(tern_format cache, size_t dim, size_t kv_heads, size_t group,
                       check_rng *rng) {
    static const uint32_t firsts[SEQUENCES] = {0, 61, 1200};
    const tern_format_info *info = tern_format_describe(cache);
    paged p = {.cache = cache, .dim = dim, .kv_heads = kv_heads, .group = group};
    p.row_bytes = (dim + info->block_elements - 1) / info->block_elements * info->block_bytes;
    p.head_bytes = TERN_ATTEND_CHUNK * p.row_bytes;
    p.page_bytes = kv_heads * p.head_bytes;
    for (uint32_t i = 0; i < PAGE_COUNT; i++)
        p.tables[i % SEQUENCES][i / SEQUENCES] = (i * 7 + 1) % PAGE_COUNT;
    for (uint32_t t = 0; t < TOKENS; t++) /* the second sequence's tokens cross a page boundary */
        p.at[t] =
            (tern_device_place){t / 3 % SEQUENCES, firsts[t / 3 % SEQUENCES] + t % 3 * (t != 8)};
    p.at[8].position = 1100; /* not adjacent to the others */
    fill_cache(&p, &p.k, rng);
    fill_cache(&p, &p.v, rng);
    return p;
}

/* The page tables on the device: `rows` are pointers into `all`, one for each sequence. */
typedef struct tables {
    void *rows[SEQUENCES];
    void *all;
    void *at;
} tables;

static tables put_tables(const device_run *r, const paged *p) {
    tables t;
    for (size_t i = 0; i < SEQUENCES; i++)
        t.rows[i] = device_put(r, p->tables[i], sizeof p->tables[i]);
    t.all = device_put(r, t.rows, sizeof t.rows);
    t.at = device_put(r, p->at, sizeof p->at);
    return t;
}

static void drop_tables(const device_run *r, tables *t) {
    for (size_t i = 0; i < SEQUENCES; i++)
        device_drop(r, t->rows[i]);
    device_drop(r, t->all);
    device_drop(r, t->at);
}

static tern_device_pages pages_at(const paged *p, void *memory, const tables *t) {
    return (tern_device_pages){.format = p->cache,
                               .data = memory,
                               .head_stride = p->head_bytes,
                               .page_stride = p->page_bytes,
                               .tables = t->all};
}

/* The reference's result, token by token. */
static void reference_paged(const paged *p, const float *q, size_t stride, size_t window,
                            const float *sinks, float *out) {
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t g = 0; g < p->kv_heads; g++) {
            const size_t head = t * stride + g * p->group * p->dim;
            const tern_attend_args args = {
                .heads = {.positions = p->at[t].position + 1,
                          .tokens = 1,
                          .group = p->group,
                          .dim = p->dim,
                          .sinks = sinks != NULL ? sinks + g * p->group : NULL},
                .q = q + head,
                .k = (const uint8_t *)p->k.data + g * p->head_bytes,
                .v = (const uint8_t *)p->v.data + g * p->head_bytes,
                .pages = p->tables[p->at[t].sequence],
                .page_stride = p->page_bytes,
                .scale = 0.25f,
                .window = window};
            tern_ref_attend(p->cache, &args, out + head, p->group * p->dim);
        }
}

static void check_attend_pages(const device_run *r, const paged *p, size_t window, bool sunk,
                               check_rng *rng) {
    float sinks[MOST_HEADS];
    const size_t width = p->kv_heads * p->group * p->dim, stride = width + 5;
    check_buffer q = check_buffer_new(TOKENS * stride * sizeof(float), 4, CHECK_END);
    for (size_t i = 0; i < TOKENS * stride; i++)
        ((float *)q.data)[i] = check_normal(rng);
    for (size_t h = 0; h < p->kv_heads * p->group; h++)
        sinks[h] = check_normal(rng) * (h % 3 == 2 ? 200.0f : 2.0f);
    check_buffer want = check_buffer_new(q.bytes, 4, CHECK_END);
    check_buffer got = check_buffer_new(q.bytes, 4, CHECK_END);
    tables t = put_tables(r, p);
    void *k = device_put(r, p->k.data, p->k.bytes), *v = device_put(r, p->v.data, p->v.bytes);
    const tern_device_attend_pages a = {.k = pages_at(p, k, &t),
                                        .v = pages_at(p, v, &t),
                                        .at = t.at,
                                        .q = device_put(r, q.data, q.bytes),
                                        .q_stride = stride,
                                        .tokens = TOKENS,
                                        .heads = p->kv_heads * p->group,
                                        .kv_heads = p->kv_heads,
                                        .dim = p->dim,
                                        .scale = 0.25f,
                                        .window = window,
                                        .out = device_put(r, want.data, want.bytes),
                                        .out_stride = stride,
                                        .sinks = sunk ? device_put(r, sinks, sizeof sinks) : NULL};
    reference_paged(p, q.data, stride, window, sunk ? sinks : NULL, want.data);
    DEVICE_CALL(r, attend_pages, r->stream, &a);
    device_get(r, got.data, a.out, got.bytes);
    check_floats("out", want.data, got.data, TOKENS * stride);

    void *const memory[] = {(void *)a.q, k, v, a.out, (void *)a.sinks};
    for (size_t i = 0; i < COUNT(memory); i++)
        device_drop(r, memory[i]);
    drop_tables(r, &t);
    check_buffer_free(&q);
    check_buffer_free(&want);
    check_buffer_free(&got);
}

/* The tokens' new keys are in their places, and nothing else has changed. */
static void check_store_pages(const device_run *r, const paged *p, check_rng *rng) {
    const size_t stride = p->kv_heads * p->dim + 3;
    check_buffer x = check_buffer_new(TOKENS * stride * sizeof(float), 4, CHECK_END);
    check_buffer want = check_buffer_new(p->k.bytes, 4, CHECK_END);
    check_buffer got = check_buffer_new(p->k.bytes, 4, CHECK_END);
    tables t = put_tables(r, p);
    for (size_t i = 0; i < TOKENS * stride; i++)
        ((float *)x.data)[i] = check_normal(rng);
    memcpy(want.data, p->k.data, want.bytes);
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t h = 0; h < p->kv_heads; h++) {
            const tern_device_place at = p->at[i];
            const uint32_t page = p->tables[at.sequence][at.position / TERN_ATTEND_CHUNK];
            tern_ref_store(p->cache, (float *)x.data + i * stride + h * p->dim, p->dim,
                           (uint8_t *)want.data + page * p->page_bytes + h * p->head_bytes +
                               at.position % TERN_ATTEND_CHUNK * p->row_bytes);
        }
    void *k = device_put(r, p->k.data, p->k.bytes), *rows = device_put(r, x.data, x.bytes);
    const tern_device_store a = {.to = pages_at(p, k, &t),
                                 .x = rows,
                                 .stride = stride,
                                 .at = t.at,
                                 .tokens = TOKENS,
                                 .heads = p->kv_heads,
                                 .dim = p->dim};
    DEVICE_CALL(r, store_pages, r->stream, &a);
    device_get(r, got.data, k, got.bytes);
    check_bytes("cache", want.data, got.data, want.bytes);
    device_drop(r, k);
    device_drop(r, rows);
    drop_tables(r, &t);
    check_buffer_free(&x);
    check_buffer_free(&want);
    check_buffer_free(&got);
}

void device_check_pages(const device_run *r) {
    static const tern_format formats[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_Q8_0};
    static const struct {
        size_t dim, kv_heads, group;
    } shapes[] = {{1, 1, 1}, {20, 2, 2}, {64, 1, 3}, {130, 2, 4}, {48, 5, 6}};
    static const size_t windows[] = {0, 1, 3, 64, 100, 300, 1000, 2000};
    check_rng rng = {17};
    size_t checked = 0;

    for (size_t f = 0; f < COUNT(formats); f++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            if (!device_has_row(r, TERN_OP_ATTEND, formats[f], TERN_LAYOUT_ROWS))
                continue;
            paged p =
                paged_new(formats[f], shapes[i].dim, shapes[i].kv_heads, shapes[i].group, &rng);
            check_case("%s, pages of %s, dim %zu", r->d->name,
                       tern_format_describe(formats[f])->name, shapes[i].dim);
            for (size_t w = 0; w < COUNT(windows); w++)
                check_attend_pages(r, &p, windows[w], (w + i) % 2 == 0, &rng);
            check_store_pages(r, &p, &rng);
            checked++;
            check_buffer_free(&p.k);
            check_buffer_free(&p.v);
        }
    assert_true(checked >= 10); /* every device has f32 and f16 */
}

/* ---- embed, store -------------------------------------------------------------------------- */

enum { VOCABULARY = 7 };

static void check_embed(const device_run *r, tern_format format, size_t cols, float factor) {
    static const int32_t ids[] = {6, 0, 3, 3, 5};
    const size_t tokens = COUNT(ids);
    const tern_format_info *info = tern_format_describe(format);
    const size_t row_bytes = cols / info->block_elements * info->block_bytes;
    check_rng rng = {cols};
    tern_error err = {0};

    if (cols % info->block_elements != 0 ||
        !device_has_row(r, TERN_OP_EMBED, format, TERN_LAYOUT_ROWS))
        return;
    check_case("%s, embed of %s, %zu columns", r->d->name, info->name, cols);
    check_buffer file = check_buffer_new(VOCABULARY * row_bytes, 4, CHECK_END);
    for (size_t i = 0; i < file.bytes; i++)
        ((uint8_t *)file.data)[i] = (uint8_t)check_random(&rng);
    check_buffer want = check_buffer_new((tokens * (cols + 3)) * sizeof(float), 4, CHECK_END);
    check_buffer got = check_buffer_new(want.bytes, 4, CHECK_END);
    const tern_matrix host = {.format = format,
                              .layout = TERN_LAYOUT_ROWS,
                              .rows = VOCABULARY,
                              .cols = cols,
                              .data = file.data};
    tern_matrix w;
    const tern_device_rows y = {.data = device_put(r, want.data, want.bytes),
                                .stride = cols + 3,
                                .n = cols,
                                .rows = tokens};
    void *where = device_put(r, ids, sizeof ids);

    for (size_t t = 0; t < tokens; t++) {
        float *row = (float *)want.data + t * (cols + 3);
        tern_ref_embed(format, (uint8_t *)file.data + (size_t)ids[t] * row_bytes, cols, row);
        for (size_t i = 0; i < cols; i++)
            row[i] *= factor;
    }
    device_expect_ok(r->d->ops->upload_matrix(r->d, r->stream, &host, &w, &err), &err);
    device_expect_ok(r->d->ops->embed(r->d, r->stream, &w, where, factor, &y, &err), &err);
    device_get(r, got.data, y.data, got.bytes);
    check_floats("y", want.data, got.data, want.bytes / sizeof(float));
    device_drop(r, where);
    device_drop(r, y.data);
    device_expect_ok(r->d->ops->free_matrix(r->d, &w, &err), &err);
    check_buffer_free(&file);
    check_buffer_free(&want);
    check_buffer_free(&got);
}

void device_check_embed(const device_run *r) {
    static const size_t widths[] = {1, 31, 32, 64, 96, 100, 256, 2560};

    for (int format = 0; format < TERN_FORMAT_COUNT; format++)
        for (size_t i = 0; i < COUNT(widths); i++)
            check_embed(r, (tern_format)format, widths[i], i % 2 ? 25.25f : 1.0f);
}

/* Every bit pattern of a float: all exponents, infinities and NaN with every payload. */
void device_check_store(const device_run *r) {
    enum { ROWS = 4, N = 1000, STRIDE = N + 6 };
    static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32};
    check_rng rng = {11};
    tern_error err = {0};
    check_buffer x = check_buffer_new(ROWS * N * sizeof(float), 4, CHECK_END);

    for (size_t i = 0; i < ROWS * N; i++) {
        uint32_t bits = (uint32_t)(check_random(&rng) >> 32);
        if (i % 4 != 0) /* mostly values in f16's range, denormals too */
            bits = (bits & 0x8fffffffu) | 0x30000000u;
        memcpy((float *)x.data + i, &bits, sizeof bits);
    }
    for (size_t f = 0; f < COUNT(formats); f++) {
        const size_t size = tern_format_describe(formats[f])->block_bytes;
        check_case("%s, store %s", r->d->name, tern_format_describe(formats[f])->name);
        check_buffer want = check_buffer_new(((ROWS - 1) * STRIDE + N) * size, 4, CHECK_END);
        check_buffer got = check_buffer_new(want.bytes, 4, CHECK_END);
        const tern_device_rows rows = {
            .data = device_put(r, x.data, x.bytes), .stride = N, .n = N, .rows = ROWS};
        void *out = device_put(r, want.data, want.bytes);

        for (size_t t = 0; t < ROWS; t++)
            tern_ref_store(formats[f], (float *)x.data + t * N, N,
                           (uint8_t *)want.data + t * STRIDE * size);
        device_expect_ok(r->d->ops->store(r->d, r->stream, formats[f], &rows, out, STRIDE, &err),
                         &err);
        device_get(r, got.data, out, got.bytes);
        check_bytes("out", want.data, got.data, want.bytes);
        device_drop(r, rows.data);
        device_drop(r, out);
        check_buffer_free(&want);
        check_buffer_free(&got);
    }
    check_buffer_free(&x);
}
