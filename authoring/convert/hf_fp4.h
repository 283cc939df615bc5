/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_FP4_H
#define TERN_AUTHORING_CONVERT_HF_FP4_H

/*
 * Matrices in NVFP4 as folders have them: codes, a scale for each 16 columns, and one number for
 * the whole matrix, by which modelopt multiplies and compressed-tensors divides.
 */

#include "authoring/convert/hf_files.h"
#include "tern/status.h"

typedef struct hf_fp4 {
    const safetensors_tensor *codes;  /* uint8 [rows][cols / 2] */
    const safetensors_tensor *scales; /* E4M3 [rows][cols / 16] */
    float factor;                     /* weight = level of the code * scale * factor */
    float input;                      /* a number like it for what the matrix reads; 0: none */
} hf_fp4;

/* True if a tensor "...weight" or "...weight_packed" holds such codes: modelopt's have a second
 * scale beside. */
bool hf_fp4_is(hf_files *files, const safetensors_tensor *tensor);

/* The tensor of that name, or the one that compressed-tensors has in its place; NULL: none. */
const safetensors_tensor *hf_fp4_find(hf_files *files, const char *name);

/* Finds what lies beside the codes of a matrix, and checks all of it. TERN_ERR_TENSOR_MISSING,
 * TERN_ERR_TENSOR_SHAPE, TERN_ERR_TENSOR_TYPE, TERN_ERR_TENSOR_DATA. */
TERN_MUST_CHECK tern_status hf_fp4_read(hf_files *files, const safetensors_tensor *codes,
                                        size_t rows, size_t cols, hf_fp4 *out, tern_error *err);

/* Writes the factors of n matrices, or if `inputs` those of what they read; false: one has none. */
bool hf_fp4_factors(const hf_fp4 *m, size_t n, bool inputs, float *out);

/* True for numbers of a cache of keys and values in few bits, which tern's cache does not have. */
bool hf_fp4_is_of_cache(const char *name);

/* Row `row` as a file has it, and as floats, without the factor. */
void hf_fp4_row_bytes(const hf_fp4 *m, size_t row, size_t cols, uint8_t *out);
void hf_fp4_row_floats(const hf_fp4 *m, size_t row, size_t cols, float *out);

#endif
