/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sound weights whose numbers overflow while they run. The error names the place, which is the same
 * for any number of threads and tokens, and the session stays as it was. Without the check, codes,
 * exp, relu and norms would turn such numbers into finite nonsense.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/finite.h"
#include "device/processor.h"
#include "kernels/half.h"
#include "runtime/engine/forward/overflow.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* ---- checked numbers ------------------------------------------------------------------------- */

static void test_all_below(void **state) {
    static const float wrong[] = {INFINITY, -INFINITY, NAN, -NAN, 2.0f, -2.0f, 3e38f};
    float x[70] = {0};
    (void)state;
    for (size_t n = 0; n <= 70; n++) {
        for (size_t i = 0; i < n; i++)
            x[i] = i % 2 ? nextafterf(2.0f, 0.0f) : -nextafterf(2.0f, 0.0f);
        assert_true(tern_all_below(x, n, 2.0f));
        for (size_t i = 0; i < n; i++) {
            const float before = x[i];
            x[i] = wrong[(n + i) % 7];
            assert_false(tern_all_below(x, n, 2.0f));
            assert_true(tern_all_below(x, n, INFINITY) == isfinite(x[i]));
            x[i] = before;
        }
    }
}

static void test_squares(void **state) {
    enum { N = 2560 };
    static float x[N];
    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = 0x1p57f; /* 2560 * 2^114 < 2^126 */
    assert_true(tern_squares_fit(x, N));
    x[7] = 0x1.6bp63f;
    assert_true(tern_squares_fit(x, N));
    x[7] = 0x1p64f;
    assert_false(tern_squares_fit(x, N));
    x[7] = NAN;
    assert_false(tern_squares_fit(x, N));
}

/* Values from the limit on are stored as infinite; values below it are not. */
static void test_cache_limits(void **state) {
    const float half = tern_cache_limit(TERN_FORMAT_F16);
    const float codes = tern_cache_limit(TERN_FORMAT_Q8_0);
    (void)state;
    assert_int_equal(tern_f32_to_f16(half), 0x7c00);
    assert_int_equal(tern_f32_to_f16(nextafterf(half, 0.0f)), 0x7bff);
    assert_int_equal(tern_f32_to_f16(codes / 127.0f), 0x7c00);
    assert_int_equal(tern_f32_to_f16(nextafterf(codes, 0.0f) / 127.0f), 0x7bff);
    assert_true(isinf(tern_cache_limit(TERN_FORMAT_F32)));
}

/* Notes a row with an infinity, as a pass does. */
static void note(tern_overflow *o, size_t layer, tern_overflow_place place) {
    float x = INFINITY;
    const tern_device_place at = {.sequence = 0};
    const tern_device_watch a = {.x = {.data = &x, .stride = 1, .n = 1, .rows = 1},
                                 .group = 1,
                                 .limit = INFINITY,
                                 .code = tern_overflow_code(layer, place),
                                 .notes = o,
                                 .at = &at};
    assert_int_equal(tern_processor_watch(NULL, NULL, &a, NULL), TERN_OK);
}

static void test_earliest(void **state) {
    tern_overflow o = TERN_NO_OVERFLOW;
    tern_error err = {0};
    (void)state;
    assert_int_equal(tern_overflow_tell(&o, TERN_FORMAT_F16, &err), TERN_OK);
    note(&o, 3, TERN_OVERFLOW_SUM);
    note(&o, 2, TERN_OVERFLOW_GATE);
    note(&o, 2, TERN_OVERFLOW_CACHE);
    note(&o, 2, TERN_OVERFLOW_ACTIVATION);
    assert_int_equal(tern_overflow_tell(&o, TERN_FORMAT_F16, &err), TERN_ERR_NONFINITE);
    assert_non_null(strstr(err.message, "overflow: a key or value of the cache in f16 in layer 2"));
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Sets all floats of a tensor, or of its last row. An I2_S tensor gets the scale; a tensor of
 * another quantized format becomes one of floats, which are zeros elsewhere. */
static void fill(tiny_file *f, const char *name, float value, bool last_row) {
    const tiny_tensor *old = tiny_find(f, name);
    const uint64_t ne[2] = {old->ne[0], old->ne[1]};
    if (tern_format_from_gguf(old->type) == TERN_FORMAT_I2_S) {
        memcpy(old->data + ne[0] * ne[1] / 4, &value, sizeof value);
        return;
    }
    tiny_remove(f, name);
    const tiny_tensor *t = tiny_add(f, name, TERN_FORMAT_F32, ne[0], ne[1]);
    for (size_t i = last_row ? ne[0] * (ne[1] - 1) : 0; i < ne[0] * ne[1]; i++)
        memcpy(t->data + i * sizeof value, &value, sizeof value);
}

typedef struct example {
    const char *preset;
    tern_format kv;
    struct {
        const char *name;
        float value;
    } tensors[2];
    const char *text; /* NULL: no error */
} example;

/* Evaluates some tokens at once. The evaluation must give the expected error. */
static void check_run(const example *e, const tern_model *model, uint32_t threads, size_t tokens) {
    static const int32_t ids[] = {3, 4, 5, 6, 7};
    tern_error err = {0};
    tern_session *s = tiny_session(model, (tern_session_params){.threads = threads, .kv = e->kv});
    const tern_status status = tern_session_eval(s, ids, tokens, TERN_LOGITS_NONE, NULL, &err);
    check_case("%s, %s: %u threads, %zu tokens", e->preset, e->tensors[0].name, threads, tokens);
    assert_int_equal(status, e->text == NULL ? TERN_OK : TERN_ERR_NONFINITE);
    assert_int_equal(tern_session_position(s), e->text == NULL ? tokens : 0);
    if (e->text != NULL && strstr(err.message, e->text) == NULL)
        check_fail("message is: %s", err.message);
    tern_session_free(&s);
}

static void check_example(const example *e, bool last_row) {
    tern_error err = {0};
    char path[TINY_PATH_BYTES];
    tern_model *model = NULL;
    tiny_file file = tiny_read(e->preset);
    for (size_t t = 0; t < 2 && e->tensors[t].name != NULL; t++)
        fill(&file, e->tensors[t].name, e->tensors[t].value, last_row);
    tiny_path(path);
    tiny_write(&file, path);
    if (tern_model_open(path, NULL, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    unlink(path);
    for (uint32_t threads = 1; threads <= 3; threads += 2)
        for (size_t tokens = 1; tokens <= 5; tokens += 2)
            check_run(e, model, threads, tokens);
    tern_model_free(&model);
    tiny_file_free(&file);
}

static void test_models(void **state) {
    static const example examples[] = {
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"token_embd.weight", 3e38f}}, "embedding in layer 0"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"token_embd.weight", 1e20f}}, "embedding in layer 0"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"token_embd.weight", 1e10f}}, NULL},
        {"llama-tiny-f32",
         TERN_FORMAT_F16,
         {{"blk.1.ffn_down.weight", 3e38f}},
         "stream in layer 1"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"blk.1.attn_q.weight", 3e38f}}, "query in layer 1"},
        {"qwen3-tiny", TERN_FORMAT_F16, {{"blk.0.attn_q.weight", 1e25f}}, "query in layer 0"},
        {"qwen3-tiny", TERN_FORMAT_F16, {{"blk.0.attn_k.weight", 1e25f}}, "query in layer 0"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"blk.0.attn_k.weight", 1e7f}}, "in f16 in layer 0"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"blk.1.attn_v.weight", 1e7f}}, "in f16 in layer 1"},
        {"llama-tiny-f32", TERN_FORMAT_F32, {{"blk.0.attn_k.weight", 1e7f}}, NULL},
        {"llama-tiny-f32", TERN_FORMAT_Q8_0, {{"blk.0.attn_k.weight", 1e9f}}, "in q8_0 in layer 0"},
        {"llama-tiny-f32",
         TERN_FORMAT_F32,
         {{"blk.0.attn_q.weight", 1e25f}, {"blk.0.attn_k.weight", 1e25f}},
         "result of attention in layer 0"},
        {"bitnet-tiny", TERN_FORMAT_F16, {{"blk.1.ffn_gate.weight", 3e38f}}, "a gate in layer 1"},
        {"bitnet-tiny",
         TERN_FORMAT_F16,
         {{"blk.1.ffn_gate.weight", 1e25f}},
         "activation in layer 1"},
        {"llama-tiny-f32",
         TERN_FORMAT_F32,
         {{"blk.0.ffn_gate.weight", 1e25f}, {"blk.0.ffn_up.weight", 1e25f}},
         "activation in layer 0"},
        {"bonsai2-tiny",
         TERN_FORMAT_F16,
         {{"output_norm.weight", 5e37f}},
         "Hadamard transform in layer 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check_example(&examples[i], false);
}

/* Only one number of many, the last one. */
static void test_last_number(void **state) {
    static const example examples[] = {
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"blk.1.ffn_down.weight", 3e38f}}, "stream"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"blk.1.ffn_up.weight", 3e38f}}, "activation"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"blk.0.attn_q.weight", 3e38f}}, "query in layer 0"},
        {"llama-tiny-f32", TERN_FORMAT_F16, {{"blk.0.attn_v.weight", 1e7f}}, "in f16 in layer 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check_example(&examples[i], true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_below),    cmocka_unit_test(test_squares),
        cmocka_unit_test(test_cache_limits), cmocka_unit_test(test_earliest),
        cmocka_unit_test(test_models),       cmocka_unit_test(test_last_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
