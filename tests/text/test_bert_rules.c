/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of BERT's normalizer, written as steps and read back from them. */

#include "runtime/text/tokenizer/bert_rules.h"
#include "tests/support/check.h"

static tern_bert_rules rules_of(unsigned bits) {
    return (tern_bert_rules){bits & 1, bits & 2, bits & 4, bits & 8};
}

/* The steps of these rules, with BERT's words after them. */
static void write_steps(tern_vocabulary *v, tern_bert_rules rules) {
    v->n_steps = 0;
    assert_true(tern_bert_add_normalizer(v, rules));
    v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_WORDS};
}

static void test_each_rule_is_read_back(void **state) {
    (void)state;
    static tern_vocabulary v;
    for (unsigned bits = 0; bits < 16; bits++) {
        tern_bert_rules found;
        check_case("rules %u", bits);
        write_steps(&v, rules_of(bits));
        assert_true(tern_bert_recognise(&v, &found));
        const tern_bert_rules made = rules_of(bits);
        assert_memory_equal(&found, &made, sizeof found);
    }
}

static void test_other_steps_are_not_berts(void **state) {
    (void)state;
    static tern_vocabulary v;
    tern_bert_rules found;
    write_steps(&v, rules_of(15));
    const size_t n = v.n_steps;
    v.steps[v.n_steps++] = (tern_step){.kind = TERN_STEP_ADDED};
    assert_true(tern_bert_recognise(&v, &found)); /* added tokens may be cut anywhere */
    v.steps[n] = (tern_step){.kind = TERN_STEP_WORDS};
    assert_false(tern_bert_recognise(&v, &found));
    v.n_steps = n - 1; /* without words */
    assert_false(tern_bert_recognise(&v, &found));
    for (size_t i = 0; i + 1 < n; i++) {
        check_case("steps %zu and %zu change places", i, i + 1);
        write_steps(&v, rules_of(15));
        const tern_step kept = v.steps[i];
        v.steps[i] = v.steps[i + 1];
        v.steps[i + 1] = kept;
        assert_false(tern_bert_recognise(&v, &found));
    }
    write_steps(&v, rules_of(15));
    for (size_t i = 0; i < n; i++)
        if (v.steps[i].kind == TERN_STEP_NORMALIZE)
            v.steps[i].form = TERN_NFC;
    assert_false(tern_bert_recognise(&v, &found));
}

static void test_room_for_steps(void **state) {
    (void)state;
    static tern_vocabulary v;
    v.n_steps = TERN_TOKENIZER_MAX_STEPS - 5;
    assert_true(tern_bert_add_normalizer(&v, rules_of(15)));
    assert_int_equal(v.n_steps, TERN_TOKENIZER_MAX_STEPS);
    for (unsigned bits = 1; bits < 16; bits++)
        assert_false(tern_bert_add_normalizer(&v, rules_of(bits)));
    assert_true(tern_bert_add_normalizer(&v, rules_of(0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rule_is_read_back),
        cmocka_unit_test(test_other_steps_are_not_berts),
        cmocka_unit_test(test_room_for_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
