/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: the texts that they allow, and refusals. */

#include <string.h>

#include "tests/text/grammar_case.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_scalars(void **state) {
    (void)state;
    expect_schema("{\"type\": \"boolean\"}", LIST("true", "false"), LIST("True", "null", "1"));
    expect_schema("{\"type\": [\"null\", \"integer\"]}", LIST("null", "0", "-12", "120"),
                  LIST("01", "1.", "--", "true"));
    expect_schema("{\"type\": \"number\"}", LIST("0", "-0.5", "1e9", "1.25E-3"),
                  LIST("01", ".5", "+1", "NaN"));
    expect_schema("{\"const\": null}", LIST("null"), LIST("true", "\""));
    expect_schema(
        "{\"enum\": [\"a\\n\", 1.50, [1, {\"k\": true}]], \"type\": [\"string\", \"array\"]}",
        LIST("\"a\\n\"", "[1,{\"k\":true}]"), LIST("1", "\"a\n"));
}

static void test_strings(void **state) {
    (void)state;
    expect_schema(
        "{\"type\": \"string\"}",
        LIST("\"\"", "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u00e9\\u0001\\ud83d\\ude42\"",
             "\"\u00e9\U0001f642\""),
        LIST("\"\n", "\"\\x", "\"\\u0000", "\"\\ud83dx", "\"\\ude42", "\"\x7f", "\"\xff"));
    expect_schema("{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}",
                  LIST("\"ab\"", "\"\u00e9\U0001f642\\n\"", "\"\\ud83d\\ude42a\""),
                  LIST("\"\"", "\"a\"", "\"abcd"));
    expect_schema("{\"type\": \"string\", \"pattern\": \"^[a-c]+(-|x{2,3})?$\"}",
                  LIST("\"abc\"", "\"a-\"", "\"cxxx\""), LIST("\"\"", "\"ax\"", "\"d", "\"axxxx"));
    expect_schema("{\"type\": \"string\", \"pattern\": \"b\\\"\\\\d|^z\"}",
                  LIST("\"ab\\\"7c\"", "\"zoo\""), LIST("\"ab\\\"\"", "\"az\""));
    expect_schema("{\"type\": \"string\", \"pattern\": \"^\\\\w*$\", \"maxLength\": 2}",
                  LIST("\"\"", "\"a_\""), LIST("\"abc", "\"-"));
}

static void test_formats(void **state) {
    (void)state;
    expect_schema("{\"type\": \"string\", \"format\": \"date\"}",
                  LIST("\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\"", "\"0400-02-29\""),
                  LIST("\"2023-02-29", "\"1900-02-29", "\"2024-04-31", "\"0000", "\"2024-13"));
    expect_schema("{\"type\": \"string\", \"format\": \"date-time\"}",
                  LIST("\"2024-02-29T23:59:59Z\"", "\"2024-01-01T00:00:00.5+01:30\""),
                  LIST("\"2024-01-01 ", "\"2024-01-01T24", "\"2024-01-01T00:00:00\""));
    expect_schema("{\"type\": \"string\", \"format\": \"uuid\"}",
                  LIST("\"123e4567-e89b-12d3-a456-426614174000\""), LIST("\"123e4567e", "\"g"));
    expect_schema("{\"type\": \"string\", \"format\": \"email\"}", LIST("\"a.b+c@d-e.org\""),
                  LIST("\"a..b", "\"@", "\"a@b\""));
    expect_schema("{\"type\": \"string\", \"format\": \"ipv4\"}", LIST("\"255.0.10.9\""),
                  LIST("\"256", "\"1.2.3\"", "\"01"));
}

static void test_formats_of_hosts(void **state) {
    (void)state;
    expect_schema("{\"type\": \"string\", \"format\": \"hostname\"}",
                  LIST("\"a\"", "\"a-1.B.c.d\"", "\"a.b.c.d.e.f.g.h\""),
                  LIST("\"-", "\"a-.", "\"a-\"", "\"a..", "\"a_"));
    expect_schema("{\"type\": \"string\", \"format\": \"ipv6\"}",
                  LIST("\"::\"", "\"::1\"", "\"2001:db8::7\"", "\"1:2:3:4:5:6:7:8\"",
                       "\"1:2:3:4:5:6:7::\"", "\"::2:3:4:5:6:7:8\"", "\"ffff::1.2.3.4\"",
                       "\"1:2:3:4:5:6:1.2.3.4\"", "\"1::3:4:5:6:7:8\""),
                  LIST("\":1", "\"1:\"", "\"12345", "\"1::2::", "\"1:2:3:4:5:6:7\"",
                       "\"1:2:3:4:5:6:7:8:", "\"1:2:3:4:5:6:7:1.", "\"::1.2.3\"", "\"fe80::1%"));
}

/* Most examples of RFC 3986, 1.1.2, 3 and 5.4. */
static void test_formats_of_resources(void **state) {
    (void)state;
    expect_schema("{\"type\": \"string\", \"format\": \"uri\"}",
                  LIST("\"ftp://ftp.is.co.za/rfc/rfc1808.txt\"",
                       "\"ldap://[2001:db8::7]/c=GB?a?b\"", "\"mailto:John.Doe@example.com\"",
                       "\"tel:+1-816-555-1212\"", "\"telnet://192.0.2.16:80/\"",
                       "\"urn:oasis:names:4.1.2\"", "\"x:\"",
                       "\"foo://u:p@example.com:8042/over/there?name=ferret#nose\"",
                       "\"file:///etc\"", "\"a://[v1.f::+]:/%7e\"", "\"x:/a//b?/?#/?\""),
                  LIST("\"\"", "\"a\"", "\"/a", "\"1:", "\"a:%g", "\"a:%2x", "\"a:#b#", "\"a:[",
                       "\"a: ", "\"a://b:x\"", "\"a://b@c@", "\"a://[::1/", "\"a:\u00e9"));
    expect_schema("{\"type\": \"string\", \"format\": \"uri-reference\"}",
                  LIST("\"\"", "\"g\"", "\"./g:h\"", "\"/g/\"", "\"//g\"", "\"?y\"",
                       "\"g;x=1?y#s\"", "\"../../g\"", "\"http://a/b\"", "\"a:b\""),
                  LIST("\"1:", "\":", "\"a%x", "\"%20:", "\"#a#", "\"\\"));
    expect_schema("{\"type\": \"string\", \"format\": \"iri\"}",
                  LIST("\"http://r\u00e9.x/\u65e5?\ue000#\U000e1000\""),
                  LIST("\"\u00e9", "\"a:\ue000", "\"a:?b#\ue000", "\"a:\ufdd0"));
    expect_schema("{\"type\": \"string\", \"format\": \"iri-reference\"}",
                  LIST("\"\u00e9/b\"", "\"//\u00e9\""), LIST("\"\u00e9:"));
    expect_schema("{\"type\": \"string\", \"format\": \"json-pointer\"}",
                  LIST("\"\"", "\"/\"", "\"/a~0b/~1//\""), LIST("\"a", "\"/~\"", "\"/~2"));
    expect_schema("{\"type\": \"string\", \"format\": \"relative-json-pointer\"}",
                  LIST("\"0\"", "\"10/a\"", "\"2#\""), LIST("\"\"", "\"01", "\"/", "\"1#/"));
    expect_schema("{\"type\": \"string\", \"format\": \"duration\"}",
                  LIST("\"P1Y2M3DT4H5M6S\"", "\"PT36H\"", "\"P2W\"", "\"P1M\"", "\"P3DT1S\""),
                  LIST("\"P\"", "\"PT\"", "\"P1Y1D", "\"P1W1", "\"P1S", "\"PT1H1S"));
}

/* The lengths that texts of a format may have. */
static void test_formats_with_lengths(void **state) {
    (void)state;
    expect_schema("{\"type\": \"string\", \"format\": \"uri\", \"minLength\": 1}", LIST("\"a:\""),
                  LIST("\"\""));
    expect_schema("{\"type\": \"string\", \"format\": \"date\", \"minLength\": 10, "
                  "\"maxLength\": 10}",
                  LIST("\"2024-02-29\""), LIST("\"2024-2"));
    expect_noted("{\"type\": \"string\", \"format\": \"date\", \"maxLength\": 9}",
                 "format: together with minLength or maxLength", "\"2024-02-29\"");
    expect_schema("{\"type\": \"string\", \"format\": \"uri\", \"minLength\": 3}",
                  LIST("\"a:b\"", "\"a:#b\""), LIST("\"a:\""));
    expect_schema("{\"type\": \"string\", \"format\": \"uri\", \"maxLength\": 2083}",
                  LIST("\"http://a.example/b/c?d#e\""), LIST("\"a\""));
}

static void test_numbers(void **state) {
    (void)state;
    expect_schema("{\"type\": \"integer\", \"minimum\": -5, \"maximum\": 120}",
                  LIST("-5", "0", "7", "99", "100", "120"), LIST("-6", "121", "200", "-00", "00"));
    expect_schema("{\"type\": \"integer\", \"exclusiveMinimum\": 9, \"maximum\": 1000.5}",
                  LIST("10", "1000"), LIST("09", "1001", "-"));
    expect_schema("{\"type\": \"integer\", \"minimum\": 37}", LIST("37", "40", "100", "36000"),
                  LIST("05", "-", "3a"));
    expect_schema("{\"type\": \"number\", \"minimum\": 0, \"maximum\": 1}",
                  LIST("0", "0.5", "1", "1.00"), LIST("-", "1.01", "2", "1e"));
    expect_schema("{\"type\": \"number\", \"exclusiveMinimum\": -2, \"exclusiveMaximum\": 3}",
                  LIST("-1.99", "-0.1", "0", "2.9", "2"), LIST("-2", "-2.0", "3"));
    expect_schema("{\"type\": \"number\", \"maximum\": -10}", LIST("-10", "-10.5", "-11", "-100.0"),
                  LIST("-9.", "1", "-0"));
}

static void test_objects(void **state) {
    (void)state;
    expect_schema("{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"null\"}, \"b\": "
                  "{\"type\": \"null\"}, \"c\": {\"type\": \"null\"}}, \"required\": [\"b\"], "
                  "\"additionalProperties\": false}",
                  LIST("{\"b\":null}", "{\"a\":null,\"b\":null}", "{\"b\":null,\"c\":null}",
                       "{\"a\":null,\"b\":null,\"c\":null}"),
                  LIST("{}", "{\"c\"", "{\"b\":null,\"a", "{\"b\":null,\"b", "{\"b\":null,\"d"));
    expect_schema("{\"type\": \"object\", \"properties\": {\"ab\": {\"type\": \"null\"}}, "
                  "\"additionalProperties\": {\"type\": \"integer\"}}",
                  LIST("{}", "{\"ab\":null}", "{\"a\":1,\"abc\":2}", "{\"\":1}",
                       "{\"ab\":null,\"\u00e9\\n\":3}"),
                  LIST("{\"ab\":1", "{\"x\":null", "{\"x\":1,\"ab\"", "{\"\\u0061"));
    expect_schema("{\"type\": \"object\", \"required\": [\"z\"], \"minProperties\": 1}",
                  LIST("{\"z\":[{}]}", "{\"z\":1,\"y\":{\"z\":2}}"), LIST("{}", "{\"y"));
    expect_schema("{\"properties\": {\"a\": false, \"b\": true}, \"type\": \"object\"}",
                  LIST("{\"b\":1}", "{\"c\":1}"), LIST("{\"a\""));
}

/* One pattern: it covers all names, or no other names are allowed. */
static void test_names_by_a_pattern(void **state) {
    (void)state;
    expect_schema("{\"type\": \"object\", \"patternProperties\": {\"^x-[a-c]+$\": {\"type\": "
                  "\"null\"}}, \"additionalProperties\": false}",
                  LIST("{}", "{\"x-a\":null}", "{\"x-ab\":null,\"x-c\":null}"),
                  LIST("{\"x-\"", "{\"y", "{\"x-a\":1", "{\"x-d", "{\"x-a\":null,\"y"));
    expect_schema("{\"type\": \"object\", \"patternProperties\": {\"b\": {\"type\": \"null\"}}, "
                  "\"additionalProperties\": false, \"minProperties\": 1}",
                  LIST("{\"b\":null}", "{\"abc\":null}"), LIST("{}", "{\"ac\"", "{\"b\":0"));
    expect_schema("{\"type\": \"object\", \"patternProperties\": {\".*\": {\"const\": 1}}}",
                  LIST("{}", "{\"\":1}", "{\"a\\n\":1,\"b\":1}"), LIST("{\"a\":2"));
    expect_schema("{\"allOf\": [{\"patternProperties\": {\"^a\": {\"minimum\": 3}}, "
                  "\"additionalProperties\": false}, {\"additionalProperties\": {\"maximum\": "
                  "4}}, {\"patternProperties\": {}}], \"type\": \"object\"}",
                  LIST("{\"a\":3}", "{\"ab\":4,\"a\":[]}"), LIST("{\"a\":2", "{\"b", "{\"a\":5"));
}

static void test_arrays(void **state) {
    (void)state;
    expect_schema("{\"type\": \"array\", \"items\": {\"type\": \"null\"}, \"minItems\": 1, "
                  "\"maxItems\": 3}",
                  LIST("[null]", "[null,null,null]"), LIST("[]", "[null,null,null,", "[1"));
    expect_schema("{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}, {\"const\": 2}], "
                  "\"items\": {\"const\": 3}, \"minItems\": 1}",
                  LIST("[1]", "[1,2]", "[1,2,3,3]"), LIST("[]", "[2", "[1,3"));
    expect_schema("{\"type\": \"array\", \"prefixItems\": [{\"const\": 1}, {\"const\": 2}], "
                  "\"items\": false}",
                  LIST("[]", "[1,2]"), LIST("[1,2,"));
    expect_schema("{\"type\": \"array\", \"maxItems\": 0}", LIST("[]"), LIST("[1"));
}

static void test_combinations(void **state) {
    (void)state;
    expect_schema(
        "{\"$defs\": {\"node\": {\"type\": \"object\", \"properties\": {\"next\": "
        "{\"anyOf\": [{\"$ref\": \"#/$defs/node\"}, {\"type\": \"null\"}]}}, \"required\": "
        "[\"next\"], \"additionalProperties\": false}}, \"$ref\": \"#/$defs/node\"}",
        LIST("{\"next\":null}", "{\"next\":{\"next\":{\"next\":null}}}"),
        LIST("{}", "{\"next\":1"));
    expect_schema("{\"$defs\": {\"A/~\": {\"const\": 1}}, \"$ref\": \"#/$defs/%41~1~0\"}",
                  LIST("1"), LIST("2"));
    expect_schema(
        "{\"allOf\": [{\"type\": \"object\", \"properties\": {\"a\": {\"type\": "
        "\"integer\"}}}, {\"properties\": {\"a\": {\"minimum\": 5}, \"b\": {\"const\": 1}}, "
        "\"required\": [\"a\"]}], \"additionalProperties\": true}",
        LIST("{\"a\":5}", "{\"a\":12,\"b\":1}"), LIST("{\"a\":4}", "{\"b\"", "{\"a\":5,\"b\":2"));
    expect_schema(
        "{\"oneOf\": [{\"type\": \"object\", \"properties\": {\"k\": {\"const\": \"x\"}}, "
        "\"required\": [\"k\"], \"additionalProperties\": false}, {\"type\": \"object\", "
        "\"properties\": {\"k\": {\"enum\": [\"y\", \"z\"]}}, \"required\": [\"k\"], "
        "\"additionalProperties\": false}, {\"type\": \"string\"}]}",
        LIST("{\"k\":\"x\"}", "{\"k\":\"z\"}", "\"k\""), LIST("{}", "{\"k\":\"w"));
    expect_schema("{\"anyOf\": [{\"minimum\": 3}, {\"maximum\": -3}], \"type\": \"integer\"}",
                  LIST("3", "-3", "10"), LIST("2}", "0", "-0"));
    expect_schema("{}", LIST("[{\"a\":[true,null,1.5e3,\"x\"]}]"), LIST("[,", "{1", "nul1"));
}

/* `not`: any keyword of its schema may be the one that fails. */
static void test_denied(void **state) {
    (void)state;
    expect_schema("{\"type\": [\"null\", \"string\"], \"not\": {\"enum\": [\"a\", \"ab\", 1]}}",
                  LIST("null", "\"\"", "\"b\"", "\"abc\"", "\"aa\""), LIST("\"a\"", "\"ab\"", "1"));
    expect_schema("{\"not\": {\"type\": [\"object\", \"array\", \"number\"]}}",
                  LIST("null", "true", "\"x\""), LIST("{", "[", "1", "-"));
    expect_schema("{\"type\": \"boolean\", \"not\": {\"const\": true}}", LIST("false"), LIST("t"));
    expect_schema("{\"enum\": [1, 2, \"a\", null], \"not\": {\"enum\": [2, null]}}",
                  LIST("1", "\"a\""), LIST("2", "null"));
    expect_schema("{\"not\": {\"required\": [\"a\", \"b\"]}}",
                  LIST("{}", "{\"a\":1}", "{\"b\":1,\"c\":1}"), LIST("1", "[", "{\"a\":1,\"b\""));
    expect_schema("{\"not\": {\"properties\": {\"a\": {\"const\": \"x\"}}}}",
                  LIST("{\"a\":\"y\"}", "{\"a\":null,\"b\":1}"),
                  LIST("{}", "{\"a\":\"x\"}", "null"));
    expect_schema("{\"type\": \"null\", \"not\": {\"anyOf\": [{\"type\": \"object\"}, {\"allOf\": "
                  "[{\"type\": \"null\"}, {\"type\": \"string\"}]}]}}",
                  LIST("null"), LIST("{"));
    expect_schema("{\"type\": \"string\", \"not\": {\"not\": {\"const\": \"a\"}}}", LIST("\"a\""),
                  LIST("\"b"));
    expect_schema("{\"type\": \"null\", \"not\": {\"type\": \"null\", \"type\": \"string\"}}",
                  LIST("null"), LIST("1"));
    expect_schema("{\"type\": [\"null\", \"string\"], \"not\": {\"type\": \"null\", \"type\": "
                  "\"string\"}}",
                  LIST("null"), LIST("\"a"));
    expect_schema("{\"type\": [\"null\", \"boolean\", \"string\"], \"not\": {\"anyOf\": "
                  "[{\"type\": \"null\"}, {\"type\": \"string\"}]}}",
                  LIST("true"), LIST("null", "\"a"));
    expect_schema_refused("{\"not\": {}}", "no text can satisfy it");
    expect_schema_refused("{\"not\": true}", "no text can satisfy it");
}

/* oneOf: exactly one of several schemas that may hold together. */
static void test_one_of(void **state) {
    (void)state;
    expect_schema("{\"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}",
                  LIST("{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"c\":2}"),
                  LIST("{}", "{\"a\":1,\"b\"", "{\"b\":1,\"a\"", "1", "[]"));
    expect_schema("{\"oneOf\": [{\"enum\": [\"a\", \"b\", 1]}, {\"enum\": [\"b\", 1, 2]}]}",
                  LIST("\"a\"", "2"), LIST("\"b\"", "1"));
    expect_schema("{\"oneOf\": [{\"type\": \"string\"}, {\"const\": \"a\"}, {\"const\": 1}]}",
                  LIST("\"b\"", "1"), LIST("\"a\"", "2"));
    expect_schema("{\"oneOf\": [{\"const\": 1}, {\"const\": 2.5}]}", LIST("1", "2.5"), LIST("3"));
    /* what the first requires, the second does not name, but allows */
    expect_schema("{\"oneOf\": [{\"type\": \"object\", \"required\": [\"a\"]}, "
                  "{\"type\": \"object\", \"required\": [\"b\"], \"additionalProperties\": true}]}",
                  LIST("{\"a\":1}", "{\"b\":1}"), LIST("{\"a\":1,\"b\"", "{\"b\":1,\"a\""));
}

static void test_conditions(void **state) {
    (void)state;
    expect_schema(
        "{\"type\": \"object\", \"properties\": {\"k\": {\"enum\": [\"x\", \"y\"]}, \"n\": "
        "{\"type\": \"null\"}}, \"additionalProperties\": false, \"if\": {\"properties\": "
        "{\"k\": {\"const\": \"x\"}}, \"required\": [\"k\"]}, \"then\": {\"required\": "
        "[\"n\"]}, \"else\": {\"properties\": {\"n\": false}}}",
        LIST("{}", "{\"k\":\"x\",\"n\":null}", "{\"k\":\"y\"}"),
        LIST("{\"k\":\"x\"}", "{\"k\":\"y\",\"n\"", "{\"n\""));
    expect_schema("{\"if\": {\"type\": \"string\"}, \"then\": {\"const\": \"a\"}}",
                  LIST("\"a\"", "1", "null"), LIST("\"b"));
    expect_schema("{\"type\": \"null\", \"if\": {\"multipleOf\": 2}}", LIST("null"), LIST("1"));
    expect_schema("{\"type\": \"object\", \"dependentRequired\": {\"a\": [\"b\"]}}",
                  LIST("{}", "{\"b\":1}", "{\"a\":1,\"b\":1}"), LIST("{\"a\":1}", "{\"a\":1,\"c"));
    expect_schema(
        "{\"type\": [\"object\", \"null\"], \"dependencies\": {\"a\": {\"properties\": {\"b\": "
        "{\"type\": \"null\"}}, \"additionalProperties\": false, \"maxLength\": 1}, \"b\": []}, "
        "\"properties\": {\"a\": {}}}",
        LIST("{}", "null", "{\"b\":1}"), LIST("{\"a\":1,\"c", "{\"a\":1"));
}

static void test_different_items(void **state) {
    (void)state;
    expect_schema(
        "{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"enum\": [\"a\", \"b\", 1, "
        "1]}, \"minItems\": 1}",
        LIST("[\"a\"]", "[1,\"b\",\"a\"]", "[\"b\",1]"),
        LIST("[]", "[1,1", "[\"a\",1,\"a\"", "[\"a\",\"b\",1,"));
    expect_schema("{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"enum\": [1, 2, 3]}, "
                  "\"maxItems\": 2}",
                  LIST("[]", "[3]", "[3,1]"), LIST("[3,1,", "[2,2"));
    expect_schema("{\"type\": \"array\", \"uniqueItems\": true, \"maxItems\": 1}",
                  LIST("[]", "[{\"a\":1}]"), LIST("[1,"));
    expect_schema_refused(
        "{\"type\": \"array\", \"uniqueItems\": true, \"items\": {\"enum\": [1, 2]}, "
        "\"minItems\": 3}",
        "no text can satisfy it");
}

static void test_white_space(void **state) {
    (void)state;
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"array\"}}}";
    tern_grammar *g = NULL;
    assert_int_equal(tern_grammar_from_schema(grammar_tokens, schema, sizeof schema - 1, "schema",
                                              NULL, &g, NULL),
                     TERN_OK);
    expect_whole(g, "{\n  \"a\" : [\n    1, 2\n  ]\n}");
    expect_whole(g, "{\"a\":[]}");
    expect_whole(g, "{ }");
    expect_wrong(g, " {");
    expect_wrong(g, "{  ");
    expect_wrong(g, "{}\n");
    expect_wrong(g, "{\n\n");
    expect_wrong(g, "{\"a\" \"");
    tern_grammar_free(&g);
}

static void test_refused_schemas(void **state) {
    (void)state;
    expect_schema_refused("{\"type\": \"strin\"}", "type: a type that does not exist");
    expect_schema_refused("{\"properties\": {\"a/b\": {\"type\": 3}}}",
                          "at \"/properties/a/b\": type");
    expect_schema_refused("{\"items\": [{}, {\"minimum\": \"3\"}]}", "/items/1\": minimum");
    expect_schema_refused("{\"multipleOf\": null, \"multipleOf\": \"2\"}",
                          "multipleOf: not a number");
    expect_schema_refused("{\"$ref\": 3}", "$ref: not a string");
    expect_schema_refused("{\"$ref\": \"#/$defs/a\"}", "there is no schema at its target");
    expect_schema_refused("{\"$ref\": \"#a\"}", "there is no schema at its target");
    expect_schema_refused("{\"$defs\": {\"\\u0004\": true}, \"$ref\": \"#/$defs/%+4\"}",
                          "there is no schema at its target");
    expect_schema_refused("{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"anyOf\": [{\"$ref\": "
                          "\"#/$defs/a\"}, {\"type\": \"null\"}]}}}",
                          "begins with itself");
    expect_schema_refused("{\"minLength\": -1}", "minLength: not a whole number");
    expect_schema_refused("{\"enum\": []}", "no text can satisfy it");
    expect_schema_refused("{\"enum\": [1], \"minimum\": 3}", "no text can satisfy it");
    expect_schema_refused("false", "no text can satisfy it");
    expect_schema_refused("{\"uniqueItems\": 1}", "uniqueItems: neither true nor false");
    expect_schema_refused("{\"dependentRequired\": 3}", "dependentRequired: not an object");
    expect_schema_refused("{\"patternProperties\": []}", "patternProperties: not an object");
    expect_schema_refused("{\"required\": \"a\", \"type\": \"object\"}", "required: not a list");
    expect_schema_refused("3", "neither an object, true nor false");
}

/* Several patterns, a format and lengths hold together. */
static void test_patterns_together(void **state) {
    char large[9003] = "\"";
    (void)state;
    memset(large + 1, 'c', 9000);
    large[9001] = '"';
    expect_schema(
        "{\"type\": \"string\", \"allOf\": [{\"pattern\": \"^a\"}, {\"pattern\": \"b$\"}]}",
        LIST("\"ab\"", "\"a-b\"", "\"a\\\"b\"", "\"abb\""),
        LIST("\"b\"", "\"a\"", "\"ba\"", "\"ac\""));
    expect_schema("{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 4, \"allOf\": "
                  "[{\"pattern\": \"^[a-m]*$\"}, {\"pattern\": \"^(x|[g-z]+)+$\"}]}",
                  LIST("\"ggg\"", "\"mghi\""), LIST("\"gg\"", "\"ggggg\"", "\"ggn\"", "\"gga\""));
    expect_schema("{\"type\": \"string\", \"allOf\": [{\"pattern\": \"a\"}, {\"pattern\": "
                  "\"b\"}, {\"pattern\": \"c\"}]}",
                  LIST("\"abc\"", "\"cxbya\""), LIST("\"ab\"", "\"cac\"", "\"\""));
    expect_schema("{\"type\": \"string\", \"format\": \"ipv4\", \"pattern\": \"^1\"}",
                  LIST("\"1.2.3.4\"", "\"127.0.0.1\""), LIST("\"2.2.3.4\"", "\"1x\"", "\"1\""));
    expect_schema_refused("{\"type\": \"string\", \"allOf\": [{\"pattern\": \"^a\"}, "
                          "{\"pattern\": \"^b\"}]}",
                          "no text can satisfy it");
    expect_noted("{\"type\": \"string\", \"allOf\": [{\"pattern\": \"^a\"}, {\"pattern\": "
                 "\"(?=a)\"}]}",
                 "pattern: groups that begin with (?", "\"ab\"");
    expect_noted("{\"type\": \"string\", \"allOf\": [{\"pattern\": \"^.{9000}$\"}, {\"pattern\": "
                 "\"b.{8000}$\"}]}",
                 "pattern: together with another", large);
}

/* Texts are held to all but what a note tells. */
static void test_notes(void **state) {
    (void)state;
    expect_noted(
        "{\"properties\": {\"a/b\": {\"type\": \"array\", \"uniqueItems\": true}}, \"type\": "
        "\"object\"}",
        "at \"/properties/a/b\": uniqueItems", "{\"a/b\":[1,1]}");
    expect_noted("{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}",
                 "oneOf: its alternatives 0 and 1 may both hold", "3");
    expect_noted("{\"type\": \"string\", \"pattern\": \"(?=a)\"}",
                 "pattern: groups that begin with (?", "\"b\"");
    expect_noted("{\"type\": \"string\", \"pattern\": \"a\\\\b\"}", "pattern: an escape", "\"b\"");
    expect_noted("{\"type\": \"string\", \"format\": \"regex\"}", "format: this one", "\"(\"");
    expect_noted("{\"$ref\": \"http://x/y\"}", "$ref: a schema that is not in this document", "1");
    expect_noted("{\"type\": \"integer\", \"not\": {\"multipleOf\": 2}}",
                 "at \"/not\": not: a schema that must not hold", "2");
    expect_noted("{\"type\": \"number\", \"not\": {\"const\": 3}}",
                 "at \"/not/const\": const: numbers, lists and objects", "3");
    expect_noted("{\"type\": \"array\", \"contains\": {\"const\": 1}, \"maxContains\": 1}",
                 "maxContains: this is not enforced", "[1,1]");
    expect_noted("{\"type\": \"integer\", \"multipleOf\": 1001}", "multipleOf: a step", "7");
    expect_noted("{\"properties\": {\"a\": {\"required\": true}}, \"type\": \"object\"}",
                 "required: not a list of names", "{\"a\":1}");
    expect_schema("{\"nullable\": true, \"strict\": true, \"x-a\": 1, \"enumNames\": [], \"type\": "
                  "\"string\", \"format\": \"binary\", \"discriminator\": {}, \"$vocabulary\": {}}",
                  LIST("\"a\""), LIST("null"));
}

/* Names so long that what differs from them is made of several rules: one letter more, less, or
 * another anywhere. */
static void test_long_names(void **state) {
#define SHORTER "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxy"
    (void)state;
    expect_schema("{\"type\": \"object\", \"properties\": {\"" SHORTER "z\": {\"const\": 7}}, "
                  "\"additionalProperties\": {\"type\": \"boolean\"}}",
                  LIST("{}", "{\"" SHORTER "z\":7}", "{\"" SHORTER "\":true}",
                       "{\"" SHORTER "zz\":true}", "{\"abcdefghijklmnopqX\":true}",
                       "{\"abcdefghijklmnopqrstuvwxyz0123456789abcdeX\":false}",
                       "{\"" SHORTER "z\":7,\"X\":true,\"" SHORTER "\":false}"),
                  LIST("{\"" SHORTER "z\":true", "{\"" SHORTER "\":7", "{\"abcdefghijklmnopq\":7",
                       "{\"" SHORTER "zz\":7"));
#undef SHORTER
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_formats_of_hosts),
        cmocka_unit_test(test_formats_of_resources),
        cmocka_unit_test(test_formats_with_lengths),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_names_by_a_pattern),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_denied),
        cmocka_unit_test(test_one_of),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_different_items),
        cmocka_unit_test(test_white_space),
        cmocka_unit_test(test_refused_schemas),
        cmocka_unit_test(test_patterns_together),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests(tests, grammar_case_begin, grammar_case_end);
}
