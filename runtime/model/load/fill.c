/* SPDX-License-Identifier: Apache-2.0 */

/* Makes what the list says: small things at once, whole matrices by a team. */

#include <stdlib.h>
#include <string.h>

#include "kernels/iebs.h"
#include "runtime/files/gguf/int4.h"
#include "runtime/model/load/dense_blocks.h"
#include "runtime/model/load/head_image.h"
#include "runtime/model/load/list.h"
#include "runtime/model/load/weight_check.h"

/* The memory in which piece k of an entry is made. */
static void *target_of(const tern_load_entry *e, uint8_t *base, size_t k) {
    return base + (tern_load_piece_at(e, base, k) - base);
}

/* ---- packing ------------------------------------------------------------------------------- */

/* Rows of a packing count from the first one of the whole matrix, those of its job from the first
 * one that this rank has. */
typedef struct packing {
    tern_load_job job;
    tern_matrix matrix; /* all rows */
    tern_import how;    /* how the file's ternary codes are read */
    size_t first;       /* the job's first row */
    uint8_t *target;    /* of the job's first row */
} packing;

/* Rows [r0, r1) of blocks, from the rank's first row on. Goes group by group: what was checked is
 * still in the cache when it is packed. */
static tern_status pack_blocks(const packing *p, size_t r0, size_t r1, tern_error *err) {
    const tern_matrix *m = &p->matrix;
    const uint8_t *all = p->job.tensor->data;
    tern_status status = TERN_OK;
    for (size_t r = r0; r < r1 && status == TERN_OK; r += TERN_ROW_GROUP) {
        const size_t end = r1 - r < TERN_ROW_GROUP ? r1 : r + TERN_ROW_GROUP;
        status = tern_weight_check(m->format, all, m->cols, p->first + r, p->first + end, err);
        if (status == TERN_OK)
            status = tern_pack_rows(m->format, p->job.source, p->job.rows, m->cols, m->layout, r,
                                    end, p->target, err);
    }
    return status;
}

/* Rows of a matrix whose rows in the file are not bytes of their own, counted in all of it. */
static tern_status pack_stream(const packing *p, size_t r0, size_t r1, tern_error *err) {
    const tern_matrix *m = &p->matrix;
    const uint8_t *all = p->job.tensor->data;
    uint8_t *target = p->target - tern_packed_bytes(m->layout, p->first, m->cols);
    if (!tern_import_is_plain(&p->how))
        return tern_import_pack(&p->how, all, m->rows, m->cols, m->layout, r0, r1, target, err);
    const tern_status status = tern_weight_check(m->format, all, m->cols, r0, r1, err);
    return status == TERN_OK
               ? tern_pack_rows(m->format, all, m->rows, m->cols, m->layout, r0, r1, target, err)
               : status;
}

static tern_status pack_rows(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                             tern_error *err) {
    const packing *p = (const packing *)(const void *)job;
    const tern_matrix *m = &p->matrix;
    (void)worker;
    if (job->tensor->type == TERN_GGUF_SPARSE_TYPE)
        return tern_blocks_make_dense(job->tensor, m, r0, r1, p->target, err);
    if (m->format == TERN_FORMAT_INT4)
        return tern_int4_pack(&job->tensor->int4, job->source, m, r0, r1, p->target, err);
    return m->format == TERN_FORMAT_I2_S ? pack_stream(p, p->first + r0, p->first + r1, err)
                                         : pack_blocks(p, r0, r1, err);
}

static tern_status note_packing(const tern_gguf *file, const tern_load_entry *e, uint8_t *target,
                                tern_load_jobs *jobs, tern_error *err) {
    packing *p = malloc(sizeof *p);
    if (p == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to pack weights");
    *p = (packing){.job = {.make = pack_rows,
                           .rows = e->part.end - e->part.begin,
                           .row_bytes = tern_load_row_bytes(e),
                           .source = tern_load_own_rows(e),
                           .file = file,
                           .tensor = e->tensor},
                   .matrix = e->to.linear->matrix,
                   .how = e->how,
                   .first = e->part.begin,
                   .target = target};
    p->matrix.rows = e->rows;
    tern_load_jobs_add(jobs, &p->job);
    return TERN_OK;
}

/* ---- sparse blocks ------------------------------------------------------------------------- */

/* Checks the values of the block rows that begin in rows [r0, r1). */
static tern_status check_block_rows(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                                    tern_error *err) {
    const tern_iebs m = tern_iebs_view(job->tensor->data);
    const size_t h = m.block_rows;
    (void)worker;
    return tern_iebs_values(&m, (r0 + h - 1) / h, (r1 + h - 1) / h, err);
}

static tern_status note_blocks(const tern_gguf *file, const tern_load_entry *e,
                               tern_load_jobs *jobs, tern_error *err) {
    tern_load_job *job = malloc(sizeof *job);
    if (job == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to check weights");
    *job = (tern_load_job){.make = check_block_rows,
                           .rows = e->rows,
                           .row_bytes = (size_t)(e->tensor->bytes / e->rows) + 1,
                           .file = file,
                           .tensor = e->tensor};
    tern_load_jobs_add(jobs, job);
    return TERN_OK;
}

/* ---- small things -------------------------------------------------------------------------- */

static void fill_vector(const tern_load_entry *e, float *out) {
    if (e->format == TERN_FORMAT_F32) /* a file may be aligned to less than a float */
        memcpy(out, e->tensor->data, e->cols * sizeof *out);
    else
        tern_kernel_scalar(TERN_OP_EMBED, e->format)->fn.embed(e->tensor->data, e->cols, out);
    for (size_t i = 0; e->divisor != 1.0f && i < e->cols; i++)
        out[i] /= e->divisor;
}

/* Moves the scales of rows, which listing kept, into the arena. */
static void fill_scales(tern_load_entry *e, uint8_t *base) {
    memcpy(target_of(e, base, 0), e->row_scales, e->rows * sizeof *e->row_scales);
    free(e->row_scales);
    e->row_scales = NULL;
}

/* ---- the list ------------------------------------------------------------------------------ */

typedef struct filler {
    const tern_gguf *file;
    uint8_t *base;
    tern_guard *guard;
    uint32_t workers;
    tern_load_jobs jobs;
} filler;

static tern_status fill_matrix(filler *f, tern_load_entry *e, tern_error *err) {
    tern_load_piece pieces[TERN_LOAD_PIECES];
    const size_t n = tern_load_pieces(e, pieces);
    if (e->row_scales != NULL && tern_load_has_own_scale(e))
        fill_scales(e, f->base);
    if (e->place == TERN_LOAD_COPY)
        memcpy(target_of(e, f->base, n - 1), tern_load_own_rows(e), tern_load_copied(e));
    return e->place == TERN_LOAD_MADE && e->part.begin < e->part.end
               ? note_packing(f->file, e, target_of(e, f->base, n - 1), &f->jobs, err)
               : TERN_OK;
}

static tern_status make(filler *f, tern_load_entry *e, tern_error *err) {
    if (e->kind == TERN_LOAD_MATRIX)
        return fill_matrix(f, e, err);
    if (e->kind == TERN_LOAD_VECTOR)
        fill_vector(e, target_of(e, f->base, 0));
    else if (e->kind == TERN_LOAD_EMBEDDING && e->place == TERN_LOAD_COPY)
        memcpy(target_of(e, f->base, 0), e->tensor->data, (size_t)e->tensor->bytes);
    else if (e->kind == TERN_LOAD_IMAGE && e->place == TERN_LOAD_MADE)
        return tern_head_image_note(e->to.image, e[-1].to.linear, f->file, f->guard, f->workers,
                                    &f->jobs, err);
    return TERN_OK;
}

/* The rows that this rank reads: any of an embedding. */
static tern_part checked_rows(const tern_load_entry *e) {
    return e->kind == TERN_LOAD_MATRIX ? e->part : (tern_part){0, e->rows};
}

static tern_status check(filler *f, const tern_load_entry *e, tern_error *err) {
    switch (e->check) {
    case TERN_CHECK_BLOCKS:
        return note_blocks(f->file, e, &f->jobs, err);
    case TERN_CHECK_KEEP:
    case TERN_CHECK_DROP:
        return tern_weight_note_check(&f->jobs, f->file, e->tensor, checked_rows(e),
                                      e->check == TERN_CHECK_DROP, err);
    default:
        return TERN_OK;
    }
}

tern_status tern_load_list_fill(tern_load_list *l, uint8_t *base, tern_guard *guard,
                                tern_team *team, tern_error *err) {
    filler f = {.file = l->file, .base = base, .guard = guard, .workers = tern_team_size(team)};
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < l->n; i++) {
        status = make(&f, &l->entries[i], err);
        if (status == TERN_OK)
            status = check(&f, &l->entries[i], err);
    }
    if (status == TERN_OK)
        status = tern_load_jobs_run(&f.jobs, team, err);
    tern_load_jobs_free(&f.jobs); /* an error may have left some */
    return status;
}
