/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of operands that every device makes before it runs anything. */

#include "device/internal.h"
#include "kernels/rounding.h"

static tern_status refuse(const char *what, const char *why, tern_error *err) {
    return tern_fail(err, TERN_ERR_ARG, "%s: %s", what, why);
}

tern_status tern_check_rows(const char *what, const tern_device_rows *x, tern_error *err) {
    if (x == NULL || x->data == NULL)
        return refuse(what, "no rows", err);
    if (x->n == 0 || x->rows == 0 || x->stride < x->n)
        return tern_fail(err, TERN_ERR_ARG, "%s: %zu rows of %zu, %zu apart", what, x->rows, x->n,
                         x->stride);
    return TERN_OK;
}

/* True if the members of *x are there that products over this layout read. */
static bool has_activations(tern_layout layout, const tern_activations *x) {
    switch (tern_layout_input(layout)) {
    case TERN_INPUT_FLOAT:
        return x->x != NULL && x->x_stride >= x->cols;
    case TERN_INPUT_TOKEN:
        return x->q != NULL && x->s != NULL && x->sum != NULL && x->q_stride >= x->cols;
    case TERN_INPUT_BLOCK:
        return x->q != NULL && x->d != NULL && x->block_sum != NULL && x->q_stride >= x->cols;
    }
    return false;
}

tern_status tern_check_matmul(const char *what, const tern_matrix *w, const tern_activations *x,
                              const tern_tile *tile, const float *y, size_t y_stride,
                              tern_error *err) {
    if (w == NULL || w->data == NULL || x == NULL || tile == NULL || y == NULL)
        return refuse(what, "an operand is missing", err);
    if (x->cols != w->cols)
        return tern_fail(err, TERN_ERR_ARG, "%s: %zu columns meet %zu activations", what, w->cols,
                         x->cols);
    if ((unsigned)w->layout >= TERN_LAYOUT_COUNT || !has_activations(w->layout, x))
        return refuse(what, "the activations are not in the form that the layout reads", err);
    if (tile->t0 >= tile->t1 || tile->r0 >= tile->r1 || tile->r1 > w->rows || y_stride < tile->r1 ||
        tile->r0 % TERN_ROW_GROUP != 0 || (tile->r1 % TERN_ROW_GROUP != 0 && tile->r1 != w->rows))
        return tern_fail(
            err, TERN_ERR_ARG,
            "%s: tokens [%zu, %zu) and rows [%zu, %zu) do not fit a matrix of %zu rows", what,
            tile->t0, tile->t1, tile->r0, tile->r1, w->rows);
    return TERN_OK;
}

tern_status tern_check_quantize(const char *what, const tern_device_rows *x,
                                const tern_device_quantized *out, bool per_token, tern_error *err) {
    const tern_status status = tern_check_rows(what, x, err);

    if (status != TERN_OK)
        return status;
    if (out == NULL || out->q == NULL)
        return refuse(what, "no place for the codes", err);
    if (per_token ? out->s == NULL || out->sum == NULL : out->d == NULL || out->block_sum == NULL)
        return refuse(what, "no place for scales and sums", err);
    if (out->q_stride < x->n || out->q_stride % TERN_Q_PAD != 0 ||
        (!per_token && out->d_stride < (x->n + TERN_BLOCK - 1) / TERN_BLOCK))
        return tern_fail(err, TERN_ERR_ARG, "%s: codes of %zu elements do not fit in %zu", what,
                         x->n, out->q_stride);
    return TERN_OK;
}

tern_status tern_check_pair(const char *what, const tern_device_rows *x, const tern_device_rows *y,
                            tern_error *err) {
    tern_status status = tern_check_rows(what, x, err);

    if (status == TERN_OK)
        status = tern_check_rows(what, y, err);
    if (status == TERN_OK && (x->n != y->n || x->rows != y->rows))
        return tern_fail(err, TERN_ERR_ARG, "%s: %zu rows of %zu meet %zu of %zu", what, x->rows,
                         x->n, y->rows, y->n);
    return status;
}

tern_status tern_check_norm(const tern_device_rows *x, const float *g, const tern_device_rows *y,
                            tern_error *err) {
    return g != NULL ? tern_check_pair("norm", x, y, err)
                     : refuse("norm", "the weights are missing", err);
}

tern_status tern_check_hadamard(const tern_device_rows *x, size_t block, const tern_device_rows *y,
                                tern_error *err) {
    const tern_status status = tern_check_pair("hadamard", x, y, err);

    if (status == TERN_OK && (block < 16 || (block & (block - 1)) != 0 || x->n % block != 0))
        return tern_fail(err, TERN_ERR_ARG, "hadamard: rows of %zu in blocks of %zu", x->n, block);
    return status;
}

tern_status tern_check_rope(const tern_device_rope *a, tern_error *err) {
    if (a == NULL || a->x == NULL || a->c == NULL || a->s == NULL)
        return refuse("rope", "an operand is missing", err);
    if (a->op != TERN_OP_ROPE_NORM && a->op != TERN_OP_ROPE_NEOX)
        return refuse("rope", "not a rotation", err);
    if (a->half == 0 || a->heads == 0 || a->tokens == 0 || a->dim < 2 * a->half ||
        a->stride < a->heads * a->dim)
        return tern_fail(err, TERN_ERR_ARG,
                         "rope: %zu pairs in each of %zu heads of %zu, %zu apart", a->half,
                         a->heads, a->dim, a->stride);
    return TERN_OK;
}

tern_status tern_check_attend(const tern_device_attend *a, tern_error *err) {
    if (a == NULL || a->q == NULL || a->k == NULL || a->v == NULL || a->out == NULL)
        return refuse("attend", "an operand is missing", err);
    if (a->tokens == 0 || a->dim == 0 || a->kv_heads == 0 || a->heads == 0 ||
        a->heads % a->kv_heads != 0 || a->q_stride < a->heads * a->dim ||
        a->out_stride < a->heads * a->dim || a->kv_stride < (a->before + a->tokens) * a->dim)
        return tern_fail(err, TERN_ERR_ARG,
                         "attend: %zu heads over %zu, dim %zu, %zu tokens after %zu", a->heads,
                         a->kv_heads, a->dim, a->tokens, a->before);
    return TERN_OK;
}

/* True if the pages can hold rows of dim elements. */
static bool are_pages(const tern_device_pages *p, size_t dim) {
    const tern_format_info *info = tern_format_describe(p->format);

    return p->data != NULL && p->tables != NULL && info != NULL &&
           p->head_stride >= TERN_ATTEND_CHUNK *
                                 ((dim + info->block_elements - 1) / info->block_elements) *
                                 info->block_bytes;
}

tern_status tern_check_store_pages(const tern_device_store *a, tern_error *err) {
    if (a == NULL || a->x == NULL || a->at == NULL || !are_pages(&a->to, a->dim))
        return refuse("store_pages", "an operand is missing", err);
    if (a->tokens == 0 || a->heads == 0 || a->dim == 0 || a->stride < a->heads * a->dim)
        return tern_fail(err, TERN_ERR_ARG,
                         "store_pages: %zu tokens of %zu heads of %zu, %zu apart", a->tokens,
                         a->heads, a->dim, a->stride);
    return TERN_OK;
}

tern_status tern_check_attend_pages(const tern_device_attend_pages *a, tern_error *err) {
    if (a == NULL || a->q == NULL || a->out == NULL || a->at == NULL || !are_pages(&a->k, a->dim) ||
        !are_pages(&a->v, a->dim) || a->k.format != a->v.format)
        return refuse("attend_pages", "an operand is missing", err);
    if (a->tokens == 0 || a->dim == 0 || a->kv_heads == 0 || a->heads == 0 ||
        a->heads % a->kv_heads != 0 || a->q_stride < a->heads * a->dim ||
        a->out_stride < a->heads * a->dim)
        return tern_fail(err, TERN_ERR_ARG,
                         "attend_pages: %zu tokens of %zu heads over %zu, dim %zu", a->tokens,
                         a->heads, a->kv_heads, a->dim);
    return TERN_OK;
}

tern_status tern_check_watch(const tern_device_watch *a, tern_error *err) {
    if (a == NULL || a->at == NULL || a->notes == NULL || !(a->limit > 0.0f) || a->group == 0)
        return refuse("watch", "an operand is missing", err);
    return tern_check_rows("watch", &a->x, err);
}

tern_status tern_check_gate(tern_op op, const tern_device_rows *g, const tern_device_rows *u,
                            const tern_device_rows *y, tern_error *err) {
    if (op != TERN_OP_GATE_SILU && op != TERN_OP_GATE_RELU2 && op != TERN_OP_GATE_GELU &&
        op != TERN_OP_GATE_QUICK)
        return refuse("gate", "not a gate", err);
    const tern_status status = tern_check_pair("gate", g, u, err);
    return status == TERN_OK ? tern_check_pair("gate", g, y, err) : status;
}

tern_status tern_check_round(tern_op op, const tern_device_rows *x, const tern_device_rows *y,
                             tern_error *err) {
    if (!tern_op_rounds(op))
        return refuse("round", "not a precision", err);
    return tern_check_pair("round", x, y, err);
}

tern_status tern_check_embed(const tern_matrix *w, const int32_t *ids, const tern_device_rows *y,
                             tern_error *err) {
    const tern_status status = tern_check_rows("embed", y, err);

    if (status != TERN_OK)
        return status;
    if (w == NULL || w->data == NULL || ids == NULL || w->cols != y->n ||
        w->layout != TERN_LAYOUT_ROWS)
        return refuse("embed", "the matrix does not fit the output", err);
    return TERN_OK;
}

size_t tern_matrix_bytes(const tern_matrix *w) {
    uint64_t bytes;

    if (w->layout != TERN_LAYOUT_ROWS)
        return tern_packed_bytes(w->layout, w->rows, w->cols);
    if (w->format == TERN_FORMAT_I2_S) /* the file's stream: no product, no embedding reads it */
        return 0;
    if (tern_format_bytes(w->format, w->rows, w->cols, &bytes) != TERN_OK || bytes > SIZE_MAX / 2)
        return 0;
    return (size_t)bytes;
}

tern_status tern_check_upload(const tern_matrix *w, tern_matrix_parts *parts, tern_error *err) {
    if (w == NULL || w->data == NULL)
        return refuse("upload_matrix", "no matrix", err);
    parts->data_bytes = tern_matrix_bytes(w);
    if (parts->data_bytes == 0)
        return tern_fail(err, TERN_ERR_ARG,
                         "upload_matrix: a matrix of %zu x %zu has no such layout", w->rows,
                         w->cols);
    parts->scales_at = (parts->data_bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN;
    parts->scales_bytes = w->rows * sizeof(float);
    parts->bytes =
        w->row_scale != NULL ? parts->scales_at + parts->scales_bytes : parts->data_bytes;
    return TERN_OK;
}

tern_matrix tern_matrix_at(const tern_matrix *w, const tern_matrix_parts *parts, void *memory) {
    tern_matrix placed = *w;

    placed.data = memory;
    if (w->row_scale != NULL)
        placed.row_scale = (const float *)(const void *)((uint8_t *)memory + parts->scales_at);
    return placed;
}
