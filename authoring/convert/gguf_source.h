/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_GGUF_SOURCE_H
#define TERN_AUTHORING_CONVERT_GGUF_SOURCE_H

/* A GGUF file, or an IEBIN folder with keys, as what a conversion reads: all of its tensors, in its
 * order, and its metadata. */

#include "authoring/convert/job.h"
#include "tern/gguf.h"
#include "tern/tern.h"

typedef struct convert_gguf_tensor convert_gguf_tensor;

/* Zero-initialise it; free in any case. */
typedef struct convert_gguf {
    const tern_gguf *file;        /* borrowed */
    convert_gguf_tensor *tensors; /* [n] owned */
    size_t n;
} convert_gguf;

/*
 * Adds all tensors of the file to an empty job, whose `done` and `user` it sets; both must stay
 * where they are. Ternary tensors are read as i2s_order, i2s_map and tl_tiles of `reading` say.
 * TERN_ERR_TENSOR_TYPE: a tensor that cannot be read; TERN_ERR_NOMEM; errors of importing, which
 * name the tensor.
 */
TERN_MUST_CHECK tern_status convert_gguf_open(convert_gguf *g, const tern_gguf *file,
                                              const tern_model_params *reading, convert_job *job,
                                              tern_error *err);
void convert_gguf_free(convert_gguf *g);

/* Whether tern_gguf_open takes the path: a file, or a folder with a list of tensors and keys. */
bool convert_is_model(const char *path);

/* Everything but how the file is cut and what its weights are. */
void convert_gguf_copy_metadata(const convert_gguf *g, tern_gguf_writer *w);

#endif
