/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_TENSORS_H
#define TERN_AUTHORING_CONVERT_HF_TENSORS_H

/*
 * Maps the tensors of a Hugging Face model to those of a GGUF file: other names, another order of
 * the rows of q and k for the llama architecture, norms plus the 1 that folders omit, ternary
 * weights unpacked or rounded.
 */

#include "authoring/convert/hf_config.h"
#include "authoring/convert/hf_files.h"
#include "authoring/convert/hf_fp4.h"
#include "authoring/convert/job.h"

/* Heads that folders group and files take in turns: from element `first` on, runs of `each` are
 * heads; file head i is head i / groups of group i % groups. */
typedef struct hf_turns {
    size_t first, each;
    uint32_t groups, of; /* heads of a group; 0 or 1: the order is the same */
} hf_turns;

enum { HF_STRIPS = 3 };

/* Rows of several kinds that folders pack by groups: a group has `rows` of them, strip i of each
 * group begins at[i] rows after the group and has each[i]. Files have strip 0 of all groups, then
 * strip 1 of all groups, and so on. */
typedef struct hf_packing {
    size_t groups, rows; /* rows 0: nothing is packed */
    size_t each[HF_STRIPS], at[HF_STRIPS];
} hf_packing;

/* The source of a tensor of the written file: the context of its rows. */
typedef struct hf_source {
    const safetensors_tensor *tensor;
    const safetensors_tensor *scale_tensor; /* weight_scale of packed weights, bytes beside MXFP4's
                                             * blocks, or NULL */
    const safetensors_tensor **experts;     /* [rows / tensor's rows] consecutive; NULL: only one */
    size_t rows, cols;                      /* of the weights */
    size_t each; /* rows of a matrix, where one tensor holds those of all experts; 0: it does not */
    size_t step, turn; /* of `step` results in turns number `turn` is taken */
    size_t first;      /* rows of the tensor before the first that is taken */
    uint32_t head_dim; /* of a matrix or vector whose heads are reordered; 0: none are */
    hf_turns turns;    /* of its rows, of the elements of a vector, or of its columns */
    bool turns_columns;
    hf_packing packing; /* of its rows */
    bool vector;        /* rows is 1 */
    bool less_one;      /* a vector whose file stores values minus 1 */
    bool rates;         /* a vector whose file stores logarithms of what is below 0 here */
    bool packed;        /* two bits a weight, four rows to a byte */
    bool ternarized;    /* rounded to ternary values: scale is 1 / the mean magnitude */
    float scale;        /* of packed and ternarized ones, set by hf_source_prepare */
    const hf_fp4 *fp4;  /* of matrices in NVFP4, one for each of `experts`; NULL: not in NVFP4 */
    const float *made;  /* values of a computed tensor, which is in no file; otherwise NULL */
} hf_source;

typedef struct hf_tensors {
    hf_source *sources; /* [n] owned; one for each tensor of the job */
    size_t n, capacity;
    const safetensors_tensor **experts; /* [capacity] of all sources that have some; owned */
    size_t n_experts;
    hf_fp4 *fp4; /* [capacity] likewise; owned */
    size_t n_fp4;
    float *factors; /* [capacity] of matrices in NVFP4, and of what these read; owned */
    size_t n_factors;
    float *rope_factors; /* [head_dim / 2] owned, or NULL */
    hf_scale scale;      /* the meaning of weight_scale */
} hf_tensors;

/*
 * Adds all tensors of the model to the job. TERN_ERR_TENSOR_MISSING, _SHAPE, _TYPE; TERN_ERR_ARCH:
 * a tensor of numbers that has no place in the architecture. Other tensors without a place are
 * passed to `skipped` (a warning).
 */
TERN_MUST_CHECK tern_status hf_tensors_add(const hf_config *c, hf_files *files, hf_tensors *out,
                                           convert_job *job,
                                           void (*skipped)(const safetensors_tensor *t),
                                           tern_error *err);

void hf_tensors_free(hf_tensors *t);

/* Reads a source once before its rows are read: computes scales and rejects invalid codes. */
TERN_MUST_CHECK tern_status hf_source_prepare(hf_source *s, hf_scale scale, tern_error *err);

/* Element `index` of a tensor of floats. */
float hf_source_load(const safetensors_tensor *t, size_t index);

/* The row of the folder's tensor that a row of a source comes from. */
size_t hf_source_origin(const hf_source *s, size_t row);

/* Writes a row of a source (convert_row_fn). */
void hf_source_row(const void *source, size_t row, float *out);

/* Rows of experts that lie in one tensor [experts][columns][rows * step], in blocks of MXFP4
 * [experts][rows * step][columns / 32][16] with scales beside, or as biases [experts][columns *
 * step] (convert_row_fn). */
void hf_stack_row(const void *source, size_t row, float *out);
void hf_stack_block_row(const void *source, size_t row, float *out);

/* Rows of experts in one tensor [experts][step][results][columns]: number `turn` of the step. */
void hf_stack_half_row(const void *source, size_t row, float *out);
void hf_stack_bias_row(const void *source, size_t row, float *out);

/* Writes the blocks of a row as MXFP4 has them in files (convert_bytes_fn). */
void hf_stack_bytes(const void *source, size_t row, uint8_t *out);

/* Rows of matrices in NVFP4, as floats and as blocks. */
void hf_source_fp4_row(const void *source, size_t row, float *out);
void hf_source_fp4_bytes(const void *source, size_t row, uint8_t *out);

/* Releases the memory of experts whose last row was written (convert_written_fn). */
void hf_source_written(const void *source, size_t first, size_t n);

/* Releases the pages of a source that was written. */
void hf_source_drop(const hf_source *s);

#endif
