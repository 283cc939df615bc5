/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights are multiplied as they are stored: no row is dequantized while a model is loaded, reads a
 * prompt or decodes. tern_dequantize_row is the only way to floats, and it counts its calls.
 */

#include <string.h>

#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { PROMPT = 40, DECODED = 8 };

static void decode(tern_session *s, const int32_t *prompt) {
    tern_model_info info;
    float *logits = tern_session_logits(s);
    tern_model_describe(tern_session_model(s), &info);
    assert_int_equal(tern_session_eval(s, prompt, PROMPT, TERN_LOGITS_LAST, logits, NULL), TERN_OK);
    for (int i = 0; i < DECODED; i++) {
        const int32_t token = tern_argmax(logits, info.n_vocab);
        assert_int_equal(tern_session_eval(s, &token, 1, TERN_LOGITS_LAST, logits, NULL), TERN_OK);
    }
}

static void check_no_staging(const char *preset, const char *isa) {
    int32_t prompt[PROMPT];
    const uint64_t before = tern_dequantize_calls();
    tern_model *model = tiny_open(preset, isa);
    tern_session *s = tiny_session(
        model, (tern_session_params){.n_ctx = 64, .threads = 2, .kv = TERN_FORMAT_F16});
    check_case("%s, %s", preset, isa);
    tiny_prompt(model, 1, prompt, PROMPT);
    decode(s, prompt);
    if (tern_dequantize_calls() != before)
        check_fail("%llu rows were dequantized",
                   (unsigned long long)(tern_dequantize_calls() - before));
    tern_session_free(&s);
    tern_model_free(&model);
}

/* AC:1. Models of every format, with every instruction set, for prefill and decode. */
static void test_nothing_is_dequantized(void **state) {
    const char *isas[16];
    const size_t n_isas = tiny_isas(isas, 16);
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        for (size_t k = 0; k < n_isas; k++)
            check_no_staging(tiny_presets()[i], isas[k]);
}

/* A matrix takes at most 10 bits per weight; floats would take 16 or 32. */
static void check_linear(const tern_linear *linear, const tern_session *s) {
    const tern_kernel_row *ran[64];
    const size_t n = tern_session_kernels(s, ran, 64);
    const tern_matrix *m = &linear->matrix;
    const tern_format want = tern_format_from_gguf(linear->tensor->type);
    const size_t stored = tern_packed_bytes(m->layout, m->rows, m->cols);
    const size_t most = (m->rows + 16) * (m->cols + 64) * 10 / 8;
    bool gemv = false, gemm = false;
    const bool floats = want <= TERN_FORMAT_BF16; /* in the file */
    if (m->format != want || linear->gemv->layout != m->layout ||
        linear->gemm->layout != m->layout || (m->layout == TERN_LAYOUT_ROWS) != floats)
        check_fail("%.*s is multiplied as %s", (int)linear->tensor->name.size,
                   linear->tensor->name.data, tern_format_describe(m->format)->name);
    if (m->layout != TERN_LAYOUT_ROWS && stored > most)
        check_fail("%zu x %zu take %zu bytes", m->rows, m->cols, stored);
    for (size_t i = 0; i < n; i++) {
        gemv = gemv || ran[i] == linear->gemv;
        gemm = gemm || ran[i] == linear->gemm;
    }
    assert_true(gemv && gemm);
}

/* The counter only covers one function. So this checks, too, that the products are of the file's
 * formats and read matrices of the matching sizes: there is no room for floats. */
static void test_matrices_keep_their_format(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        int32_t prompt[PROMPT];
        tern_model *model = tiny_open(tiny_presets()[i], NULL);
        tern_session *s = tiny_session(
            model, (tern_session_params){.n_ctx = 64, .threads = 2, .kv = TERN_FORMAT_F16});
        check_case("%s", tiny_presets()[i]);
        tiny_prompt(model, 1, prompt, PROMPT);
        decode(s, prompt);
        for (uint32_t l = 0; l < model->config.n_layer; l++)
            for (size_t k = 0; k < tern_block_linears(model->config.arch, model->layers[l].kind);
                 k++)
                check_linear(tern_layer_linear(&model->layers[l],
                                               tern_block_linear_at(model->config.arch,
                                                                    model->layers[l].kind, k)),
                             s);
        tern_session_free(&s);
        tern_model_free(&model);
    }
}

/* Positive control: one row of every format, each of them counted. */
static void test_the_counter_counts(void **state) {
    static const uint8_t zeros[4096];
    float row[128];
    (void)state;
    for (int format = 0; format < TERN_FORMAT_COUNT; format++)
        for (uint64_t n = 1; n <= 3; n++) {
            const uint64_t before = tern_dequantize_calls();
            check_case("%s", tern_format_describe((tern_format)format)->name);
            for (uint64_t i = 0; i < n; i++)
                tern_dequantize_row((tern_format)format, zeros, 128, 0, 1.0f, row);
            assert_int_equal(tern_dequantize_calls() - before, n);
        }
}

/* The models do cover quantized matrices: every format occurs in some model and is read by a
 * kernel. */
static void test_formats_are_covered(void **state) {
    bool covered[TERN_FORMAT_COUNT] = {false};
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        tiny_file file = tiny_read(tiny_presets()[i]);
        for (size_t k = 0; k < file.n; k++) {
            const tern_format format = tern_format_from_gguf(file.tensors[k].type);
            if (strncmp(file.tensors[k].name, "blk.", 4) == 0 && file.tensors[k].ne[1] > 1 &&
                tern_kernel_select(0, TERN_OP_GEMV, format) != NULL)
                covered[format] = true;
        }
        tiny_file_free(&file);
    }
    for (int format = 0; format < TERN_FORMAT_COUNT; format++) {
        check_case("%s", tern_format_describe((tern_format)format)->name);
        const bool in_files =
            tern_format_describe((tern_format)format)->gguf_type != TERN_NO_GGUF_TYPE;
        if (in_files && !covered[format])
            check_fail("no tiny model has matrices of this format");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_dequantized),
        cmocka_unit_test(test_matrices_keep_their_format),
        cmocka_unit_test(test_the_counter_counts),
        cmocka_unit_test(test_formats_are_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
