/* SPDX-License-Identifier: Apache-2.0 */
/* What a device notes of numbers that grew: which tokens, and the earliest code. */

#include <math.h>
#include <string.h>

#include "tests/device_case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { TOKENS = 3, GROUP = 2, ROWS = TOKENS * GROUP, GAP = 3, CODE = 40 };

/* A number that stands once or twice in a row, and whether the row is noted then. */
typedef struct planted {
    float value;
    int times;
    float limit; /* INFINITY with squares */
    bool squares, noted;
} planted;

static const planted cases[] = {
    {65504.0f, 1, 65520.0f, false, false}, /* what halves hold, */
    {65519.996f, 1, 65520.0f, false, false},
    {65520.0f, 1, 65520.0f, false, true}, /* and what they do not */
    {-65520.0f, 2, 65520.0f, false, true},
    {0x1.fffffep127f, 1, INFINITY, false, false},
    {INFINITY, 1, INFINITY, false, true},
    {-INFINITY, 1, INFINITY, false, true},
    {NAN, 1, INFINITY, false, true},
    {-NAN, 2, 1.0f, false, true},
    {0x1p55f, 1, INFINITY, true, false}, /* squares that are added up */
    {0x1.ffp63f, 1, INFINITY, true, false},
    {0x1.ffcp63f, 1, INFINITY, true, true}, /* 0x1.ff801p127 */
    {0x1.fep62f, 2, INFINITY, true, false},
    {-0x1.6a1p63f, 2, INFINITY, true, true}, /* 2 * 0x1.fffp126 */
    {NAN, 1, INFINITY, true, true},
    {INFINITY, 1, INFINITY, true, true},
};

static const size_t lengths[] = {2, 16, 33, 255, 257, 2560};

static void *put_number(const device_run *r, const planted *p, size_t n, size_t row,
                        check_rng *rng) {
    const size_t count = (ROWS - 1) * (n + GAP) + n;
    check_buffer x = check_buffer_new(count * sizeof(float), sizeof(float), CHECK_END);
    float *floats = x.data;

    for (size_t i = 0; i < count; i++) /* between the rows all is noted */
        floats[i] = i % (n + GAP) < n ? 0.001f * check_normal(rng) : NAN;
    const size_t at = check_below(rng, (uint32_t)(n / 2));
    for (int i = 0; i < p->times; i++)
        floats[row * (n + GAP) + at + (size_t)i * (n / 2)] = p->value;
    void *memory = device_put_buffer(r, &x);
    check_buffer_free(&x);
    return memory;
}

/* One row has the number; then notes that are earlier, which stay. */
static void check_one(const device_run *r, const planted *p, size_t n, size_t row, check_rng *rng) {
    const tern_device_place places[TOKENS] = {{2, 7}, {0, 1}, {1, 0}};
    const uint32_t before[TOKENS] = {UINT32_MAX, CODE + 1, row % 2 ? UINT32_MAX : CODE - 1};
    const uint32_t sequence = places[row / GROUP].sequence;
    uint32_t want[TOKENS], got[TOKENS];
    void *x = put_number(r, p, n, row, rng);
    void *at = device_put(r, places, sizeof places), *notes = device_put(r, before, sizeof before);
    const tern_device_watch a = {.x = {.data = x, .stride = n + GAP, .n = n, .rows = ROWS},
                                 .group = GROUP,
                                 .limit = p->limit,
                                 .squares = p->squares,
                                 .code = CODE,
                                 .notes = notes,
                                 .at = at};

    memcpy(want, before, sizeof want);
    if (p->noted && before[sequence] > CODE)
        want[sequence] = CODE;
    DEVICE_CALL(r, watch, r->stream, &a);
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
            check_case("%s, watch, case %zu, n = %zu, row %zu", r->d->name, i, lengths[k], row);
            check_one(r, &cases[i], lengths[k], row, &rng);
        }
}
