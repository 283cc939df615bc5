/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_INTERNAL_H
#define TERN_RUNTIME_ENGINE_FORWARD_INTERNAL_H

/* The parts of a runner, and the batch that runs: its rows, and where each belongs. */

#include "device/mirror.h"
#include "device/processor.h"
#include "runtime/engine/forward/experts.h"
#include "runtime/engine/forward/overflow.h"
#include "runtime/engine/forward/runner.h"
#include "runtime/engine/sample/logit_source.h"
#include "threads/team.h"

/* The residual stream of some rows, and the inputs that the next matrices read. */
typedef struct tern_inputs {
    float *x;        /* [T][n_embd]               residual stream */
    float *norm;     /* [T][width]                input of the next matrices */
    int8_t *qx;      /* [T][q_stride]             the same, quantized with one scale a row */
    float *qx_s;     /* [T] */
    int32_t *qx_sum; /* [T] */
    int8_t *bx;      /* [T][q_stride]             the same, quantized with one scale a block */
    float *bx_d;     /* [T][blocks] */
    int32_t *bx_sum; /* [T][blocks] */
    tern_expert_inputs experts;
} tern_inputs;

/* Memory for products with adapters (adapt.c). */
typedef struct tern_adapt_scratch {
    float *inner; /* [TERN_ADAPT_MAPS][n_batch][stride] of rows with A, those of each adapter at its
                     place */
    size_t stride;
} tern_adapt_scratch;

/* Memory of delta nets; NULL: the model has none. */
typedef struct tern_delta_scratch {
    float *mixed;        /* [T][channels] */
    float *channels;     /* [T][channels] after the convolution: q, k and v */
    float *z;            /* [T][inner] */
    float *alpha, *beta; /* [T][n_states] */
    float *read;         /* [T][inner] what is read from the states */
} tern_delta_scratch;

/* The rows of a span in a batch: those whose results are not wanted, and those that are. */
typedef struct tern_span_rows {
    uint32_t first, first_wanted;
} tern_span_rows;

enum { TERN_ADAPT_MAPS = 3 /* matrices that are multiplied together */ };

/* Scratch for a batch of up to n_batch rows; T stands for the rows of the running batch. */
typedef struct tern_scratch {
    tern_inputs in;
    tern_inputs *own; /* [threads - 1] with one row each, for all workers but the first */
    float *attended;  /* [T][n_head * head_dim] results of attention */
    float *q;         /* [T][n_head * head_dim] */
    float *k, *v;     /* [T][n_head_kv * head_dim] */
    float *gated_q;   /* [T][n_head][2][head_dim] queries and gates; NULL: there are none */
    tern_delta_scratch delta;
    float *gate;          /* [T][n_ff] */
    float *up;            /* [T][n_ff] */
    float *shared_gate;   /* [T] of the expert that all tokens take */
    float *out;           /* [T][n_embd] summand of the residual stream */
    float *cosine, *sine; /* [angle tables][T][n_rot / 2] */
    float *logits;        /* [n_vocab] */
    float *lower, *upper; /* [n_picks][n_vocab] bounds; lower may hold logits; NULL: not needed */
    tern_expert_outputs experts;
    tern_expert_sizes expert_sizes;
    tern_adapt_scratch adapt; /* of a model with adapters; else NULL */
    size_t width;             /* widest matrix input, columns */
    size_t q_stride;          /* width rounded up to TERN_Q_PAD */
    size_t blocks;            /* ceil(width / TERN_BLOCK) */
} tern_scratch;

/*
 * The running pass, or the last one. Its rows are the spans' unwanted rows, span by span, then
 * their wanted ones. So the rows that the last layer computes lie together, and wanted row w is row
 * first_wanted + w.
 */
typedef struct tern_batch {
    const tern_pool *pool;
    const tern_pass_span *spans; /* [n_spans], the caller's */
    size_t n_spans;
    size_t n; /* rows */
    size_t first_wanted;
    tern_device_place *at;   /* [n]; the index of a span is the sequence */
    tern_device_place *sees; /* [n] the last position that a row sees: its own, or its span's last;
                                the same array as `at` where it is always its own */
    int32_t *places, *types; /* [n] for encoders: rows of the position and token type embeddings */
    int32_t *ids;            /* [n] tokens; 0 where a span has rows instead */
    const uint32_t **tables[TERN_POOL_PARTS]; /* [n_spans] pages of each part of the pool */
    tern_overflow *overflow;                  /* [n_spans] */
    tern_span_rows *rows;                     /* [n_spans] */
    uint32_t *numbers; /* copies of the spans' page tables, where passes run on another device */
    size_t n_numbers;
    tern_format kv; /* of the pool */
    bool adapted;   /* a span has adapters */
} tern_batch;

/* A pick in progress, together with others; or a row that is scanned in advance. */
typedef struct tern_pick_slot {
    size_t row;
    tern_pick *pick;
    tern_bounded_pick bounded;
    tern_head_slack slack;
    bool open;     /* bounds may still be enough */
    size_t before; /* candidates of the slots before this one */
} tern_pick_slot;

/* Wanted rows whose bounds or logits already lie in scratch.lower and upper, one after another. */
typedef struct tern_foreseen {
    size_t first, n;
    bool exact;  /* logits, in lower */
    bool *fresh; /* [n_picks] the bounds are unchanged since the scan */
} tern_foreseen;

/* A recorded pass. Passes of the same numbers call the same operations with the same operands,
 * except for the data that is sent before them. */
typedef struct tern_recorded_pass {
    const tern_pool *pool;
    size_t n, first_wanted; /* n 0: unused */
    uint64_t last;          /* the runner's count of passes when it last ran */
    bool seen;              /* it ran once, not recorded yet */
    tern_device_recording *recording;
} tern_recorded_pass;

/* The side of a runner that works with those of other ranks (together.h). */
typedef struct tern_far {
    uint32_t number;        /* by which rank 0 calls it */
    uint64_t digest;        /* of rows that each rank computed for itself in the last pass */
    unsigned char *payload; /* of the order that is sent, or carried out */
    size_t payload_room;
    void *notes; /* of all ranks at the end of a pass: for each, a verdict and its overflows */
    size_t notes_room;
    float *logits; /* on ranks other than 0, [rows][n_vocab] of which they fill their columns */
    size_t logits_room;
} tern_far;

enum {
    TERN_NO_ROW = UINT32_MAX,
    TERN_RECORDED_PASSES = 16, /* kept at once */
    TERN_RECORDED_ROWS = 64    /* most in a recorded pass: in larger ones the calls cost little */
};

struct tern_runner {
    const tern_model *model;
    tern_team *team;
    bool borrows; /* the team is another runner's */
    tern_processor_device processor;
    tern_recorded_pass recorded[TERN_RECORDED_PASSES];
    tern_mirror *mirror;  /* of the scratch and the pool; NULL: passes run on the processor */
    tern_device *backend; /* its operations make a pass: the processor, the mirror, or a test's */
    tern_status failed;   /* status of the last pass; its results are valid if it is TERN_OK */
    tern_error failure;
    tern_arena arena;
    tern_scratch scratch;
    tern_batch batch;
    tern_pick_slot *slots; /* [n_picks] */
    tern_foreseen foreseen;
    bool *counted;                 /* [n_batch] for each wanted row: its head is in work.products */
    uint32_t buffer_row;           /* its logits are in scratch.logits; TERN_NO_ROW: none */
    tern_recorded_pass *recording; /* being recorded; NULL: none */
    uint32_t n_batch, n_ctx, n_picks;
    int refused; /* errno of the first binding that the system refused; 0: none */
    tern_session_work work;
    tern_tally *tally;               /* counts the kernels that have run */
    tern_product_observer *observer; /* NULL: none */
    void *observer_user;
    tern_far far;
    tern_stages *stages; /* for as many workers as the team has; NULL: no measurement */
};

/* Rows that have results. */
static inline size_t tern_batch_wanted(const tern_batch *b) {
    return b->n - b->first_wanted;
}

/* The input of a linear map, from row t0 on. */
static inline tern_activations tern_activations_of(const tern_scratch *s, const tern_inputs *in,
                                                   const tern_linear *linear, size_t t0) {
    const bool token = linear->form == TERN_INPUT_TOKEN;
    return (tern_activations){.cols = linear->matrix.cols,
                              .x = in->norm + t0 * s->width,
                              .x_stride = s->width,
                              .q = (token ? in->qx : in->bx) + t0 * s->q_stride,
                              .q_stride = s->q_stride,
                              .s = in->qx_s + t0,
                              .sum = in->qx_sum + t0,
                              .d = in->bx_d + t0 * s->blocks,
                              .block_sum = in->bx_sum + t0 * s->blocks,
                              .d_stride = s->blocks};
}

/* The same from a wanted row on. */
tern_activations tern_wanted_activations(const tern_runner *r, const tern_linear *linear,
                                         size_t row);

/* Counts a product of the head with n wanted rows, unless every one of them was counted before. */
void tern_count_head(tern_runner *r, size_t first, size_t n);

/* The head that the worker reads: the copy of its place. */
const tern_linear *tern_head_of(const tern_runner *r, tern_worker worker);

/* tern_runner_logits without the check that the logits are finite. */
TERN_MUST_CHECK tern_status tern_runner_multiply_head(tern_runner *r, size_t first, size_t n,
                                                      float *logits, tern_error *err);

/* The product of a linear map with n rows, as an operand of `multiply`. The results of its matrix's
 * rows go to y[n][y_stride]. */
tern_device_product tern_product_of(const tern_linear *linear, const tern_activations *x, size_t n,
                                    float *y, size_t y_stride);

/* Opens the counterpart of the scratch, for a model on another device, whose operations then make
 * the passes. */
TERN_MUST_CHECK tern_status tern_runner_open_mirror(tern_runner *r, tern_error *err);

/* Places the sines of the current batch right after its cosines, so that one copy sends both. */
void tern_runner_place_angles(tern_runner *r);

/* The device's table of n pages of a span: the page numbers are copied to those of the batch. */
const uint32_t *tern_runner_table(tern_runner *r, const uint32_t *pages, size_t n);

/*
 * Called before the operations of a pass, when all data it begins with is ready: sends that data.
 * *done: a recording has made the operations, and none must be called. Otherwise the operations may
 * be recorded instead of run; then tern_runner_end_operations runs the recording. Both functions do
 * nothing on the processor.
 */
TERN_MUST_CHECK tern_status tern_runner_begin_operations(tern_runner *r, bool *done,
                                                         tern_error *err);
TERN_MUST_CHECK tern_status tern_runner_end_operations(tern_runner *r, tern_error *err);

/* Fetches the results of a pass. Sets r->failed and r->failure on an error. */
void tern_runner_fetch_results(tern_runner *r);

void tern_runner_close_mirror(tern_runner *r);

/* The runner's scan of the head's image for the first n slots, which are open: bounds of all rows
 * from the first slot's to the last one's, or of the rank's own tokens alone; in picks.c. */
void tern_runner_scan_own(tern_runner *r, size_t n);

/* Multiplies the rows of the head that this rank has; in results.c. */
TERN_MUST_CHECK tern_status tern_runner_multiply_own(tern_runner *r, size_t first, size_t n,
                                                     float *logits, tern_error *err);

/* Runs the runner's batch; in forward.c. */
void tern_forward(tern_runner *r);

#endif
