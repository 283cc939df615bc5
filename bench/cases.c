/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* BitNet b1.58 2B4T: attention's square matrices, and the two shapes of the feed-forward part. */
static const struct {
    size_t rows, cols;
} memory_shapes[] = {{2560, 2560}, {6912, 2560}, {2560, 6912}};

enum {
    MEMORY_SHAPES = sizeof memory_shapes / sizeof *memory_shapes,
    CASES_PER_ROW = 8, /* gemm: from the cache, three shapes from memory, four with few tokens */
    WIDTH = 2560,
    CACHE_ROWS = 512,
    PREFILL_TOKENS = 128,
    ATTEND_POSITIONS = 256, /* 256 KiB of keys and values of one head */
    ATTEND_TOKENS = 4,
    HEAD_DIM = 128,
    SPARSE_ROWS = 128 /* a quarter of the weights: 320 KiB */
};

/* Batch sizes of servers and of speculative decoding. They run from memory, because the tokens
 * share one reading of the weights. */
static const size_t few_tokens[] = {2, 4, 8, 16};

enum { FEW_TOKENS = sizeof few_tokens / sizeof *few_tokens };

static bool is_matmul(const tern_kernel_row *kernel) {
    return kernel->op == TERN_OP_GEMV || kernel->op == TERN_OP_GEMM;
}

/* 512 rows of 2560 weights, or as many groups of 16 rows as the second-level cache holds. */
static tern_bench_case cache_case(const tern_kernel_row *kernel) {
    tern_bench_case c = {.kernel = kernel, .level = TERN_LEVEL_L1, .threads = 1};
    c.shape = (tern_bench_shape){.rows = CACHE_ROWS, .cols = WIDTH, .tokens = 1, .n = WIDTH};
    while (is_matmul(kernel) && c.shape.rows > TERN_ROW_GROUP &&
           tern_bench_matrix_bytes(kernel, c.shape.rows, WIDTH) > TERN_CACHE_BYTES)
        c.shape.rows -= TERN_ROW_GROUP;
    if (kernel->op == TERN_OP_GEMM)
        c.shape.tokens = PREFILL_TOKENS;
    if (kernel->op == TERN_OP_ATTEND)
        c.shape.n = ATTEND_POSITIONS;
    if (kernel->op == TERN_OP_ROPE_NORM || kernel->op == TERN_OP_ROPE_NEOX)
        c.shape.n = HEAD_DIM;
    if (kernel->op == TERN_OP_GEMV_SPARSE)
        c.shape.rows = SPARSE_ROWS;
    if (is_matmul(kernel) || kernel->op == TERN_OP_ATTEND || kernel->op == TERN_OP_GEMV_SPARSE)
        c.level = TERN_LEVEL_CACHE;
    return c;
}

/* `threads` threads share the rows; in packed layouts each thread has a matrix of its own. */
static tern_bench_case memory_case(const tern_kernel_row *kernel, size_t shape, size_t tokens,
                                   int threads) {
    tern_bench_case c = {.kernel = kernel, .level = TERN_LEVEL_MEMORY, .threads = threads};
    const size_t rows = memory_shapes[shape].rows / (size_t)threads;
    const size_t bytes = tern_bench_matrix_bytes(kernel, rows, memory_shapes[shape].cols);
    c.shape = (tern_bench_shape){.rows = rows,
                                 .cols = memory_shapes[shape].cols,
                                 .tokens = tokens,
                                 .copies = tern_memory_bytes() / (size_t)threads / bytes};
    return c;
}

/* `threads` threads, each with its own heads over a context of n positions. */
static tern_bench_case context_case(const tern_kernel_row *kernel, size_t n, int threads) {
    tern_bench_case c = {.kernel = kernel, .level = TERN_LEVEL_MEMORY, .threads = threads};
    const tern_format_info *info = tern_format_describe(kernel->format);
    const size_t bytes = 2 * n * (HEAD_DIM / info->block_elements * info->block_bytes);
    c.shape = (tern_bench_shape){
        .tokens = 1, .n = n, .copies = tern_memory_bytes() / (size_t)threads / bytes};
    return c;
}

/* Attention of one token over contexts of three lengths; from the cache also of several tokens. */
static size_t attend_cases(const tern_kernel_row *kernel, tern_bench_case *out) {
    size_t n = 0;
    out[n] = cache_case(kernel);
    out[n++].shape.tokens = ATTEND_TOKENS;
    out[n++] = context_case(kernel, 512, 1);
    out[n++] = context_case(kernel, 2048, 1);
    out[n++] = context_case(kernel, 4096, 1);
    out[n++] = context_case(kernel, 4096, TERN_ROOF_THREADS);
    return n;
}

static void describe(tern_bench_case *c) {
    const tern_kernel_row *kernel = c->kernel;
    const tern_format_info *format = tern_format_describe(kernel->format);
    const char *level = c->level == TERN_LEVEL_MEMORY ? "memory" : "cache";
    const size_t rows = c->shape.rows * (size_t)c->threads;
    char shape[64];
    if (is_matmul(kernel) && c->shape.tokens > 1 && c->shape.tokens < PREFILL_TOKENS)
        (void)snprintf(shape, sizeof shape, "%zux%zux%zu", rows, c->shape.cols, c->shape.tokens);
    else if (is_matmul(kernel) || kernel->op == TERN_OP_GEMV_SPARSE)
        (void)snprintf(shape, sizeof shape, "%zux%zu", rows, c->shape.cols);
    else if (c->shape.tokens > 1)
        (void)snprintf(shape, sizeof shape, "%zux%zu", c->shape.n, c->shape.tokens);
    else
        (void)snprintf(shape, sizeof shape, "%zu", c->shape.n);
    (void)snprintf(c->name, sizeof c->name, "%s/%s/%s", kernel->name, level, shape);
    (void)snprintf(c->label, sizeof c->label,
                   "op=%s format=%s isa=%s shape=%s tokens=%zu level=%s threads=%d unit=%s",
                   tern_op_name(kernel->op), format != NULL ? format->name : "none", kernel->isa,
                   shape, c->shape.tokens, tern_level_name(c->level), c->threads,
                   tern_unit_name(tern_unit_of_kernel(kernel->name)));
}

/* Products from memory, of three shapes; gemv also with two threads, gemm also with few tokens. */
static size_t matmul_cases(const tern_kernel_row *kernel, tern_bench_case *out) {
    const bool gemm = kernel->op == TERN_OP_GEMM;
    size_t n = 0;
    for (size_t shape = 0; shape < MEMORY_SHAPES; shape++)
        out[n++] = memory_case(kernel, shape, gemm ? PREFILL_TOKENS : 1, 1);
    if (!gemm)
        out[n++] = memory_case(kernel, 1, 1, TERN_ROOF_THREADS);
    for (size_t i = 0; gemm && i < FEW_TOKENS; i++)
        out[n++] = memory_case(kernel, 1, few_tokens[i], 1);
    return n;
}

/*
 * Every product and attention kernel of the vector sets also runs from memory. A kernel that needs
 * no feature is the fallback that every machine has: arithmetic limits its speed from memory as
 * from the cache, and its benchmarks would take minutes.
 */
static size_t cases_of(const tern_kernel_row *kernel, tern_bench_case *out) {
    size_t n = 0;
    out[n++] = cache_case(kernel);
    if (is_matmul(kernel) && kernel->needs != 0)
        n += matmul_cases(kernel, out + n);
    if (kernel->op == TERN_OP_ATTEND && kernel->needs != 0)
        n += attend_cases(kernel, out + n);
    for (size_t i = 0; i < n; i++)
        describe(&out[i]);
    return n;
}

tern_bench_case *tern_bench_cases(uint64_t features) {
    size_t count = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    tern_bench_case *cases = calloc(count * CASES_PER_ROW + 1, sizeof *cases);
    size_t n = 0;
    for (size_t i = 0; cases != NULL && i < count; i++)
        if (kernels[i].fn.any != NULL && (kernels[i].needs & ~features) == 0)
            n += cases_of(&kernels[i], cases + n);
    return cases;
}
