/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_SPARSE_H
#define TERN_AUTHORING_CONVERT_SPARSE_H

/*
 * Chooses the blocks of a matrix that are stored, and measures the loss from the others. In a
 * model, chosen matrices of the transformer blocks become sparse; their values keep their format.
 */

#include "authoring/convert/job.h"
#include "kernels/iebs.h"

/* The rule that was asked for. */
typedef struct convert_sparse_rule {
    const char *layers; /* names separated by commas; see convert_sparse_plan */
    uint32_t block_rows, block_cols;
    float threshold; /* blocks with only smaller weights are dropped; 0: only zero blocks */
    double keep;     /* at most this percentage of all blocks stays, those with the most energy */
} convert_sparse_rule;

/* A matrix in blocks; energy is the sum of squares. */
struct convert_sparse {
    tern_iebs form; /* format, shape, sides, blocks, scale */
    bool *stored;   /* [places], owned */
    size_t places;
    size_t zero;    /* blocks whose weights are all 0 */
    size_t dropped; /* other blocks that are not stored */
    double lost;    /* share of the energy that was dropped */
    float largest;  /* magnitude of a weight that was dropped */
};

/*
 * Chooses blocks of weights[rows][cols], finite floats whose format is F32, F16 or I2_S, by the
 * rule. Among blocks of equal energy the first ones stay. The caller frees *out.
 * TERN_ERR_TENSOR_SHAPE: blocks of that size cannot hold the format, or the matrix is too large;
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status convert_sparse_choose(const convert_sparse_rule *rule,
                                                  tern_format format, const float *weights,
                                                  size_t rows, size_t cols, convert_sparse *out,
                                                  tern_error *err);
void convert_sparse_free(convert_sparse *sparse);

/*
 * Makes the chosen matrices of a planned job sparse, and counts their bytes. A layer is "blk.3"
 * (its matrices), "ffn_down" (in every block), "blk.3.ffn_down", with or without ".weight", "all",
 * or "auto": matrices that are smaller as blocks and that stay sparse in memory on some instruction
 * set (tern_blocks_pay_somewhere). TERN_ERR_NAME: no matrix matches a layer; TERN_ERR_TENSOR_TYPE:
 * a matrix has, or is to get, a format other than f32, f16 or i2_s.
 */
TERN_MUST_CHECK tern_status convert_sparse_plan(convert_job *job, const convert_sparse_rule *rule,
                                                tern_error *err);

/*
 * Keeps only the sparse tensors of a planned job, to be written beside the GGUF file that they come
 * from. TERN_ERR_EMPTY: there are none.
 */
TERN_MUST_CHECK tern_status convert_sparse_alone(convert_job *job, tern_error *err);

/* Writes a planned sparse tensor. */
TERN_MUST_CHECK tern_status convert_sparse_write(const convert_tensor *t, tern_gguf_writer *w,
                                                 convert_result *result, tern_error *err);

/*
 * Writes a file of rows x cols f32 as a file of sparse blocks. *out says what was kept; free it
 * with convert_sparse_free. It is empty on failure. TERN_ERR_TENSOR_RANGE: the file has another
 * size; TERN_ERR_TENSOR_DATA: a value is not finite; errors of reading and writing files.
 */
TERN_MUST_CHECK tern_status convert_sparse_file(const char *path, size_t rows, size_t cols,
                                                const convert_sparse_rule *rule, const char *target,
                                                tern_out_mode mode, convert_sparse *out,
                                                tern_error *err);

#endif
