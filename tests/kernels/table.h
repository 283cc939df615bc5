/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_KERNELS_TABLE_H
#define TERN_TESTS_KERNELS_TABLE_H

/* Which kernels of the table a test runs here. */

#include <stdbool.h>

#include "tern/kernels.h"

/*
 * Whether the row is built, this machine has what it needs (TERN_ISA does not matter), and its
 * name contains TERN_TEST_FILTER, if that is set.
 */
bool table_runnable(const tern_kernel_row *row);

enum { TABLE_SKIPPED = 77 }; /* exit status that ctest reports as skipped */

/*
 * Whether TERN_TEST_EVERY leaves out the next shape: with n it keeps every n-th, so that a run on
 * an emulator ends. A prime n does not always meet the same kind of numbers.
 */
bool table_left_out(void);

/* n, or with TERN_TEST_EVERY a quarter of it: how much of a long test of one shape to run. */
size_t table_thinned(size_t n);

/* Prints how many rows run here and names those that do not. Ends the program if there are none. */
void table_report(void);

#endif
