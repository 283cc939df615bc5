/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_GBENCH_H
#define TERN_BENCH_GBENCH_H

/* Google Benchmark for C: the few functions that the kernel benchmarks need. */

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tern_bench_state tern_bench_state;

/* A benchmark: prepares, runs `while (tern_bench_running(state))` its work, reports, cleans up. */
typedef void tern_bench_fn(tern_bench_state *state, const void *argument);

/*
 * Registers a benchmark. name is copied, argument is not. One thread is timed by the thread's
 * processor time, several by the wall clock, and fn runs in each of them.
 */
void tern_bench_register(const char *name, tern_bench_fn *fn, const void *argument, int threads);

/* True while another timed iteration is wanted. The first call starts the clock. */
bool tern_bench_running(tern_bench_state *state);

/* The number of the calling thread among the benchmark's threads, from 0. */
int tern_bench_thread(const tern_bench_state *state);

/* Reports `amount` units as units a second under `name`; threads' amounts are added up. */
void tern_bench_rate(tern_bench_state *state, const char *name, double amount);

/* Reports a figure as it is; figures of several threads are added up. */
void tern_bench_figure(tern_bench_state *state, const char *name, double value);

/* Attaches a text to the result. */
void tern_bench_label(tern_bench_state *state, const char *text);

/* Marks the benchmark as failed. The timed loop must not be entered after that. */
void tern_bench_fail(tern_bench_state *state, const char *message);

/* Removes Google Benchmark's own flags from the arguments; false if any others are left. */
bool tern_bench_initialize(int *argc, char **argv);

/* Adds a line to the report's head. */
void tern_bench_context(const char *key, const char *value);

/* Runs the registered benchmarks. Returns the exit status. */
int tern_bench_main(void);

#ifdef __cplusplus
}
#endif

#endif
