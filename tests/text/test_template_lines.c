/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of chat templates name the line of the failing part, even if the expression spans
 * lines. */
#include <stdio.h>
#include <string.h>

#include "runtime/text/template/template.h"
#include "tests/support/check.h"

/* Every template begins with one line of text. */
static const struct {
    const char *text;
    unsigned line;
} cases[] = {
    {"{{ missing[\n'a'\n] }}", 2},           /* a member */
    {"{{ (\nmissing\n).a }}", 4},            /* an attribute */
    {"{{ missing[\n0:\n2] }}", 2},           /* a slice */
    {"{{ 1 +\n2 +\n(\n'a'\n) }}", 3},        /* a sum */
    {"{{ 1 <\n2 <\n(\n'a'\n) }}", 3},        /* a comparison */
    {"{{ range(\n'a',\n'b'\n) }}", 2},       /* a call */
    {"{{ 'a' |\nreplace(\n'b'\n) }}", 3},    /* a filter */
    {"{{ 1 is\ndivisibleby(\n'b'\n) }}", 3}, /* a test */
    {"{% call range(\n'a',\n'b'\n) %}\n{% endcall %}", 2},
};

static void test_lines(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200], begin[60];
        tern_marked_text out = {0};
        tern_error err = {0};
        const tern_conversation nothing = {.n = 0};
        const tern_template_input input = {.conversation = &nothing};
        (void)snprintf(text, sizeof text, "first\n%s\n", cases[i].text);
        (void)snprintf(begin, sizeof begin, "chat template: line %u: ", cases[i].line);
        assert_int_equal(tern_template_run((tern_span){text, strlen(text)}, &input, &out, &err),
                         TERN_ERR_TEMPLATE);
        if (strncmp(err.message, begin, strlen(begin)) != 0)
            fail_msg("%s\nwants %s", err.message, begin);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
