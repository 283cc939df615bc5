/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_COST_H
#define TERN_RUNTIME_ENGINE_COST_H

/*
 * The cost of passes on this machine: seconds a row, by the number of rows. Measurements come in as
 * data, so tests need no clock.
 */

#include <stdint.h>

enum { TERN_COST_SIZES = 13 }; /* passes of 1, 2 to 3, 4 to 7, ..., 4096 and more rows */

/* Zero-initialise it: then nothing is known. */
typedef struct tern_pass_costs {
    double row_seconds[TERN_COST_SIZES]; /* recent seconds, for passes of that size; 0: not known */
} tern_pass_costs;

/* A pass of `rows` (>= 1) took `seconds`. Old measurements count less with each new one. */
void tern_pass_costs_add(tern_pass_costs *c, uint32_t rows, double seconds);

/*
 * The most rows, 0 .. most, of a pass that is expected to take at most `seconds`; `most` where
 * nothing is known. A size that was never measured is expected to cost as much a row as the next
 * smaller measured size: an upper bound, since weights are read once however many rows there are.
 */
uint32_t tern_pass_costs_rows(const tern_pass_costs *c, double seconds, uint32_t most);

#endif
