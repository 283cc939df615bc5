/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of chat templates: a few of each kind write what Jinja writes.
 * tests/templates compares many more with Jinja itself. */
#include <stdio.h>
#include <string.h>

#include "runtime/text/template/template.h"
#include "tests/support/check.h"

static const struct {
    const char *expression, *text;
} cases[] = {
    /* texts within lists have quotes: single ones, unless only those are in it */
    {"['a']", "['a']"},
    {"['it\\'s']", "[\"it's\"]"},
    {"['say \"a\"']", "['say \"a\"']"},
    {"['\\'\"']", "['\\'\"']"},
    {"['a\\nb\\\\']", "['a\\nb\\\\']"},
    {"[1, 2.5, true, none]", "[1, 2.5, True, None]"},
    {"{'k': ['v', {}]}", "{'k': ['v', {}]}"},
    {"('a', 1)", "('a', 1)"},
    {"('a',)", "('a',)"},
    {"[]", "[]"},
    {"['a', {'b': none}] | tojson", "[\"a\", {\"b\": null}]"},
    {"'a\\nb\\n\\nc' | indent", "a\n    b\n\n    c"},
    {"'a\\nb' | indent(2, true)", "  a\n  b"},
    {"'a\\n\\nb' | indent(width='--', blank=true)", "a\n--\n--b"},
    {"'a' | indent", "a"},
    {"' a b ' | trim | upper", "A B"},
    {"'aBc' | capitalize ~ 'x' * 3", "Abcxxx"},
    {"[3, 1, 2] | sort | join('-')", "1-2-3"},
    {"'a-b-c'.split('-', 1)", "['a', 'b-c']"},
    {"'abcdef'[1:5:2] ~ 'abc'[::-1] ~ 'abc'[-1]", "bdcbac"},
    {"7 // 2 ~ ' ' ~ 7 % 4 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 / 2", "3 3 -4 3.5"},
    {"1 < 2 < 3 and not 2 < 1 or false", "True"},
    {"'a' in 'cat' and 'x' not in ['y']", "True"},
    {"'yes' if 0 else 'no'", "no"},
    {"missing | default('d') ~ ('' | default('e', true))", "de"},
    {"range(2, 9, 3) | list", "[2, 5, 8]"},
    {"'a' is string and 1 is number and [] is iterable and x is undefined", "True"},
    {"none is sameas none ~ ' ' ~ (true is sameas true) ~ (true is sameas false)",
     "True TrueFalse"},
    {"([1] is sameas [1]) ~ (none is sameas false)", "FalseFalse"},
    {"7 % -4 ~ ' ' ~ 7 // -2 ~ ' ' ~ -8 // 4 ~ ' ' ~ 7 % -1 ~ ' ' ~ 7 // -1", "-1 -4 -2 0 -7"},
    {"(9223372036854775806 + 1) ~ ' ' ~ (-9223372036854775807 - 1) % -1", "9223372036854775807 0"},
};

/* Expressions that have no value, and what is said of them. */
static const struct {
    const char *expression, *says;
} refused[] = {
    {"7 // 0", "division by zero"},
    {"7 % 0", "division by zero"},
    {"7 / 0", "division by zero"},
    {"7.5 % 0", "division by zero"},
    {"9223372036854775807 + 1", "a number has more than 64 bits"},
    {"-9223372036854775807 - 2", "a number has more than 64 bits"},
    {"4294967296 * 4294967296", "a number has more than 64 bits"},
    {"(-9223372036854775807 - 1) // -1", "a number has more than 64 bits"},
    {"1 < 'a'", "int and str have no order"},
    {"'a' - 1", "no '-' of str and int"},
    {"[1] + 2", "no '+' of list and int"},
    {"x < 1", "'x' is undefined"},
    {"x + 1", "'x' is undefined"},
    {"'a' | nothing", "nothing"},
    {"'a' is nothing", "nothing"},
    {"x.y.z", "undefined"},
};

/* Runs a template that writes the expression between < and >. */
static tern_status run(const char *expression, tern_marked_text *out, tern_error *err) {
    char text[200];
    const tern_conversation nothing = {.n = 0};
    const tern_template_input input = {.conversation = &nothing};
    (void)snprintf(text, sizeof text, "<{{ %s }}>", expression);
    return tern_template_run((tern_span){text, strlen(text)}, &input, out, err);
}

static void test_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[200];
        tern_marked_text out = {0};
        tern_error err = {0};
        if (run(cases[i].expression, &out, &err) != TERN_OK)
            fail_msg("%s: %s", cases[i].expression, err.message);
        (void)snprintf(wanted, sizeof wanted, "<%s>", cases[i].text);
        if (out.size != strlen(wanted) || memcmp(out.bytes, wanted, out.size) != 0)
            fail_msg("%s\nis %.*s\nnot %s", cases[i].expression, (int)out.size, out.bytes, wanted);
        tern_marked_free(&out);
    }
}

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        tern_marked_text out = {0};
        tern_error err = {0};
        assert_int_equal(run(refused[i].expression, &out, &err), TERN_ERR_TEMPLATE);
        if (strstr(err.message, refused[i].says) == NULL)
            fail_msg("%s: %s", refused[i].expression, err.message);
        tern_marked_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
