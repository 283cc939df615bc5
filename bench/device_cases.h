/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_DEVICE_CASES_H
#define TERN_BENCH_DEVICE_CASES_H

/* The operations of a device that are measured, and their shapes. */

#include <stdbool.h>

#include "bench/operands.h"

typedef struct tern_device_case {
    tern_kernel_row kernel; /* operation, format and layout; no kernel */
    tern_bench_shape shape;
    size_t parts;   /* heads, or key/value heads, in one call; all have the same operands */
    char name[128]; /* OPERATION[/WEIGHTS]/SHAPE */
} tern_device_case;

enum { TERN_DEVICE_CASES = 256 }; /* at most */

/* Fills cases[TERN_DEVICE_CASES]; returns how many. `small`: shapes for a check of the answers. */
size_t tern_device_cases(bool small, tern_device_case *cases);

#endif
