/* SPDX-License-Identifier: Apache-2.0 */

/* Checks the answer of each row against the reference's result for the same operands. */

#include <stdlib.h>
#include <string.h>

#include "bench/operands_internal.h"
#include "kernels/reference.h"
#include "kernels/rounding.h"

/* Most multiply-accumulates of a check; the reference does about 10^9 a second. */
#define MOST_CHECKED_MACS 0x1p26

/* Compares the output of quantize, which is in q, d and sum, with the reference. */
static bool check_quantized(tern_bench_operands *o) {
    const size_t n = o->shape.n;
    const size_t padded = (n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const bool token = o->kernel->op == TERN_OP_QUANTIZE_TOKEN;
    const size_t scales = token ? 1 : (n + TERN_BLOCK - 1) / TERN_BLOCK;
    int8_t *q = tern_bench_zeroed(padded);
    float *d = tern_bench_zeroed(scales * sizeof *d);
    int32_t *sum = tern_bench_zeroed(scales * sizeof *sum);
    bool same = q != NULL && d != NULL && sum != NULL;
    if (same && token)
        tern_ref_quantize_token(o->in0, n, q, d, sum);
    else if (same)
        tern_ref_quantize_block(o->in0, n, q, d, sum);
    same = same && memcmp(q, o->q, padded) == 0 && memcmp(d, o->d, scales * sizeof *d) == 0 &&
           memcmp(sum, o->sum, scales * sizeof *sum) == 0;
    free(q);
    free(d);
    free(sum);
    return same;
}

/* Compares groups of 16 rows, so few that the reference takes a fraction of a second. */
static bool check_matmul(tern_bench_operands *o) {
    const tern_bench_shape *s = &o->shape;
    const tern_ref_matrix matrix = {.format = o->kernel->format,
                                    .file = o->file,
                                    .rows = s->rows,
                                    .cols = s->cols,
                                    .scale = tern_bench_scale(),
                                    .input = tern_layout_input(o->kernel->layout)};
    const size_t groups = (size_t)(tern_bench_macs(o) / MOST_CHECKED_MACS) + 1;
    for (size_t r = 0; r < s->rows; r += groups * TERN_ROW_GROUP) {
        const size_t rows = s->rows - r < TERN_ROW_GROUP ? s->rows - r : TERN_ROW_GROUP;
        const tern_tile tile = {.t0 = 0, .t1 = s->tokens, .r0 = r, .r1 = r + rows};
        tern_ref_matmul(&matrix, &o->x, &tile, o->expected, s->rows);
        for (size_t t = 0; t < s->tokens; t++) {
            const size_t at = t * s->rows + r;
            if (memcmp(o->out + at, o->expected + at, rows * sizeof(float)) != 0)
                return false;
        }
    }
    return true;
}

static void attend_reference(tern_bench_operands *o) {
    const tern_attend_args args = tern_bench_attention(o);
    tern_ref_attend(o->kernel->format, &args, o->expected, ATTEND_GROUP * ATTEND_DIM);
}

static void call_reference(tern_bench_operands *o) {
    const size_t n = o->shape.n;
    tern_bench_restore(o, o->expected);
    switch (o->kernel->op) {
    case TERN_OP_RMSNORM:
        tern_ref_rmsnorm(o->in0, o->in1, n, 1e-5f, o->expected);
        break;
    case TERN_OP_ROPE_NORM:
        tern_ref_rope(TERN_REF_PAIR_NORM, o->expected, o->in1, o->in1 + n / 2, n / 2);
        break;
    case TERN_OP_ROPE_NEOX:
        tern_ref_rope(TERN_REF_PAIR_NEOX, o->expected, o->in1, o->in1 + n / 2, n / 2);
        break;
    case TERN_OP_ATTEND:
        attend_reference(o);
        break;
    case TERN_OP_SOFTMAX:
        tern_ref_softmax(o->expected, n);
        break;
    case TERN_OP_GATE_SILU:
    case TERN_OP_GATE_RELU2:
    case TERN_OP_GATE_GELU:
    case TERN_OP_GATE_QUICK:
        tern_ref_gate(tern_ref_activation_of(o->kernel->op), o->in0, o->in1, n, o->expected);
        break;
    case TERN_OP_LAYERNORM:
        tern_ref_layernorm(o->in0, o->in1, o->in1, n, 1e-5f, o->expected);
        break;
    case TERN_OP_BIAS_RELU:
    case TERN_OP_BIAS_RELU2:
    case TERN_OP_BIAS_SILU:
    case TERN_OP_BIAS_GELU:
    case TERN_OP_BIAS_TANH:
        tern_ref_bias(tern_ref_activation_of(o->kernel->op), o->in0, o->in1, n, o->expected);
        break;
    case TERN_OP_TANH:
        for (size_t i = 0; i < n; i++)
            o->expected[i] = tern_ref_tanh(o->in0[i]);
        break;
    case TERN_OP_ADD:
        tern_ref_add(o->expected, o->in1, n);
        break;
    case TERN_OP_EMBED:
        tern_ref_embed(o->kernel->format, o->file, n, o->expected);
        break;
    case TERN_OP_HADAMARD:
        tern_ref_hadamard(o->in0, NULL, NULL, n, tern_bench_hadamard_block(n), o->expected);
        break;
    case TERN_OP_GEMV_SPARSE:
        tern_ref_gemv_sparse(&o->sparse, o->in0, o->expected);
        break;
    case TERN_OP_STORE:
        tern_ref_store(o->kernel->format, o->in0, n, o->expected);
        break;
    default: /* products: check_matmul; quantize: check_quantized */
        if (tern_op_rounds(o->kernel->op))
            tern_ref_round(o->kernel->op, o->in0, n, o->expected);
        break;
    }
}

bool tern_bench_right(tern_bench_operands *o) {
    if (tern_bench_is_matmul(o))
        return check_matmul(o);
    if (o->kernel->op == TERN_OP_QUANTIZE_TOKEN || o->kernel->op == TERN_OP_QUANTIZE_BLOCK)
        return check_quantized(o);
    call_reference(o);
    return memcmp(o->out, o->expected, o->out_count * sizeof(float)) == 0;
}

bool tern_bench_check(tern_bench_operands *o) {
    tern_bench_call(o);
    return tern_bench_right(o);
}
