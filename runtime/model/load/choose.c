/* SPDX-License-Identifier: Apache-2.0 */

/* Chooses the layout and kernels of every matrix: the tuner's, or those that the table prefers. */

#include "dispatch/select.h"
#include "runtime/model/load/dense_blocks.h"
#include "runtime/model/load/head_image.h"
#include "runtime/model/load/list.h"

tern_status tern_load_no_kernel(const tern_load_list *l, const tern_load_entry *e,
                                const tern_guard *guard, tern_error *err) {
    if (guard->no_memory)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: tensor %.*s: no memory to try kernels",
                         tern_gguf_name(l->file), TERN_SPAN_SHOWN(e->tensor->name));
    return tern_fail(err, TERN_ERR_KERNEL, "%s: tensor %.*s: no kernels for format %s",
                     tern_gguf_name(l->file), TERN_SPAN_SHOWN(e->tensor->name),
                     tern_format_describe(e->format)->name);
}

/* ---- layouts ------------------------------------------------------------------------------- */

/* True if sparse blocks stay blocks. They do not if so many are stored that a dense matrix is
 * faster. */
static bool stays_sparse(const tern_load_choice *c, const tern_load_entry *e) {
    const tern_kernel_use use = {TERN_OP_GEMV, e->format, tern_format_sparse_layout(e->format)};
    const tern_kernel_row *kernel = tern_guard_select(c->guard, use);
    return kernel == NULL || !tern_blocks_want_dense(e->tensor, kernel);
}

/*
 * The layout of a matrix: its format's own, or for ternary matrices the one that was asked for. TQ
 * blocks whose scales differ within a row go to Q4_0R16, which keeps these scales. Float
 * activations need blocks as the file has them.
 */
static tern_layout layout_of(const tern_load_choice *c, const tern_load_entry *e) {
    const tern_layout own = tern_format_layout(e->format);
    if (e->tensor->type == TERN_GGUF_SPARSE_TYPE && stays_sparse(c, e))
        return tern_format_sparse_layout(e->format);
    if (e->format == TERN_FORMAT_I2_S)
        return c->ternary;
    if (tern_precision_decodes(c->precision))
        return TERN_LAYOUT_ROWS;
    if (own == TERN_LAYOUT_NONE || tern_layout_input(own) != TERN_INPUT_TOKEN)
        return own;
    return e->is_ternary ? c->ternary : TERN_LAYOUT_Q4_0R16;
}

/* ---- kernels ------------------------------------------------------------------------------- */

/*
 * Chooses the kernels of a matrix whose shape and usual layout are set; NULL if the table has none.
 */
static void choose_kernels(const tern_load_choice *c, tern_linear *linear) {
    tern_matrix *m = &linear->matrix;
    const tern_matrix one = tern_linear_one(linear);
    const tern_tune_key key = tern_tune_key_of(&one, c->tune_threads, c->tune_stream);
    const tern_tune_choice *tuned = tern_tuning_find(c->tuning, &key);
    if (tuned != NULL && tern_layout_sparse_format(m->layout) == TERN_FORMAT_NONE) {
        m->layout = tuned->layout;
        linear->gemv = tuned->gemv;
        linear->gemm = tuned->gemm;
        return;
    }
    linear->gemv =
        tern_guard_select(c->guard, (tern_kernel_use){TERN_OP_GEMV, m->format, m->layout});
    linear->gemm =
        tern_guard_select(c->guard, (tern_kernel_use){TERN_OP_GEMM, m->format, m->layout});
}

/* Sets the distance between experts. Products with one expert begin at its first row. */
static tern_status divide_experts(const tern_load_list *l, const tern_load_entry *e,
                                  tern_error *err) {
    tern_linear *linear = e->to.linear;
    const size_t rows = tern_linear_expert_rows(linear), own = linear->matrix.rows / rows;
    if (linear->matrix.layout != TERN_LAYOUT_ROWS && rows % TERN_ROW_GROUP != 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %.*s has experts of %zu rows, must be a multiple of %d",
                         tern_gguf_name(l->file), TERN_SPAN_SHOWN(e->tensor->name), rows,
                         (int)TERN_ROW_GROUP);
    linear->expert_bytes = own > 0 ? (size_t)(tern_linear_bytes(linear) / own) : 0;
    return TERN_OK;
}

static tern_status choose_matrix(const tern_load_list *l, const tern_load_choice *c,
                                 const tern_load_entry *e, tern_error *err) {
    tern_linear *linear = e->to.linear;
    const tern_layout layout = layout_of(c, e);
    if (layout == TERN_LAYOUT_ROWS && !tern_layout_holds(layout, e->format))
        return tern_fail(err, TERN_ERR_KERNEL,
                         "%s: tensor %.*s is %s, which has products with int8 activations only, "
                         "not with %s",
                         tern_gguf_name(l->file), TERN_SPAN_SHOWN(e->tensor->name),
                         tern_format_describe(e->format)->name, tern_precision_name(c->precision));
    linear->form = tern_layout_input(layout);
    linear->matrix.layout = layout;
    linear->matrix.scale = tern_load_has_own_scale(e) ? e->scale : 1.0f;
    choose_kernels(c, linear);
    if (linear->gemv == NULL || linear->gemm == NULL)
        return tern_load_no_kernel(l, e, c->guard, err);
    return linear->experts > 0 ? divide_experts(l, e, err) : TERN_OK;
}

static tern_status choose_embedding(const tern_load_list *l, const tern_load_choice *c,
                                    const tern_load_entry *e, tern_error *err) {
    tern_embedding *embedding = e->to.embedding;
    embedding->kernel =
        tern_guard_select(c->guard, (tern_kernel_use){TERN_OP_EMBED, e->format, TERN_LAYOUT_ROWS});
    return embedding->kernel != NULL ? TERN_OK : tern_load_no_kernel(l, e, c->guard, err);
}

/* True if candidates can be multiplied: rows that other ranks have are read in the file. */
static bool has_all_rows(const tern_load_entry *head) {
    const size_t size = tern_format_describe(head->format)->block_bytes;
    return tern_load_is_whole(head) || (uintptr_t)head->tensor->data % size == 0;
}

tern_status tern_load_list_choose(tern_load_list *l, const tern_load_choice *c, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < l->n; i++) {
        const tern_load_entry *e = &l->entries[i];
        if (e->kind == TERN_LOAD_MATRIX)
            status = choose_matrix(l, c, e, err);
        else if (e->kind == TERN_LOAD_EMBEDDING)
            status = choose_embedding(l, c, e, err);
        else if (e->kind == TERN_LOAD_IMAGE && has_all_rows(e - 1) &&
                 tern_head_image_plan(l->entries[i - 1].to.linear, e->to.image))
            choose_kernels(c, &e->to.image->scan);
    }
    return status;
}
