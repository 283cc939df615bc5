/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_EQUAL_TENSORS_H
#define TERN_RUNTIME_MODEL_LOAD_EQUAL_TENSORS_H

/*
 * Matrices of equal bytes have one place in memory: within a model, and across models if one is
 * opened beside another (runtime/model/commons.h).
 *
 * Equal matrices are found before anything is planned. A few bytes of every matrix are hashed.
 * Where these hashes agree, all bytes are hashed; where those agree, too, the bytes are compared.
 * So a model whose matrices differ costs a few bytes of each, no byte is read more than twice, and
 * no weight depends on a hash. Other models remember the hashes of these few bytes.
 */

#include "runtime/files/gguf/gguf.h"
#include "tern/kernels.h"

struct tern_load_entry;

/* A matrix, embedding or image of a head that another model holds. */
typedef struct tern_equal_holder {
    const tern_gguf *file;
    struct tern_load_entry *entry;
} tern_equal_holder;

/* Those that have the bytes of one tensor of the file. */
typedef struct tern_equal_tensor {
    size_t first;      /* number of the file's first tensor with them */
    size_t begin, end; /* of tern_equal.found: entries of other models with them */
    uint64_t sample;   /* hash of a few bytes; 0: it was not taken */
} tern_equal_tensor;

/* Zeros: nothing is equal. */
typedef struct tern_equal {
    const tern_gguf *file;
    tern_equal_tensor *tensors;       /* [tensors of the file] */
    const tern_equal_holder *holders; /* [n_holders] of the other models */
    size_t n_holders;
    struct tern_load_entry **found;
    uint64_t read; /* bytes that were hashed or compared, beside the few of every tensor */
} tern_equal;

/* Finds the tensors that are equal in `file` and among what other models hold, which must outlive
 * *out. Free *out in any case. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_equal_find(const tern_gguf *file, const tern_equal_holder *holders,
                                            size_t n_holders, tern_equal *out, tern_error *err);
void tern_equal_free(tern_equal *equal);

/* The number of the first tensor of the file that has these bytes. */
size_t tern_equal_first(const tern_equal *equal, const tern_gguf_tensor *tensor);

/* The hash of a few bytes of a tensor; 0: none was taken. */
uint64_t tern_equal_sample(const tern_equal *equal, const tern_gguf_tensor *tensor);

/* True if two matrices of equal bytes have the same format, layout and shape. */
bool tern_equal_is_alike(const tern_matrix *a, const tern_matrix *b);

/* The entry of another model with the tensor's bytes in the form of *matrix. NULL: no other model
 * holds them, or `equal` is NULL. */
struct tern_load_entry *tern_equal_in_other(const tern_equal *equal, const tern_gguf_tensor *tensor,
                                            const tern_matrix *matrix);

/* The image of another model's head, if the data of that head is `head` and the image has the
 * layout of *scan; else NULL, as above. */
struct tern_load_entry *tern_equal_image(const tern_equal *equal, const void *head,
                                         const tern_matrix *scan);

/* Gives back the pages of tensors that were read for the comparison and are not read again. */
void tern_equal_drop_pages(const tern_equal *equal);

#endif
