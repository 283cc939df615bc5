/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program sees of a model and of a session that works: every matrix once, with its stage;
 * each product as it comes; stages that fit the session.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tern/inspect.h"
#include "tests/check.h"
#include "tests/tiny_model.h"

enum { PROMPT = 5 };

static bool is_named(tern_span name, const char *expected) {
    return name.size == strlen(expected) && memcmp(name.data, expected, name.size) == 0;
}

/* The name that a file gives to matrix i < 7 of a layer, and its stage. */
static const struct {
    const char *name;
    tern_stage stage;
} in_layer[] = {{"attn_q", TERN_STAGE_QKV},       {"attn_k", TERN_STAGE_QKV},
                {"attn_v", TERN_STAGE_QKV},       {"attn_output", TERN_STAGE_OUT},
                {"ffn_gate", TERN_STAGE_GATE_UP}, {"ffn_up", TERN_STAGE_GATE_UP},
                {"ffn_down", TERN_STAGE_DOWN}};
enum { IN_LAYER = sizeof in_layer / sizeof *in_layer };

static void check_matrices(const char *preset) {
    check_case("%s", preset);
    tern_model *model = tiny_open(preset, NULL);
    tern_model_info about;
    tern_model_describe(model, &about);
    tern_linear_info info;
    uint64_t bytes = 0, scan = 0;
    size_t i = 0;
    for (const tern_linear *linear; (linear = tern_model_linear(model, i)); i++) {
        char name[64];
        tern_linear_describe(model, linear, &info);
        assert_non_null(info.gemv);
        assert_int_equal(info.gemv->layout, info.matrix.layout);
        assert_ptr_equal(info.table[0], info.gemv);
        assert_string_equal(info.choice, "table");
        if (i < (size_t)about.n_layer * IN_LAYER) {
            (void)snprintf(name, sizeof name, "blk.%zu.%s.weight", i / IN_LAYER,
                           in_layer[i % IN_LAYER].name);
            assert_true(is_named(info.tensor, name));
            assert_int_equal(info.layer, i / IN_LAYER);
            assert_int_equal(info.stage, in_layer[i % IN_LAYER].stage);
        } else {
            assert_int_equal(info.layer, about.n_layer);
            assert_int_equal(info.matrix.rows, about.n_vocab);
        }
        bytes += info.stage == TERN_STAGE_HEAD ? 0 : info.bytes;
        scan += info.stage == TERN_STAGE_SCAN ? info.bytes : 0;
    }
    bytes += scan == 0 ? info.bytes : 0; /* without a scan the head itself is read */
    assert_int_equal(i, (size_t)about.n_layer * IN_LAYER + (scan > 0 ? 2 : 1));
    assert_int_equal(bytes, about.weight_bytes);
    assert_string_equal(tern_gguf_name(tern_model_file(model)), about.path);
    tern_model_free(&model);
}

static void test_matrices(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets[i]; i++)
        check_matrices(tiny_presets[i]);
}

/* A layout that was named, not measured. */
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

static void see(void *user, const tern_linear *linear, const tern_activations *x, size_t tokens) {
    seen *s = user;
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
    tiny_eval(session, tokens, 1); /* unseen */
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
    tern_stages_free(&stages);
    assert_null(stages);
    tern_stages_free(&stages);
    tern_session_free(&session);
    tern_model_free(&model);
}

/* What exists is not replaced. */
static void test_save_new(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    const tern_session_params params = {.n_ctx = 32, .threads = 1};
    tern_session *session = tiny_session(model, params);
    int32_t tokens[PROMPT];
    tiny_path(path); /* an empty file */
    tiny_prompt(model, 3, tokens, PROMPT);
    tiny_eval(session, tokens, PROMPT);
    assert_int_equal(tern_session_save_new(session, path, NULL), TERN_ERR_EXISTS);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tern_session_save_new(session, path, NULL), TERN_OK);
    assert_int_equal(tern_session_save_new(session, path, NULL), TERN_ERR_EXISTS);
    assert_int_equal(tern_session_restore(session, path, NULL), TERN_OK);
    assert_int_equal(unlink(path), 0);
    tern_session_free(&session);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices), cmocka_unit_test(test_choice_asked),
        cmocka_unit_test(test_observer), cmocka_unit_test(test_stages_refused),
        cmocka_unit_test(test_save_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
