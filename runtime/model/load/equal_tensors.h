/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_EQUAL_TENSORS_H
#define TERN_RUNTIME_MODEL_LOAD_EQUAL_TENSORS_H

/*
 * Matrices of equal bytes have one place in memory: within a model, and across models if one is
 * opened beside another (tern_model_params.share).
 *
 * Equal matrices are found before anything is planned. A few bytes of every matrix are hashed.
 * Where these hashes agree, all bytes are hashed; where those agree, too, the bytes are compared.
 * So a model whose matrices differ costs a few bytes of each, no byte is read more than twice, and
 * no weight depends on a hash.
 */

#include "runtime/files/gguf/gguf.h"
#include "runtime/model/parts/head.h"
#include "runtime/model/parts/weight_set.h"

/* The places that have the bytes of one tensor of the file. */
typedef struct tern_equal_tensor {
    size_t first;             /* number of the file's first tensor with them */
    const tern_matrix *other; /* as the other model's products read them; NULL: none do */
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
    tern_equal_tensor *tensors; /* [tensors of the file] */
    tern_matrix embedding;      /* of the other model, without rows and columns */
    const void *head;           /* of the other model; NULL: there is none */
    const tern_head_image *image;
} tern_equal;

/* Finds the tensors that are equal in `file` and in the model `other` (NULL: none), which must
 * outlive *out. Free *out in any case. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_equal_find(const tern_gguf *file, const tern_equal_model *other,
                                            tern_equal *out, tern_error *err);
void tern_equal_free(tern_equal *equal);

/* The number of the first tensor of the file that has these bytes. */
size_t tern_equal_first(const tern_equal *equal, const tern_gguf_tensor *tensor);

/* True if two matrices of equal bytes have the same format, layout and shape. */
bool tern_equal_is_alike(const tern_matrix *a, const tern_matrix *b);

/* The tensor's bytes in the other model, in the form of *matrix and checked. NULL: the other model
 * does not have them, or `equal` is NULL. */
const void *tern_equal_in_other(const tern_equal *equal, const tern_gguf_tensor *tensor,
                                const tern_matrix *matrix);

/* The image of the other model's head, if the data of that head is `head` and the image has the
 * layout of *scan; else NULL, as above. */
const tern_head_image *tern_equal_image(const tern_equal *equal, const void *head,
                                        const tern_matrix *scan);

/* Gives back the pages of tensors that were read for the comparison and are not read again. */
void tern_equal_drop_pages(const tern_equal *equal);

#endif
