/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_EMBED_H
#define TERN_EMBED_H

/*
 * tern: texts as vectors. An engine (engine.h) computes a text's hidden states, after the output
 * norm, and pools those of some positions into one vector of n_embd floats. Vectors are the same
 * bits for every instruction set, number of threads and mixture of requests.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

typedef struct tern_model tern_model;

/* Which positions make a vector. The numbers are those of ARCH.pooling_type in GGUF files. */
typedef enum tern_pooling {
    TERN_POOLING_NONE, /* no vector is made */
    TERN_POOLING_MEAN, /* the mean of all positions */
    TERN_POOLING_CLS,  /* the first position */
    TERN_POOLING_LAST, /* the last position */
    TERN_POOLING_RANK  /* the first position of a pair of texts, of which a head of the model makes
                          one number: how well they fit together */
} tern_pooling;

/* "none", "mean", "cls", "last" or "rank"; static storage. */
const char *tern_pooling_name(tern_pooling pooling);

/* The pooling of that name, into *out; false when there is none. */
bool tern_pooling_find(const char *name, tern_pooling *out);

/* The pooling that the model's file names; RANK where it names none and has a head for it; NONE
 * when it has neither. */
tern_pooling tern_model_pooling(const tern_model *model);

/* True if the model's file has a head that scores pairs of texts, which TERN_POOLING_RANK needs. */
bool tern_model_ranks(const tern_model *model);

/* True if the model continues texts. False: its tokens see what follows them, and it makes vectors
 * alone; sessions of it are TERN_ERR_ARCH, and so are requests without a pooling. */
bool tern_model_continues(const tern_model *model);

/* True if the first n numbers of the model's vectors are vectors of their own, because it was
 * trained so (Matryoshka): the file says so, in ARCH.matryoshka_dimensions or ARCH.is_matryoshka.
 * All n_embd always are. */
bool tern_model_shortens(const tern_model *model, uint32_t n);

/*
 * out[i] = x[i] / |x| for n numbers, out may be x: the length is 1 then, but that of zeros stays 0.
 * The squares are added in order, in double precision.
 */
void tern_embedding_normalize(const float *x, size_t n, float *out);

/* The logistic function of a score of TERN_POOLING_RANK, from 0 to 1: how likely it is that both
 * texts fit. The same bits on every machine. */
float tern_rank_probability(float score);

TERN_API_END

#endif
