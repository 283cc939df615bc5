/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of grammars: what has just as much as a limit allows compiles; one more is refused by its
 * name. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/text/grammar_case.h"

/* A text of `n` units between a begin and an end. A # in a unit stands for its number from 0, an @
 * for a character that no other unit has. */
typedef struct growing {
    const char *begin, *unit, *between, *end;
} growing;

typedef struct limit {
    growing text;
    size_t most;
    const char *said;
} limit;

static void put_unit(FILE *out, const char *unit, size_t i) {
    const unsigned code = 0x1000 + 2 * (unsigned)i; /* three bytes; no two are neighbours */
    for (const char *c = unit; *c != '\0'; c++)
        if (*c == '#')
            (void)fprintf(out, "%zu", i);
        else if (*c == '@')
            (void)fprintf(out, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 63)),
                          (int)(0x80 | (code & 63)));
        else
            (void)fputc(*c, out);
}

static char *text_of(const growing *g, size_t n) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    (void)fputs(g->begin, out);
    for (size_t i = 0; i < n; i++) {
        put_unit(out, g->unit, i);
        if (i + 1 < n && g->between != NULL)
            (void)fputs(g->between, out);
    }
    (void)fputs(g->end, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void check_limits(const limit *limits, size_t n, tern_grammar *(*compile)(const char *),
                         void (*refused)(const char *, const char *)) {
    for (size_t i = 0; i < n; i++) {
        char *fits = text_of(&limits[i].text, limits[i].most);
        char *more = text_of(&limits[i].text, limits[i].most + 1);
        tern_grammar *g = compile(fits);
        check_freed(tern_grammar_free, g);
        refused(more, limits[i].said);
        free(fits);
        free(more);
    }
}

static void test_gbnf(void **state) {
    (void)state;
    static const limit limits[] = {
        {{"root ::= \"b\"\n", "n", NULL, " ::= \"a\"\n"}, 128, "a name that is too long"},
        {{"root ::= \"b\"\n", "r# ::= \"a\"\n", NULL, ""}, 4095, "too many rules"},
        {{"root ::= [", "@", NULL, "]\n"}, 4096, "a set of too many ranges"},
        {{"root ::= [^", "@", NULL, "]\n"}, 4096, "a set of too many ranges"},
        {{"root ::= \"a\"\n#", "x", NULL, ""},
         (1 << 20) - 14,
         "too large: 1048577 bytes, at most 1048576"},
    };
    check_limits(limits, sizeof limits / sizeof *limits, grammar_of_gbnf, expect_gbnf_refused);
}

static void test_schemas(void **state) {
    (void)state;
    static const limit limits[] = {
        {{"{\"required\":[", "\"p#\"", ",", "]}"}, 2048, "too many"},
        {{"{\"properties\":{\"", "n", NULL, "\":true}}"}, 1024, "a name that is too long"},
        {{"{\"prefixItems\":[", "true", ",", "]}"}, 512, "too many"},
        {{"{\"enum\":[", "#", ",", "]}"}, 1 << 14, "one of too many values"},
        {{"{\"allOf\":[", "{\"enum\":[1]}", ",", "]}"}, 8, "together with too many others"},
        {{"{\"allOf\":[", "{\"minimum\":#}", ",", "]}"}, 127, "too many parts must hold together"},
    };
    check_limits(limits, sizeof limits / sizeof *limits, grammar_of_schema, expect_schema_refused);
}

/* Schemas that are larger have a note. */
static void test_noted(void **state) {
    (void)state;
    static const struct {
        limit limit;
        const char *whole; /* a text of the larger one */
    } limits[] = {
        {{{"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[", "#", ",", "]}}"},
          1023,
          "uniqueItems: of values"},
         "[1,1]"},
        {{{"{\"type\":\"string\",\"pattern\":\"[", "@", NULL, "]\"}"},
          1024,
          "a set of too many ranges"},
         "\"b\""},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char *fits = text_of(&limits[i].limit.text, limits[i].limit.most);
        char *more = text_of(&limits[i].limit.text, limits[i].limit.most + 1);
        tern_grammar *g = grammar_of_schema(fits);
        assert_null(tern_grammar_note(g, 0));
        check_freed(tern_grammar_free, g);
        expect_noted(more, limits[i].limit.said, limits[i].whole);
        free(fits);
        free(more);
    }
}

/* Brackets around an a, `n` deep, between a begin and an end. */
static char *nested(const char *begin, size_t n, const char *inner, const char *end) {
    char *text = malloc(strlen(begin) + 2 * n + strlen(inner) + strlen(end) + 1);
    assert_non_null(text);
    char *at = stpcpy(text, begin);
    memset(at, '(', n);
    at = stpcpy(at + n, inner);
    memset(at, ')', n);
    (void)strcpy(at + n, end);
    return text;
}

static void test_depths(void **state) {
    (void)state;
    char *texts[] = {nested("root ::= ", 64, "\"a\"", "\n"), nested("root ::= ", 65, "\"a\"", "\n"),
                     nested("{\"type\":\"string\",\"pattern\":\"", 32, "a", "\"}"),
                     nested("{\"type\":\"string\",\"pattern\":\"", 33, "a", "\"}")};
    tern_grammar *gbnf = grammar_of_gbnf(texts[0]);
    expect_gbnf_refused(texts[1], "parentheses that are nested too deep");
    tern_grammar *schema = grammar_of_schema(texts[2]);
    expect_noted(texts[3], "groups that are nested too deep", "\"b\"");
    check_freed(tern_grammar_free, gbnf);
    check_freed(tern_grammar_free, schema);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

static void test_repetitions(void **state) {
    (void)state;
    tern_grammar *g = grammar_of_gbnf("root ::= \"a\"{0,16777216}");
    expect_whole(g, "aaa");
    check_freed(tern_grammar_free, g);
    expect_gbnf_refused("root ::= \"a\"{0,16777217}", "too many times");
    g = grammar_of_schema("{\"type\":\"string\",\"pattern\":\"^a{0,16777216}$\"}");
    expect_whole(g, "\"aaa\"");
    check_freed(tern_grammar_free, g);
    expect_schema_refused("{\"type\":\"string\",\"pattern\":\"^a{0,16777217}$\"}",
                          "more than 16777216 times");
    expect_schema_refused("{\"type\":\"string\",\"minLength\":16777217}", "minLength");
}

/* White space between parts of a value: a space, or a line with up to 32 spaces. */
static void test_white_space(void **state) {
    (void)state;
    static const char schema[] = "{\"type\":\"array\",\"items\":{\"const\":1}}";
    tern_grammar *g = NULL;
    assert_int_equal(
        tern_grammar_from_schema(grammar_tokens, schema, strlen(schema), "schema", NULL, &g, NULL),
        TERN_OK);
    char text[64];
    (void)snprintf(text, sizeof text, "[\n%32s1]", "");
    expect_whole(g, text);
    (void)snprintf(text, sizeof text, "[\n%33s1]", "");
    expect_wrong(g, text);
    expect_wrong(g, "[  1]");
    check_freed(tern_grammar_free, g);
}

static void expect_tags(const tern_grammar_tags *tags, tern_status wanted) {
    tern_error err = {0};
    tern_grammar *g = NULL;
    const tern_status status = tern_grammar_from_tags(grammar_tokens, tags, &g, &err);
    check_case("%zu tags: %s", tags->n_tags, err.message);
    if (status != wanted)
        check_fail("status %d", (int)status);
    if (wanted != TERN_OK)
        assert_non_null(strstr(err.message, "at most 1024 after 1 to 64"));
    tern_grammar_free(&g);
}

static void test_number_of_tags(void **state) {
    (void)state;
    static tern_grammar_tag many[1025];
    static char begins[1025][8];
    for (size_t i = 0; i < 1025; i++) {
        (void)snprintf(begins[i], sizeof begins[i], "<%zu:", i);
        many[i] = (tern_grammar_tag){.begin = begins[i],
                                     .end = ">",
                                     .schema = "{\"const\":1}",
                                     .schema_size = 11,
                                     .name = "f"};
    }
    tern_grammar_tags tags = {.tags = many, .n_tags = 1024, .trigger = "<"};
    expect_tags(&tags, TERN_OK);
    tags.n_tags = 1025;
    expect_tags(&tags, TERN_ERR_ARG);
}

static void test_length_of_a_trigger(void **state) {
    (void)state;
    char begin[66] = "";
    memset(begin, '<', 65);
    const tern_grammar_tag tag = {
        .begin = begin, .end = ">", .schema = "{\"const\":1}", .schema_size = 11, .name = "f"};
    tern_grammar_tags tags = {.tags = &tag, .n_tags = 1, .trigger = begin};
    expect_tags(&tags, TERN_ERR_ARG);
    tags.trigger = begin + 1;
    expect_tags(&tags, TERN_OK);
    tags.trigger = "";
    expect_tags(&tags, TERN_ERR_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gbnf),           cmocka_unit_test(test_schemas),
        cmocka_unit_test(test_noted),          cmocka_unit_test(test_depths),
        cmocka_unit_test(test_repetitions),    cmocka_unit_test(test_white_space),
        cmocka_unit_test(test_number_of_tags), cmocka_unit_test(test_length_of_a_trigger),
    };
    return cmocka_run_group_tests(tests, grammar_case_begin, grammar_case_end);
}
