/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_ADDING_H
#define TERN_AUTHORING_CONVERT_HF_ADDING_H

/* A folder's tensors are added to a job: shared by hf_tensors.c and hf_stacks.c alone. */

#include "authoring/convert/hf_tensors.h"
#include "authoring/convert/hf_wanted.h"

typedef struct hf_adding {
    const hf_config *c;
    hf_files *files;
    hf_tensors *out;
    convert_job *job;
    tern_error *err;
} hf_adding;

static inline bool hf_is_float(safetensors_type type) {
    return type == SAFETENSORS_F32 || type == SAFETENSORS_F16 || type == SAFETENSORS_BF16;
}

/* Adds the tensor that is wanted to the job, and its source. NULL with *a->err set: no memory. */
convert_tensor *hf_add_source(hf_adding *a, const hf_wanted *w, hf_source **source);

/* The folder's tensor of that name in a layer, or NULL. */
const safetensors_tensor *hf_find_in_layer(const hf_adding *a, uint32_t layer, const char *name);

/* Fails with TERN_ERR_TENSOR_MISSING. */
tern_status hf_missing_in_layer(const hf_adding *a, uint32_t layer, const char *name);

/* True if one tensor holds the experts of a layer with results as rows, gates before what they
 * multiply. */
bool hf_stacks_halves(const hf_adding *a, uint32_t layer);

/* Adds the matrices or biases of all experts from a tensor that holds them all. */
TERN_MUST_CHECK tern_status hf_add_stack(hf_adding *a, uint32_t layer, const tern_block_tensor *t,
                                         const hf_wanted *one);

#endif
