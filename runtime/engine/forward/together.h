/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_TOGETHER_H
#define TERN_RUNTIME_ENGINE_FORWARD_TOGETHER_H

/*
 * Runners of several ranks that compute together (tern/ranks.h). Rank 0 decides everything: what
 * runs next, which pages it uses, which token is picked. Where its runner computes, it first sends
 * an order to the others, whose runners then compute the same (follow.c). So nothing above a runner
 * knows of ranks.
 *
 * An order is broadcast, followed by its payload; then come the exchanges that belong to it.
 * A function here that begins an order holds the lock of the ranks until it ends it.
 *
 * At the end of a pass the ranks compare a digest of the numbers that each of them computed for
 * itself, and join what they noted of overflows.
 */

#include "runtime/engine/cache/pool.h"
#include "runtime/engine/forward/runner.h"
#include "runtime/model/load/split.h"
#include "runtime/model/orders.h"

/* A span in the payload of a pass. Its pages follow, those of windows, then tokens or rows. */
typedef struct tern_order_span {
    uint32_t position, n, wanted;
    uint32_t pages, window_pages; /* numbers that follow; 0: none */
    uint32_t has_tokens;
    uint32_t second;
} tern_order_span;

/* True if the runner's orders go to other ranks. */
bool tern_together_leads(const tern_runner *r);

/* Begin an order without payload, and end one. */
void tern_together_begin(tern_runner *r, tern_order order);
void tern_together_end(tern_runner *r);

/* The order of a pass: begins it. */
void tern_together_begin_pass(tern_runner *r, const tern_pass_span *spans, size_t n);

/* The order of a scan for those of the first n slots that are open: begins it. */
void tern_together_begin_scan(tern_runner *r, size_t n);

/* ---- what ranks exchange within an order, in runners of all of them ------------------------- */

/* Brings the columns of a kind together at all ranks, of y[rows][width]. */
TERN_MUST_CHECK tern_status tern_runner_join(const tern_runner *r, float *y, size_t rows,
                                             size_t width, tern_split_kind kind, tern_error *err);

/* The same for y[choices][width], of which a rank has those of its experts: begins[n_expert + 1]
 * says where each expert's choices begin. */
TERN_MUST_CHECK tern_status tern_runner_join_choices(const tern_runner *r, float *y,
                                                     const uint32_t *begins, size_t width,
                                                     tern_error *err);

/* The same for y[rows][n_vocab], at rank 0. */
TERN_MUST_CHECK tern_status tern_runner_join_head(const tern_runner *r, float *y, size_t rows,
                                                  tern_error *err);

/* Ends a pass: joins the notes of overflows; sets r->failed where it failed on any rank, or where
 * digests differ. */
void tern_together_compare(tern_runner *r);

/* tern_pool_fetch and tern_pool_send of a pool whose passes ranks compute. */
TERN_MUST_CHECK tern_status tern_together_fetch(tern_runner *r, const tern_pool *pool,
                                                uint8_t *rows, size_t bytes, tern_error *err);
TERN_MUST_CHECK tern_status tern_together_send(tern_runner *r, const tern_pool *pool,
                                               const uint8_t *rows, size_t bytes, tern_error *err);

/* The rank's side of both, for rows of its own pool. */
TERN_MUST_CHECK tern_status tern_together_give(tern_runner *r, uint8_t *rows, size_t bytes,
                                               uint32_t owner, tern_error *err);

#endif
