/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FORWARD_ATTENTION_H
#define TERN_RUNTIME_FORWARD_ATTENTION_H

/*
 * How a batch's attention is split among the workers. Blocks of up to TERN_ATTEND_TOKENS
 * consecutive positions of one sequence are taken together, each with every key/value head. The
 * chunks of positions of all heads and blocks stand in a row, and each worker gets an equal part of
 * it: so no worker is idle because there are fewer heads than would divide evenly, or because one
 * sequence is longer than the others. A head and block whose chunks several workers share is merged
 * by the worker that completes it, in the order of the chunks: no split changes a bit.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/taker.h"
#include "runtime/model/config.h"
#include "runtime/threads/team.h"
#include "tern/inspect.h"

struct tern_batch;

/* Rows of a batch that follow each other in one sequence. */
typedef struct tern_attend_block {
    size_t row, rows;
    size_t chunks; /* that the last row sees */
} tern_attend_block;

/* The blocks of some of a batch's rows, and how what workers share is kept. */
typedef struct tern_attend_plan {
    tern_attend_block *blocks;
    size_t n;
    size_t chunks;     /* of all blocks of one head */
    size_t slot_bytes; /* of the states of a head and block that workers share; 0: there is no room
                          for them, whoever has the middle of a head and block gets all of it */
    bool slot_by_worker; /* the slot is that of the worker with the first chunk, else the item's */
} tern_attend_plan;

/* A head and block whose chunks several workers share. All zero between two layers. */
typedef struct tern_attend_share {
    atomic_size_t done; /* chunks */
    size_t lead;        /* chunks that the worker of chunk 0 merged */
} tern_attend_share;

/* Memory of attention, a part of a runner's scratch. */
typedef struct tern_attend_scratch {
    uint8_t *heads; /* [threads][stride] states of a worker's own, then scratch of the kernels */
    size_t stride;  /* bytes */
    size_t scratch_begin; /* bytes after which the scratch stands */
    uint8_t *states;      /* [states_bytes] of what several workers share; NULL with one thread */
    size_t states_bytes;
    tern_attend_share *shares; /* [n_shares] */
    size_t n_shares;
} tern_attend_scratch;

/* Takes it for so many threads, and sequences of up to n_ctx positions. */
void tern_attend_lay_out(const tern_config *c, uint32_t threads, uint32_t n_ctx,
                         tern_attend_scratch *s, tern_taker *t);

/* plan->blocks[rows] = how rows first .. batch->n - 1 are taken, by so many threads. */
void tern_attend_make_plan(const struct tern_batch *batch, size_t first, const tern_config *c,
                           const tern_attend_scratch *s, uint32_t threads, tern_attend_plan *plan);

struct tern_runner;

/*
 * The worker's part of: attended[T][n_head * head_dim] = attention of q over the cache, for the
 * plan's rows. Every worker calls it; a barrier must stand before the result is read, and before
 * the next call.
 */
void tern_attention(const struct tern_runner *r, tern_worker worker, size_t layer,
                    const tern_attend_plan *plan);

#endif
