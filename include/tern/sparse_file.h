/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SPARSE_FILE_H
#define TERN_SPARSE_FILE_H

/*
 * Files of sparse blocks (IEBS, docs/formats.md): one matrix of floats a file, of which only the
 * blocks that are not zero are stored. `ie_block_sparse_load` and its status codes are the same
 * under the names of the specification.
 */

#include <stdbool.h>

#include "tern/sparse.h"
#include "tern/status.h"

TERN_API_BEGIN

/* A matrix and the memory that it lies in. Zero-initialise it, or let tern_sparse_load do it. */
typedef struct tern_sparse_matrix {
    tern_block_sparse matrix; /* borrows `memory`, and no bias */
    void *memory;             /* owned */
} tern_sparse_matrix;

/*
 * Reads a file whose values are f32. Everything in it is checked: the header, the sum of the sizes,
 * starts that do not fall, columns that ascend inside the matrix, and that values are finite. The
 * matrix is in memory of its own, and the file is closed. On failure *out is zero and nothing is
 * kept. TERN_ERR_NULL; TERN_ERR_IO; TERN_ERR_NOMEM; TERN_ERR_TENSOR_TYPE: f16 or ternary values;
 * TERN_ERR_TRUNCATED, _TENSOR_SHAPE, _TENSOR_RANGE, _TENSOR_DATA: it is no such file.
 */
TERN_MUST_CHECK tern_status tern_sparse_load(const char *path, tern_sparse_matrix *out,
                                             tern_error *err);

/* Memory of a matrix that is filled by its owner: shape, sides and number of blocks are set, and
 * everything else is zero. TERN_ERR_TENSOR_SHAPE: there is no such matrix; TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_sparse_new(size_t rows, size_t cols, uint32_t block_rows,
                                            uint32_t block_cols, uint32_t blocks,
                                            tern_sparse_matrix *out, tern_error *err);

/* The lists and values of a matrix of tern_sparse_new, to be filled. */
uint32_t *tern_sparse_start(const tern_sparse_matrix *m);
uint32_t *tern_sparse_column(const tern_sparse_matrix *m);
float *tern_sparse_blocks(const tern_sparse_matrix *m);

/* Frees the memory and makes *m zero. NULL and a zero matrix are fine. */
void tern_sparse_free(tern_sparse_matrix *m);

/*
 * Writes a matrix, which is checked as one that is read: under a temporary name, which becomes
 * `path` when all is written. `replace`: a file of that name may be there. The bias is not written.
 * TERN_ERR_EXISTS, TERN_ERR_IO, TERN_ERR_NULL, and what tern_sparse_load says of the matrix.
 */
TERN_MUST_CHECK tern_status tern_sparse_save(const tern_sparse_matrix *m, const char *path,
                                             bool replace, tern_error *err);

/* ---- the names of the specification ---------------------------------------------------------- */

typedef enum ie_sparse_status {
    IE_SPARSE_OK = 0,
    IE_SPARSE_ERR_IO,     /* the file cannot be read or written */
    IE_SPARSE_ERR_FORMAT, /* what it holds is not a matrix of sparse blocks */
    IE_SPARSE_ERR_MEMORY
} ie_sparse_status_t;

typedef tern_sparse_matrix ie_block_sparse_matrix_t;

static inline ie_sparse_status_t ie_sparse_status_of(tern_status status) {
    switch (status) {
    case TERN_OK:
        return IE_SPARSE_OK;
    case TERN_ERR_NOMEM:
        return IE_SPARSE_ERR_MEMORY;
    case TERN_ERR_IO:
    case TERN_ERR_NULL:
    case TERN_ERR_EXISTS:
        return IE_SPARSE_ERR_IO;
    default:
        return IE_SPARSE_ERR_FORMAT;
    }
}

static inline ie_sparse_status_t ie_block_sparse_load(const char *path,
                                                      ie_block_sparse_matrix_t *out) {
    return ie_sparse_status_of(tern_sparse_load(path, out, NULL));
}

static inline void ie_block_sparse_free(ie_block_sparse_matrix_t *m) {
    tern_sparse_free(m);
}

TERN_API_END

#endif
