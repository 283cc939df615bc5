/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ADAPTER_H
#define TERN_ADAPTER_H

/*
 * Adapters: small additions to the matrices of a model (LoRA). An adapter has for some matrices W
 * two thin ones, A[rank][columns] and B[rows][rank]. Where it is in use, their product counts too:
 *
 *     y = W x, then y += scale * (alpha / rank) * B (A x)     of each adapter, by ascending id
 *
 * docs/numerics.md fixes the bits. A model is opened with all adapters that its answers may use
 * (tern_model_params.adapters). Each answer then has scales of its own; sequences with different
 * adapters share passes, and never keys and values.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

typedef struct tern_model tern_model;

enum { TERN_MOST_ADAPTERS = 64 /* of a model */ };

/* A GGUF file that a model is opened with (docs/adapters.md). Its id is its place among them. */
typedef struct tern_adapter_file {
    const char *path;
    float scale; /* where an answer does not say it; 0: not in use there */
} tern_adapter_file;

/* An adapter that an answer uses. */
typedef struct tern_adapter_use {
    uint32_t id;
    float scale; /* finite; 0 is the same as not naming it */
} tern_adapter_use;

/* An open adapter. Everything belongs to the model. */
typedef struct tern_adapter_info {
    const char *path, *name; /* name: of the file's metadata, or "" */
    float scale;             /* as the model was opened with it */
    float alpha;             /* 0: the file has none, and products count as they are */
    uint32_t rank;           /* the largest of its matrices */
    uint32_t matrices;       /* that it adds to */
    uint64_t bytes;          /* of all A and B */
    char digest[65];         /* SHA-256 of its matrices with their factors, in hexadecimal digits */
} tern_adapter_info;

/* The model's adapters: sets *adapters to an array owned by the model, returns how many there are.
 */
size_t tern_model_adapters(const tern_model *model, const tern_adapter_info **adapters);

TERN_API_END

#endif
