/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefill and decode leave the same state as a fresh pass over everything: the same logits and the
 * same bytes in the cache, for every architecture, weight format and cache format, up to the last
 * position of the context.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

#define SHIPPED TERN_SOURCE_DIR "/models/tern-small.gguf"

/* Sanitizers slow everything down about tenfold. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif
enum { MAX_TOKENS = 512 };

static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};
enum { FORMATS = sizeof formats / sizeof *formats };

/* A prompt of n tokens, then m decoded tokens, in a context of n + m + spare positions. */
typedef struct shape {
    uint32_t n, m, spare;
} shape;

/* The second one is AC:7. The last ones cross a chunk of attention (64 positions). */
static const shape shapes[] = {{1, 1, 0}, {5, 1, 0}, {5, 1, 20}, {5, 7, 0}, {63, 3, 0}, {70, 2, 9}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t vocabulary(const tern_model *model) {
    tern_model_info info;
    tern_model_describe(model, &info);
    return info.n_vocab;
}

typedef struct kept {
    int32_t *tokens;
    size_t n;
} kept;

static bool keep(int32_t token, double seconds, void *user) {
    kept *k = user;
    (void)seconds;
    k->tokens[k->n++] = token;
    return true;
}

static void check_shape(const char *name, const tern_model *model, tern_format kv, shape p) {
    int32_t tokens[MAX_TOKENS];
    const uint32_t n_ctx = p.n + p.m + p.spare;
    tern_session *decoded = tiny_session(
        model, (tern_session_params){.n_ctx = n_ctx, .n_batch = 16, .threads = 2, .kv = kv});
    tern_session *fresh =
        tiny_session(model, (tern_session_params){.n_ctx = n_ctx, .threads = 1, .kv = kv});
    check_case("%s, cache %s: prompt of %u, %u decoded, context %u", name,
               tern_format_describe(kv)->name, p.n, p.m, n_ctx);
    tiny_prompt(model, 5, tokens, p.n);
    const float *got = tiny_eval(decoded, tokens, p.n);
    for (uint32_t i = p.n; i < p.n + p.m; i++) {
        tokens[i] = tern_argmax(got, vocabulary(model));
        got = tiny_eval(decoded, tokens + i, 1);
    }
    const float *want = tiny_eval(fresh, tokens, p.n + p.m);
    check_floats("logits", want, got, vocabulary(model));
    tiny_same_cache(fresh, decoded, p.n + p.m);
    if (p.spare == 0) /* the context is full */
        assert_int_equal(tern_session_eval(decoded, tokens, 1, TERN_LOGITS_NONE, NULL, NULL),
                         TERN_ERR_FULL);
    tern_session_free(&decoded);
    tern_session_free(&fresh);
}

/* The decode loop evaluates each token once, at its position, and leaves the state of a fresh
 * pass. */
static void check_generated(const char *name, const tern_model *model, shape p) {
    int32_t tokens[MAX_TOKENS];
    const tern_sampler_params greedy = tern_sampler_params_default();
    const tern_session_params params = {
        .n_ctx = p.n + p.m, .n_batch = 16, .threads = 2, .kv = TERN_FORMAT_F16};
    tern_session *decoded = tiny_session(model, params);
    tern_session *fresh = tiny_session(model, params);
    tern_sampler *sampler = NULL;
    kept k = {.tokens = tokens, .n = p.n};
    tern_generation g;
    check_case("%s: prompt of %u, %u generated", name, p.n, p.m);
    tiny_prompt(model, 5, tokens, p.n);
    assert_int_equal(tern_sampler_new(&greedy, vocabulary(model), &sampler, NULL), TERN_OK);
    assert_int_equal(tern_generate(decoded, sampler, tokens, p.n,
                                   &(tern_generate_params){.max_tokens = p.m, .ignore_end = true},
                                   keep, &k, &g, NULL),
                     TERN_OK);
    const tern_session_work work = tern_session_work_done(decoded);
    assert_int_equal(k.n, p.n + p.m);
    assert_int_equal(work.tokens, p.n + p.m);
    assert_int_equal(work.passes, (p.n + 15) / 16 + p.m);
    uint64_t found = 0; /* positions that passes find in the cache: 16, 32 ..., then p.n ... */
    for (uint32_t i = 0; i < p.n; i += 16)
        found += i;
    for (uint32_t i = 0; i < p.m; i++)
        found += p.n + i;
    assert_int_equal(work.reused, found);
    tiny_eval(fresh, tokens, p.n + p.m);
    tiny_same_cache(fresh, decoded, p.n + p.m);
    tern_sampler_free(&sampler);
    tern_session_free(&decoded);
    tern_session_free(&fresh);
}

static void test_decoding_evaluates_each_token_once(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        tern_model *model = tiny_open(tiny_presets()[i], NULL);
        check_generated(tiny_presets()[i], model, (shape){5, 7, 0});
        check_generated(tiny_presets()[i], model, (shape){40, 3, 0});
        tern_model_free(&model);
    }
}

static void test_tiny_models(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        tern_model *model = tiny_open(tiny_presets()[i], NULL);
        for (size_t f = 0; f < FORMATS; f++)
            for (size_t k = SLOW; k < SHAPES; k += 1 + SLOW)
                check_shape(tiny_presets()[i], model, formats[f], shapes[k]);
        tern_model_free(&model);
    }
}

/* The shipped model, also with a full context. */
static void test_shipped_model(void **state) {
    tern_model *model = NULL;
    (void)state;
    assert_int_equal(tern_model_open(SHIPPED, NULL, &model, NULL), TERN_OK);
    for (size_t f = 0; f < FORMATS; f++) {
        check_shape("tern-small", model, formats[f], (shape){5, 1, 0});
        check_shape("tern-small", model, formats[f], (shape){40, 24, 0});
    }
    if (!SLOW)
        check_shape("tern-small", model, TERN_FORMAT_F16, (shape){MAX_TOKENS - 3, 3, 0});
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoding_evaluates_each_token_once),
        cmocka_unit_test(test_tiny_models),
        cmocka_unit_test(test_shipped_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
