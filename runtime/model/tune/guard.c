/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/guard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/select.h"
#include "kernels/cache_row.h"
#include "kernels/rounding.h"

tern_guard tern_guard_new(uint64_t mask) {
    tern_guard guard = {.mask = mask};
    guard.table = tern_kernel_rows(&guard.count);
    return guard;
}

/* ---- the record ---------------------------------------------------------------------------- */

static bool is_refused(const tern_guard *g, const tern_kernel_row *kernel) {
    for (size_t i = 0; i < g->n_refused; i++)
        if (g->refused[i].row == kernel)
            return true;
    return false;
}

static bool is_sound(const tern_guard *g, const tern_kernel_row *kernel) {
    for (size_t i = 0; i < g->n_sound; i++)
        if (g->sound[i] == kernel)
            return true;
    return false;
}

/* If the list is full, the kernel is only checked again at its next use. */
static const tern_kernel_row *accept(tern_guard *g, const tern_kernel_row *kernel) {
    if (g->n_sound < TERN_GUARD_ROWS)
        g->sound[g->n_sound++] = kernel;
    return kernel;
}

static void refuse(tern_guard *g, const tern_kernel_row *kernel, const char *where) {
    tern_kernel_refusal *r = &g->refused[g->n_refused++];
    r->row = kernel;
    snprintf(r->where, sizeof r->where, "%s", where);
}

/* The first kernel for the use in the table from `kernel` on. */
static const tern_kernel_row *select_from(const tern_guard *g, tern_kernel_use use,
                                          const tern_kernel_row *kernel) {
    const tern_kernel_row *end = g->table + g->count;
    while ((kernel = tern_select_kernel(kernel, (size_t)(end - kernel), g->mask, use)) != NULL &&
           is_refused(g, kernel))
        kernel++;
    return kernel;
}

const tern_kernel_row *tern_guard_select(const tern_guard *g, tern_kernel_use use) {
    return select_from(g, use, g->table);
}

const tern_kernel_row *tern_guard_next(const tern_guard *g, tern_kernel_use use,
                                       const tern_kernel_row *kernel) {
    return select_from(g, use, kernel + 1);
}

static const tern_kernel_row *scalar_sibling(const tern_guard *g, tern_kernel_use use) {
    return tern_select_kernel(g->table, g->count, 0, use);
}

/* ---- made-up numbers ----------------------------------------------------------------------- */

/* Fills x with numbers that are uniform in [-1, 1), with an outlier now and then, as activations
 * have them. */
static void make_floats(float *x, size_t n) {
    uint32_t state = 20240229;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int32_t)state >> 8) * 0x1p-23f;
        if (state >> 26 == 0)
            x[i] *= 24.0f;
    }
}

/* True for the same numbers, or both NaN: sign and payload of a NaN are left open
 * (docs/numerics.md). */
static bool same_floats(const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* ---- products ------------------------------------------------------------------------------ */

/* Operands of one check, in a single allocation. */
typedef struct trial {
    void *memory;
    tern_activations x;
    size_t tokens, rows;
    float *got, *expected; /* [tokens][rows] */
} trial;

static size_t aligned(size_t bytes) {
    return (bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN;
}

static bool trial_new(trial *t, const tern_matrix *w, size_t tokens) {
    const size_t q_stride = (w->cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    t->tokens = tokens;
    t->rows = w->rows < TERN_ROW_GROUP ? w->rows : TERN_ROW_GROUP;
    const size_t sizes[] = {tokens * q_stride,
                            tokens * w->cols * sizeof(float),
                            tokens * blocks * sizeof(float),
                            tokens * blocks * sizeof(int32_t),
                            tokens * t->rows * sizeof(float),
                            tokens * t->rows * sizeof(float)};
    size_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        total += aligned(sizes[i]);
    uint8_t *at = t->memory = aligned_alloc(TERN_ALIGN, total);
    if (at == NULL)
        return false;
    memset(at, 0, total);
    int8_t *q = (int8_t *)at;
    float *x = (float *)(at += aligned(sizes[0]));
    float *d = (float *)(at += aligned(sizes[1]));
    int32_t *sum = (int32_t *)(at += aligned(sizes[2]));
    t->got = (float *)(at += aligned(sizes[3]));
    t->expected = (float *)(at + aligned(sizes[4]));
    make_floats(x, tokens * w->cols);
    for (size_t i = 0; i < tokens; i++) {
        const float *row = x + i * w->cols;
        if (tern_layout_input(w->layout) == TERN_INPUT_TOKEN)
            tern_kernel_scalar(TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE)
                ->fn.quantize_token(row, w->cols, q + i * q_stride, d + i, sum + i);
        else
            tern_kernel_scalar(TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE)
                ->fn.quantize_block(row, w->cols, q + i * q_stride, d + i * blocks,
                                    sum + i * blocks);
    }
    t->x = (tern_activations){.cols = w->cols,
                              .x = x,
                              .x_stride = w->cols,
                              .q = q,
                              .q_stride = q_stride,
                              .s = d,
                              .sum = sum,
                              .d = d,
                              .block_sum = sum,
                              .d_stride = blocks};
    return true;
}

static bool same_product(const tern_kernel_row *kernel, const tern_kernel_row *scalar,
                         const tern_matrix *w, size_t tokens, bool *ran) {
    trial t;
    *ran = trial_new(&t, w, tokens);
    if (!*ran)
        return false;
    const tern_tile tile = {0, t.tokens, 0, t.rows};
    kernel->fn.matmul(w, &t.x, &tile, t.got, t.rows);
    scalar->fn.matmul(w, &t.x, &tile, t.expected, t.rows);
    const bool right = same_floats(t.got, t.expected, t.tokens * t.rows);
    free(t.memory);
    return right;
}

/*
 * Tries a token more than a tile has; for gemm also so many that it may take them in another order.
 */
static bool product_is_right(const tern_kernel_row *kernel, const tern_kernel_row *scalar,
                             const tern_matrix *w, bool *ran) {
    return same_product(kernel, scalar, w, (size_t)kernel->tokens_tile + 1, ran) &&
           (kernel->op != TERN_OP_GEMM ||
            same_product(kernel, scalar, w, TERN_MANY_TOKENS + 1, ran));
}

/* The next kernel to try: `preferred`, unless there is none or it was refused. */
static const tern_kernel_row *next_product(const tern_guard *g, tern_kernel_use use,
                                           const tern_kernel_row *preferred) {
    return preferred != NULL && !is_refused(g, preferred) ? preferred : tern_guard_select(g, use);
}

const tern_kernel_row *tern_guard_product(tern_guard *g, tern_op op, const tern_matrix *w,
                                          const tern_kernel_row *preferred, const char *where) {
    const tern_kernel_use use = {op, w->format, w->layout};
    const tern_kernel_row *scalar = scalar_sibling(g, use);
    const tern_kernel_row *kernel = next_product(g, use, preferred);
    while (kernel != NULL && kernel != scalar && !is_sound(g, kernel)) {
        bool ran = true;
        if (product_is_right(kernel, scalar, w, &ran))
            return accept(g, kernel);
        if (!ran || g->n_refused == TERN_GUARD_REFUSALS) {
            g->no_memory = !ran;
            return NULL;
        }
        refuse(g, kernel, where);
        kernel = next_product(g, use, preferred);
    }
    return kernel;
}

/* ---- other operations ---------------------------------------------------------------------- */

/* SAMPLE is not a multiple of any vector's length. POSITIONS are more than one attention chunk. */
enum { SAMPLE = 77, POSITIONS = TERN_ATTEND_CHUNK + 3, DIM = 24, GROUP_MAX = 22 };
enum { ROW_MAX = 1536 }; /* elements of an embedding row: whole blocks, fewer than `floats` */

typedef struct outcome {
    _Alignas(TERN_ALIGN) float floats[POSITIONS * DIM];
    _Alignas(TERN_ALIGN) int8_t q[2 * TERN_Q_PAD];
    int32_t sums[4];
} outcome;

/* Operands and results of checks, in a single allocation: stacks may be as small as 96 KiB. */
typedef struct sample {
    float a[POSITIONS * DIM];
    float b[POSITIONS * DIM];
    const void *row; /* EMBED */
    size_t n;
    outcome got, expected;
    /* ATTEND: two pages of keys and two of values. No format has longer rows than F32. */
    _Alignas(TERN_ALIGN) uint8_t cache[2][2 * TERN_ATTEND_CHUNK * DIM * sizeof(float)];
    _Alignas(TERN_ALIGN) uint8_t states[49152];
} sample;

/* Attends over two chunks, whose states are merged once by `chunks` and once by `merge`. The second
 * chunk's page stands before the first one's. */
static void run_attend(const tern_kernel_row *kernel, size_t group, sample *in, float *out) {
    static const uint32_t pages[] = {1, 0};
    const size_t state_bytes = tern_attend_state_bytes(group, DIM);
    const tern_attend_functions *f = &kernel->fn.attend;
    const tern_attend_args args = {
        .heads = {.positions = POSITIONS, .tokens = 1, .group = group, .dim = DIM},
        .q = in->b,
        .k = in->cache[0],
        .v = in->cache[1],
        .pages = pages,
        .page_stride = tern_cache_page_bytes(kernel->format, DIM),
        .scale = 0.25f,
        .scratch = in->states + 2 * state_bytes};
    tern_attend_all(kernel, &args, in->states, out, group * DIM);
    f->chunks(&args, 0, 2, in->states, state_bytes);
    f->merge(&args.heads, 1, 2, in->states + state_bytes, state_bytes, in->states);
    f->finish(&args.heads, in->states, out + group * DIM, group * DIM);
}

static void fill_cache(tern_format format, sample *in) {
    const tern_kernel_row *store = tern_kernel_scalar(TERN_OP_STORE, format);
    const size_t page_bytes = tern_cache_page_bytes(format, DIM);
    const size_t row_bytes = tern_cache_row_bytes(format, DIM);
    for (size_t j = 0; j < POSITIONS; j++) {
        const size_t at =
            (size_t)(j < TERN_ATTEND_CHUNK) * page_bytes + j % TERN_ATTEND_CHUNK * row_bytes;
        store->fn.store(in->a + j * DIM, DIM, in->cache[0] + at);
        store->fn.store(in->b + j * DIM, DIM, in->cache[1] + at);
    }
}

/* Tries few heads, and so many that kernels with several ways to take heads use each of these.
 * False: the heads need more memory than the sample has. */
static bool try_attend(const tern_kernel_row *kernel, sample *in, outcome *out) {
    enum { GROUP = 2 };
    if (2 * tern_attend_state_bytes(GROUP_MAX, DIM) + tern_attend_scratch_bytes(GROUP_MAX, DIM) >
        sizeof in->states)
        return false;
    memset(in->states, 0, sizeof in->states);
    fill_cache(kernel->format, in);
    run_attend(kernel, GROUP, in, out->floats);
    run_attend(kernel, GROUP_MAX, in, out->floats + 2 * GROUP * DIM);
    return true;
}

/* Runs blocks of whole vectors, then some of another width; both end past the matrix's edges. */
static void run_gemv_sparse(const tern_kernel_row *kernel, const sample *in, outcome *out) {
    static const uint32_t start[] = {0, 3, 4, 5}, column[] = {0, 2, 4, 1, 4};
    tern_block_sparse w = {.rows = 35,
                           .cols = SAMPLE,
                           .start = start,
                           .column = column,
                           .blocks = in->b,
                           .bias = in->b + 1};
    kernel->fn.gemv_sparse(&w, in->a, 0, w.rows, out->floats);
    w.bias = NULL;
    w.block_cols = 18;
    kernel->fn.gemv_sparse(&w, in->a, 0, w.rows, out->floats + w.rows);
}

/* Runs the kernel; false when this file does not know how to. */
static bool run_operation(const tern_kernel_row *kernel, sample *in, outcome *out) {
    memcpy(out->floats, in->a, sizeof in->a);
    switch (kernel->op) {
    case TERN_OP_QUANTIZE_TOKEN:
        kernel->fn.quantize_token(in->a, SAMPLE, out->q, out->floats, out->sums);
        return true;
    case TERN_OP_QUANTIZE_BLOCK:
        kernel->fn.quantize_block(in->a, SAMPLE, out->q, out->floats, out->sums);
        return true;
    case TERN_OP_RMSNORM:
        kernel->fn.rmsnorm(in->a, in->b, SAMPLE, 1e-5f, out->floats);
        return true;
    case TERN_OP_LAYERNORM:
        kernel->fn.layernorm(in->a, in->b, in->b + 1, SAMPLE, 1e-5f, out->floats);
        return true;
    case TERN_OP_ROPE_NORM:
    case TERN_OP_ROPE_NEOX:
        kernel->fn.rope(out->floats, in->b, in->b + SAMPLE, SAMPLE / 2);
        return true;
    case TERN_OP_ATTEND:
        return try_attend(kernel, in, out);
    case TERN_OP_SOFTMAX:
        kernel->fn.softmax(out->floats, SAMPLE);
        return true;
    case TERN_OP_GATE_SILU:
    case TERN_OP_GATE_RELU2:
    case TERN_OP_GATE_GELU:
    case TERN_OP_GATE_QUICK:
        kernel->fn.gate(in->a, in->b, SAMPLE, out->floats);
        return true;
    case TERN_OP_BIAS_RELU:
    case TERN_OP_BIAS_RELU2:
    case TERN_OP_BIAS_SILU:
    case TERN_OP_BIAS_GELU:
    case TERN_OP_BIAS_TANH:
        kernel->fn.bias(in->a, in->b, SAMPLE, out->floats);
        return true;
    case TERN_OP_ADD:
        kernel->fn.add(out->floats, in->b, SAMPLE);
        return true;
    case TERN_OP_EMBED:
        kernel->fn.embed(in->row, in->n, out->floats);
        return true;
    case TERN_OP_STORE:
        kernel->fn.store(in->a, SAMPLE, out->floats);
        return true;
    case TERN_OP_GEMV_SPARSE:
        run_gemv_sparse(kernel, in, out);
        return true;
    case TERN_OP_HADAMARD:
        kernel->fn.hadamard(in->a, in->b, in->b + 1, 1024, 512, out->floats);
        return true;
    default:
        if (kernel->op != TERN_OP_TANH && !tern_op_rounds(kernel->op))
            return false;
        kernel->fn.tanh(in->a, SAMPLE, out->floats); /* and functions of the same shape */
        return true;
    }
}

static bool operation_is_right(const tern_kernel_row *kernel, const tern_kernel_row *scalar,
                               sample *in) {
    outcome *got = &in->got, *expected = &in->expected;
    memset(got, 0, sizeof *got);
    memset(expected, 0, sizeof *expected);
    if (!run_operation(kernel, in, got) || !run_operation(scalar, in, expected))
        return false; /* an operation that cannot be tried is not trusted */
    return same_floats(got->floats, expected->floats, POSITIONS * DIM) &&
           memcmp(got->q, expected->q, sizeof got->q) == 0 &&
           memcmp(got->sums, expected->sums, sizeof got->sums) == 0;
}

/* The first kernel of the table that is the scalar one or gives its bits; others are refused. */
static const tern_kernel_row *first_sound(tern_guard *g, tern_kernel_use use,
                                          const tern_kernel_row *scalar, sample *in) {
    const tern_kernel_row *kernel;
    while ((kernel = tern_guard_select(g, use)) != NULL && kernel != scalar &&
           !is_sound(g, kernel)) {
        if (operation_is_right(kernel, scalar, in))
            return accept(g, kernel);
        if (g->n_refused == TERN_GUARD_REFUSALS)
            return NULL;
        refuse(g, kernel, tern_op_name(use.op));
    }
    return kernel;
}

const tern_kernel_row *tern_guard_operation(tern_guard *g, tern_op op, tern_format format,
                                            const void *row_data, size_t n) {
    const tern_layout layout = format == TERN_FORMAT_NONE ? TERN_LAYOUT_NONE : TERN_LAYOUT_ROWS;
    const tern_kernel_use use = {op, format, layout};
    sample *in = aligned_alloc(TERN_ALIGN, aligned(sizeof *in));
    g->no_memory = in == NULL;
    if (in == NULL)
        return NULL;
    in->row = row_data;
    in->n = n < ROW_MAX ? n : ROW_MAX;
    make_floats(in->a, POSITIONS * DIM);
    memcpy(in->b, in->a + 1, sizeof in->b - sizeof *in->b);
    in->b[POSITIONS * DIM - 1] = 0;
    const tern_kernel_row *kernel = first_sound(g, use, scalar_sibling(g, use), in);
    free(in);
    return kernel;
}
