/* SPDX-License-Identifier: Apache-2.0 */
/* The GGUF reader on well-formed files: layout, lookups, typed access, maps, messages. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/files/gguf/gguf.h"
#include "tests/support/gguf_bytes.h"

static const uint8_t minimal_metadata[] = {
    0x47, 0x47, 0x55, 0x46, 0x03, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x67, 0x65, 0x6e, 0x65, 0x72, 0x61, 0x6c, 0x2e, 0x61, 0x72, 0x63, 0x68, 0x69,
    0x74, 0x65, 0x63, 0x74, 0x75, 0x72, 0x65, 0x08, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x6c, 0x6c, 0x61, 0x6d, 0x61, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x61, 0x2e, 0x6e, 0x04, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x01, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x74, 0x02, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

/* The smallest useful file: two keys, and one f32 tensor of 4 x 2 at byte 160; 192 bytes in all. */
static gguf_bytes minimal_file(uint32_t version) {
    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, version, 1, 2);
    gguf_add_key_string(&b, "general.architecture", "llama");
    gguf_add_key_u32(&b, "a.n", 7);
    gguf_add_tensor(&b, "t", 0, 4, 2, 0);
    gguf_align(&b, 32);
    for (uint32_t i = 0; i < 8; i++)
        gguf_add_u32(&b, 0x3f800000 + i);
    return b;
}

static tern_gguf *parse_ok(const gguf_bytes *b) {
    tern_error err = {0};
    tern_gguf *file = NULL;
    const tern_status status = tern_gguf_parse(b->data, b->size, "test.gguf", &file, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TERN_OK);
    assert_non_null(file);
    return file;
}

static void check_minimal(const tern_gguf *file) {
    uint32_t n = 0;
    assert_int_equal(tern_gguf_value_count(file), 2);
    assert_int_equal(tern_gguf_u32(file, "a.n", &n, NULL), TERN_OK);
    assert_int_equal(n, 7);
    assert_int_equal(tern_gguf_tensor_count(file), 1);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, "t");
    assert_ptr_equal(t, tern_gguf_tensor_at(file, 0));
    assert_int_equal(t->type, 0);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->ne[0], 4);
    assert_int_equal(t->ne[1], 2);
    assert_int_equal(t->ne[2], 1);
    assert_int_equal(t->ne[3], 1);
    assert_int_equal(t->bytes, 32);
    assert_int_equal(t->extent, 32);
    assert_memory_equal(t->data, "\0\0\x80\x3f\1\0\x80\x3f", 8);
}

static void test_minimal_bytes(void **state) {
    (void)state;
    gguf_bytes b = minimal_file(3);
    assert_int_equal(b.size, 192);
    assert_int_equal(sizeof minimal_metadata, 129);
    assert_memory_equal(b.data, minimal_metadata, sizeof minimal_metadata);
    tern_gguf *file = parse_ok(&b);
    check_minimal(file);
    assert_ptr_equal(tern_gguf_tensor_at(file, 0)->data, b.data + 160);
    assert_int_equal(tern_gguf_version(file), 3);
    assert_int_equal(tern_gguf_file_bytes(file), 192);
    assert_string_equal(tern_gguf_name(file), "test.gguf");
    tern_gguf_drop_pages(file, tern_gguf_tensor_at(file, 0)); /* there is no map, so no effect */
    check_minimal(file);
    tern_gguf_close(&file);
    assert_null(file);
    tern_gguf_close(&file);
    tern_gguf_close(NULL);
    gguf_bytes_free(&b);
}

static void test_version_2(void **state) {
    (void)state;
    gguf_bytes b = minimal_file(2);
    tern_gguf *file = parse_ok(&b);
    assert_int_equal(tern_gguf_version(file), 2);
    check_minimal(file);
    tern_gguf_close(&file);
    gguf_bytes_free(&b);
}

static void test_no_records(void **state) {
    (void)state;
    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, 3, 0, 0);
    tern_gguf *file = parse_ok(&b);
    assert_int_equal(tern_gguf_value_count(file), 0);
    assert_int_equal(tern_gguf_tensor_count(file), 0);
    assert_null(tern_gguf_value_at(file, 0));
    assert_null(tern_gguf_tensor_at(file, 0));
    assert_null(tern_gguf_find(file, "a"));
    assert_null(tern_gguf_find_tensor(file, "a"));
    tern_gguf_close(&file);
    gguf_bytes_free(&b);
}

static void test_alignments(void **state) {
    (void)state;
    static const uint32_t alignments[] = {1, 2, 32, 64, 4096, 65536};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
        const uint32_t a = alignments[i];
        gguf_bytes b = {NULL, 0};
        gguf_add_header(&b, 3, 2, 1);
        gguf_add_key_u32(&b, "general.alignment", a);
        /* Tensors may be described in the opposite order of their data, and with a gap between
         * them. */
        gguf_add_tensor(&b, "second", 24, 3, 0, a < 8 ? 8 : a);
        gguf_add_tensor(&b, "first", 24, 5, 0, 0);
        gguf_align(&b, a);
        const size_t data = b.size;
        gguf_add_zeros(&b, (a < 8 ? 8 : a) + 3);
        tern_gguf *file = parse_ok(&b);
        assert_ptr_equal(tern_gguf_find_tensor(file, "first")->data, b.data + data);
        assert_int_equal(tern_gguf_find_tensor(file, "first")->extent, a < 8 ? 8 : a);
        assert_ptr_equal(tern_gguf_find_tensor(file, "second")->data,
                         b.data + data + (a < 8 ? 8 : a));
        assert_int_equal(tern_gguf_find_tensor(file, "second")->extent, 3);
        tern_gguf_close(&file);
        gguf_bytes_free(&b);
    }
}

/* Bytes of 512 elements of every block type, from the size of the only tensor of a file. */
static void test_type_sizes(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        const char *name;
        uint64_t bytes;
    } types[] = {
        {0, "f32", 2048},      {1, "f16", 1024},      {30, "bf16", 1024},      {2, "q4_0", 288},
        {3, "q4_1", 320},      {6, "q5_0", 352},      {7, "q5_1", 384},        {8, "q8_0", 544},
        {9, "q8_1", 576},      {10, "q2_k", 168},     {11, "q3_k", 220},       {12, "q4_k", 288},
        {13, "q5_k", 352},     {14, "q6_k", 420},     {15, "q8_k", 584},       {16, "iq2_xxs", 132},
        {17, "iq2_xs", 148},   {18, "iq3_xxs", 196},  {19, "iq1_s", 100},      {20, "iq4_nl", 288},
        {21, "iq3_s", 220},    {22, "iq2_s", 164},    {23, "iq4_xs", 272},     {24, "i8", 512},
        {25, "i16", 1024},     {26, "i32", 2048},     {27, "i64", 4096},       {28, "f64", 4096},
        {29, "iq1_m", 112},    {31, "q4_0_4_4", 288}, {34, "tq1_0", 108},      {35, "tq2_0", 132},
        {36, "i2_s", 160},     {38, "tl1", 0},        {39, "tl2 or mxfp4", 0}, {41, "q1_0", 72},
        {42, "q2_0", 144},     {142, "pq2_0", 136},   {143, "ptq1_0", 112},    {43, "stq1_0", 84},
        {134, "iq1_bn", 108},  {135, "iq2_bn", 136},  {335, "iq2_bn_r4", 136}, {40, "nvfp4", 288},
        {12345, "unknown", 0},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        gguf_bytes b = {NULL, 0};
        gguf_add_header(&b, 3, 1, 0);
        gguf_add_tensor(&b, "t", types[i].type, 256, 2, 0);
        gguf_align(&b, 32);
        gguf_add_zeros(&b, types[i].bytes == 0 ? 1 : types[i].bytes);
        tern_gguf *file = parse_ok(&b);
        assert_int_equal(tern_gguf_tensor_at(file, 0)->bytes, types[i].bytes);
        assert_string_equal(tern_gguf_type_name(types[i].type), types[i].name);
        tern_gguf_close(&file);
        tern_error err = {0}; /* one byte too few */
        assert_int_equal(tern_gguf_parse(b.data, b.size - 1, "t", &file, &err),
                         TERN_ERR_TENSOR_RANGE);
        gguf_bytes_free(&b);
    }
}

/* The 28 unused bytes after the scale of an I2_S tensor may be missing at the end of a file. */
static void test_i2s_tail(void **state) {
    (void)state;
    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, 3, 1, 0);
    gguf_add_tensor(&b, "t", 36, 128, 4, 0);
    gguf_align(&b, 32);
    const size_t data = b.size;
    gguf_add_zeros(&b, 128 + 32);
    for (size_t size = 0; size <= 160; size++) {
        tern_gguf *file = NULL;
        tern_status status = tern_gguf_parse(b.data, data + size, "t", &file, NULL);
        assert_int_equal(status, size == 132 || size == 160 ? TERN_OK : TERN_ERR_TENSOR_RANGE);
        if (status == TERN_OK)
            assert_int_equal(tern_gguf_tensor_at(file, 0)->bytes, size);
        tern_gguf_close(&file);
    }
    gguf_bytes_free(&b);
}

/* A tensor of 1024 x 8 weights with `bytes` of data, followed by a float. */
static tern_status parse_group(uint32_t type, uint64_t bytes, uint32_t as, tern_error *err) {
    gguf_bytes b = {NULL, 0};
    tern_gguf *file = NULL;
    gguf_add_header(&b, 3, 2, 0);
    gguf_add_tensor(&b, "t", type, 1024, 8, 0);
    gguf_add_tensor(&b, "last", 0, 1, 1, bytes);
    gguf_align(&b, 32);
    gguf_add_zeros(&b, bytes + 4);
    const tern_status status = tern_gguf_parse(b.data, b.size, "t.gguf", &file, err);
    if (status == TERN_OK) {
        assert_int_equal(tern_gguf_find_tensor(file, "t")->type, as);
        assert_int_equal(tern_gguf_find_tensor(file, "t")->bytes, bytes);
        tern_gguf_close(&file);
    }
    gguf_bytes_free(&b);
    return status;
}

/* The size decides whether type 42 is Q2_0, PQ2_0 or STQ1_0. Formats of other programs are
 * refused. */
static void test_groups_by_bytes(void **state) {
    static const struct {
        uint32_t type;
        uint64_t bytes;
        uint32_t as; /* 0: refused */
        const char *words;
    } cases[] = {
        {42, 2304, 42, ""},
        {42, 2176, 142, ""},
        {142, 2176, 142, ""},
        {143, 1792, 143, ""},
        {42, 1344, 43, ""},
        {43, 1344, 43, ""},
        {43, 1312, 0, "not the 1344 of stq1_0"},
        {43, 1376, 0, "another program's format"}, /* larger than needed is not its size either */
        {42, 2112, 0, "another program's format"},
        {142, 2112, 0, "of pq2_0"},
        {143, 1728, 0, "not the 1792 of ptq1_0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tern_error err = {.message = ""};
        const tern_status status = parse_group(cases[i].type, cases[i].bytes, cases[i].as, &err);
        assert_int_equal(status, cases[i].as != 0 ? TERN_OK : TERN_ERR_TENSOR_TYPE);
        assert_non_null(strstr(err.message, cases[i].words));
    }
}

static gguf_bytes typed_file(void) {
    gguf_bytes b = {NULL, 0};
    static const double pi = 3.25, huge = 1e300;
    gguf_add_header(&b, 3, 0, 11);
    gguf_add_string(&b, "i8");
    gguf_add_u32(&b, 1);
    gguf_add_u8(&b, 0xff); /* -1 */
    gguf_add_string(&b, "u16");
    gguf_add_u32(&b, 2);
    gguf_add(&b, "\x34\x12", 2);
    gguf_add_string(&b, "u64");
    gguf_add_u32(&b, 10);
    gguf_add_u64(&b, 0xffffffff);
    gguf_add_string(&b, "u64 large");
    gguf_add_u32(&b, 10);
    gguf_add_u64(&b, UINT64_MAX);
    gguf_add_string(&b, "f64");
    gguf_add_u32(&b, 12);
    gguf_add(&b, &pi, 8);
    gguf_add_string(&b, "f64 large");
    gguf_add_u32(&b, 12);
    gguf_add(&b, &huge, 8);
    gguf_add_string(&b, "bool");
    gguf_add_u32(&b, 7);
    gguf_add_u8(&b, 1);
    gguf_add_key_string(&b, "string", "text");
    gguf_add_key_array(&b, "i16s", 3, 3);
    gguf_add(&b, "\1\0\xff\xff\3\0", 6);
    gguf_add_key_array(&b, "strings", 8, 2);
    gguf_add_string(&b, "");
    gguf_add_string(&b, "xy");
    gguf_add_key_array(&b, "none", 6, 0);
    return b;
}

static void test_integers(void **state) {
    (void)state;
    gguf_bytes b = typed_file();
    tern_gguf *file = parse_ok(&b);
    tern_error err = {0};
    uint32_t u = 99;
    assert_int_equal(tern_gguf_u32(file, "i8", &u, &err), TERN_ERR_KEY_RANGE);
    assert_int_equal(tern_gguf_u32(file, "u64 large", &u, &err), TERN_ERR_KEY_RANGE);
    assert_int_equal(tern_gguf_u32(file, "bool", &u, &err), TERN_ERR_KEY_TYPE);
    assert_int_equal(tern_gguf_u32(file, "i16s", &u, &err), TERN_ERR_KEY_TYPE);
    assert_int_equal(tern_gguf_u32(file, "absent", &u, &err), TERN_ERR_KEY_MISSING);
    assert_string_equal(err.message, "test.gguf: key 'absent' is missing");
    assert_int_equal(u, 99);
    assert_int_equal(tern_gguf_u32(file, "u16", &u, &err), TERN_OK);
    assert_int_equal(u, 0x1234);
    assert_int_equal(tern_gguf_u32(file, "u64", &u, &err), TERN_OK);
    assert_int_equal(u, UINT32_MAX);

    const tern_gguf_value *v = tern_gguf_find(file, "i16s");
    assert_true(tern_gguf_element_u32(v, 2, &u));
    assert_int_equal(u, 3);
    assert_false(tern_gguf_element_u32(v, 1, &u));
    assert_false(tern_gguf_element_u32(v, 3, &u));
    assert_false(tern_gguf_element_u32(tern_gguf_find(file, "string"), 0, &u));
    tern_gguf_close(&file);
    gguf_bytes_free(&b);
}

static void test_other_types(void **state) {
    (void)state;
    gguf_bytes b = typed_file();
    tern_gguf *file = parse_ok(&b);
    tern_error err = {0};
    float f = 99;
    bool flag = false;
    tern_span s = {NULL, 0};
    const tern_gguf_value *v = NULL;
    assert_int_equal(tern_gguf_f32(file, "f64 large", &f, &err), TERN_ERR_KEY_RANGE);
    assert_int_equal(tern_gguf_f32(file, "u16", &f, &err), TERN_ERR_KEY_TYPE);
    assert_int_equal(tern_gguf_f32(file, "absent", &f, &err), TERN_ERR_KEY_MISSING);
    assert_true(f == 99);
    assert_int_equal(tern_gguf_f32(file, "f64", &f, &err), TERN_OK);
    assert_true(f == 3.25f);
    assert_int_equal(tern_gguf_bool(file, "i8", &flag, &err), TERN_ERR_KEY_TYPE);
    assert_int_equal(tern_gguf_bool(file, "absent", &flag, &err), TERN_ERR_KEY_MISSING);
    assert_int_equal(tern_gguf_bool(file, "bool", &flag, &err), TERN_OK);
    assert_true(flag);
    assert_int_equal(tern_gguf_string(file, "bool", &s, &err), TERN_ERR_KEY_TYPE);
    assert_int_equal(tern_gguf_string(file, "absent", &s, &err), TERN_ERR_KEY_MISSING);
    assert_null(s.data);
    assert_int_equal(tern_gguf_string(file, "string", &s, &err), TERN_OK);
    assert_int_equal(s.size, 4);
    assert_memory_equal(s.data, "text", 4);
    assert_int_equal(tern_gguf_array(file, "string", TERN_GGUF_STRING, &v, &err),
                     TERN_ERR_KEY_TYPE);
    assert_int_equal(tern_gguf_array(file, "i16s", TERN_GGUF_I32, &v, &err), TERN_ERR_KEY_TYPE);
    assert_string_equal(err.message, "test.gguf: key 'i16s' is an array of i16, must be of i32");
    assert_int_equal(tern_gguf_array(file, "absent", TERN_GGUF_I32, &v, &err),
                     TERN_ERR_KEY_MISSING);
    assert_null(v);
    assert_int_equal(tern_gguf_array(file, "none", TERN_GGUF_F32, &v, &err), TERN_OK);
    assert_int_equal(v->count, 0);
    assert_int_equal(tern_gguf_array(file, "strings", TERN_GGUF_STRING, &v, &err), TERN_OK);
    const uint8_t *cursor = v->data;
    assert_int_equal(tern_gguf_next_string(&cursor).size, 0);
    assert_memory_equal(tern_gguf_next_string(&cursor).data, "xy", 2);
    tern_gguf_close(&file);
    gguf_bytes_free(&b);
}

/* Each of many keys and tensors is found, and similar names are not. */
static void test_lookups(void **state) {
    (void)state;
    enum { N = 1000 };
    gguf_bytes b = {NULL, 0};
    char name[32];
    gguf_add_header(&b, 3, N, N);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "key.%u", i * 7919 % N);
        gguf_add_key_u32(&b, name, i);
    }
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "blk.%u.w", i * 7919 % N);
        gguf_add_tensor(&b, name, 0, 1, 0, 32 * (uint64_t)(N - 1 - i));
    }
    gguf_align(&b, 32);
    gguf_add_zeros(&b, (size_t)32 * N);
    tern_gguf *file = parse_ok(&b);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t u = 0;
        snprintf(name, sizeof name, "key.%u", i * 7919 % N);
        assert_int_equal(tern_gguf_u32(file, name, &u, NULL), TERN_OK);
        assert_int_equal(u, i);
        snprintf(name, sizeof name, "blk.%u.w", i * 7919 % N);
        assert_ptr_equal(tern_gguf_find_tensor(file, name), tern_gguf_tensor_at(file, i));
    }
    assert_null(tern_gguf_find(file, "key."));
    assert_null(tern_gguf_find(file, "key.1000"));
    assert_null(tern_gguf_find_tensor(file, "blk.1."));
    assert_null(tern_gguf_find_tensor(file, ""));
    tern_gguf_close(&file);
    gguf_bytes_free(&b);
}

static void write_file(const char *path, const gguf_bytes *b) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->data, 1, b->size, f), b->size);
    assert_int_equal(fclose(f), 0);
}

static void test_open(void **state) {
    (void)state;
    char path[] = "/tmp/tern-gguf-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    tern_error err = {0};
    tern_gguf *file = NULL;
    assert_int_equal(tern_gguf_open(path, &file, &err), TERN_ERR_TRUNCATED);
    assert_non_null(strstr(err.message, "empty"));

    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, 3, 1, 0);
    gguf_add_tensor(&b, "big", 24, 20000, 0, 0);
    gguf_align(&b, 32);
    gguf_add_zeros(&b, 20000);
    for (uint32_t i = 0; i < 20000; i++)
        b.data[b.size - 20000 + i] = (uint8_t)(i % 251);
    write_file(path, &b);
    assert_int_equal(tern_gguf_open(path, &file, &err), TERN_OK);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, "big");
    tern_gguf_drop_pages(file, t);
    for (uint32_t i = 0; i < 20000; i++) /* dropped pages are read from the file again */
        assert_int_equal(t->data[i], i % 251);
    assert_string_equal(tern_gguf_name(file), path);
    tern_gguf_close(&file);
    unlink(path);
    gguf_bytes_free(&b);
}

static void check_refused(const char *path, const char *text) {
    tern_error err = {0};
    tern_gguf *file = NULL;
    assert_int_equal(tern_gguf_open(path, &file, &err), TERN_ERR_IO);
    assert_int_equal(err.status, TERN_ERR_IO);
    assert_null(file);
    assert_ptr_equal(strstr(err.message, path), err.message);
    assert_non_null(strstr(err.message, text));
}

static void test_open_special_files(void **state) {
    (void)state;
    char folder[] = "/tmp/tern-gguf-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    check_refused(folder, "is a directory");
    check_refused(path, "No such file");
    assert_int_equal(mkfifo(path, 0600), 0);
    check_refused(path, "not a regular file"); /* without hanging */
    unlink(path);
    check_refused("/dev/zero", "not a regular file");
    if (geteuid() != 0) { /* root can read everything */
        close(open(path, O_WRONLY | O_CREAT, 0));
        check_refused(path, "Permission denied");
        unlink(path);
    }
    rmdir(folder);
}

static void test_arguments(void **state) {
    (void)state;
    tern_error err = {0};
    tern_gguf *file = NULL;
    assert_int_equal(tern_gguf_open(NULL, &file, &err), TERN_ERR_NULL);
    assert_int_equal(tern_gguf_open("x", NULL, &err), TERN_ERR_NULL);
    assert_int_equal(tern_gguf_parse(NULL, 1, "x", &file, &err), TERN_ERR_NULL);
    assert_int_equal(tern_gguf_parse("x", 1, NULL, &file, &err), TERN_ERR_NULL);
    assert_int_equal(tern_gguf_parse("x", 1, "x", NULL, NULL), TERN_ERR_NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimal_bytes),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_no_records),
        cmocka_unit_test(test_alignments),
        cmocka_unit_test(test_type_sizes),
        cmocka_unit_test(test_i2s_tail),
        cmocka_unit_test(test_groups_by_bytes),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_open_special_files),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
