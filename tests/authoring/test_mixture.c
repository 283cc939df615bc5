/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of formats: what llama.cpp makes of each matrix, written out layer by layer. */

#include "authoring/convert/mixture.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/check.h"

enum { LAYERS = 32 };

static const convert_shape dense = {.layers = LAYERS, .queries = 4, .tied = true};

static const char *made(const char *mixture, const convert_shape *shape, const char *name) {
    const convert_mixture *m = convert_mixture_find(mixture);
    assert_non_null(m);
    return tern_format_describe(convert_mixture_format(m, shape, name, 2048))->name;
}

/* A letter for each layer: '.' most matrices' format, else the format's bits. */
static void check_layers(const char *mixture, const convert_shape *shape, const char *matrix,
                         const char *most, const char *want) {
    char name[64], got[LAYERS + 1] = "";

    check_case("%s %s", mixture, matrix);
    for (int layer = 0; layer < LAYERS; layer++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, matrix);
        const char *format = made(mixture, shape, name);
        got[layer] = strcmp(format, most) == 0 ? '.' : format[strcspn(format, "12345678")];
    }
    assert_string_equal(got, want);
}

#define ALL(letter)                                                                                \
    letter letter letter letter letter letter letter letter letter letter letter letter letter     \
        letter letter letter letter letter letter letter letter letter letter letter letter letter \
            letter letter letter letter letter letter

static void test_values(void **state) {
    (void)state;
    check_layers("q2_k", &dense, "attn_v", "q2_k", ALL("4"));
    check_layers("q2_k_s", &dense, "attn_v", "q2_k", ALL("4"));
    check_layers("q3_k_s", &dense, "attn_v", "q3_k", ALL("."));
    check_layers("q3_k_m", &dense, "attn_v", "q3_k", "55444444444444444444444444444444");
    check_layers("q3_k_l", &dense, "attn_v", "q3_k", ALL("5"));
    check_layers("q4_k_s", &dense, "attn_v", "q4_k", "5555............................");
    check_layers("q4_k_m", &dense, "attn_v", "q4_k", "6666..6..6..6..6..6..6..6..66666");
    check_layers("q5_k_m", &dense, "attn_qkv", "q5_k", "6666..6..6..6..6..6..6..6..66666");
    check_layers("iq4_xs", &dense, "attn_v", "iq4_xs", ALL("5"));
    const convert_shape lone = {.layers = LAYERS, .queries = 1};
    check_layers("q2_k", &lone, "attn_v", "q2_k", ALL("3"));
    check_layers("q2_k_s", &lone, "attn_v", "q2_k", ALL("."));
    check_layers("iq4_xs", &lone, "attn_v", "iq4_xs", ALL("."));
}

static void test_down(void **state) {
    (void)state;
    check_layers("q2_k", &dense, "ffn_down", "q2_k", ALL("3"));
    check_layers("q2_k_s", &dense, "ffn_down", "q2_k", "4444............................");
    check_layers("q3_k_m", &dense, "ffn_down", "q3_k", "55444444444444444444444444444444");
    check_layers("q3_k_l", &dense, "ffn_down", "q3_k", ALL("5"));
    check_layers("q4_k_s", &dense, "ffn_down", "q4_k", "5555............................");
    check_layers("q4_k_m", &dense, "ffn_down_exps", "q4_k", "6666..6..6..6..6..6..6..6..66666");
    check_layers("iq4_xs", &dense, "ffn_down", "iq4_xs", "5555............................");
    check_layers("iq2_m", &dense, "ffn_down", "iq2_s", "3333............................");
    const convert_shape known = {.layers = LAYERS, .queries = 4, .importance = true};
    check_layers("iq4_xs", &known, "ffn_down", "iq4_xs", ALL("."));
    check_layers("q4_k_s", &known, "ffn_down", "q4_k", "5555............................");
}

static void test_others(void **state) {
    (void)state;
    check_layers("q2_k", &dense, "attn_output", "q2_k", ALL("3"));
    check_layers("q3_k_m", &dense, "attn_output", "q3_k", ALL("4"));
    check_layers("q3_k_l", &dense, "attn_output", "q3_k", ALL("5"));
    check_layers("q4_k_m", &dense, "attn_output", "q4_k", ALL("."));
    check_layers("q4_k_m", &dense, "attn_k", "q4_k", ALL("."));
    check_layers("q4_k_m", &dense, "ffn_up", "q4_k", ALL("."));
    const convert_shape eight = {.layers = LAYERS, .queries = 4, .experts = 8};
    check_layers("q4_k_m", &eight, "attn_v", "q4_k", ALL("8"));
    check_layers("q4_k_m", &eight, "attn_k", "q4_k", ALL("8"));
    check_layers("q4_k_m", &eight, "attn_output", "q4_k", ALL("5"));
    check_layers("q3_k_l", &eight, "attn_output", "q3_k", ALL("."));
}

/* Matrices of experts alone, of which there may be any number. */
static void test_experts(void **state) {
    const convert_shape some = {.layers = LAYERS, .queries = 4, .experts = 8};
    const convert_shape apart = {.layers = LAYERS, .queries = 1, .experts = 32};
    static const char *const experts[] = {"up", "gate", "down", "gate_up"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.3.ffn_%s_exps.weight", experts[i]);
        assert_string_equal(made("mxfp4_moe", &some, name), "mxfp4");
        assert_string_equal(made("mxfp4_moe", &apart, name), "mxfp4");
    }
    static const char *const others[] = {"blk.3.ffn_up.weight",      "blk.3.ffn_down_shexp.weight",
                                         "blk.3.attn_v.weight",      "blk.3.attn_k.weight",
                                         "blk.3.attn_output.weight", "output.weight",
                                         "token_embd.weight"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_string_equal(made("mxfp4_moe", &some, others[i]), "q8_0");
        assert_string_equal(made("mxfp4_moe", &dense, others[i]), "q8_0");
    }
}

/* The head has six bits; the embedding too, where it is the head. Blocks that do not fit: eight. */
static void test_ends(void **state) {
    const convert_shape apart = {.layers = LAYERS, .queries = 4};
    const convert_shape large = {.layers = 80, .queries = 8};

    (void)state;
    assert_string_equal(made("q4_k_m", &dense, "token_embd.weight"), "q6_k");
    assert_string_equal(made("q4_k_m", &apart, "token_embd.weight"), "q4_k");
    assert_string_equal(made("iq4_xs", &apart, "output.weight"), "q6_k");
    const convert_mixture *m = convert_mixture_find("q3_k_m");
    assert_int_equal(convert_mixture_format(m, &dense, "token_embd.weight", 576), TERN_FORMAT_Q8_0);
    assert_string_equal(made("q3_k_m", &large, "blk.40.attn_v.weight"), "q5_k");
    assert_true(convert_mixture_find("Q4_K_M") == convert_mixture_find("q4_k_m"));
    assert_null(convert_mixture_find("q4_k"));
    assert_null(convert_mixture_find(NULL));
}

/* Names of options and numbers of files. */
static void test_names(void **state) {
    static const struct {
        const char *name;
        uint32_t file_type;
    } known[] = {{"q2_k", 10},   {"q2_k_s", 21}, {"q3_k_s", 11}, {"q3_k_m", 12}, {"q3_k_l", 13},
                 {"q4_k_s", 14}, {"q4_k_m", 15}, {"q5_k_s", 16}, {"q5_k_m", 17}, {"iq4_xs", 30},
                 {"iq2_s", 28},  {"iq2_m", 29},  {"iq3_xs", 22}, {"iq3_m", 27},  {"mxfp4_moe", 38}};

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const convert_mixture *m = convert_mixture_find(known[i].name);
        assert_non_null(m);
        assert_int_equal(convert_mixture_file_type(m), known[i].file_type);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_down), cmocka_unit_test(test_others),
        cmocka_unit_test(test_experts), cmocka_unit_test(test_ends), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("mixtures of formats", tests, NULL, NULL);
}
