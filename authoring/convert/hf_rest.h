/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_REST_H
#define TERN_AUTHORING_CONVERT_HF_REST_H

/* Tensors of a folder that nothing has used. */

#include "authoring/convert/hf_config.h"
#include "authoring/convert/hf_files.h"

/*
 * Checks them: tables that repeat the configuration are fine. TERN_ERR_ARCH: a tensor of numbers
 * that has no place in the architecture. Others are passed to `skipped`.
 */
TERN_MUST_CHECK tern_status hf_rest_check(const hf_config *c, const hf_files *files,
                                          void (*skipped)(const safetensors_tensor *t),
                                          tern_error *err);

/* The format of floats of that type. */
tern_format hf_format_of(safetensors_type type);

/* True if two tensors have the same shape, type and bytes. */
bool hf_same_tensor(const safetensors_tensor *a, const safetensors_tensor *b);

#endif
