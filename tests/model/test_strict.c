/* SPDX-License-Identifier: Apache-2.0 */
/* Strict models: every place where something could be substituted for what was requested. */

#include <string.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "runtime/model/strict.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* Opens a file, strictly or not. */
static tern_status open_file(const char *path, bool strict, const char *layout, tern_error *err) {
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    params.strict = strict;
    params.layout = layout;
    const tern_status status = tern_model_open(path, &params, &model, err);
    tern_model_free(&model);
    return status;
}

/* Opens normally, and is refused in strict mode with a message that contains `text`. */
static void check_file_refused(const char *path, const char *layout, const char *text) {
    tern_error err = {0};
    check_case("%s", text);
    if (open_file(path, false, layout, &err) != TERN_OK)
        check_fail("not strict: %s", err.message);
    assert_int_equal(open_file(path, true, layout, &err), TERN_ERR_STRICT);
    if (strstr(err.message, text) == NULL || strstr(err.message, "strict: ") == NULL)
        check_fail("message is: %s", err.message);
}

static void check_preset(const char *preset, const char *text) {
    char path[TINY_PATH_BYTES];
    tiny_file file = tiny_read(preset);
    tiny_path(path);
    tiny_write(&file, path);
    if (text != NULL) {
        check_file_refused(path, NULL, text);
    } else {
        tern_error err = {0};
        check_case("%s", preset);
        if (open_file(path, true, NULL, &err) != TERN_OK)
            check_fail("%s", err.message);
    }
    unlink(path);
    tiny_file_free(&file);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Strict models need quantized blocks. Their head, embeddings and norms may be floats. */
static void test_quantized_models_open(void **state) {
    static const char *const presets[] = {"bitnet-tiny",     "bitnet-tiny-odd", "llama-tiny-q4_0",
                                          "llama-tiny-q8_0", "llama-tiny-q6_k", "llama-tiny-iq2_s",
                                          "qwen2-tiny",      "qwen3-tiny"};
    (void)state;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        check_preset(presets[i], NULL);
}

static void test_float_blocks(void **state) {
    (void)state;
    check_preset("llama-tiny-f32", "tensor blk.0.attn_q.weight is f32, floats");
    check_preset("llama-tiny-f16", "tensor blk.0.attn_q.weight is f16, floats");
    check_preset("llama-tiny-bf16", "tensor blk.0.attn_q.weight is bf16, floats");
}

/* A single matrix of floats among quantized ones is found, too. */
static void test_one_float_matrix(void **state) {
    char path[TINY_PATH_BYTES];
    tiny_file file = tiny_read("bitnet-tiny");
    const tiny_tensor *old = tiny_find(&file, "blk.1.ffn_up.weight");
    const uint64_t cols = old->ne[0], rows = old->ne[1];
    (void)state;
    tiny_remove(&file, "blk.1.ffn_up.weight");
    tiny_add(&file, "blk.1.ffn_up.weight", TERN_FORMAT_F16, cols, rows);
    tiny_path(path);
    tiny_write(&file, path);
    check_file_refused(path, NULL, "tensor blk.1.ffn_up.weight is f16, floats");
    unlink(path);
    tiny_file_free(&file);
}

/* TQ blocks with individual scales fit no ternary layout. */
static void test_layouts(void **state) {
    (void)state;
    check_preset("bitnet-tiny-tq1_0", "has several scales a row, layout t2r16 cannot hold it");
    check_preset("bitnet-tiny-tq2_0", "q4_0r16 would stand in");
}

/* An unknown type is always refused. */
static void test_unknown_type(void **state) {
    char path[TINY_PATH_BYTES];
    tiny_file file = tiny_read("llama-tiny-q8_0");
    (void)state;
    tiny_find(&file, "blk.0.attn_k.weight")->type = 200;
    tiny_path(path);
    tiny_write(&file, path);
    assert_int_equal(open_file(path, false, NULL, NULL), TERN_ERR_TENSOR_TYPE);
    assert_int_equal(open_file(path, true, NULL, NULL), TERN_ERR_TENSOR_TYPE);
    unlink(path);
    tiny_file_free(&file);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void check_model_refused(const tern_model *m, bool loaded, const char *text) {
    const tern_model_params params = tern_model_params_default();
    tern_error err = {0};
    check_case("%s", text);
    const tern_status status =
        loaded ? tern_strict_loaded(m, &err) : tern_strict_plan(m, &params, &err);
    assert_int_equal(status, TERN_ERR_STRICT);
    if (strstr(err.message, text) == NULL)
        check_fail("message is: %s", err.message);
}

/* A scalar kernel is found in any place of a model whose instruction set has better ones. */
static void test_weak_rows(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    const tern_model sound = *model;
    const tern_model_params params = tern_model_params_default();
    if (strcmp(tern_model_isa(model), "scalar") == 0) {
        tern_model_free(&model);
        check_skip("there is nothing above scalar kernels here");
    }
    assert_int_equal(tern_strict_plan(&sound, &params, NULL), TERN_OK);
    assert_int_equal(tern_strict_loaded(&sound, NULL), TERN_OK);

    tern_model weak = sound;
    weak.kernels.rmsnorm = tern_kernel_find("tern_rmsnorm_scalar");
    check_model_refused(&weak, false, "for rmsnorm, tern_rmsnorm_scalar would stand in");
    weak = sound;
    weak.kernels.attend[TERN_FORMAT_Q8_0] = tern_kernel_find("tern_attend_q8_0_scalar");
    check_model_refused(&weak, false, "for attend, tern_attend_q8_0_scalar would stand in");
    weak = sound;
    weak.own.head.gemm = tern_kernel_find("tern_gemm_f16_1x1_scalar");
    check_model_refused(&weak, false, "for gemm, tern_gemm_f16_1x1_scalar would stand in");
    weak = sound;
    weak.own.embedding.kernel = tern_kernel_find("tern_embed_f16_scalar");
    check_model_refused(&weak, false, "for embed, tern_embed_f16_scalar would stand in");
    check_model_refused(&weak, true, "for embed, tern_embed_f16_scalar would stand in");
    weak.guard.mask = 0; /* if scalar is the best set, it substitutes for nothing */
    assert_int_equal(tern_strict_loaded(&weak, NULL), TERN_OK);
    tern_model_free(&model);
}

/* A row that gave wrong results and was replaced. */
static void test_refused_rows(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    tern_model hurt = *model;
    hurt.guard.refused[0] = (tern_kernel_refusal){.row = tern_kernel_find("tern_add_scalar")};
    strcpy(hurt.guard.refused[0].where, "blk.3.attn_v.weight");
    hurt.guard.n_refused = 1;
    check_model_refused(&hurt, true,
                        "tern_add_scalar gives wrong results on this machine (seen at "
                        "blk.3.attn_v.weight)");
    tern_model_free(&model);
}

/* A scalar kernel only counts as a set's own if nothing better exists, for every set. */
static void test_what_is_native(void **state) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    const tern_kernel_row *scalar = tern_kernel_find("tern_add_scalar");
    (void)state;
    assert_true(tern_kernel_is_native(0, scalar));
    for (size_t i = 0; i < count; i++) {
        const tern_kernel_row *kernel =
            tern_kernel_select(isas[i].needs, TERN_OP_ADD, TERN_FORMAT_NONE);
        const bool above = isas[i].built && strcmp(isas[i].name, "scalar") != 0;
        check_case("%s", isas[i].name);
        assert_int_equal(tern_kernel_is_native(isas[i].needs, scalar), !above);
        assert_true(tern_kernel_is_native(isas[i].needs, kernel));
    }
}

/* Every format of weights has kernels of its own on every set. Other formats have none. */
static void test_native_kernels(void **state) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    (void)state;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        const tern_format format = (tern_format)f;
        const bool products = tern_format_layout(format) != TERN_LAYOUT_NONE;
        for (size_t i = 0; i < count; i++) {
            check_case("%s on %s", tern_format_describe(format)->name, isas[i].name);
            if (isas[i].built && products) {
                assert_true(tern_has_native_kernel(isas[i].needs, TERN_OP_GEMV, format));
                assert_true(tern_has_native_kernel(isas[i].needs, TERN_OP_GEMM, format));
            }
        }
    }
    assert_false(tern_has_native_kernel(UINT64_MAX, TERN_OP_GEMV, TERN_FORMAT_NONE));
    assert_false(tern_has_native_kernel(UINT64_MAX, TERN_OP_ATTEND, TERN_FORMAT_I2_S));
    assert_false(tern_has_native_kernel(UINT64_MAX, TERN_OP_COUNT, TERN_FORMAT_F32));
    assert_true(tern_has_native_kernel(0, TERN_OP_ROPE_NEOX, TERN_FORMAT_NONE));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantized_models_open), cmocka_unit_test(test_float_blocks),
        cmocka_unit_test(test_one_float_matrix),      cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_unknown_type),          cmocka_unit_test(test_weak_rows),
        cmocka_unit_test(test_refused_rows),          cmocka_unit_test(test_native_kernels),
        cmocka_unit_test(test_what_is_native),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
