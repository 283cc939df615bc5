/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_PROGRAM_OPTIONS_CASE_H
#define TERN_TESTS_PROGRAM_OPTIONS_CASE_H

/* Command lines for tests of options and variables. */

#include "tools/cli/options.h"

/* Parses arguments given as one string of words; '_' stands for a space inside a word. */
tern_status options_of(options *o, command_id command, const char *line, tern_error *err);

/* The options of a line that must be valid. */
options good(command_id command, const char *line);

/* The line must be refused with a message that contains `part`. */
void bad(command_id command, const char *line, const char *part);

/* The output of options_print_remarks must be `expected`. */
void check_remarks(const options *o, const char *expected);

/* Sets a variable until the next test. */
void set(const char *name, const char *value);

/* Unsets every variable of the table before a test. */
int clean_environment(void **state);
#define CLEAN_TEST(test) cmocka_unit_test_setup(test, clean_environment)

#endif
