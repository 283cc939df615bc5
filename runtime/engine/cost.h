/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_COST_H
#define TERN_RUNTIME_ENGINE_COST_H

/*
 * What passes cost on this machine: seconds a row, by the number of rows. Measurements come in as
 * data, so whoever tests what follows from them needs no clock.
 */

#include <stdint.h>

enum { TERN_COST_SIZES = 13 }; /* passes of 1, 2 to 3, 4 to 7, ..., 4096 and more rows */

/* Zero-initialise it: nothing is known. */
typedef struct tern_pass_costs {
    double row_seconds[TERN_COST_SIZES]; /* lately, of passes of that size; 0: not known */
} tern_pass_costs;

/* A pass of `rows` (>= 1) took `seconds`. Old measurements count less with each new one. */
void tern_pass_costs_add(tern_pass_costs *c, uint32_t rows, double seconds);

/*
 * The most rows of a pass that is expected to take at most `seconds`, 0 .. most; `most` where
 * nothing is known. Sizes that were never measured are expected to cost as much a row as the next
 * smaller size that was: weights are read once however many rows there are, so they cost less.
 */
uint32_t tern_pass_costs_rows(const tern_pass_costs *c, double seconds, uint32_t most);

#endif
