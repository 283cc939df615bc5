/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/adapters/adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash64.h"
#include "base/hex.h"
#include "base/sha256.h"

/* ---- opening --------------------------------------------------------------------------------- */

/* A folder is somebody's adapter in another form, not a file of ours. */
static tern_status refuse_folder(const char *path, tern_error *err) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode)
               ? tern_fail(err, TERN_ERR_CONFIG,
                           "%s: is a folder; `tern convert %s adapter.gguf` makes a file of a "
                           "PEFT adapter",
                           path, path)
               : TERN_OK;
}

static tern_status open_one(const tern_adapter_base *base, const tern_adapter_file *from,
                            tern_adapter *to, tern_adapter_info *info, tern_error *err) {
    tern_gguf *file = NULL;
    to->path = strdup(from->path);
    tern_status status = to->path != NULL
                             ? refuse_folder(from->path, err)
                             : tern_fail(err, TERN_ERR_NOMEM, "no memory for an adapter's path");
    if (status == TERN_OK)
        status = tern_gguf_open(from->path, &file, err);
    if (status == TERN_OK)
        status = tern_adapter_read(base, file, to, info, err);
    if (status == TERN_OK)
        status = tern_gguf_unchanged(file, err);
    tern_gguf_close(&file);
    info->path = to->path;
    info->name = to->name;
    info->scale = from->scale;
    return status;
}

/* Chooses the kernels for a pair's formats, and tries them on it. */
static tern_status try_kernels(tern_adapters *a, tern_guard *guard, const tern_adapter_pair *pair,
                               const char *path, tern_error *err) {
    const tern_matrix *m = &pair->a, *b = &pair->b;
    const tern_kernel_row **gemv = &a->gemv[m->format], **gemm = &a->gemm[m->format];
    const tern_kernel_row **embed = &a->embed[b->format];
    *gemv = tern_guard_product(guard, TERN_OP_GEMV, m, *gemv, path);
    *gemm = tern_guard_product(guard, TERN_OP_GEMM, m, *gemm, path);
    *embed =
        tern_guard_operation(guard, TERN_OP_EMBED, b->format, b->data, tern_adapter_group(pair, 0));
    return *gemv != NULL && *gemm != NULL && *embed != NULL
               ? TERN_OK
               : tern_fail(err, guard->no_memory ? TERN_ERR_NOMEM : TERN_ERR_KERNEL,
                           "%s: no kernels for its matrices", path);
}

static tern_status find_kernels(tern_adapters *a, const tern_adapter_base *base, tern_error *err) {
    const size_t n = (size_t)base->config->n_layer * TERN_LAYER_LINEARS;
    tern_status status = TERN_OK;
    for (size_t k = 0; k < a->n; k++)
        for (size_t i = 0; status == TERN_OK && i < n; i++) {
            const tern_adapter_pair *pair = &a->list[k].pairs[i];
            if (pair->a.data != NULL)
                status = try_kernels(a, base->guard, pair, a->list[k].path, err);
        }
    return status;
}

/* Makes the set of the scales that the files were given with. */
static tern_status find_usual(tern_adapters *a, tern_error *err) {
    tern_adapter_use uses[TERN_MOST_ADAPTERS];
    for (size_t i = 0; i < a->n; i++)
        uses[i] = (tern_adapter_use){(uint32_t)i, a->infos[i].scale};
    return tern_adapter_set_make(a, uses, a->n, &a->usual, err);
}

static void find_places(tern_adapters *a) {
    const tern_layer layer = {.kind = 0};
    for (size_t i = 0; i < TERN_LAYER_LINEARS; i++)
        a->matrix_at[i] =
            (size_t)((const uint8_t *)tern_layer_linear(&layer, i) - (const uint8_t *)&layer);
    for (size_t i = 0; i < a->n; i++)
        a->first[i + 1] = a->first[i] + ((size_t)a->infos[i].rank + 15) / 16 * 16;
}

static tern_status check_base(const tern_adapter_base *base, size_t n, tern_error *err) {
    if (n > TERN_MOST_ADAPTERS)
        return tern_fail(err, TERN_ERR_ARG, "%s: %zu adapters, at most %d", base->name, n,
                         (int)TERN_MOST_ADAPTERS);
    return base->turned
               ? tern_fail(err, TERN_ERR_ARCH,
                           "%s: its rows are rotated, adapters are not supported", base->name)
               : TERN_OK;
}

tern_status tern_adapters_open(const tern_adapter_base *base, const tern_adapter_file *files,
                               size_t n, tern_adapters *out, tern_error *err) {
    tern_status status = check_base(base, n, err);
    if (status != TERN_OK)
        return status;
    out->list = calloc(n, sizeof *out->list);
    out->infos = calloc(n, sizeof *out->infos);
    out->first = calloc(n + 1, sizeof *out->first);
    if (out->list == NULL || out->infos == NULL || out->first == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu adapters", n);
    for (; status == TERN_OK && out->n < n; out->n++)
        status = open_one(base, &files[out->n], &out->list[out->n], &out->infos[out->n], err);
    if (status == TERN_OK)
        status = find_kernels(out, base, err);
    if (status == TERN_OK)
        status = find_usual(out, err);
    if (status == TERN_OK)
        find_places(out);
    return status;
}

void tern_adapters_free(tern_adapters *a) {
    for (size_t i = 0; i < a->n; i++) {
        tern_arena_free(&a->list[i].arena);
        free(a->list[i].pairs);
        free(a->list[i].path);
        free(a->list[i].name);
    }
    free(a->list);
    free(a->infos);
    free(a->first);
    free(a->usual.uses);
    *a = (tern_adapters){.n = 0};
}

size_t tern_adapters_index(const tern_adapters *a, const tern_layer *layer,
                           const tern_linear *linear) {
    const size_t at = (size_t)((const uint8_t *)linear - (const uint8_t *)layer);
    size_t i = 0;
    while (a->matrix_at[i] != at)
        i++;
    return i;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* True if the products of a use have a finite factor everywhere. */
static bool is_bounded(const tern_adapters *a, const tern_adapter_use *use) {
    const float alpha = a->infos[use->id].alpha;
    return isfinite(use->scale) && isfinite(use->scale * (alpha != 0.0f ? alpha : 1.0f));
}

static tern_status check_use(const tern_adapters *a, const tern_adapter_use *uses, size_t i,
                             tern_error *err) {
    const tern_adapter_use *use = &uses[i];
    if (use->id >= a->n)
        return tern_fail(err, TERN_ERR_ARG, "there is no adapter %u, the model has %zu", use->id,
                         a->n);
    for (size_t k = 0; k < i; k++)
        if (uses[k].id == use->id)
            return tern_fail(err, TERN_ERR_ARG, "adapter %u is named twice", use->id);
    if (!is_bounded(a, use))
        return tern_fail(
            err, TERN_ERR_ARG, "%s: adapter %u: a scale of %g, and alpha %g, are too large",
            a->infos[use->id].path, use->id, (double)use->scale, (double)a->infos[use->id].alpha);
    return TERN_OK;
}

static int by_id(const void *a, const void *b) {
    const uint32_t x = ((const tern_adapter_use *)a)->id, y = ((const tern_adapter_use *)b)->id;
    return x < y ? -1 : x > y;
}

tern_status tern_adapter_set_make(const tern_adapters *a, const tern_adapter_use *uses, size_t n,
                                  tern_adapter_set *out, tern_error *err) {
    for (size_t i = 0; i < n; i++) {
        const tern_status status = check_use(a, uses, i, err);
        if (status != TERN_OK)
            return status;
    }
    tern_adapter_set set = {.uses = calloc(n + 1, sizeof *set.uses)};
    if (set.uses == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu adapters", n);
    for (size_t i = 0; i < n; i++)
        if (uses[i].scale != 0.0f)
            set.uses[set.n++] = uses[i];
    qsort(set.uses, set.n, sizeof *set.uses, by_id);
    *out = set;
    return TERN_OK;
}

uint64_t tern_adapter_set_hash(const tern_adapters *a, const tern_adapter_set *set) {
    tern_hash64 h;
    tern_hash64_start(&h);
    for (size_t i = 0; i < set->n; i++) {
        const tern_adapter_use *use = &set->uses[i];
        tern_hash64_add(&h, a->infos[use->id].digest, sizeof a->infos->digest);
        tern_hash64_add(&h, &use->scale, sizeof use->scale);
    }
    return set->n > 0 ? tern_hash64_value(&h) : 0;
}

void tern_adapter_set_space(const tern_adapters *a, const tern_adapter_set *set,
                            const uint8_t *space, uint8_t *out) {
    static const uint8_t zeros[32];
    const uint8_t *from = space != NULL ? space : zeros;
    tern_sha256 h;
    char hex[65];
    if (set->n == 0) {
        memmove(out, from, sizeof zeros);
        return;
    }
    tern_sha256_start(&h);
    tern_sha256_add(&h, from, sizeof zeros);
    for (size_t i = 0; i < set->n; i++) {
        tern_sha256_add(&h, a->infos[set->uses[i].id].digest, sizeof a->infos->digest);
        tern_sha256_add(&h, &set->uses[i].scale, sizeof set->uses->scale);
    }
    tern_sha256_finish(&h, hex);
    for (size_t i = 0; i < sizeof zeros; i++)
        out[i] = (uint8_t)(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]));
}
