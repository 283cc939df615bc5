/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_FINITE_H
#define TERN_DEVICE_FINITE_H

/* Checks that numbers stay below the limits of the types that hold them. */

#include <stdbool.h>
#include <stddef.h>

/* True if n floats are all numbers below a limit above 0 in magnitude; INFINITY: finite ones. */
bool tern_all_below(const float *x, size_t n, float limit);

/* Below it 2^16 squares can be added up. */
#define TERN_SQUARES_LIMIT 0x1p55f

/* True if rmsnorm can add up the squares of n floats, n < 2^16; false where one is not finite. */
bool tern_squares_fit(const float *x, size_t n);

#endif
