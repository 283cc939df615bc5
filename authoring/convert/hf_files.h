/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_FILES_H
#define TERN_AUTHORING_CONVERT_HF_FILES_H

/*
 * All weight files of a folder: model.safetensors, or the files that an index names; without
 * either, model.ie.json and the files that it names (runtime/files/gguf/iebin.h).
 */

#include <stdbool.h>

#include "authoring/convert/safetensors.h"
#include "tern/gguf.h"

typedef struct hf_files {
    safetensors **files; /* [n_files] owned */
    size_t n_files;
    tern_gguf *list;           /* model.ie.json; owned, or NULL */
    safetensors_tensor *named; /* its tensors as safetensors; their names are owned, too */
    size_t n_named;
    const safetensors_tensor **tensors; /* [n] sorted by name; the list is owned, the tensors are
                                           not */
    bool *used;                         /* [n] found so far */
    size_t n;
    bool bare;          /* names lack "model.", as folders of models without a head have them */
    const char *within; /* a beginning that names may have besides; NULL: none */
} hf_files;

/*
 * Opens the files that FOLDER/model.safetensors.index.json names; without it
 * FOLDER/model.safetensors, or FOLDER/model.ie.json. The index may only contain bare file names.
 * The index must be right about each file, and no tensor may be in two files.
 */
TERN_MUST_CHECK tern_status hf_files_open(const char *folder, hf_files *out, tern_error *err);

void hf_files_close(hf_files *f); /* zero-initialised or opened */

/* The tensor with that name, or with `within` before it, or NULL. Marks it as used. In a bare
 * folder "model." may be missing. */
const safetensors_tensor *hf_files_find(hf_files *f, const char *name);

#endif
