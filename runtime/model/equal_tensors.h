/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_EQUAL_TENSORS_H
#define TERN_RUNTIME_MODEL_EQUAL_TENSORS_H

/*
 * Matrices of equal bytes have one place in memory: within a model, and where a model is opened
 * beside another one (tern_model_params.share).
 *
 * Equal matrices are found before anything is planned. A few bytes of every matrix are hashed;
 * where these agree, all bytes are, and where these agree, too, the bytes are compared. So a model
 * whose matrices differ costs a few bytes of each, no byte is read more than twice, and no weight
 * depends on a hash.
 */

#include "runtime/files/gguf/gguf.h"
#include "runtime/files/gguf/reading.h"
#include "tern/tern.h"

/* What has the bytes of one tensor of the file. */
typedef struct tern_equal_tensor {
    size_t first;             /* number of the first tensor of the file with them */
    const tern_matrix *other; /* as products of the other model read them; NULL: it has none */
    bool is_embedding;        /* the other model's embedding has them */
    tern_matrix made;         /* of `first`: what it became in this stage; no rows: nothing yet */
    bool checked;             /* of `first`: these weights are checked */
} tern_equal_tensor;

/* Zeros: nothing is equal. */
typedef struct tern_equal {
    const tern_gguf *file;
    tern_equal_tensor *tensors; /* [those of the file] */
    tern_matrix embedding;      /* of the other model, without rows and columns */
    uint64_t bytes;             /* of matrices that were not placed once more in this stage */
} tern_equal;

/* Whether there are such bytes in memory already. */
typedef enum tern_equal_use {
    TERN_EQUAL_NONE,      /* no, or they have become something else there */
    TERN_EQUAL_UNCHECKED, /* yes */
    TERN_EQUAL_CHECKED    /* yes, and their weights are checked */
} tern_equal_use;

/*
 * Finds what is equal in `file` and in the model `other` (NULL: none), which has to stay. With
 * another reading of ternary tensors that model is of no use. Free *out in any case.
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_equal_find(const tern_gguf *file, const tern_reading *reading,
                                            const tern_model *other, tern_equal *out,
                                            tern_error *err);
void tern_equal_free(tern_equal *equal);

/* Forgets what tensors have become: a stage of loading begins. NULL is fine, here and below. */
void tern_equal_restart(tern_equal *equal);

/*
 * Sets the data of *matrix, whose shape, format and layout are known, to where the tensor's bytes
 * have become the same. While planning, data may stay NULL.
 */
tern_equal_use tern_equal_reuse(tern_equal *equal, const tern_gguf_tensor *tensor,
                                tern_matrix *matrix);

/* Notes what a tensor has become, unless an equal one was noted before. */
void tern_equal_note(tern_equal *equal, const tern_gguf_tensor *tensor, const tern_matrix *matrix,
                     bool checked);

/* Gives back the pages of tensors that were read to be compared and are not read any more. */
void tern_equal_drop_pages(const tern_equal *equal);

#endif
