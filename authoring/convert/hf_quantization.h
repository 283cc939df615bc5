/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_QUANTIZATION_H
#define TERN_AUTHORING_CONVERT_HF_QUANTIZATION_H

/* The form in which config.json says that a folder's weights were quantized. */

#include <stdbool.h>

#include "base/json.h"

enum { HF_QUANTIZATION_BYTES = 256, HF_KEPT_BYTES = 1024 };

/*
 * True if the weights were quantized by a method that tern does not read; `why` then names it and
 * says what to do. False for floats, for BitNet's method, and for NVFP4.
 */
bool hf_quantization_is_foreign(const tern_json_value *config, char why[HF_QUANTIZATION_BYTES]);

/* True if it was modelopt or compressed-tensors, and the weights are in NVFP4 (hf_fp4.h). */
bool hf_quantization_is_fp4(const tern_json_value *config);

/* Modules that stay as they are in a model whose other matrices are ternary. */
typedef struct hf_kept {
    bool listed;               /* the folder has such a list; without one the head stays */
    char names[HF_KEPT_BYTES]; /* one after the other, each terminated; an empty one ends them */
} hf_kept;

/* Reads modules_to_not_convert of a quantization_config. False, with the name in `why`, for one
 * that is not plain, such as a pattern, and for a list that is too long. */
bool hf_kept_read(const tern_json_value *quantization, hf_kept *out,
                  char why[HF_QUANTIZATION_BYTES]);

/* True if a module of the list holds the tensor: it begins with the name, up to a dot, or ends with
 * it, as in transformers. */
bool hf_kept_has(const hf_kept *kept, const char *tensor);

#endif
