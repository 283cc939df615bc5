/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_FILES_H
#define TERN_AUTHORING_CONVERT_HF_FILES_H

/*
 * The files of weights in a folder as one: model.safetensors, or those that an index names, or
 * where there is none of them model.ie.json with the files that it names
 * (runtime/files/gguf/iebin.h).
 */

#include <stdbool.h>

#include "authoring/convert/safetensors.h"
#include "tern/gguf.h"

typedef struct hf_files {
    safetensors **files; /* [n_files] owned */
    size_t n_files;
    tern_gguf *list;           /* model.ie.json; owned, or NULL */
    safetensors_tensor *named; /* its tensors as those of another file; their names too are owned */
    size_t n_named;
    const safetensors_tensor **tensors; /* [n] sorted by name; owned, what they point to is not */
    bool *used;                         /* [n] found so far */
    size_t n;
} hf_files;

/*
 * Opens FOLDER/model.safetensors.index.json with the files beside it, or without one
 * FOLDER/model.safetensors, or FOLDER/model.ie.json. A file may only be named by its bare name.
 * What the index says must be so, and no tensor may be in two files.
 */
TERN_MUST_CHECK tern_status hf_files_open(const char *folder, hf_files *out, tern_error *err);

void hf_files_close(hf_files *f); /* zero-initialised or opened */

/* The tensor of that name, which counts as used, or NULL. */
const safetensors_tensor *hf_files_find(hf_files *f, const char *name);

#endif
