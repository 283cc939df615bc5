/* SPDX-License-Identifier: Apache-2.0 */
/* How each pre-tokenizer cuts text, shown as pieces that are joined by '|'. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/text/tokenizer/pipeline.h"
#include "runtime/text/tokenizer/pre.h"
#include "runtime/text/tokenizer/regex.h"
#include "tests/support/check.h"

typedef struct joined {
    char text[256];
    size_t size;
} joined;

static tern_status add_piece(void *user, tern_span piece) {
    joined *j = user;
    assert_true(j->size + piece.size + 2 < sizeof j->text);
    if (j->size > 0)
        j->text[j->size++] = '|';
    memcpy(j->text + j->size, piece.data, piece.size);
    j->size += piece.size;
    return TERN_OK;
}

static void expect_pieces(const char *pre, const char *text, const char *expected) {
    const tern_pre_rule *rule = tern_pre_find((tern_span){pre, strlen(pre)});
    assert_non_null(rule);
    tern_vocabulary v = {.n_steps = 0};
    tern_pre_add_steps(rule, &v);
    assert_int_equal(v.steps[v.n_steps - 1].kind, TERN_STEP_BYTES); /* left out: pieces as text */
    char why[TERN_REGEX_WHY_BYTES];
    tern_pipeline *p = NULL;
    assert_int_equal(tern_pipeline_new(v.steps, v.n_steps - 1, &p, why), TERN_OK);
    tern_pipeline_scratch *scratch = tern_pipeline_scratch_new();
    assert_non_null(scratch);
    joined j = {.size = 0};
    const tern_piece_sink sink = {.piece = add_piece, .user = &j};
    assert_int_equal(tern_pipeline_run(p, scratch, (tern_span){text, strlen(text)}, true, &sink),
                     TERN_OK);
    assert_string_equal(j.text, expected);
    tern_pipeline_scratch_free(scratch);
    check_freed(tern_pipeline_free, p);
    assert_null(p);
}

static void llama3(void **state) {
    (void)state;
    expect_pieces("llama-bpe", "It's 1234567 dollars", "It|'s| |123|456|7| dollars");
    expect_pieces("llama3", "DON'T!!", "DON|'T|!!");
    expect_pieces("llama-v3", "def f(x):\n    return x+1\n",
                  "def| f|(x|):\n|   | return| x|+|1|\n");
    expect_pieces("dbrx", "a  \r\n\n b", "a|  \r\n\n| b");
    expect_pieces("smaug-bpe", "x\t\ty  ", "x|\t|\ty|  ");
}

static void one_digit_at_a_time(void **state) {
    (void)state;
    expect_pieces("qwen2", "in 2026", "in| |2|0|2|6");
    expect_pieces("smollm", "in 2026", "in| |2|0|2|6");
    expect_pieces("smollm", "it's I'LL", "it|'s| I|'|LL");
}

static void gpt2(void **state) {
    (void)state;
    expect_pieces("gpt-2", "it's  2026\n\nx\t y!?", "it|'s| | 2026|\n|\n|x|\t| y|!?");
    expect_pieces("jina-v2-de", "\u00e9t\u00e9 \u0663\u0664", "\u00e9t\u00e9| \u0663\u0664");
}

static void falcon(void **state) {
    (void)state;
    expect_pieces("falcon", "a+b 12345 `x`", "a|+|b| |123|45| |`|x|`");
}

static void falcon_digits(void **state) {
    (void)state;
    expect_pieces("falcon3", "x 123", "x| |1|2|3");
    expect_pieces("falcon_e", "x^12", "x|^|1|2");
}

static void default_rule(void **state) {
    (void)state;
    expect_pieces("default", "don't 1234", "don|'|t| |123|4");
    expect_pieces("default", "`a` x=1", "`|a|`| x|=|1");
}

/* U+180E is a format character and not White_Space, although PCRE2's \s matches it. */
static void white_space_is_unicodes(void **state) {
    (void)state;
    expect_pieces("gpt-2", "\u3000\u2028a", "\u3000|\u2028|a");
    expect_pieces("gpt-2", " \u180e", " \u180e");
    expect_pieces("gpt-2", "\x1c\x1d", "\x1c\x1d");
}

static void unknown_names(void **state) {
    (void)state;
    static const char *const names[] = {"", "gpt", "gpt-2 phi-2", "LLAMA3",
                                        "a-name-that-is-longer-than-any-known-name"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_null(tern_pre_find((tern_span){names[i], strlen(names[i])}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama3),
        cmocka_unit_test(one_digit_at_a_time),
        cmocka_unit_test(gpt2),
        cmocka_unit_test(falcon),
        cmocka_unit_test(falcon_digits),
        cmocka_unit_test(default_rule),
        cmocka_unit_test(white_space_is_unicodes),
        cmocka_unit_test(unknown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
