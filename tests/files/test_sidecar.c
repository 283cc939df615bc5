/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse layers beside a GGUF file, in memory: where their file is, what they become part of,
 * everything that may not match, and what happens when any single allocation fails.
 */
#include "tests/support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash64.h"
#include "runtime/files/gguf/iebin.h"
#include "runtime/files/gguf/sidecar.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/gguf_bytes.h"

enum { DENSE_BYTES = 64, WORDS = 24, TEXT_BYTES = 1024 };

/* 4 x 4 floats in blocks of 2 x 2, of which two are stored (docs/formats.md). */
static _Alignas(64) uint32_t blocks[WORDS];

static void make_blocks(void) {
    static const uint32_t head[] = {0x53424549, 1, 4, 4, 2, 2, 2, 0, 0, 0, 0, 0, 1, 2, 1, 0};
    static const float values[] = {1, 2, 3, 4, 5, 0, 0, 6};
    memcpy(blocks, head, sizeof head);
    memcpy(blocks + 16, values, sizeof values);
}

/* A file with a matrix "a" of 4 x 4 floats and a vector "b" of 16. */
static gguf_bytes make_model(void) {
    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, 3, 2, 1);
    gguf_add_key_u32(&b, "general.file_type", 0);
    gguf_add_tensor(&b, "a", 0, 4, 4, 0);
    gguf_add_tensor(&b, "b", 0, 16, 0, DENSE_BYTES);
    gguf_align(&b, 32);
    for (uint32_t i = 0; i < 2 * DENSE_BYTES / 4; i++)
        gguf_add_u32(&b, 0x3f800000 + i);
    return b;
}

static uint64_t dense_hash(const gguf_bytes *model) {
    return tern_hash64_of(model->data + model->size - 2 * DENSE_BYTES, DENSE_BYTES);
}

static void write_list(char text[TEXT_BYTES], const char *name, const char *form, uint64_t hash) {
    snprintf(text, TEXT_BYTES,
             "{\"version\":2,\"tensors\":[{\"name\":\"%s\",\"file_data_offset\":0,%s,"
             "\"replaces_xxh64\":\"%016" PRIx64 "\"}]}",
             name, form, hash);
}

static const char good_form[] = "\"dtype\":\"iebs\",\"shape\":[4,4],\"nbytes\":96";

/* Names that begin with 'k' open the file of keys; all others open the blocks. */
static tern_status open_file(void *user, const char *name, tern_gguf **out, tern_error *err) {
    const gguf_bytes *keys = user;
    return name[0] == 'k'
               ? tern_gguf_raw(keys->data, keys->size, NULL, name, out, err)
               : tern_gguf_raw((const uint8_t *)blocks, sizeof blocks, NULL, name, out, err);
}

static tern_status open_list(const char *text, gguf_bytes *keys, tern_gguf **out, tern_error *err) {
    tern_gguf *raw = NULL;
    const tern_status status =
        tern_gguf_raw((const uint8_t *)text, strlen(text), NULL, "list", &raw, err);
    return status == TERN_OK ? tern_iebin_parse(raw, open_file, keys, NULL, out, err) : status;
}

/* ---- the path -------------------------------------------------------------------------------- */

static void test_path(void **state) {
    static const char *const cases[][2] = {
        {"a/model.gguf", "a/model.sparse"},
        {"model-00002-of-00003.gguf", "model.sparse"},
        {"model-0002-of-00003.gguf", "model-0002-of-00003.sparse"},
        {"model-00002-of-00003", "model-00002-of-00003.sparse"},
        {"blob", "blob.sparse"},
        {".gguf", ".gguf.sparse"},
        {"-00001-of-00002.gguf", "-00001-of-00002.sparse"},
    };
    char path[32];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case("%s", cases[i][0]);
        char longer[64];
        assert_true(tern_gguf_sidecar_path(cases[i][0], longer, sizeof longer));
        assert_string_equal(longer, cases[i][1]);
    }
    assert_true(tern_gguf_sidecar_path("123456.gguf", path, 14)); /* with the terminator */
    assert_false(tern_gguf_sidecar_path("1234567.gguf", path, 14));
}

/* ---- applying it ----------------------------------------------------------------------------- */

static void test_applied(void **state) {
    gguf_bytes model = make_model();
    tern_error err = {.status = TERN_OK};
    char text[TEXT_BYTES];
    tern_gguf *file, *list;
    size_t n;
    (void)state;
    make_blocks();
    write_list(text, "a", good_form, dense_hash(&model));
    assert_int_equal(tern_gguf_parse(model.data, model.size, "model", &file, &err), TERN_OK);
    assert_null(tern_gguf_sidecar(file, &n));
    assert_int_equal(n, 0);
    const tern_gguf_tensor *a = tern_gguf_find_tensor(file, "a");
    const tern_gguf_tensor *b = tern_gguf_find_tensor(file, "b");
    const tern_gguf_tensor before = *b;
    assert_int_equal(open_list(text, NULL, &list, &err), TERN_OK);
    assert_int_equal(tern_sidecar_apply(file, list, &err), TERN_OK);
    assert_ptr_equal(tern_gguf_find_tensor(file, "a"), a);
    assert_int_equal(a->type, TERN_GGUF_SPARSE_TYPE);
    assert_ptr_equal(a->data, blocks);
    assert_int_equal(a->bytes, sizeof blocks);
    assert_int_equal(tern_gguf_format(a), TERN_FORMAT_F32);
    assert_memory_equal(&before, b, sizeof before);
    assert_string_equal(tern_gguf_sidecar(file, &n), "list");
    assert_int_equal(n, 1);
    assert_int_equal(tern_gguf_part_count(file), 3); /* model, list and data */
    assert_int_equal(tern_gguf_part_at(file, 0).n_tensors, 1);
    assert_int_equal(tern_gguf_part_at(file, 1).n_tensors, 0);
    assert_int_equal(tern_gguf_part_at(file, 2).n_tensors, 1);
    assert_int_equal(tern_gguf_file_bytes(file), model.size + strlen(text) + sizeof blocks);
    tern_gguf_close(&file);
    gguf_bytes_free(&model);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

/* The file is refused with these words, and stays unchanged. */
static void refuse(const char *text, gguf_bytes *keys, tern_status wanted, const char *words) {
    gguf_bytes model = make_model();
    tern_error err = {.status = TERN_OK};
    tern_gguf *file, *list;
    check_case("%s", text);
    assert_int_equal(tern_gguf_parse(model.data, model.size, "model", &file, &err), TERN_OK);
    if (open_list(text, keys, &list, &err) != TERN_OK)
        check_fail("%s", err.message);
    assert_int_equal(tern_sidecar_apply(file, list, &err), wanted);
    if (strstr(err.message, "list: ") != err.message || strstr(err.message, words) == NULL)
        check_fail("%s", err.message);
    assert_int_equal(tern_gguf_find_tensor(file, "a")->type, 0);
    assert_int_equal(tern_gguf_part_count(file), 1);
    tern_gguf_close(&file);
    gguf_bytes_free(&model);
}

static void test_refused(void **state) {
    gguf_bytes model = make_model(), keys = {NULL, 0};
    const uint64_t hash = dense_hash(&model);
    char text[TEXT_BYTES];
    (void)state;
    make_blocks();
    write_list(text, "c", good_form, hash);
    refuse(text, NULL, TERN_ERR_TENSOR_MISSING, "'c'");
    write_list(text, "b", good_form, hash);
    refuse(text, NULL, TERN_ERR_TENSOR_SHAPE, "shape");
    write_list(text, "a", "\"dtype\":\"f32\",\"shape\":[4,4]", hash);
    refuse(text, NULL, TERN_ERR_TENSOR_TYPE, "iebs");
    write_list(text, "a", good_form, hash ^ 1);
    refuse(text, NULL, TERN_ERR_PARTS, "other weights");
    write_list(text, "a", good_form, 0);
    refuse(text, NULL, TERN_ERR_JSON, "replaces_xxh64");
    refuse("{\"tensors\":[]}", NULL, TERN_ERR_EMPTY, "no sparse layers");
    gguf_add_header(&keys, 3, 0, 1);
    gguf_add_key_u32(&keys, "a", 7);
    refuse("{\"keys\":\"k\",\"tensors\":[]}", &keys, TERN_ERR_PARTS, "keys");
    gguf_bytes_free(&keys);
    gguf_bytes_free(&model);
}

/* Blocks of f16 cannot replace floats of 4 bytes. */
static void test_other_format(void **state) {
    static const uint32_t head[] = {0x53424549, 2, 4, 4, 4, 4, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0};
    gguf_bytes model = make_model();
    char text[TEXT_BYTES];
    (void)state;
    memset(blocks, 0, sizeof blocks);
    memcpy(blocks, head, sizeof head);
    write_list(text, "a", good_form, dense_hash(&model));
    refuse(text, NULL, TERN_ERR_TENSOR_TYPE, "format");
    gguf_bytes_free(&model);
}

/* A hash field must be a hash, in every list. */
static void test_field(void **state) {
    static const char *const wrong[] = {"12", "\"12\"", "\"0123456789abcdeg\""};
    char text[TEXT_BYTES];
    (void)state;
    make_blocks();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tern_error err = {.status = TERN_OK};
        tern_gguf *list;
        check_case("%s", wrong[i]);
        snprintf(text, sizeof text,
                 "{\"tensors\":[{\"name\":\"a\",\"file_data_offset\":0,%s,\"replaces_xxh64\":%s}]}",
                 good_form, wrong[i]);
        assert_int_equal(open_list(text, NULL, &list, &err), TERN_ERR_JSON);
        assert_non_null(strstr(err.message, "replaces_xxh64"));
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_memory(void **state) {
    gguf_bytes model = make_model();
    char text[TEXT_BYTES];
    size_t failed = 0;
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL) {
        gguf_bytes_free(&model);
        check_skip("a sanitizer has allocations of its own");
    }
    make_blocks();
    write_list(text, "a", good_form, dense_hash(&model));
    for (bool done = false; !done; failed++) {
        tern_gguf *file, *list;
        tern_error err = {.status = TERN_OK};
        assert_int_equal(tern_gguf_parse(model.data, model.size, "model", &file, &err), TERN_OK);
        const long live = allocations_live;
        allocations_asked = 0;
        allocation_that_fails = failed + 1;
        tern_status status = open_list(text, NULL, &list, &err);
        if (status == TERN_OK)
            status = tern_sidecar_apply(file, list, &err);
        allocation_that_fails = 0;
        done = status == TERN_OK;
        if (!done) {
            assert_int_equal(status, TERN_ERR_NOMEM);
            assert_int_equal(allocations_live, live);
            assert_int_equal(tern_gguf_find_tensor(file, "a")->type, 0);
        }
        tern_gguf_close(&file);
    }
    assert_true(failed > 5);
    gguf_bytes_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),    cmocka_unit_test(test_applied),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_other_format),
        cmocka_unit_test(test_field),   cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
