/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/text/grammar_case.h"
#include "tests/support/check.h"

#include <string.h>

#include "tests/text/tokenizer_case.h"

static tokenizer_fixture fixture;
static tern_grammar_tokens *tokens;
const tern_grammar_tokens *grammar_tokens;

/* In the byte alphabet that GGUF files use. */
static const char *const extra[] = {
    "</s>", "<c>", "{\"", "\":", "\"}", "abc", "\u00c3\u00a9a\u00e2\u013f", NULL};
static const int32_t types[] = {3, 3, 1, 1, 1, 1, 1};
static const char *const merges[] = {"a b", NULL};

int grammar_case_begin(void **state) {
    (void)state;
    static const tokenizer_case c = {.model = "gpt2",
                                     .byte_level = true,
                                     .tokens = extra,
                                     .types = types,
                                     .merges = merges,
                                     .id_key = "tokenizer.ggml.eos_token_id",
                                     .id = TOKEN_END};
    if (tokenizer_open(&fixture, &c, NULL) != TERN_OK)
        return 1;
    const tern_status status = tern_grammar_tokens_new(fixture.t, N_TOKENS + 3, &tokens, NULL);
    grammar_tokens = tokens;
    return status != TERN_OK;
}

int grammar_case_end(void **state) {
    (void)state;
    check_freed(tern_grammar_tokens_free, tokens);
    tokenizer_close(&fixture);
    return 0;
}

tern_grammar *grammar_of_gbnf(const char *text) {
    tern_error err = {0};
    tern_grammar *g = NULL;
    check_case("%s", text);
    if (tern_grammar_from_gbnf(tokens, text, strlen(text), "gbnf", &g, &err) != TERN_OK)
        check_fail("%s", err.message);
    return g;
}

static tern_grammar *schema_with(const char *text, bool closed) {
    tern_error err = {0};
    tern_grammar *g = NULL;
    const tern_schema_params params = {.compact = true, .closed = closed};
    check_case("%s", text);
    if (tern_grammar_from_schema(tokens, text, strlen(text), "schema", &params, &g, &err) !=
        TERN_OK)
        check_fail("%s", err.message);
    return g;
}

tern_grammar *grammar_of_schema(const char *text) {
    return schema_with(text, false);
}

static void expect(tern_grammar *g, const char *text, bool begins, bool whole) {
    tern_error err = {0};
    bool b = false;
    bool w = false;
    if (tern_grammar_check(g, text, strlen(text), &b, &w, &err) != TERN_OK)
        check_fail("%s: %s", text, err.message);
    if (b != begins || w != whole)
        check_fail("%s: begins %d, whole %d", text, b, w);
}

void expect_whole(tern_grammar *g, const char *text) {
    expect(g, text, true, true);
}

void expect_begins(tern_grammar *g, const char *text) {
    expect(g, text, true, false);
}

void expect_wrong(tern_grammar *g, const char *text) {
    expect(g, text, false, false);
}

static void expect_refused(tern_status status, const tern_error *err, tern_grammar *g,
                           const char *part) {
    if (status != TERN_ERR_GRAMMAR || g != NULL)
        check_fail("status %d, not refused for %s", (int)status, part);
    if (strstr(err->message, part) == NULL)
        check_fail("'%s' does not say '%s'", err->message, part);
}

void expect_gbnf_refused(const char *text, const char *part) {
    tern_error err = {0};
    tern_grammar *g = NULL;
    check_case("%.200s", text);
    const tern_status status = tern_grammar_from_gbnf(tokens, text, strlen(text), "gbnf", &g, &err);
    expect_refused(status, &err, g, part);
}

void expect_schema_refused(const char *text, const char *part) {
    tern_error err = {0};
    tern_grammar *g = NULL;
    check_case("%.200s", text);
    const tern_status status =
        tern_grammar_from_schema(tokens, text, strlen(text), "schema", NULL, &g, &err);
    expect_refused(status, &err, g, part);
}

static void expect_texts(tern_grammar *g, const char *const *whole, const char *const *wrong) {
    for (; *whole != NULL; whole++)
        expect_whole(g, *whole);
    for (; *wrong != NULL; wrong++)
        expect_wrong(g, *wrong);
    check_freed(tern_grammar_free, g);
}

void expect_schema(const char *schema, const char *const *whole, const char *const *wrong) {
    tern_grammar *g = grammar_of_schema(schema);
    if (tern_grammar_note(g, 0) != NULL)
        check_fail("noted: %s", tern_grammar_note(g, 0));
    expect_texts(g, whole, wrong);
}

void expect_closed(const char *schema, const char *const *whole, const char *const *wrong) {
    expect_texts(schema_with(schema, true), whole, wrong);
}

void expect_only(const char *schema, const char *const *whole, const char *const *others) {
    tern_grammar *g = schema_with(schema, true);
    for (; *whole != NULL; whole++)
        expect_whole(g, *whole);
    for (; *others != NULL; others++) {
        bool begins = false;
        bool is_whole = false;
        assert_int_equal(tern_grammar_check(g, *others, strlen(*others), &begins, &is_whole, NULL),
                         TERN_OK);
        if (is_whole)
            check_fail("%s is a text", *others);
    }
    check_freed(tern_grammar_free, g);
}

void expect_noted(const char *schema, const char *note, const char *whole) {
    tern_grammar *g = grammar_of_schema(schema);
    const char *first = tern_grammar_note(g, 0);
    if (first == NULL || strstr(first, note) == NULL)
        check_fail("'%s' does not say '%s'", first != NULL ? first : "", note);
    expect_whole(g, whole);
    check_freed(tern_grammar_free, g);
}
