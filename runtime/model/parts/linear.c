/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/parts/linear.h"

#include "runtime/files/gguf/int4.h"

uint64_t tern_linear_bytes(const tern_linear *linear) {
    const tern_matrix *m = &linear->matrix;
    const size_t packed = tern_packed_bytes(m->layout, m->rows, m->cols);
    if (m->layout == TERN_LAYOUT_ROWS && m->format == TERN_FORMAT_INT4) /* blocks are made of it */
        return (uint64_t)m->rows * (m->cols / TERN_INT4_BLOCK * TERN_INT4_BLOCK_BYTES);
    uint64_t dense;
    if (m->layout == TERN_LAYOUT_ROWS && linear->tensor->type == TERN_GGUF_SPARSE_TYPE &&
        tern_format_bytes(m->format, m->rows, m->cols, &dense) == TERN_OK)
        return dense;
    if (m->rows < linear->all_rows && packed == 0) /* read as it is, or no rows at all */
        return linear->tensor->bytes / linear->all_rows * m->rows;
    return packed ? packed : linear->tensor->bytes;
}
