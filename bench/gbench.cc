/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/gbench.h"

#include <benchmark/benchmark.h>

struct tern_bench_state {
    benchmark::State &state;
};

void tern_bench_register(const char *name, tern_bench_fn *fn, const void *argument, int threads) {
    auto *registered =
        benchmark::RegisterBenchmark(name, [fn, argument](benchmark::State &state) {
            tern_bench_state wrapped{state};
            fn(&wrapped, argument);
        });
    if (threads > 1)
        registered->Threads(threads)->UseRealTime();
}

bool tern_bench_running(tern_bench_state *state) { return state->state.KeepRunning(); }

int tern_bench_thread(const tern_bench_state *state) { return state->state.thread_index(); }

void tern_bench_rate(tern_bench_state *state, const char *name, double amount) {
    state->state.counters[name] = benchmark::Counter(amount, benchmark::Counter::kIsRate);
}

void tern_bench_figure(tern_bench_state *state, const char *name, double value) {
    state->state.counters[name] = value;
}

void tern_bench_label(tern_bench_state *state, const char *text) { state->state.SetLabel(text); }

void tern_bench_fail(tern_bench_state *state, const char *message) {
    state->state.SkipWithError(message);
}

bool tern_bench_initialize(int *argc, char **argv) {
    benchmark::Initialize(argc, argv);
    return !benchmark::ReportUnrecognizedArguments(*argc, argv);
}

void tern_bench_context(const char *key, const char *value) {
    benchmark::AddCustomContext(key, value);
}

int tern_bench_main() { return benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 1; }
