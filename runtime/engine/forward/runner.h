/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_RUNNER_H
#define TERN_RUNTIME_ENGINE_FORWARD_RUNNER_H

/*
 * A runner computes passes: a thread team and the scratch of up to n_batch rows, of one model. It
 * holds no sequence and no cache. A pass is a list of spans; each span is some consecutive
 * positions of one sequence, whose pages its caller names. Spans of different sequences share a
 * pass, and every weight is read once for all of them.
 *
 * No sum crosses a row: the results of a row are the same bits whatever else is in its pass, for
 * any order of the spans, number of threads and table of pages. One caller at a time.
 *
 *     tern_runner_run(runner, &pool, spans, n);
 *     for each span i: tern_runner_check(runner, i, &err), then hidden, logits or pick of its rows
 *
 * Rows whose results are wanted are numbered from 0 in the order of the spans, within a span by
 * position: a span's first one is the sum of `wanted` of the spans before it. Results stay until
 * the next tern_runner_run. Rows that are not wanted write their keys and values, and are then left
 * out of the last layer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/engine/cache/pool.h"
#include "runtime/engine/forward/stages.h"
#include "runtime/model/model.h"
#include "tern/inspect.h"
#include "tern/tern.h"

typedef struct tern_runner tern_runner;

typedef struct tern_runner_params {
    uint32_t threads; /* >= 1 */
    uint32_t n_batch; /* most rows of a pass: 1 .. n_ctx or more */
    uint32_t n_ctx;   /* positions of the longest sequence */
    uint32_t n_picks; /* rows whose bounds are kept at once when tokens are picked, >= 1: each takes
                         8 bytes for every token of the vocabulary */
    const tern_runner *beside; /* whose threads are used, where they serve: it outlives this one,
                                  and both never compute at once. NULL: threads of its own */
} tern_runner_params;

/* Consecutive positions of a sequence that a pass computes. Borrowed while the pass runs. */
typedef struct tern_pass_span {
    const uint32_t *pages; /* of the sequence: position p lies in pages[p / TERN_PAGE]; as many as
                              position + n positions need. Positions before `position` are stored
                              already */
    const uint32_t *window_pages; /* the same for layers with a window, where the pool has pages for
                                     them; entries that no row sees may be anything */
    uint32_t state;               /* the sequence's number among the pool's states */
    uint32_t position;            /* of the first row */
    const int32_t *tokens;        /* [n], in the vocabulary; NULL: there are rows instead */
    const float *rows;            /* [n][n_embd] finite floats instead of the tokens' embeddings */
    size_t n;                     /* >= 1 */
    const tern_adapter_set *adapters; /* in use for these rows; NULL: none */
    size_t wanted;                    /* number of rows, the last ones, that have results: 0 .. n */
    uint32_t second;                  /* of encoders: tokens from this position on are of kind 1;
                                         0: none */
} tern_pass_span;

/* Bytes of a runner's scratch; also for a model without its weights. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_runner_bytes(const tern_model *model,
                                              const tern_runner_params *params, size_t *bytes,
                                              tern_error *err);

/*
 * Starts the threads on the model's places, and maps the scratch. TERN_ERR_NOMEM,
 * TERN_ERR_SCRATCH_MEMORY, TERN_ERR_STRICT (for a strict model, when the system starts fewer
 * threads or refuses a place).
 */
TERN_MUST_CHECK tern_status tern_runner_new(const tern_model *model,
                                            const tern_runner_params *params, tern_runner **out,
                                            tern_error *err);
void tern_runner_free(tern_runner **runner); /* NULL is fine */

/*
 * Creates the counterpart, on the model's device, of the pool that passes will use; does nothing
 * for a model on this processor alone. Other ranks open pools of their own. Counterparts are freed
 * with the runner. TERN_ERR_KERNEL where the device has no kernels for the pool's format,
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_runner_hold(tern_runner *r, tern_pool *pool, tern_error *err);

uint32_t tern_runner_threads(const tern_runner *r); /* perhaps fewer than requested */
uint32_t tern_runner_batch(const tern_runner *r);
int tern_runner_refused(
    const tern_runner *r); /* errno of the first refused place, the model's included */

/*
 * Computes a pass: stores keys and values of all rows in the pool's pages, and keeps the hidden
 * states of the wanted rows. n_spans >= 1, together 1 .. n_batch rows, no position twice. Pages
 * that sequences share are only read: the page a row is stored in must belong to its sequence
 * alone. Allocates nothing. Errors are reported by tern_runner_check.
 */
void tern_runner_run(tern_runner *r, const tern_pool *pool, const tern_pass_span *spans,
                     size_t n_spans);

/*
 * TERN_ERR_NONFINITE when numbers of a span of the last pass overflowed; its stored rows and its
 * results are then meaningless. Other spans are not affected. Any other error is that of the pass
 * as a whole on another device.
 */
TERN_MUST_CHECK tern_status tern_runner_check(const tern_runner *r, size_t span, tern_error *err);

/* The hidden state of a wanted row after the output norm, [n_embd], until the next pass. */
const float *tern_runner_hidden(const tern_runner *r, size_t row);

/*
 * Computes logits[n][n_vocab], 64-byte aligned, of the wanted rows first .. first + n - 1.
 * TERN_ERR_NONFINITE, naming the token, where one is not finite.
 */
TERN_MUST_CHECK tern_status tern_runner_logits(tern_runner *r, size_t first, size_t n,
                                               float *logits, tern_error *err);

/* A buffer for logits[*rows][n_vocab] that tern_runner_logits may fill. It is valid until a token
 * is picked; *rows >= 1. */
float *tern_runner_buffers(tern_runner *r, size_t *rows);

/* sums[i] = tern_log_sum_exp (base/logprob.h) of row i of logits[n][n_vocab]; threads share the
 * rows. */
void tern_runner_log_sums(tern_runner *r, const float *logits, size_t n, double *sums);

/* A buffer of n_vocab floats for one row's logits, which a pick may overwrite. */
float *tern_runner_buffer(tern_runner *r);

/* The logits of a wanted row in that buffer, computed unless they are there already. Errors as for
 * tern_runner_logits. */
TERN_MUST_CHECK tern_status tern_runner_buffered(tern_runner *r, size_t row, const float **logits,
                                                 tern_error *err);

/*
 * *token = the token that tern_sampler_pick would return for the logits of a wanted row. The logits
 * are not computed where bounds decide (runtime/model/parts/head.h). The sampler belongs to the
 * row's sequence.
 */
TERN_MUST_CHECK tern_status tern_runner_pick(tern_runner *r, size_t row, tern_sampler *sampler,
                                             int32_t *token, tern_error *err);

/* One of the picks of a pass. */
typedef struct tern_pick {
    size_t row;
    tern_sampler *sampler; /* no two picks share one */
    int32_t token;         /* set if status is TERN_OK */
    tern_status status;
    tern_error err;
} tern_pick;

/*
 * The same for many rows, in ascending order. The head is scanned once for up to n_picks rows
 * within a range of n_picks, and read once for those of them that need all logits. Every pick gets
 * its own status.
 */
void tern_runner_picks(tern_runner *r, tern_pick *picks, size_t n);

/*
 * Prepares picks from wanted rows first .. first + n - 1, one after another: reads the head once
 * for all of them, at most n_picks, and keeps their bounds, or with `exact` (and where the head has
 * no image) their logits. Picks of these rows then do not read it again, until something else needs
 * the memory. Changes no pick.
 */
void tern_runner_foresee(tern_runner *r, size_t first, size_t n, bool exact);

/* The work done since the runner was made. A pass counts the positions before each span as
 * reused. */
tern_session_work tern_runner_work(const tern_runner *r);

/* Kernels that have run, as tern_session_kernels reports them, and how many operations used one of
 * the table. An operation that several workers share counts once. */
size_t tern_runner_kernels(const tern_runner *r, const tern_kernel_row **kernels, size_t capacity);
uint64_t tern_runner_calls(const tern_runner *r, const tern_kernel_row *kernel);

/* Sets the observer, from the next pass on; NULL: none. With an observer no row is left out. */
void tern_runner_observe(tern_runner *r, tern_product_observer *observer, void *user);

/* Measures into stages with as many workers as the runner has threads; NULL: stops measuring. */
void tern_runner_measure(tern_runner *r, tern_stages *stages);

#endif
