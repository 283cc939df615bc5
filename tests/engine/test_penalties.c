/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler with everything turned on against its definition, which is written here again with a
 * sort, counts over a plain list of tokens and plain loops. Every pick is equal, and extreme values
 * stay finite.
 */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/chacha.h"
#include "tern/tern.h"
#include "tests/support/check.h"

enum { VOCABULARY_MAX = 300, STEPS = 40 };

/* ---- the definition ---------------------------------------------------------------------------
 */

static float limited(float x) {
    return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : x;
}

static uint32_t occurrences(const int32_t *text, size_t n, uint32_t last_n, int32_t token) {
    uint32_t count = 0;
    for (size_t i = n > last_n ? n - last_n : 0; i < n; i++)
        count += text[i] == token;
    return count;
}

/* Changes the logits as the sampler does after a text of n tokens. */
static void change(const tern_sampler_params *p, const int32_t *text, size_t n, float *logits,
                   uint32_t n_vocab) {
    for (size_t i = 0; i < p->n_bias; i++)
        logits[p->bias[i].token] = limited(logits[p->bias[i].token] + p->bias[i].bias);
    for (uint32_t id = 0; id < n_vocab; id++) {
        const uint32_t count = occurrences(text, n, p->repeat_last_n, (int32_t)id);
        if (count > 0) {
            float x = logits[id];
            x = limited(x > 0.0F ? x / p->repetition_penalty : x * p->repetition_penalty);
            x = limited(x - limited((float)count * p->frequency_penalty));
            logits[id] = limited(x - p->presence_penalty);
        }
    }
}

static const float *sort_logits;

static int compare_candidates(const void *a, const void *b) {
    const int32_t i = *(const int32_t *)a;
    const int32_t j = *(const int32_t *)b;
    if (sort_logits[i] != sort_logits[j])
        return sort_logits[i] > sort_logits[j] ? -1 : 1;
    return (i > j) - (i < j);
}

/* Softmax of x[n] by the scalar kernel. All kernels give the same bits. */
static void softmax(float *x, size_t n) {
    float *aligned = aligned_alloc(64, (n + 15) / 16 * 64);
    assert_non_null(aligned);
    memcpy(aligned, x, n * sizeof *x);
    tern_kernel_select(0, TERN_OP_SOFTMAX, TERN_FORMAT_NONE)->fn.softmax(aligned, n);
    memcpy(x, aligned, n * sizeof *x);
    free(aligned);
}

/* Picks from the changed logits: sort, softmax, cut by top-p and by min-p, draw. */
static int32_t definition(const tern_sampler_params *params, tern_chacha *random,
                          const float *logits, size_t n) {
    int32_t order[VOCABULARY_MAX];
    float p[VOCABULARY_MAX];
    for (size_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    sort_logits = logits;
    qsort(order, n, sizeof *order, compare_candidates);
    if (params->temperature == 0.0F)
        return order[0];
    const bool cut = params->top_k > 0 && params->top_k < n;
    const size_t m = cut ? params->top_k : n;
    float by_id[VOCABULARY_MAX];
    for (size_t j = 0; j < m; j++)
        by_id[j] = (logits[cut ? (size_t)order[j] : j] - logits[order[0]]) / params->temperature;
    softmax(by_id, m);
    const bool all = !cut && params->top_p >= 1.0F && params->min_p == 0.0F;
    for (size_t j = 0; j < m; j++) {
        order[j] = all ? (int32_t)j : order[j];
        p[j] = cut ? by_id[j] : by_id[order[j]];
    }
    size_t by_top_p = params->top_p < 1.0F ? 0 : m;
    for (double sum = 0.0; by_top_p < m && sum < (double)params->top_p; by_top_p++)
        sum += (double)p[by_top_p];
    size_t by_min_p = 1;
    while (by_min_p < m && (double)p[by_min_p] >= (double)params->min_p * (double)p[0])
        by_min_p++;
    const size_t kept = all ? m : by_top_p < by_min_p ? by_top_p : by_min_p;
    double total = 0.0;
    for (size_t j = 0; j < kept; j++)
        total += (double)p[j];
    const double r = tern_chacha_uniform(random) * total;
    double sum = 0.0;
    for (size_t j = 0; j + 1 < kept; j++) {
        sum += (double)p[j];
        if (sum > r)
            return order[j];
    }
    return order[kept - 1];
}

/* ---- properties -------------------------------------------------------------------------------
 */

static float one_of(check_rng *rng, const float *values, uint32_t n) {
    return values[check_below(rng, n)];
}

static tern_sampler_params random_params(check_rng *rng, tern_logit_bias *bias, uint32_t n_vocab) {
    static const float temperatures[] = {0.0F, 0.3F, 1.0F, 2.5F};
    static const float shares[] = {1.0F, 0.95F, 0.5F, 0.01F};
    static const float floors[] = {0.0F, 0.0F, 0.02F, 0.3F, 1.0F};
    static const float repetitions[] = {1.0F, 1.1F, 2.0F, 0.5F};
    static const float penalties[] = {0.0F, 0.5F, -0.5F, 2.0F};
    static const uint32_t windows[] = {0, 1, 3, 7, 1000};
    const uint32_t n_bias = check_below(rng, 4);
    for (uint32_t i = 0; i < n_bias; i++)
        bias[i] = (tern_logit_bias){(int32_t)check_below(rng, n_vocab), 3.0F * check_normal(rng)};
    return (tern_sampler_params){.temperature = one_of(rng, temperatures, 4),
                                 .top_k = check_below(rng, 3) * check_below(rng, 20),
                                 .top_p = one_of(rng, shares, 4),
                                 .seed = check_random(rng),
                                 .min_p = one_of(rng, floors, 5),
                                 .repetition_penalty = one_of(rng, repetitions, 4),
                                 .presence_penalty = one_of(rng, penalties, 4),
                                 .frequency_penalty = one_of(rng, penalties, 4),
                                 .repeat_last_n = windows[check_below(rng, 5)],
                                 .bias = bias,
                                 .n_bias = n_bias};
}

static tern_sampler *make(const tern_sampler_params *params, uint32_t n_vocab) {
    tern_sampler *s = NULL;
    tern_error err = {0};
    if (tern_sampler_new(params, n_vocab, &s, &err) != TERN_OK)
        fail_msg("%s", err.message);
    return s;
}

static int32_t pick(tern_sampler *s, const float *logits) {
    int32_t token = -1;
    tern_error err = {0};
    if (tern_sampler_pick(s, logits, &token, &err) != TERN_OK)
        fail_msg("%s", err.message);
    return token;
}

/* Few distinct logits, so that there are ties before and after the penalties. */
static void test_picks_equal_the_definition(void **state) {
    (void)state;
    check_rng rng = {3};
    for (int round = 0; round < 1500; round++) {
        const uint32_t n = 1 + check_below(&rng, VOCABULARY_MAX);
        tern_logit_bias bias[4];
        const tern_sampler_params params = random_params(&rng, bias, n);
        tern_sampler *s = make(&params, n);
        tern_chacha random;
        tern_chacha_seed(&random, params.seed);
        int32_t text[STEPS];
        check_case("round %d: T %g, k %u, p %g, min-p %g, repetition %g, window %u", round,
                   (double)params.temperature, params.top_k, (double)params.top_p,
                   (double)params.min_p, (double)params.repetition_penalty, params.repeat_last_n);
        for (size_t step = 0; step < STEPS; step++) {
            float logits[VOCABULARY_MAX];
            float kept[VOCABULARY_MAX];
            for (uint32_t i = 0; i < n; i++)
                logits[i] = floorf(4.0F * check_normal(&rng)) / 2.0F;
            memcpy(kept, logits, sizeof kept);
            text[step] = pick(s, logits);
            assert_memory_equal(logits, kept, n * sizeof *logits); /* the caller's logits stay */
            change(&params, text, step, logits, n);
            if (text[step] != definition(&params, &random, logits, n))
                check_fail("step %zu: token %d", step, text[step]);
            tern_sampler_accept(s, text[step]);
        }
        tern_sampler_free(&s);
    }
}

/* Any finite logits and the largest parameters give a token, not an error. */
static void test_extremes(void **state) {
    (void)state;
    check_rng rng = {8};
    static const float extremes[] = {FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45F, 1e30F, -1e30F, 0.0F};
    for (int round = 0; round < 3000; round++) {
        enum { N = 20 };
        float logits[N];
        for (int i = 0; i < N; i++)
            logits[i] = check_any_finite(&rng);
        const tern_logit_bias bias[] = {{3, one_of(&rng, extremes, 7)},
                                        {3, one_of(&rng, extremes, 7)}};
        const tern_sampler_params params = {.temperature = fabsf(one_of(&rng, extremes, 7)),
                                            .top_p = 0.5F,
                                            .min_p = 0.1F,
                                            .repetition_penalty = fabsf(one_of(&rng, extremes, 7)),
                                            .presence_penalty = one_of(&rng, extremes, 7),
                                            .frequency_penalty = one_of(&rng, extremes, 7),
                                            .repeat_last_n = 4,
                                            .bias = bias,
                                            .n_bias = 2};
        tern_sampler *s = make(&params, N);
        for (int step = 0; step < 8; step++) {
            const int32_t token = pick(s, logits);
            assert_in_range(token, 0, N - 1);
            tern_sampler_accept(s, token);
        }
        tern_sampler_free(&s);
    }
}

/* ---- a worked example ------------------------------------------------------------------------ */

static void test_penalties_by_hand(void **state) {
    (void)state;
    const float logits[] = {4.0F, 3.0F, 2.0F, -1.0F};
    tern_sampler_params params = tern_sampler_params_default();
    params.frequency_penalty = 0.75F;
    params.repeat_last_n = 3;
    tern_sampler *s = make(&params, 4);
    /* 0 has 4, 3.25, 2.5 and loses; 2.5 beats 1's 2.25 until three 0s leave it 1.75 */
    const int32_t expected[] = {0, 0, 1, 0, 0, 0, 1};
    for (int round = 0; round < 2; round++) { /* a reset clears all counts */
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            const int32_t token = pick(s, logits);
            assert_int_equal(token, expected[i]);
            tern_sampler_accept(s, token);
        }
        tern_sampler_reset(s, 1);
    }
    assert_int_equal(pick(s, logits), 0);
    tern_sampler_accept(s, -1); /* ids out of range do not count */
    tern_sampler_accept(s, 4);
    tern_sampler_accept(s, INT32_MAX);
    assert_int_equal(pick(s, logits), 0);
    tern_sampler_free(&s);
}

static void test_bias_forbids_and_demands(void **state) {
    (void)state;
    const float logits[] = {4.0F, 3.0F, 2.0F};
    const tern_logit_bias bias[] = {{0, -100.0F}, {2, 100.0F}};
    tern_sampler_params params = tern_sampler_params_default();
    params.bias = bias;
    for (size_t n = 0; n < 3; n++) {
        params.n_bias = n;
        tern_sampler *s = make(&params, 3);
        assert_int_equal(pick(s, logits), (int32_t)n);
        tern_sampler_free(&s);
    }
}

/* Bad logits are found before anything changes them, and reported as they were. */
static void test_nonfinite_logits(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const tern_logit_bias bias[] = {{1, -100.0F}};
    tern_sampler_params params = tern_sampler_params_default();
    params.bias = bias;
    params.n_bias = 1;
    tern_sampler *s = make(&params, 3);
    for (size_t i = 0; i < 3; i++) {
        const float logits[] = {0.0F, bad[i], 0.0F};
        int32_t token = -7;
        tern_error err = {0};
        assert_int_equal(tern_sampler_pick(s, logits, &token, &err), TERN_ERR_NONFINITE);
        assert_non_null(strstr(err.message, "token 1 "));
        assert_int_equal(token, -7);
    }
    tern_sampler_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picks_equal_the_definition),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_penalties_by_hand),
        cmocka_unit_test(test_bias_forbids_and_demands),
        cmocka_unit_test(test_nonfinite_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
