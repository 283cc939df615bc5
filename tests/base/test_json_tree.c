/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as a tree: which documents are refused and with which message, how values are written, and
 * what happens when any single allocation fails. */
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_tree/read.h"
#include "base/json_tree/text.h"
#include "base/json_tree/write.h"
#include "tests/support/failing_malloc.h"

static const char document[] =
    "{\"a\": [1, -2.5, 1e30, true, false, null, []],\n \"text\": \"\\u00e9\\n\\ud83d\\ude42\",\n"
    " \"object\": {\"b\": {}, \"c\": \"d\", \"e\": 3, \"f\": 4, \"g\": 5, \"h\": [[[]]]}}";
static const char written[] =
    "{\"a\":[1,-2.5,1e30,true,false,null,[]],\"text\":\"\xC3\xA9\\n\xF0\x9F\x99\x82\","
    "\"object\":{\"b\":{},\"c\":\"d\",\"e\":3,\"f\":4,\"g\":5,\"h\":[[[]]]}}";

/* Reads and writes the document. Returns the text, or NULL with *err set where memory ran out. */
static char *read_and_write(tern_error *err) {
    json_t *root = json_read(document, strlen(document), "file.json", err);
    json_t *copy = json_deep_copy(root);
    json_t *packed = json_pack("{s:o, s:s, s:[i, I, f, b], s:O}", "copy", copy, "s", "text", "list",
                               1, (json_int_t)2, 0.5, 1, "root", root);
    json_object_set_new(packed, "number", json_sprintf("%d", 5));
    json_object_set_new(packed, "number", json_unsigned(UINT64_MAX));
    char *got = json_dump(root, (json_style){.indent = 0});
    char *more = json_dump(packed, (json_style){.indent = 2, .ascii = true}); /* grows twice */
    json_decref(packed);
    json_decref(root);
    free(more);
    if (root != NULL && json_memory_failed() && err->status == TERN_OK) {
        free(got);
        got = NULL;
        (void)tern_fail(err, TERN_ERR_NOMEM, "remembered");
    }
    return got;
}

static void every_allocation_fails_once(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    tern_error err = {0};
    allocations_asked = 0;
    const long before = allocations_live;
    char *got = read_and_write(&err);
    const size_t count = allocations_asked;
    assert_string_equal(got, written);
    free(got);
    assert_int_equal(allocations_live, before);
    assert_true(count > 50);
    size_t survived = 0;
    for (size_t i = 1; i <= count; i++) {
        err = (tern_error){0};
        (void)json_remember(false);
        allocations_asked = 0;
        allocation_that_fails = i;
        got = read_and_write(&err);
        allocation_that_fails = 0;
        if (got != NULL) { /* a failed realloc to a smaller size is harmless */
            assert_string_equal(got, written);
            survived++;
        } else {
            assert_int_equal(err.status, TERN_ERR_NOMEM);
        }
        free(got);
        assert_int_equal(allocations_live, before);
    }
    assert_in_range(survived, 0, 2);
    (void)json_remember(false);
}

static void every_allocation_of_a_file_fails_once(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    const char *path = TERN_SOURCE_DIR "/tests/golden/tern-small-transformers.json";
    const long before = allocations_live;
    tern_status status = TERN_ERR_NOMEM;
    size_t i = 0;
    do {
        tern_json json = {NULL, NULL};
        tern_error err = {0};
        allocations_asked = 0;
        allocation_that_fails = ++i;
        status = tern_json_read(path, 1 << 20, &json, &err);
        assert_int_equal(status == TERN_OK, json.values != NULL);
        allocation_that_fails = 0;
        tern_json_free(&json);
        assert_true(status == TERN_OK || status == TERN_ERR_NOMEM || status == TERN_ERR_IO);
        assert_int_equal(allocations_live, before);
    } while (allocations_asked >= i);
    assert_true(i > 5 && status == TERN_OK);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void refuses(const char *got, const char *message) {
    tern_error err = {0};
    assert_null(json_read(got, strlen(got), "file.json", &err));
    assert_string_equal(err.message, message);
    assert_int_equal(err.status, TERN_ERR_JSON);
    assert_false(json_memory_failed());
}

static void refusals(void **state) {
    (void)state;
    refuses("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", "file.json: line 3: the name \"a\" occurs twice");
    refuses("[{\"x\": {\"\": 1, \"\": 1}}]", "file.json: line 1: the name \"\" occurs twice");
    refuses("[\n\"a\\u0000b\"]", "file.json: line 2: a text has the character U+0000 in it");
    refuses("{\"a\\u0000\": 1}", "file.json: line 1: a name has the character U+0000 in it");
    refuses("[9223372036854775808]", "file.json: line 1: an integer does not fit into 64 bits");
    refuses("[\n\n-1e309]", "file.json: line 3: a number is too large for a double");
    refuses("[\"a\\nb\\nc\",\n}", "file.json: line 2, byte 12: this is not a JSON value");
    refuses("[1, \"a", "file.json: line 1, byte 6: a string does not end");
    refuses("", "file.json: line 1, byte 0: this is not a JSON value");
}

static void bodies_may_have_any_character(void **state) {
    static const char got[] = "[\"a\\u0000b\",\"\\ud800\",\"\\udc00\\ud83d\\ude42\\ud83d\\u0041\"]";
    (void)state;
    json_t *read = json_read_body(got, sizeof got - 1, "body", NULL);
    assert_int_equal(json_string_length(json_array_get(read, 0)), 3);
    assert_memory_equal(json_string_value(json_array_get(read, 0)), "a\0b", 4);
    assert_string_equal(json_string_value(json_array_get(read, 1)), "\xEF\xBF\xBD");
    assert_string_equal(json_string_value(json_array_get(read, 2)),
                        "\xEF\xBF\xBD\xF0\x9F\x99\x82\xEF\xBF\xBD"
                        "A");
    json_decref(read);
    for (size_t i = 0; i < 2; i++)
        assert_null(json_read_body(i == 0 ? "[\"\\ud80\"]" : "{\"\\u0000\":1}", i == 0 ? 9 : 12,
                                   "body", NULL));
    assert_null(json_read_any(got, sizeof got - 1, "body", NULL));
}

static void large_numbers_keep_their_digits(void **state) {
    static const char got[] = "[-92233720368547758089223372036854775808,1e400,1]";
    (void)state;
    json_t *read = json_read_any(got, sizeof got - 1, "body", NULL);
    json_t *copy = json_deep_copy(read);
    char *words = json_dump(copy, (json_style){0});
    assert_string_equal(words, "[-92233720368547758089223372036854775808,1e400,1]");
    assert_true(json_equal(read, copy));
    assert_true(json_number_value(json_array_get(copy, 1)) > 1e308);
    assert_false(json_is_integer(json_array_get(copy, 0)));
    free(words);
    json_decref(read);
    json_decref(copy);
}

static void lines_of_a_larger_file(void **state) {
    (void)state;
    tern_error err = {0};
    assert_null(json_read_lines("{\"a\" 1}", 7, "prompts", 17, &err));
    assert_string_equal(err.message, "prompts: line 17, byte 5: a colon is missing");
}

static void numbers(void **state) {
    (void)state;
    static const char got[] = "[-9223372036854775808, 9223372036854775807, -0, 1e2, 1.5, -0.0, "
                              "1e-400, 12345678901234567890.0]";
    json_t *root = json_read(got, strlen(got), "file.json", NULL);
    assert_int_equal(json_integer_value(json_array_get(root, 0)), INT64_MIN);
    assert_int_equal(json_integer_value(json_array_get(root, 1)), INT64_MAX);
    assert_true(json_is_integer(json_array_get(root, 2)));
    assert_false(json_is_integer(json_array_get(root, 3)));
    assert_int_equal(json_integer_value(json_array_get(root, 3)), 0);
    assert_true(json_number_value(json_array_get(root, 3)) == 100.0);
    assert_true(signbit(json_number_value(json_array_get(root, 5))) != 0);
    assert_true(json_number_value(json_array_get(root, 6)) == 0.0);
    assert_null(json_array_get(root, 8));
    json_decref(root);
}

/* ---- making and writing ---------------------------------------------------------------------- */

static void writes(json_t *value, json_style style, const char *expected) {
    char *got = json_dump(value, style);
    assert_string_equal(got, expected);
    free(got);
    json_decref(value);
}

static void reals(void **state) {
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {{0.0, "0.0"},
                 {-0.0, "-0.0"},
                 {1.0, "1.0"},
                 {0.1, "0.10000000000000001"},
                 {1e16, "10000000000000000.0"},
                 {1e17, "1e17"},
                 {1e-5, "1.0000000000000001e-5"},
                 {1e100, "1e100"},
                 {5e-324, "4.9406564584124654e-324"},
                 {0x1.fffffffffffffp1023, "1.7976931348623157e308"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        writes(json_real(cases[i].x), (json_style){.indent = 0}, cases[i].text);
    assert_null(json_real((double)INFINITY));
    writes(json_number((double)NAN), (json_style){.indent = 0}, "0.0");
    writes(json_unsigned(UINT64_MAX), (json_style){.indent = 0}, "\"18446744073709551615\"");
}

static void texts(void **state) {
    (void)state;
    static const char all[] = "\"\\/\b\f\n\r\t\x01\x1f\x7f\xC3\xA9\xF0\x9F\x99\x82";
    writes(json_string(all), (json_style){.indent = 0},
           "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\xC3\xA9\xF0\x9F\x99\x82\"");
    writes(json_string(all), (json_style){.ascii = true},
           "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\\u00E9\\uD83D\\uDE42\"");
    writes(json_text("a\xFF\xC3", 3), (json_style){.indent = 0}, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void shapes(void **state) {
    (void)state;
    json_t *value = json_pack("{s:[], s:{}, s:[i, {s:b}]}", "a", "b", "c", 1, "d", 0);
    writes(json_incref(value), (json_style){.indent = 0},
           "{\"a\":[],\"b\":{},\"c\":[1,{\"d\":false}]}");
    writes(value, (json_style){.indent = 2},
           "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": false\n    }\n  "
           "]\n}");
}

/* A name that is set again keeps its place. Setting something that is not a value has no effect. */
static void members(void **state) {
    (void)state;
    json_t *object = json_pack("{s:i, s:i}", "a", 1, "b", 2);
    assert_int_equal(json_object_set_new(object, "a", json_null()), 0);
    assert_int_equal(json_object_set_new(object, "c", NULL), -1);
    assert_int_equal(json_array_append_new(object, json_null()), -1);
    assert_null(json_pack("{s:i, s:s, s:o}", "a", 1, "b", (char *)NULL, "c", json_array()));
    json_t *same = json_pack("{s:i, s:O}", "b", 2, "a", json_object_get(object, "a"));
    assert_true(json_equal(object, same));
    json_object_set_new(same, "b", json_real(2.0));
    assert_false(json_equal(object, same));
    json_decref(same);
    writes(object, (json_style){.indent = 0}, "{\"a\":null,\"b\":2}");
}

static void read_and_written(void **state) {
    (void)state;
    tern_error err = {0};
    char *got = read_and_write(&err);
    assert_string_equal(got, written);
    free(got);
}

/* Arbitrary bytes: invalid UTF-8, and bytes that terminals and C strings treat specially. */
static void quoted_bytes(void **state) {
    (void)state;
    static const char bytes[] = "a\0\x7f\xFF\xC3\x1b\xE2\x82\xAC";
    text t = {0};
    text_quote(&t, bytes, sizeof bytes - 1);
    assert_string_equal(t.bytes, "\"a\\u0000\x7f\xEF\xBF\xBD\xEF\xBF\xBD\\u001B\xE2\x82\xAC\"");
    text_clear(&t);
    text_quote_ascii(&t, bytes, sizeof bytes - 1);
    assert_string_equal(t.bytes, "\"a\\u0000\x7f\\uFFFD\\uFFFD\\u001B\\u20AC\"");
    text_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoted_bytes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(bodies_may_have_any_character),
        cmocka_unit_test(large_numbers_keep_their_digits),
        cmocka_unit_test(lines_of_a_larger_file),
        cmocka_unit_test(numbers),
        cmocka_unit_test(reals),
        cmocka_unit_test(texts),
        cmocka_unit_test(shapes),
        cmocka_unit_test(members),
        cmocka_unit_test(read_and_written),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(every_allocation_of_a_file_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
