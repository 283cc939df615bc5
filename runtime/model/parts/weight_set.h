/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_PARTS_WEIGHT_SET_H
#define TERN_RUNTIME_MODEL_PARTS_WEIGHT_SET_H

#include "runtime/model/parts/block.h"

/* The head of an encoder that scores pairs of texts: one number of the first token's state. */
typedef struct tern_rank_head {
    tern_embedding dense; /* [n_embd] rows of n_embd, before tanh; data NULL: the head has none */
    const float *dense_bias; /* [n_embd] */
    const float *out;        /* [n_embd]; NULL: the model has no head */
    const float *out_bias;   /* [1] */
} tern_rank_head;

/* The weights that a worker reads: the model's, or copies in its node's replica. */
typedef struct tern_weight_set {
    const tern_layer *layers; /* [n_layer] */
    tern_embedding embedding;
    tern_embedding positions, types; /* of encoders: [n_ctx], [kinds of tokens] rows of n_embd */
    const float *embd_norm, *embd_norm_bias; /* [n_embd] of encoders: of the sum of all three */
    const float *output_norm;                /* [n_embd]; NULL: none */
    tern_linear head;                        /* n_embd -> n_vocab */
    tern_rank_head rank;                     /* read by the engine's thread alone */
} tern_weight_set;

#endif
