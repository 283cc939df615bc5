/* SPDX-License-Identifier: Apache-2.0 */
/* Text in pieces, but whole characters only. In the byte-level vocabulary, id b is byte b. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "tests/support/check.h"
#include "tests/text/tokenizer_case.h"

static const char *const extra[] = {"\u0120end", "<s>", NULL};
static const int32_t types[] = {1, 3};
static const char *const merges[] = {"a b", NULL};
static const tokenizer_case bytes = {
    .model = "gpt2", .byte_level = true, .tokens = extra, .types = types, .merges = merges};

static const char *const spm_tokens[] = {"<unk>", "<s>", "</s>", "\u2581he", "\u2581", NULL};
static const int32_t spm_types[] = {2, 3, 3, 1, 1};
static const float spm_scores[] = {0, 0, 0, -1, -2};
static const tokenizer_case spm = {
    .model = "llama", .tokens = spm_tokens, .types = spm_types, .scores = spm_scores};

static void expect_push(tern_text_stream *s, int32_t id, const char *text) {
    size_t size = 99;
    const char *got = tern_text_stream_push(s, id, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(got, text, size);
}

static void expect_flush(tern_text_stream *s, const char *text) {
    size_t size = 99;
    const char *got = tern_text_stream_flush(s, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(got, text, size);
}

static void characters_are_not_split(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bytes, NULL), TERN_OK);
    tern_text_stream *s = NULL;
    assert_int_equal(tern_text_stream_new(f.t, true, &s, NULL), TERN_OK);
    expect_push(s, 0xF0, "");
    expect_push(s, 0x9F, "");
    expect_push(s, 0x99, "");
    expect_push(s, 0x82, "\U0001F642");
    expect_push(s, 256, " end"); /* byte-level text keeps its spaces */
    expect_push(s, 257, "");     /* a control token */
    expect_push(s, -1, "");
    expect_push(s, 'x', "x");
    expect_flush(s, "");
    tern_text_stream_free(&s);
    assert_null(s);
    tokenizer_close(&f);
}

static void broken_sequences_are_replaced(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bytes, NULL), TERN_OK);
    tern_text_stream *s = NULL;
    assert_int_equal(tern_text_stream_new(f.t, false, &s, NULL), TERN_OK);
    expect_push(s, 0xE2, "");
    expect_push(s, 'a', "\uFFFDa");
    expect_push(s, 0xFF, "\uFFFD");
    expect_push(s, 0xC3, "");
    expect_push(s, 0xC3, "\uFFFD");
    expect_flush(s, "\uFFFD");
    expect_flush(s, "");
    expect_push(s, 'b', "b"); /* a flushed stream may be continued */
    tern_text_stream_free(&s);
    tokenizer_close(&f);
}

static void the_first_space(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &spm, NULL), TERN_OK);
    tern_text_stream *s = NULL;
    assert_int_equal(tern_text_stream_new(f.t, true, &s, NULL), TERN_OK);
    expect_push(s, 1, "");
    expect_push(s, 3, "he");
    expect_push(s, 3, " he");
    tern_text_stream_free(&s);
    assert_int_equal(tern_text_stream_new(f.t, true, &s, NULL), TERN_OK);
    expect_push(s, 4, ""); /* the dropped space is a token of its own */
    expect_push(s, 3, " he");
    tern_text_stream_free(&s);
    assert_int_equal(tern_text_stream_new(f.t, false, &s, NULL), TERN_OK);
    expect_push(s, 3, " he");
    tern_text_stream_free(&s);
    tokenizer_close(&f);
}

static void arguments(void **state) {
    (void)state;
    tern_text_stream *s = NULL;
    tern_error err = {0};
    assert_int_equal(tern_text_stream_new(NULL, false, &s, &err), TERN_ERR_NULL);
    assert_null(s);
    tern_text_stream_free(&s);
    tern_text_stream_free(NULL);
}

typedef struct utf8_case {
    const char *text;
    tern_utf8_kind kind;
    uint32_t code;
    size_t size;
} utf8_case;

/* Edge cases of the table of well-formed sequences in the Unicode standard. */
static void well_formed_sequences(void **state) {
    (void)state;
    static const utf8_case cases[] = {
        {"a", TERN_UTF8_VALID, 'a', 1},
        {"\x7F", TERN_UTF8_VALID, 0x7F, 1},
        {"\xC2\x80", TERN_UTF8_VALID, 0x80, 2},
        {"\xDF\xBF", TERN_UTF8_VALID, 0x7FF, 2},
        {"\xE0\xA0\x80", TERN_UTF8_VALID, 0x800, 3},
        {"\xED\x9F\xBF", TERN_UTF8_VALID, 0xD7FF, 3},
        {"\xEE\x80\x80", TERN_UTF8_VALID, 0xE000, 3},
        {"\xF0\x90\x80\x80", TERN_UTF8_VALID, 0x10000, 4},
        {"\xF4\x8F\xBF\xBF", TERN_UTF8_VALID, 0x10FFFF, 4},
        {"\x80", TERN_UTF8_BROKEN, 0, 1},
        {"\xC1\xBF", TERN_UTF8_BROKEN, 0, 1},
        {"\xE0\x9F\xBF", TERN_UTF8_BROKEN, 0, 1},
        {"\xED\xA0\x80", TERN_UTF8_BROKEN, 0, 1},
        {"\xF0\x8F\xBF\xBF", TERN_UTF8_BROKEN, 0, 1},
        {"\xF4\x90\x80\x80", TERN_UTF8_BROKEN, 0, 1},
        {"\xF5\x80", TERN_UTF8_BROKEN, 0, 1},
        {"\xE2\x82x", TERN_UTF8_BROKEN, 0, 2},
        {"\xF0\x9F\x99x", TERN_UTF8_BROKEN, 0, 3},
        {"\xE2\x82", TERN_UTF8_PARTIAL, 0, 2},
        {"\xF0", TERN_UTF8_PARTIAL, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tern_utf8 c = tern_utf8_next(cases[i].text, strlen(cases[i].text));
        assert_int_equal(c.kind, cases[i].kind);
        assert_int_equal(c.code, cases[i].code);
        assert_int_equal(c.size, cases[i].size);
    }
}

/* Pushes one byte at a time. The returned pieces stay valid until the next turn. */
static void push_text(tern_answer_text *t, const char *text, const char *certain) {
    char all[32] = "";
    tern_answer_text_turn(t);
    for (; *text != '\0'; text++) {
        size_t size;
        const char *got = tern_answer_text_push(t, (uint8_t)*text, &size);
        strncat(all, got, size);
    }
    assert_string_equal(all, certain);
}

/* Text that may begin a stop is held back. A stop and everything after it are not part of the text.
 * One space at the start is dropped before stops are searched. */
static void text_up_to_a_stop(void **state) {
    (void)state;
    tokenizer_fixture f;
    assert_int_equal(tokenizer_open(&f, &bytes, NULL), TERN_OK);
    const char *const stops[] = {" a", "xyz"};
    const tern_answer_text_params params = {
        .stops = stops, .n_stops = 2, .drop_space = true, .most = 8};
    tern_answer_text *t = NULL;
    size_t size, stop = 9;
    assert_int_equal(tern_tokenizer_longest(f.t), 4);
    assert_int_equal(tern_answer_text_new(f.t, &params, &t, NULL), TERN_OK);
    push_text(t, " abx", "ab");
    push_text(t, "y", "");
    assert_false(tern_answer_text_stopped(t, &stop));
    push_text(t, "axyxy", "xyaxy"); /* the last two may begin a stop */
    push_text(t, "zq", "");
    assert_true(tern_answer_text_stopped(t, &stop));
    assert_int_equal(stop, 1);
    (void)tern_answer_text_finish(t, &size);
    assert_int_equal(size, 0);
    check_freed(tern_answer_text_free, t);
    assert_int_equal(tern_answer_text_new(f.t, &params, &t, NULL), TERN_OK);
    push_text(t, "bxy", "b");
    tern_answer_text_turn(t);
    assert_memory_equal(tern_answer_text_finish(t, &size), "xy", 2);
    assert_int_equal(size, 2);
    tern_answer_text_free(&t);
    assert_null(t);
    const char *const empty[] = {"a", ""};
    const tern_answer_text_params wrong = {.stops = empty, .n_stops = 2};
    assert_int_equal(tern_answer_text_new(f.t, &wrong, &t, NULL), TERN_ERR_ARG);
    assert_null(t);
    tokenizer_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_not_split), cmocka_unit_test(broken_sequences_are_replaced),
        cmocka_unit_test(the_first_space),          cmocka_unit_test(arguments),
        cmocka_unit_test(well_formed_sequences),    cmocka_unit_test(text_up_to_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
