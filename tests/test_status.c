/* SPDX-License-Identifier: Apache-2.0 */
/* Status texts and messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tern/status.h"

static void test_texts(void **state) {
    (void)state;
#define CHECK(name, value, text) assert_string_equal(tern_status_str(TERN_##name), text);
    TERN_STATUS_LIST(CHECK)
#undef CHECK
    assert_string_equal(tern_status_str((tern_status)9999), "unknown status");
}

static void test_message(void **state) {
    (void)state;
    tern_error err = {0};
    assert_int_equal(tern_fail(&err, TERN_ERR_IO, "%s: %d", "file", 7), TERN_ERR_IO);
    assert_int_equal(err.status, TERN_ERR_IO);
    assert_string_equal(err.message, "file: 7");
    assert_int_equal(tern_fail(NULL, TERN_ERR_ARG, "nobody listens"), TERN_ERR_ARG);
}

/* Each text on the left is shown as the one on the right. */
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

/* A long message is cut to the buffer, and a character that the cut hits does not stay broken. */
static void test_long_message(void **state) {
    (void)state;
    char text[TERN_ERROR_MESSAGE_BYTES + 100];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + TERN_ERROR_MESSAGE_BYTES - 2, "\xc3\xa9", 2);
    tern_error err = {0};
    (void)tern_fail(&err, TERN_ERR_ARG, "%s", text);
    assert_int_equal(strlen(err.message), TERN_ERROR_MESSAGE_BYTES - 1);
    assert_int_equal(err.message[TERN_ERROR_MESSAGE_BYTES - 3], 'x');
    assert_int_equal(err.message[TERN_ERROR_MESSAGE_BYTES - 2], '?');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_sanitised),
        cmocka_unit_test(test_long_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
