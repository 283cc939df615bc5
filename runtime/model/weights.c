/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/select.h"
#include "kernels/iebs.h"
#include "runtime/files/gguf/int4.h"
#include "runtime/model/load/dense_blocks.h"
#include "runtime/model/load/weight_check.h"

/* The tensor of that name, with its shape checked; ne1 == 1 stands for a vector, ne2 > 1 for as
 * many matrices. */
static tern_status find_tensors(const tern_loader *l, const char *name, size_t ne0, size_t ne1,
                                size_t ne2, const tern_gguf_tensor **out, tern_error *err) {
    const char *path = tern_gguf_name(l->file);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(l->file, name);
    if (t == NULL)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING, "%s: tensor %s is missing", path, name);
    if (ne2 > 1 && (t->ne[0] != ne0 || t->ne[1] != ne1 || t->ne[2] != ne2 || t->ne[3] != 1))
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %s is %llu x %llu x %llu, must be %zu x %zu x %zu", path, name,
                         (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                         (unsigned long long)t->ne[2], ne0, ne1, ne2);
    if (ne2 == 1 && (t->ne[0] != ne0 || t->ne[1] != ne1 || t->ne[2] != 1 || t->ne[3] != 1))
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %s is %llu x %llu, must be %zu x %zu", path, name,
                         (unsigned long long)t->ne[0], (unsigned long long)t->ne[1], ne0, ne1);
    *out = t;
    return TERN_OK;
}

static tern_status find_tensor(const tern_loader *l, const char *name, size_t ne0, size_t ne1,
                               const tern_gguf_tensor **out, tern_error *err) {
    return find_tensors(l, name, ne0, ne1, 1, out, err);
}

static tern_status type_error(const tern_loader *l, const char *name, const tern_gguf_tensor *t,
                              const char *use, tern_error *err) {
    if (t->type >= TERN_GGUF_FIRST_OWN_TYPE) /* of a list, which has names and no numbers */
        return tern_fail(err, TERN_ERR_TENSOR_TYPE, "%s: tensor %s has type %s, which %s",
                         tern_gguf_name(l->file), name, tern_gguf_tensor_type(t), use);
    return tern_fail(err, TERN_ERR_TENSOR_TYPE, "%s: tensor %s has type %u (%s), which %s",
                     tern_gguf_name(l->file), name, t->type, tern_gguf_tensor_type(t), use);
}

tern_status tern_loader_take(tern_loader *l, const char *what, size_t count, size_t size,
                             void **out, tern_error *err) {
    const uint64_t shape[2] = {count, size};
    *out = NULL;
    if (l->stage != TERN_LOAD_PLAN)
        return tern_arena_take(l->arena, count, size, out, err);
    tern_hash64_add(&l->pieces, what, strlen(what) + 1);
    tern_hash64_add(&l->pieces, shape, sizeof shape);
    if (!tern_arena_reserve(&l->bytes, count, size))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: weights need more than %zu bytes of memory",
                         tern_gguf_name(l->file), SIZE_MAX);
    return TERN_OK;
}

static tern_status note(tern_loader *l, const void *data, size_t bytes, tern_heat heat,
                        const tern_gguf_tensor *t, tern_error *err) {
    const tern_hot_piece piece = {
        .data = data, .bytes = bytes, .heat = heat, .in_file = data == t->data};
    return tern_hot_add(l->hot, piece, err);
}

tern_status tern_load_vector(tern_loader *l, const char *name, size_t n, bool optional,
                             float divisor, const float **out, tern_error *err) {
    const tern_gguf_tensor *t;
    void *memory;
    if (optional && tern_gguf_find_tensor(l->file, name) == NULL) {
        *out = NULL;
        return TERN_OK;
    }
    tern_status status = find_tensor(l, name, n, 1, &t, err);
    if (status != TERN_OK)
        return status;
    const tern_format format = tern_format_from_gguf(t->type);
    const tern_kernel_row *row =
        format <= TERN_FORMAT_BF16 ? tern_kernel_scalar(TERN_OP_EMBED, format) : NULL;
    if (row == NULL)
        return type_error(l, name, t, "is not a float type", err);
    if (divisor != 1.0f) /* of the file's keys: tensors alone do not tell what is packed */
        tern_hash64_add(&l->pieces, &divisor, sizeof divisor);
    status = tern_loader_take(l, name, n, sizeof(float), &memory, err);
    if (status == TERN_OK)
        status = note(l, memory, n * sizeof(float), TERN_HEAT_EVERYBODY, t, err);
    float *values = memory;
    if (status != TERN_OK || l->stage == TERN_LOAD_PLAN)
        return status;
    if (l->stage == TERN_LOAD_FILL) {
        if (format == TERN_FORMAT_F32) /* a file may be aligned to less than a float */
            memcpy(values, t->data, n * sizeof *values);
        else
            row->fn.embed(t->data, n, values);
        for (size_t i = 0; divisor != 1.0f && i < n; i++)
            values[i] /= divisor;
        return TERN_OK;
    }
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: tensor %s: element %zu is not finite",
                             tern_gguf_name(l->file), name, i);
    *out = values;
    return TERN_OK;
}

typedef struct packing {
    tern_load_job job;
    tern_matrix matrix;
    tern_import how; /* of ternary tensors in the file */
    void *target;
} packing;

static tern_status pack_rows(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                             tern_error *err) {
    const packing *p = (const packing *)(const void *)job;
    const tern_matrix *m = &p->matrix;
    tern_status status = TERN_OK;
    (void)worker;
    if (job->tensor->type == TERN_GGUF_SPARSE_TYPE)
        return tern_blocks_make_dense(job->tensor, m, r0, r1, p->target, err);
    if (m->format == TERN_FORMAT_INT4)
        return tern_int4_pack(&job->tensor->int4, job->source, m, r0, r1, p->target, err);
    if (m->format == TERN_FORMAT_I2_S && !tern_import_is_plain(&p->how))
        return tern_import_pack(&p->how, job->source, m->rows, m->cols, m->layout, r0, r1,
                                p->target, err);
    /* Group by group: what was checked is still in the cache when it is packed. */
    for (size_t r = r0; r < r1 && status == TERN_OK; r += TERN_ROW_GROUP) {
        const size_t end = r1 - r < TERN_ROW_GROUP ? r1 : r + TERN_ROW_GROUP;
        status = tern_weight_check(m->format, job->source, m->cols, r, end, err);
        if (status == TERN_OK)
            status = tern_pack_rows(m->format, job->source, m->rows, m->cols, m->layout, r, end,
                                    p->target, err);
    }
    return status;
}

/* Notes down that a matrix is to be packed from the file into `target`. */
static tern_status note_packing(tern_loader *l, const tern_gguf_tensor *t,
                                const tern_matrix *matrix, const tern_import *how, void *target,
                                tern_error *err) {
    packing *p = malloc(sizeof *p);
    if (p == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to pack weights");
    *p = (packing){.job = {.make = pack_rows,
                           .rows = matrix->rows,
                           .row_bytes = (size_t)(t->bytes / matrix->rows),
                           .source = t->data,
                           .file = l->file,
                           .tensor = t},
                   .matrix = *matrix,
                   .how = *how,
                   .target = target};
    tern_load_jobs_add(&l->jobs, &p->job);
    return TERN_OK;
}

static tern_status pack(tern_loader *l, const char *name, const tern_gguf_tensor *t,
                        tern_matrix *matrix, const tern_import *how, tern_error *err) {
    void *memory;
    const size_t bytes = (size_t)tern_linear_bytes(&(tern_linear){.matrix = *matrix, .tensor = t});
    const int kinds[2] = {(int)matrix->format, (int)matrix->layout};
    tern_hash64_add(&l->pieces, kinds, sizeof kinds);
    const tern_status status = tern_loader_take(l, name, bytes, 1, &memory, err);
    matrix->data = memory;
    return status == TERN_OK && l->stage == TERN_LOAD_FILL
               ? note_packing(l, t, matrix, how, memory, err)
               : status;
}

/* Matrices of floats and of blocks are read in place, unless the file's alignment is smaller than a
 * float. */
static tern_status place_rows(tern_loader *l, const char *name, const tern_gguf_tensor *t,
                              tern_matrix *matrix, tern_error *err) {
    const tern_format_info *info = tern_format_describe(matrix->format);
    const size_t element = info->block_elements > 1 ? 1 : info->block_bytes;
    matrix->data = t->data;
    if ((uintptr_t)t->data % element == 0)
        return TERN_OK;
    void *memory;
    const tern_status status = tern_loader_take(l, name, (size_t)t->bytes, 1, &memory, err);
    if (status != TERN_OK || l->stage == TERN_LOAD_PLAN)
        return status;
    if (l->stage == TERN_LOAD_FILL)
        memcpy(memory, t->data, (size_t)t->bytes);
    matrix->data = memory;
    return TERN_OK;
}

/* Whether blocks stay blocks: not where so many are stored that the dense matrix is faster. */
static bool stays_sparse(const tern_loader *l, const tern_gguf_tensor *t, tern_format format) {
    const tern_kernel_use use = {TERN_OP_GEMV, format, tern_format_sparse_layout(format)};
    const tern_kernel_row *row = tern_guard_select(l->guard, use);
    return row == NULL || !tern_blocks_want_dense(t, row);
}

/*
 * The layout of a matrix: its format's own, or for ternary matrices the one that was asked for. TQ
 * blocks whose scales differ within a row are not a ternary matrix; Q4_0R16 holds them with their
 * scales. Activations in floats want blocks as they are.
 */
static tern_layout layout_of(const tern_loader *l, const tern_gguf_tensor *t, tern_format format,
                             size_t rows, size_t cols) {
    const tern_layout own = tern_format_layout(format);
    if (t->type == TERN_GGUF_SPARSE_TYPE && stays_sparse(l, t, format))
        return tern_format_sparse_layout(format);
    if (format == TERN_FORMAT_I2_S)
        return l->ternary;
    if (tern_precision_decodes(l->precision))
        return TERN_LAYOUT_ROWS;
    if (own == TERN_LAYOUT_NONE || tern_layout_input(own) != TERN_INPUT_TOKEN)
        return own;
    return tern_ternary_row_scales(format, t->data, rows, cols, NULL) ? l->ternary
                                                                      : TERN_LAYOUT_Q4_0R16;
}

/* How the codes of an I2_S, TL1 or TL2 tensor are read. */
static tern_status find_reading(const tern_loader *l, const char *name, const tern_gguf_tensor *t,
                                tern_import *how, tern_error *err) {
    tern_error problem = {.status = TERN_OK};
    tern_status status = tern_reading_of(l->reading, t, how, &problem);
    if (status == TERN_OK)
        status = tern_import_check(how, t->data, tern_gguf_rows_of(t), t->ne[0], &problem);
    return status == TERN_OK ? TERN_OK
                             : tern_fail(err, status, "%s: tensor %s: %s", tern_gguf_name(l->file),
                                         name, problem.message);
}

/* I2_S, TL1, TL2: how the tensor is read; its scale, after the codes. */
static tern_status read_scale(const tern_loader *l, const char *name, const tern_gguf_tensor *t,
                              tern_import *how, float *out, tern_error *err) {
    float scale;
    const tern_status status = find_reading(l, name, t, how, err);
    if (status != TERN_OK)
        return status;
    memcpy(&scale, t->data + tern_import_scale_at(how, tern_gguf_rows_of(t), t->ne[0]),
           sizeof scale);
    if (!isfinite(scale) || scale < 0.0f)
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "%s: tensor %s has scale %g, must be finite and not negative",
                         tern_gguf_name(l->file), name, (double)scale);
    *out = scale;
    return TERN_OK;
}

/* Ternary TQ: a scale for each row, or one for the matrix when all are the same. */
static tern_status read_row_scales(tern_loader *l, const char *name, const tern_gguf_tensor *t,
                                   tern_matrix *matrix, tern_error *err) {
    void *memory;
    const tern_status status = tern_loader_take(l, name, matrix->rows, sizeof(float), &memory, err);
    float *scales = memory;
    bool same = true;
    if (status != TERN_OK || l->stage == TERN_LOAD_PLAN)
        return status;
    if (l->stage == TERN_LOAD_FILL)
        (void)tern_ternary_row_scales(matrix->format, t->data, matrix->rows, matrix->cols, scales);
    for (size_t r = 0; r < matrix->rows && same; r++) /* all are finite: they are checked when the
                                                         rows are packed */
        same = memcmp(&scales[r], scales, sizeof *scales) == 0;
    matrix->scale = scales[0];
    matrix->row_scale = same ? NULL : scales;
    return TERN_OK;
}

static tern_status no_row(const tern_loader *l, const char *name, tern_format format,
                          tern_error *err) {
    if (l->guard->no_memory)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: tensor %s: no memory to try kernels",
                         tern_gguf_name(l->file), name);
    return tern_fail(err, TERN_ERR_KERNEL, "%s: tensor %s: no kernels for format %s",
                     tern_gguf_name(l->file), name, tern_format_describe(format)->name);
}

/* Replaces kernels that do not multiply these weights as the scalar ones do. */
static tern_status check_rows(const tern_loader *l, const char *name, tern_linear *linear,
                              tern_error *err) {
    const tern_matrix *m = &linear->matrix;
    if (l->stage != TERN_LOAD_USE)
        return TERN_OK;
    linear->gemv = tern_guard_product(l->guard, TERN_OP_GEMV, m, linear->gemv, name);
    linear->gemm = tern_guard_product(l->guard, TERN_OP_GEMM, m, linear->gemm, name);
    return linear->gemv != NULL && linear->gemm != NULL ? TERN_OK : no_row(l, name, m->format, err);
}

void tern_loader_choose(const tern_loader *l, tern_linear *linear) {
    tern_matrix *m = &linear->matrix;
    const tern_matrix one = tern_linear_one(linear);
    const tern_tune_key key = tern_tune_key_of(&one, l->tune_threads, l->tune_stream);
    const tern_tune_choice *choice = tern_tuning_find(l->tuning, &key);
    if (choice != NULL && tern_layout_sparse_format(m->layout) == TERN_FORMAT_NONE) {
        m->layout = choice->layout;
        linear->gemv = choice->gemv;
        linear->gemm = choice->gemm;
        return;
    }
    linear->gemv =
        tern_guard_select(l->guard, (tern_kernel_use){TERN_OP_GEMV, m->format, m->layout});
    linear->gemm =
        tern_guard_select(l->guard, (tern_kernel_use){TERN_OP_GEMM, m->format, m->layout});
}

/* ---- sparse blocks --------------------------------------------------------------------------- */

/* The values of the block rows that begin in rows [r0, r1). */
static tern_status check_block_rows(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                                    tern_error *err) {
    const tern_iebs m = tern_iebs_view(job->tensor->data);
    const size_t h = m.block_rows;
    (void)worker;
    return tern_iebs_values(&m, (r0 + h - 1) / h, (r1 + h - 1) / h, err);
}

/* Blocks are read where they lie in the file. */
static tern_status place_blocks(tern_loader *l, const tern_gguf_tensor *t, tern_matrix *matrix,
                                tern_error *err) {
    matrix->data = t->data;
    if (l->stage != TERN_LOAD_FILL)
        return TERN_OK;
    tern_load_job *job = malloc(sizeof *job);
    if (job == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to check weights");
    *job = (tern_load_job){.make = check_block_rows,
                           .rows = matrix->rows,
                           .row_bytes = (size_t)(t->bytes / matrix->rows) + 1,
                           .file = l->file,
                           .tensor = t};
    tern_load_jobs_add(&l->jobs, job);
    return TERN_OK;
}

/* ---- matrices -------------------------------------------------------------------------------- */

static bool is_sparse(const tern_matrix *matrix) {
    return tern_layout_sparse_format(matrix->layout) != TERN_FORMAT_NONE;
}

/* The data: where an equal matrix has it, in the file, or packed. */
static tern_status place(tern_loader *l, const char *name, const tern_import *how,
                         tern_linear *linear, tern_error *err) {
    const tern_gguf_tensor *t = linear->tensor;
    const tern_equal_use use = tern_equal_reuse(l->equal, t, &linear->matrix);
    linear->checked = use == TERN_EQUAL_CHECKED;
    if (linear->checked || (use != TERN_EQUAL_NONE && linear->matrix.data != t->data))
        l->equal->bytes += tern_linear_bytes(linear);
    if (use != TERN_EQUAL_NONE)
        return TERN_OK;
    const tern_status status = is_sparse(&linear->matrix) ? place_blocks(l, t, &linear->matrix, err)
                               : tern_linear_is_in_file(linear)
                                   ? place_rows(l, name, t, &linear->matrix, err)
                                   : pack(l, name, t, &linear->matrix, how, err);
    if (status == TERN_OK)
        tern_equal_note(l->equal, t, &linear->matrix, true);
    return status;
}

/* The matrix of a tensor that has been found, of so many rows in all; `experts` as in tern_linear.
 */
static tern_status load_tensor(tern_loader *l, const char *name, const tern_gguf_tensor *t,
                               uint32_t experts, size_t rows, size_t cols, tern_linear *out,
                               tern_error *err) {
    tern_status status = TERN_OK;
    const tern_format format = tern_gguf_format(t);
    if (format == TERN_FORMAT_NONE || t->bytes == 0)
        return type_error(l, name, t, "has no kernels", err);
    const tern_layout layout = layout_of(l, t, format, rows, cols);
    if (layout == TERN_LAYOUT_ROWS && !tern_layout_holds(layout, format))
        return tern_fail(err, TERN_ERR_KERNEL,
                         "%s: tensor %s is %s, which has products with int8 activations only, not "
                         "with %s",
                         tern_gguf_name(l->file), name, tern_format_describe(format)->name,
                         tern_precision_name(l->precision));
    tern_linear linear = {.form = tern_layout_input(layout), .tensor = t, .experts = experts};
    linear.matrix = (tern_matrix){.format = format, .layout = layout, .rows = rows, .cols = cols};
    linear.matrix.scale = 1.0f;
    tern_loader_choose(l, &linear);
    if (linear.gemv == NULL || linear.gemm == NULL)
        return no_row(l, name, format, err);
    tern_import how = {.kind = 0};
    if (t->type == TERN_GGUF_SPARSE_TYPE)
        linear.matrix.scale = tern_iebs_view(t->data).scale;
    else if (format == TERN_FORMAT_I2_S)
        status = read_scale(l, name, t, &how, &linear.matrix.scale, err);
    else if (linear.form == TERN_INPUT_TOKEN)
        status = read_row_scales(l, name, t, &linear.matrix, err);
    if (status == TERN_OK)
        status = place(l, name, &how, &linear, err);
    if (status == TERN_OK)
        status = check_rows(l, name, &linear, err);
    if (status == TERN_OK)
        *out = linear;
    return status;
}

tern_status tern_load_linear(tern_loader *l, const char *name, size_t rows, size_t cols,
                             tern_linear *out, tern_error *err) {
    const tern_gguf_tensor *t;
    const tern_status status = find_tensor(l, name, cols, rows, &t, err);
    return status == TERN_OK ? load_tensor(l, name, t, 0, rows, cols, out, err) : status;
}

/* Whether the tensor's bytes are those of its rows, one after the other. */
static bool is_of_rows(const tern_gguf_tensor *t) {
    const tern_format format = tern_gguf_format(t);
    return format != TERN_FORMAT_NONE && t->type < TERN_GGUF_FIRST_OWN_TYPE &&
           tern_gguf_tiled(t) == 0;
}

tern_status tern_load_experts(tern_loader *l, const char *name, uint32_t n, size_t rows,
                              size_t cols, tern_linear *out, tern_error *err) {
    const tern_gguf_tensor *t;
    tern_linear linear;
    tern_status status = find_tensors(l, name, cols, rows, n, &t, err);
    if (status != TERN_OK)
        return status;
    if (!is_of_rows(t))
        return type_error(l, name, t, "cannot be cut into experts", err);
    status = load_tensor(l, name, t, n, n * rows, cols, &linear, err);
    if (status != TERN_OK)
        return status;
    if (linear.matrix.layout != TERN_LAYOUT_ROWS && rows % TERN_ROW_GROUP != 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %s has experts of %zu rows, must be a multiple of %d",
                         tern_gguf_name(l->file), name, rows, (int)TERN_ROW_GROUP);
    linear.expert_bytes = (size_t)(tern_linear_bytes(&linear) / n);
    *out = linear;
    return TERN_OK;
}

tern_status tern_loader_check_unpacked(tern_loader *l, const char *name, bool drop,
                                       tern_error *err) {
    return l->stage == TERN_LOAD_FILL
               ? tern_weight_note_check(&l->jobs, l->file, tern_gguf_find_tensor(l->file, name),
                                        drop, err)
               : TERN_OK;
}

tern_status tern_loader_note_linear(tern_loader *l, const tern_linear *linear, tern_heat heat,
                                    tern_error *err) {
    const tern_gguf_tensor *t = linear->tensor;
    return tern_linear_is_in_file(linear) || is_sparse(&linear->matrix)
               ? note(l, linear->matrix.data, (size_t)t->bytes, heat, t, err)
               : TERN_OK;
}

tern_status tern_load_embedding(tern_loader *l, const char *name, size_t rows, size_t cols,
                                tern_embedding *out, tern_error *err) {
    const tern_gguf_tensor *t;
    uint64_t bytes = 0;
    tern_status status = find_tensor(l, name, cols, rows, &t, err);
    if (status != TERN_OK)
        return status;
    const tern_format format = tern_format_from_gguf(t->type);
    tern_embedding embedding = {.data = t->data};
    if (format == TERN_FORMAT_NONE || tern_kernel_scalar(TERN_OP_EMBED, format) == NULL)
        return type_error(l, name, t, "cannot be used as embedding", err);
    status = tern_format_bytes(format, 1, cols, &bytes);
    if (status != TERN_OK)
        return tern_fail(err, status, "%s: tensor %s: %zu columns do not suit its type",
                         tern_gguf_name(l->file), name, cols);
    embedding.row_bytes = (size_t)bytes;
    tern_matrix placed = {
        .format = format, .layout = TERN_LAYOUT_ROWS, .rows = rows, .cols = cols, .data = t->data};
    if (tern_equal_reuse(l->equal, t, &placed) == TERN_EQUAL_NONE) {
        if (format <= TERN_FORMAT_BF16) /* block formats are read byte by byte */
            status = place_rows(l, name, t, &placed, err);
        tern_equal_note(l->equal, t, &placed, false);
    }
    embedding.data = placed.data;
    if (status == TERN_OK)
        embedding.row =
            l->stage == TERN_LOAD_USE
                ? tern_guard_operation(l->guard, TERN_OP_EMBED, format, embedding.data, cols)
                : tern_guard_select(l->guard,
                                    (tern_kernel_use){TERN_OP_EMBED, format, TERN_LAYOUT_ROWS});
    if (status == TERN_OK && embedding.row == NULL)
        return no_row(l, name, format, err);
    if (status == TERN_OK)
        status = note(l, embedding.data, (size_t)t->bytes, TERN_HEAT_SOME, t, err);
    if (status == TERN_OK)
        *out = embedding;
    return status;
}
