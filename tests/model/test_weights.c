/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models with invalid tensors are refused with the file, the tensor and the number in the message.
 * Models with unusual tensors give the logits that they must.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

static void put_float(tiny_tensor *t, size_t index, float value) {
    assert_true((index + 1) * sizeof value <= t->bytes);
    memcpy(t->data + index * sizeof value, &value, sizeof value);
}

/* ---- refused
 * -------------------------------------------------------------------------------------- */

typedef void change(tiny_file *file);

static void check_refused_on(const char *device, const char *preset, change *apply,
                             tern_status expected, const char *text) {
    const tern_model_params params = {.threads = 3, .device = device};
    char path[TINY_PATH_BYTES];
    tern_error err = {0};
    tern_model *model = NULL;
    tiny_file file = tiny_read(preset);
    check_case("%s with '%s' in its message", preset, text);
    apply(&file);
    tiny_path(path);
    tiny_write(&file, path);
    tiny_file_free(&file);
    const tern_status status = tern_model_open(path, &params, &model, &err);
    unlink(path);
    if (status != expected || strstr(err.message, text) == NULL)
        check_fail("status %d, must be %d: %s", (int)status, (int)expected, err.message);
    assert_non_null(strstr(err.message, path));
    assert_null(model);
}

static void check_refused(const char *preset, change *apply, tern_status expected,
                          const char *text) {
    check_refused_on(NULL, preset, apply, expected, text);
}

static void nan_in_norm(tiny_file *f) {
    put_float(tiny_find(f, "blk.1.attn_norm.weight"), 3, NAN);
}
static void nan_at_the_start(tiny_file *f) {
    put_float(tiny_find(f, "blk.0.ffn_norm.weight"), 0, NAN);
}
static void infinity_in_output_norm(tiny_file *f) {
    put_float(tiny_find(f, "output_norm.weight"), 255, -INFINITY);
}
static void nan_in_sub_norm(tiny_file *f) {
    put_float(tiny_find(f, "blk.0.ffn_sub_norm.weight"), 639, NAN);
}
static void nan_scale(tiny_file *f) {
    put_float(tiny_find(f, "blk.0.ffn_up.weight"), 256 * 640 / 4 / sizeof(float), NAN);
}
static void infinite_scale(tiny_file *f) {
    put_float(tiny_find(f, "blk.1.ffn_down.weight"), 256 * 640 / 4 / sizeof(float), INFINITY);
}
static void negative_scale(tiny_file *f) {
    put_float(tiny_find(f, "blk.1.attn_q.weight"), 256 * 256 / 4 / sizeof(float), -0.5f);
}

/* The highest bits of byte 70 of the codes hold element 2 * 128 + 6: row 1, column 6 of 256. */
static void code_three(tiny_file *f) {
    tiny_find(f, "blk.1.attn_v.weight")->data[70] |= 0xc0;
}
static void last_code_three(tiny_file *f) { /* row 127, column 255 */
    tiny_find(f, "blk.1.attn_v.weight")->data[256 * 128 / 4 - 1] |= 0x03;
}

static void test_bad_data(void **state) {
    (void)state;
    const tern_status bad = TERN_ERR_TENSOR_DATA;
    const char *bitnet = "bitnet-tiny";
    check_refused(bitnet, nan_in_norm, bad, "blk.1.attn_norm.weight: element 3 is not finite");
    check_refused(bitnet, nan_at_the_start, bad, "blk.0.ffn_norm.weight: element 0 is not finite");
    check_refused(bitnet, infinity_in_output_norm, bad, "output_norm.weight: element 255 is not");
    check_refused(bitnet, nan_in_sub_norm, bad, "blk.0.ffn_sub_norm.weight: element 639 is not");
    check_refused(bitnet, nan_scale, bad, "tensor blk.0.ffn_up.weight: scale nan");
    check_refused(bitnet, infinite_scale, bad, "tensor blk.1.ffn_down.weight: scale inf");
    check_refused(bitnet, negative_scale, bad, "tensor blk.1.attn_q.weight: scale -0.5");
    check_refused(bitnet, code_three, bad, "tensor blk.1.attn_v.weight: ");
    check_refused(bitnet, code_three, bad, "row 1, column 6");
    check_refused(bitnet, last_code_three, bad, "row 127, column 255");
}

/* Two of 640 rows are bad. The lower one ends the part that the first of three threads packs; the
 * other one begins the last thread's part, where it is found sooner. */
static void two_codes_three(tiny_file *f) {
    tiny_tensor *t = tiny_find(f, "blk.0.ffn_up.weight");
    t->data[207 * 256 / 4] |= 0xc0;
    t->data[416 * 256 / 4] |= 0xc0;
}

static void test_lowest_row_is_named(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    tiny_file file = tiny_read("bitnet-tiny");
    two_codes_three(&file);
    tiny_path(path);
    tiny_write(&file, path);
    tiny_file_free(&file);
    tern_error first = {0};
    for (uint32_t i = 0; i < 40; i++) {
        const tern_model_params params = {.threads = i % 2 == 0 ? 1 : 3};
        tern_error err = {0};
        tern_model *model = NULL;
        check_case("two bad codes, %u threads, model %u", params.threads, i);
        assert_int_equal(tern_model_open(path, &params, &model, &err), TERN_ERR_TENSOR_DATA);
        if (strstr(err.message, "blk.0.ffn_up.weight: ") == NULL ||
            strstr(err.message, "row 207, column 0") == NULL)
            check_fail("message is: %s", err.message);
        if (i == 0)
            first = err;
        assert_string_equal(err.message, first.message);
    }
    unlink(path);
}

static void tall_matrix(tiny_file *f) {
    tiny_remove(f, "blk.0.attn_k.weight");
    tiny_add(f, "blk.0.attn_k.weight", TERN_FORMAT_I2_S, 256, 256);
}
static void wide_matrix(tiny_file *f) {
    tiny_remove(f, "blk.1.ffn_down.weight");
    tiny_add(f, "blk.1.ffn_down.weight", TERN_FORMAT_I2_S, 256, 640);
}
static void short_norm(tiny_file *f) {
    tiny_remove(f, "blk.1.ffn_norm.weight");
    tiny_add(f, "blk.1.ffn_norm.weight", TERN_FORMAT_F32, 255, 0);
}
static void sub_norm_of_embedding_width(tiny_file *f) {
    tiny_remove(f, "blk.0.ffn_sub_norm.weight");
    tiny_add(f, "blk.0.ffn_sub_norm.weight", TERN_FORMAT_F32, 256, 0);
}
static void wide_embedding(tiny_file *f) {
    tiny_remove(f, "token_embd.weight");
    tiny_add(f, "token_embd.weight", TERN_FORMAT_F16, 512, 515);
}
static void short_head(tiny_file *f) {
    tiny_remove(f, "output.weight");
    tiny_add(f, "output.weight", TERN_FORMAT_F32, 88, 306);
}
static void short_factors(tiny_file *f) {
    tiny_add(f, "rope_freqs.weight", TERN_FORMAT_F32, 10, 0);
}

static void test_wrong_shapes(void **state) {
    (void)state;
    const tern_status shape = TERN_ERR_TENSOR_SHAPE;
    const char *bitnet = "bitnet-tiny";
    const char *llama = "llama-tiny-f32";
    check_refused(bitnet, tall_matrix, shape,
                  "blk.0.attn_k.weight is 256 x 256, must be 256 x 128");
    check_refused(bitnet, wide_matrix, shape,
                  "blk.1.ffn_down.weight is 256 x 640, must be 640 x 256");
    check_refused(bitnet, short_norm, shape, "blk.1.ffn_norm.weight is 255 x 1, must be 256 x 1");
    check_refused(bitnet, sub_norm_of_embedding_width, shape,
                  "blk.0.ffn_sub_norm.weight is 256 x 1, must be 640 x 1");
    check_refused(bitnet, wide_embedding, shape, "token_embd.weight is 512 x 515, must be 256");
    check_refused(llama, short_head, shape, "output.weight is 88 x 306, must be 88 x 307");
    check_refused(llama, short_factors, shape, "rope_freqs.weight must be 11 values");
}

/* Every tensor of the file is needed. Without any one of them, the file is refused by its name. */
static void check_all_needed(const char *preset, const char *except) {
    tiny_file names = tiny_read(preset);
    for (size_t i = 0; i < names.n; i++) {
        char path[TINY_PATH_BYTES];
        char wanted[96];
        tern_error err = {0};
        tern_model *model = NULL;
        tiny_file file = tiny_read(preset);
        if (except == NULL || strcmp(names.tensors[i].name, except) != 0) {
            check_case("%s without %s", preset, names.tensors[i].name);
            tiny_remove(&file, names.tensors[i].name);
            tiny_path(path);
            tiny_write(&file, path);
            snprintf(wanted, sizeof wanted, "tensor %s is missing", names.tensors[i].name);
            assert_int_equal(tern_model_open(path, NULL, &model, &err), TERN_ERR_TENSOR_MISSING);
            unlink(path);
            if (strstr(err.message, wanted) == NULL || strstr(err.message, path) == NULL)
                check_fail("message is: %s", err.message);
        }
        tiny_file_free(&file);
    }
    tiny_file_free(&names);
}

static void test_missing_tensors(void **state) {
    (void)state;
    check_all_needed("bitnet-tiny", NULL);
    check_all_needed("llama-tiny-f32", "output.weight"); /* the embedding replaces it */
}

/* Q8_K: blocks of 256 weights in 292 bytes, in no file's matrices. */
static void matrix_of_q8_k(tiny_file *f) {
    tiny_remove(f, "blk.0.attn_output.weight");
    tiny_tensor *t = tiny_add(f, "blk.0.attn_output.weight", TERN_FORMAT_F16, 256, 256);
    t->type = 15;
    t->bytes = 256 * 292;
}
static void matrix_of_unknown_type(tiny_file *f) {
    tiny_find(f, "blk.1.ffn_gate.weight")->type = 77;
}
static void norm_of_q8_0(tiny_file *f) {
    tiny_remove(f, "blk.1.attn_norm.weight");
    tiny_add(f, "blk.1.attn_norm.weight", TERN_FORMAT_Q8_0, 256, 0);
}
static void embedding_of_i2_s(tiny_file *f) {
    tiny_remove(f, "token_embd.weight");
    tiny_add(f, "token_embd.weight", TERN_FORMAT_I2_S, 256, 512);
}

static void test_unsupported_types(void **state) {
    (void)state;
    const tern_status type = TERN_ERR_TENSOR_TYPE;
    check_refused("bitnet-tiny", matrix_of_q8_k, type,
                  "blk.0.attn_output.weight has type 15 (q8_k)");
    check_refused("bitnet-tiny", matrix_of_unknown_type, type,
                  "blk.1.ffn_gate.weight has type 77 (unknown)");
    check_refused("bitnet-tiny", norm_of_q8_0, type, "blk.1.attn_norm.weight has type 8 (q8_0)");
    check_refused("bitnet-tiny", embedding_of_i2_s, type,
                  "token_embd.weight has type 36 (i2_s), which cannot be used as embedding");
}

static void query_bias(tiny_file *f) {
    tiny_add(f, "blk.0.attn_q.bias", TERN_FORMAT_F32, 256, 0);
}
static void up_bias(tiny_file *f) {
    tiny_add(f, "blk.1.ffn_up.bias", TERN_FORMAT_F32, 160, 0);
}
static void output_bias(tiny_file *f) {
    tiny_add(f, "blk.1.attn_output.bias", TERN_FORMAT_F32, 96, 0);
}
static void scale_of_embedding(tiny_file *f) {
    tiny_add(f, "token_embd.scale", TERN_FORMAT_F32, 1, 0);
}
static void scale_of_no_head(tiny_file *f) {
    tiny_add(f, "output.scale", TERN_FORMAT_F32, 1, 0);
}
static void scale_of_norm(tiny_file *f) {
    tiny_add(f, "blk.1.ffn_norm.scale", TERN_FORMAT_F32, 1, 0);
}
static void two_scales(tiny_file *f) {
    tiny_add(f, "blk.0.attn_q.scale", TERN_FORMAT_F32, 2, 0);
}
static void scale_of_some_experts(tiny_file *f) {
    tiny_add(f, "blk.0.ffn_up_exps.scale", TERN_FORMAT_F32, 4, 0);
}
static void two_joined_scales(tiny_file *f) {
    tiny_add(f, "blk.1.attn_qkv.scale", TERN_FORMAT_F32, 1, 2);
}
static void one_scale(tiny_file *f) {
    tiny_add(f, "blk.1.attn_v.scale", TERN_FORMAT_F32, 1, 0);
}
static void infinite_factor(tiny_file *f) {
    put_float(tiny_add(f, "blk.1.ffn_down.scale", TERN_FORMAT_F32, 1, 0), 0, INFINITY);
}
static void key_norm(tiny_file *f) {
    tiny_add(f, "blk.0.attn_k_norm.weight", TERN_FORMAT_F32, 24, 0);
}
static void long_query_bias(tiny_file *f) {
    tiny_add(f, "blk.0.attn_q.bias", TERN_FORMAT_F32, 97, 0);
}
static void nan_in_value_bias(tiny_file *f) {
    put_float(tiny_add(f, "blk.1.attn_v.bias", TERN_FORMAT_F32, 48, 0), 47, NAN);
}
static void zero_factor(tiny_file *f) {
    tiny_add(f, "rope_freqs.weight", TERN_FORMAT_F32, 11, 0);
}

/* Factors belong to matrices that products read, and are numbers. */
static void test_factors_of_matrices(void **state) {
    (void)state;
    check_refused("llama-tiny-nvfp4", scale_of_embedding, TERN_ERR_ARCH,
                  "tensor token_embd.scale is a factor, as files in NVFP4 have it, but the model "
                  "multiplies by no matrix token_embd.weight");
    check_refused("llama-tiny-nvfp4", scale_of_no_head, TERN_ERR_ARCH,
                  "multiplies by no matrix output.weight");
    check_refused("llama-tiny-q8_0", scale_of_norm, TERN_ERR_ARCH,
                  "multiplies by no matrix blk.1.ffn_norm.weight");
    check_refused("llama-tiny-q8_0", two_scales, TERN_ERR_TENSOR_SHAPE,
                  "blk.0.attn_q.scale is 2 x 1, must be 1 x 1");
    check_refused("olmoe-tiny", scale_of_some_experts, TERN_ERR_TENSOR_SHAPE,
                  "blk.0.ffn_up_exps.scale is 4 x 1, must be 5 x 1");
    check_refused("phi3-tiny", two_joined_scales, TERN_ERR_TENSOR_SHAPE,
                  "blk.1.attn_q.scale is 1 x 2, must be 1 x 1");
    check_refused("llama-tiny-q8_0", infinite_factor, TERN_ERR_TENSOR_DATA,
                  "blk.1.ffn_down.scale: element 0 is not finite");
    check_refused_on("cuda", "llama-tiny-q8_0", one_scale, TERN_ERR_UNIMPLEMENTED,
                     "cuda does not run models with factors of whole matrices");
}

/* Tensors that would change the result are used or refused, but never ignored. */
static void test_unused_tensors(void **state) {
    (void)state;
    const char *llama = "llama-tiny-q8_0";
    check_refused("bitnet-tiny", query_bias, TERN_ERR_ARCH,
                  "bitnet-b1.58 does not use tensor blk.0.attn_q.bias");
    check_refused(llama, up_bias, TERN_ERR_ARCH, "llama does not use tensor blk.1.ffn_up.bias");
    check_refused(llama, output_bias, TERN_ERR_ARCH, "does not use tensor blk.1.attn_output.bias");
    check_refused(llama, key_norm, TERN_ERR_ARCH, "does not use tensor blk.0.attn_k_norm.weight");
    check_refused(llama, long_query_bias, TERN_ERR_TENSOR_SHAPE,
                  "blk.0.attn_q.bias is 97 x 1, must be 96 x 1");
    check_refused(llama, nan_in_value_bias, TERN_ERR_TENSOR_DATA,
                  "blk.1.attn_v.bias: element 47 is not finite");
    check_refused("llama-tiny-f32", zero_factor, TERN_ERR_TENSOR_DATA,
                  "rope_freqs.weight: element 0 is 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_data),
        cmocka_unit_test(test_wrong_shapes),
        cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_unsupported_types),
        cmocka_unit_test(test_factors_of_matrices),
        cmocka_unit_test(test_unused_tensors),
        cmocka_unit_test(test_lowest_row_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
