/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that kernels, threads and the work-touch prefetch. The sources that prefetch are
 * compiled into this program a second time (noted.h), and their requests are recorded here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"
#include "kernels/iebs.h"
#include "tests/kernels/matmul_case.h"
#include "tests/kernels/table.h"
#include "tests/prefetch/noted.h"
#include "threads/fetch.h"
#include "tools/touch/touch.h"

enum { MOST = 1 << 16, LINE = 64, ROWS = 64 /* with wide blocks */, COLS = 4096, DIM = 64 };

static struct {
    const char *address[MOST];
    int keep[MOST];
    size_t n;
} noted;

void note_prefetch(const void *address, int keep) {
    assert_true(noted.n < MOST);
    noted.address[noted.n] = address;
    noted.keep[noted.n++] = keep;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Names of the generated files that are compiled here. */
static const char *const products[] = {
#include "noted_kernels.inc"
};
static const char *const attentions[] = {
#include "noted_attention.inc"
};

static const tern_kernel_row *kernel_of(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (strncmp(kernels[i].name, slash + 1, strlen(kernels[i].name)) == 0 &&
            slash[1 + strlen(kernels[i].name)] == '.')
            return &kernels[i];
    check_fail("no row for %s", path);
    return NULL;
}

/* The number that the generated file defines by that name; 0 if there is none. */
static size_t constant_of(const char *path, const char *name) {
    char line[256];
    size_t value = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (value == 0 && fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, name);
        if (at != NULL && sscanf(at + strlen(name), " = %zu", &value) != 1)
            value = 0;
    }
    (void)fclose(file);
    return value;
}

static tern_format format_for(const tern_kernel_row *kernel) {
    const tern_format sparse = tern_layout_sparse_format(kernel->layout);
    if (sparse != TERN_FORMAT_NONE)
        return sparse;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++)
        if (kernel->layout == TERN_LAYOUT_ROWS ? kernel->format == (tern_format)f
                                               : tern_layout_holds(kernel->layout, (tern_format)f))
            return (tern_format)f;
    return TERN_FORMAT_NONE;
}

/* The bytes that a product streams, how far ahead of them it claims to prefetch, and how far beyond
 * their end it may go (where several rows are read together, for the rows that would follow). */
typedef struct stream {
    const char *begin;
    size_t bytes, ahead, behind;
} stream;

static stream stream_of(const char *path, const tern_kernel_row *kernel, const matmul_case *c) {
    const size_t bytes = tern_matrix_bytes(&c->matrix), said = constant_of(path, "PREFETCH_BYTES");
    if (tern_layout_sparse_format(kernel->layout) == TERN_FORMAT_NONE)
        return (stream){
            .begin = c->matrix.data,
            .bytes = bytes,
            .ahead = said,
            .behind = kernel->layout == TERN_LAYOUT_ROWS ? kernel->rows_tile * bytes / ROWS : 0};
    const tern_iebs m = tern_iebs_view(c->matrix.data);
    const size_t blocks = constant_of(path, "BLOCKS_AHEAD");
    return (stream){.begin = (const char *)m.values,
                    .bytes = m.blocks * m.block_bytes,
                    .ahead = blocks > 0 ? blocks * m.block_bytes : said,
                    .behind = 0};
}

/* Prefetches begin at `ahead`, go up to `behind` beyond the end, and cover most lines between.
 * Lines that are left out are neighbours, which the processor fetches by itself. */
static void check_stream(const stream *s) {
    const size_t lines = (s->bytes + LINE - 1) / LINE;
    char *seen = calloc(lines + 1, 1);
    const char *first = noted.address[0], *last = first;
    size_t covered = 0;
    assert_non_null(seen);
    for (size_t i = 0; i < noted.n; i++) {
        const char *a = noted.address[i];
        first = a < first ? a : first;
        last = a > last ? a : last;
        if (a < s->begin || a >= s->begin + s->bytes)
            continue;
        covered += !seen[(a - s->begin) / LINE];
        seen[(a - s->begin) / LINE] = 1;
    }
    free(seen);
    if (first < s->begin + s->ahead || first > s->begin + s->ahead + LINE)
        check_fail("begins %td bytes ahead, not %zu", first - s->begin, s->ahead);
    if (last < s->begin + s->bytes + s->ahead - 3 * (ptrdiff_t)LINE ||
        last >= s->begin + s->bytes + s->ahead + s->behind)
        check_fail("ends %td bytes behind, not %zu", last - s->begin - (ptrdiff_t)s->bytes,
                   s->ahead);
    if (covered < (s->bytes - s->ahead) / LINE * 3 / 4)
        check_fail("%zu of %zu lines were asked for", covered, (s->bytes - s->ahead) / LINE);
}

static void check_product(const char *path, const tern_kernel_row *kernel) {
    check_rng rng = {3};
    const case_shape shape = {ROWS, COLS, 1};
    matmul_case c =
        case_new_layout(format_for(kernel), kernel->layout, &shape, CASE_RANDOM, CHECK_END, &rng);
    float y[ROWS];
    noted.n = 0;
    kernel->fn.matmul(&c.matrix, &c.activations, &(tern_tile){0, 1, 0, ROWS}, y, ROWS);
    const stream s = stream_of(path, kernel, &c);
    if (s.ahead == 0 || s.ahead >= s.bytes)
        check_fail("says %zu bytes ahead in a stream of %zu", s.ahead, s.bytes);
    if (noted.n == 0)
        check_fail("asks for nothing");
    check_stream(&s);
    case_free(&c);
}

/* Every product that is compiled here prefetches its weights as far ahead as its line of the table
 * says, up to the end. */
static void test_products(void **state) {
    size_t tried = 0;
    (void)state;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const tern_kernel_row *kernel = kernel_of(products[i]);
        check_case("%s", kernel->name);
        if (!table_runnable(kernel))
            continue;
        check_product(products[i], kernel);
        tried++;
    }
    assert_true(tried >= 40);
}

/* ---- attention ------------------------------------------------------------------------------- */

static size_t lines_asked(const char *begin, size_t bytes) {
    size_t covered = 0;
    for (size_t at = 0; at < bytes; at += LINE) {
        bool asked = false;
        for (size_t i = 0; i < noted.n && !asked; i++)
            asked = noted.address[i] >= begin + at && noted.address[i] < begin + at + LINE;
        covered += asked;
    }
    return covered;
}

static void check_attention(const tern_kernel_row *kernel, size_t row_bytes) {
    enum { POSITIONS = 8 * TERN_ATTEND_CHUNK };
    check_buffer k = check_buffer_new(POSITIONS * row_bytes, LINE, CHECK_END);
    check_buffer v = check_buffer_new(POSITIONS * row_bytes, LINE, CHECK_END);
    check_buffer scratch = check_buffer_new(tern_attend_scratch_bytes(1, DIM), LINE, CHECK_END);
    check_buffer states = check_buffer_new(8 * tern_attend_state_bytes(1, DIM), LINE, CHECK_END);
    float q[DIM] = {1.0f}, out[DIM];
    memset(k.data, 0, k.bytes);
    memset(v.data, 0, v.bytes);
    const tern_attend_args args = {
        .heads = {.positions = POSITIONS, .tokens = 1, .group = 1, .dim = DIM},
        .q = q,
        .q_stride = DIM,
        .k = k.data,
        .v = v.data,
        .page_stride = TERN_ATTEND_CHUNK * row_bytes,
        .scale = 1.0f,
        .scratch = scratch.data};
    noted.n = 0;
    tern_attend_all(kernel, &args, states.data, out, DIM);
    assert_int_equal(lines_asked(v.data, v.bytes), v.bytes / LINE);
    assert_int_equal(lines_asked(k.data, k.bytes),
                     (k.bytes - TERN_ATTEND_CHUNK * row_bytes) / LINE);
    check_buffer_free(&k);
    check_buffer_free(&v);
    check_buffer_free(&scratch);
    check_buffer_free(&states);
}

/* While a chunk's scores are computed its values are fetched, and then the keys of the next chunk.
 * So all memory is prefetched except the keys that are read at once. */
static void test_attention(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++) {
        const tern_kernel_row *kernel = kernel_of(attentions[i]);
        check_case("%s", kernel->name);
        if (table_runnable(kernel))
            check_attention(kernel, kernel->format == TERN_FORMAT_F32   ? DIM * 4
                                    : kernel->format == TERN_FORMAT_F16 ? DIM * 2
                                                                        : DIM / 32 * 34);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The lines of a part come once each. Those that are not to be kept are spread evenly among
 * them. */
static void test_lines(void **state) {
    static _Alignas(LINE) char memory[40 * LINE];
    uint64_t due = 0;
    (void)state;
    noted.n = 0;
    const tern_fetching kept = {.ahead = 10 * LINE}, none = {.ahead = 0};
    assert_int_equal(tern_fetch_ask(&kept, memory + 5, sizeof memory - 5, &due), 11);
    assert_int_equal(noted.n, 11);
    for (size_t i = 0; i < noted.n; i++) {
        assert_ptr_equal(noted.address[i], memory + i * LINE);
        assert_int_equal(noted.keep[i], 3);
    }
    noted.n = 0;
    const tern_fetching quarter = {.ahead = sizeof memory, .passing = TERN_FETCH_WHOLE / 4};
    assert_int_equal(tern_fetch_ask(&quarter, memory, sizeof memory, &due), 40);
    for (size_t i = 0; i < 40; i++) {
        assert_ptr_equal(noted.address[i], memory + i * LINE);
        assert_int_equal(noted.keep[i], i % 4 == 3 ? 0 : 3);
    }
    noted.n = 0;
    assert_int_equal(tern_fetch_ask(&none, memory, sizeof memory, &due), 0);
    assert_int_equal(noted.n, 0);
}

/* ---- the work-touch -------------------------------------------------------------------------- */

static void check_touch(touch_plan plan, size_t ahead, size_t every) {
    touch t;
    assert_true(touch_open(&t, &plan));
    noted.n = 0;
    touch_token(&t);
    assert_true(touch_is_complete(&t));
    assert_int_equal(noted.n, ahead > 0 ? plan.bytes / plan.stride : 0);
    for (size_t i = 0; i < noted.n; i++) {
        assert_ptr_equal(noted.address[i], (char *)t.words + i * plan.stride + ahead);
        assert_int_equal(noted.keep[i], every > 0 && (i + 1) % every == 0 ? 0 : 3);
    }
    touch_free(&t);
}

/* The work-touch prefetches at the requested distance from each read, with the requested hint. */
static void test_touch(void **state) {
    const touch_plan plan = {.bytes = 64 * LINE, .stride = LINE, .keep_not = 100.0};
    touch_plan p = plan;
    (void)state;
    p.hint = TOUCH_HINT_OFF;
    check_touch(p, 0, 0);
    p.ahead_is_given = true;
    p.ahead = 512;
    check_touch(p, 512, 0);
    p.hint = TOUCH_HINT_ON;
    check_touch(p, 512, 1);
    p.keep_not = 25.0;
    check_touch(p, 512, 4);
    p = plan;
    p.hint = TOUCH_HINT_ON;
    check_touch(p, TOUCH_AHEAD, 1);
    p.hint = TOUCH_HINT_AUTO; /* the ring has twice the bytes of a token */
    p.cache = 2 * plan.bytes;
    check_touch(p, 0, 0);
    p.cache = 2 * plan.bytes - 1;
    check_touch(p, TOUCH_AHEAD, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_touch),
    };
    return cmocka_run_group_tests_name("what is asked for ahead", tests, NULL, NULL);
}
