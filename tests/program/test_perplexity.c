/* SPDX-License-Identifier: Apache-2.0 */
/* Log-probabilities against libm, and the windows of a perplexity. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/logprob.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tools/eval/perplexity.h"

static void test_exp(void **state) {
    (void)state;
    double worst = 0.0;
    for (double x = -700.0; x < 700.0; x += 0.00713)
        worst = fmax(worst, fabs(tern_double_exp(x) / exp(x) - 1.0));
    assert_true(worst < 4e-16);
    assert_true(tern_double_exp(0.0) == 1.0);
    assert_true(tern_double_exp(-745.1) == 0.0 && tern_double_exp(-1e300) == 0.0 &&
                tern_double_exp(-INFINITY) == 0.0);
    assert_true(tern_double_exp(710.5) == INFINITY && tern_double_exp(INFINITY) == INFINITY);
    assert_true(isnan(tern_double_exp((double)NAN)));
}

static void test_log(void **state) {
    (void)state;
    double worst = 0.0;
    for (double x = 1e-6; x < 1e6; x *= 1.000013)
        worst = fmax(worst, fabs(tern_double_log(x) - log(x)) / fmax(1.0, fabs(log(x))));
    assert_true(worst < 4e-16);
    assert_true(tern_double_log(1.0) == 0.0);
    assert_true(fabs(tern_double_log(DBL_MAX) - log(DBL_MAX)) < 1e-12);
}

static void test_log_sum_exp(void **state) {
    (void)state;
    const float equal[] = {2.0F, 2.0F, 2.0F, 2.0F};
    assert_true(fabs(tern_log_sum_exp(equal, 4) - (2.0 + log(4.0))) < 1e-15);
    const float far[] = {-3e38F, 3e38F, 0.0F}; /* no overflow on the way */
    assert_true(tern_log_sum_exp(far, 3) == (double)3e38F);
    const float one[] = {-7.5F};
    assert_true(tern_log_sum_exp(one, 1) == -7.5);
    const float broken[] = {0.0F, NAN};
    assert_true(isnan(tern_log_sum_exp(broken, 2)));
}

/* The number of scored tokens, counted by hand. */
static void test_windows(void **state) {
    (void)state;
    const perplexity_params side_by_side = {.ctx = 512, .stride = 512, .bos = -1};
    assert_int_equal(perplexity_scored(&side_by_side), 255);
    assert_int_equal(perplexity_windows(&side_by_side, 511), 0);
    assert_int_equal(perplexity_windows(&side_by_side, 512), 1);
    assert_int_equal(perplexity_windows(&side_by_side, 1023), 1);
    assert_int_equal(perplexity_windows(&side_by_side, 1024), 2);
    const perplexity_params sliding = {.ctx = 10, .stride = 3, .max_windows = 2, .bos = -1};
    assert_int_equal(perplexity_scored(&sliding), 3);
    assert_int_equal(perplexity_windows(&sliding, 12), 1);
    assert_int_equal(perplexity_windows(&sliding, 13), 2);
    assert_int_equal(perplexity_windows(&sliding, 100), 2); /* max_windows */
    const perplexity_params wide = {.ctx = 10, .stride = 8, .bos = -1};
    assert_int_equal(perplexity_scored(&wide), 4); /* always at least half a window of context */
    const perplexity_params smallest = {.ctx = PERPLEXITY_MIN_CTX, .stride = 1, .bos = -1};
    assert_int_equal(perplexity_scored(&smallest), 1);
}

/* -ln p of the scored tokens, from a session that reads one position after the other. */
static double mean_by_session(const tern_model *model, const perplexity_params *p,
                              const int32_t *tokens, size_t windows) {
    const size_t scored = perplexity_scored(p);
    tern_model_info info;
    double sum = 0.0;
    tern_model_describe(model, &info);
    for (size_t w = 0; w < windows; w++) {
        tern_session *s = tiny_session(model, (tern_session_params){.kv = TERN_FORMAT_Q8_0});
        for (size_t i = 0; i + 1 < p->ctx; i++) {
            const int32_t token = i == 0 ? p->bos : tokens[w * p->stride + i];
            const int32_t next = tokens[w * p->stride + i + 1];
            const float *logits = tiny_eval(s, &token, 1);
            if (i + 1 + scored >= p->ctx)
                sum += tern_log_sum_exp(logits, info.n_vocab) - (double)logits[next];
        }
        tern_session_free(&s);
    }
    return sum / (double)(windows * scored);
}

/* Windows that share passes of any size get the same figures as one window after the other. */
static void test_together(void **state) {
    (void)state;
    enum { TOKENS = 150 };
    tern_model *model = tiny_open("llama-tiny-f16", NULL);
    const perplexity_params p = {.ctx = 70, .stride = 9, .bos = 1};
    int32_t tokens[TOKENS];
    tiny_prompt(model, 3, tokens, TOKENS);
    const size_t windows = perplexity_windows(&p, TOKENS);
    const double mean = mean_by_session(model, &p, tokens, windows);
    for (uint32_t batch = 5; batch <= 205; batch += 100) {
        const tern_engine_params params = {
            .n_ctx = 128,
            .n_batch = batch,
            .n_sequences = 5,
            .threads = 1 + batch % 3,
            .kv = TERN_FORMAT_Q8_0,
            .pool_bytes = 4 * tern_model_kv_bytes(model, 128, TERN_FORMAT_Q8_0)};
        tern_engine *engine;
        perplexity_result r;
        assert_int_equal(tern_engine_new(model, &params, &engine, NULL), TERN_OK);
        assert_int_equal(perplexity_run(engine, &p, tokens, TOKENS, NULL, NULL, &r, NULL), TERN_OK);
        assert_int_equal(r.windows, 9);
        assert_int_equal(r.scored, 9 * 9);
        assert_true(r.nll == mean);
        tern_engine_free(&engine);
    }
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),         cmocka_unit_test(test_log),
        cmocka_unit_test(test_log_sum_exp), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_together),
    };
    return cmocka_run_group_tests_name("perplexity", tests, NULL, NULL);
}
