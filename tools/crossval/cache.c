/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"
#include "tools/crossval/floats.h"

enum { BLOCK = 32, BLOCK_BYTES = 34 }; /* of q8_0: a half, then 32 codes */

typedef struct cache_view {
    const tern_session *session;
    tern_model_info info;
    tern_format format;
} cache_view;

/* One row of the cache as floats. */
static void decode(tern_format format, const uint8_t *row, size_t n, float *out) {
    if (format == TERN_FORMAT_F32) {
        memcpy(out, row, n * sizeof *out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (format == TERN_FORMAT_F16) {
            out[i] = tern_f16_load(row + 2 * i);
        } else {
            const uint8_t *block = row + i / BLOCK * BLOCK_BYTES;
            out[i] = tern_f16_load(block) * (float)(int8_t)block[2 + i % BLOCK];
        }
    }
}

/* All rows of keys or of values, in the order of the file. */
static tern_status compare_file(const cache_view *cache, bool value, float_file *f, float *rows,
                                size_t n_tokens, sum_figures *layers, tern_error *err) {
    const size_t width = cache->info.head_dim;
    for (uint32_t layer = 0; layer < cache->info.n_layer; layer++) {
        for (uint32_t head = 0; head < cache->info.n_head_kv; head++) {
            for (uint32_t position = 0; position < n_tokens; position++) {
                const tern_status status = float_file_next(f, rows, err);
                if (status != TERN_OK) {
                    return status;
                }
                const void *ours = tern_session_kv(cache->session, value, layer, head, position);
                decode(cache->format, ours, width, rows + width);
                const pair_figures p = compare_vectors(rows, rows + width, width);
                sum_add(&layers[layer], &p);
            }
        }
    }
    return TERN_OK;
}

static tern_status compare(const cache_view *cache, bool value, const reference *all,
                           const char *name, size_t n_tokens, sum_figures *layers,
                           tern_error *err) {
    const tern_model_info info = cache->info;
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
    if (status == TERN_OK) {
        status = compare_file(cache, value, &f, rows, n_tokens, layers, err);
    }
    float_file_close(&f);
    free(rows);
    return status;
}

tern_status crossval_compare_cache(const tern_session *session, tern_format kv,
                                   const reference *all, const reference_case *c, case_result *out,
                                   tern_error *err) {
    if (c->keys == NULL || c->values == NULL) {
        return TERN_OK;
    }
    cache_view cache = {.session = session, .format = kv};
    tern_model_describe(tern_session_model(session), &cache.info);
    const size_t n_layer = cache.info.n_layer;
    out->keys = calloc(n_layer, sizeof *out->keys);
    out->values = calloc(n_layer, sizeof *out->values);
    if (out->keys == NULL || out->values == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the figures of %zu layers", n_layer);
    }
    out->n_layer = n_layer;
    const tern_status status = compare(&cache, false, all, c->keys, c->n_tokens, out->keys, err);
    return status == TERN_OK ? compare(&cache, true, all, c->values, c->n_tokens, out->values, err)
                             : status;
}
