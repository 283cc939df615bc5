/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed GGUF files: each rule of the reader has a file that breaks that rule alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/files/gguf/gguf.h"
#include "tests/support/gguf_bytes.h"

/* Parses, expects the status and a one-line message that contains `text`, and frees the bytes. */
static void expect(gguf_bytes *b, tern_status status, const char *text) {
    tern_error err = {0};
    tern_gguf *file = NULL;
    const tern_status got = tern_gguf_parse(b->data, b->size, "bad.gguf", &file, &err);
    if (got != status || strstr(err.message, text) == NULL)
        print_message("got %d: %s\n", (int)got, err.message);
    assert_int_equal(got, status);
    assert_int_equal(err.status, status);
    assert_null(file);
    assert_ptr_equal(strstr(err.message, "bad.gguf: "), err.message);
    assert_non_null(strstr(err.message, text));
    assert_null(strchr(err.message, '\n'));
    assert_int_equal(tern_gguf_parse(b->data, b->size, "bad.gguf", &file, NULL), status);
    gguf_bytes_free(b);
}

static gguf_bytes header(uint32_t version, uint64_t n_tensors, uint64_t n_values) {
    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, version, n_tensors, n_values);
    return b;
}

static void test_header(void **state) {
    (void)state;
    gguf_bytes b = {NULL, 0};
    gguf_add(&b, "GGUF\3\0\0", 7);
    expect(&b, TERN_ERR_TRUNCATED, "7 bytes");
    b = header(3, 0, 0);
    b.data[3] = 'f';
    expect(&b, TERN_ERR_MAGIC, "47 47 55 66");
    b = header(1, 0, 0);
    expect(&b, TERN_ERR_VERSION, "version 1");
    b = header(4, 0, 0);
    expect(&b, TERN_ERR_VERSION, "version 4");
    b = header(0, 0, 0);
    expect(&b, TERN_ERR_VERSION, "version 0");
    b = header(0x03000000, 0, 0);
    expect(&b, TERN_ERR_ENDIAN, "big-endian");
    b = header(0x02000000, 0, 0);
    expect(&b, TERN_ERR_ENDIAN, "version 2");
}

static void test_counts(void **state) {
    (void)state;
    static const uint64_t counts[] = {3, 1 << 20, (1 << 20) + 1, UINT64_C(1) << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gguf_bytes b = header(3, 0, counts[i]);
        gguf_add_zeros(&b, 3 * 14 - 1); /* one byte too few for three keys */
        expect(&b, TERN_ERR_COUNT, "metadata keys");
        b = header(3, counts[i], 0);
        gguf_add_zeros(&b, 3 * 33 - 1);
        expect(&b, TERN_ERR_COUNT, "tensors");
    }
}

/* The u32 alignment and u64 data offset that some converter appended to the standard header. */
static void test_36_byte_header(void **state) {
    (void)state;
    gguf_bytes b = header(3, 0, 1);
    gguf_add_u32(&b, 32);
    gguf_add_u64(&b, 64);
    gguf_add_key_u32(&b, "a.n", 7);
    gguf_align(&b, 64);
    expect(&b, TERN_ERR_VERSION, "36-byte header");
}

static void test_keys(void **state) {
    (void)state;
    static const uint64_t lengths[] = {0, 65536, UINT64_C(1) << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        gguf_bytes b = header(3, 0, 1);
        gguf_add_u64(&b, lengths[i]);
        gguf_add_zeros(&b, 70000);
        expect(&b, TERN_ERR_STRING, "key 0");
    }
    gguf_bytes b = header(3, 0, 1);
    gguf_add_u64(&b, 20);
    gguf_add_zeros(&b, 19);
    expect(&b, TERN_ERR_STRING, "20 bytes, only 19");

    b = header(3, 0, 3);
    gguf_add_key_u32(&b, "b", 1);
    gguf_add_key_u32(&b, "a", 1);
    gguf_add_key_u32(&b, "b", 2);
    expect(&b, TERN_ERR_KEY_DUPLICATE, "'b'");

    b = header(3, 0, 1);
    gguf_add_string(&b, "odd");
    gguf_add_u32(&b, 13);
    gguf_add_zeros(&b, 16);
    expect(&b, TERN_ERR_KEY_TYPE, "'odd': unknown type 13");
}

static void test_values(void **state) {
    (void)state;
    static const uint64_t lengths[] = {5, UINT64_MAX - 7, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        gguf_bytes b = header(3, 0, 1);
        gguf_add_key_string(&b, "key", "four");
        gguf_patch_u64(&b, b.size - 12, lengths[i]);
        expect(&b, TERN_ERR_STRING, "'key'");
    }
    gguf_bytes b = header(3, 0, 1);
    gguf_add_string(&b, "short");
    gguf_add_u32(&b, 4);
    gguf_add_zeros(&b, 3);
    expect(&b, TERN_ERR_TRUNCATED, "'short'");
    b = header(3, 0, 1);
    gguf_add_string(&b, "flag");
    gguf_add_u32(&b, 7);
    gguf_add_u8(&b, 2);
    expect(&b, TERN_ERR_KEY_RANGE, "'flag': 2");
}

static void test_arrays(void **state) {
    (void)state;
    gguf_bytes b = header(3, 0, 1);
    gguf_add_key_array(&b, "nested", 9, 0);
    expect(&b, TERN_ERR_KEY_TYPE, "'nested': array of type 9");
    b = header(3, 0, 1);
    gguf_add_key_array(&b, "odd", 13, 0);
    expect(&b, TERN_ERR_KEY_TYPE, "type 13");
    static const uint64_t counts[] = {5, UINT64_C(1) << 61, UINT64_C(1) << 62, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        b = header(3, 0, 1);
        gguf_add_key_array(&b, "numbers", 5, counts[i]); /* times 4 wraps to 0 */
        gguf_add_zeros(&b, 19);
        expect(&b, TERN_ERR_COUNT, "'numbers'");
        b = header(3, 0, 1);
        gguf_add_key_array(&b, "strings", 8, counts[i]);
        gguf_add_zeros(&b, 39);
        expect(&b, TERN_ERR_COUNT, "'strings'");
    }
    b = header(3, 0, 1);
    gguf_add_key_array(&b, "strings", 8, 2);
    gguf_add_string(&b, "12345678");
    gguf_add_u32(&b, 0); /* half of a length field */
    expect(&b, TERN_ERR_STRING, "string 1");
    b = header(3, 0, 1);
    gguf_add_key_array(&b, "flags", 7, 3);
    gguf_add(&b, "\0\1\xff", 3);
    expect(&b, TERN_ERR_KEY_RANGE, "255");
    b = header(3, 0, 1);
    gguf_add_string(&b, "cut");
    gguf_add_u32(&b, 9);
    gguf_add_u32(&b, 4);
    gguf_add_u32(&b, 0);
    expect(&b, TERN_ERR_TRUNCATED, "array");
}

static void test_bad_alignment(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 3, 48, 65536 + 1, 131072, UINT32_C(1) << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gguf_bytes b = header(3, 0, 1);
        gguf_add_key_u32(&b, "general.alignment", bad[i]);
        expect(&b, TERN_ERR_ALIGNMENT, "power of two");
    }
    gguf_bytes b = header(3, 0, 1);
    gguf_add_string(&b, "general.alignment");
    gguf_add_u32(&b, 10);
    gguf_add_u64(&b, 32);
    expect(&b, TERN_ERR_ALIGNMENT, "type u64");
}

/* A file with one tensor of these dimensions and 64 bytes of data. */
static gguf_bytes one_tensor(const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne,
                             uint64_t offset) {
    gguf_bytes b = header(3, 1, 0);
    gguf_add_string(&b, name);
    gguf_add_u32(&b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++)
        gguf_add_u64(&b, ne[i]);
    gguf_add_u32(&b, type);
    gguf_add_u64(&b, offset);
    gguf_align(&b, 32);
    gguf_add_zeros(&b, 64);
    return b;
}

static void test_tensor_names(void **state) {
    (void)state;
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    const uint64_t ne[] = {4};
    gguf_bytes b = one_tensor(name, 0, 1, ne, 0);
    expect(&b, TERN_ERR_STRING, "tensor 0: name of 256 bytes");
    b = one_tensor("", 0, 1, ne, 0);
    expect(&b, TERN_ERR_STRING, "tensor 0: name of 0 bytes");
    b = one_tensor("name", 0, 1, ne, 0);
    gguf_patch_u64(&b, 24, UINT64_MAX);
    expect(&b, TERN_ERR_STRING, "18446744073709551615");
    b = header(3, 2, 0);
    gguf_add_tensor(&b, "twice", 0, 4, 0, 0);
    gguf_add_tensor(&b, "twice", 0, 4, 0, 32);
    gguf_align(&b, 32);
    gguf_add_zeros(&b, 64);
    expect(&b, TERN_ERR_TENSOR_DUPLICATE, "'twice'");
}

static void test_tensor_shapes(void **state) {
    (void)state;
    static const struct {
        uint32_t type, n_dims;
        uint64_t ne[5];
        const char *text;
    } cases[] = {
        {0, 0, {0}, "not 1 to 4: 0"},
        {0, 5, {1, 1, 1, 1, 1}, "not 1 to 4: 5"},
        {0, 2, {4, 0}, "dimension 1"},
        {0, 1, {0}, "dimension 0"},
        {0, 1, {(UINT64_C(1) << 62) + 1}, "2^62"},
        {24, 2, {UINT64_C(1) << 32, UINT64_C(1) << 32}, "2^62"}, /* product wraps to 0 */
        {24, 4, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, "2^62"},
        {24, 1, {UINT64_MAX}, "2^62"},
        {0, 1, {UINT64_C(1) << 62}, "(f32)"}, /* bytes wrap to 0 */
        {28, 1, {UINT64_C(1) << 61}, "(f64)"},
        {2, 1, {33}, "33 columns of 1 rows do not suit type 2 (q4_0)"},
        {14, 2, {128, 2}, "(q6_k)"},
        {36, 2, {126, 64}, "(i2_s)"}, /* columns are not a multiple of 4 */
        {36, 2, {64, 1}, "(i2_s)"},   /* elements are not a multiple of 128 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gguf_bytes b = one_tensor("shape", cases[i].type, cases[i].n_dims, cases[i].ne, 0);
        expect(&b, TERN_ERR_TENSOR_SHAPE, cases[i].text);
    }
}

/* Types that only lists of tensors use: a GGUF file does not check what they hold. */
static void test_types_of_lists(void **state) {
    (void)state;
    const uint64_t ne[] = {32};
    for (uint32_t type = TERN_GGUF_FIRST_OWN_TYPE; type != 0; type++) {
        gguf_bytes b = one_tensor("t", type, 1, ne, 0);
        expect(&b, TERN_ERR_TENSOR_TYPE, "'t': no GGUF file has type 42949672");
    }
}

static void test_tensor_offsets(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        uint64_t ne0, offset;
        tern_status status;
    } cases[] = {
        {0, 4, 16, TERN_ERR_TENSOR_OFFSET},
        {0, 4, UINT64_MAX, TERN_ERR_TENSOR_OFFSET},
        {0, 4, 64, TERN_ERR_TENSOR_RANGE},
        {0, 4, UINT64_MAX - 31, TERN_ERR_TENSOR_RANGE}, /* offset + bytes wraps */
        {0, 17, 0, TERN_ERR_TENSOR_RANGE},
        {0, 9, 32, TERN_ERR_TENSOR_RANGE},
        {0, UINT64_C(1) << 60, 0, TERN_ERR_TENSOR_RANGE},
        {9999, 4, 64, TERN_ERR_TENSOR_RANGE}, /* unknown size: only the offset is checked */
        {9999, 4, UINT64_MAX - 31, TERN_ERR_TENSOR_RANGE},
        {9999, 4, 1, TERN_ERR_TENSOR_OFFSET},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gguf_bytes b = one_tensor("place", cases[i].type, 1, &cases[i].ne0, cases[i].offset);
        expect(&b, cases[i].status, "'place'");
    }
}

static void test_overlap(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        uint64_t ne0, offset;
    } first[] = {{0, 9, 0}, {0, 16, 0}, {0, 4, 32}, {9999, 1, 32}};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        gguf_bytes b = header(3, 2, 0);
        gguf_add_tensor(&b, "second", 0, 8, 0, 32);
        gguf_add_tensor(&b, "first", first[i].type, first[i].ne0, 0, first[i].offset);
        gguf_align(&b, 32);
        gguf_add_zeros(&b, 64);
        expect(&b, TERN_ERR_TENSOR_OVERLAP, "overlap at offset 32");
    }
}

static void test_no_data_section(void **state) {
    (void)state;
    gguf_bytes b = header(3, 1, 0);
    gguf_add_tensor(&b, "t", 0, 4, 0, 0);
    expect(&b, TERN_ERR_TRUNCATED, "before its data at 64");
}

/* Control characters, escape sequences and broken UTF-8 in a file never reach a terminal. */
static void test_messages_are_clean(void **state) {
    (void)state;
    gguf_bytes b = header(3, 0, 1);
    gguf_add_key_u32(&b, "\x1b[2J\n\xff\xc2\x9b\xe2\x82\xac\xed\xa0\x80", 0);
    gguf_patch_u32(&b, b.size - 8, 77);
    expect(&b, TERN_ERR_KEY_TYPE,
           "'?[2J????\xe2\x82\xac??"
           "?': unknown type 77");
}

/* A file with every kind of value and four tensors, the last one of 40 bytes. */
static gguf_bytes rich_file(void) {
    gguf_bytes b = header(3, 4, 8);
    gguf_add_key_string(&b, "general.architecture", "llama");
    gguf_add_key_u32(&b, "general.alignment", 64);
    gguf_add_string(&b, "flag");
    gguf_add_u32(&b, 7);
    gguf_add_u8(&b, 1);
    gguf_add_string(&b, "long");
    gguf_add_u32(&b, 11);
    gguf_add_u64(&b, UINT64_MAX);
    gguf_add_key_array(&b, "tokens", 8, 3);
    gguf_add_string(&b, "<s>");
    gguf_add_string(&b, "");
    gguf_add_string(&b, "\xff\xfe");
    gguf_add_key_array(&b, "flags", 7, 2);
    gguf_add(&b, "\0\1", 2);
    gguf_add_key_array(&b, "types", 5, 3);
    gguf_add_zeros(&b, 12);
    gguf_add_key_array(&b, "none", 6, 0);
    gguf_add_tensor(&b, "token_embd.weight", 8, 32, 2, 192);
    gguf_add_tensor(&b, "blk.0.w", 36, 128, 1, 0);
    gguf_add_tensor(&b, "odd", 77, 5, 0, 64);
    gguf_add_tensor(&b, "last", 0, 10, 0, 320);
    gguf_align(&b, 64);
    gguf_add_zeros(&b, 360);
    return b;
}

/* Reads everything a program could read of an accepted file, under a sanitizer if there is one. */
static uint64_t touch(const tern_gguf *file) {
    uint64_t sum = 0;
    for (size_t i = 0; i < tern_gguf_value_count(file); i++) {
        const tern_gguf_value *v = tern_gguf_value_at(file, i);
        uint32_t u;
        for (uint64_t k = 0; k < v->count; k++)
            sum += tern_gguf_element_u32(v, k, &u) ? u : 1;
        const uint8_t *cursor = v->data;
        for (uint64_t k = 0; v->element == TERN_GGUF_STRING && k < v->count; k++) {
            const tern_span s = tern_gguf_next_string(&cursor);
            sum += s.size > 0 ? (uint64_t)s.data[0] + (uint64_t)s.data[s.size - 1] : 0;
        }
    }
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        sum += t->data[0];
        sum += t->data[t->extent - 1];
        assert_true(t->bytes <= t->extent);
    }
    return sum;
}

static void test_truncation_at_every_length(void **state) {
    (void)state;
    gguf_bytes b = rich_file();
    tern_gguf *file = NULL;
    assert_int_equal(tern_gguf_parse(b.data, b.size, "rich", &file, NULL), TERN_OK);
    touch(file);
    tern_gguf_close(&file);
    for (size_t size = 0; size < b.size; size++) {
        uint8_t *copy = malloc(size == 0 ? 1 : size); /* exact, so that ASan sees the end */
        assert_non_null(copy);
        memcpy(copy, b.data, size);
        tern_error err = {0};
        assert_int_not_equal(tern_gguf_parse(copy, size, "cut", &file, &err), TERN_OK);
        assert_null(file);
        assert_true(err.message[0] != '\0');
        free(copy);
    }
    gguf_bytes_free(&b);
}

/* Every byte of the metadata takes several other values. Some files stay valid, and must be safe to
 * read. */
static void test_changed_bytes(void **state) {
    (void)state;
    static const uint8_t flips[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x7f};
    gguf_bytes b = rich_file();
    size_t accepted = 0, refused = 0;
    for (size_t i = 0; i < b.size - 360; i++) {
        for (size_t k = 0; k < sizeof flips; k++) {
            tern_gguf *file = NULL;
            b.data[i] ^= flips[k];
            if (tern_gguf_parse(b.data, b.size, "changed", &file, NULL) == TERN_OK) {
                touch(file);
                accepted++;
            } else {
                refused++;
            }
            tern_gguf_close(&file);
            b.data[i] ^= flips[k];
        }
    }
    assert_true(accepted > 100); /* changed letters of names and values */
    assert_true(refused > 1000);
    gguf_bytes_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_36_byte_header),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_bad_alignment),
        cmocka_unit_test(test_tensor_names),
        cmocka_unit_test(test_tensor_shapes),
        cmocka_unit_test(test_tensor_offsets),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_no_data_section),
        cmocka_unit_test(test_types_of_lists),
        cmocka_unit_test(test_messages_are_clean),
        cmocka_unit_test(test_truncation_at_every_length),
        cmocka_unit_test(test_changed_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
