/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts that become vectors: which hidden states they are made of. Other work at the same time
 * does not change them. */
#include <math.h>
#include <string.h>

#include "base/sha256.h"
#include "runtime/engine/forward/runner.h"
#include "runtime/model/config/rope.h"
#include "tests/engine/engine_case.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

static float hidden[PROMPT][WIDTH]; /* of the prompt, from a single-threaded pass */

static int begin(void **state) {
    const int failed = engine_case_begin(state);
    const tern_runner_params params = {
        .threads = 1, .n_batch = PROMPT, .n_ctx = PROMPT, .n_picks = 1};
    const uint32_t pages[] = {0, 1, 2};
    const tern_pass_span span = {
        .pages = pages, .tokens = engine_case.prompt, .n = PROMPT, .wanted = PROMPT};
    tern_runner *runner;
    tern_pool pool;
    int refused = 0;
    assert_int_equal(tern_runner_new(engine_case.model, &params, &runner, NULL), TERN_OK);
    assert_int_equal(tern_pool_open(engine_case.model, TERN_FORMAT_F16,
                                    (tern_pool_size){.pages = 3}, &pool, &refused, NULL),
                     TERN_OK);
    tern_runner_run(runner, &pool, &span, 1);
    for (size_t i = 0; i < PROMPT; i++)
        memcpy(hidden[i], tern_runner_hidden(runner, i), engine_case.info.n_embd * sizeof(float));
    tern_runner_free(&runner);
    tern_pool_close(&pool);
    return failed;
}

/* The vector of the first n tokens of the prompt, and the digest of the hidden states it uses. */
static void expect(tern_pooling how, size_t n, float x[WIDTH], char digest[65]) {
    const size_t width = engine_case.info.n_embd;
    const size_t first = how == TERN_POOLING_LAST ? n - 1 : 0;
    const size_t end = how == TERN_POOLING_CLS ? 1 : n;
    tern_sha256 h;
    tern_sha256_start(&h);
    for (size_t i = first; i < end; i++)
        tern_sha256_add(&h, hidden[i], width * sizeof(float));
    tern_sha256_finish(&h, digest);
    for (size_t k = 0; k < width; k++) {
        double sum = 0.0;
        for (size_t i = first; i < end; i++)
            sum += (double)hidden[i][k];
        x[k] = (float)(sum / (double)(end - first));
    }
}

static tern_request request_of(tern_pooling how, size_t n) {
    tern_request r = engine_case_request(0);
    r.n_tokens = n;
    r.prompt_only = true;
    r.pooling = how;
    return r;
}

static void check_vector(const answer *a, tern_pooling how, size_t n) {
    char digest[65];
    float x[WIDTH];
    expect(how, n, x, digest);
    assert_true(a->is_over && a->end == TERN_END_LENGTH && a->is_pooled && a->n == 0);
    check_bytes("vector", x, a->pooled, engine_case.info.n_embd * sizeof(float));
    assert_string_equal(a->digest, digest);
}

static const tern_pooling ways[] = {TERN_POOLING_MEAN, TERN_POOLING_CLS, TERN_POOLING_LAST};

/* The bits are the same for passes of any size, on one thread and on three, for texts that end
 * anywhere in a page, and when cached pages hold their beginning. */
static void test_ways(void **state) {
    (void)state;
    const size_t lengths[] = {1, 2, 64, 65, PROMPT};
    for (uint32_t batch = 1; batch < 200; batch += 37) {
        engine_case_open((tern_engine_params){
            .pool_bytes = 1 << 22, .n_batch = batch, .n_sequences = 1, .threads = 1 + batch % 3});
        for (size_t i = 0; i < 15; i++) {
            const tern_request r = request_of(ways[i / 5], lengths[i % 5]);
            check_vector(engine_case_run(&r), ways[i / 5], lengths[i % 5]);
        }
    }
}

/* Vectors of all three kinds beside answers that decode, all at once. */
static void test_beside_others(void **state) {
    (void)state;
    uint64_t ids[12];
    engine_case_open(
        (tern_engine_params){.pool_bytes = 1 << 22, .n_batch = 50, .n_sequences = 9, .threads = 2});
    for (size_t i = 0; i < 12; i++) {
        tern_request r = request_of(ways[i % 3], PROMPT - 7 * i);
        if (i >= 9) {
            r = engine_case_request(40);
            r.draft = TERN_DRAFT_ALWAYS;
        }
        ids[i] = engine_case_submit(&r);
        engine_case_step();
    }
    engine_case_finish();
    for (size_t i = 0; i < 9; i++)
        check_vector(engine_case_answer(ids[i], 0), ways[i % 3], PROMPT - 7 * i);
    assert_false(engine_case_answer(ids[9], 0)->is_pooled);
}

/* A text that is set aside in the middle of its prompt counts each position once. */
static void test_set_aside(void **state) {
    (void)state;
    static const uint8_t another[TERN_SPACE_BYTES] = "another";
    engine_case_open((tern_engine_params){
        .n_ctx = PROMPT + 60,
        .pool_bytes = 6 * tern_model_kv_bytes(engine_case.model, 64, TERN_FORMAT_F16),
        .n_batch = 3,
        .n_sequences = 2,
        .n_ahead = 1,
        .threads = 2});
    tern_request grows = engine_case_request(0); /* takes another page when it needs it */
    grows.space = another;
    const answer *first = engine_case_answer(engine_case_submit(&grows), 0);
    while (first->n < 8)
        engine_case_step();
    const tern_request r = request_of(TERN_POOLING_MEAN, PROMPT);
    const uint64_t id = engine_case_submit(&r);
    engine_case_finish();
    check_vector(engine_case_answer(id, 0), TERN_POOLING_MEAN, PROMPT);
    assert_true(engine_case_answer(id, 0)->figures.n_set_aside > 0);
    assert_true(engine_case_answer(id, 0)->figures.n_computed > PROMPT);
}

static void refuse(tern_request r) {
    uint64_t id;
    tern_error err = {0};
    assert_int_equal(tern_engine_submit(engine_case.engine, &r, &id, &err), TERN_ERR_ARG);
    assert_true(strlen(err.message) > 10);
}

static void see(void *user, const tern_progress *p, size_t position, const float *logits) {
    (void)user, (void)p, (void)position, (void)logits;
}

static void test_refused(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.threads = 1});
    tern_request r = request_of(TERN_POOLING_MEAN, PROMPT);
    r.prompt_only = false;
    r.max_tokens = 1;
    refuse(r);
    r = request_of(TERN_POOLING_MEAN, PROMPT);
    r.prompt_logprobs = true;
    refuse(r);
    r = request_of(TERN_POOLING_MEAN, PROMPT);
    r.prompt_from = 3;
    refuse(r);
    r = request_of(TERN_POOLING_MEAN, PROMPT);
    r.logits = see;
    refuse(r);
    refuse(request_of((tern_pooling)5, PROMPT));
    tern_error err = {0};
    uint64_t id;
    r = request_of(TERN_POOLING_MEAN, 0);
    assert_int_equal(tern_engine_submit(engine_case.engine, &r, &id, &err), TERN_ERR_EMPTY);
}

/* A cancelled text has no vector. */
static void test_cancelled(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.n_batch = 16, .threads = 1});
    const tern_request r = request_of(TERN_POOLING_MEAN, PROMPT);
    const uint64_t id = engine_case_submit(&r);
    engine_case_step();
    assert_true(tern_engine_cancel(engine_case.engine, id));
    engine_case_finish();
    assert_false(engine_case_answer(id, 0)->is_pooled);
    assert_int_equal(engine_case_answer(id, 0)->end, TERN_END_CANCELLED);
}

static void test_names(void **state) {
    (void)state;
    tern_pooling how = TERN_POOLING_LAST;
    assert_true(tern_pooling_find("mean", &how) && how == TERN_POOLING_MEAN);
    assert_string_equal(tern_pooling_name(TERN_POOLING_CLS), "cls");
    assert_true(tern_pooling_find("rank", &how) && how == TERN_POOLING_RANK);
    assert_false(tern_pooling_find("ranked", &how));
    assert_int_equal(tern_model_pooling(engine_case.model), TERN_POOLING_NONE);
    assert_true(tern_model_shortens(engine_case.model, engine_case.info.n_embd));
    assert_false(tern_model_shortens(engine_case.model, 8));
    assert_false(tern_model_shortens(engine_case.model, 0));
}

static void test_normalize(void **state) {
    (void)state;
    float x[] = {3.0F, 0.0F, -4.0F}, zeros[2] = {0.0F};
    const float huge[] = {1e38F, 1e38F};
    float y[3];
    tern_embedding_normalize(x, 3, x);
    assert_true(x[0] == 0.6F && x[1] == 0.0F && x[2] == -0.8F);
    tern_embedding_normalize(zeros, 2, zeros);
    assert_true(zeros[0] == 0.0F);
    tern_embedding_normalize(huge, 2, y);
    assert_true(y[0] == (float)sqrt(0.5) && y[1] == y[0]);
}

/* The bits are those of this library's own exponential, whatever the machine's says. */
static void test_probability(void **state) {
    (void)state;
    assert_true(tern_rank_probability(0.0F) == 0.5F);
    for (int i = -400; i <= 400; i++) {
        const float x = (float)i * 0.0625F, y = tern_rank_probability(x);
        const double wanted = 1.0 / (1.0 + exp(-(double)x));
        assert_true(fabs((double)y - wanted) <= 1e-7 * wanted);
        assert_true(y == (float)(1.0 / (1.0 + tern_exp(-(double)x))));
    }
    assert_true(tern_rank_probability(3e38F) == 1.0F && tern_rank_probability(-3e38F) == 0.0F);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),      cmocka_unit_test(test_beside_others),
        cmocka_unit_test(test_set_aside), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cancelled), cmocka_unit_test(test_names),
        cmocka_unit_test(test_normalize), cmocka_unit_test(test_probability),
    };
    return cmocka_run_group_tests(tests, begin, engine_case_end);
}
