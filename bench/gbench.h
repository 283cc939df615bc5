/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_GBENCH_H
#define TERN_BENCH_GBENCH_H

/* Google Benchmark for C: the few functions that the kernel benchmarks need. */

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tern_bench_state tern_bench_state;

/* A benchmark: prepare, `while (tern_bench_running(state))` the work, report, clean up. */
typedef void tern_bench_fn(tern_bench_state *state, const void *argument);

/*
 * Registers a benchmark. name is copied, argument is not. With one thread the clock is the
 * thread's processor time, with more it is the wall's, and fn runs in each of them.
 */
void tern_bench_register(const char *name, tern_bench_fn *fn, const void *argument, int threads);

/* True as long as another timed iteration is wanted. The first call starts the clock. */
bool tern_bench_running(tern_bench_state *state);

/* Which of the benchmark's threads this is, from 0. */
int tern_bench_thread(const tern_bench_state *state);

/* Reports `amount` units in all (of all threads: their sum) as units a second under `name`. */
void tern_bench_rate(tern_bench_state *state, const char *name, double amount);

/* Reports a figure as it is; figures of several threads are added up. */
void tern_bench_figure(tern_bench_state *state, const char *name, double value);

/* A text that goes with the result. */
void tern_bench_label(tern_bench_state *state, const char *text);

/* Marks the benchmark as failed; the timed loop must not be entered any more. */
void tern_bench_fail(tern_bench_state *state, const char *message);

/* Takes Google Benchmark's own flags out of the arguments; false when something else is there. */
bool tern_bench_initialize(int *argc, char **argv);

/* Adds a line to the report's head. */
void tern_bench_context(const char *key, const char *value);

/* Runs what was registered. Returns the exit status. */
int tern_bench_main(void);

#ifdef __cplusplus
}
#endif

#endif
