/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in channels: thinking, text and calls in answers, however these are split. */
#include <string.h>

#include "serve/interfaces/thinking.h"
#include "tests/support/check.h"

#define TO(channel) "<|channel|>" channel "<|message|>"
#define NEXT "<|end|><|start|>assistant"
#define JSON " <|constrain|>json<|message|>"

typedef struct sample {
    const char *what, *text;
    const char *thought, *said;
} sample;

static const sample samples[] = {
    {"an answer", TO("final") "It is 4.", "", "It is 4."},
    {"thinking", TO("analysis") "Hm <b>.\n" NEXT TO("final") "4", "Hm <b>.\n", "4"},
    {"thinking alone", TO("analysis") "Hm", "Hm", ""},
    {"ended", TO("analysis") "Hm" NEXT TO("final") "4<|return|>", "Hm", "4"},
    {"two thoughts", TO("analysis") "a" NEXT TO("analysis") "b" NEXT TO("final") "c", "a\n\nb",
     "c"},
    {"words before a call", TO("commentary") "I look." NEXT TO("commentary to=functions.f") "{}",
     "", "I look.to=functions.f" JSON "{}"},
    {"words and an answer", TO("commentary") "I look." NEXT TO("final") "4", "", "I look.\n\n4"},
    {"a thought after words", TO("commentary") "a" NEXT TO("analysis") "b" NEXT TO("final") "c", "",
     "a\n\nc"},
    {"a call",
     TO("analysis") "x" NEXT "<|channel|>commentary to=functions.f-1" JSON "{\"a\":1}<|call|>", "x",
     "to=functions.f-1" JSON "{\"a\":1}"},
    {"a call in the other order", " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
     "", "to=functions.f" JSON "{}"},
    {"a call in the channel of thinking", TO("analysis to=functions.f") "{}", "",
     "to=functions.f" JSON "{}"},
    {"a call after the role", TO("analysis") "x" NEXT " to=functions.f" TO("commentary") "{}", "x",
     "to=functions.f" JSON "{}"},
    {"a message to another", TO("analysis to=python") "1+1" NEXT TO("final") "2", "", "2"},
    {"a channel without a name", TO("") "a", "", "a"},
    {"no channel", "<|message|>a", "", "a"},
    {"no header", "It is <b> 4", "", "It is <b> 4"},
    {"a message that goes on", " a" NEXT TO("final") "b", "", " a\n\nb"},
    {"no end", TO("analysis") "a<|start|>assistant" TO("final") "b", "a", "b"},
    {"a channel in a text", TO("analysis") "a" TO("final") "b", "a", "b"},
    {"a mark that is cut", TO("final") "a <|en", "", "a <|en"},
    {"a header that is cut", TO("final") "a" NEXT "<|chan", "", "a"},
    {"an empty answer", "", "", ""},
};

/* The reader, and what it told. */
typedef struct reading {
    thinking_reader r;
    text thought, said;
} reading;

static void add_thought(void *user, const char *bytes, size_t size) {
    assert_true(size > 0);
    text_add(&((reading *)user)->thought, bytes, size);
}

static void add_text(void *user, const char *bytes, size_t size) {
    assert_true(size > 0);
    text_add(&((reading *)user)->said, bytes, size);
}

static reading begin(void) {
    static const thinking_marks marks = {CHANNELS_THOUGHT, CHANNELS_END, true};
    reading a = {.r = {.marks = &marks}};
    text_add(&a.thought, "", 0);
    text_add(&a.said, "", 0);
    return a;
}

static void take(reading *a, const char *bytes, size_t size) {
    const thinking_sink sink = {a, add_thought, add_text};
    thinking_take(&a->r, &sink, bytes, size);
}

static void finish(reading *a) {
    const thinking_sink sink = {a, add_thought, add_text};
    thinking_finish(&a->r, &sink);
    thinking_free(&a->r);
}

static void release(reading *a) {
    text_free(&a->thought);
    text_free(&a->said);
}

static void check_found(const sample *s, size_t n) {
    reading a = begin();
    const size_t size = strlen(s->text);
    for (size_t at = 0; at < size; at += n)
        take(&a, s->text + at, n < size - at ? n : size - at);
    finish(&a);
    if (strcmp(a.thought.bytes, s->thought) != 0 || strcmp(a.said.bytes, s->said) != 0)
        check_fail("%s, parts of %zu: thought '%s', said '%s'", s->what, n, a.thought.bytes,
                   a.said.bytes);
    release(&a);
}

static void test_samples(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        for (size_t n = 1; n < 120; n++)
            check_found(&samples[i], n);
}

/* A prompt may end inside of thinking. */
static void test_inside(void **state) {
    static const char answer[] = "to=x" NEXT TO("final") "4";
    reading a = begin();
    (void)state;
    a.r.inside = true;
    take(&a, answer, 3);
    assert_true(a.r.inside);
    take(&a, answer + 3, sizeof answer - 4);
    assert_false(a.r.inside);
    finish(&a);
    assert_string_equal(a.thought.bytes, "to=x");
    assert_string_equal(a.said.bytes, "4");
    release(&a);
}

/* Few bytes are held back, whatever arrives. */
static void test_bounds(void **state) {
    reading a = begin();
    (void)state;
    take(&a, "<|channel|>", 11);
    for (int i = 0; i < 5000; i++) {
        take(&a, "x<|", 3);
        assert_true(a.r.channels.held.size < 600);
    }
    finish(&a);
    assert_int_equal(a.said.size, 11 + 15000);
    release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples),
                                       cmocka_unit_test(test_inside),
                                       cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
