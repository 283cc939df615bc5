/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_REFERENCE_H
#define TERN_KERNELS_REFERENCE_H

/*
 * docs/numerics.md in C: the oracle that every kernel must equal bit for bit. One naive
 * function for each operation, on weights as the file stores them, one element at a time. It shares
 * no code with the kernels, with packing or with dequantization, so that a test against it checks
 * those too. It is for tests only.
 */

#include "tern/kernels.h"

typedef enum tern_ref_pairing {
    TERN_REF_PAIR_NORM, /* (2i, 2i+1) */
    TERN_REF_PAIR_NEOX  /* (i, i+half) */
} tern_ref_pairing;

typedef enum tern_ref_activation {
    TERN_REF_RELU,
    TERN_REF_RELU2,
    TERN_REF_SILU,
    TERN_REF_GELU,
    TERN_REF_QUICK,
    TERN_REF_TANH
} tern_ref_activation;

/* A weight matrix in the file's own layout (I2_S: the flat code stream). */
typedef struct tern_ref_matrix {
    tern_format format;
    const void *file;
    size_t rows;
    size_t cols;
    float scale;            /* ternary formats; the others ignore it */
    const float *row_scale; /* [rows], or NULL; used instead of `scale` */
    tern_input_form input; /* TQ1_0, TQ2_0: BLOCK reads them with the scales of the file; formats in
                              blocks: FLOAT multiplies the decoded weights */
} tern_ref_matrix;

/* The canonical exponential, hyperbolic tangent, activations. */
float tern_ref_exp(float x);
float tern_ref_tanh(float x);
float tern_ref_activate(tern_ref_activation activation, float x);

/* R13: x to 13 significant bits. */
float tern_ref_13_bits(float x);

/* The activation of an operation: of gate_silu SILU, of bias_relu RELU, ... */
tern_ref_activation tern_ref_activation_of(tern_op op);

/* Weight (row, col) as a float: the exact value, for I2_S without the tensor's scale. */
float tern_ref_weight(const tern_ref_matrix *w, size_t row, size_t col);

/* y[rows] = W x (+ bias) of one token: the dense product, with 0 where no block is stored. */
void tern_ref_gemv_sparse(const tern_block_sparse *w, const float *x, float *y);

/* Like tern_matmul_fn, on the file's layout. */
void tern_ref_matmul(const tern_ref_matrix *w, const tern_activations *x, const tern_tile *tile,
                     float *y, size_t y_stride);

/* Like the function types of kernels.h with the same ending. */
void tern_ref_quantize_token(const float *x, size_t n, int8_t *q, float *s, int32_t *sum);
void tern_ref_quantize_block(const float *x, size_t n, int8_t *q, float *d, int32_t *block_sum);
void tern_ref_rmsnorm(const float *x, const float *g, size_t n, float eps, float *y);
void tern_ref_layernorm(const float *x, const float *g, const float *b, size_t n, float eps,
                        float *y);
void tern_ref_rope(tern_ref_pairing pairing, float *x, const float *c, const float *s, size_t half);
void tern_ref_softmax(float *x, size_t n);
void tern_ref_gate(tern_ref_activation activation, const float *g, const float *u, size_t n,
                   float *y);
void tern_ref_bias(tern_ref_activation activation, const float *x, const float *b, size_t n,
                   float *y);
void tern_ref_add(float *x, const float *y, size_t n);
void tern_ref_hadamard(const float *x, const float *before, const float *after, size_t n,
                       size_t block, float *y);
void tern_ref_round(tern_op op, const float *x, size_t n, float *y);
void tern_ref_embed(tern_format format, const void *row, size_t n, float *y);

/*
 * All chunks in which something is seen, of any window, to out[tokens][group][dim]. `cache` is the
 * format of k, v and of a stored row: F32, F16 or Q8_0. Uses no scratch.
 */
void tern_ref_attend(tern_format cache, const tern_attend_args *args, float *out,
                     size_t out_stride);
void tern_ref_store(tern_format cache, const float *x, size_t n, void *out);

#endif
