/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/load/dense_blocks.h"

#include <stdlib.h>

#include "dispatch/sparse_limit.h"

static bool are_more_than(const tern_iebs *m, unsigned percent) {
    const uint64_t places = (uint64_t)tern_iebs_block_rows(m) * tern_iebs_block_columns(m);
    return (double)m->blocks * 100.0 > (double)places * percent;
}

bool tern_blocks_pay_somewhere(const tern_iebs *form) {
    return !are_more_than(form, tern_sparse_limit_anywhere(form->format));
}

bool tern_blocks_want_dense(const tern_gguf_tensor *tensor, const tern_kernel_row *kernel) {
    const tern_iebs m = tern_iebs_view(tensor->data);
    uint64_t row_bytes;
    /* A strip of any number of rows must be a matrix by itself. Not every ternary matrix allows
     * that. */
    return are_more_than(&m, tern_sparse_limit(kernel)) &&
           tern_format_bytes(m.format, 1, m.cols, &row_bytes) == TERN_OK;
}

/* Memory for a strip of rows, as floats and in the file's format. */
typedef struct strip {
    float *weights;
    uint8_t *file;
} strip;

static tern_status take_strip(const tern_matrix *matrix, strip *out, tern_error *err) {
    uint64_t bytes = 0;
    const tern_status status =
        tern_format_bytes(matrix->format, TERN_ROW_GROUP, matrix->cols, &bytes);
    if (status != TERN_OK)
        return tern_fail(err, status, "%zu columns are not dense rows", matrix->cols);
    out->weights = malloc(TERN_ROW_GROUP * matrix->cols * sizeof *out->weights);
    out->file = malloc((size_t)bytes);
    return out->weights != NULL && out->file != NULL
               ? TERN_OK
               : tern_fail(err, TERN_ERR_NOMEM, "no memory for %d rows of %zu columns",
                           (int)TERN_ROW_GROUP, matrix->cols);
}

/* Makes n rows from row r on; r is a multiple of TERN_ROW_GROUP. */
static tern_status make_strip(const tern_iebs *blocks, const tern_matrix *m, size_t r, size_t n,
                              const strip *s, uint8_t *made, tern_error *err) {
    const bool in_rows = m->layout == TERN_LAYOUT_ROWS;
    uint64_t row_bytes = 0;
    tern_status status = in_rows ? tern_format_bytes(m->format, 1, m->cols, &row_bytes) : TERN_OK;
    for (size_t i = 0; i < n; i++)
        tern_iebs_row(blocks, r + i, s->weights + i * m->cols);
    if (status == TERN_OK)
        status = tern_quantize_weights(m->format, s->weights, n, m->cols,
                                       in_rows ? made + r * row_bytes : s->file, NULL, err);
    if (status != TERN_OK || in_rows)
        return status;
    const size_t group_bytes = tern_packed_bytes(m->layout, TERN_ROW_GROUP, m->cols);
    return tern_pack_rows(m->format, s->file, n, m->cols, m->layout, 0, n,
                          made + r / TERN_ROW_GROUP * group_bytes, err);
}

tern_status tern_blocks_make_dense(const tern_gguf_tensor *tensor, const tern_matrix *matrix,
                                   size_t r0, size_t r1, void *made, tern_error *err) {
    const tern_iebs blocks = tern_iebs_view(tensor->data);
    const size_t h = blocks.block_rows;
    strip s = {.weights = NULL};
    tern_status status = tern_iebs_values(&blocks, (r0 + h - 1) / h, (r1 + h - 1) / h, err);
    if (status == TERN_OK)
        status = take_strip(matrix, &s, err);
    for (size_t r = r0; status == TERN_OK && r < r1; r += TERN_ROW_GROUP)
        status = make_strip(&blocks, matrix, r, r1 - r < TERN_ROW_GROUP ? r1 - r : TERN_ROW_GROUP,
                            &s, made, err);
    free(s.weights);
    free(s.file);
    return status;
}
