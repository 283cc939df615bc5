/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole forward pass against one that uses the reference functions alone, token by token, on
 * the weights as the file stores them: the same logits and the same cache, bit for bit.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/engine/plain_pass.h"

static void check_caches(const plain *p, const tern_session *s) {
    for (uint32_t layer = 0; layer < p->info.n_layer; layer++)
        for (uint32_t head = 0; head < p->info.n_head_kv; head++)
            for (uint32_t i = 0; i < TOKENS && !tern_config_is_delta(p->config, layer); i++) {
                check_bytes("K", cached(p, p->k, layer, head, i),
                            tern_session_kv(s, false, layer, head, i), p->row_bytes);
                check_bytes("V", cached(p, p->v, layer, head, i),
                            tern_session_kv(s, true, layer, head, i), p->row_bytes);
            }
}

static void check_preset(const char *preset, tern_format kv) {
    int32_t tokens[TOKENS];
    tern_model *model = tiny_open(preset, NULL);
    tern_session *s = tiny_session(
        model, (tern_session_params){.n_ctx = TOKENS, .n_batch = 32, .threads = 2, .kv = kv});
    plain p = plain_new(preset, model, kv);
    const size_t n_vocab = p.info.n_vocab;
    float *want = tiny_floats(n_vocab * TOKENS);
    float *got = tiny_floats(n_vocab * TOKENS);
    tiny_prompt(model, 13, tokens, TOKENS);
    for (size_t i = 0; i < TOKENS; i++)
        run_token(&p, head_of(&p), tokens[i], i, want + i * n_vocab);
    check_case("%s, cache %s, against the reference", preset, tern_format_describe(kv)->name);
    assert_int_equal(tern_session_eval(s, tokens, TOKENS, TERN_LOGITS_ALL, got, NULL), TERN_OK);
    check_floats("logits", want, got, n_vocab * TOKENS);
    check_caches(&p, s);
    free(want);
    free(got);
    plain_free(&p);
    tern_session_free(&s);
    tern_model_free(&model);
}

static void test_f16_cache(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        check_preset(tiny_presets()[i], TERN_FORMAT_F16);
}

static void test_f32_cache(void **state) {
    (void)state;
    check_preset("bitnet-tiny-odd", TERN_FORMAT_F32);
    check_preset("llama-tiny-q4_1", TERN_FORMAT_F32);
}

/* Each architecture; formats of weights, which do not change what is stored, have a preset each. */
static void test_q8_0_cache(void **state) {
    static const char formats[] = "llama-tiny-";

    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        if (strncmp(tiny_presets()[i], formats, strlen(formats)) != 0)
            check_preset(tiny_presets()[i], TERN_FORMAT_Q8_0);
    check_preset("llama-tiny-q4_1", TERN_FORMAT_Q8_0);
}

/* ---- experts --------------------------------------------------------------------------------- */

static float *all_logits(const char *preset, const tern_model *model, const int32_t *tokens);
static void check_kinds(const tern_model *model, const int32_t *tokens, const float *want,
                        tern_session_params params);

/* Pretends that the file asks for clamped gates, other weights, and one expert or all of them. */
static void check_experts(const char *preset, uint32_t used, bool norm, float clamp) {
    static const uint32_t batches[] = {1, 7, 70}, threads[] = {1, 2, 3};
    const char *isas[16];
    int32_t tokens[TOKENS];
    const size_t n_isas = tiny_isas(isas, 16);
    float *want = NULL;
    for (size_t i = 0; i < n_isas; i++) {
        tern_model *model = tiny_open(preset, isas[i]);
        model->config.n_used = used;
        model->config.expert_norm = norm;
        model->config.expert_clamp = clamp;
        model->config.expert_scale = 1.5f;
        tiny_prompt(model, 13, tokens, TOKENS);
        if (want == NULL)
            want = all_logits(preset, model, tokens);
        for (size_t k = 0; k < 3; k++) {
            check_case("%s, %s, %u experts, batch %u", preset, isas[i], used, batches[k]);
            check_kinds(model, tokens, want,
                        (tern_session_params){.n_ctx = TOKENS,
                                              .n_batch = batches[k],
                                              .threads = threads[k],
                                              .kv = TERN_FORMAT_F16});
        }
        tern_model_free(&model);
    }
    free(want);
}

static void test_experts(void **state) {
    (void)state;
    check_experts("maple-tiny", 1, true, 0.5f);
    check_experts("maple-tiny", 8, false, 0.25f);
    check_experts("olmoe-tiny", 2, true, 0.0f);
    check_experts("qwen3moe-tiny", 5, false, 1.0f);
    check_experts("gpt-oss-tiny", 3, true, 0.5f);
    check_experts("gpt-oss-tiny-nvfp4", 3, true, 0.5f);
}

/* ---- layers of two kinds ----------------------------------------------------------------------
 */

/* Makes a model's layers two kinds, as if its architecture had them. */
typedef struct two_kinds {
    tern_arch arch;
    tern_arch_second_kind second;
    tern_model *model;
} two_kinds;

static void open_two_kinds(two_kinds *t, const char *preset, const char *isa, uint32_t period) {
    t->model = tiny_open(preset, isa);
    t->arch = *t->model->config.arch;
    t->second = (tern_arch_second_kind){
        .period = period,
        .kind = {.window = 0, .rope_base = 77.0f, .rope_scale = 0.5f, .rope_gain = 1.0}};
    t->arch.second = &t->second;
    t->model->config.arch = &t->arch;
    assert_int_equal(tern_config_kinds(t->model->file, &t->model->config, NULL), TERN_OK);
    assert_int_equal(t->model->config.n_kinds, 2);
    assert_int_equal(tern_model_use_kinds(t->model, NULL), TERN_OK);
}

/* The reference's logits of all tokens, for a model as it is. */
static float *all_logits(const char *preset, const tern_model *model, const int32_t *tokens) {
    plain p = plain_new(preset, model, TERN_FORMAT_F16);
    float *logits = tiny_floats((size_t)p.info.n_vocab * TOKENS);
    for (size_t i = 0; i < TOKENS; i++)
        run_token(&p, head_of(&p), tokens[i], i, logits + i * p.info.n_vocab);
    plain_free(&p);
    return logits;
}

/* The same with every `period`-th layer of the first kind. */
static float *plain_logits(const char *preset, const tern_model *model, uint32_t period,
                           const int32_t *tokens) {
    plain p = plain_new(preset, model, TERN_FORMAT_F16);
    float *logits = tiny_floats((size_t)p.info.n_vocab * TOKENS);
    p.period = period;
    tern_rope_frequencies(77.0, 0.5, NULL, p.info.head_dim, p.frequency[1]);
    for (size_t i = 0; i < TOKENS; i++)
        run_token(&p, head_of(&p), tokens[i], i, logits + i * p.info.n_vocab);
    plain_free(&p);
    return logits;
}

/* Checks all logits, then those of the last token, where the last layer computes fewer queries. */
static void check_kinds(const tern_model *model, const int32_t *tokens, const float *want,
                        tern_session_params params) {
    const size_t n_vocab = model->config.n_vocab;
    tern_session *s = tiny_session(model, params);
    float *got = tiny_floats(n_vocab * TOKENS);
    assert_int_equal(tern_session_eval(s, tokens, TOKENS, TERN_LOGITS_ALL, got, NULL), TERN_OK);
    check_floats("logits", want, got, n_vocab * TOKENS);
    tern_session_free(&s);
    s = tiny_session(model, params);
    assert_int_equal(tern_session_eval(s, tokens, TOKENS, TERN_LOGITS_LAST, got, NULL), TERN_OK);
    check_floats("last logits", want + (TOKENS - 1) * n_vocab, got, n_vocab);
    free(got);
    tern_session_free(&s);
}

/* Each layer uses the rope of its kind, as in the reference, on every set, batch and thread
 * count. */
static void check_two_kinds(const char *preset, uint32_t period) {
    static const uint32_t batches[] = {1, 7, 32}, threads[] = {1, 2, 3};
    const char *isas[16];
    int32_t tokens[TOKENS];
    const size_t n_isas = tiny_isas(isas, 16);
    tern_model *one = tiny_open(preset, NULL);
    tiny_prompt(one, 13, tokens, TOKENS);
    float *want = plain_logits(preset, one, period, tokens);
    float *of_one = plain_logits(preset, one, 1, tokens);
    const size_t n_vocab = one->config.n_vocab;
    assert_int_equal(one->config.n_kinds, 1);
    assert_memory_not_equal(want + n_vocab, of_one + n_vocab, n_vocab * sizeof *want);
    for (size_t i = 0; i < n_isas; i++) {
        two_kinds t;
        open_two_kinds(&t, preset, isas[i], period);
        for (size_t k = 0; k < 3; k++) {
            check_case("%s, %s, period %u, batch %u", preset, isas[i], period, batches[k]);
            check_kinds(t.model, tokens, want,
                        (tern_session_params){.n_ctx = TOKENS,
                                              .n_batch = batches[k],
                                              .threads = threads[k],
                                              .kv = TERN_FORMAT_F16});
        }
        tern_model_free(&t.model);
    }
    free(want);
    free(of_one);
    tern_model_free(&one);
}

static void test_two_kinds(void **state) {
    (void)state;
    check_two_kinds("bitnet-tiny", 2);     /* the first layer is of the second kind */
    check_two_kinds("llama-tiny-q4_1", 3); /* both layers are of the second kind */
}

/* Windows that begin anywhere in a page, for several batches and threads, as in the reference. */
static void test_window(void **state) {
    static const uint32_t batches[] = {1, 7, 32}, threads[] = {1, 2, 3};
    const char *isas[16];
    int32_t tokens[TOKENS];
    const size_t n_isas = tiny_isas(isas, 16);
    (void)state;
    for (size_t i = 0; i < n_isas; i++) {
        tern_model *model = tiny_open("gemma3-tiny", isas[i]);
        assert_int_equal(model->config.kinds[1].window, 6);
        tiny_prompt(model, 13, tokens, TOKENS);
        float *want = all_logits("gemma3-tiny", model, tokens);
        for (size_t k = 0; k < 3; k++) {
            check_case("windows, %s, batch %u", isas[i], batches[k]);
            check_kinds(model, tokens, want,
                        (tern_session_params){.n_ctx = TOKENS,
                                              .n_batch = batches[k],
                                              .threads = threads[k],
                                              .kv = TERN_FORMAT_F16});
        }
        free(want);
        tern_model_free(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_cache),  cmocka_unit_test(test_f32_cache),
        cmocka_unit_test(test_q8_0_cache), cmocka_unit_test(test_experts),
        cmocka_unit_test(test_two_kinds),  cmocka_unit_test(test_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
