/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention split between workers (device/processor_attend.c). Any number of threads, passes of any
 * size and any number of chunks give the same logits and cache as one thread that takes one token
 * at a time.
 */
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

#define SHIPPED TERN_SOURCE_DIR "/models/tern-small.gguf"

/* The chunks of two heads are then split unevenly between five threads. */
enum { TOKENS = 2 * TERN_ATTEND_CHUNK + 29 };

static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Small passes, which are split by chunks, alternate with larger ones, which are not. */
static const size_t passes[] = {TERN_ATTEND_CHUNK - 2, 1, 2, 3, 1, 4, 5, 1, 9, 1, 4, 13};
enum { PASSES = sizeof passes / sizeof *passes };

static void check_split(const char *name, const tern_model *model, tern_format kv) {
    tern_model_info info;
    int32_t tokens[TOKENS];
    const tern_session_params alone = {.n_ctx = TOKENS, .threads = 1, .kv = kv};
    tern_session *single = tiny_session(model, alone);
    const float *want = NULL;

    tern_model_describe(model, &info);
    tiny_prompt(model, 11, tokens, TOKENS);
    for (size_t i = 0; i < TOKENS; i++)
        want = tiny_eval(single, tokens + i, 1);
    for (uint32_t threads = 1; threads <= 5; threads++) {
        const tern_session_params shared = {.n_ctx = TOKENS, .threads = threads, .kv = kv};
        tern_session *s = tiny_session(model, shared);
        const float *got = NULL;
        check_case("%s, cache %s, %u threads", name, tern_format_describe(kv)->name, threads);
        for (size_t i = 0, n, k = 0; i < TOKENS; i += n, k++) {
            n = passes[k % PASSES] < TOKENS - i ? passes[k % PASSES] : TOKENS - i;
            got = tiny_eval(s, tokens + i, n);
        }
        check_floats("logits", want, got, info.n_vocab);
        tiny_same_cache(single, s, TOKENS);
        tern_session_free(&s);
    }
    tern_session_free(&single);
}

static void test_tiny_models(void **state) {
    static const char *const presets[] = {"bitnet-tiny", "llama-tiny-f32", "falcon3-tiny"};
    (void)state;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        tern_model *model = tiny_open(presets[i], NULL);
        for (size_t f = 0; f < (i == 0 ? FORMATS : 1); f++)
            check_split(presets[i], model, formats[f]);
        tern_model_free(&model);
    }
}

static void test_shipped_model(void **state) {
    tern_model *model = NULL;
    (void)state;
    assert_int_equal(tern_model_open(SHIPPED, NULL, &model, NULL), TERN_OK);
    check_split("tern-small", model, TERN_FORMAT_F16);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny_models),
        cmocka_unit_test(test_shipped_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
