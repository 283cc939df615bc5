/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas as servers hold answers to them, and whole texts that are checked. */

#include <string.h>

#include "tests/support/check.h"
#include "tests/text/grammar_case.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_closed(void **state) {
    (void)state;
    expect_closed("{\"type\": \"object\", \"properties\": {\"a\": {\"const\": 1}}}",
                  LIST("{}", "{\"a\":1}"), LIST("{\"b", "{\"a\":1,"));
    expect_closed("{\"type\": \"object\", \"properties\": {}}", LIST("{}"), LIST("{\""));
    expect_closed("{\"type\": \"object\"}", LIST("{\"b\":1}"), LIST("1"));
    expect_closed("{\"properties\": {\"a\": {\"const\": 1}}, \"additionalProperties\": true, "
                  "\"type\": \"object\"}",
                  LIST("{\"b\":[]}", "{\"a\":1,\"c\":2}"), LIST("{\"a\":2"));
    expect_closed("{\"properties\": {\"a\": {\"const\": 1}}, \"additionalProperties\": {\"type\": "
                  "\"null\"}, \"type\": \"object\"}",
                  LIST("{\"b\":null}"), LIST("{\"b\":1"));
    expect_closed(
        "{\"allOf\": [{\"properties\": {\"a\": {\"const\": 1}}}, {\"properties\": {\"b\": "
        "{\"const\": 2}}}], \"type\": \"object\", \"unevaluatedProperties\": false}",
        LIST("{\"a\":1,\"b\":2}"), LIST("{\"c"));
}

static void test_closed_names(void **state) {
    (void)state;
    expect_closed(
        "{\"type\": \"object\", \"properties\": {\"a\": {\"const\": 1}}, "
        "\"patternProperties\": {\"^x-\": {\"type\": \"null\"}, \"^y-\": {\"const\": 2}}}",
        LIST("{\"a\":1,\"x-b\":null}", "{\"y-\":2}"),
        LIST("{\"b", "{\"x-b\":2", "{\"y-\":null", "{\"a\":null"));
    expect_closed("{\"type\": \"object\", \"properties\": {\"x-a\": {\"minimum\": 3}}, "
                  "\"patternProperties\": {\"^x-\": {\"type\": \"integer\"}}}",
                  LIST("{\"x-a\":3}"), LIST("{\"x-a\":\"", "{\"x-a\":2}"));
    expect_closed("{\"type\": \"object\", \"patternProperties\": {\"a\": {\"minimum\": 3}, \"b\": "
                  "{\"maximum\": 5, \"type\": \"integer\"}}}",
                  LIST("{\"ab\":4}"), LIST("{\"ab\":2}", "{\"b\":6"));
    expect_closed(
        "{\"type\": \"object\", \"patternProperties\": {\"^a\": {\"minimum\": 3}, \"^ab\": "
        "{\"maximum\": 5, \"type\": \"integer\"}}}",
        LIST("{\"ab\":4}"), LIST("{\"ab\":2}", "{\"ab\":6"));
    expect_closed("{\"type\": \"object\", \"patternProperties\": {\"^x-\": {\"type\": \"null\"}}, "
                  "\"additionalProperties\": true}",
                  LIST("{\"x-a\":null}"), LIST("{\"y", "{\"x-a\":1"));
    expect_schema("{\"type\": \"object\", \"patternProperties\": {\"^(?=a)\": {}}, "
                  "\"additionalProperties\": false}",
                  LIST("{}"), LIST("{\"a"));
}

static void test_digits(void **state) {
    (void)state;
    expect_only("{\"type\": \"integer\"}", LIST("1234567890123456", "-1", "0"),
                LIST("12345678901234567", "1.", "00"));
    expect_only("{\"type\": \"number\"}", LIST("1e99", "0.1234567890123456", "-2.5E+1"),
                LIST("1e100", "0.12345678901234567"));
    expect_only("{\"type\": \"integer\", \"minimum\": 5}", LIST("5", "1234567890123456"),
                LIST("4", "12345678901234567"));
    expect_only("{\"type\": \"integer\", \"minimum\": 12345678901234567}",
                LIST("12345678901234567", "99999999999999999"), LIST("123456789012345678"));
    expect_schema("{\"type\": \"integer\"}", LIST("1234567890123456789012345678901234567890"),
                  LIST("00"));
}

static void test_steps(void **state) {
    (void)state;
    expect_only("{\"type\": \"integer\", \"multipleOf\": 7}", LIST("0", "14", "-21", "700007"),
                LIST("15", "8"));
    expect_only("{\"type\": \"integer\", \"multipleOf\": 500, \"minimum\": 1}",
                LIST("500", "1000", "23500"), LIST("0", "250", "100"));
    expect_only("{\"type\": \"integer\", \"multipleOf\": 3, \"minimum\": 4, \"maximum\": 13}",
                LIST("6", "9", "12"), LIST("3", "15", "4"));
    expect_only("{\"type\": \"number\", \"multipleOf\": 0.25, \"minimum\": 0, \"maximum\": 1}",
                LIST("0", "0.25", "0.5", "0.75", "1"), LIST("0.3", "0.255", "1.25"));
    expect_only("{\"type\": \"number\", \"multipleOf\": 0.01, \"minimum\": 0}",
                LIST("0", "0.07", "19.9", "3"), LIST("0.001", "-"));
    expect_only("{\"type\": \"number\", \"multipleOf\": 2.5}", LIST("5", "-10", "1000000005"),
                LIST("3", "7"));
    expect_only("{\"type\": \"integer\", \"allOf\": [{\"multipleOf\": 2}, {\"multipleOf\": 4}]}",
                LIST("4", "-8"), LIST("6", "2"));
    expect_only("{\"type\": \"integer\", \"multipleOf\": 0.5}", LIST("3"), LIST("0."));
}

static void test_bounds_with_fractions(void **state) {
    (void)state;
    expect_only("{\"type\": \"number\", \"minimum\": 0.25, \"maximum\": 0.5}",
                LIST("0.25", "0.3", "0.5", "0.500", "0.49999", "0.25001"),
                LIST("0.2", "0.24", "0.51", "0.5001", "0", "1", "-"));
    expect_only("{\"type\": \"number\", \"exclusiveMinimum\": -1.5, \"exclusiveMaximum\": 2.75}",
                LIST("-1.4", "-1.49", "0", "2.7", "2.7499", "1.9", "-0.5", "-1"),
                LIST("-1.5", "-1.50", "2.75", "2.8", "3", "-2"));
    expect_only("{\"type\": \"number\", \"maximum\": 0.5}", LIST("0.5", "-3", "0", "-100.25"),
                LIST("0.6", "1", "0.51"));
    expect_only("{\"type\": \"integer\", \"minimum\": 1.2, \"maximum\": 3.9}", LIST("2", "3"),
                LIST("1", "4"));
    expect_only("{\"type\": \"number\", \"minimum\": 3, \"exclusiveMinimum\": true}",
                LIST("3.01", "4"), LIST("3.0", "3"));
    expect_only("{\"type\": \"number\", \"minimum\": 1e-3, \"maximum\": 1.5e0}",
                LIST("0.001", "1.5", "1"), LIST("0.0009", "1.6"));
    expect_only("{\"type\": \"integer\", \"maximum\": 1e308, \"minimum\": 0}", LIST("77"),
                LIST("-"));
}

static void test_lengths_of_patterns(void **state) {
    (void)state;
    expect_schema("{\"type\": \"string\", \"pattern\": \"^[a-z][a-z0-9-]*$\", \"maxLength\": 3}",
                  LIST("\"a\"", "\"a-b\""), LIST("\"a-bc", "\"-"));
    expect_schema("{\"type\": \"string\", \"pattern\": \"\\\\d\", \"minLength\": 3}",
                  LIST("\"aa1\"", "\"1bb\"", "\"12345\""), LIST("\"1\"", "\"12\""));
    expect_schema("{\"type\": \"string\", \"pattern\": \"^(ab|c{2,9})+$\", \"maxLength\": 4}",
                  LIST("\"ab\"", "\"cc\"", "\"abab\""), LIST("\"abcccc", "\"ccccc"));
    expect_schema("{\"type\": \"string\", \"pattern\": \"^[A-Z]{2}$\", \"minLength\": 1, "
                  "\"maxLength\": 40}",
                  LIST("\"AB\""), LIST("\"A\"", "\"ABC"));
}

static void test_names_of_properties(void **state) {
    (void)state;
    expect_closed("{\"type\": \"object\", \"propertyNames\": {\"enum\": [\"a\", \"b\"]}, "
                  "\"additionalProperties\": {\"type\": \"null\"}}",
                  LIST("{}", "{\"a\":null,\"b\":null}"), LIST("{\"c", "{\"a\":1"));
    expect_closed("{\"type\": \"object\", \"propertyNames\": {\"pattern\": \"^[xy]$\"}, "
                  "\"additionalProperties\": {\"const\": 1}}",
                  LIST("{\"x\":1,\"y\":1}"), LIST("{\"z", "{\"xx"));
    expect_closed("{\"type\": \"object\", \"propertyNames\": {\"minLength\": 2}, \"properties\": "
                  "{\"a\": {}, \"bc\": {}}}",
                  LIST("{\"bc\":1}"), LIST("{\"a\""));
    expect_closed("{\"type\": \"object\", \"propertyNames\": {\"maxLength\": 1}}",
                  LIST("{\"\":1}", "{\"a\":2}"), LIST("{\"ab"));
}

static void test_counts_of_members(void **state) {
    (void)state;
    expect_closed(
        "{\"type\": \"object\", \"properties\": {\"a\": {\"const\": 1}, \"b\": {\"const\": "
        "1}, \"c\": {\"const\": 1}}, \"minProperties\": 2}",
        LIST("{\"a\":1,\"b\":1}", "{\"a\":1,\"c\":1}", "{\"b\":1,\"c\":1}",
             "{\"a\":1,\"b\":1,\"c\":1}"),
        LIST("{}", "{\"a\":1}", "{\"c"));
    expect_closed(
        "{\"type\": \"object\", \"properties\": {\"a\": {\"const\": 1}, \"b\": {\"const\": "
        "1}, \"c\": {\"const\": 1}}, \"required\": [\"b\"], \"maxProperties\": 2}",
        LIST("{\"b\":1}", "{\"a\":1,\"b\":1}", "{\"b\":1,\"c\":1}"),
        LIST("{}", "{\"a\":1,\"c", "{\"a\":1,\"b\":1,"));
    expect_closed("{\"type\": \"object\", \"maxProperties\": 1}", LIST("{}", "{\"a\":1}"),
                  LIST("{\"a\":1,"));
    expect_closed("{\"type\": \"object\", \"maxProperties\": 0}", LIST("{}"), LIST("{\""));
}

static void test_contained_items(void **state) {
    (void)state;
    expect_schema(
        "{\"type\": \"array\", \"contains\": {\"const\": 1}, \"items\": {\"enum\": [1, 2]}}",
        LIST("[1]", "[1,2]", "[1,1]"), LIST("[]", "[2"));
    expect_schema(
        "{\"type\": \"array\", \"prefixItems\": [{\"const\": 0}], \"contains\": {\"const\": "
        "1}, \"minContains\": 2}",
        LIST("[0,1,1]", "[0,1,1,7]"), LIST("[0,1]", "[1", "[0,2"));
    expect_schema("{\"type\": \"array\", \"contains\": {\"const\": 1}, \"minContains\": 0}",
                  LIST("[]", "[2]"), LIST("1"));
    expect_schema("{\"type\": \"array\", \"prefixItems\": [{\"const\": 0}], \"unevaluatedItems\": "
                  "false}",
                  LIST("[]", "[0]"), LIST("[0,"));
    expect_schema(
        "{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"type\": \"boolean\"}}",
        LIST("[]", "[true,false]", "[false]"), LIST("[true,true"));
    expect_only("{\"type\": \"array\", \"uniqueItems\": true, \"minItems\": 2, \"maxItems\": 3, "
                "\"items\": {\"enum\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}",
                LIST("[1,2]", "[3,7,12]"), LIST("[]", "[1]", "[1,1]", "[2,1]", "[1,2,3,4", "[12,"));
}

static void test_references(void **state) {
    (void)state;
    expect_schema("{\"$defs\": {\"a\": {\"$anchor\": \"x\", \"const\": 1}}, \"$ref\": \"#x\"}",
                  LIST("1"), LIST("2"));
    expect_schema("{\"$id\": \"http://h/s.json\", \"$defs\": {\"a\": {\"$id\": \"b.json\", "
                  "\"$defs\": {\"c\": {\"const\": 2}}}}, \"$ref\": \"b.json#/$defs/c\"}",
                  LIST("2"), LIST("1"));
    expect_schema("{\"definitions\": {\"a\": {\"id\": \"#y\", \"const\": 3}}, \"$ref\": \"#y\"}",
                  LIST("3"), LIST("1"));
    expect_schema("{\"$dynamicAnchor\": \"n\", \"type\": \"array\", \"items\": {\"$dynamicRef\": "
                  "\"#n\"}}",
                  LIST("[]", "[[],[[]]]"), LIST("1", "[1"));
}

/* Listed values satisfy everything else that is said. */
static void test_listed_values(void **state) {
    (void)state;
    expect_schema("{\"enum\": [1, 5, \"ab\", \"abc\", {\"a\": 1}, {\"b\": 1}], \"minimum\": 3, "
                  "\"maxLength\": 2, \"required\": [\"a\"]}",
                  LIST("5", "\"ab\"", "{\"a\":1}"), LIST("1", "\"abc", "{\"b"));
    expect_schema("{\"enum\": [1.50, 2], \"allOf\": [{\"enum\": [1.5, 3]}]}", LIST("1.50"),
                  LIST("2", "3"));
    expect_schema("{\"enum\": [{}, {\"a\": 1}], \"not\": {\"required\": [\"a\"]}}", LIST("{}"),
                  LIST("{\"a"));
    expect_schema("{\"type\": \"integer\", \"enum\": [1.0, 1.5]}", LIST("1.0"), LIST("1.5"));
}

/* One of the keywords that can fail does, where not all can. */
static void test_narrow_denials(void **state) {
    (void)state;
    expect_closed(
        "{\"type\": \"object\", \"oneOf\": [{\"properties\": {\"a\": {\"type\": "
        "\"string\", \"minLength\": 1}}, \"required\": [\"a\"], \"additionalProperties\": "
        "false}, {\"properties\": {\"b\": {\"type\": \"integer\"}}, \"required\": [\"b\"], "
        "\"additionalProperties\": false}]}",
        LIST("{\"a\":\"x\"}", "{\"b\":1}"), LIST("{}", "{\"a\":\"x\",", "{\"b\":1,"));
    expect_closed(
        "{\"type\": \"object\", \"oneOf\": [{\"properties\": {\"a\": {\"minLength\": 1}}, "
        "\"required\": [\"a\"]}, {\"properties\": {\"b\": {\"minLength\": 2}}, "
        "\"required\": [\"b\"]}]}",
        LIST("{\"a\":\"x\"}", "{\"b\":\"xx\"}"), LIST("{}", "{\"a\":\"x\",\"b"));
    expect_schema("{\"if\": {\"minimum\": 2}, \"then\": {\"maximum\": 8}, \"type\": \"integer\"}",
                  LIST("2", "8", "1"), LIST("9"));
    expect_schema("{\"type\": \"object\", \"properties\": {\"a\": {}}, \"not\": {\"required\": "
                  "[\"a\"], \"minProperties\": 3}}",
                  LIST("{\"b\":1}", "{}"), LIST("{\"a\""));
}

static void test_validation(void **state) {
    static const struct {
        const char *schema, *text;
        bool valid;
        const char *why;
    } cases[] = {
        {"{\"type\": \"array\", \"uniqueItems\": true}", "[1, 2, \"1\"]", true, ""},
        {"{\"properties\": {\"a\": {\"uniqueItems\": true}}}",
         "{\"a\": [{\"x\": 1}, {\"x\": 1.0}]}", false,
         "the value at \"/a\" does not satisfy uniqueItems at \"/properties/a\""},
        {"{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}", "3", false, "oneOf"},
        {"{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}", "3.5", true, ""},
        {"{\"not\": {\"multipleOf\": 2}}", "4", false, "not"},
        {"{\"multipleOf\": 0.01}", "19.99", true, ""},
        {"{\"multipleOf\": 0.01}", "19.999", false, "multipleOf"},
        {"{\"pattern\": \"^(?!a)\"}", "\"b\"", true, ""},
        {"{\"pattern\": \"^(?!a)\"}", "\"ab\"", false, "pattern"},
        {"{\"pattern\": \"(\"}", "\"ab\"", true, ""}, /* not told apart */
        {"{\"not\": {\"pattern\": \"(\"}}", "\"ab\"", true, ""},
        {"{\"format\": \"ipv4\", \"pattern\": \"^1\"}", "\"1x\"", false, "format"},
        {"{\"contains\": {\"const\": 1}, \"maxContains\": 1}", "[1, 1]", false, "contains"},
        {"{\"patternProperties\": {\"^a\": {\"type\": \"null\"}}, \"additionalProperties\": false}",
         "{\"b\": 1}", false, "additionalProperties"},
        {"{\"propertyNames\": {\"maxLength\": 2}}", "{\"abc\": 1}", false, "propertyNames"},
        {"{\"dependentRequired\": {\"a\": [\"b\"]}}", "{\"a\": 1}", false, "dependentRequired"},
        {"{\"if\": {\"minimum\": 3}, \"then\": {\"maximum\": 5}}", "7", false, "maximum"},
        {"{\"$ref\": \"http://elsewhere/\"}", "7", true, ""},
        {"{\"minProperties\": 2}", "{\"a\": 1, \"a\": 2}", false, "minProperties"},
        {"{\"items\": [{}, {\"const\": 1}], \"additionalItems\": false}", "[0, 1, 2]", false,
         "false"},
        {"{\"minLength\": 2}", "\"\u00e9\"", false, "minLength"},
        {"{\"exclusiveMaximum\": 0.3}", "0.3", false, "exclusiveMaximum"},
        {"{\"type\": \"integer\"}", "1.0", true, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_error err = {0};
        bool valid = !cases[i].valid;
        check_case("%s: %s", cases[i].schema, cases[i].text);
        assert_int_equal(tern_schema_validate(cases[i].schema, strlen(cases[i].schema),
                                              cases[i].text, strlen(cases[i].text), &valid, &err),
                         TERN_OK);
        if (valid != cases[i].valid || strstr(err.message, cases[i].why) == NULL)
            check_fail("%s %s", valid ? "valid" : "wrong", err.message);
    }
    bool valid = false;
    assert_int_equal(tern_schema_validate("{", 1, "1", 1, &valid, NULL), TERN_ERR_JSON);
    assert_int_equal(tern_schema_validate("{}", 2, "1", 1, NULL, NULL), TERN_ERR_NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_closed_names),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_bounds_with_fractions),
        cmocka_unit_test(test_lengths_of_patterns),
        cmocka_unit_test(test_names_of_properties),
        cmocka_unit_test(test_counts_of_members),
        cmocka_unit_test(test_contained_items),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_listed_values),
        cmocka_unit_test(test_narrow_denials),
        cmocka_unit_test(test_validation),
    };
    return cmocka_run_group_tests(tests, grammar_case_begin, grammar_case_end);
}
