/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_GGUF_SOURCE_H
#define TERN_AUTHORING_CONVERT_GGUF_SOURCE_H

/* A GGUF file, or an IEBIN folder with keys, as the source of a conversion: all of its tensors in
 * their order, and its metadata. */

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
 * Adds all tensors of the file to an empty job and sets its `done` and `user`; neither struct may
 * move afterwards. i2s_order, i2s_map and tl_tiles of `reading` say how ternary tensors are read.
 * TERN_ERR_TENSOR_TYPE: a tensor that cannot be read; TERN_ERR_NOMEM; errors of importing, which
 * name the tensor.
 */
TERN_MUST_CHECK tern_status convert_gguf_open(convert_gguf *g, const tern_gguf *file,
                                              const tern_model_params *reading, convert_job *job,
                                              tern_error *err);
void convert_gguf_free(convert_gguf *g);

/* True if tern_gguf_open takes the path: a file, or a folder with a list of tensors and keys. */
bool convert_is_model(const char *path);

/* Copies all keys but those that describe how the file is split and what its weights are. */
void convert_gguf_copy_metadata(const convert_gguf *g, tern_gguf_writer *w);

#endif
