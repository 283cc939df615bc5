/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of tokenizer files: what they match and which are refused. None runs forever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/text/tokenizer/regex.h"
#include "tests/support/check.h"

static tern_span span(const char *text) {
    return (tern_span){text, strlen(text)};
}

/* All matches, each in <>, with the text between them. */
static void expect_in(const char *pattern, bool literal, const char *text, const char *expected) {
    tern_regex *regex = NULL;
    char why[TERN_REGEX_WHY_BYTES] = "";
    assert_int_equal(tern_regex_new(span(pattern), literal, &regex, why), TERN_OK);
    tern_regex_scratch *scratch = tern_regex_scratch_new();
    assert_non_null(scratch);
    tern_regex_walk walk = {.regex = regex, .scratch = scratch, .text = span(text)};
    assert_int_equal(tern_regex_walk_begin(&walk), TERN_OK);
    char out[256] = "";
    size_t at = 0, start, end;
    bool found;
    while (tern_regex_next(&walk, &found, &start, &end) == TERN_OK && found) {
        strncat(out, text + at, start - at);
        strcat(out, "<");
        strncat(out, text + start, end - start);
        strcat(out, ">");
        at = end;
    }
    tern_regex_walk_end(&walk);
    strcat(out, text + at);
    assert_string_equal(out, expected);
    tern_regex_scratch_free(scratch);
    check_freed(tern_regex_free, regex);
}

static void expect(const char *pattern, const char *text, const char *expected) {
    expect_in(pattern, false, text, expected);
}

static void sets(void **state) {
    (void)state;
    expect("\\s",
           "a\xE1\xA0\x8E"
           "b\xC2\x85"
           "c",
           "a\xE1\xA0\x8E"
           "b<\xC2\x85>c"); /* U+180E is not white space, U+0085 is */
    expect("[^\\S]", " \xE1\xA0\x8E", "< >\xE1\xA0\x8E");
    expect("\\S", " \xE1\xA0\x8E", " <\xE1\xA0\x8E>");
    expect("[\\w]+", "a_1\xCC\x81-\xE2\x93\x90", "<a_1\xCC\x81>-<\xE2\x93\x90>");
    expect("\\W", "a b", "a< >b");
    expect("\\w", "\xC2\xBD", "<\xC2\xBD>"); /* one half is a part of a word, but not in sets */
    expect("[\\w]", "\xC2\xBDz\xC2\xAA", "\xC2\xBD<z><\xC2\xAA>");
    expect("[\\W]", "\xC2\xBDz", "<\xC2\xBD>z");
    expect("[a-&&a]", "a-b&", "<a>-b&"); /* a dash before && is itself */
    expect("[a-z-&&-b]", "a-b", "a<-><b>");
    expect("\\d+", "12\xD9\xA3x\xC2\xBD", "<12\xD9\xA3>x\xC2\xBD");
    expect("\\p{Lu}\\P{Lu}", "aBcD", "a<Bc>D");
    expect("\\p{^Lu}", "aB", "<a>B");
    expect("[a\\-\\]x]+", "a-]xb", "<a-]x>b");
    expect("\\v", "\x0b\n", "<\x0b>\n");
    expect("[\\W]", "a b", "a< >b");
    expect("[a[bc]]+", "xabcd", "x<abc>d");
    expect("[^a[b]]+", "xabc", "<x>ab<c>");
    expect("[a-f&&[^c]]+", "abcdg", "<ab>c<d>g");
    expect("[\\p{L}&&[^\\p{Han}]]+", "a\u4e2d\u00e9", "<a>\u4e2d<\u00e9>");
    expect("[\\p{Han}\\p{emoji_presentation}]", "\u4e2d \U0001f642", "<\u4e2d> <\U0001f642>");
    expect("[\\w-.]+", "a-.b", "<a-.b>");
    expect("[\\P{L}\\p{L}]", "a", "<a>");
    expect("[a&&b]|c", "abc", "ab<c>"); /* a set without characters */
    expect("\\bx\\b", "x-xy x", "<x>-xy <x>");
}

static void syntax(void **state) {
    (void)state;
    expect("(?i:'S)", "'s 'S '\xC5\xBF", "<'s> <'S> <'\xC5\xBF>");
    expect("(?i:a(?-i:b)c)b", "AbCb ABCb", "<AbCb> ABCb");
    expect("(?i:[^k])", "kK\u212ax", "kK\u212a<x>");
    expect("(a)(b)?", "ab a", "<ab> <a>");
    expect("a{,2}b", "aaab b", "a<aab> <b>");
    expect("a{2}", "aaaaa", "<aa><aa>a");
    expect("a{00000000002}", "aaaaa", "<aa><aa>a");
    expect("a{00001,00002}", "aaa", "<aa><a>");
    expect("a{2,}b{,1}", "aaabb", "<aaab>b");
    expect("{x}", "{x}", "<{x}>");
    expect("a++", "aaab", "<aaa>b");
    expect("^a$", "a\na\nb", "<a>\n<a>\nb");
    expect("a.", "a\nab", "a\n<ab>");
    expect("\\x41\\u0042\\x{43}", "ABC", "<ABC>");
    expect("\\s+(?!\\S)|\\s+", "a   b  ", "a<  >< >b<  >");
    expect("(?=B)", "aBB", "a<>B<>B");
    expect("x*", "axb", "<>a<x>b<>");
    expect("", "ab", "<>a<>b<>");
}

static void literals(void **state) {
    (void)state;
    expect_in("a.b*", true, "a.b* aXb", "<a.b*> aXb");
    expect_in("\xE2\x96\x81", true, "\xE2\x96\x81x", "<\xE2\x96\x81>x");
}

static void refused(void **state) {
    (void)state;
    static const char *const patterns[][2] = {
        {"(a)\\1", "the escape \\1"},
        {"\\Bx", "the escape \\B"},
        {"[\\b]", "the escape \\b"},
        {"\\h", "the escape \\h"},
        {"\\X", "the escape \\X"},
        {"\\Qa", "the escape \\Q"},
        {"[[:alpha:]]", "class inside"},
        {"[z-a]", "before it begins"},
        {"[a-[b]]", "ends in a set"},
        {"[a\xFF]", "not UTF-8"},
        {"[]a]", "begins with ]"},
        {"[a", "does not end"},
        {"(?<n>a)", "group"},
        {"(*ACCEPT)", "group"},
        {"(?i)a", "group"},
        {"(?#x)", "group"},
        {"(?C1)", "group"},
        {"a{1,2}+", "repetition"},
        {"a{000000000002}", "a repetition as long as this"},
        {"a{1,2}?", "repetition"},
        {"\\pL", "property"},
        {"\\p{L", "property"},
        {"\\xff", "byte"},
        {"\\u12", "number"},
        {"\\", "escape"},
        {"(a", "parenthes"},
        {"a**b)", ""},
        {"\\p{Nonsense}", "property"},
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        tern_regex *regex = NULL;
        char why[TERN_REGEX_WHY_BYTES] = "";
        assert_int_equal(tern_regex_new(span(patterns[i][0]), false, &regex, why),
                         TERN_ERR_TOKENIZER_PRE);
        assert_null(regex);
        if (strstr(why, patterns[i][1]) == NULL)
            fail_msg("%s: '%s' does not say '%s'", patterns[i][0], why, patterns[i][1]);
    }
    char *lengthy = malloc(TERN_REGEX_MAX_BYTES + 1);
    assert_non_null(lengthy);
    memset(lengthy, 'a', TERN_REGEX_MAX_BYTES + 1);
    tern_regex *regex = NULL;
    char why[TERN_REGEX_WHY_BYTES] = "";
    assert_int_equal(
        tern_regex_new((tern_span){lengthy, TERN_REGEX_MAX_BYTES + 1}, false, &regex, why),
        TERN_ERR_TOKENIZER_PRE);
    free(lengthy);
}

/* Patterns that take exponential time are stopped. Those that take time in proportion to the text
 * are not. */
static void steps(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    static const struct {
        const char *pattern;
        tern_status status;
        size_t size;
    } cases[] = {
        {"(a|aa)+$", TERN_ERR_TOKENIZER_PATTERN, 60},
        {"(a*)*[bd]", TERN_ERR_TOKENIZER_PATTERN, 60},
        {"a+(?!b)|a", TERN_OK, SIZE},
        {"\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+|a+", TERN_OK, SIZE},
        {"(?:a|b)+", TERN_OK, SIZE},
    };
    char *text = malloc(SIZE);
    tern_regex_scratch *scratch = tern_regex_scratch_new();
    assert_non_null(text);
    assert_non_null(scratch);
    memset(text, 'a', SIZE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_regex *regex = NULL;
        char why[TERN_REGEX_WHY_BYTES];
        assert_int_equal(tern_regex_new(span(cases[i].pattern), false, &regex, why), TERN_OK);
        text[cases[i].size - 1] = cases[i].status == TERN_OK ? 'a' : 'c';
        tern_regex_walk walk = {.regex = regex, .scratch = scratch, .text = {text, cases[i].size}};
        bool found;
        size_t start, end;
        assert_int_equal(tern_regex_walk_begin(&walk), TERN_OK);
        assert_int_equal(tern_regex_next(&walk, &found, &start, &end), cases[i].status);
        if (cases[i].status == TERN_OK)
            assert_true(found && end == cases[i].size);
        tern_regex_walk_end(&walk);
        text[cases[i].size - 1] = 'a';
        tern_regex_free(&regex);
    }
    tern_regex_scratch_free(scratch);
    free(text);
}

/* A walk ends, with the first match or an error. */
static tern_status first_match(const char *pattern, bool literal, tern_span text, size_t *start) {
    tern_regex *regex = NULL;
    char why[TERN_REGEX_WHY_BYTES];
    tern_regex_scratch *scratch = tern_regex_scratch_new();
    assert_non_null(scratch);
    assert_int_equal(tern_regex_new(span(pattern), literal, &regex, why), TERN_OK);
    tern_regex_walk walk = {.regex = regex, .scratch = scratch, .text = text};
    bool found;
    size_t end;
    assert_int_equal(tern_regex_walk_begin(&walk), TERN_OK);
    const tern_status status = tern_regex_next(&walk, &found, start, &end);
    assert_true(status != TERN_OK || (found && end == *start + 1));
    tern_regex_walk_end(&walk);
    tern_regex_free(&regex);
    tern_regex_scratch_free(scratch);
    return status;
}

/* A match is found however far away it begins, also behind places that take many steps. Looks at
 * all that follows, from each place of a long text, are stopped. */
static void places(void **state) {
    (void)state;
    enum { SIZE = 1 << 18, RUN = 3000, CALL = 1 << 16 /* places that are tried in one call */ };
    static const struct {
        const char *pattern;
        bool literal;
    } cases[] = {
        {"b", false}, {"b", true}, {"(?<=1)b", false}, {"(?:11)*c|b", false}, {"b\\z", false}};
    char *text = malloc(SIZE);
    size_t start = 0;
    assert_non_null(text);
    memset(text, '-', SIZE);
    for (size_t at = CALL - 2; at < CALL + 3; at++) {
        text[at] = 'b';
        assert_int_equal(first_match("b", false, (tern_span){text, SIZE}, &start), TERN_OK);
        assert_int_equal(start, at);
        text[at] = '-';
    }
    memset(text + SIZE - RUN, '1', RUN);
    text[SIZE - 1] = 'b';
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            first_match(cases[i].pattern, cases[i].literal, (tern_span){text, SIZE}, &start),
            TERN_OK);
        assert_int_equal(start, SIZE - 1);
    }
    memset(text, '1', SIZE - 1);
    assert_int_equal(
        first_match("\\d{1,3}(?=(?:\\d{3})*\\b)", false, (tern_span){text, SIZE}, &start),
        TERN_ERR_TOKENIZER_PATTERN);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets),    cmocka_unit_test(syntax), cmocka_unit_test(literals),
        cmocka_unit_test(refused), cmocka_unit_test(steps),  cmocka_unit_test(places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
