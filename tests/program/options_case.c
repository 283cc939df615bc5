/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/program/options_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/cli/near_word.h"

enum { MAX_ARGUMENTS = 16 };

/* Parses arguments given as one string of words; '_' stands for a space inside a word. */
tern_status options_of(options *o, command_id command, const char *line, tern_error *err) {
    static char words[MAX_ARGUMENTS][128];
    char *argv[MAX_ARGUMENTS];
    int argc = 0;
    for (const char *c = line; *c != '\0';) {
        const size_t n = strcspn(c, " ");
        assert_true(argc < MAX_ARGUMENTS && n < sizeof *words);
        memcpy(words[argc], c, n);
        words[argc][n] = '\0';
        for (char *w = words[argc]; *w != '\0'; w++)
            *w = *w == '_' ? ' ' : *w;
        argv[argc] = words[argc];
        argc++;
        c += n + (c[n] == ' ');
    }
    return options_parse(o, command, argc, argv, err);
}

options good(command_id command, const char *line) {
    options o;
    tern_error err = {0};
    const tern_status status = options_of(&o, command, line, &err);
    if (status != TERN_OK)
        fail_msg("'%s': %s", line, err.message);
    return o;
}

/* The line must be refused with a message that contains `part`. */
void bad(command_id command, const char *line, const char *part) {
    options o;
    tern_error err = {0};
    assert_int_equal(options_of(&o, command, line, &err), TERN_ERR_ARG);
    if (strstr(err.message, part) == NULL)
        fail_msg("'%s': '%s' does not contain '%s'", line, err.message, part);
    assert_null(strchr(err.message, '\n'));
}

/* Unsets every variable of the table before a test. */
int clean_environment(void **state) {
    (void)state;
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        char name[WORD_BYTES];
        if (option_variable(spec, name, sizeof name))
            (void)unsetenv(name);
        const char *list = spec->variables;
        while (word_next(&list, name))
            (void)unsetenv(name);
    }
    return 0;
}

void set(const char *name, const char *value) {
    assert_int_equal(setenv(name, value, 1), 0);
}

void check_remarks(const options *o, const char *expected) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    options_print_remarks(o, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
    free(text);
}
