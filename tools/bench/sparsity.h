/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_BENCH_SPARSITY_H
#define TERN_TOOLS_BENCH_SPARSITY_H

/*
 * How many of the int8 activations that the down projections multiply are zero. Such a product adds
 * nothing to an integer sum, so a kernel could leave it out without changing a bit; but it reads
 * weights in chunks, so what matters is how often a whole group of neighbouring columns is zero.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/inspect.h"

/* Columns of a group: those of an instruction of dot products, of a chunk of T2R16, of four. */
#define SPARSITY_GROUPS                                                                            \
    { 4, 16, 64 }
enum { SPARSITY_SIZES = 3 };

typedef struct sparsity_layer {
    uint64_t values, zeros; /* activations seen; those that are 0 */
    uint64_t groups[SPARSITY_SIZES], zero_groups[SPARSITY_SIZES]; /* whole groups only */
} sparsity_layer;

typedef struct sparsity {
    const tern_model *model;
    sparsity_layer *layers; /* [n_layer] owned */
    size_t n_layer;         /* 0: nothing was asked for */
} sparsity;

/* False without memory. Free in any case. */
bool sparsity_open(sparsity *s, const tern_model *model);
void sparsity_free(sparsity *s);

/* From here on the products of a session are counted; NULL ends that. */
void sparsity_watch(tern_session *session, sparsity *s);

/* Counts one row of activations q[cols]. */
void sparsity_count(sparsity_layer *l, const int8_t *q, size_t cols);

/* The sum over all layers. */
sparsity_layer sparsity_total(const sparsity *s);

#endif
