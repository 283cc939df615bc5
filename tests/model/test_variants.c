/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models whose files differ from the usual in permitted ways: the choice of the head, biases,
 * rotation factors, loose alignment, weights that overflow; and opening a model at all.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/half.h"
#include "runtime/engine/forward/overflow.h"
#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { TOKENS = 7 };

static tern_model *open_file(const tiny_file *file) {
    char path[TINY_PATH_BYTES];
    tern_error err = {0};
    tern_model *model = NULL;
    tiny_path(path);
    tiny_write(file, path);
    const tern_status status = tern_model_open(path, NULL, &model, &err);
    unlink(path);
    if (status != TERN_OK)
        check_fail("%s", err.message);
    return model;
}

/* Logits of all tokens of a fixed prompt. */
static float *logits_of(const tiny_file *file, size_t *n) {
    int32_t tokens[TOKENS];
    tern_model_info info;
    tern_model *model = open_file(file);
    tern_session *s = tiny_session(
        model, (tern_session_params){.n_ctx = 16, .threads = 2, .kv = TERN_FORMAT_F16});
    tern_model_describe(model, &info);
    tiny_prompt(model, 2, tokens, TOKENS);
    *n = (size_t)TOKENS * info.n_vocab;
    float *logits = tiny_floats(*n);
    assert_int_equal(tern_session_eval(s, tokens, TOKENS, TERN_LOGITS_ALL, logits, NULL), TERN_OK);
    tern_session_free(&s);
    tern_model_free(&model);
    return logits;
}

static void check_logits(const tiny_file *a, const tiny_file *b, bool same) {
    size_t n;
    size_t also_n;
    float *want = logits_of(a, &n);
    float *got = logits_of(b, &also_n);
    assert_int_equal(n, also_n);
    if (same)
        check_floats("logits", want, got, n);
    else if (memcmp(want, got, n * sizeof *want) == 0)
        check_fail("the logits are the same, and must not be");
    free(want);
    free(got);
}

static void put_floats(tiny_tensor *t, float value) {
    for (size_t i = 0; i < t->bytes / sizeof value; i++)
        memcpy(t->data + i * sizeof value, &value, sizeof value);
}

/* ---- the head
 * ------------------------------------------------------------------------------------- */

/* bitnet: token_embd is the head, even if there is an output.weight with other values. */
static void test_bitnet_head(void **state) {
    tiny_file plain = tiny_read("bitnet-tiny");
    tiny_file both = tiny_read("bitnet-tiny");
    (void)state;
    check_case("bitnet with output.weight");
    put_floats(tiny_add(&both, "output.weight", TERN_FORMAT_F32, 256, 515), 0.25f);
    check_logits(&plain, &both, true);
    tiny_file_free(&plain);
    tiny_file_free(&both);
}

/* llama: the head is output.weight if there is one, else token_embd. */
static void test_llama_head(void **state) {
    tiny_file own = tiny_read("llama-tiny-f32");
    tiny_file tied = tiny_read("llama-tiny-f32");
    tiny_file copied = tiny_read("llama-tiny-f32");
    (void)state;
    check_case("llama with and without output.weight");
    tiny_remove(&tied, "output.weight");
    const tiny_tensor *embedding = tiny_find(&copied, "token_embd.weight");
    memcpy(tiny_find(&copied, "output.weight")->data, embedding->data, embedding->bytes);
    check_logits(&own, &tied, false);
    check_logits(&tied, &copied, true);
    tiny_file_free(&own);
    tiny_file_free(&tied);
    tiny_file_free(&copied);
}

static void test_llama_head_of_another_format(void **state) {
    tiny_file file = tiny_read("llama-tiny-q8_0");
    const tern_kernel_row *kernels[64];
    bool float_head = false;
    (void)state;
    check_case("Q8_0 body, F32 head");
    put_floats(tiny_add(&file, "output.weight", TERN_FORMAT_F32, 96, 307), 0.25f);
    tern_model *model = open_file(&file);
    const size_t n = tern_model_kernels(model, TERN_FORMAT_F32, kernels, 64);
    for (size_t i = 0; i < n; i++)
        float_head =
            float_head || (kernels[i]->op == TERN_OP_GEMV && kernels[i]->format == TERN_FORMAT_F32);
    assert_true(float_head);
    tern_model_free(&model);
    tiny_file_free(&file);
}

/* ---- optional tensors ------------------------------------------------------------------------ */

static void test_biases(void **state) {
    static const char *const names[] = {"blk.0.attn_q.bias", "blk.1.attn_k.bias",
                                        "blk.1.attn_v.bias"};
    static const uint64_t widths[] = {96, 48, 48};
    tiny_file plain = tiny_read("llama-tiny-q8_0");
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tiny_file biased = tiny_read("llama-tiny-q8_0");
        tiny_tensor *bias = tiny_add(&biased, names[i], TERN_FORMAT_F32, widths[i], 0);
        check_case("%s", names[i]);
        check_logits(&plain, &biased, true); /* the bias is zero */
        for (size_t k = 0; k < widths[i]; k++) {
            const float value = (float)k * 0.125f;
            memcpy(bias->data + k * sizeof value, &value, sizeof value);
        }
        check_logits(&plain, &biased, false);
        tiny_file_free(&biased);
    }
    tiny_file_free(&plain);
}

/* ---- factors of whole matrices ---- */

/* Multiplies n floats by a power of two, in place: exactly. */
static void scale_floats(uint8_t *data, size_t n, float factor) {
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, data + i * sizeof value, sizeof value);
        value *= factor;
        memcpy(data + i * sizeof value, &value, sizeof value);
    }
}

/* The same for n halves, `step` bytes apart, with a power of two: 0 stays. */
static void scale_halves(uint8_t *data, size_t n, size_t step, int power) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, data + i * step, sizeof half);
        half = (uint16_t)(tern_f32_to_f16(ldexpf(tern_f16_to_f32(half), power)));
        memcpy(data + i * step, &half, sizeof half);
    }
}

static void add_factor(tiny_file *file, const char *name, float value) {
    put_floats(tiny_add(file, name, TERN_FORMAT_F32, 1, 0), value);
}

/* A factor beside a matrix does what it does inside, and one of inputs does nothing: powers of two
 * are exact in both places. */
static void test_factor_of_matrix(void **state) {
    static const char *const names[] = {"blk.0.attn_q", "blk.1.attn_output", "blk.1.ffn_down",
                                        "blk.0.ffn_gate", "output"};
    char name[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tiny_file inside = tiny_read("llama-tiny-f32");
        tiny_file beside = tiny_read("llama-tiny-f32");
        tiny_file plain = tiny_read("llama-tiny-f32");
        check_case("a factor of %s", names[i]);
        (void)snprintf(name, sizeof name, "%s.weight", names[i]);
        tiny_tensor *t = tiny_find(&inside, name);
        scale_floats(t->data, t->bytes / sizeof(float), 4.0f);
        (void)snprintf(name, sizeof name, "%s.input_scale", names[i]);
        add_factor(&plain, name, 3.0f);
        add_factor(&beside, name, 3.0f);
        (void)snprintf(name, sizeof name, "%s.scale", names[i]);
        add_factor(&beside, name, 4.0f);
        check_logits(&inside, &beside, true);
        check_logits(&plain, &beside, false);
        tiny_file_free(&inside);
        tiny_file_free(&beside);
        tiny_file_free(&plain);
    }
}

/* The factor of a matrix that is joined is that of all its pieces. */
static void test_factor_of_joined(void **state) {
    static const char *const names[] = {"blk.0.attn_qkv", "blk.1.ffn_up"};
    char name[64];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tiny_file inside = tiny_read("phi3-tiny");
        tiny_file beside = tiny_read("phi3-tiny");
        check_case("a factor of %s", names[i]);
        (void)snprintf(name, sizeof name, "%s.weight", names[i]);
        tiny_tensor *t = tiny_find(&inside, name);
        scale_halves(t->data, t->bytes / 18, 18, -1); /* q4_0 */
        (void)snprintf(name, sizeof name, "%s.scale", names[i]);
        add_factor(&beside, name, 0.5f);
        (void)snprintf(name, sizeof name, "%s.input_scale", names[i]);
        add_factor(&beside, name, 3.0f);
        check_logits(&inside, &beside, true);
        tiny_file_free(&inside);
        tiny_file_free(&beside);
    }
}

/* Each expert has a factor of its own. */
static void test_factors_of_experts(void **state) {
    static const int powers[] = {1, -1, 0, 2, -2};
    tiny_file inside = tiny_read("olmoe-tiny");
    tiny_file beside = tiny_read("olmoe-tiny");
    (void)state;
    check_case("factors of experts");
    tiny_tensor *t = tiny_find(&inside, "blk.1.ffn_up_exps.weight");
    tiny_tensor *factors = tiny_add(&beside, "blk.1.ffn_up_exps.scale", TERN_FORMAT_F32, 5, 0);
    for (size_t e = 0; e < 5; e++) {
        const float factor = ldexpf(1.0f, powers[e]);
        memcpy(factors->data + e * sizeof factor, &factor, sizeof factor);
        scale_halves(t->data + t->bytes / 5 * e, t->bytes / 5 / 2, 2, powers[e]);
    }
    check_logits(&inside, &beside, true);
    tiny_file_free(&inside);
    tiny_file_free(&beside);
}

/* A float head with a factor gets no image, whose bounds would not be those of its logits. */
static void test_head_with_factor(void **state) {
    (void)state;
    for (int scaled = 0; scaled < 2; scaled++) {
        tiny_file file = tiny_read("llama-tiny-f32");
        check_case("%s factor of the head", scaled ? "a" : "no");
        if (scaled)
            add_factor(&file, "output.scale", 4.0f);
        tern_model *model = open_file(&file);
        assert_int_equal(tern_head_is_imaged(&model->image), !scaled);
        tern_model_free(&model);
        tiny_file_free(&file);
    }
}

static void test_rotation_factors(void **state) {
    tiny_file plain = tiny_read("llama-tiny-f16");
    tiny_file scaled = tiny_read("llama-tiny-f16");
    tiny_tensor *factors = tiny_add(&scaled, "rope_freqs.weight", TERN_FORMAT_F32, 11, 0);
    (void)state;
    check_case("rotation factors");
    put_floats(factors, 1.0f);
    check_logits(&plain, &scaled, true);
    put_floats(factors, 8.0f);
    check_logits(&plain, &scaled, false);
    tiny_file_free(&plain);
    tiny_file_free(&scaled);
}

/* ---- alignment
 * ------------------------------------------------------------------------------------- */

/* True if a float tensor of the file lies at an address that is not a multiple of its element
 * size. */
static bool has_misaligned(const tiny_file *file) {
    char path[TINY_PATH_BYTES];
    tern_gguf *gguf = NULL;
    bool found = false;
    tiny_path(path);
    tiny_write(file, path);
    assert_int_equal(tern_gguf_open(path, &gguf, NULL), TERN_OK);
    unlink(path);
    for (size_t i = 0; i < tern_gguf_tensor_count(gguf); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(gguf, i);
        found = found || (uintptr_t)t->data % (t->type == 0 ? 4 : 2) != 0;
    }
    tern_gguf_close(&gguf);
    return found;
}

/* Floats are read at addresses that suit their type, whatever the alignment of the file. */
static void check_places(const tiny_file *file) {
    char path[TINY_PATH_BYTES];
    tern_model *model = NULL;
    tiny_path(path);
    tiny_write(file, path);
    assert_int_equal(tern_model_open(path, NULL, &model, NULL), TERN_OK);
    unlink(path);
    for (uint32_t l = 0; l < model->config.n_layer; l++) {
        assert_int_equal((uintptr_t)model->layers[l].ffn_norm % sizeof(float), 0);
        for (size_t i = 0; i < tern_block_linears(model->config.arch, model->layers[l].kind); i++) {
            const tern_matrix *m = &tern_layer_linear(&model->layers[l], i)->matrix;
            const size_t element =
                m->layout == TERN_LAYOUT_ROWS ? tern_format_describe(m->format)->block_bytes : 64;
            assert_int_equal((uintptr_t)m->data % element, 0);
        }
    }
    tern_model_free(&model);
}

/* Files with general.alignment below 32, with the data moved byte by byte: the same logits. */
static void check_alignment(const char *preset, uint32_t alignment) {
    static const char *const fillers[] = {"", "x", "xx", "xxx"};
    tiny_file plain = tiny_read(preset);
    tiny_file loose = tiny_read(preset);
    bool misaligned = false;
    loose.alignment = alignment;
    for (size_t i = 0; i < 4; i++) {
        loose.filler = fillers[i];
        check_case("%s with alignment %u, moved by %zu", preset, alignment, i);
        misaligned = misaligned || has_misaligned(&loose);
        check_logits(&plain, &loose, true);
        check_places(&loose);
    }
    if (misaligned != (alignment < 2))
        check_fail("float tensors are %saligned", misaligned ? "mis" : "");
    tiny_file_free(&plain);
    tiny_file_free(&loose);
}

static void test_alignment(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        check_alignment(tiny_presets()[i], 4);
        check_alignment(tiny_presets()[i], 1);
    }
}

/* Norms may be stored as F16 or BF16, at any address. 1.5 is exact in all three types. */
static void check_norm_format(tern_format format, uint32_t alignment) {
    const uint16_t stored = format == TERN_FORMAT_F16 ? 0x3e00 : 0x3fc0;
    tiny_file plain = tiny_read("llama-tiny-q4_0");
    tiny_file narrow = tiny_read("llama-tiny-q4_0");
    check_case("norms in %s, alignment %u", tern_format_describe(format)->name, alignment);
    put_floats(tiny_find(&plain, "blk.1.ffn_norm.weight"), 1.5f);
    tiny_remove(&narrow, "blk.1.ffn_norm.weight");
    tiny_tensor *norm = tiny_add(&narrow, "blk.1.ffn_norm.weight", format, 96, 0);
    for (size_t i = 0; i < 96; i++)
        memcpy(norm->data + i * sizeof stored, &stored, sizeof stored);
    narrow.alignment = alignment;
    for (int i = 0; i < 2; i++) {
        narrow.filler = i ? "x" : "";
        check_logits(&plain, &narrow, true);
    }
    tiny_file_free(&plain);
    tiny_file_free(&narrow);
}

static void test_norm_formats(void **state) {
    (void)state;
    check_norm_format(TERN_FORMAT_F16, 4);
    check_norm_format(TERN_FORMAT_BF16, 4);
    check_norm_format(TERN_FORMAT_F16, 1);
    check_norm_format(TERN_FORMAT_BF16, 1);
}

/* ---- overflow
 * -------------------------------------------------------------------------------------- */

/* Finite weights with products that are not finite: the logits are refused, and the session is
 * unchanged. */
static void test_nonfinite_logits(void **state) {
    const int32_t tokens[] = {3, 4, 5};
    const float rows[3][2] = {{1, 2}, {3, -INFINITY}, {NAN, 0}};
    assert_int_equal(tern_check_logits(rows[0], 1, 2, NULL), TERN_OK);
    assert_int_equal(tern_check_logits(rows[0], 2, 2, NULL), TERN_ERR_NONFINITE);
    assert_int_equal(tern_check_logits(rows[2], 1, 2, NULL), TERN_ERR_NONFINITE);
    tern_error err = {0};
    tiny_file file = tiny_read("llama-tiny-f32");
    (void)state;
    check_case("logits that overflow");
    put_floats(tiny_find(&file, "output.weight"), 3e38f);
    tern_model *model = open_file(&file);
    tern_session *s = tiny_session(model, tern_session_params_default());
    float *logits = tern_session_logits(s);
    assert_int_equal(tern_session_eval(s, tokens, 2, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    assert_int_equal(tern_session_position(s), 2);
    assert_int_equal(tern_session_eval(s, tokens + 2, 1, TERN_LOGITS_LAST, logits, &err),
                     TERN_ERR_NONFINITE);
    assert_non_null(strstr(err.message, "logit of token 0 is not finite"));
    assert_int_equal(tern_session_position(s), 2);
    tern_session_free(&s);
    tern_model_free(&model);
    tiny_file_free(&file);
}

/* ---- opening
 * --------------------------------------------------------------------------------------- */

static void check_not_opened(const char *path, const char *isa, tern_status expected,
                             const char *text) {
    const tern_model_params params = {.isa = isa};
    tern_error err = {0};
    tern_model *model = NULL;
    check_case("open %s for %s", path, isa != NULL ? isa : "anything");
    assert_int_equal(tern_model_open(path, &params, &model, &err), expected);
    assert_null(model);
    if (strstr(err.message, text) == NULL)
        check_fail("message is: %s", err.message);
}

static void test_open_refuses(void **state) {
    char path[TINY_PATH_BYTES];
    tern_model *model = NULL;
    (void)state;
    check_not_opened("/nowhere/model.gguf", NULL, TERN_ERR_IO, "/nowhere/model.gguf");
    check_not_opened("/tmp", NULL, TERN_ERR_IO, "/tmp");
    check_not_opened("/nowhere/model.gguf", "avx1024", TERN_ERR_ISA, "scalar");
    assert_int_equal(tern_model_open(NULL, NULL, &model, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_model_open("/tmp", NULL, NULL, NULL), TERN_ERR_NULL);
    tiny_path(path); /* an empty file */
    check_not_opened(path, NULL, TERN_ERR_TRUNCATED, path);
    unlink(path);
    tern_model_free(NULL);
    tern_model_free(&model);
}

static void test_describe(void **state) {
    tern_model_info info;
    tiny_file file = tiny_read("bitnet-tiny");
    tern_model *model = open_file(&file);
    (void)state;
    check_case("facts about bitnet-tiny");
    tern_model_describe(model, &info);
    assert_string_equal(info.architecture, "bitnet-b1.58");
    assert_int_equal(info.n_layer, 2);
    assert_int_equal(info.n_embd, 256);
    assert_int_equal(info.n_ff, 640);
    assert_int_equal(info.n_head, 4);
    assert_int_equal(info.n_head_kv, 2);
    assert_int_equal(info.head_dim, 64);
    assert_int_equal(info.n_vocab, 515);
    assert_int_equal(info.n_ctx_train, 512);
    const uint64_t layer = 256 * 256 * 2 + 128 * 256 * 2 + 3 * 640 * 256;
    const uint64_t norms = 2 * (3 * 256 + 640) + 256;
    assert_int_equal(info.parameters, 2 * layer + 515 * 256 + norms);
    /* 2 bits per weight; the f16 head is scanned in int8, in groups of 16 rows */
    assert_int_equal(info.weight_bytes, 2 * layer / 4 + 528 * 256);
    assert_true(info.packed_bytes >= 2 * layer / 4 + norms * 4);
    assert_true(strlen(tern_version()) >= 5);
    tern_model_free(&model);
    tiny_file_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bitnet_head),
        cmocka_unit_test(test_llama_head),
        cmocka_unit_test(test_llama_head_of_another_format),
        cmocka_unit_test(test_biases),
        cmocka_unit_test(test_factor_of_matrix),
        cmocka_unit_test(test_factor_of_joined),
        cmocka_unit_test(test_factors_of_experts),
        cmocka_unit_test(test_head_with_factor),
        cmocka_unit_test(test_rotation_factors),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_norm_formats),
        cmocka_unit_test(test_nonfinite_logits),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
