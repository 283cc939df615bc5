/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/gbench.h"

#include <benchmark/benchmark.h>

struct tern_bench_state {
    benchmark::State &state;
};

void tern_bench_register(const char *name, tern_bench_fn *fn, const void *argument) {
    benchmark::RegisterBenchmark(name, [fn, argument](benchmark::State &state) {
        tern_bench_state wrapped{state};
        fn(&wrapped, argument);
    });
}

bool tern_bench_running(tern_bench_state *state) { return state->state.KeepRunning(); }

void tern_bench_rate(tern_bench_state *state, const char *name, double per_iteration) {
    state->state.counters[name] =
        benchmark::Counter(per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

void tern_bench_fail(tern_bench_state *state, const char *message) {
    state->state.SkipWithError(message);
}

int tern_bench_main(int argc, char **argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    return benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 1;
}
