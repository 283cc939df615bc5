/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/cache.h"

#include <stdlib.h>

#include "tools/crossval/floats.h"

/* Compares all rows of keys or of values, in the order of the file. */
static tern_status compare_file(const tern_session *session, bool value, float_file *f, float *rows,
                                size_t n_tokens, sum_figures *layers, tern_error *err) {
    tern_model_info info;
    tern_model_describe(tern_session_model(session), &info);
    const size_t width = info.head_dim;
    for (uint32_t layer = 0; layer < info.n_layer; layer++) {
        for (uint32_t head = 0; head < info.n_head_kv; head++) {
            for (uint32_t position = 0; position < n_tokens; position++) {
                const tern_status status = float_file_next(f, rows, err);
                if (status != TERN_OK)
                    return status;
                if (!tern_session_kv_floats(session, value, layer, head, position, rows + width))
                    return tern_fail(err, TERN_ERR_ARG, "no position %u in the cache", position);
                const pair_figures p = compare_vectors(rows, rows + width, width);
                sum_add(&layers[layer], &p);
            }
        }
    }
    return TERN_OK;
}

static tern_status compare(const tern_session *session, bool value, const reference *all,
                           const char *name, size_t n_tokens, sum_figures *layers,
                           tern_error *err) {
    tern_model_info info;
    tern_model_describe(tern_session_model(session), &info);
    float_file f = {0};
    float *rows = calloc(2 * (size_t)info.head_dim, sizeof *rows);
    tern_status status = rows != NULL
                             ? float_file_open(&f, all->folder, name, info.head_dim, err)
                             : tern_fail(err, TERN_ERR_NOMEM, "no memory for a row of the cache");
    const size_t heads = (size_t)info.n_layer * info.n_head_kv;
    if (status == TERN_OK && (f.rows % heads != 0 || f.rows / heads != n_tokens)) {
        status = tern_fail(err, TERN_ERR_ARG,
                           "%s: %zu floats, not %u layers x %u heads x %zu tokens x %u", f.path,
                           f.rows * f.width, info.n_layer, info.n_head_kv, n_tokens, info.head_dim);
    }
    if (status == TERN_OK)
        status = compare_file(session, value, &f, rows, n_tokens, layers, err);
    float_file_close(&f);
    free(rows);
    return status;
}

tern_status crossval_compare_cache(const tern_session *session, const reference *all,
                                   const reference_case *c, case_result *out, tern_error *err) {
    if (!crossval_wants_cache(c))
        return TERN_OK;
    tern_model_info info;
    tern_model_describe(tern_session_model(session), &info);
    const size_t n_layer = info.n_layer;
    out->keys = calloc(n_layer, sizeof *out->keys);
    out->values = calloc(n_layer, sizeof *out->values);
    if (out->keys == NULL || out->values == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the figures of %zu layers", n_layer);
    out->n_layer = n_layer;
    const tern_status status = compare(session, false, all, c->keys, c->n_tokens, out->keys, err);
    return status == TERN_OK ? compare(session, true, all, c->values, c->n_tokens, out->values, err)
                             : status;
}
