/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader: the contents of a good file, and the right refusal for each bad one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "authoring/convert/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/gguf_bytes.h"

/* A file with this header and n bytes of data: 0, 1, 2, ... */
static gguf_bytes file_of(const char *header, size_t n) {
    gguf_bytes b = {NULL, 0};
    gguf_add_u64(&b, strlen(header));
    gguf_add(&b, header, strlen(header));
    for (size_t i = 0; i < n; i++)
        gguf_add_u8(&b, (uint8_t)i);
    return b;
}

static void refuse_bytes(const gguf_bytes *b, tern_status wanted, const char *word) {
    tern_error err = {0};
    safetensors *file = NULL;
    const tern_status status = safetensors_parse(b->data, b->size, "bad.safetensors", &file, &err);
    if (status != wanted || strstr(err.message, word) == NULL)
        fail_msg("status %d, not %d: %s (wanted '%s')", status, wanted, err.message, word);
    assert_null(file);
    assert_ptr_equal(strstr(err.message, "bad.safetensors"), err.message);
}

static void refuse(const char *header, size_t n, tern_status wanted, const char *word) {
    gguf_bytes b = file_of(header, n);
    refuse_bytes(&b, wanted, word);
    gguf_bytes_free(&b);
}

static safetensors *accept(const gguf_bytes *b) {
    tern_error err = {0};
    safetensors *file = NULL;
    if (safetensors_parse(b->data, b->size, "good", &file, &err) != TERN_OK)
        fail_msg("%s", err.message);
    return file;
}

#define T(name, type, shape, begin, end)                                                           \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_good(void **state) {
    (void)state;
    gguf_bytes b = file_of(
        "{\"__metadata__\":{\"format\":\"pt\"}," T("b", "BF16", "[2,3]", "4", "16") "," T(
            "a", "F32", "[]", "0", "4") "," T("none", "U8", "[0,7]", "16",
                                              "16") "," T("new", "F4", "[5]", "16", "19") "}   ",
        19);
    safetensors *file = accept(&b);
    const uint8_t *data = b.data + b.size - 19;
    assert_int_equal(safetensors_count(file), 4);
    const safetensors_tensor *t = safetensors_find(file, "b");
    assert_non_null(t);
    assert_string_equal(t->name, "b");
    assert_int_equal(t->type, SAFETENSORS_BF16);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->bytes, 12);
    assert_ptr_equal(t->data, data + 4);
    t = safetensors_find(file, "a");
    assert_int_equal(t->n_dims, 0);
    assert_ptr_equal(t->data, data);
    assert_int_equal(safetensors_find(file, "none")->bytes, 0);
    assert_int_equal(safetensors_find(file, "new")->type, SAFETENSORS_UNKNOWN);
    assert_null(safetensors_find(file, "c"));
    check_freed(safetensors_close, file);
    assert_null(file);
    gguf_bytes_free(&b);
}

static void test_empty(void **state) {
    (void)state;
    gguf_bytes b = file_of("{}", 0);
    safetensors *file = accept(&b);
    assert_int_equal(safetensors_count(file), 0);
    safetensors_close(&file);
    gguf_bytes_free(&b);
}

static void test_length(void **state) {
    (void)state;
    static const uint64_t lengths[] = {3, 1000, 100000000, 100000001, UINT64_MAX, 1ull << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        gguf_bytes b = file_of("{}", 0);
        gguf_patch_u64(&b, 0, lengths[i]);
        const bool capped = lengths[i] > SAFETENSORS_MAX_HEADER;
        refuse_bytes(&b, capped ? TERN_ERR_COUNT : TERN_ERR_TRUNCATED, "header of");
        gguf_bytes_free(&b);
    }
    for (size_t n = 0; n < 8; n++) {
        gguf_bytes b = {NULL, 0};
        gguf_add_zeros(&b, n);
        refuse_bytes(&b, TERN_ERR_TRUNCATED, "not a safetensors");
        gguf_bytes_free(&b);
    }
}

static void test_json(void **state) {
    (void)state;
    static const char *const headers[] = {"",
                                          " ",
                                          "{",
                                          "[]",
                                          "7",
                                          "null",
                                          "{\"a\":1}",
                                          "{} x",
                                          "{\"a\":{}}",
                                          "{\"a\":[]}",
                                          "\"a\"",
                                          "{\"__metadata__\":7}",
                                          "{\"__metadata__\":{\"a\":7}}",
                                          "{\"__metadata__\":[\"a\"]}"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        refuse(headers[i], 0, TERN_ERR_JSON, "");
    refuse("{" T("", "U8", "[0]", "0", "0") "}", 0, TERN_ERR_STRING, "name");
    refuse("{" T("a\\u0000b", "U8", "[0]", "0", "0") "}", 0, TERN_ERR_STRING, "name");
    char deep[400] = "";
    for (size_t i = 0; i < 200; i++)
        deep[i] = '[';
    refuse(deep, 0, TERN_ERR_JSON, "");
}

static void test_fields(void **state) {
    (void)state;
    refuse("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, TERN_ERR_JSON, "'dtype'");
    refuse("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, TERN_ERR_JSON, "'shape'");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, TERN_ERR_JSON, "'data_offsets'");
    refuse("{" T("a", "U8", "[-1]", "0", "1") "}", 1, TERN_ERR_JSON, "'shape'");
    refuse("{" T("a", "U8", "[1.0]", "0", "1") "}", 1, TERN_ERR_JSON, "'shape'");
    refuse("{" T("a", "U8", "[\"1\"]", "0", "1") "}", 1, TERN_ERR_JSON, "'shape'");
    refuse("{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, TERN_ERR_JSON, "'shape'");
    refuse("{" T("a", "U8", "[99999999999999999999]", "0", "1") "}", 1, TERN_ERR_JSON, "'shape'");
    refuse("{" T("a", "U8", "[1]", "0", "1,2") "}", 1, TERN_ERR_JSON, "'data_offsets'");
    refuse("{" T("a", "U8", "[1]", "null", "1") "}", 1, TERN_ERR_JSON, "'data_offsets'");
    refuse("{" T("a", "U8", "[1]", "-1", "0") "}", 1, TERN_ERR_JSON, "'data_offsets'");
}

static void test_shapes(void **state) {
    (void)state;
    refuse("{" T("a", "F32", "[2]", "0", "7") "}", 7, TERN_ERR_TENSOR_SHAPE, "2 elements");
    refuse("{" T("a", "F32", "[3]", "0", "8") "}", 8, TERN_ERR_TENSOR_SHAPE, "3 elements");
    refuse("{" T("a", "F32", "[]", "0", "8") "}", 8, TERN_ERR_TENSOR_SHAPE, "1 elements");
    refuse("{" T("a", "F32", "[0]", "0", "4") "}", 4, TERN_ERR_TENSOR_SHAPE, "0 elements");
    /* 2^32 * 2^32 elements wrap to 0 in 64 bits, and 2^62 elements of 8 bytes do too. */
    refuse("{" T("a", "U8", "[4294967296,4294967296]", "0", "0") "}", 0, TERN_ERR_TENSOR_SHAPE,
           "2^64");
    refuse("{" T("a", "F64", "[4611686018427387904]", "0", "0") "}", 0, TERN_ERR_TENSOR_SHAPE,
           "elements");
}

static void test_places(void **state) {
    (void)state;
    refuse("{" T("a", "U8", "[2]", "0", "2") "}", 1, TERN_ERR_TENSOR_RANGE, "0 to 2 of 1");
    refuse("{" T("a", "U8", "[0]", "2", "1") "}", 2, TERN_ERR_TENSOR_RANGE, "2 to 1");
    refuse("{" T("a", "U8", "[1]", "9223372036854775806", "9223372036854775807") "}", 1,
           TERN_ERR_TENSOR_RANGE, "9223372036854775807");
    refuse("{" T("a", "U8", "[2]", "0", "2") "," T("b", "U8", "[2]", "1", "3") "}", 3,
           TERN_ERR_TENSOR_OVERLAP, "a and b");
    refuse("{" T("a", "U8", "[2]", "0", "2") "," T("b", "U8", "[2]", "0", "2") "}", 2,
           TERN_ERR_TENSOR_OVERLAP, "overlap");
    refuse("{" T("a", "U8", "[1]", "0", "1") "," T("b", "U8", "[1]", "2", "3") "}", 3,
           TERN_ERR_TENSOR_RANGE, "1 to 2 in front of b");
    refuse("{" T("a", "U8", "[1]", "1", "2") "}", 2, TERN_ERR_TENSOR_RANGE, "0 to 1 in front of a");
    refuse("{" T("a", "U8", "[1]", "0", "1") "}", 2, TERN_ERR_TENSOR_RANGE, "1 to 2");
    refuse("{}", 1, TERN_ERR_TENSOR_RANGE, "0 to 1");
    refuse("{" T("a", "U8", "[0]", "0", "0") "," T("a", "U8", "[0]", "0", "0") "}", 0,
           TERN_ERR_TENSOR_DUPLICATE, "a occurs twice");
}

static void test_files(void **state) {
    (void)state;
    tern_error err = {0};
    safetensors *file = NULL;
    assert_int_equal(safetensors_open("/nonexistent/x.safetensors", &file, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, "/nonexistent/x.safetensors"));
    assert_int_equal(safetensors_open("/tmp", &file, &err), TERN_ERR_IO);
    assert_null(file);
    safetensors_close(&file);
    safetensors_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),   cmocka_unit_test(test_empty),  cmocka_unit_test(test_length),
        cmocka_unit_test(test_json),   cmocka_unit_test(test_fields), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_places), cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
