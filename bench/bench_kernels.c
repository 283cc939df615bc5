/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One benchmark per row of the kernel table that this machine can run, named after the row. Each
 * checks its answer against the reference before it is timed. `--check` only checks; all other
 * flags are Google Benchmark's (--benchmark_filter=gemv, --benchmark_format=json, ...).
 */

#include <stdio.h>
#include <string.h>

#include "bench/gbench.h"
#include "bench/operands.h"
#include "dispatch/cpu.h"

/* Weights that stay in a second-level cache; widths of BitNet b1.58 2B4T. */
static tern_bench_shape shape_of(const tern_kernel_row *row) {
    tern_bench_shape shape = {.rows = 512, .cols = 2560, .tokens = 1, .n = 2560};
    if (row->op == TERN_OP_GEMM)
        shape.tokens = 32;
    if (row->op == TERN_OP_ATTEND)
        shape.n = 512;
    if (row->op == TERN_OP_ROPE_NORM || row->op == TERN_OP_ROPE_NEOX)
        shape.n = 128;
    return shape;
}

static void run(tern_bench_state *state, const void *argument) {
    const tern_kernel_row *row = argument;
    const tern_bench_shape shape = shape_of(row);
    tern_bench_operands *operands = tern_bench_operands_new(row, &shape);
    if (!operands) {
        tern_bench_fail(state, "no memory for the operands");
        return;
    }
    if (!tern_bench_check(operands)) {
        tern_bench_fail(state, "differs from the reference");
        tern_bench_operands_free(operands);
        return;
    }
    while (tern_bench_running(state))
        tern_bench_call(operands);
    tern_bench_rate(state, "bytes", tern_bench_bytes(operands));
    if (tern_bench_macs(operands) > 0)
        tern_bench_rate(state, "macs", tern_bench_macs(operands));
    tern_bench_operands_free(operands);
}

/* Small, so that --check is quick even on an emulated processor; with tails in every dimension. */
static const tern_bench_shape check_shape = {.rows = 52, .cols = 160, .tokens = 13, .n = 224};

/* Returns the number of rows whose answer is wrong. */
static int check_all(const tern_kernel_row *rows, size_t count, uint64_t features) {
    int wrong = 0;
    size_t checked = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].fn.any || (rows[i].needs & ~features) != 0)
            continue;
        tern_bench_operands *operands = tern_bench_operands_new(&rows[i], &check_shape);
        if (!operands || !tern_bench_check(operands)) {
            fprintf(stderr, "%s: differs from the reference\n", rows[i].name);
            wrong++;
        }
        tern_bench_operands_free(operands);
        checked++;
    }
    printf("%zu rows checked, %zu cannot run here, %d wrong\n", checked, count - checked, wrong);
    return wrong;
}

int main(int argc, char **argv) {
    size_t count = 0;
    const tern_kernel_row *rows = tern_kernel_rows(&count);
    const uint64_t features = tern_cpu_features();
    if (argc == 2 && strcmp(argv[1], "--check") == 0)
        return check_all(rows, count, features) == 0 ? 0 : 1;
    for (size_t i = 0; i < count; i++)
        if (rows[i].fn.any && (rows[i].needs & ~features) == 0)
            tern_bench_register(rows[i].name, run, &rows[i]);
    return tern_bench_main(argc, argv);
}
