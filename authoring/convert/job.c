/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/sparse.h"
#include "authoring/iebin_writer.h"
#include "base/grow.h"
#include "base/hash64.h"
#include "base/word_list.h"
#include "runtime/files/gguf/int4.h"
#include "threads/team.h"

convert_tensor *convert_job_add(convert_job *job) {
    convert_tensor *t;
    if (!tern_grow((void **)&job->tensors, &job->capacity, job->n, sizeof *t, SIZE_MAX / sizeof *t))
        return NULL;
    t = &job->tensors[job->n++];
    memset(t, 0, sizeof *t);
    return t;
}

void convert_job_free(convert_job *job) {
    for (size_t i = 0; i < job->n; i++) {
        if (job->tensors[i].sparse == NULL)
            continue;
        convert_sparse_free(job->tensors[i].sparse);
        free(job->tensors[i].sparse);
    }
    free(job->tensors);
    free(job->results);
    *job = (convert_job){.n = 0};
}

/* Sets the tile sizes of a tensor that is written in tiles, and its size in bytes. */
static tern_status plan_tiles(const convert_formats *formats, convert_tensor *t, tern_error *err) {
    size_t bytes;
    tern_error why = {.status = TERN_OK};
    tern_status status =
        tern_reading_tiles(&formats->reading, formats->tiled, t->rows, t->cols, &t->tiles, &why);
    if (status == TERN_OK)
        status = tern_tl_bytes(formats->tiled, t->rows, t->cols, &t->tiles, &bytes, &why);
    if (status != TERN_OK)
        return tern_fail(err, status, "tensor %s: %s", t->name, why.message);
    t->tiled = formats->tiled;
    t->bytes = bytes;
    return TERN_OK;
}

/* Sets rows with scales, and their size. */
static tern_status plan_rows(const convert_formats *formats, convert_tensor *t, tern_error *err) {
    tern_error why = {.status = TERN_OK};
    const tern_status status = tern_bn_check(formats->bn, t->rows, t->cols, &why);
    if (status != TERN_OK)
        return tern_fail(err, status, "tensor %s: %s", t->name, why.message);
    t->bn = formats->bn;
    t->as_is = NULL;
    t->bytes = (uint64_t)t->rows * tern_bn_row_bytes(t->bn, t->cols);
    return TERN_OK;
}

/* Compares the forms of INT4 rows. For other formats both are zero, before and after. */
static bool same_rows(const tern_int4_rows *a, const tern_int4_rows *b) {
    return a->group == b->group && a->zero_points == b->zero_points &&
           a->twos_complement == b->twos_complement && a->high_first == b->high_first;
}

/* True for a vector, and for tensors that are several: biases of experts, taps of convolutions. */
static bool is_vector(const convert_tensor *t) {
    return t->n_dims == 1 || text_ends_with(t->name, ".bias") ||
           text_ends_with(t->name, ".ssm_conv1d.weight");
}

static tern_status plan_tensor(const convert_formats *formats, convert_tensor *t, tern_error *err) {
    tern_status status = convert_format_choose(formats, t->name, t->source, t->rows, t->cols,
                                               is_vector(t), &t->target, err);
    const tern_int4_rows before = t->int4;
    if (status == TERN_OK)
        status =
            convert_int4_choose(formats, t->name, is_vector(t), t->cols, &t->target, &t->int4, err);
    if (t->target != t->source || !same_rows(&before, &t->int4)) {
        t->as_is = NULL;
        t->raw = NULL;
    }
    if (status == TERN_OK && t->as_is == NULL && t->raw == NULL)
        status = convert_importance_choose(formats, t->name, convert_matrices(t), t->cols,
                                           t->target, &t->importance, err);
    if (status != TERN_OK)
        return status;
    if (t->target == TERN_FORMAT_INT4) {
        t->bytes = (uint64_t)t->rows * tern_int4_row_bytes(&t->int4, t->cols);
        return TERN_OK;
    }
    if (convert_has_form(formats, t->name, t->target))
        return formats->bn != 0 ? plan_rows(formats, t, err) : plan_tiles(formats, t, err);
    return tern_format_bytes(t->target, t->rows, t->cols, &t->bytes);
}

/* The importance file must be used by some tensor. */
static tern_status check_importance(const convert_job *job, const convert_formats *formats,
                                    tern_error *err) {
    bool used = formats->importance == NULL;
    for (size_t i = 0; i < job->n; i++)
        used = used || job->tensors[i].importance != NULL;
    return used ? TERN_OK
                : tern_fail(err, TERN_ERR_ARG,
                            "no tensor becomes int4, a type of grids (iq1_s .. iq3_s), iq4_nl, "
                            "iq4_xs, q4_0, q5_0 or a K-quant: --imatrix has no use");
}

static const convert_tensor *find_tensor(const convert_job *job, const char *name) {
    for (size_t i = 0; i < job->n; i++)
        if (strcmp(job->tensors[i].name, name) == 0)
            return &job->tensors[i];
    return NULL;
}

/* Heads of queries for each of keys: by the rows of their matrices in the first block. */
static size_t queries_of(const convert_job *job) {
    const convert_tensor *q = find_tensor(job, "blk.0.attn_q.weight");
    const convert_tensor *k = find_tensor(job, "blk.0.attn_k.weight");
    const convert_tensor *all = find_tensor(job, "blk.0.attn_qkv.weight");
    const convert_tensor *out = find_tensor(job, "blk.0.attn_output.weight");
    if (q != NULL && k != NULL && k->rows > 0)
        return q->rows / k->rows;
    const size_t shared = all != NULL && out != NULL ? all->rows - out->cols : 0;
    return shared > 0 ? 2 * out->cols / shared : 0;
}

static convert_shape shape_of(const convert_job *job, const convert_formats *formats) {
    const convert_tensor *down = find_tensor(job, "blk.0.ffn_down_exps.weight");
    convert_shape shape = {.queries = queries_of(job),
                           .experts = down != NULL ? convert_matrices(down) : 0,
                           .tied = find_tensor(job, "output.weight") == NULL,
                           .importance = formats->importance != NULL};
    for (size_t i = 0; i < job->n; i++) {
        unsigned layer;
        if (sscanf(job->tensors[i].name, "blk.%u.", &layer) == 1 && layer >= shape.layers)
            shape.layers = (size_t)layer + 1;
    }
    return shape;
}

tern_status convert_job_plan(convert_job *job, convert_formats *formats, tern_error *err) {
    tern_status status = TERN_OK;
    formats->shape = shape_of(job, formats);
    for (size_t i = 0; status == TERN_OK && i < job->n; i++)
        status = plan_tensor(formats, &job->tensors[i], err);
    if (status == TERN_OK)
        status = check_importance(job, formats, err);
    return status == TERN_OK ? convert_q4_map_check(formats->map, err) : status;
}

/* The type's number in the file. */
static uint32_t type_of(const convert_tensor *t) {
    if (t->sparse != NULL)
        return TERN_GGUF_SPARSE_TYPE;
    if (t->tiled != 0)
        return t->tiled == TERN_TL1 ? TERN_GGUF_TL1 : TERN_GGUF_TL2;
    if (t->bn != 0)
        return t->bn == TERN_IQ1_BN ? TERN_GGUF_IQ1_BN : TERN_GGUF_IQ2_BN;
    return tern_format_describe(t->target)->gguf_type;
}

static void describe(const convert_job *job, tern_gguf_writer *w) {
    for (size_t i = 0; i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        if (t->target == TERN_FORMAT_INT4)
            tern_iebin_put_int4(w, t->name, t->n_dims, t->ne, &t->int4);
        else
            tern_gguf_put_tensor(w, t->name, type_of(t), t->n_dims, t->ne, t->bytes);
        if (job->beside)
            tern_iebin_replaces_last(w, tern_hash64_of(t->stored, (size_t)t->before));
    }
}

static tern_status write_tensors(convert_job *job, tern_gguf_writer *w, const convert_tools *tools,
                                 const convert_how *how, tern_error *err) {
    uint64_t total = 0, done = 0;
    tern_status status = TERN_OK;
    for (size_t i = 0; i < job->n; i++)
        total += job->tensors[i].bytes;
    for (size_t i = 0; status == TERN_OK && i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        if (job->begin != NULL)
            status = job->begin(t, job->user, err);
        if (status == TERN_OK)
            status = convert_recode(t, tools, w, &job->results[i], err);
        if (job->done != NULL)
            job->done(t, job->user);
        done += t->bytes;
        how->progress(done, total, how->user);
    }
    return status;
}

/* Makes the tables for the search in the grids of formats that tensors become. */
static tern_status make_searches(const convert_job *job, tern_grid_search **searches,
                                 tern_error *err) {
    for (size_t i = 0; i < job->n; i++) {
        const tern_format target = job->tensors[i].target;
        if (job->tensors[i].as_is != NULL || tern_grid_of(target) == NULL ||
            searches[target] != NULL)
            continue;
        searches[target] = malloc(sizeof **searches);
        if (searches[target] == NULL)
            return tern_fail(err, TERN_ERR_NOMEM, "no memory for the grid of %s",
                             tern_format_describe(target)->name);
        tern_grid_search_init(searches[target], target);
    }
    return TERN_OK;
}

tern_status convert_job_write(convert_job *job, tern_gguf_writer **w, const convert_how *how,
                              tern_error *err) {
    tern_team *team = NULL;
    tern_grid_search *searches[TERN_FORMAT_COUNT + 1] = {NULL}; /* + 1: of sparse targets */
    job->results = calloc(job->n + 1, sizeof *job->results);    /* + 1: never 0 bytes */
    if (job->results == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the results of %zu tensors", job->n);
    describe(job, *w);
    tern_status status = make_searches(job, searches, err);
    if (status == TERN_OK)
        status = tern_gguf_writer_begin(*w, err);
    if (status == TERN_OK) {
        status =
            tern_team_new(how->threads > 0 ? how->threads : tern_processor_count(), &team, err);
    }
    if (status == TERN_OK) {
        const convert_tools tools = {
            .team = team, .force = how->force_ternary, .searches = searches};
        status = write_tensors(job, *w, &tools, how, err);
    }
    tern_team_free(&team);
    for (int f = 0; f < TERN_FORMAT_COUNT; f++)
        free(searches[f]);
    return status == TERN_OK ? tern_gguf_writer_finish(w, err) : status;
}
