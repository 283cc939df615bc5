/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of stacks and states: what is equal has one number, before and after its tables grow. */
#include <string.h>

#include "runtime/text/grammar/grammar.h"
#include "runtime/text/grammar/stacks.h"
#include "tests/text/grammar_case.h"

enum { ROUNDS = 1000, MOST_TEXT = 2 * ROUNDS + 1 };

/* Each round has states of its own, and each bracket stacks of its own. */
static const char counted[] = "root ::= (\"a\" | \"b\" [x-z]){0,1000}";
static const char nested[] = "root ::= \"(\" root* \")\" | [x-z]";

/* The numbers of the states along a text, which is not remembered. */
static void walk(tern_stacks *s, const char *text, uint32_t *numbers) {
    uint32_t state = tern_stacks_begin(s);
    for (size_t i = 0; text[i] != '\0'; i++) {
        state = tern_stacks_after(s, state, (uint8_t)text[i]);
        if (state == TERN_STACKS_NONE || s->status != TERN_OK)
            check_fail("nothing follows byte %zu: %s", i, s->why != NULL ? s->why : "wrong");
        numbers[i] = state;
    }
}

static void met_again(const char *gbnf, const char *text) {
    static uint32_t first[MOST_TEXT], again[MOST_TEXT];
    tern_grammar *g = grammar_of_gbnf(gbnf);
    tern_stacks s;
    assert_int_equal(tern_stacks_start(&s, &g->program), TERN_OK);
    const size_t slots = s.state_slots + s.frame_slots;
    walk(&s, text, first);
    assert_true(s.state_slots + s.frame_slots > 4 * slots);
    const size_t n_states = s.n_states, n_frames = s.n_frames, n_places = s.n_places;
    walk(&s, text, again);
    assert_memory_equal(first, again, strlen(text) * sizeof *first);
    assert_int_equal(s.n_states, n_states);
    assert_int_equal(s.n_frames, n_frames);
    assert_int_equal(s.n_places, n_places);
    tern_stacks_free(&s);
    tern_grammar_free(&g);
}

static void test_counted(void **state) {
    static char text[MOST_TEXT];
    (void)state;
    for (size_t i = 0; i < ROUNDS; i++)
        (void)strcat(text, i % 3 == 0 ? "a" : i % 3 == 1 ? "bx" : "bz");
    met_again(counted, text);
}

static void test_nested(void **state) {
    static char text[MOST_TEXT];
    (void)state;
    memset(text, '(', ROUNDS);
    memset(text + ROUNDS, ')', ROUNDS);
    met_again(nested, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counted),
                                       cmocka_unit_test(test_nested)};
    return cmocka_run_group_tests(tests, grammar_case_begin, grammar_case_end);
}
