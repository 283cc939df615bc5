/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_CONTEXT_H
#define TERN_BENCH_CONTEXT_H

#include <stdint.h>

/* Adds to the report's head: the machine, the build, and what the machine gives, in 1e9 a second.
 */
void tern_bench_describe_machine(uint64_t features);

#endif
