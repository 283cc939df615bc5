/* SPDX-License-Identifier: Apache-2.0 */
/* Status texts and messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tern/status.h"

/* The values are part of the binary interface, so this list is written by hand and not
 * generated. */
static const struct {
    int value;
    const char *text;
} known[] = {
    {0, "no error"},
    {1, "invalid argument"},
    {2, "out of memory"},
    {3, "arena exhausted"},
    {4, "file cannot be opened, read or written"},
    {5, "required pointer is NULL"},
    {6, "file changed while it was in use"},
    {7, "buffer is too small"},
    {8, "unknown name"},
    {9, "not possible in this state"},
    {10, "file ends too early"},
    {11, "not a GGUF file"},
    {12, "unsupported GGUF version"},
    {13, "big-endian GGUF file"},
    {14, "count exceeds what the file can hold"},
    {15, "string exceeds what the file can hold"},
    {16, "duplicate metadata key"},
    {17, "metadata key has the wrong type"},
    {18, "required metadata key is missing"},
    {19, "metadata value out of range"},
    {20, "invalid alignment"},
    {21, "duplicate tensor name"},
    {22, "tensor has an unusable shape"},
    {23, "tensor type is not supported"},
    {24, "tensor offset is misaligned"},
    {25, "tensor lies outside the file"},
    {26, "tensors overlap"},
    {27, "required tensor is missing"},
    {28, "tensor holds invalid data"},
    {29, "parts of a split model do not fit together"},
    {30, "model architecture is not supported"},
    {31, "inconsistent model configuration"},
    {32, "model has no key/value heads"},
    {33, "heads cannot share the key/value heads"},
    {34, "model has no layers, heads or width"},
    {38, "tile sizes of a tensor are not known"},
    {40, "model file has no tokenizer"},
    {41, "tokenizer model is not supported"},
    {42, "pre-tokenizer is not supported"},
    {43, "tokenizer data is inconsistent"},
    {44, "a pattern of the tokenizer takes too many steps"},
    {45, "malformed JSON"},
    {46, "the chat format has no place for this"},
    {47, "chat template cannot be run"},
    {48, "grammar or schema is not supported"},
    {50, "token id out of range"},
    {51, "sequence exceeds the context"},
    {52, "empty sequence"},
    {53, "numbers are not finite"},
    {54, "not a session file, or a damaged one"},
    {55, "session file of another model or cache format"},
    {56, "not a packed image of these weights, or a damaged one"},
    {57, "no room after this position of the context"},
    {58, "position after the end of the sequence"},
    {59, "no memory for the key/value cache"},
    {60, "unknown or unsupported instruction set"},
    {61, "no kernel for this operation and format"},
    {62, "buffer is misaligned"},
    {63, "results differ by more than is allowed"},
    {64, "strict mode refuses what would stand in"},
    {65, "no such NUMA node, or no hwloc to bind with"},
    {66, "no memory for a session's scratch"},
    {67, "file exists already, or is being read, and is not replaced"},
    {68, "too many requests wait"},
    {70, "device cannot be used"},
    {71, "not implemented on this device"},
    {72, "another rank failed, or does not answer"},
};

static void test_texts(void **state) {
    size_t next = 0;
    (void)state;
    for (int value = 0; value < 256; value++) {
        const bool listed = next < sizeof known / sizeof *known && known[next].value == value;
        assert_string_equal(tern_status_str((tern_status)value),
                            listed ? known[next].text : "unknown status");
        next += listed;
    }
    assert_int_equal(next, sizeof known / sizeof *known);
    assert_string_equal(tern_status_str((tern_status)9999), "unknown status");
    assert_int_equal(TERN_OK, 0);
    assert_int_equal(TERN_ERR_NULL, 5);
    assert_int_equal(TERN_ERR_FULL, 57);
}

/* No two refusals share a text. */
static void test_distinct(void **state) {
    (void)state;
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < a; b++)
            if (strcmp(tern_status_str((tern_status)a), "unknown status") != 0)
                assert_string_not_equal(tern_status_str((tern_status)a),
                                        tern_status_str((tern_status)b));
}

static void test_message(void **state) {
    (void)state;
    tern_error err = {0};
    assert_int_equal(tern_fail(&err, TERN_ERR_IO, "%s: %d", "file", 7), TERN_ERR_IO);
    assert_int_equal(err.status, TERN_ERR_IO);
    assert_string_equal(err.message, "file: 7");
    assert_int_equal(tern_fail(NULL, TERN_ERR_ARG, "nobody listens"), TERN_ERR_ARG);
}

/* Each text on the left must be shown as the one on the right. */
static void test_sanitised(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"a\nb\tc\x7f"
         "d",
         "a?b?c?d"},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"},
        {"\xc2\x9b", "??"},       /* C1: begins a terminal's control sequence */
        {"\xc2\xa0", "\xc2\xa0"}, /* the first character behind C1 */
        {"\x80", "?"},            /* lone continuation */
        {"\xc0\xaf", "??"},       /* overlong */
        {"\xe0\x9f\xbf", "?"
                         "?"
                         "?"}, /* overlong */
        {"\xed\xa0\x80", "?"
                         "?"
                         "?"}, /* surrogate */
        {"\xf0\x8f\xbf\xbf", "?"
                             "?"
                             "?"
                             "?"},
        {"\xf4\x90\x80\x80", "?"
                             "?"
                             "?"
                             "?"}, /* above U+10FFFF */
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xff", "?"},
        {"cut \xe2\x82", "cut ??"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tern_error err = {0};
        (void)tern_fail(&err, TERN_ERR_ARG, "%s", cases[i][0]);
        assert_string_equal(err.message, cases[i][1]);
    }
}

/* A long message loses its middle: the beginning of the path and the problem remain. */
static void test_long_message(void **state) {
    (void)state;
    char path[5000];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path, "/models/", 8);
    tern_error err = {0};
    (void)tern_fail(&err, TERN_ERR_ARG, "%s: line %d: %s", path, 7, "a comma is missing");
    assert_int_equal(strlen(err.message), TERN_ERROR_MESSAGE_BYTES - 1);
    assert_memory_equal(err.message, "/models/xxx", 11);
    assert_non_null(strstr(err.message, "x...x"));
    assert_non_null(strstr(err.message, "x: line 7: a comma is missing"));
    path[TERN_ERROR_MESSAGE_BYTES - 1] = '\0'; /* a path that just fits stays whole */
    (void)tern_fail(&err, TERN_ERR_ARG, "%s", path);
    assert_string_equal(err.message, path);
}

/* A cut never leaves part of a character. */
static void test_long_characters(void **state) {
    (void)state;
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82"};
    for (size_t i = 0; i < sizeof characters / sizeof *characters; i++)
        for (int shift = 0; shift < 8; shift++) {
            char text[2000] = "";
            memset(text, 'a', (size_t)shift);
            while (strlen(text) + 5 < sizeof text)
                strcat(text, characters[i]);
            tern_error err = {0};
            (void)tern_fail(&err, TERN_ERR_ARG, "%s", text);
            assert_null(strchr(err.message, '?'));
            const char *at = err.message + shift, *gap = strstr(err.message, "...");
            const size_t size = strlen(characters[i]);
            assert_int_equal((size_t)(gap - at) % size, 0);
            assert_int_equal(strlen(gap + 3) % size, 0);
            assert_memory_equal(gap + 3, characters[i], size);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),        cmocka_unit_test(test_distinct),
        cmocka_unit_test(test_message),      cmocka_unit_test(test_sanitised),
        cmocka_unit_test(test_long_message), cmocka_unit_test(test_long_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
