/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_EXPERTS_H
#define TERN_RUNTIME_ENGINE_FORWARD_EXPERTS_H

/*
 * The feed-forward part of a block with experts. A router gives each row a score for each expert;
 * each row uses some of the experts, and adds their weighted results (docs/numerics.md, "Experts").
 *
 * Rows of a pass are sorted by expert, so that each matrix that is used is read once, by one
 * product with all of its rows. No sum crosses a row, so the other rows of a pass change no bit of
 * a result.
 *
 * A choice is a row and one of its experts. T rows have T * n_used of them, called `choices` below.
 * They are ordered by expert, those of one expert by row.
 */

#include "base/arena_plan.h"
#include "runtime/model/model.h"
#include "tern/device.h"

struct pass;

/* The experts of each row. Row t is the t-th that the layer computes. */
typedef struct tern_routes {
    uint32_t *ids;         /* [T][n_used] of each row, ascending */
    float *weights;        /* [T][n_used] */
    uint32_t *places;      /* [T][n_used] place of each choice in the order */
    uint32_t *rows;        /* [choices] */
    tern_device_place *at; /* [choices] sequence and position of the row */
    uint32_t *begins;      /* [n_expert + 1] the first choice of each expert, and their number */
    uint32_t *used;        /* [n_expert] experts that any row uses, ascending */
    uint32_t *n;           /* [1] how many experts are used */
} tern_routes;

/*
 * Inputs of experts and results of their gates, for T rows: shared, or a worker's own where a pass
 * has one row. `stride` and `q_stride` are those of tern_expert_sizes.
 */
typedef struct tern_expert_inputs {
    tern_routes routes;
    float *scores;      /* [T][n_expert] */
    float *x;           /* [choices][stride] rows for matrices that read floats; then gated ones */
    int8_t *q;          /* [choices][q_stride] with one scale a row */
    float *s;           /* [choices] */
    int32_t *sum;       /* [choices] */
    int8_t *b;          /* [choices][q_stride] with one scale a block */
    float *d;           /* [choices][blocks] */
    int32_t *block_sum; /* [choices][blocks] */
} tern_expert_inputs;

/* Widths of the arrays above, depending on the forms that matrices of experts read. */
typedef struct tern_expert_sizes {
    unsigned forms; /* bits of tern_input_form; 0: there are no experts */
    size_t stride, q_stride, blocks;
} tern_expert_sizes;

/* Memory that all workers share, besides the shared inputs. */
typedef struct tern_expert_outputs {
    float *scores;    /* [T][n_expert] of the router */
    float *gate, *up; /* [choices][n_ff] */
    float *down;      /* [choices][n_embd] */
} tern_expert_outputs;

tern_expert_sizes tern_experts_sizes(const tern_model *m);

/* Lay out memory for T rows; none where there are no experts. */
tern_expert_inputs tern_experts_lay_out(const tern_config *c, const tern_expert_sizes *sizes,
                                        size_t rows, tern_taker *t);
tern_expert_outputs tern_experts_lay_out_shared(const tern_config *c, size_t rows, tern_taker *t);

/*
 * norm[T][n_embd] = the sum of the results of each row's experts, which read the same norm and its
 * quantized forms. The pass must have rows.
 */
void tern_experts_run(struct pass *p);

/* Chooses the experts of one row, with scores p[n_expert]: ids[n_used] ascending, and their
 * weights[n_used]. */
void tern_experts_choose(const tern_config *c, const float *p, uint32_t *ids, float *weights);

#endif
