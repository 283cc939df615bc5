/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for keys agree with docs/strict.md, from which e2e_whole_models tries each of them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/config/unclaimed.h"
#include "tests/support/check.h"

/* The words of the page's second column. */
static const char *const kinds[] = {
    [TERN_KEY_READ] = "read and checked",
    [TERN_KEY_TELLS] = "anything",
    [TERN_KEY_ZERO] = "0",
    [TERN_KEY_FACTOR] = "0 or 1",
    [TERN_KEY_FALSE] = "false",
    [TERN_KEY_TRUE] = "true",
    [TERN_KEY_WINDOW] = "0 or at least the context",
    [TERN_KEY_LAYOUT] = "a known layout",
    [TERN_KEY_NEVER] = "never",
};

/* True if a line of the page is the row of this rule. */
static bool is_row(const char *line, const tern_key_rule *rule) {
    char name[80], kind[64];
    snprintf(name, sizeof name, "`%s`", rule->suffix);
    snprintf(kind, sizeof kind, " | %s | ", kinds[rule->kind]);
    return strstr(line, name) != NULL && strstr(line, kind) != NULL &&
           (rule->what == NULL || strstr(line, rule->what) != NULL);
}

static void test_page(void **state) {
    enum { LINE = 4096 };
    static char line[LINE];
    size_t n, named = 0;
    const tern_key_rule *rules = tern_key_rules(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        FILE *page = fopen(TERN_SOURCE_DIR "/docs/strict.md", "r");
        assert_non_null(page);
        while (!found && fgets(line, LINE, page) != NULL)
            found = is_row(line, &rules[i]);
        fclose(page);
        if (!found)
            check_fail("docs/strict.md has no row of %s", rules[i].suffix);
        named += rules[i].what != NULL;
    }
    assert_true(named > 40);
}

/* Each key has one rule, and a refusal says why. */
static void test_table(void **state) {
    size_t n;
    const tern_key_rule *rules = tern_key_rules(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const bool accepts = rules[i].kind == TERN_KEY_READ || rules[i].kind == TERN_KEY_TELLS;
        assert_true(accepts == (rules[i].what == NULL));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rules[i].suffix, rules[j].suffix);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page), cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
