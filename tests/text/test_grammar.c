/* SPDX-License-Identifier: Apache-2.0 */
/* Grammars: GBNF texts, masks over a small vocabulary, branches, tags. */

#include <string.h>

#include "tests/support/check.h"
#include "tests/text/grammar_case.h"

/* ---- GBNF ------------------------------------------------------------------------------------ */

static void test_notation(void **state) {
    (void)state;
    tern_grammar *g = grammar_of_gbnf("# a list\n"
                                      "root ::= \"[\" item (\",\" item)* \"]\" # end\n"
                                      "item ::= word\n"
                                      "  | number{2,3} | \"\\x41\\u00e9\\n\"\n"
                                      "word ::= [^\\x00-\\x7F0-9]+ | [a-c\\]-]?\n"
                                      "number ::= (\n  [0-9]\n)\n");
    expect_whole(g, "[]");
    expect_whole(g, "[a,-,],12,123]");
    expect_whole(g, "[A\u00e9\n]");
    expect_whole(g, "[\u00e9\u4e2d\U0001f642]");
    expect_begins(g, "[1");
    expect_wrong(g, "[1]");
    expect_wrong(g, "[1234");
    expect_wrong(g, "[d");
    expect_wrong(g, "[\xc3[");
    expect_wrong(g, "[\xed\xa0");
    tern_grammar_free(&g);
}

static void test_recursion(void **state) {
    (void)state;
    tern_grammar *g =
        grammar_of_gbnf("root ::= \"(\" root \")\" | list\nlist ::= \"x\" list | \"\"\n");
    char text[2001];
    memset(text, '(', 1000);
    memset(text + 1000, ')', 1000);
    text[2000] = '\0';
    expect_whole(g, text);
    expect_whole(g, "((xxx))");
    expect_wrong(g, "((x)))");
    memset(text, 'x', 2000);
    expect_whole(g, text);
    tern_grammar_free(&g);
}

/* Rounds are counted, so large numbers of them cost no more than small ones. */
static void test_counts(void **state) {
    (void)state;
    char text[5002];
    tern_grammar *g = grammar_of_gbnf("root ::= ([a-z] \"-\"?){3,5000}");
    memset(text, 'q', sizeof text);
    text[5000] = '\0';
    expect_whole(g, text);
    text[5000] = 'q';
    text[5001] = '\0';
    expect_wrong(g, text);
    expect_begins(g, "a-b-");
    expect_whole(g, "a-b-c");
    tern_grammar_free(&g);
    g = grammar_of_gbnf("root ::= (\"a\" | \"\"){2,3} \"b\"{2,} \"c\"{,2}");
    expect_whole(g, "aabbbb");
    expect_whole(g, "bbcc");
    expect_wrong(g, "aaaa");
    expect_wrong(g, "abc");
    expect_wrong(g, "bbccc");
    tern_grammar_free(&g);
}

static void test_refused_grammars(void **state) {
    (void)state;
    expect_gbnf_refused("root ::= root \"a\" | \"b\"", "the rule root begins with itself");
    expect_gbnf_refused("root ::= a\na ::= \"\" b \"x\"\nb ::= [0-9]* a", "begins with itself");
    expect_gbnf_refused("root ::= thing", "thing is used and not there");
    expect_gbnf_refused("item ::= \"a\"", "root is used and not there");
    expect_gbnf_refused("root ::= \"a\n", "line 2");
    expect_gbnf_refused("root ::= [b-a]", "line 1: a range");
    expect_gbnf_refused("root ::= \"\\q\"", "an unknown escape");
    expect_gbnf_refused("root ::= \"a\"\nroot ::= \"b\"", "line 2: a second rule");
    expect_gbnf_refused("root ::= (\"a\"", "not closed");
    expect_gbnf_refused("root ::= \"a\"{3,2}", "n < m");
    expect_gbnf_refused("root ::= \"a\"{99999999}", "too many times");
    expect_gbnf_refused("root ::= \"a\" root", "no text can satisfy it");
    expect_gbnf_refused("root ::= <think>", "tokens in grammars");
    expect_gbnf_refused("root ::= \"a\")", "goes on after its end");
    expect_gbnf_refused("root ::= (\"a\"?){2,100}", "may be empty");
}

/* ---- masks ----------------------------------------------------------------------------------- */

static bool is_set(const uint64_t *bits, size_t i) {
    return bits[i / 64] >> (i % 64) & 1;
}

/* The tokens that may follow tokens[n] must be those of `expected`, which ends with -1. */
static void expect_mask(tern_grammar *g, const int32_t *tokens, size_t n, const int32_t *expected) {
    tern_grammar_state *s = NULL;
    uint64_t allowed[WORDS + 1];
    bool wanted[N_TOKENS + 3] = {false};
    const tern_progress p = {.tokens = tokens, .n = n};
    for (; *expected >= 0; expected++)
        wanted[*expected] = true;
    assert_int_equal(tern_grammar_state_new(g, 1, &s, NULL), TERN_OK);
    memset(allowed, 0xff, sizeof allowed);
    if (!tern_grammar_mask(s, &p, allowed, WORDS))
        check_fail("%s", tern_grammar_state_error(s)->message);
    for (size_t i = 0; i < N_TOKENS + 3; i++)
        if (is_set(allowed, i) != wanted[i])
            check_fail("token %zu: %d", i, is_set(allowed, i));
    check_freed(tern_grammar_state_free, s);
}

#define EXPECT_MASK(g, tokens, n, ...) expect_mask(g, tokens, n, (int32_t[]){__VA_ARGS__, -1})

static void test_masks(void **state) {
    (void)state;
    const int32_t text[] = {TOKEN_OPEN, 'a', TOKEN_COLON, '"', TOKEN_ABC, TOKEN_CLOSE};
    tern_grammar *g = grammar_of_schema(
        "{\"type\": \"object\", \"properties\": {\"a\": {\"enum\": [\"abc\", 1, \"\"]}},"
        "\"required\": [\"a\"], \"additionalProperties\": false}");
    EXPECT_MASK(g, text, 0, '{', TOKEN_OPEN);
    EXPECT_MASK(g, text, 1, 'a');
    EXPECT_MASK(g, text, 2, '"', TOKEN_COLON);
    EXPECT_MASK(g, text, 3, '"', '1');
    EXPECT_MASK(g, text, 4, '"', 'a', TOKEN_ABC, TOKEN_CLOSE);
    EXPECT_MASK(g, text, 5, '"', TOKEN_CLOSE);
    EXPECT_MASK(g, text, 6, TOKEN_END);
    tern_grammar_free(&g);
}

/* A counted string. Near its end, tokens that are too long are excluded, even if their last
 * character is incomplete. */
static void test_masks_of_counts(void **state) {
    (void)state;
    tern_grammar *g = grammar_of_gbnf("root ::= [a-c\u00e9\u2764]{2,1000} \"!\"");
    int32_t text[1000];
    for (int i = 0; i < 1000; i++)
        text[i] = 'a' + i % 3;
    EXPECT_MASK(g, text, 0, 'a', 'b', 'c', 0xc3, 0xe2, TOKEN_ABC, TOKEN_HEART);
    EXPECT_MASK(g, text, 1, 'a', 'b', 'c', 0xc3, 0xe2, TOKEN_ABC, TOKEN_HEART);
    EXPECT_MASK(g, text, 2, 'a', 'b', 'c', '!', 0xc3, 0xe2, TOKEN_ABC, TOKEN_HEART);
    EXPECT_MASK(g, text, 997, 'a', 'b', 'c', '!', 0xc3, 0xe2, TOKEN_ABC, TOKEN_HEART);
    EXPECT_MASK(g, text, 998, 'a', 'b', 'c', '!', 0xc3, 0xe2);
    EXPECT_MASK(g, text, 1000, '!');
    text[0] = TOKEN_HEART;
    EXPECT_MASK(g, text, 1, 0xa4);
    tern_grammar_free(&g);
}

static void test_plain_text(void **state) {
    (void)state;
    tern_grammar *g = grammar_of_schema("{\"type\": \"string\", \"maxLength\": 4}");
    const int32_t text[] = {'"', 'x', 'y', 'z'};
    tern_grammar_state *s = NULL;
    assert_int_equal(tern_grammar_state_new(g, 1, &s, NULL), TERN_OK);
    for (size_t n = 1; n <= 4; n++) {
        uint64_t allowed[WORDS];
        const tern_progress p = {.tokens = text, .n = n};
        memset(allowed, 0xff, sizeof allowed);
        assert_true(tern_grammar_mask(s, &p, allowed, WORDS));
        check_case("after %zu", n);
        for (int c = 0x20; c < 0x7f; c++)
            assert_true(is_set(allowed, (size_t)c));
        assert_false(is_set(allowed, '\n') || is_set(allowed, 0x7f) || is_set(allowed, TOKEN_END));
        assert_int_equal(is_set(allowed, TOKEN_ABC), n <= 2);
        assert_int_equal(is_set(allowed, TOKEN_HEART), n <= 2);
        assert_false(is_set(allowed, TOKEN_CLOSE) || is_set(allowed, 0x80) ||
                     is_set(allowed, 0xff));
    }
    tern_grammar_state_free(&s);
    tern_grammar_free(&g);
}

/* ---- branches -------------------------------------------------------------------------------- */

static uint64_t first_word(tern_grammar_state *s, uint32_t branch, const int32_t *tokens, size_t n,
                           size_t n_prompt) {
    uint64_t allowed[WORDS];
    const tern_progress p = {.branch = branch, .tokens = tokens, .n = n, .n_prompt = n_prompt};
    memset(allowed, 0xff, sizeof allowed);
    assert_true(tern_grammar_mask(s, &p, allowed, WORDS));
    return allowed['0' / 64] | allowed['a' / 64];
}

/* A mask depends only on the tokens, whatever was asked before. */
static void test_progress(void **state) {
    (void)state;
    tern_grammar *g = grammar_of_gbnf("root ::= \"a\" [0-4]{2} \"b\" | \"c\" [5-9]{3}");
    tern_grammar_state *s = NULL;
    tern_error err = {0};
    bool whole = true;
    const int32_t one[] = {7, 7, 'a', '0', '1', 'b'};
    const int32_t other[] = {7, 7, 'c', '5', '6', '7'};
    assert_int_equal(tern_grammar_state_new(g, 2, &s, NULL), TERN_OK);
    const uint64_t begin = first_word(s, 0, one, 2, 2);
    const uint64_t after_a = first_word(s, 0, one, 3, 2);
    assert_true(begin != after_a);
    const uint64_t after_56 = first_word(s, 1, other, 5, 2);
    assert_true(first_word(s, 0, other, 5, 2) == after_56); /* not the tokens seen last */
    assert_true(first_word(s, 0, one, 3, 2) == after_a);    /* fewer */
    assert_true(first_word(s, 1, one, 2, 2) == begin);
    const tern_progress done = {.branch = 1, .tokens = one, .n = 6, .n_prompt = 2};
    assert_int_equal(tern_grammar_follow(s, &done, &whole, NULL), TERN_OK);
    assert_true(whole);
    const tern_progress half = {.branch = 1, .tokens = one, .n = 5, .n_prompt = 2};
    assert_int_equal(tern_grammar_follow(s, &half, &whole, NULL), TERN_OK);
    assert_false(whole);
    const int32_t wrong[] = {7, 7, 'a', '9'};
    const tern_progress bad = {.tokens = wrong, .n = 4, .n_prompt = 2};
    assert_int_equal(tern_grammar_follow(s, &bad, &whole, &err), TERN_ERR_GRAMMAR);
    assert_non_null(strstr(err.message, "token 57, number 2"));
    uint64_t allowed[WORDS] = {0};
    assert_false(tern_grammar_mask(s, &bad, allowed, WORDS));
    assert_int_equal(tern_grammar_state_error(s)->status, TERN_ERR_GRAMMAR);
    assert_true(first_word(s, 0, one, 3, 2) == after_a);
    assert_null(tern_grammar_state_error(s));
    tern_grammar_state_free(&s);
    tern_grammar_free(&g);
}

/* ---- tags ------------------------------------------------------------------------------------ */

static tern_grammar *tagged(bool free_text, bool required, bool single) {
    static const char numbers[] = "{\"type\": \"integer\"}";
    static const char words[] = "{\"type\": \"string\"}";
    static const tern_grammar_tag tags[] = {{.begin = "<t>{\"f\": ",
                                             .end = "}</t>",
                                             .schema = numbers,
                                             .schema_size = sizeof numbers - 1,
                                             .name = "f"},
                                            {.begin = "<t>{\"g\": ",
                                             .end = "}</t>",
                                             .schema = words,
                                             .schema_size = sizeof words - 1,
                                             .name = "g"}};
    const tern_grammar_tags t = {.tags = tags,
                                 .n_tags = 2,
                                 .trigger = "<t>",
                                 .separator = "\n",
                                 .free_text = free_text,
                                 .required = required,
                                 .single = single};
    tern_grammar *g = NULL;
    tern_error err = {0};
    check_case("free %d, required %d, single %d", free_text, required, single);
    if (tern_grammar_from_tags(grammar_tokens, &t, &g, &err) != TERN_OK)
        check_fail("%s", err.message);
    return g;
}

static tern_grammar *listed(bool free_text, bool single) {
    static const char numbers[] = "{\"type\": \"integer\"}";
    static const tern_grammar_tag tags[] = {{.begin = "<t>[f",
                                             .end = "!",
                                             .schema = numbers,
                                             .schema_size = sizeof numbers - 1,
                                             .name = "f"},
                                            {.begin = "<t>[g",
                                             .end = "?",
                                             .schema = numbers,
                                             .schema_size = sizeof numbers - 1,
                                             .name = "g"}};
    const tern_grammar_tags t = {.tags = tags,
                                 .n_tags = 2,
                                 .trigger = "<t>",
                                 .separator = ", ",
                                 .open = "[",
                                 .close = "]",
                                 .free_text = free_text,
                                 .required = true,
                                 .single = single};
    tern_grammar *g = NULL;
    tern_error err = {0};
    check_case("free %d, single %d", free_text, single);
    if (tern_grammar_from_tags(grammar_tokens, &t, &g, &err) != TERN_OK)
        check_fail("%s", err.message);
    return g;
}

/* There is one list, and no other one follows. */
static void test_lists_of_tags(void **state) {
    (void)state;
    for (int free_text = 0; free_text < 2; free_text++) {
        tern_grammar *g = listed(free_text, false);
        expect_whole(g, "<t>[f1!]");
        expect_whole(g, "<t>[f1!, g22?, f3!]");
        expect_wrong(g, "<t>[f1!<");
        expect_wrong(g, "<t>[f1!,g");
        expect_wrong(g, "<t>[]");
        expect_wrong(g, "<t>f1");
        expect_wrong(g, "<t>[f1!]<t>");
        (free_text ? expect_whole : expect_wrong)(g, "a<t>[g1?] b");
        tern_grammar_free(&g);
        g = listed(free_text, true);
        expect_whole(g, "<t>[f1!]");
        expect_wrong(g, "<t>[f1!,");
        tern_grammar_free(&g);
    }
}

/* A tag with arguments: a text, a number or a word, and others by name. */
static tern_grammar *with_arguments(bool at_start, bool free_text) {
    static const char *const words[] = {"on", "off"};
    static const tern_grammar_argument arguments[] = {
        {.begin = "s=", .end = ";;", .required = true},
        {.begin = "n=", .end = ";", .schema = "{\"type\":\"integer\"}", .schema_size = 18},
        {.begin = "n:", .end = ";", .words = words, .n_words = 2, .instead = true},
        {.begin = "+", .after_key = "=", .end = ";", .schema = "true", .schema_size = 4}};
    static const tern_grammar_tag tag = {.begin = "<t \1>",
                                         .end = "</t \1>",
                                         .name = "t",
                                         .arguments = arguments,
                                         .n_arguments = 4,
                                         .comma = ",",
                                         .has_arguments = true};
    const tern_grammar_tags tags = {
        .tags = &tag, .n_tags = 1, .trigger = "<t ", .free_text = free_text, .at_start = at_start};
    tern_grammar *g = NULL;
    tern_error err;
    assert_int_equal(tern_grammar_from_tags(grammar_tokens, &tags, &g, &err), TERN_OK);
    return g;
}

static void test_arguments_of_tags(void **state) {
    (void)state;
    tern_grammar *g = with_arguments(false, true);
    expect_whole(g, "a <t x-1>s=a; b\n;;</t 2> b");
    expect_whole(g, "<t 1>s=;;,n=12;,+k=[1];,+l.m=\"x\";</t 1>");
    expect_whole(g, "<t 1>s=;;,n:off;</t 1>");
    expect_wrong(g, "<t >");
    expect_wrong(g, "<t 12345678901234567>");
    expect_wrong(g, "<t 1>n=1");
    expect_wrong(g, "<t 1>s=x;;n");
    expect_wrong(g, "<t 1>s=x;;,n=x");
    expect_wrong(g, "<t 1>s=x;;,n:on;,n");
    expect_wrong(g, "<t 1>s=x;;,+=");
    tern_grammar_free(&g);
    g = with_arguments(true, true);
    expect_whole(g, "");
    expect_whole(g, "<t");
    expect_whole(g, "text <t 1>, no tag");
    expect_whole(g, "<t 1>s=;;</t 1>");
    expect_begins(g, "<t 1");
    expect_wrong(g, "<t 1>x");
    expect_wrong(g, "<t 1>s=;;</t 1> text");
    tern_grammar_free(&g);
}

static void test_tags(void **state) {
    (void)state;
    tern_grammar *g = tagged(true, false, false);
    expect_whole(g, "");
    expect_whole(g, "some text, <, <t, <<\n\xff");
    expect_begins(g, "text <<t>");
    expect_begins(g, "text <t>{\"g\": \"a\"");
    expect_whole(g, "x<t>{\"f\": 12}</t> and <t>{\"g\": \"</t><t>\"}</t> <t");
    expect_wrong(g, "<t>x");
    expect_wrong(g, "<t>{\"f\": \"");
    tern_grammar_free(&g);
    g = tagged(true, true, true);
    expect_begins(g, "");
    expect_begins(g, "text");
    expect_whole(g, "text <t>{\"f\": 1}</t> more <t");
    expect_wrong(g, "<t>{\"f\": 1}</t><t>");
    tern_grammar_free(&g);
    g = tagged(false, true, false);
    expect_begins(g, "");
    expect_whole(g, "<t>{\"f\": 1}</t>");
    expect_whole(g, "<t>{\"f\": 1}</t>\n<t>{\"g\": \"\"}</t>");
    expect_wrong(g, " ");
    expect_wrong(g, "<t>{\"f\": 1}</t><");
    tern_grammar_free(&g);
    g = tagged(false, false, true);
    expect_whole(g, "");
    expect_whole(g, "<t>{\"f\": 1}</t>");
    expect_wrong(g, "<t>{\"f\": 1}</t>\n");
    tern_grammar_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notation),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_refused_grammars),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_masks_of_counts),
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_lists_of_tags),
        cmocka_unit_test(test_arguments_of_tags),
    };
    return cmocka_run_group_tests(tests, grammar_case_begin, grammar_case_end);
}
