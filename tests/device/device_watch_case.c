/* SPDX-License-Identifier: Apache-2.0 */
/* A device's notes of numbers that grew too large: which tokens, and the earliest code. */

#include <math.h>
#include <string.h>

#include "tests/device/device_case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { TOKENS = 3, GROUP = 2, ROWS = TOKENS * GROUP, GAP = 3, CODE = 40 };

/* The operation that reads the rows next. A device may check the rows there, and the operation may
 * overwrite them. */
typedef enum reader {
    NOBODY,
    NORM,
    NORM_IN_PLACE,
    SUM_NORM,
    GATE_IN_PLACE,
    STORE,
    OTHERS,
    READERS
} reader;

/* A number that is planted once or twice in a row, and whether the row must be noted. */
typedef struct planted {
    float value;
    int times;
    float limit; /* INFINITY if squares are checked */
    bool squares, noted;
} planted;

static const planted cases[] = {
    {65504.0f, 1, 65520.0f, false, false}, /* within the range of halves */
    {65519.996f, 1, 65520.0f, false, false},
    {65520.0f, 1, 65520.0f, false, true}, /* beyond the range of halves */
    {-65520.0f, 2, 65520.0f, false, true},
    {0x1.fffffep127f, 1, INFINITY, false, false},
    {INFINITY, 1, INFINITY, false, true},
    {-INFINITY, 1, INFINITY, false, true},
    {NAN, 1, INFINITY, false, true},
    {-NAN, 2, 1.0f, false, true},
    {0x1p55f, 1, INFINITY, true, false}, /* sums of squares */
    {0x1.ffp63f, 1, INFINITY, true, false},
    {0x1.ffcp63f, 1, INFINITY, true, true}, /* 0x1.ff801p127 */
    {0x1.fep62f, 2, INFINITY, true, false},
    {-0x1.6a1p63f, 2, INFINITY, true, true}, /* 2 * 0x1.fffp126 */
    {NAN, 1, INFINITY, true, true},
    {INFINITY, 1, INFINITY, true, true},
};

static const size_t lengths[] = {2, 16, 33, 255, 257, 2560};

static void *put_number(const device_run *r, const planted *p, size_t n, size_t stride, size_t row,
                        check_rng *rng) {
    const size_t count = (ROWS - 1) * stride + n;
    check_buffer x = check_buffer_new(count * sizeof(float), sizeof(float), CHECK_END);
    float *floats = x.data;

    for (size_t i = 0; i < count; i++) /* the gaps are NaN, which would be noted */
        floats[i] = i % stride < n ? 0.001f * check_normal(rng) : NAN;
    const size_t at = check_below(rng, (uint32_t)(n / 2));
    for (int i = 0; i < p->times; i++)
        floats[row * stride + at + (size_t)i * (n / 2)] = p->value;
    void *memory = device_put_buffer(r, &x);
    check_buffer_free(&x);
    return memory;
}

static const tern_device_place places[TOKENS] = {{2, 7}, {0, 1}, {1, 0}};

/* Watches the rows, then stores them as heads of the tokens, each sequence in a page of its own. */
static void store_rows(const device_run *r, const tern_device_watch *a) {
    const size_t n = a->x.n, page_floats = (size_t)GROUP * TERN_ATTEND_CHUNK * n;
    static const uint32_t numbers[TOKENS] = {1, 2, 0};
    const uint32_t *on_device = device_put(r, numbers, sizeof numbers);
    const uint32_t *tables[TOKENS] = {on_device, on_device + 1, on_device + 2};
    void *pages = NULL, *there = device_put(r, tables, sizeof tables);

    DEVICE_CALL(r, alloc, TOKENS * page_floats * sizeof(float), &pages);
    const tern_device_store s = {.to = {.format = TERN_FORMAT_F32,
                                        .data = pages,
                                        .head_stride = TERN_ATTEND_CHUNK * n * sizeof(float),
                                        .page_stride = page_floats * sizeof(float),
                                        .tables = there},
                                 .x = a->x.data,
                                 .stride = GROUP * n,
                                 .at = a->at,
                                 .tokens = TOKENS,
                                 .heads = GROUP,
                                 .dim = n};
    DEVICE_CALL(r, watch, r->stream, a);
    DEVICE_CALL(r, store_pages, r->stream, &s);
    device_drop(r, pages);
    device_drop(r, there);
    device_drop(r, (void *)on_device);
}

/* Watches the rows, then reads them; for OTHERS all of them but the last. */
static void watch_and_read(const device_run *r, const tern_device_watch *a, reader who) {
    const size_t count = ROWS * a->x.stride;
    check_buffer ones = check_buffer_new(count * sizeof(float), sizeof(float), CHECK_END);
    for (size_t i = 0; i < count; i++)
        ((float *)ones.data)[i] = 1.0f;
    void *y = device_put_buffer(r, &ones);
    const tern_device_rows to = {y, a->x.stride, a->x.n, ROWS, false};
    tern_device_rows others = a->x;
    check_buffer nothing = check_buffer_new(count * sizeof(float), sizeof(float), CHECK_END);
    memset(nothing.data, 0, nothing.bytes);
    void *z = device_put_buffer(r, &nothing);
    const tern_device_rows zeros = {z, a->x.stride, a->x.n, ROWS, false};
    others.rows--;

    if (who == SUM_NORM) /* the sum with zeros */
        DEVICE_CALL(r, add, r->stream, &a->x, &zeros);
    if (who == STORE)
        store_rows(r, a);
    else
        DEVICE_CALL(r, watch, r->stream, a);
    if (who == NORM || who == SUM_NORM)
        DEVICE_CALL(r, rmsnorm, r->stream, &a->x, y, 1e-5f, &to);
    else if (who == NORM_IN_PLACE)
        DEVICE_CALL(r, rmsnorm, r->stream, &a->x, y, 1e-5f, &a->x);
    else if (who == GATE_IN_PLACE)
        DEVICE_CALL(r, gate, r->stream, TERN_OP_GATE_RELU2, &a->x, &to, &a->x);
    else if (who == OTHERS)
        DEVICE_CALL(r, rmsnorm, r->stream, &others, y, 1e-5f, &others);
    device_drop(r, y);
    device_drop(r, z);
    check_buffer_free(&ones);
    check_buffer_free(&nothing);
}

/* One row holds the number. Notes that are earlier already must stay. */
static void check_one(const device_run *r, const planted *p, size_t n, size_t row, reader who,
                      check_rng *rng) {
    const size_t stride = who == GATE_IN_PLACE || who == STORE ? n : n + GAP;
    const uint32_t before[TOKENS] = {UINT32_MAX, CODE + 1, row % 2 ? UINT32_MAX : CODE - 1};
    const uint32_t sequence = places[row / GROUP].sequence;
    uint32_t want[TOKENS], got[TOKENS];
    void *x = put_number(r, p, n, stride, row, rng);
    void *at = device_put(r, places, sizeof places), *notes = device_put(r, before, sizeof before);
    const tern_device_watch a = {.x = {.data = x, .stride = stride, .n = n, .rows = ROWS},
                                 .group = GROUP,
                                 .limit = p->limit,
                                 .squares = p->squares,
                                 .code = CODE,
                                 .notes = notes,
                                 .at = at};

    memcpy(want, before, sizeof want);
    if (p->noted && before[sequence] > CODE)
        want[sequence] = CODE;
    watch_and_read(r, &a, who);
    device_get(r, got, notes, sizeof got);
    check_bytes("notes", want, got, sizeof want);
    device_drop(r, x);
    device_drop(r, at);
    device_drop(r, notes);
}

void device_check_watch(const device_run *r) {
    check_rng rng = {7};

    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(lengths); k++) {
            const size_t row = check_below(&rng, ROWS);
            const reader who = (reader)((i + k) % READERS);
            check_case("%s, watch, case %zu, n = %zu, row %zu, reader %d", r->d->name, i,
                       lengths[k], row, (int)who);
            check_one(r, &cases[i], lengths[k], row, who, &rng);
        }
}
