/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of a program on a model and a working session: every matrix once, with its stage, each
 * product as it happens, and stages that fit the session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tern/inspect.h"
#include "tern/tune.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { PROMPT = 5 };

static bool is_named(tern_span name, const char *expected) {
    return name.size == strlen(expected) && memcmp(name.data, expected, name.size) == 0;
}

/* The name of matrix i < 7 of a layer in the file, and its stage. */
static const struct {
    const char *name;
    tern_stage stage;
} in_layer[] = {{"attn_q", TERN_STAGE_QKV},       {"attn_k", TERN_STAGE_QKV},
                {"attn_v", TERN_STAGE_QKV},       {"attn_output", TERN_STAGE_OUT},
                {"ffn_gate", TERN_STAGE_GATE_UP}, {"ffn_up", TERN_STAGE_GATE_UP},
                {"ffn_down", TERN_STAGE_DOWN}};

/* The same for blocks with experts, from matrix 4 on. */
static const struct {
    const char *name;
    tern_stage stage;
} of_experts[] = {{"ffn_gate_inp", TERN_STAGE_GATE_UP},       {"ffn_gate_exps", TERN_STAGE_GATE_UP},
                  {"ffn_up_exps", TERN_STAGE_GATE_UP},        {"ffn_down_exps", TERN_STAGE_DOWN},
                  {"ffn_gate_inp_shexp", TERN_STAGE_GATE_UP}, /* of the expert for all tokens */
                  {"ffn_gate_shexp", TERN_STAGE_GATE_UP},     {"ffn_up_shexp", TERN_STAGE_GATE_UP},
                  {"ffn_down_shexp", TERN_STAGE_DOWN}};

/* The name and the stage of matrix i of a layer. */
static const char *name_of(const tern_model_info *about, size_t i) {
    return about->n_expert > 0 && i >= 4 ? of_experts[i - 4].name : in_layer[i].name;
}
static tern_stage stage_of(const tern_model_info *about, size_t i) {
    return about->n_expert > 0 && i >= 4 ? of_experts[i - 4].stage : in_layer[i].stage;
}

static void check_matrices(const char *preset) {
    check_case("%s", preset);
    if (tiny_mixes_layers(preset)) /* its layers have different matrices */
        return;
    tern_model *model = tiny_open(preset, NULL);
    tern_model_info about;
    tern_model_describe(model, &about);
    tern_linear_info info;
    uint64_t bytes = 0, scan = 0;
    size_t i = 0;
    const bool shared = strcmp(about.architecture, "qwen2moe") == 0;
    const size_t each = shared ? 12 : about.n_expert > 0 ? 8 : 7;
    for (const tern_linear *linear; (linear = tern_model_linear(model, i)); i++) {
        char name[64];
        tern_linear_describe(model, linear, &info);
        assert_non_null(info.gemv);
        assert_int_equal(info.gemv->layout, info.matrix.layout);
        assert_ptr_equal(info.table[0], info.gemv);
        assert_string_equal(info.choice, "table");
        if (i < about.n_layer * each) {
            (void)snprintf(name, sizeof name, "blk.%zu.%s.weight", i / each,
                           name_of(&about, i % each));
            assert_true(is_named(info.tensor, name));
            assert_int_equal(info.layer, i / each);
            assert_int_equal(info.stage, stage_of(&about, i % each));
            assert_int_equal(info.experts, i % each > 4 && i % each < 8 ? about.n_expert : 0);
            if (info.experts > 0) /* a token only reads some of them */
                info.bytes = info.bytes / info.experts * info.experts_used;
        } else {
            assert_int_equal(info.layer, about.n_layer);
            assert_int_equal(info.matrix.rows, about.n_vocab);
        }
        bytes += info.stage == TERN_STAGE_HEAD ? 0 : info.bytes;
        scan += info.stage == TERN_STAGE_SCAN ? info.bytes : 0;
    }
    bytes += scan == 0 ? info.bytes : 0; /* without a scan, the head itself is read */
    assert_int_equal(i, about.n_layer * each + (scan > 0 ? 2 : 1));
    assert_int_equal(bytes, about.weight_bytes);
    assert_string_equal(tern_gguf_name(tern_model_file(model)), about.path);
    tern_model_free(&model);
}

static void test_matrices(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        check_matrices(tiny_presets()[i]);
}

/* The plan lists every matrix of the model, and its pieces of memory are adjacent. */
static void check_list(const char *preset) {
    check_case("%s", preset);
    tern_model *model = tiny_open(preset, NULL);
    tern_model_info about;
    tern_model_describe(model, &about);
    tern_planned_tensor t;
    uint64_t bytes = 0;
    size_t matrices = 0;
    for (size_t i = 0; tern_model_planned(model, i, &t); i++) {
        assert_int_equal(t.offset, bytes);
        bytes += t.bytes;
        if (t.gemv == NULL)
            continue;
        tern_linear_info info;
        tern_linear_describe(model, tern_model_linear(model, matrices++), &info);
        assert_ptr_equal(t.tensor.data, info.tensor.data);
        assert_ptr_equal(t.gemv, info.gemv);
        assert_ptr_equal(t.gemm, info.gemm);
        assert_int_equal(t.layout, info.matrix.layout);
    }
    assert_int_equal(bytes, about.packed_bytes);
    assert_null(tern_model_linear(model, matrices));
    tern_model_free(&model);
}

static void test_list(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        check_list(tiny_presets()[i]);
}

/* A layout that was requested, not measured. */
static void test_choice_asked(void **state) {
    (void)state;
    tern_model_params params = tern_model_params_default();
    params.layout = "t5r16";
    tern_model *model = tiny_open_with("bitnet-tiny", params);
    tern_linear_info info;
    tern_linear_describe(model, tern_model_linear(model, 0), &info);
    assert_string_equal(info.choice, "asked");
    assert_int_equal(info.matrix.layout, TERN_LAYOUT_T5R16);
    tern_model_free(&model);
}

typedef struct seen {
    const tern_model *model;
    size_t products[TERN_STAGE_COUNT];
    size_t tokens[TERN_STAGE_COUNT];
} seen;

static void see(void *user, const tern_linear *linear, const tern_activations *x, size_t tokens,
                const tern_product_routes *routes) {
    seen *s = user;
    assert_null(routes);
    tern_linear_info info;
    tern_linear_describe(s->model, linear, &info);
    assert_int_equal(x->cols, info.matrix.cols);
    s->products[info.stage]++;
    s->tokens[info.stage] += tokens;
}

static void test_observer(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    const tern_session_params params = {.n_ctx = 32, .threads = 2};
    tern_session *session = tiny_session(model, params);
    tern_model_info about;
    seen s = {.model = model};
    int32_t tokens[PROMPT];
    tern_model_describe(model, &about);
    tiny_prompt(model, 3, tokens, PROMPT);
    tern_session_observe(session, see, &s);
    tiny_eval(session, tokens, PROMPT);
    tern_session_observe(session, NULL, NULL);
    tiny_eval(session, tokens, 1); /* no longer watched */
    assert_int_equal(s.products[TERN_STAGE_QKV], 3 * about.n_layer);
    assert_int_equal(s.products[TERN_STAGE_DOWN], about.n_layer);
    assert_int_equal(s.tokens[TERN_STAGE_DOWN], PROMPT * about.n_layer);
    assert_int_equal(s.tokens[TERN_STAGE_HEAD], 1);
    tern_session_free(&session);
    tern_model_free(&model);
}

static uint64_t no_time(void *user) {
    (void)user;
    return 0;
}

static void test_stages_refused(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    const tern_session_params params = {.n_ctx = 32, .threads = 2};
    tern_session *session = tiny_session(model, params);
    tern_stages *stages = NULL;
    tern_error err = {0};
    assert_int_equal(tern_stages_new(2, NULL, NULL, &stages, &err), TERN_ERR_NULL);
    assert_int_equal(tern_stages_new(2, no_time, NULL, NULL, &err), TERN_ERR_NULL);
    assert_int_equal(tern_stages_new(0, no_time, NULL, &stages, &err), TERN_ERR_ARG);
    assert_null(stages);
    assert_int_equal(tern_stages_new(3, no_time, NULL, &stages, &err), TERN_OK);
    assert_int_equal(tern_session_watch(NULL, stages, &err), TERN_ERR_NULL);
    assert_int_equal(tern_session_watch(session, stages, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "stages of 3 threads for a session of 2");
    check_freed(tern_stages_free, stages);
    assert_null(stages);
    tern_stages_free(&stages);
    tern_session_free(&session);
    tern_model_free(&model);
}

/* ---- kernels and weights --------------------------------------------------------------------- */

static void test_select(void **state) {
    (void)state;
    tern_model_params params = tern_model_params_default();
    params.isa = "scalar";
    tern_model *model = tiny_open_with("bitnet-tiny", params);
    tern_linear_info info;
    tern_linear_describe(model, tern_model_linear(model, 0), &info);
    assert_true(tern_model_features(model) == 0);
    assert_ptr_equal(tern_model_select(model, TERN_OP_GEMV, info.matrix.format, info.matrix.layout),
                     info.gemv);
    assert_null(tern_model_select(model, TERN_OP_GEMV, TERN_FORMAT_F32, TERN_LAYOUT_NONE));
    tern_model_free(&model);
    size_t i = 0;
    for (; tern_isa_name(i) != NULL; i++)
        assert_int_equal(tern_isa_runs(i, 0), i == 0); /* "scalar" alone needs nothing */
    assert_true(i > 1);
    assert_false(tern_isa_runs(i, UINT64_MAX));
    assert_string_equal(tern_isa_name(0), "scalar");
    assert_string_equal(tern_cpu_feature_name(UINT64_C(6)), "AVX2"); /* the lower of the two */
    assert_null(tern_cpu_feature_name(UINT64_C(1) << 63));
}

/* Weights of a plain file are used where they lie. Those in another order are rewritten and mean
 * the same. */
static void test_weights(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    tern_linear_info info;
    const tern_linear *linear = tern_model_linear(model, 0);
    const void *bytes = NULL;
    void *made = NULL;
    tern_linear_describe(model, linear, &info);
    const tern_gguf_tensor *tensor = NULL;
    for (size_t i = 0; tensor == NULL; i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(tern_model_file(model), i);
        tensor = t->name.data == info.tensor.data ? t : NULL;
    }
    assert_int_equal(tern_linear_weights(model, linear, &bytes, &made, NULL), TERN_OK);
    assert_ptr_equal(bytes, tensor->data);
    assert_null(made);
    tern_model_free(&model);
    tern_model_params params = tern_model_params_default();
    params.i2s_order = TERN_I2S_SEQUENTIAL;
    model = tiny_open_with("bitnet-tiny", params);
    linear = tern_model_linear(model, 0);
    assert_int_equal(tern_linear_weights(model, linear, &bytes, &made, NULL), TERN_OK);
    assert_non_null(made);
    assert_ptr_equal(bytes, made);
    const float scale =
        tern_format_scale(TERN_FORMAT_I2_S, bytes, info.matrix.rows, info.matrix.cols);
    float *row = tiny_floats(info.matrix.cols);
    tern_dequantize_row(TERN_FORMAT_I2_S, bytes, info.matrix.cols, 0, scale, row);
    for (size_t i = 0; i < info.matrix.cols; i++) /* codes 0, 1, 2: two bits each, in order */
        assert_true(row[i] == scale * (float)((((const uint8_t *)tern_gguf_find_tensor(
                                                    tern_model_file(model), "blk.0.attn_q.weight")
                                                    ->data)[i / 4] >>
                                                   (6 - 2 * (i % 4)) &
                                               3) -
                                              1));
    free(row);
    free(made);
    tern_model_free(&model);
}

static void test_reading_check(void **state) {
    (void)state;
    tern_model_params params = tern_model_params_default();
    tern_error err = {0};
    assert_int_equal(tern_reading_check(NULL, &err), TERN_ERR_NULL);
    assert_int_equal(tern_reading_check(&params, &err), TERN_OK);
    params.i2s_map = "0,1,2";
    assert_int_equal(tern_reading_check(&params, &err), TERN_ERR_ARG);
}

/* ---- tuning ---------------------------------------------------------------------------------- */

static void count_result(const tern_tune_result *result, void *user) {
    size_t chosen = 0;
    for (size_t i = 0; i < result->n; i++)
        chosen += result->candidates[i].chosen;
    assert_int_equal(chosen, 2);
    assert_int_equal(result->threads, 1);
    assert_int_equal(result->gemv->layout, result->layout);
    ++*(size_t *)user;
}

static void test_tuning(void **state) {
    (void)state;
    tern_model_params params = tern_model_params_default();
    params.isa = "scalar"; /* one candidate per operation: nothing to measure */
    params.no_weights = true;
    tern_model *model = tiny_open_with("bitnet-tiny", params);
    tern_tune_run *run = NULL;
    size_t reported = 0;
    assert_int_equal(tern_tune_run_new(NULL, &run, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_tune_run_new(model, &run, NULL), TERN_OK);
    assert_null(tern_tune_folder(run));
    assert_int_equal(tern_tune_keep(run, NULL), TERN_ERR_STATE);
    assert_int_equal(tern_tune_measure(run, 1, NULL, NULL, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_tune_measure(run, 1, count_result, &reported, NULL), TERN_OK);
    assert_true(reported > 0);
    assert_int_equal(tern_tune_count(run), reported);
    assert_int_equal(tern_tune_open_folder(run, "/proc/tern", NULL), TERN_ERR_IO);
    check_freed(tern_tune_run_free, run);
    assert_null(run);
    tern_model_free(&model);
}

/* An existing file is not replaced. */
static void test_save_new(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    const tern_session_params params = {.n_ctx = 32, .threads = 1};
    tern_session *session = tiny_session(model, params);
    int32_t tokens[PROMPT];
    struct stat info;
    tiny_path(path); /* an empty file */
    tiny_prompt(model, 3, tokens, PROMPT);
    tiny_eval(session, tokens, PROMPT);
    assert_int_equal(tern_session_save_new(session, path, NULL), TERN_ERR_EXISTS);
    assert_int_equal(unlink(path), 0);
    const mode_t masked = umask(022);
    assert_int_equal(tern_session_save_new(session, path, NULL), TERN_OK);
    (void)umask(masked);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0644); /* not a secret */
    assert_int_equal(tern_session_save_new(session, path, NULL), TERN_ERR_EXISTS);
    assert_int_equal(tern_session_restore(session, path, NULL), TERN_OK);
    assert_int_equal(unlink(path), 0);
    tern_session_free(&session);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices),       cmocka_unit_test(test_list),
        cmocka_unit_test(test_choice_asked),   cmocka_unit_test(test_observer),
        cmocka_unit_test(test_stages_refused), cmocka_unit_test(test_select),
        cmocka_unit_test(test_weights),        cmocka_unit_test(test_reading_check),
        cmocka_unit_test(test_tuning),         cmocka_unit_test(test_save_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
