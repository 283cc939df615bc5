/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader: what it accepts, what it refuses, and where strings and numbers end up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static tern_status parse(const char *text, size_t size, tern_json *out, tern_error *err) {
    char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    memcpy(bytes, text, size);
    return tern_json_parse(bytes, size, "file.json", out, err);
}

static tern_json good(const char *text) {
    tern_json json = {NULL, NULL};
    tern_error err = {0};
    assert_int_equal(parse(text, strlen(text), &json, &err), TERN_OK);
    return json;
}

static void bad(const char *text, size_t size, const char *part) {
    tern_json json = {NULL, NULL};
    tern_error err = {0};
    assert_int_equal(parse(text, size, &json, &err), TERN_ERR_JSON);
    assert_null(json.values);
    assert_memory_equal(err.message, "file.json: ", 11);
    assert_non_null(strstr(err.message, part));
}

#define BAD(text, part) bad(text, sizeof(text) - 1, part)

static void shape(void **state) {
    (void)state;
    tern_json json = good(" {\"a\": [1, [], {}, \"x\"], \"b\": {\"c\": null, \"d\": true}}\n");
    const tern_json_value *root = json.values;
    assert_int_equal(root->type, TERN_JSON_OBJECT);
    assert_int_equal(root->count, 2);
    assert_int_equal(root->size, 13);
    const tern_json_value *a = tern_json_get(root, "a");
    assert_int_equal(a->type, TERN_JSON_ARRAY);
    assert_int_equal(a->count, 4);
    assert_int_equal(a->size, 5);
    assert_int_equal((a + 2)->count, 0);
    assert_true(tern_json_is_string(a + 4, "x"));
    const tern_json_value *b = tern_json_get(root, "b");
    assert_ptr_equal(b, a + a->size + 1);
    assert_null(tern_json_get(b, "c")); /* null counts as absent */
    assert_true(tern_json_is_true(tern_json_get(b, "d")));
    assert_null(tern_json_get(b, "nothing"));
    assert_null(tern_json_get(a, "a"));
    assert_null(tern_json_get(NULL, "a"));
    tern_json_free(&json);
}

static void last_of_equal_keys(void **state) {
    (void)state;
    tern_json json = good("{\"a\": 1, \"a\": 2}");
    int64_t value = 0;
    assert_true(tern_json_integer(tern_json_get(json.values, "a"), &value));
    assert_int_equal(value, 2);
    tern_json_free(&json);
}

static void strings(void **state) {
    (void)state;
    tern_json json = good("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u20AC\\ud83d\\ude42\", "
                          "\"a\\u0000b\", \"\xC3\xA9\"]");
    assert_true(tern_json_is_string(json.values + 1, "\"\\/\b\f\n\r\t"));
    assert_true(tern_json_is_string(json.values + 2, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82"));
    assert_int_equal(json.values[3].text.size, 3);
    assert_memory_equal(json.values[3].text.data, "a\0b", 3);
    assert_true(tern_json_is_string(json.values + 4, "\xC3\xA9"));
    tern_json_free(&json);
}

static void integers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } cases[] = {{"0", true, 0},
                 {"-0", true, 0},
                 {"-12", true, -12},
                 {"9223372036854775807", true, INT64_MAX},
                 {"9223372036854775808", false, 0},
                 {"1.0", false, 0},
                 {"1e2", false, 0},
                 {"\"1\"", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_json json = good(cases[i].text);
        int64_t value = 0;
        assert_int_equal(tern_json_integer(json.values, &value), cases[i].fits);
        assert_int_equal(value, cases[i].value);
        tern_json_free(&json);
    }
}

static void refusals(void **state) {
    (void)state;
    BAD("", "not a JSON value");
    BAD("{", "no name");
    BAD("[1", "comma or ]");
    BAD("[1,]", "not a JSON value");
    BAD("{\"a\" 1}", "colon");
    BAD("{\"a\": 1 \"b\": 2}", "comma or }");
    BAD("{1: 2}", "no name");
    BAD("[1] x", "something follows");
    BAD("tru", "not a JSON value");
    BAD("01", "something follows");
    BAD("-", "not a JSON value");
    BAD("1.", "not a JSON value");
    BAD("1e+", "not a JSON value");
    BAD("\"abc", "does not end");
    BAD("\"a\nb\"", "control character");
    BAD("\"\\x\"", "escape");
    BAD("\"\\u12\"", "escape");
    BAD("\"\\ud83d\"", "escape");
    BAD("\"\\ud83d\\u0041\"", "escape");
    BAD("\"\\ude42\"", "escape");
    BAD("\"\xFF\"", "not UTF-8");
    BAD("\"\xC3\"", "not UTF-8");
    BAD("\"\xED\xA0\x80\"", "not UTF-8");
    BAD("[1,\n2,\n!]", "line 3");
    BAD("\0", "not a JSON value");
}

static void depth(void **state) {
    (void)state;
    char text[2 * TERN_JSON_MAX_DEPTH + 4];
    for (size_t n = TERN_JSON_MAX_DEPTH; n <= TERN_JSON_MAX_DEPTH + 1; n++) {
        memset(text, '[', n);
        memset(text + n, ']', n);
        text[2 * n] = '\0';
        if (n > TERN_JSON_MAX_DEPTH) {
            bad(text, 2 * n, "nested");
            continue;
        }
        tern_json json = good(text);
        assert_int_equal(json.values->size, n);
        tern_json_free(&json);
    }
}

static void files(void **state) {
    (void)state;
    tern_json json = {NULL, NULL};
    tern_error err = {0};
    assert_int_equal(tern_json_read("/nowhere/x.json", 100, &json, &err), TERN_ERR_IO);
    assert_int_equal(tern_json_read("/", 100, &json, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, "directory"));
    assert_int_equal(tern_json_read(TERN_SOURCE_DIR "/CMakePresets.json", 10, &json, &err),
                     TERN_ERR_JSON);
    assert_non_null(strstr(err.message, "larger than 10 bytes"));
    assert_int_equal(tern_json_read("/dev/zero", 1000, &json, &err), TERN_ERR_IO);
    assert_int_equal(tern_json_read(TERN_SOURCE_DIR "/CMakePresets.json", 1 << 20, &json, &err),
                     TERN_OK);
    assert_non_null(tern_json_get(json.values, "configurePresets"));
    tern_json_free(&json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape),    cmocka_unit_test(last_of_equal_keys), cmocka_unit_test(strings),
        cmocka_unit_test(integers), cmocka_unit_test(refusals),           cmocka_unit_test(depth),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
