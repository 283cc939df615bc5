/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_SIDECAR_H
#define TERN_RUNTIME_FILES_GGUF_SIDECAR_H

/*
 * Sparse layers beside a GGUF file: a folder with a list of tensors (iebin.h). All of them are
 * sparse blocks, and each stands for a tensor of the file. tern_gguf_add_sidecar (tern/gguf.h)
 * finds the folder; docs/formats.md has the form.
 */

#include "runtime/files/gguf/gguf.h"

/*
 * Replaces the tensors of `file` by those of a list that have their names. All of them are checked
 * before: name, type, format, shape, and the hash of the dense bytes. Takes the list over, also
 * when it fails; then `file` is what it was. TERN_ERR_EMPTY: no tensors; TERN_ERR_PARTS: it has
 * keys, or was made for other weights; TERN_ERR_TENSOR_MISSING, _TYPE, _SHAPE; TERN_ERR_JSON: an
 * entry does not say which bytes it stands for; TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_sidecar_apply(tern_gguf *file, tern_gguf *list, tern_error *err);

#endif
