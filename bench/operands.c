/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/operands_internal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cache_row.h"
#include "kernels/iebs.h"
#include "kernels/reference.h"
#include "kernels/reference_fill.h"

static float uniform(uint64_t *state) {
    return (float)((int64_t)(tern_ref_random(state) >> 40) - (1 << 23)) * 0x1p-23f;
}

void *tern_bench_zeroed(size_t bytes) {
    const size_t rounded = (bytes + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN;
    void *memory = aligned_alloc(TERN_ALIGN, rounded);
    if (memory != NULL)
        memset(memory, 0, rounded);
    return memory;
}

bool tern_bench_is_matmul(const tern_bench_operands *o) {
    return o->kernel->op == TERN_OP_GEMV || o->kernel->op == TERN_OP_GEMM;
}

float tern_bench_scale(void) {
    return 0x1p-7f;
}

static void fill_weights(tern_bench_operands *o, size_t rows, size_t cols) {
    tern_ref_fill_weights(o->kernel->format, TERN_REF_FILL_RANDOM, rows, cols, tern_bench_scale(),
                          &o->random, o->file);
}

/* A matrix in blocks of the usual size, all of them stored. */
static tern_iebs all_blocks(const tern_kernel_row *kernel, size_t rows, size_t cols) {
    tern_iebs m = {.format = kernel->format,
                   .rows = (uint32_t)rows,
                   .cols = (uint32_t)cols,
                   .block_rows = 16,
                   .block_cols = 64,
                   .scale = 1.0f};
    m.blocks = (uint32_t)(tern_iebs_block_rows(&m) * tern_iebs_block_columns(&m));
    return m;
}

static bool is_sparse(const tern_kernel_row *kernel) {
    return tern_layout_sparse_format(kernel->layout) != TERN_FORMAT_NONE;
}

/* Bytes of a packed or sparse matrix; 0: the row reads the bytes of the file. */
static size_t packed_bytes(const tern_kernel_row *kernel, size_t rows, size_t cols) {
    const tern_iebs blocks = all_blocks(kernel, rows, cols);
    return is_sparse(kernel) ? (size_t)tern_iebs_bytes(&blocks)
                             : tern_packed_bytes(kernel->layout, rows, cols);
}

static bool pack_blocks(tern_bench_operands *o) {
    const size_t rows = o->shape.rows, cols = o->shape.cols;
    const tern_iebs m = all_blocks(o->kernel, rows, cols);
    bool *stored = malloc(m.blocks);
    float *weights = malloc(rows * cols * sizeof *weights);
    const bool memory = stored != NULL && weights != NULL;
    if (memory) {
        memset(stored, true, m.blocks);
        for (size_t r = 0; r < rows; r++)
            tern_dequantize_row(o->kernel->format, o->file, cols, r, 1.0f, weights + r * cols);
        tern_iebs_write(&m, stored, weights, o->packed);
    }
    free(weights);
    free(stored);
    return memory;
}

static bool pack_matrix(tern_bench_operands *o) {
    const tern_bench_shape *s = &o->shape;
    return is_sparse(o->kernel)
               ? pack_blocks(o)
               : tern_pack_rows(o->kernel->format, o->file, s->rows, s->cols, o->kernel->layout, 0,
                                s->rows, o->packed, NULL) == TERN_OK;
}

size_t tern_bench_matrix_bytes(const tern_kernel_row *kernel, size_t rows, size_t cols) {
    const size_t packed = packed_bytes(kernel, rows, cols);
    uint64_t file = 0;
    if (packed == 0 && tern_format_bytes(kernel->format, rows, cols, &file) != TERN_OK)
        return 0;
    return packed ? packed : (size_t)file;
}

static bool make_matrix(tern_bench_operands *o) {
    const tern_bench_shape *s = &o->shape;
    uint64_t bytes = 0;
    if (tern_format_bytes(o->kernel->format, s->rows, s->cols, &bytes) != TERN_OK)
        return false;
    o->file_bytes = (size_t)bytes;
    o->file = tern_bench_zeroed(o->file_bytes);
    const size_t packed = packed_bytes(o->kernel, s->rows, s->cols);
    o->packed = tern_bench_zeroed(packed);
    if (o->file == NULL || o->packed == NULL)
        return false;
    fill_weights(o, s->rows, s->cols);
    o->matrix = (tern_matrix){.format = o->kernel->format,
                              .layout = o->kernel->layout,
                              .rows = s->rows,
                              .cols = s->cols,
                              .scale = tern_bench_scale(),
                              .data = packed ? o->packed : o->file};
    o->matrix_bytes = tern_bench_matrix_bytes(o->kernel, s->rows, s->cols);
    return packed == 0 || pack_matrix(o);
}

static size_t copy_stride(const tern_bench_operands *o) {
    return (o->matrix_bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN;
}

/*
 * Copies the same weights, or keys and values, to several places. The cost of a kernel does not
 * depend on their values.
 */
static bool make_copies(tern_bench_operands *o) {
    if (o->shape.copies < 2 || o->matrix.data == NULL)
        return true;
    if (o->shape.room == NULL)
        o->own_room = aligned_alloc(TERN_ALIGN, o->shape.copies * copy_stride(o));
    o->copies = o->shape.room != NULL ? o->shape.room : o->own_room;
    if (o->copies == NULL)
        return false;
    for (size_t i = 0; i < o->shape.copies; i++)
        memcpy(o->copies + i * copy_stride(o), o->matrix.data, o->matrix_bytes);
    return true;
}

static void take_next_copy(tern_bench_operands *o) {
    if (o->copies == NULL)
        return;
    o->matrix.data = o->copies + o->next_copy * copy_stride(o);
    o->next_copy = (o->next_copy + 1) % o->shape.copies;
}

/* Quantizes in0[tokens][cols] by the reference. */
static void quantize_input(tern_bench_operands *o, size_t q_stride, size_t blocks) {
    for (size_t t = 0; t < o->shape.tokens; t++) {
        const float *x = o->in0 + t * o->shape.cols;
        if (tern_layout_input(o->kernel->layout) == TERN_INPUT_TOKEN)
            tern_ref_quantize_token(x, o->shape.cols, o->q + t * q_stride, o->d + t, o->sum + t);
        else
            tern_ref_quantize_block(x, o->shape.cols, o->q + t * q_stride, o->d + t * blocks,
                                    o->sum + t * blocks);
    }
    o->x = (tern_activations){.cols = o->shape.cols,
                              .x = o->in0,
                              .x_stride = o->shape.cols,
                              .q = o->q,
                              .q_stride = q_stride,
                              .s = o->d,
                              .sum = o->sum,
                              .d = o->d,
                              .block_sum = o->sum,
                              .d_stride = blocks};
}

/* Sets the sizes of in0 (and in1) and out, in floats, for the operation. */
static void float_counts(tern_bench_operands *o) {
    const tern_bench_shape *s = &o->shape;
    o->in_count = o->out_count = s->n;
    if (tern_bench_is_matmul(o)) {
        o->in_count = s->tokens * s->cols;
        o->out_count = s->tokens * s->rows;
    } else if (o->kernel->op == TERN_OP_ATTEND) {
        o->in_count = s->n * ATTEND_DIM; /* keys in in0, values in in1 */
        o->out_count = s->tokens * ATTEND_GROUP * ATTEND_DIM;
    } else if (o->kernel->op == TERN_OP_GEMV_SPARSE) {
        o->in_count = s->cols; /* in1: the bias; requires cols >= rows */
        o->out_count = s->rows;
    } else if (o->kernel->op == TERN_OP_EMBED) {
        o->in_count = s->n;
    }
}

/* Stores keys as rows of the cache, then values, in one operand like a matrix. */
static bool make_cache(tern_bench_operands *o) {
    const size_t row_bytes = tern_cache_row_bytes(o->kernel->format, ATTEND_DIM);
    const size_t n = o->shape.n;
    o->matrix_bytes = 2 * n * row_bytes;
    uint8_t *rows = o->packed = tern_bench_zeroed(o->matrix_bytes);
    const size_t heads = o->shape.tokens * ATTEND_GROUP;
    o->queries = tern_bench_zeroed(heads * ATTEND_DIM * sizeof(float));
    o->states = tern_bench_zeroed(tern_attend_state_bytes(heads, ATTEND_DIM));
    o->scratch = tern_bench_zeroed(tern_attend_scratch_bytes(heads, ATTEND_DIM));
    if (rows == NULL || o->queries == NULL || o->states == NULL || o->scratch == NULL)
        return false;
    for (size_t i = 0; i < heads * ATTEND_DIM; i++)
        o->queries[i] = uniform(&o->random);
    for (size_t j = 0; j < n; j++) {
        tern_ref_store(o->kernel->format, o->in0 + j * ATTEND_DIM, ATTEND_DIM,
                       rows + j * row_bytes);
        tern_ref_store(o->kernel->format, o->in1 + j * ATTEND_DIM, ATTEND_DIM,
                       rows + (n + j) * row_bytes);
    }
    o->matrix.data = rows;
    return true;
}

/* Makes a sparse matrix that stores every fourth block of 16 x 16. */
static bool make_sparse(tern_bench_operands *o) {
    enum { SIDE = 16, KEPT = 4 };
    const size_t rows = o->shape.rows / SIDE;
    const size_t blocks = rows * (o->shape.cols / SIDE / KEPT);
    o->matrix_bytes = blocks * SIDE * SIDE * sizeof(float);
    float *const weights = o->packed = tern_bench_zeroed(o->matrix_bytes);
    uint32_t *const start = o->sparse_index =
        tern_bench_zeroed((rows + 1 + blocks) * sizeof *start);
    if (weights == NULL || start == NULL)
        return false;
    uint32_t *const column = start + rows + 1;
    for (size_t i = 0; i <= rows; i++)
        start[i] = (uint32_t)(blocks / rows * i);
    for (size_t b = 0; b < blocks; b++)
        column[b] = (uint32_t)(b % (blocks / rows) * KEPT);
    for (size_t i = 0; i < blocks * SIDE * SIDE; i++)
        weights[i] = uniform(&o->random);
    o->sparse = (tern_block_sparse){.rows = o->shape.rows,
                                    .cols = o->shape.cols,
                                    .start = start,
                                    .column = column,
                                    .blocks = weights,
                                    .bias = o->in1};
    return true;
}

static bool make_floats(tern_bench_operands *o) {
    float_counts(o);
    o->in0 = tern_bench_zeroed(o->in_count * sizeof(float));
    o->in1 = tern_bench_zeroed(o->in_count * sizeof(float));
    o->out = tern_bench_zeroed(o->out_count * sizeof(float));
    o->expected = tern_bench_zeroed(o->out_count * sizeof(float));
    if (o->in0 == NULL || o->in1 == NULL || o->out == NULL || o->expected == NULL)
        return false;
    for (size_t i = 0; i < o->in_count; i++) {
        o->in0[i] = uniform(&o->random);
        o->in1[i] = uniform(&o->random);
    }
    return true;
}

static bool make_quantized(tern_bench_operands *o) {
    const size_t cols = tern_bench_is_matmul(o) ? o->shape.cols : o->shape.n;
    const size_t tokens = tern_bench_is_matmul(o) ? o->shape.tokens : 1;
    const size_t q_stride = (cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const size_t blocks = (cols + TERN_BLOCK - 1) / TERN_BLOCK;
    o->q_bytes = tokens * q_stride;
    o->scale_count = tokens * blocks;
    o->q = tern_bench_zeroed(o->q_bytes);
    o->d = tern_bench_zeroed(o->scale_count * sizeof *o->d);
    o->sum = tern_bench_zeroed(o->scale_count * sizeof *o->sum);
    if (o->q == NULL || o->d == NULL || o->sum == NULL)
        return false;
    if (tern_bench_is_matmul(o))
        quantize_input(o, q_stride, blocks);
    return true;
}

/* Makes one embedding row in the file's layout. */
static bool make_row(tern_bench_operands *o) {
    uint64_t bytes = 0;
    if (tern_format_bytes(o->kernel->format, 1, o->shape.n, &bytes) != TERN_OK)
        return false;
    o->file_bytes = (size_t)bytes;
    o->file = tern_bench_zeroed(o->file_bytes);
    if (o->file != NULL)
        fill_weights(o, 1, o->shape.n);
    return o->file != NULL;
}

tern_bench_operands *tern_bench_operands_new(const tern_kernel_row *kernel,
                                             const tern_bench_shape *shape) {
    tern_bench_operands *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->kernel = kernel;
    o->shape = *shape;
    o->random = 42;
    if (make_floats(o) && make_quantized(o) && (!tern_bench_is_matmul(o) || make_matrix(o)) &&
        (kernel->op != TERN_OP_ATTEND || make_cache(o)) && make_copies(o) &&
        (kernel->op != TERN_OP_EMBED || make_row(o)) &&
        (kernel->op != TERN_OP_GEMV_SPARSE || make_sparse(o)))
        return o;
    tern_bench_operands_free(o);
    return NULL;
}

void tern_bench_operands_free(tern_bench_operands *o) {
    if (o == NULL)
        return;
    void *const all[] = {o->sparse_index, o->file,     o->packed,   o->in0,    o->in1,
                         o->out,          o->own_room, o->expected, o->states, o->scratch,
                         o->queries,      o->q,        o->d,        o->sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(o);
}

tern_attend_args tern_bench_attention(tern_bench_operands *o) {
    const tern_bench_shape *s = &o->shape;
    return (tern_attend_args){.heads = {.positions = s->n - s->tokens + 1,
                                        .tokens = s->tokens,
                                        .group = ATTEND_GROUP,
                                        .dim = ATTEND_DIM},
                              .q = o->queries,
                              .q_stride = ATTEND_GROUP * ATTEND_DIM,
                              .k = o->matrix.data,
                              .v = (const uint8_t *)o->matrix.data + o->matrix_bytes / 2,
                              .page_stride = tern_cache_page_bytes(o->kernel->format, ATTEND_DIM),
                              .scale = 1.0f / sqrtf((float)ATTEND_DIM),
                              .scratch = o->scratch};
}

tern_tile tern_bench_whole(const tern_bench_operands *o) {
    return (tern_tile){.t0 = 0, .t1 = o->shape.tokens, .r0 = 0, .r1 = o->shape.rows};
}

/* Operations that work in place get a fresh copy of their input in out. */
void tern_bench_restore(tern_bench_operands *o, float *out) {
    const tern_op op = o->kernel->op;
    if (op == TERN_OP_ROPE_NORM || op == TERN_OP_ROPE_NEOX || op == TERN_OP_SOFTMAX ||
        op == TERN_OP_ADD)
        memcpy(out, o->in0, o->out_count * sizeof(float));
}

/* Calls a product or attention, the operations whose matrix or cache has several copies. */
static void call_with_copy(tern_bench_operands *o) {
    const tern_tile tile = tern_bench_whole(o);
    take_next_copy(o);
    if (tern_bench_is_matmul(o)) {
        o->kernel->fn.matmul(&o->matrix, &o->x, &tile, o->out, o->shape.rows);
        return;
    }
    const tern_attend_args args = tern_bench_attention(o);
    tern_attend_all(o->kernel, &args, o->states, o->out, ATTEND_GROUP * ATTEND_DIM);
}

void tern_bench_call(tern_bench_operands *o) {
    const size_t n = o->shape.n;
    tern_bench_restore(o, o->out);
    switch (o->kernel->op) {
    case TERN_OP_GEMV:
    case TERN_OP_GEMM:
    case TERN_OP_ATTEND:
        call_with_copy(o);
        break;
    case TERN_OP_QUANTIZE_TOKEN:
        o->kernel->fn.quantize_token(o->in0, n, o->q, o->d, o->sum);
        break;
    case TERN_OP_QUANTIZE_BLOCK:
        o->kernel->fn.quantize_block(o->in0, n, o->q, o->d, o->sum);
        break;
    case TERN_OP_RMSNORM:
        o->kernel->fn.rmsnorm(o->in0, o->in1, n, 1e-5f, o->out);
        break;
    case TERN_OP_ROPE_NORM:
    case TERN_OP_ROPE_NEOX:
        o->kernel->fn.rope(o->out, o->in1, o->in1 + n / 2, n / 2);
        break;
    case TERN_OP_SOFTMAX:
        o->kernel->fn.softmax(o->out, n);
        break;
    case TERN_OP_GATE_SILU:
    case TERN_OP_GATE_RELU2:
    case TERN_OP_GATE_GELU:
    case TERN_OP_GATE_QUICK:
        o->kernel->fn.gate(o->in0, o->in1, n, o->out);
        break;
    case TERN_OP_LAYERNORM:
        o->kernel->fn.layernorm(o->in0, o->in1, o->in1, n, 1e-5f, o->out);
        break;
    case TERN_OP_BIAS_RELU:
    case TERN_OP_BIAS_RELU2:
    case TERN_OP_BIAS_SILU:
    case TERN_OP_BIAS_GELU:
    case TERN_OP_BIAS_TANH:
        o->kernel->fn.bias(o->in0, o->in1, n, o->out);
        break;
    case TERN_OP_ADD:
        o->kernel->fn.add(o->out, o->in1, n);
        break;
    case TERN_OP_EMBED:
        o->kernel->fn.embed(o->file, n, o->out);
        break;
    case TERN_OP_STORE:
        o->kernel->fn.store(o->in0, n, o->out);
        break;
    case TERN_OP_HADAMARD:
        o->kernel->fn.hadamard(o->in0, NULL, NULL, n, tern_bench_hadamard_block(n), o->out);
        break;
    case TERN_OP_GEMV_SPARSE:
        o->kernel->fn.gemv_sparse(&o->sparse, o->in0, 0, o->shape.rows, o->out);
        break;
    default: /* tanh, and roundings to another precision, whose functions have the same type */
        o->kernel->fn.tanh(o->in0, n, o->out);
    }
}

double tern_bench_bytes(const tern_bench_operands *o) {
    if (tern_bench_is_matmul(o))
        return (double)o->matrix_bytes;
    if (o->kernel->op == TERN_OP_EMBED)
        return (double)o->file_bytes;
    if (o->kernel->op == TERN_OP_ATTEND || o->kernel->op == TERN_OP_GEMV_SPARSE)
        return (double)o->matrix_bytes;
    return (double)(o->in_count * sizeof(float));
}

double tern_bench_weights(const tern_bench_operands *o) {
    return tern_bench_is_matmul(o) ? (double)o->shape.rows * (double)o->shape.cols : 0.0;
}

double tern_bench_macs(const tern_bench_operands *o) {
    if (tern_bench_is_matmul(o))
        return tern_bench_weights(o) * (double)o->shape.tokens;
    if (o->kernel->op == TERN_OP_GEMV_SPARSE)
        return (double)(o->matrix_bytes / sizeof(float));
    if (o->kernel->op != TERN_OP_ATTEND)
        return 0.0;
    const double tokens = (double)o->shape.tokens; /* each sees one position less than the next */
    return 2.0 * ATTEND_GROUP * ATTEND_DIM * tokens * ((double)o->shape.n - (tokens - 1.0) / 2.0);
}
