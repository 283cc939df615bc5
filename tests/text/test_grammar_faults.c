/* SPDX-License-Identifier: Apache-2.0 */
/* Grammars when each allocation fails in turn, and texts that are meant to exhaust memory or
 * time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/tokens.h"
#include "tests/support/failing_malloc.h"
#include "tests/text/grammar_case.h"

static const char schema[] =
    "{\"$defs\": {\"n\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", "
    "\"pattern\": \"^[a-f]+|x{2,9}$\"}, \"b\": {\"anyOf\": [{\"$ref\": \"#/$defs/n\"}, {\"enum\": "
    "[1, "
    "\"b\\n\"]}]}}, \"additionalProperties\": {\"type\": \"number\", \"minimum\": 3}}}, \"$ref\": "
    "\"#/$defs/n\"}";
static const char gbnf[] =
    "root ::= (\"a\" | [^b-\\u00ff] item{2,300})*\nitem ::= . | \"(\" root \")\"";

/* Compiles, and computes masks along a text. Returns the first failure, or TERN_OK. */
static tern_status use(bool is_schema, tern_error *err) {
    tern_grammar *g = NULL;
    tern_grammar_state *s = NULL;
    uint64_t allowed[WORDS];
    int32_t text[24];
    const char *words = is_schema ? "{\"b\":{\"a\":\"abc\"},\"c\":12" : "a(aaaa)cdefghijklmnopqrs";
    tern_status status =
        is_schema ? tern_grammar_from_schema(grammar_tokens, schema, sizeof schema - 1, "s", NULL,
                                             &g, err)
                  : tern_grammar_from_gbnf(grammar_tokens, gbnf, sizeof gbnf - 1, "g", &g, err);
    if (status == TERN_OK)
        status = tern_grammar_state_new(g, 1, &s, err);
    for (size_t n = 0; status == TERN_OK && words[n] != '\0'; n++) {
        const tern_progress p = {.tokens = text, .n = n};
        text[n] = (unsigned char)words[n];
        memset(allowed, 0xff, sizeof allowed);
        if (!tern_grammar_mask(s, &p, allowed, WORDS)) {
            *err = *tern_grammar_state_error(s);
            status = err->status;
        }
    }
    tern_grammar_state_free(&s);
    tern_grammar_free(&g);
    return status;
}

static tern_status use_gbnf(tern_error *err) {
    return use(false, err);
}

static tern_status use_schema(tern_error *err) {
    return use(true, err);
}

static tern_status use_vocabulary(tern_error *err) {
    tern_grammar_tokens *tokens = NULL;
    const tern_status status =
        tern_grammar_tokens_new(grammar_tokens->tokenizer, N_TOKENS, &tokens, err);
    assert_true((tokens != NULL) == (status == TERN_OK));
    tern_grammar_tokens_free(&tokens);
    return status;
}

static void test_no_memory(void **state) {
    static const struct {
        const char *what;
        tern_status (*use)(tern_error *err);
        long least; /* allocations that it makes */
    } uses[] = {{"gbnf", use_gbnf, 50}, {"schema", use_schema, 50}, {"tokens", use_vocabulary, 3}};

    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        tern_status status = TERN_ERR_NOMEM;
        long n = 0;
        for (; status != TERN_OK && n < 100000; n++) {
            tern_error err = {0};
            const long before = allocations_live;
            allocations_asked = 0;
            allocation_that_fails = (size_t)n + 1;
            status = uses[i].use(&err);
            const bool told = allocations_asked > (size_t)n;
            allocation_that_fails = 0;
            check_case("%s, allocation %ld: %s", uses[i].what, n, err.message);
            if (allocations_live != before)
                check_fail("%ld blocks are left", allocations_live - before);
            if (status != TERN_OK && !(status == TERN_ERR_NOMEM && told))
                check_fail("status %d", (int)status);
            if (status != TERN_OK && strstr(err.message, "memory") == NULL)
                check_fail("no word of memory");
        }
        assert_true(n > uses[i].least);
    }
}

/* ---- hostile texts --------------------------------------------------------------------------- */

enum { LARGE = 900000 };

static char *repeated(const char *first, const char *part, const char *last) {
    char *text = calloc(1, LARGE + 200);
    assert_non_null(text);
    (void)strcpy(text, first);
    size_t n = strlen(text);
    for (unsigned i = 0; n < LARGE; i++)
        n += (size_t)snprintf(text + n, 200, part, i, i + 1, i + 2);
    (void)strcpy(text + n, last);
    return text;
}

/* The text is compiled, or refused with a message; it must not crash. */
static void compile(const char *text, bool is_schema) {
    tern_error err = {0};
    tern_grammar *g = NULL;
    const size_t size = strlen(text);
    const tern_status status =
        is_schema ? tern_grammar_from_schema(grammar_tokens, text, size, "h", NULL, &g, &err)
                  : tern_grammar_from_gbnf(grammar_tokens, text, size, "h", &g, &err);
    check_case("%.60s: %s", text, err.message);
    assert_true(status == TERN_OK || status == TERN_ERR_GRAMMAR || status == TERN_ERR_JSON);
    assert_true((g != NULL) == (status == TERN_OK));
    tern_grammar_free(&g);
}

static void test_large_texts(void **state) {
    (void)state;
    static const char *const schemas[][3] = {
        {"{\"$ref\": \"#/$defs/0\", \"$defs\": {", "\"%u\": {\"$ref\": \"#/$defs/%u\"}, ",
         "\"z\": true}}"},
        {"{\"enum\": [", "%u, ", "0]}"},
        {"{\"properties\": {",
         "\"p%u\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/properties/p%u\"}}, ",
         "\"z\": {}}}"},
        {"{\"anyOf\": [", "{\"minLength\": %u}, ", "{}]}"},
        {"{\"allOf\": [", "{\"anyOf\": [{\"minLength\": %u}, {\"minimum\": %u}]}, ", "{}]}"},
        {"{\"oneOf\": [", "{\"const\": \"c%u\"}, ", "{\"type\": \"null\"}]}"},
        {"{\"pattern\": \"", "(a%u|", "\"}"},
    };
    static const char *const grammars[][3] = {
        {"root ::= r0\n", "r%u ::= r%u | r%u\n", ""},
        {"root ::= ", "(", ""},
        {"root ::= \"a\"", " | \"b%u\"{0,%u}", ""},
        {"root ::= [", "%u-%u", "]"},
        {"root ::= \"x\"", "?", ""},
    };
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        char *text = repeated(schemas[i][0], schemas[i][1], schemas[i][2]);
        compile(text, true);
        free(text);
    }
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        char *text = repeated(grammars[i][0], grammars[i][1], grammars[i][2]);
        compile(text, false);
        free(text);
    }
}

/* Texts with very many derivations end with an error, not with a wrong mask. */
static void test_too_many_ways(void **state) {
    (void)state;
    tern_grammar *g = grammar_of_gbnf(
        "root ::= s\ns ::= \"a\" s s | \"a\" s \"b\" | \"a\" (\"a\"{1,3000} | s){1,3000} | \"a\"");
    tern_grammar_state *s = NULL;
    int32_t text[400];
    tern_status status = TERN_OK;
    assert_int_equal(tern_grammar_state_new(g, 1, &s, NULL), TERN_OK);
    for (size_t n = 0; n < 400 && status == TERN_OK; n++) {
        uint64_t allowed[WORDS];
        const tern_progress p = {.tokens = text, .n = n};
        memset(allowed, 0xff, sizeof allowed);
        text[n] = 'a';
        if (tern_grammar_mask(s, &p, allowed, WORDS))
            assert_true(allowed['a' / 64] >> ('a' % 64) & 1);
        else
            status = tern_grammar_state_error(s)->status;
    }
    assert_int_equal(status, TERN_ERR_GRAMMAR);
    tern_grammar_state_free(&s);
    tern_grammar_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_large_texts),
        cmocka_unit_test(test_too_many_ways),
    };
    return cmocka_run_group_tests(tests, grammar_case_begin, grammar_case_end);
}
