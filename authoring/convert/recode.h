/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_RECODE_H
#define TERN_AUTHORING_CONVERT_RECODE_H

/* Converts one tensor to the format of the file that is written. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "authoring/gguf_writer.h"
#include "authoring/importance.h"
#include "kernels/import.h"
#include "kernels/quantize_important.h"
#include "tern/kernels.h"
#include "threads/team.h"

enum { CONVERT_NAME_BYTES = 256 };

/* Writes the floats of a row, exactly; may be called by several threads at once. */
typedef void convert_row_fn(const void *context, size_t row, float *out);

/* Writes the bytes of a row in the source format; may be called by several threads at once. */
typedef void convert_bytes_fn(const void *context, size_t row, uint8_t *out);

/* Rows first ... first + n - 1 were written; memory that only they need may be released. */
typedef void convert_written_fn(const void *context, size_t first, size_t n);

typedef struct convert_sparse convert_sparse; /* sparse.h */

typedef struct convert_tensor {
    char name[CONVERT_NAME_BYTES];
    uint32_t n_dims;
    uint64_t ne[4];     /* ne[0] contiguous */
    size_t rows, cols;  /* ne[1] * ne[2] * ne[3], ne[0] */
    const char *origin; /* source format for messages: "bf16"; static storage */
    tern_format source; /* source format, for the choice of a target */
    tern_format target;
    uint64_t bytes;     /* in the file */
    uint64_t before;    /* bytes in the source file; 0: it is computed */
    tern_tl_kind tiled; /* tiles of an I2_S target; 0: it is not tiled */
    tern_tl_tiles tiles;
    tern_bn_kind bn; /* rows with scales of an I2_S target, which are made one by one; 0: none */
    tern_int4_rows int4;                     /* form of the rows if the target is INT4 */
    const tern_importance_entry *importance; /* of its columns; NULL: all weigh alike; borrowed */
    convert_sparse *sparse;                  /* its blocks; owned by the job; NULL: it is dense */
    const uint8_t *stored; /* [before] bytes in the source file; NULL: it is computed */
    const uint8_t *
        as_is; /* its bytes in the target format, where source == target and they are just copied */
    convert_bytes_fn *raw; /* of rows that only lie in another order, where source == target; NULL:
                            * they are made of floats */
    convert_row_fn *row;
    convert_written_fn *written; /* may be NULL */
    const void *context;         /* of row and written; borrowed */
} convert_tensor;

/* The number of matrices in one tensor: of its experts. */
static inline size_t convert_matrices(const convert_tensor *t) {
    return t->n_dims > 2 ? t->rows / (size_t)t->ne[1] : 1;
}

typedef enum convert_outcome {
    CONVERT_COPIED,   /* the same bytes */
    CONVERT_LOSSLESS, /* the same values */
    CONVERT_LOSSY
} convert_outcome;

typedef struct convert_result {
    convert_outcome outcome;
    double error; /* LOSSY: root of (sum of squared differences / sum of squared values) */
} convert_result;

/* Resources shared by all tensors of a file. */
typedef struct convert_tools {
    tern_team *team;
    bool force;                        /* also weights that are not ternary become so */
    tern_grid_search *const *searches; /* [TERN_FORMAT_COUNT] of formats with grids that some tensor
                                        * becomes; NULL: there are none */
} convert_tools;

/*
 * Writes the tensor, which was described to the writer before. Unless `tools->force`, weights are
 * refused for a ternary format if they would change by more than 2^-11, the cost of rounding a
 * scale to f16. Results do not depend on the team's size. Memory: some 16 MB; for I2_S, which has
 * one scale, the whole tensor as floats. TERN_ERR_TENSOR_DATA: values are not finite, too large for
 * the format, or not ternary.
 */
TERN_MUST_CHECK tern_status convert_recode(const convert_tensor *t, const convert_tools *tools,
                                           tern_gguf_writer *w, convert_result *result,
                                           tern_error *err);

#endif
