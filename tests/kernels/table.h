/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_KERNELS_TABLE_H
#define TERN_TESTS_KERNELS_TABLE_H

/* The kernels of the table that a test runs here. */

#include <stdbool.h>

#include "tern/kernels.h"

/*
 * True if the kernel is built, this machine has what it needs (whatever TERN_ISA says), and its
 * name contains TERN_TEST_FILTER, if that is set.
 */
bool table_runnable(const tern_kernel_row *kernel);

enum { TABLE_SKIPPED = 77 }; /* exit status that ctest reports as skipped */

/*
 * True if TERN_TEST_EVERY leaves out the next shape. With n it keeps every n-th, so that a run on
 * an emulator ends in reasonable time, and TERN_TEST_FIRST moves them: other runs take other ones.
 * A prime n does not always hit the same kind of numbers.
 */
bool table_left_out(void);

/* The length of a long test of one shape: n, or a quarter of it with TERN_TEST_EVERY. */
size_t table_thinned(size_t n);

/* Prints how many kernels run here, and names those that do not. Ends the program if none runs. */
void table_report(void);

#endif
