/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools in the text of answers, however the text is split. */
#include <string.h>

#include "serve/interfaces/call_text.h"
#include "tests/support/check.h"

typedef struct sample {
    const char *what;
    call_style style;
    const char *text;
    const char *found; /* plain text, "(NAME", arguments, ")" */
} sample;

#define TAGGED(x) "<tool_call>" x "</tool_call>"
#define LISTED(x) "[TOOL_CALLS][" x "]"

static const sample samples[] = {
    {"no call", CALL_TAGGED, "It is <b>4</b>.\n", "It is <b>4</b>.\n"},
    {"nothing", CALL_TAGGED, "", ""},
    {"one", CALL_TAGGED, TAGGED("\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n"),
     "(f{\"a\": 1})"},
    {"after text", CALL_TAGGED, "I look.\n" TAGGED("{\"name\":\"f\",\"arguments\":{}}"),
     "I look.(f{})"},
    {"two", CALL_TAGGED,
     TAGGED("{\"name\":\"f\",\"arguments\":{}}") "\n" TAGGED("{\"name\":\"g\",\"arguments\":{}}"),
     "(f{})(g{})"},
    {"text after it", CALL_TAGGED, TAGGED("{\"name\":\"f\",\"arguments\":{}}\n") " Done.",
     "(f{}) Done."},
    {"blanks after it", CALL_TAGGED, TAGGED("{\"name\":\"f\",\"arguments\":{}}") " \n", "(f{})"},
    {"braces in a string", CALL_TAGGED,
     TAGGED("{\"name\":\"f\",\"arguments\":{\"a\":\"}\\\"}\",\"b\":[{},\"]\"]}}"),
     "(f{\"a\":\"}\\\"}\",\"b\":[{},\"]\"]})"},
    {"a tag in a string", CALL_TAGGED,
     TAGGED("{\"name\":\"f\",\"arguments\":{\"a\":\"</tool_call><tool_call>\"}}"),
     "(f{\"a\":\"</tool_call><tool_call>\"})"},
    {"the beginning of a tag", CALL_TAGGED, "a <tool_cal", "a <tool_cal"},
    {"a tag that begins twice", CALL_TAGGED, "<<tool_<" TAGGED("{\"name\":\"f\",\"arguments\":{}}"),
     "<<tool_<(f{})"},
    {"cut in its arguments", CALL_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"x",
     "(f{\"a\":\"x"},
    {"cut in its name", CALL_TAGGED, "Hm. <tool_call>{\"name\":\"f", "Hm."},
    {"no name", CALL_TAGGED, "a <tool_call>{\"nam\":", "a <tool_call>{\"nam\":"},
    {"an empty name", CALL_TAGGED, "<tool_call>{\"name\":\"\",", "<tool_call>{\"name\":\"\","},
    {"arguments that are not an object", CALL_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":1}",
     "<tool_call>{\"name\":\"f\",\"arguments\":1}"},
    {"an object in plain text", CALL_TAGGED, "{\"name\":\"f\",\"arguments\":{}}",
     "{\"name\":\"f\",\"arguments\":{}}"},
    {"not the member that it has", CALL_TAGGED, "<tool_call>{\"name\":\"f\",\"parameters\":{}}",
     "<tool_call>{\"name\":\"f\",\"parameters\":{}}"},

    {"bare", CALL_BARE, "{\"name\": \"f\", \"parameters\": {\"a\": [1]}}", "(f{\"a\": [1]})"},
    {"bare after blanks", CALL_BARE, "\n {\"name\": \"f\",\"parameters\":{}}", "(f{})"},
    {"bare in text", CALL_BARE, "So: {\"name\": \"f\", \"parameters\": {}}, I think",
     "So:(f{}), I think"},
    {"a bare object that is not a call", CALL_BARE, "{\"a\":{\"name\": 1}}",
     "{\"a\":{\"name\": 1}}"},
    {"bare with the other member", CALL_BARE, "{\"name\": \"f\", \"arguments\": {}}",
     "{\"name\": \"f\", \"arguments\": {}}"},
    {"blanks alone", CALL_BARE, " \n", " \n"},
    {"listed", CALL_LISTED, LISTED("{\"name\": \"f\", \"arguments\": {\"a\": [1]}}"),
     "(f{\"a\": [1]})"},
    {"two listed after text", CALL_LISTED,
     "Look: " LISTED("{\"name\":\"f\",\"arguments\":{}}, {\"name\":\"g\",\"arguments\":{}}"),
     "Look:(f{})(g{})"},
    {"listed with other members", CALL_LISTED,
     "[TOOL_CALLS] [{\"name\":\"f\",\"arguments\":{}, \"id\": \"a]\\\"{]\"}, "
     "{\"name\":\"g\",\"arguments\":{\"x\":\"]\"}}] Done.",
     "(f{})(g{\"x\":\"]\"}) Done."},
    {"a text between listed ones", CALL_LISTED,
     LISTED("{\"name\":\"f\",\"arguments\":{}}, \"a] \\\"]\", "
            "{\"name\":\"g\",\"arguments\":{}}") ".",
     "(f{})(g{})."},
    {"listed, cut", CALL_LISTED, "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}, {\"na", "(f{})"},
    {"a list of something else", CALL_LISTED, "[TOOL_CALLS][1]", "[TOOL_CALLS][1]"},
    {"an object in place of a list", CALL_LISTED, "[TOOL_CALLS]{\"name\":\"f\"",
     "[TOOL_CALLS]{\"name\":\"f\""},
    {"named", CALL_NAMED, "[TOOL_CALLS]f-1[ARGS]{\"a\": \"[ARGS]}\"}", "(f-1{\"a\": \"[ARGS]}\"})"},
    {"two named after text", CALL_NAMED, "Hm.\n[TOOL_CALLS]f[ARGS] {}[TOOL_CALLS]g[ARGS]{}",
     "Hm.(f{})(g{})"},
    {"text after a named one", CALL_NAMED, "[TOOL_CALLS]f[ARGS]{} So [it] is.",
     "(f{}) So [it] is."},
    {"named without arguments", CALL_NAMED, "[TOOL_CALLS]f[CALL_ID]x", "[TOOL_CALLS]f[CALL_ID]x"},
    {"named without a name", CALL_NAMED, "[TOOL_CALLS][ARGS]{}", "[TOOL_CALLS][ARGS]{}"},
    {"named in two lines", CALL_NAMED, "[TOOL_CALLS]f\n[ARGS]{}", "(f{})"},
};

static void add_text(void *user, const char *bytes, size_t size) {
    assert_true(size > 0);
    text_add(user, bytes, size);
}

static void add_name(void *user, const char *name) {
    text_print(user, "(%s", name);
}

static void add_end(void *user) {
    text_print(user, ")");
}

/* Checks what is found in text that arrives in parts of at most n bytes; n = 0: of random sizes. */
static void check_found(const sample *s, uint32_t n, check_rng *rng) {
    text found = {0};
    const call_sink sink = {&found, add_text, add_name, add_text, add_end};
    call_reader r = {.form = call_form_of(s->style)};
    const size_t size = strlen(s->text);
    text_add(&found, "", 0);
    for (size_t at = 0; at < size;) {
        const size_t wanted = n > 0 ? n : check_below(rng, 7);
        const size_t part = wanted < size - at ? wanted : size - at;
        call_reader_take(&r, &sink, s->text + at, part);
        at += part;
    }
    call_reader_finish(&r, &sink);
    if (strcmp(found.bytes, s->found) != 0)
        check_fail("%s, parts of %u: found '%s'", s->what, (unsigned)n, found.bytes);
    call_reader_free(&r);
    text_free(&found);
}

static void test_samples(void **state) {
    check_rng rng = {1};
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        for (uint32_t n = 1; n < 100; n++)
            check_found(&samples[i], n, &rng);
        for (int k = 0; k < 50; k++)
            check_found(&samples[i], 0, &rng);
    }
}

/* Texts made of special pieces: without a call nothing is lost, however they are split. */
static void test_random_texts(void **state) {
    static const char *const parts[] = {
        "<tool_call>",    "<tool", "_call>", "{",      "\"name\":",
        "\"f\"",          ",",     "<",      " ",      "\n",
        "\"arguments\":", "}",     "\\\"",   "é",      "</tool_call>",
        "[TOOL_CALLS]",   "[",     "]",      "[ARGS]", "f"};
    check_rng rng = {2};
    (void)state;
    for (int k = 0; k < 3000; k++) {
        text whole = {0}, found = {0};
        text_add(&whole, "", 0);
        text_add(&found, "", 0);
        for (uint32_t n = check_below(&rng, 20); n > 0; n--)
            text_print(&whole, "%s", parts[check_below(&rng, sizeof parts / sizeof *parts)]);
        const call_sink sink = {&found, add_text, add_name, add_text, add_end};
        const call_style style = (call_style)check_below(&rng, CALL_STYLES);
        call_reader r = {.form = call_form_of(style)};
        call_reader_take(&r, &sink, whole.bytes, whole.size);
        call_reader_finish(&r, &sink);
        call_reader_free(&r);
        const sample s = {"random", style, whole.bytes, found.bytes};
        for (uint32_t n = 1; n < 5; n++)
            check_found(&s, n, &rng);
        text_free(&whole);
        text_free(&found);
    }
}

/* The amount of text that is held back is bounded, whatever arrives. */
static void test_bounds(void **state) {
    text found = {0};
    const call_sink sink = {&found, add_text, add_name, add_text, add_end};
    (void)state;
    static const char *const heads[CALL_STYLES] = {[CALL_TAGGED] = "<tool_call>{\"name\":\"",
                                                   [CALL_BARE] = "{\"name\": \"",
                                                   [CALL_LISTED] = "[TOOL_CALLS][{\"name\":\"",
                                                   [CALL_NAMED] = "[TOOL_CALLS]"};
    for (call_style style = CALL_TAGGED; style < CALL_PYTHON; style++) {
        call_reader blank = {.form = call_form_of(style)}, named = {.form = call_form_of(style)};
        call_reader_take(&named, &sink, heads[style], strlen(heads[style]));
        for (int i = 0; i < 5000; i++) {
            call_reader_take(&blank, &sink, "\n", 1);
            call_reader_take(&named, &sink, "x", 1);
            assert_true(blank.held.size <= CALL_HEAD_BYTES && named.held.size <= CALL_HEAD_BYTES);
        }
        call_reader_free(&blank);
        call_reader_free(&named);
    }
    assert_true(found.size > 8 * (5000 - 2 * CALL_HEAD_BYTES));
    text_free(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
