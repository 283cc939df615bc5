/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FORWARD_ATTENTION_H
#define TERN_RUNTIME_FORWARD_ATTENTION_H

/*
 * How a batch's attention is split among the workers: blocks of up to TERN_ATTEND_TOKENS tokens,
 * each with every key/value head. A batch of more than one block is split between (head, block)
 * pairs, by what they cost; a smaller one, decoding above all, between chunks of positions, so that
 * no worker is idle because there are fewer heads than would divide evenly. The worker that
 * completes a head merges its chunks, in order: no split changes a bit.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/threads/team.h"
#include "tern/inspect.h"

struct tern_batch;

/* A head whose chunks several workers share. All zero between two layers. */
typedef struct tern_attend_share {
    atomic_size_t done; /* chunks */
    size_t lead;        /* chunks that the worker of chunk 0 merged */
} tern_attend_share;

/*
 * The worker's part of: attended[T][n_head * head_dim] = attention of q over the cache. Every
 * worker calls it; a barrier must stand before the result is read, and before the next call.
 */
void tern_attention(const struct tern_batch *batch, tern_worker worker, size_t layer);

#endif
