/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds the tensors of a list that are made of shared bytes, and decides what happens if it
 * cannot. */

#include <stdlib.h>

#include "runtime/files/gguf/dedup.h"

#define DEFAULT_CACHE_BYTES (UINT64_C(1) << 30)

/* The first tensor that the folder does not hold as it is; NULL: it holds all. */
static const tern_gguf_tensor *first_missing(const tern_gguf *list) {
    for (size_t i = 0; i < list->n_tensors; i++)
        if (list->tensors[i].data == NULL)
            return &list->tensors[i];
    return NULL;
}

/* In strict mode a tensor without a checksum is an error: nothing vouches for its bytes. */
static tern_status check_sums(const tern_dedup_index *index, const tern_gguf *list,
                              tern_error *err) {
    for (size_t i = 0; i < index->n_ranges; i++) {
        const size_t number = index->ranges[i].tensor;
        if (!index->has_sum[number])
            return tern_fail(err, TERN_ERR_STRICT, "strict: %s: tensor '%.*s' has no checksum",
                             index->file->name, TERN_SPAN_ARG(list->tensors[number].name));
    }
    return TERN_OK;
}

static tern_status use_index(tern_iebin_reading *r, const tern_dedup_params *params,
                             tern_error *err) {
    const uint64_t cache = params->cache_bytes > 0 ? params->cache_bytes : DEFAULT_CACHE_BYTES;
    tern_dedup_index index;
    tern_status status = tern_dedup_index_read(r, &index, err);
    if (status == TERN_OK && params->use == TERN_DEDUP_STRICT)
        status = check_sums(&index, r->file, err);
    if (status == TERN_OK)
        status = tern_dedup_rebuild(&index, r->file, cache, &r->file->dedup, err);
    tern_dedup_index_free(&index);
    return status;
}

/* The folder's own bytes are as good, so this is not an error. The reason is kept for messages. */
static tern_status keep_problem(tern_gguf *list, const tern_error *problem, tern_error *err) {
    list->dedup.problem = strdup(problem->message);
    list->dedup.info.problem = list->dedup.problem;
    return list->dedup.problem != NULL
               ? TERN_OK
               : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a message", list->name);
}

tern_status tern_dedup_apply(tern_iebin_reading *r, const tern_dedup_params *params,
                             tern_error *err) {
    static const tern_dedup_params usual = {.use = TERN_DEDUP_AUTO};
    const tern_gguf_tensor *missing = first_missing(r->file);
    tern_error problem = {.status = TERN_OK};
    if (params == NULL)
        params = &usual;
    if (params->use == TERN_DEDUP_OFF && missing != NULL)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING,
                         "%s: tensor '%.*s' is made of shared bytes, which is switched off",
                         r->file->name, TERN_SPAN_ARG(missing->name));
    if (params->use == TERN_DEDUP_OFF || (params->use == TERN_DEDUP_AUTO && missing == NULL))
        return TERN_OK;
    const tern_status status = use_index(r, params, &problem);
    if (status == TERN_OK) {
        missing = first_missing(r->file);
        return missing == NULL
                   ? TERN_OK
                   : tern_fail(err, TERN_ERR_TENSOR_MISSING,
                               "%s: tensor '%.*s' is made of shared bytes, but "
                               "%s does not tell which",
                               r->file->name, TERN_SPAN_ARG(missing->name), TERN_DEDUP_INDEX);
    }
    const bool needed = missing != NULL || params->use == TERN_DEDUP_STRICT;
    if (needed || status == TERN_ERR_NOMEM)
        return tern_fail(err, status, "%s", problem.message);
    return keep_problem(r->file, &problem, err);
}
