/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_POOLED_H
#define TERN_RUNTIME_ENGINE_POOLED_H

/*
 * Pools the hidden states of some positions of a prompt into one vector. Positions come in
 * ascending order, in passes of any size. Sums are doubles and are added in that order, so the
 * division into passes changes no bit.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/model/parts/weight_set.h"
#include "tern/embed.h"

typedef struct tern_pooled {
    tern_pooling how; /* NONE: nothing is pooled, and the rest is empty */
    size_t width;
    uint32_t rows;  /* of the prompt */
    uint32_t added; /* states added so far */
    double *sums;   /* [width] */
    float *vector;  /* [width], once it is finished; of RANK its first element alone */
    float *row;     /* [width] of RANK: a row of the head */
} tern_pooled;

/* Opens it for a prompt of this many rows. TERN_ERR_NOMEM; call tern_pooled_close in any case. */
TERN_MUST_CHECK tern_status tern_pooled_open(tern_pooled *p, tern_pooling how, size_t width,
                                             uint32_t rows, tern_error *err);
void tern_pooled_close(tern_pooled *p);

/* The first position that counts. */
uint32_t tern_pooled_first(const tern_pooled *p);

/* True if the state of this position counts. */
bool tern_pooled_takes(const tern_pooled *p, uint32_t position);

/* Adds the state x[width] of a position that counts. */
void tern_pooled_add(tern_pooled *p, const float *x);

/* Fills the vector, after all positions that count were added; the head is that of RANK.
 * TERN_ERR_NONFINITE. */
TERN_MUST_CHECK tern_status tern_pooled_finish(tern_pooled *p, const tern_rank_head *head,
                                               tern_error *err);

#endif
