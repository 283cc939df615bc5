/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching memory ahead: how a wish is settled, which lines are fetched, and, in passes, which
 * parts of which matrices are fetched and when. No bit changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"
#include "device/lane.h"
#include "runtime/engine/forward/internal.h"
#include "runtime/engine/session.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "threads/fetch.h"

enum { THREADS = 3, PROMPT = 11, PASSES = 2, AHEAD = 1 << 20 };

/* ---- a wish ---------------------------------------------------------------------------------- */

static tern_fetch_hint settled(tern_fetch_hint hint, uint64_t weights, uint64_t caches) {
    const tern_fetch wish = {.ahead = 64, .hint = hint};
    return tern_fetch_settle(&wish, weights, caches).hint;
}

static void test_settle(void **state) {
    (void)state;
    assert_int_equal(settled(TERN_FETCH_AUTO, 1001, 1000), TERN_FETCH_PASSING);
    assert_int_equal(settled(TERN_FETCH_AUTO, 1000, 1000), TERN_FETCH_KEPT);
    assert_int_equal(settled(TERN_FETCH_AUTO, 1000, 0), TERN_FETCH_KEPT); /* unknown */
    assert_int_equal(settled(TERN_FETCH_KEPT, 1001, 1000), TERN_FETCH_KEPT);
    assert_int_equal(settled(TERN_FETCH_PASSING, 1, 1000), TERN_FETCH_PASSING);
    const tern_fetch part = {.ahead = 100, .hint = TERN_FETCH_PASSING, .kept_percent = 75.0};
    const tern_fetch kept = {.ahead = 100, .hint = TERN_FETCH_KEPT, .kept_percent = 75.0};
    assert_int_equal(tern_fetching_of(&part).ahead, 100);
    assert_int_equal(tern_fetching_of(&part).passing, TERN_FETCH_WHOLE / 4);
    assert_int_equal(tern_fetching_of(&kept).passing, 0);
}

static void refuse(tern_fetch wish, const char *message) {
    tern_error err = {0};
    tern_model *model = NULL;
    const tern_model_params params = {.fetch = wish};
    assert_int_equal(tern_fetch_check(&wish, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, message);
    assert_int_equal(tern_model_open("no such file", &params, &model, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, message);
}

static void test_refused(void **state) {
    (void)state;
    refuse((tern_fetch){.hint = (tern_fetch_hint)3}, "fetch: unknown hint 3");
    refuse((tern_fetch){.kept_percent = -1.0}, "fetch: kept_percent -1 is not in 0 .. 100");
    refuse((tern_fetch){.kept_percent = 100.5}, "fetch: kept_percent 100.5 is not in 0 .. 100");
    refuse((tern_fetch){.kept_percent = (double)NAN}, "fetch: kept_percent nan is not in 0 .. 100");
}

/* ---- lines ----------------------------------------------------------------------------------- */

static size_t lines_of(size_t ahead, size_t offset, size_t bytes) {
    static _Alignas(TERN_FETCH_LINE) char memory[1024];
    uint64_t due = 0;
    return tern_fetch_ask(&(tern_fetching){.ahead = ahead}, memory + offset, bytes, &due);
}

static void test_lines(void **state) {
    (void)state;
    assert_int_equal(lines_of(0, 0, 1000), 0);
    assert_int_equal(lines_of(1000, 0, 0), 0);
    assert_int_equal(lines_of(1000, 63, 0), 0);
    assert_int_equal(lines_of(1, 0, 1000), 1);
    assert_int_equal(lines_of(64, 0, 1000), 1);
    assert_int_equal(lines_of(65, 0, 1000), 2);
    assert_int_equal(lines_of(64, 1, 1000), 2); /* part of two lines */
    assert_int_equal(lines_of(2, 63, 1000), 2);
    assert_int_equal(lines_of(1 << 20, 0, 640), 10); /* not beyond the part */
}

/* Every fourth line is fetched as passing, however the lines are grouped into calls. */
static void test_share(void **state) {
    static _Alignas(TERN_FETCH_LINE) char memory[1024];
    const tern_fetching f = {.ahead = 1024, .passing = TERN_FETCH_WHOLE / 4};
    uint64_t due = 0;
    (void)state;
    assert_int_equal(tern_fetch_ask(&f, memory, 3 * TERN_FETCH_LINE, &due), 3);
    assert_int_equal(due, 3 * (TERN_FETCH_WHOLE / 4));
    assert_int_equal(tern_fetch_ask(&f, memory, TERN_FETCH_LINE, &due), 1);
    assert_int_equal(due, 0);
    assert_int_equal(tern_fetch_ask(&f, memory, 5 * TERN_FETCH_LINE, &due), 5);
    assert_int_equal(due, TERN_FETCH_WHOLE / 4);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* A request of a lane. */
typedef struct asked {
    const char *begin;
    size_t bytes;
} asked;

enum { MOST = 1024 };

static struct {
    asked list[THREADS][MOST];
    size_t n[THREADS];
    bool late[THREADS]; /* a request came after the product had begun */
} seen;

static const tern_device_ops *real;
static _Thread_local uint32_t worker; /* whose product is computed */
static _Thread_local bool entered;    /* it has begun */

void __real_tern_lane_enter(tern_lane *lane, const tern_lane_use *uses, size_t n);
void __wrap_tern_lane_enter(tern_lane *lane, const tern_lane_use *uses, size_t n);
size_t __real_tern_fetch_ask(const tern_fetching *f, const void *begin, size_t bytes,
                             uint64_t *due);
size_t __wrap_tern_fetch_ask(const tern_fetching *f, const void *begin, size_t bytes,
                             uint64_t *due);

/* Both are linked in the place of the library's. */
void __wrap_tern_lane_enter(tern_lane *lane, const tern_lane_use *uses, size_t n) {
    entered = true;
    __real_tern_lane_enter(lane, uses, n);
}

size_t __wrap_tern_fetch_ask(const tern_fetching *f, const void *begin, size_t bytes,
                             uint64_t *due) {
    seen.late[worker] |= entered;
    if (seen.n[worker] < MOST)
        seen.list[worker][seen.n[worker]++] = (asked){begin, bytes};
    return __real_tern_fetch_ask(f, begin, bytes, due);
}

static tern_status multiply_watched(tern_device *d, tern_device_stream *stream,
                                    const tern_device_product *products, size_t n,
                                    tern_error *err) {
    worker = tern_lane_of(stream)->worker.index;
    entered = false;
    return real->multiply(d, stream, products, n, err);
}

/* How often the bytes of a matrix were requested: each by a single lane, or not at all. */
static size_t times_asked(const tern_matrix *w) {
    const char *begin = w->data, *end = begin + tern_matrix_bytes(w);
    size_t bytes = 0;
    for (size_t i = 0; i < THREADS; i++) {
        size_t parts = 0;
        for (size_t k = 0; k < seen.n[i]; k++) {
            const asked *a = &seen.list[i][k];
            if (a->begin < begin || a->begin >= end)
                continue;
            if (a->begin + a->bytes > end)
                check_fail("%zu bytes beyond the matrix", (size_t)(a->begin + a->bytes - end));
            bytes += a->bytes;
            parts++;
        }
        if (parts > PASSES)
            check_fail("a lane asks for %zu pieces, not for its part", parts);
    }
    if (bytes % tern_matrix_bytes(w) != 0)
        check_fail("%zu bytes of %zu were asked for", bytes, tern_matrix_bytes(w));
    return bytes / tern_matrix_bytes(w);
}

/* The logits of a prompt and of a token after it, from recorded passes. */
static void answer(const tern_model *model, uint32_t threads, float *logits) {
    const size_t n_vocab = model->config.n_vocab;
    tern_session *s = tiny_session(model, (tern_session_params){.n_ctx = 64, .threads = threads});
    tern_device *d = s->runner->backend;
    int32_t prompt[PROMPT];
    tiny_prompt(model, 3, prompt, PROMPT);
    real = d->ops;
    tern_device_ops watched = *real;
    watched.multiply = multiply_watched;
    d->ops = &watched;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(tern_session_threads(s), threads);
    assert_int_equal(tern_session_eval(s, prompt, PROMPT - 1, TERN_LOGITS_LAST, logits, NULL),
                     TERN_OK);
    float *last = tiny_floats(n_vocab);
    assert_int_equal(tern_session_eval(s, prompt + PROMPT - 1, 1, TERN_LOGITS_LAST, last, NULL),
                     TERN_OK);
    memcpy(logits + n_vocab, last, n_vocab * sizeof *last);
    free(last);
    tern_session_free(&s);
}

static void check_asked(const tern_model *model, uint32_t threads) {
    const tern_linear *linear;
    for (size_t i = 0; (linear = tern_model_linear(model, i)) != NULL; i++) {
        if (linear == &model->image.scan)
            continue;
        check_case("%s, %u threads", tern_layout_name(linear->matrix.layout), threads);
        assert_int_equal(times_asked(&linear->matrix), PASSES);
    }
    for (uint32_t i = 0; i < threads; i++)
        assert_false(seen.late[i]);
}

/* Every byte of every matrix belongs to somebody's part, and is requested before any wait. */
static void check_model(const char *preset, const char *layout) {
    const tern_model_params plain = {.threads = 2, .layout = layout};
    tern_model_params asking = plain;
    asking.fetch = (tern_fetch){.ahead = AHEAD};
    tern_model *without = tiny_open_with(preset, plain), *with = tiny_open_with(preset, asking);
    const size_t n = 2 * (size_t)with->config.n_vocab;
    float *want = tiny_floats(n), *got = tiny_floats(n);
    answer(without, 1, want);
    for (uint32_t threads = 1; threads <= THREADS; threads++) {
        answer(without, threads, got);
        assert_int_equal(seen.n[0], 0);
        answer(with, threads, got);
        check_case("%s with %u threads", preset, threads);
        check_floats("logits", want, got, n);
        check_asked(with, threads);
    }
    tern_model_free(&without);
    tern_model_free(&with);
    free(want);
    free(got);
}

static void test_passes(void **state) {
    (void)state;
    check_model("bitnet-tiny", NULL);
    check_model("bitnet-tiny", "t5r16");
    check_model("llama-tiny-q4_0", NULL);
    check_model("llama-tiny-f16", NULL); /* floats, used where they lie in the file */
}

/* Fetching changes no logits of models with experts either, and stays within the weights. */
static void test_experts(void **state) {
    (void)state;
    tern_model *without = tiny_open_with("qwen3moe-tiny", (tern_model_params){.threads = 2});
    tern_model *with = tiny_open_with("qwen3moe-tiny",
                                      (tern_model_params){.threads = 2, .fetch = {.ahead = AHEAD}});
    const size_t n = 2 * (size_t)with->config.n_vocab;
    float *want = tiny_floats(n), *got = tiny_floats(n);
    answer(without, 1, want);
    answer(with, THREADS, got);
    check_floats("logits", want, got, n);
    assert_true(seen.n[0] > 0);
    tern_model_free(&without);
    tern_model_free(&with);
    free(want);
    free(got);
}

/* The settled hint is reported. A model that fits the caches is kept there. */
static void test_told(void **state) {
    (void)state;
    const tern_fetch wish = {.ahead = 4096, .hint = TERN_FETCH_PASSING, .kept_percent = 50.0};
    tern_model *model = tiny_open_with("bitnet-tiny", (tern_model_params){.fetch = wish});
    const tern_fetch told = tern_model_fetch(model);
    assert_int_equal(told.ahead, 4096);
    assert_int_equal(told.hint, TERN_FETCH_PASSING);
    assert_true(told.kept_percent == 50.0);
    tern_model_free(&model);
    model = tiny_open_with("bitnet-tiny",
                           (tern_model_params){.fetch = {.ahead = 1, .hint = TERN_FETCH_AUTO}});
    assert_int_equal(tern_model_fetch(model).hint, TERN_FETCH_KEPT);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settle), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lines),  cmocka_unit_test(test_share),
        cmocka_unit_test(test_passes), cmocka_unit_test(test_experts),
        cmocka_unit_test(test_told),
    };
    return cmocka_run_group_tests_name("fetch", tests, NULL, NULL);
}
