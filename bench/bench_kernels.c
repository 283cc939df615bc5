/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Benchmarks of every kernel of the table that this machine can run, named after the kernel:
 * NAME/cache with operands in the caches, and for matrix products NAME/memory/ROWSxCOLS. Each
 * benchmark checks its answer against the reference before it is timed, and also measures the best
 * that the machine can do. `--check` only checks; all other flags are Google Benchmark's
 * (--benchmark_filter=gemv, ...), `--json` is short for --benchmark_format=json.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/cases.h"
#include "bench/context.h"
#include "bench/gbench.h"
#include "bench/operands.h"
#include "bench/roofs.h"
#include "dispatch/cpu.h"

/* Each thread keeps a set of operands from one run of a benchmark to the next. */
static struct {
    const tern_bench_case *of;
    tern_bench_operands *operands;
} live[TERN_ROOF_THREADS];

static void drop_operands(int thread) {
    tern_bench_operands_free(live[thread].operands);
    live[thread].operands = NULL;
    live[thread].of = NULL;
}

/* Operands whose answer was checked. NULL after an error, which `state` then reports. */
static tern_bench_operands *operands_for(tern_bench_state *state, const tern_bench_case *c,
                                         int thread) {
    if (live[thread].of == c)
        return live[thread].operands;
    drop_operands(thread);
    tern_bench_shape shape = c->shape;
    shape.room = tern_roofs_room(thread, c->threads);
    tern_bench_operands *o = tern_bench_operands_new(c->kernel, &shape);
    live[thread].operands = o;
    if (o == NULL) {
        tern_bench_fail(state, "no memory for the operands");
        return NULL;
    }
    if (!tern_bench_check(o)) {
        tern_bench_fail(state, "differs from the reference");
        return NULL;
    }
    live[thread].of = c;
    return o;
}

/* The clock that the benchmark's rates are taken with (tern_bench_register). */
static double seconds_of(const tern_bench_case *c) {
    struct timespec t;
    (void)clock_gettime(c->threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void report(tern_bench_state *state, const tern_bench_case *c, const tern_bench_operands *o,
                   double calls, double seconds) {
    const int thread = tern_bench_thread(state);
    const double read = tern_roof_read(c->level, thread, c->threads);
    const double peak = tern_roof_macs(c->kernel->isa, tern_unit_of_kernel(c->kernel->name));
    const double bytes = tern_bench_bytes(o) * calls;
    const double macs = tern_bench_macs(o) * calls;
    tern_bench_rate(state, "bytes", bytes);
    if (tern_bench_weights(o) > 0)
        tern_bench_rate(state, "weights", tern_bench_weights(o) * calls);
    if (read > 0) {
        tern_bench_figure(state, "read_roof", read / c->threads);
        tern_bench_figure(state, "read_percent", 100 * bytes / seconds / read);
    }
    if (macs > 0)
        tern_bench_rate(state, "macs", macs);
    if (macs > 0 && peak > 0) {
        tern_bench_figure(state, "peak_roof", peak);
        tern_bench_figure(state, "peak_percent", 100 * macs / seconds / peak / c->threads);
    }
    tern_bench_label(state, c->label);
}

static void run(tern_bench_state *state, const void *argument) {
    const tern_bench_case *c = argument;
    tern_bench_operands *o = operands_for(state, c, tern_bench_thread(state));
    if (o == NULL)
        return;
    double calls = 0;
    bool going = tern_bench_running(state);
    const double begin = seconds_of(c);
    for (; going; going = tern_bench_running(state)) {
        tern_bench_call(o);
        calls++;
    }
    report(state, c, o, calls, seconds_of(c) - begin);
}

/* Small, so that --check is quick even on an emulated processor, with tails in every dimension. */
static const tern_bench_shape check_shape = {
    .rows = 52, .cols = 160, .tokens = 13, .n = 224, .copies = 3};

/* The shape of a check, widened to whole blocks of the kernel's format. */
static tern_bench_shape fitting(const tern_kernel_row *kernel) {
    const tern_format_info *info = tern_format_describe(kernel->format);
    tern_bench_shape shape = check_shape;
    if (info != NULL && info->block_elements > TERN_BLOCK)
        shape.cols = shape.n = 2 * info->block_elements;
    return shape;
}

/* Returns the number of kernels whose answer is wrong. */
static int check_all(const tern_kernel_row *kernels, size_t count, uint64_t features) {
    int wrong = 0;
    size_t checked = 0;
    for (size_t i = 0; i < count; i++) {
        if (kernels[i].fn.any == NULL || (kernels[i].needs & ~features) != 0)
            continue;
        const tern_bench_shape shape = fitting(&kernels[i]);
        tern_bench_operands *operands = tern_bench_operands_new(&kernels[i], &shape);
        if (operands == NULL || !tern_bench_check(operands)) {
            fprintf(stderr, "%s: differs from the reference\n", kernels[i].name);
            wrong++;
        }
        tern_bench_operands_free(operands);
        checked++;
    }
    printf("%zu kernels checked, %zu cannot run here, %d wrong\n", checked, count - checked, wrong);
    return wrong;
}

/* Returns the number of probes whose sum is wrong. */
static int check_probes(uint64_t features) {
    size_t count = 0;
    int wrong = 0;
    const tern_probe *const *probes = tern_probes(&count);
    for (size_t i = 0; i < count; i++) {
        for (tern_unit unit = 0; unit < TERN_UNIT_COUNT; unit++) {
            if ((probes[i]->needs & ~features) != 0 || probes[i]->mac[unit] == NULL ||
                tern_roof_macs(probes[i]->isa, unit) > 0)
                continue;
            fprintf(stderr, "%s, %s: the probe's sum is wrong\n", probes[i]->isa,
                    tern_unit_name(unit));
            wrong++;
        }
    }
    return wrong;
}

static bool only_lists(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--benchmark_list_tests", 22) == 0)
            return true;
    return false;
}

int main(int argc, char **argv) {
    static char json[] = "--benchmark_format=json";
    size_t count = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    const uint64_t features = tern_cpu_features();
    const bool check = argc == 2 && strcmp(argv[1], "--check") == 0;
    const bool list = only_lists(argc, argv);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            argv[i] = json;
    if (!check && !tern_bench_initialize(&argc, argv))
        return 2;
    if (!tern_roofs_open(check ? 0 : tern_memory_bytes())) {
        fprintf(stderr, "bench_kernels: no memory for %zu MiB\n", tern_memory_bytes() >> 20);
        return 1;
    }
    int status = 0;
    if (check) {
        status = check_all(kernels, count, features) + check_probes(features) > 0;
    } else {
        tern_bench_case *cases = tern_bench_cases(features);
        for (tern_bench_case *c = cases; c != NULL && c->kernel != NULL; c++)
            tern_bench_register(c->name, run, c, c->threads);
        if (!list)
            tern_bench_describe_machine(features);
        status = cases != NULL ? tern_bench_main() : 1;
        for (int thread = 0; thread < TERN_ROOF_THREADS; thread++)
            drop_operands(thread);
        free(cases);
    }
    tern_roofs_close();
    return status;
}
