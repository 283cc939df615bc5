/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_EQUAL_TENSORS_H
#define TERN_RUNTIME_MODEL_LOAD_EQUAL_TENSORS_H

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
#include "runtime/model/parts/head.h"
#include "runtime/model/parts/weight_set.h"

/* What has the bytes of one tensor of the file. */
typedef struct tern_equal_tensor {
    size_t first;             /* number of the first tensor of the file with them */
    const tern_matrix *other; /* as products of the other model read them; NULL: it has none */
    bool is_embedding;        /* the other model's embedding has them */
} tern_equal_tensor;

/* The other model. */
typedef struct tern_equal_model {
    const tern_gguf *file;
    uint32_t n_layer;
    const tern_weight_set *weights;
    const tern_head_image *image; /* of its head */
} tern_equal_model;

/* Zeros: nothing is equal. */
typedef struct tern_equal {
    const tern_gguf *file;
    tern_equal_tensor *tensors; /* [those of the file] */
    tern_matrix embedding;      /* of the other model, without rows and columns */
    const void *head;           /* of the other model; NULL: there is none */
    const tern_head_image *image;
} tern_equal;

/*
 * Finds what is equal in `file` and in the model `other` (NULL: none), which has to stay. Free *out
 * in any case. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_equal_find(const tern_gguf *file, const tern_equal_model *other,
                                            tern_equal *out, tern_error *err);
void tern_equal_free(tern_equal *equal);

/* The number of the first tensor of the file that has these bytes. */
size_t tern_equal_first(const tern_equal *equal, const tern_gguf_tensor *tensor);

/* Whether two matrices of equal bytes have the same format, layout and shape. */
bool tern_equal_is_alike(const tern_matrix *a, const tern_matrix *b);

/* Where the other model has the tensor's bytes in the form of *matrix, checked; NULL: nowhere, or
 * `equal` is NULL. */
const void *tern_equal_in_other(const tern_equal *equal, const tern_gguf_tensor *tensor,
                                const tern_matrix *matrix);

/* The image of the other model's head, where that is `head` and the image has the layout of *scan;
 * else NULL, as above. */
const tern_head_image *tern_equal_image(const tern_equal *equal, const void *head,
                                        const tern_matrix *scan);

/* Gives back the pages of tensors that were read to be compared and are not read any more. */
void tern_equal_drop_pages(const tern_equal *equal);

#endif
