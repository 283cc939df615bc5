/* SPDX-License-Identifier: Apache-2.0 */

/* Which kernels a runner has used, or could use. */

#include "runtime/forward/internal.h"

/* Appends a row that is not there yet. Beyond capacity only the count grows. */
static size_t add_row(const tern_kernel_row *row, const tern_kernel_row **rows, size_t capacity,
                      size_t count) {
    for (size_t i = 0; i < count && i < capacity; i++)
        if (rows[i] == row)
            return count;
    if (count < capacity)
        rows[count] = row;
    return count + 1;
}

/* The rows of one linear map. */
static size_t add_linear(const tern_linear *linear, bool gemv, bool gemm,
                         const tern_kernel_row **rows, size_t capacity, size_t n) {
    if (gemv)
        n = add_row(linear->gemv, rows, capacity, n);
    if (gemm)
        n = add_row(linear->gemm, rows, capacity, n);
    return n;
}

/* Rows of a forward pass with these products, bits of tern_products. */
static size_t list_rows(const tern_model *m, tern_format kv, unsigned products,
                        const tern_kernel_row **rows, size_t capacity) {
    const tern_row_set *r = &m->rows;
    size_t n = add_row(m->own.embedding.row, rows, capacity, 0);
    n = add_row(m->config.arch->encodes ? r->layernorm : r->rmsnorm, rows, capacity, n);
    unsigned forms =
        m->own.head.form | m->image.scan.form; /* made even when no logits are asked for */
    for (uint32_t layer = 0; layer < m->config.n_layer; layer++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
            const tern_linear *linear = tern_layer_linear(&m->layers[layer], i);
            if (linear->tensor == NULL)
                continue;
            forms |= linear->form;
            n = add_linear(linear, products & TERN_RAN_GEMV, products & TERN_RAN_GEMM, rows,
                           capacity, n);
        }
    if (forms & TERN_INPUT_TOKEN)
        n = add_row(r->quantize_token, rows, capacity, n);
    if (forms & TERN_INPUT_BLOCK)
        n = add_row(r->quantize_block, rows, capacity, n);
    if (forms & TERN_INPUT_FLOAT && r->round != NULL)
        n = add_row(r->round, rows, capacity, n);
    if (m->hadamards.block > 0)
        n = add_row(r->hadamard, rows, capacity, n);
    if (!m->config.arch->encodes)
        n = add_row(r->rope, rows, capacity, n);
    n = add_row(r->store[kv], rows, capacity, n);
    n = add_row(r->attend[kv], rows, capacity, n);
    n = add_row(r->gate, rows, capacity, n);
    n = add_row(r->add, rows, capacity, n);
    if (m->config.n_expert > 0)
        n = add_row(r->softmax, rows, capacity, n);
    if (m->image.scan.gemv != NULL && products & TERN_RAN_HEAD_SCAN)
        n = add_row(m->image.scan.gemv, rows, capacity, n);
    if (m->image.scan.gemm != NULL && products & TERN_RAN_HEAD_SCANS)
        n = add_row(m->image.scan.gemm, rows, capacity, n);
    return add_linear(&m->own.head, products & TERN_RAN_HEAD_GEMV, products & TERN_RAN_HEAD_GEMM,
                      rows, capacity, n);
}

size_t tern_model_kernels(const tern_model *m, tern_format kv, const tern_kernel_row **rows,
                          size_t capacity) {
    return list_rows(m, kv, TERN_RAN_ALL, rows, capacity);
}

size_t tern_runner_kernels(const tern_runner *r, const tern_kernel_row **rows, size_t capacity) {
    return r->ran ? list_rows(r->model, r->batch.kv, r->ran, rows, capacity) : 0;
}
