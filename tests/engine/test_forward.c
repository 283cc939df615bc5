/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One answer: tiny models of both block designs give the same logits and the same cache, bit for
 * bit, for every split of the prompt, thread count, batch size and instruction set.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* Two chunks of attention. Sanitizers slow everything down about tenfold. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { PROMPT = 67, SLOW = 1 };
#else
enum { PROMPT = 131, SLOW = 0 };
#endif
enum { MAX_ISAS = 16 };

static tern_session_params params(uint32_t threads, uint32_t n_batch, tern_format kv) {
    return (tern_session_params){.n_ctx = 160, .n_batch = n_batch, .threads = threads, .kv = kv};
}

static size_t vocabulary(const tern_session *s) {
    tern_model_info info;
    tern_model_describe(tern_session_model(s), &info);
    return info.n_vocab;
}

/* Logits of all n tokens, evaluated in pieces of `piece`. */
static float *eval_pieces(tern_session *s, const int32_t *tokens, size_t n, size_t piece) {
    tern_error err = {0};
    const size_t n_vocab = vocabulary(s);
    float *all = tiny_floats(n * n_vocab);
    float *part = tiny_floats(piece * n_vocab); /* every call needs an aligned buffer */
    for (size_t first = 0; first < n; first += piece) {
        const size_t size = n - first < piece ? n - first : piece;
        if (tern_session_eval(s, tokens + first, size, TERN_LOGITS_ALL, part, &err) != TERN_OK)
            check_fail("token %zu: %s", first, err.message);
        memcpy(all + first * n_vocab, part, size * n_vocab * sizeof *all);
    }
    free(part);
    return all;
}

/* ---- splits, batches, threads, instruction sets ------------------------------------------------
 */

typedef struct way {
    uint32_t threads, n_batch;
    size_t piece;
} way;

static const way ways[] = {{1, 128, PROMPT}, {1, 128, 1},      {1, 128, 3},      {1, 128, 64},
                           {1, 1, PROMPT},   {1, 7, PROMPT},   {2, 128, PROMPT}, {2, 16, 64},
                           {3, 5, 3},        {3, 128, PROMPT}, {5, 128, 64},     {5, 2, 3}};

typedef struct truth {
    const char *preset;
    tern_format kv;
    tern_session *session; /* scalar, one thread, one pass */
    int32_t tokens[PROMPT];
    float *logits;
} truth;

static void check_way(const tern_model *model, const truth *t, const way *w) {
    tern_session *s = tiny_session(model, params(w->threads, w->n_batch, t->kv));
    check_case("%s, cache %s, %s, %u threads, batch %u, pieces of %zu", t->preset,
               tern_format_describe(t->kv)->name, tern_model_isa(model), w->threads, w->n_batch,
               w->piece);
    assert_int_equal(tern_session_threads(s), w->threads);
    float *logits = eval_pieces(s, t->tokens, PROMPT, w->piece);
    assert_int_equal(tern_session_position(s), PROMPT);
    check_floats("logits", t->logits, logits, PROMPT * vocabulary(s));
    tiny_same_cache(t->session, s, PROMPT);
    free(logits);
    tern_session_free(&s);
}

static void check_preset(const char *preset, tern_format kv, size_t step) {
    truth t = {.preset = preset, .kv = kv};
    const char *isas[MAX_ISAS];
    const size_t n_isas = tiny_isas(isas, MAX_ISAS);
    tern_model *scalar = tiny_open(preset, "scalar");
    check_case("%s", preset);
    assert_string_equal(isas[0], "scalar");
    t.session = tiny_session(scalar, params(1, 0, kv));
    tiny_prompt(scalar, 7, t.tokens, PROMPT);
    t.logits = eval_pieces(t.session, t.tokens, PROMPT, PROMPT);
    for (size_t i = 0; i < n_isas; i++) {
        tern_model *model = tiny_open(preset, isas[i]);
        assert_string_equal(tern_model_isa(model), isas[i]);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w += step)
            check_way(model, &t, &ways[w]);
        tern_model_free(&model);
    }
    free(t.logits);
    tern_session_free(&t.session);
    tern_model_free(&scalar);
}

static void test_one_answer_bitnet(void **state) { /* AC:6 */
    (void)state;
    check_preset("bitnet-tiny", TERN_FORMAT_F16, 1 + 2 * SLOW);
    check_preset("bitnet-tiny-odd", TERN_FORMAT_F16, 2 + 3 * SLOW);
}

static void test_one_answer_llama(void **state) {
    (void)state;
    check_preset("llama-tiny-q4_0", TERN_FORMAT_F16, 1 + 2 * SLOW);
    for (size_t i = 3; tiny_presets()[i] != NULL; i++)
        check_preset(tiny_presets()[i], TERN_FORMAT_F16, 3 + 2 * SLOW);
}

static void test_one_answer_f32_cache(void **state) {
    (void)state;
    check_preset("bitnet-tiny", TERN_FORMAT_F32, 3 + 2 * SLOW);
    check_preset("llama-tiny-q8_0", TERN_FORMAT_F32, 3 + 2 * SLOW);
}

static void test_one_answer_q8_0_cache(void **state) {
    (void)state;
    check_preset("bitnet-tiny-odd", TERN_FORMAT_Q8_0, 3 + 2 * SLOW);
    check_preset("llama-tiny-f16", TERN_FORMAT_Q8_0, 3 + 2 * SLOW);
}

/* ---- what the logits are ------------------------------------------------------------------------
 */

/* AC:1. The logits of a single first token are finite and not all equal. */
static void test_bos_nonzero(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        int32_t bos;
        size_t nonzero = 0;
        tern_model *model = tiny_open(tiny_presets()[i], NULL);
        tern_session *s = tiny_session(model, tern_session_params_default());
        float *logits = tern_session_logits(s);
        const size_t n_vocab = vocabulary(s);
        check_case("%s", tiny_presets()[i]);
        tiny_prompt(model, 1, &bos, 1);
        assert_int_equal(tern_session_eval(s, &bos, 1, TERN_LOGITS_LAST, logits, NULL), TERN_OK);
        float smallest = INFINITY;
        for (size_t k = 0; k < n_vocab; k++) {
            assert_true(isfinite(logits[k]));
            nonzero += logits[k] != 0.0f;
            smallest = logits[k] < smallest ? logits[k] : smallest;
        }
        assert_true(nonzero > n_vocab / 2);
        assert_true(logits[tern_argmax(logits, n_vocab)] > smallest);
        tern_session_free(&s);
        tern_model_free(&model);
    }
}

/* The logits depend on the last token, on earlier ones, and on the order of the tokens. */
static void test_every_token_matters(void **state) {
    static const int32_t prompts[][3] = {{5, 6, 7}, {5, 6, 8}, {5, 9, 7}, {4, 6, 7}, {6, 5, 7}};
    enum { N = sizeof prompts / sizeof *prompts };
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        float *logits[N];
        tern_model *model = tiny_open(tiny_presets()[i], NULL);
        tern_session *s = tiny_session(model, params(1, 0, TERN_FORMAT_F32));
        const size_t bytes = vocabulary(s) * sizeof(float);
        check_case("%s", tiny_presets()[i]);
        for (size_t k = 0; k < N; k++) {
            logits[k] = tiny_floats(vocabulary(s));
            assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
            assert_int_equal(tern_session_eval(s, prompts[k], 3, TERN_LOGITS_LAST, logits[k], NULL),
                             TERN_OK);
            for (size_t j = 0; j < k; j++)
                assert_memory_not_equal(logits[j], logits[k], bytes);
        }
        for (size_t k = 0; k < N; k++)
            free(logits[k]);
        tern_session_free(&s);
        tern_model_free(&model);
    }
}

/* NONE, LAST and ALL agree on the tokens that they have in common. */
static void test_logits_modes(void **state) {
    int32_t tokens[20];
    tern_model *model = tiny_open("llama-tiny-q4_1", NULL);
    tern_session *s = tiny_session(model, params(2, 8, TERN_FORMAT_F16));
    const size_t n_vocab = vocabulary(s);
    (void)state;
    tiny_prompt(model, 3, tokens, 20);
    float *all = eval_pieces(s, tokens, 20, 20);
    float *last = tern_session_logits(s);
    check_case("logits of the last token");
    assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
    assert_int_equal(tern_session_eval(s, tokens, 20, TERN_LOGITS_LAST, last, NULL), TERN_OK);
    check_floats("logits", all + 19 * n_vocab, last, n_vocab);

    assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
    assert_int_equal(tern_session_eval(s, tokens, 19, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    assert_int_equal(tern_session_position(s), 19);
    memset(last, 0, n_vocab * sizeof *last);
    assert_int_equal(tern_session_eval(s, tokens + 19, 1, TERN_LOGITS_ALL, last, NULL), TERN_OK);
    check_floats("logits", all + 19 * n_vocab, last, n_vocab);
    free(all);
    tern_session_free(&s);
    tern_model_free(&model);
}

/* ---- decoding -----------------------------------------------------------------------------------
 */

enum { GREEDY_TOKENS = 16 };

static void greedy(const tern_model *model, uint32_t threads, int32_t *out) {
    int32_t prompt[5];
    tern_session *s = tiny_session(model, params(threads, 0, TERN_FORMAT_F16));
    float *logits = tern_session_logits(s);
    tiny_prompt(model, 11, prompt, 5);
    assert_int_equal(tern_session_eval(s, prompt, 5, TERN_LOGITS_LAST, logits, NULL), TERN_OK);
    for (size_t i = 0; i < GREEDY_TOKENS; i++) {
        out[i] = tern_argmax(logits, vocabulary(s));
        assert_int_equal(tern_session_eval(s, out + i, 1, TERN_LOGITS_LAST, logits, NULL), TERN_OK);
    }
    tern_session_free(&s);
}

/* AC:1, AC:6. Sixteen greedy tokens are the same on every instruction set and thread count. */
static void test_greedy_16_tokens(void **state) {
    const char *isas[MAX_ISAS];
    const size_t n_isas = tiny_isas(isas, MAX_ISAS);
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        int32_t first[GREEDY_TOKENS];
        /* If the scaled embedding is the head too, random layers add too little to it for a token
         * other than the one before. */
        bool varied = strncmp(tiny_presets()[i], "gemma", strlen("gemma")) == 0;
        for (size_t k = 0; k < n_isas; k++) {
            tern_model *model = tiny_open(tiny_presets()[i], isas[k]);
            for (uint32_t threads = 1; threads <= 3; threads++) {
                int32_t tokens[GREEDY_TOKENS];
                check_case("%s, %s, %u threads: greedy", tiny_presets()[i], isas[k], threads);
                greedy(model, threads, k == 0 && threads == 1 ? first : tokens);
                if (k > 0 || threads > 1)
                    check_bytes("tokens", first, tokens, sizeof first);
            }
            tern_model_free(&model);
        }
        for (size_t k = 1; k < GREEDY_TOKENS; k++)
            varied = varied || first[k] != first[0];
        if (!varied)
            check_fail("the model says the same token over and over");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_answer_bitnet),    cmocka_unit_test(test_one_answer_llama),
        cmocka_unit_test(test_one_answer_f32_cache), cmocka_unit_test(test_one_answer_q8_0_cache),
        cmocka_unit_test(test_bos_nonzero),          cmocka_unit_test(test_every_token_matters),
        cmocka_unit_test(test_logits_modes),         cmocka_unit_test(test_greedy_16_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
