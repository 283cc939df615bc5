/* SPDX-License-Identifier: Apache-2.0 */
/* Users' descriptions of ternary tensors (maps of codes, tile sizes), and which tensors are
 * tiled. */

#include <string.h>

#include "runtime/files/gguf/reading.h"
#include "tests/support/check.h"
#include "tests/support/gguf_bytes.h"

/* ---- maps ------------------------------------------------------------------------------------ */

static void test_maps(void **state) {
    static const struct {
        const char *text;
        uint8_t map[4];
    } good[] = {
        {"-1,0,1,x", {0, 1, 2, 3}}, {"-1,0,1", {0, 1, 2, 3}},     {"-1,0,+1,0", {0, 1, 2, 1}},
        {"0,1,-1,x", {1, 2, 0, 3}}, {"0,+1,x,-1", {1, 2, 3, 0}},  {"1,0,-1", {2, 1, 0, 3}},
        {"usual", {0, 1, 2, 3}},    {"zero-first", {1, 2, 0, 3}}, {"signed", {1, 2, 3, 0}},
        {"negated", {2, 1, 0, 3}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tern_reading r;
        check_case("%s", good[i].text);
        assert_int_equal(tern_reading_init(&r, 0, good[i].text, NULL, NULL), TERN_OK);
        assert_memory_equal(r.map, good[i].map, 4);
        assert_true(r.map_given);
    }
}

static void test_bad_maps(void **state) {
    static const char *const bad[] = {"",        ",",        "0,1",       "0,1,2",     "-1,0,0",
                                      "0,1,-1,", "1,0,-1,2", "0,1,-1,x,", "0, 1,-1,x", "0,1,-1,x,x",
                                      "Usual",   "-1,0,1,y", "--1,0,1,x", "-10,1,x"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tern_reading r;
        tern_error err = {.status = TERN_OK};
        check_case("'%s'", bad[i]);
        assert_int_equal(tern_reading_init(&r, 0, bad[i], NULL, &err), TERN_ERR_ARG);
        assert_non_null(strstr(err.message, "is not a map of I2_S codes"));
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static void expect_tiles(const char *text, tern_tl_kind kind, size_t rows, size_t cols,
                         tern_tl_tiles expected) {
    tern_reading r;
    tern_tl_tiles tiles;
    check_case("'%s', TL%d of %zu x %zu", text != NULL ? text : "nothing", (int)kind, rows, cols);
    assert_int_equal(tern_reading_init(&r, 0, NULL, text, NULL), TERN_OK);
    assert_int_equal(tern_reading_tiles(&r, kind, rows, cols, &tiles, NULL), TERN_OK);
    assert_memory_equal(&tiles, &expected, sizeof tiles);
}

/* The first matching rule applies, then the built-in sizes; otherwise there are none. */
static void test_tiles(void **state) {
    static const char *const text = "1536x4096=64x96,640x2560=160x64x64,32x24x32";
    tern_reading r;
    tern_tl_tiles tiles;
    tern_error err = {.status = TERN_OK};
    (void)state;
    expect_tiles(NULL, TERN_TL1, 1536, 4096, (tern_tl_tiles){256, 128, 32});
    expect_tiles(NULL, TERN_TL2, 1536, 4096, (tern_tl_tiles){256, 96, 32});
    expect_tiles("2x2=32x32", TERN_TL2, 1536, 1536, (tern_tl_tiles){128, 192, 32});
    expect_tiles(text, TERN_TL1, 1536, 4096, (tern_tl_tiles){64, 96, 32});
    expect_tiles(text, TERN_TL1, 640, 2560, (tern_tl_tiles){160, 64, 64});
    expect_tiles(text, TERN_TL1, 4096, 1536, (tern_tl_tiles){32, 24, 32});
    assert_int_equal(tern_reading_init(&r, 0, NULL, "640x2560=32x32", NULL), TERN_OK);
    assert_int_equal(tern_reading_tiles(&r, TERN_TL1, 2560, 640, &tiles, &err), TERN_ERR_TILES);
    assert_non_null(strstr(err.message, "--tl-tiles 2560x640=BMxBKxbm"));
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint64_t hash_of(tern_i2s_order order, const char *map, const char *tiles) {
    tern_reading r;
    assert_int_equal(tern_reading_init(&r, order, map, tiles, NULL), TERN_OK);
    return tern_reading_hash(&r);
}

/* Everything that changes weights changes the hash. Stating the defaults does not. */
static void test_hash(void **state) {
    (void)state;
    assert_true(hash_of(0, NULL, NULL) == 0 && hash_of(0, "usual", NULL) == 0);
    assert_int_equal(hash_of(2, NULL, NULL), 2); /* as in sessions of earlier versions */
    const uint64_t other[] = {hash_of(0, "zero-first", NULL), hash_of(1, "zero-first", NULL),
                              hash_of(0, "signed", NULL),     hash_of(0, NULL, "32x32"),
                              hash_of(0, NULL, "32x64"),      hash_of(0, NULL, "2x2=32x64")};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(other[i] > 3 && other[i] != other[k]);
}

/* ---- which tensors are tiled ----------------------------------------------------------------- */

static const char *type_of(uint32_t type, uint64_t cols, uint64_t rows, uint64_t bytes,
                           const char *architecture, uint32_t alignment) {
    gguf_bytes b = {NULL, 0};
    tern_gguf *file = NULL;
    gguf_add_header(&b, 3, 1, 2);
    gguf_add_string(&b, "general.architecture");
    gguf_add_u32(&b, TERN_GGUF_STRING);
    gguf_add_string(&b, architecture);
    gguf_add_key_u32(&b, "general.alignment", alignment);
    gguf_add_tensor(&b, "t", type, cols, rows, 0);
    gguf_align(&b, alignment);
    gguf_add_zeros(&b, bytes);
    assert_int_equal(tern_gguf_parse(b.data, b.size, "t", &file, NULL), TERN_OK);
    const tern_gguf_tensor *t = tern_gguf_tensor_at(file, 0);
    const char *name = tern_gguf_tensor_type(t);
    assert_int_equal(tern_gguf_format(t) == TERN_FORMAT_I2_S,
                     tern_gguf_tiled(t) != 0 || tern_gguf_bn(t) != 0);
    assert_int_equal(tern_gguf_tiled(t), strcmp(name, "tl1") == 0 && t->bytes > 0 ? TERN_TL1
                                         : strcmp(name, "tl2") == 0               ? TERN_TL2
                                                                                  : 0);
    tern_gguf_close(&file);
    gguf_bytes_free(&b);
    return name;
}

/* 64 x 512: TL1 has 8192 + 32 bytes, TL2 7520 + 32, MXFP4 17408. */
static void test_types(void **state) {
    (void)state;
    assert_string_equal(type_of(38, 512, 64, 8224, "llama", 32), "tl1");
    assert_string_equal(type_of(39, 512, 64, 7552, "llama", 32), "tl2");
    assert_string_equal(type_of(39, 512, 64, 17408, "bitnet", 32), "mxfp4");
    assert_string_equal(type_of(39, 512, 64, 8224, "bitnet", 32), "tl2 or mxfp4");
    assert_string_equal(type_of(39, 512, 60, 7552, "bitnet", 32), "tl2 or mxfp4");
    /* The padding hides the size, so the architecture decides. */
    assert_string_equal(type_of(39, 512, 64, 32768, "bitnet", 32768), "tl2");
    assert_string_equal(type_of(39, 512, 64, 32768, "llama", 32768), "mxfp4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps), cmocka_unit_test(test_bad_maps), cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_hash), cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests_name("readings of ternary tensors", tests, NULL, NULL);
}
