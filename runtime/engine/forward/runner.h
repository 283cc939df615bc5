/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_RUNNER_H
#define TERN_RUNTIME_ENGINE_FORWARD_RUNNER_H

/*
 * A runner computes passes: a thread team and the scratch of up to n_batch rows, of one model. It
 * holds no sequence and no cache. A pass is a list of spans; each span is some consecutive
 * positions of one sequence, whose pages its caller names. Spans of different sequences share a
 * pass, and every weight is read once for all of them.
 *
 * No sum crosses a row: what a row gives is the same bits whatever shares its pass, for any order
 * of the spans, number of threads and table of pages. One caller at a time.
 *
 *     tern_runner_run(runner, &pool, spans, n);
 *     for each span i: tern_runner_check(runner, i, &err), then hidden, logits or pick of its rows
 *
 * Rows whose results are wanted are numbered from 0 in the order of the spans, within a span by
 * position: a span's first one is the sum of `wanted` of the spans before it. They stay until the
 * next tern_runner_run. Rows that are not wanted write their keys and values, and are then left out
 * of the last layer.
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
    uint32_t n_batch; /* rows of a pass, at most: 1 .. n_ctx or more */
    uint32_t n_ctx;   /* positions of the longest sequence */
    uint32_t n_picks; /* rows whose bounds are kept at once when tokens are picked, >= 1: each takes
                         8 bytes for every token of the vocabulary */
} tern_runner_params;

/* Consecutive positions of a sequence that a pass computes. Borrowed while the pass runs. */
typedef struct tern_pass_span {
    const uint32_t *pages; /* of the sequence: position p lies in pages[p / TERN_PAGE]; as many as
                              position + n positions need. Those before `position` were stored */
    const uint32_t *window_pages; /* likewise of layers with a window, where the pool has pages of
                                     theirs: those that no row sees may be any */
    uint32_t position;            /* of the first row */
    const int32_t *tokens;        /* [n], in the vocabulary; NULL: rows */
    const float *rows;            /* [n][n_embd] finite floats in place of the tokens' embeddings */
    size_t n;                     /* >= 1 */
    size_t wanted;                /* how many rows, the last ones, have results: 0 .. n */
} tern_pass_span;

/* Bytes of a runner's scratch; also for a model without its weights. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_runner_bytes(const tern_model *model,
                                              const tern_runner_params *params, size_t *bytes,
                                              tern_error *err);

/*
 * Starts the threads, where the model's places want them, and maps the scratch. TERN_ERR_NOMEM,
 * TERN_ERR_SCRATCH_MEMORY, TERN_ERR_STRICT (a strict model, and the system starts fewer threads or
 * refuses a place).
 */
TERN_MUST_CHECK tern_status tern_runner_new(const tern_model *model,
                                            const tern_runner_params *params, tern_runner **out,
                                            tern_error *err);
void tern_runner_free(tern_runner **runner); /* NULL is fine */

/*
 * Gives the pool that passes will use its counterpart on the model's device; nothing for a model
 * on the processor. The counterpart goes with the runner. TERN_ERR_KERNEL where the device has no
 * kernels for its format, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_runner_hold(tern_runner *r, tern_pool *pool, tern_error *err);

uint32_t tern_runner_threads(const tern_runner *r); /* perhaps fewer than asked for */
uint32_t tern_runner_batch(const tern_runner *r);
int tern_runner_refused(
    const tern_runner *r); /* errno of the first place refused, the model's too */

/*
 * Computes a pass: stores keys and values of all rows in the pool's pages, keeps the hidden states
 * of the wanted rows. n_spans >= 1, together 1 .. n_batch rows, no position twice. Pages that
 * sequences share are only read: a row's own page belongs to its sequence alone. Cannot fail;
 * allocates nothing.
 */
void tern_runner_run(tern_runner *r, const tern_pool *pool, const tern_pass_span *spans,
                     size_t n_spans);

/*
 * TERN_ERR_NONFINITE when numbers of a span of the last pass overflowed; what it stored and its
 * results then mean nothing. Other spans are not touched by it.
 */
TERN_MUST_CHECK tern_status tern_runner_check(const tern_runner *r, size_t span, tern_error *err);

/* The hidden state of a wanted row after the output norm, [n_embd], until the next pass. */
const float *tern_runner_hidden(const tern_runner *r, size_t row);

/*
 * logits[n][n_vocab], 64-byte aligned, of the wanted rows first .. first + n - 1.
 * TERN_ERR_NONFINITE, naming the token, where one is not finite.
 */
TERN_MUST_CHECK tern_status tern_runner_logits(tern_runner *r, size_t first, size_t n,
                                               float *logits, tern_error *err);

/* A buffer for logits[*rows][n_vocab] that tern_runner_logits may fill, until a token is picked;
 * *rows >= 1. */
float *tern_runner_buffers(tern_runner *r, size_t *rows);

/* sums[i] = tern_log_sum_exp (base/logprob.h) of row i of logits[n][n_vocab], rows side by side. */
void tern_runner_log_sums(tern_runner *r, const float *logits, size_t n, double *sums);

/* A buffer of n_vocab floats for one row's logits, which a pick may overwrite. */
float *tern_runner_buffer(tern_runner *r);

/* A wanted row's logits in that buffer, computed where they are not there already. Errors as
 * tern_runner_logits. */
TERN_MUST_CHECK tern_status tern_runner_buffered(tern_runner *r, size_t row, const float **logits,
                                                 tern_error *err);

/*
 * *token = what tern_sampler_pick gives for the logits of a wanted row, which are not computed
 * where bounds decide (runtime/model/parts/head.h). The sampler belongs to the row's sequence.
 */
TERN_MUST_CHECK tern_status tern_runner_pick(tern_runner *r, size_t row, tern_sampler *sampler,
                                             int32_t *token, tern_error *err);

/* One of the picks of a pass. */
typedef struct tern_pick {
    size_t row;
    tern_sampler *sampler; /* no two picks share one */
    int32_t token;         /* set where status is TERN_OK */
    tern_status status;
    tern_error err;
} tern_pick;

/*
 * The same for many rows, which ascend: the head is scanned once for up to n_picks rows that are no
 * further apart, and read once for those of them that need all logits. Every pick gets a status of
 * its own.
 */
void tern_runner_picks(tern_runner *r, tern_pick *picks, size_t n);

/*
 * Wanted rows first .. first + n - 1 will be picked from, one after the other: reads the head once
 * for all of them, n_picks at most, and keeps their bounds, or with `exact` (and where the head has
 * no image) their logits. Picks of these rows then do not read it again, until something else needs
 * the memory. Changes no pick.
 */
void tern_runner_foresee(tern_runner *r, size_t first, size_t n, bool exact);

/* What has been done since the runner was made; a pass counts the positions before each span as
 * reused. */
tern_session_work tern_runner_work(const tern_runner *r);

/* Kernels that have run, as tern_session_kernels, and how often operations ran one of the table: an
 * operation that several workers share counts once. */
size_t tern_runner_kernels(const tern_runner *r, const tern_kernel_row **rows, size_t capacity);
uint64_t tern_runner_calls(const tern_runner *r, const tern_kernel_row *row);

/* From the next pass on; NULL: no observer. With an observer no row is left out. */
void tern_runner_observe(tern_runner *r, tern_product_observer *observer, void *user);

/* Measures into stages of as many workers as the runner has threads; NULL: no more. */
void tern_runner_measure(tern_runner *r, tern_stages *stages);

#endif
