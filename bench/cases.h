/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_CASES_H
#define TERN_BENCH_CASES_H

/* The list of benchmarks: for each kernel its shapes and where its operands live. */

#include <stdint.h>

#include "bench/operands.h"
#include "bench/roofs.h"

typedef struct tern_bench_case {
    const tern_kernel_row *kernel; /* NULL in the entry after the last case */
    tern_bench_shape shape;     /* of one thread */
    tern_level level;
    int threads;
    char name[128];
    char label[192]; /* "key=value ...", for programs that read the JSON */
} tern_bench_case;

/* All cases of the kernels that a machine with these features can run; the caller frees them with
 * free(). NULL: no memory. */
tern_bench_case *tern_bench_cases(uint64_t features);

#endif
