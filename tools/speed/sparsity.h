/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SPEED_SPARSITY_H
#define TERN_TOOLS_SPEED_SPARSITY_H

/*
 * Counts how many int8 activations of the down projections are zero. Such a product adds nothing to
 * an integer sum, so a kernel could skip it without changing a bit. But kernels read weights in
 * chunks, so what matters is how often a whole group of neighbouring columns is zero.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/inspect.h"

/* Columns per group: of a dot-product instruction, of a chunk of T2R16, of four such chunks. */
#define SPARSITY_GROUPS                                                                            \
    { 4, 16, 64 }
enum { SPARSITY_SIZES = 3 };

typedef struct sparsity_layer {
    uint64_t values, zeros; /* activations seen; zero activations */
    uint64_t groups[SPARSITY_SIZES], zero_groups[SPARSITY_SIZES]; /* whole groups only */
} sparsity_layer;

typedef struct sparsity {
    const tern_model *model;
    sparsity_layer *layers; /* [n_layer] owned */
    size_t n_layer;         /* 0: not asked for */
} sparsity;

/* False without memory. Free it in any case. */
bool sparsity_open(sparsity *s, const tern_model *model);
void sparsity_free(sparsity *s);

/* Starts counting the products of a session; NULL stops it. */
void sparsity_watch(tern_session *session, sparsity *s);

/* Counts one row of activations q[cols]. */
void sparsity_count(sparsity_layer *l, const int8_t *q, size_t cols);

/* The sum over all layers. */
sparsity_layer sparsity_total(const sparsity *s);

#endif
