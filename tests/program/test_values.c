/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata values as text: every type, cut arrays and texts, small buffers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/inspect/metadata_values.h"

static tern_gguf_value scalar_of(tern_gguf_type type, const void *data) {
    return (tern_gguf_value){.type = type, .element = type, .count = 1, .data = data};
}

static tern_gguf_value array_of(tern_gguf_type element, uint64_t count, const void *data) {
    return (tern_gguf_value){
        .type = TERN_GGUF_ARRAY, .element = element, .count = count, .data = data};
}

static void assert_text(tern_gguf_value value, const char *expected) {
    char text[512];
    value_text(&value, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_numbers(void **state) {
    (void)state;
    const uint8_t ff[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    assert_text(scalar_of(TERN_GGUF_U8, ff), "255");
    assert_text(scalar_of(TERN_GGUF_U16, ff), "65535");
    assert_text(scalar_of(TERN_GGUF_U32, ff), "4294967295");
    assert_text(scalar_of(TERN_GGUF_U64, ff), "18446744073709551615");
    assert_text(scalar_of(TERN_GGUF_I8, ff), "-1");
    assert_text(scalar_of(TERN_GGUF_I16, ff), "-1");
    assert_text(scalar_of(TERN_GGUF_I32, ff), "-1");
    assert_text(scalar_of(TERN_GGUF_I64, ff), "-1");
    assert_text(scalar_of(TERN_GGUF_I16, "\x00\x80"), "-32768");
    assert_text(scalar_of(TERN_GGUF_U16, "\x34\x12"), "4660");
    assert_text(scalar_of(TERN_GGUF_F32, "\x00\x00\xc0\xbf"), "-1.5");
    assert_text(scalar_of(TERN_GGUF_F64, "\x00\x00\x00\x00\x00\x00\xe0\x3f"), "0.5");
    assert_text(scalar_of(TERN_GGUF_BOOL, "\x01"), "true");
    assert_text(scalar_of(TERN_GGUF_BOOL, "\x00"), "false");
}

static void test_texts(void **state) {
    (void)state;
    assert_text(scalar_of(TERN_GGUF_STRING, "\x05\0\0\0\0\0\0\0h\ni\x1b!"), "\"h?i?!\"");
    assert_text(scalar_of(TERN_GGUF_STRING, "\0\0\0\0\0\0\0\0"), "\"\"");
    uint8_t data[8 + 80] = {80}; /* 59 letters, then characters of two bytes: cut before one */
    memset(data + 8, 'a', 59);
    for (size_t i = 59; i + 1 < 80; i += 2)
        memcpy(data + 8 + i, "\xc3\xa9", 2);
    char expected[80] = "\"";
    memset(expected + 1, 'a', 59);
    memcpy(expected + 60, "...\"", 5);
    assert_text(scalar_of(TERN_GGUF_STRING, data), expected);
}

static void test_arrays(void **state) {
    (void)state;
    assert_text(array_of(TERN_GGUF_U8, 3, "\x01\x02\x03"), "3 x u8 [1, 2, 3]");
    assert_text(array_of(TERN_GGUF_U8, 0, ""), "0 x u8 []");
    assert_text(array_of(TERN_GGUF_I8, 1000, "\x01\x02\x03\x04\x05\x06"),
                "1000 x i8 [1, 2, 3, 4, 5, 6, ...]");
    assert_text(array_of(TERN_GGUF_STRING, 2, "\x01\0\0\0\0\0\0\0a\x02\0\0\0\0\0\0\0bc"),
                "2 x string [\"a\", \"bc\"]");
    assert_text(array_of(TERN_GGUF_ARRAY, 2, ""), "2 x array [...]");
}

static void test_small_buffers(void **state) {
    (void)state;
    const tern_gguf_value value = array_of(TERN_GGUF_U8, 3, "\x01\x02\x03");
    const char *whole = "3 x u8 [1, 2, 3]";
    for (size_t size = 1; size < 20; size++) {
        char text[32];
        memset(text, '#', sizeof text);
        value_text(&value, text, size);
        assert_int_equal(strlen(text), size - 1 < strlen(whole) ? size - 1 : strlen(whole));
        assert_memory_equal(text, whole, strlen(text));
        assert_int_equal(text[size], '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_small_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
