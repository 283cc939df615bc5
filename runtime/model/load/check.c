/* SPDX-License-Identifier: Apache-2.0 */

/* Checks what the arena holds, packed here or mapped, and the kernels that will read it. */

#include <math.h>
#include <stdio.h>

#include "runtime/model/load/head_image.h"
#include "runtime/model/load/list.h"

static tern_status check_vector(const tern_load_list *l, const tern_load_entry *e,
                                tern_error *err) {
    for (size_t i = 0; i < e->cols; i++)
        if (!isfinite((*e->to.vector)[i]))
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "%s: tensor %.*s: element %zu is not finite", tern_gguf_name(l->file),
                             TERN_SPAN_SHOWN(e->tensor->name), i);
    return TERN_OK;
}

/* Tries the kernels of products with these weights; `where` names their tensor. False: none is
 * left. */
static bool try_products(tern_guard *guard, tern_linear *linear, const char *where) {
    const tern_matrix *m = &linear->matrix;
    if (m->rows == 0) /* all of them are other ranks' */
        return true;
    linear->gemv = tern_guard_product(guard, TERN_OP_GEMV, m, linear->gemv, where);
    linear->gemm = tern_guard_product(guard, TERN_OP_GEMM, m, linear->gemm, where);
    return linear->gemv != NULL && linear->gemm != NULL;
}

static tern_status check_matrix(const tern_load_list *l, const tern_load_entry *e,
                                tern_guard *guard, tern_error *err) {
    char where[96];
    (void)snprintf(where, sizeof where, "%.*s", TERN_SPAN_SHOWN(e->tensor->name));
    return try_products(guard, e->to.linear, where) ? TERN_OK
                                                    : tern_load_no_kernel(l, e, guard, err);
}

static tern_status check_embedding(const tern_load_list *l, const tern_load_entry *e,
                                   tern_guard *guard, tern_error *err) {
    tern_embedding *to = e->to.embedding;
    to->kernel = tern_guard_operation(guard, TERN_OP_EMBED, e->format, to->data, e->cols);
    return to->kernel != NULL ? TERN_OK : tern_load_no_kernel(l, e, guard, err);
}

static tern_status check_image(const tern_load_entry *e, tern_guard *guard, tern_error *err) {
    if (e->place == TERN_LOAD_NOWHERE)
        return TERN_OK;
    tern_head_image_finish(e->to.image);
    return try_products(guard, &e->to.image->scan, "output head")
               ? TERN_OK
               : tern_head_image_no_kernels(guard, err);
}

static tern_status check(const tern_load_list *l, const tern_load_entry *e, tern_guard *guard,
                         tern_error *err) {
    switch (e->kind) {
    case TERN_LOAD_VECTOR:
        return check_vector(l, e, err);
    case TERN_LOAD_MATRIX:
        return check_matrix(l, e, guard, err);
    case TERN_LOAD_EMBEDDING:
        return check_embedding(l, e, guard, err);
    default:
        return check_image(e, guard, err);
    }
}

tern_status tern_load_list_check(tern_load_list *l, tern_guard *guard, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < l->n; i++)
        status = check(l, &l->entries[i], guard, err);
    return status;
}
