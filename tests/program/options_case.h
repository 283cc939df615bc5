/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_PROGRAM_OPTIONS_CASE_H
#define TERN_TESTS_PROGRAM_OPTIONS_CASE_H

/* Command lines for the tests of options and of variables. */

#include "tools/cli/options.h"

/* Parses arguments given as one string of words; '_' stands for a space inside a word. */
tern_status options_of(options *o, command_id command, const char *line, tern_error *err);

/* The options of a line that must be good. */
options good(command_id command, const char *line);

/* The line must be refused with a message that contains `part`. */
void bad(command_id command, const char *line, const char *part);

/* What options_print_remarks prints must be this. */
void check_remarks(const options *o, const char *expected);

/* Sets a variable until the next test. */
void set(const char *name, const char *value);

/* Every variable of the table is unset before a test. */
int clean_environment(void **state);
#define CLEAN_TEST(test) cmocka_unit_test_setup(test, clean_environment)

#endif
