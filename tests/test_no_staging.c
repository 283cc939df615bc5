/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights are multiplied as they are stored: no row is dequantized while a model is loaded, reads a
 * prompt or decodes. tern_dequantize_row is the only way to floats, and it counts its calls.
 */

#include <string.h>

#include "tests/check.h"
#include "tests/tiny_model.h"

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

/* AC:1. Models of every format, every instruction set, prefill and decode. */
static void test_nothing_is_dequantized(void **state) {
    const char *isas[16];
    const size_t n_isas = tiny_isas(isas, 16);
    (void)state;
    for (size_t i = 0; tiny_presets[i] != NULL; i++)
        for (size_t k = 0; k < n_isas; k++)
            check_no_staging(tiny_presets[i], isas[k]);
}

/* Positive control: one row of every format, counted one by one. */
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

/* The models do have quantized matrices: every format is some model's, and is read by a kernel. */
static void test_formats_are_covered(void **state) {
    bool covered[TERN_FORMAT_COUNT] = {false};
    (void)state;
    for (size_t i = 0; tiny_presets[i] != NULL; i++) {
        tiny_file file = tiny_read(tiny_presets[i]);
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
        cmocka_unit_test(test_the_counter_counts),
        cmocka_unit_test(test_formats_are_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
