/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_CONTEXT_H
#define TERN_BENCH_CONTEXT_H

#include <stdint.h>

/* Adds the machine, the build and the measured roofs (in 1e9 a second) to the head of the
 * report. */
void tern_bench_describe_machine(uint64_t features);

#endif
