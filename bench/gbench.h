/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_GBENCH_H
#define TERN_BENCH_GBENCH_H

/* Google Benchmark for C: the five functions that the kernel benchmarks need. */

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tern_bench_state tern_bench_state;

/* A benchmark: prepare, `while (tern_bench_running(state))` the work, report, clean up. */
typedef void tern_bench_fn(tern_bench_state *state, const void *argument);

/* Registers a benchmark. name is copied, argument is not. */
void tern_bench_register(const char *name, tern_bench_fn *fn, const void *argument);

/* True as long as another timed iteration is wanted. */
bool tern_bench_running(tern_bench_state *state);

/* Reports `per_iteration` units a second under `name` ("weights", "bytes", "macs"). */
void tern_bench_rate(tern_bench_state *state, const char *name, double per_iteration);

/* Marks the benchmark as failed; the timed loop must not be entered any more. */
void tern_bench_fail(tern_bench_state *state, const char *message);

/* Runs what was registered, with Google Benchmark's own flags. Returns the exit status. */
int tern_bench_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
