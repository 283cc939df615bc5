/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/gguf/sidecar.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hash64.h"
#include "runtime/files/gguf/iebin.h"
#include "runtime/files/gguf/internal.h"

enum { PATH_BYTES = 4096 };

/* ---- where it lies --------------------------------------------------------------------------- */

static const char part_form[] = "-#####-of-#####"; /* # stands for a digit */

static bool is_part_number(const char *text) {
    for (size_t i = 0; part_form[i] != '\0'; i++)
        if (part_form[i] == '#' ? !isdigit((unsigned char)text[i]) : text[i] != part_form[i])
            return false;
    return true;
}

bool tern_gguf_sidecar_path(const char *model, char *path, size_t size) {
    static const char ending[] = ".gguf";
    const size_t part = sizeof part_form - 1;
    size_t n = strlen(model);
    if (n > sizeof ending - 1 && strcmp(model + n - (sizeof ending - 1), ending) == 0) {
        n -= sizeof ending - 1;
        n -= n > part && is_part_number(model + n - part) ? part : 0;
    }
    const int written = snprintf(path, size, "%.*s.sparse", (int)n, model);
    return written > 0 && (size_t)written < size;
}

/* ---- does it belong to the file -------------------------------------------------------------- */

static tern_status wrong(const tern_gguf *list, const tern_gguf_tensor *t, tern_status status,
                         const char *what, const char *file, tern_error *err) {
    return tern_fail(err, status, "%s: tensor '%.*s': %s %s", list->name, TERN_SPAN_ARG(t->name),
                     what, file);
}

/* XXH64 of a tensor's bytes, which are not read again. */
static uint64_t hash_dense(const tern_gguf *file, const tern_gguf_tensor *t) {
    const uint64_t hash = tern_hash64_of(t->data, (size_t)t->bytes);
    tern_gguf_drop_pages(file, t);
    return hash;
}

static tern_status check_tensor(const tern_gguf *file, const tern_gguf *list,
                                const tern_gguf_tensor *t, tern_error *err) {
    const tern_gguf_tensor *dense = tern_gguf_find_name(file, t->name);
    const char *model = file->name;
    if (t->type != TERN_GGUF_SPARSE_TYPE)
        return wrong(list, t, TERN_ERR_TENSOR_TYPE, "is not iebs, the type of all sparse layers",
                     model, err);
    if (dense == NULL)
        return wrong(list, t, TERN_ERR_TENSOR_MISSING, "there is none of that name in", model, err);
    if (tern_gguf_format(dense) != tern_gguf_format(t))
        return wrong(list, t, TERN_ERR_TENSOR_TYPE, "its values have another format than in", model,
                     err);
    if (memcmp(dense->ne, t->ne, sizeof t->ne) != 0)
        return wrong(list, t, TERN_ERR_TENSOR_SHAPE, "has another shape than in", model, err);
    if (t->replaces == 0)
        return wrong(list, t, TERN_ERR_JSON, "has no 'replaces_xxh64' of its dense bytes in", model,
                     err);
    if (t->replaces != hash_dense(file, dense))
        return wrong(list, t, TERN_ERR_PARTS, "was made for other weights than those of", model,
                     err);
    return TERN_OK;
}

static tern_status check(const tern_gguf *file, const tern_gguf *list, tern_error *err) {
    tern_status status = TERN_OK;
    if (list->n_values > 0)
        return tern_fail(err, TERN_ERR_PARTS,
                         "%s: has keys, so it is a model, no sparse layers of %s", list->name,
                         file->name);
    if (list->n_tensors == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "%s: has no sparse layers of %s", list->name,
                         file->name);
    for (size_t i = 0; status == TERN_OK && i < list->n_tensors; i++)
        status = check_tensor(file, list, &list->tensors[i], err);
    return status;
}

/* ---- putting it in --------------------------------------------------------------------------- */

/* Makes the list, and after it the files that it names, parts of the model. */
static tern_status adopt(tern_gguf *file, tern_gguf *list, tern_error *err) {
    const size_t n = file->n_others + 1 + list->n_others;
    tern_gguf **grown = realloc(file->others, n * sizeof(tern_gguf *));
    if (grown == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu files", file->name, n);
    file->others = grown;
    grown[file->n_others] = list;
    if (list->n_others > 0)
        memcpy(grown + file->n_others + 1, list->others, list->n_others * sizeof(tern_gguf *));
    file->n_others = n;
    list->n_others = 0;
    file->sidecar = list;
    return TERN_OK;
}

/* Takes a tensor off the count of the file in which its bytes lie. */
static void discount(tern_gguf *file, const uint8_t *data) {
    for (size_t i = 0; i <= file->n_others; i++) {
        tern_gguf *part = i == 0 ? file : file->others[i - 1];
        if ((uintptr_t)data - (uintptr_t)part->bytes < part->size) {
            part->n_own--;
            return;
        }
    }
}

static void replace(tern_gguf *file, const tern_gguf_tensor *sparse) {
    const tern_gguf_tensor *dense = tern_gguf_find_name(file, sparse->name);
    tern_gguf_tensor *t = &file->tensors[dense - file->tensors];
    discount(file, t->data);
    t->type = sparse->type;
    t->bytes = sparse->bytes;
    t->extent = sparse->extent;
    t->data = sparse->data;
}

tern_status tern_sidecar_apply(tern_gguf *file, tern_gguf *list, tern_error *err) {
    tern_status status = check(file, list, err);
    if (status == TERN_OK)
        status = adopt(file, list, err);
    if (status != TERN_OK) {
        tern_gguf_close(&list);
        return status;
    }
    for (size_t i = 0; i < list->n_tensors; i++)
        replace(file, &list->tensors[i]);
    return TERN_OK;
}

tern_status tern_gguf_add_sidecar(tern_gguf *file, tern_error *err) {
    const tern_dedup_params own_bytes = {.use = TERN_DEDUP_OFF};
    char path[PATH_BYTES];
    struct stat info;
    tern_gguf *list;
    if (file == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_gguf_add_sidecar: NULL argument");
    if (file->version == 0 || file->sidecar != NULL ||
        !tern_gguf_sidecar_path(file->name, path, sizeof path))
        return TERN_OK;
    if (stat(path, &info) != 0)
        return errno == ENOENT || errno == ENAMETOOLONG
                   ? TERN_OK
                   : tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: is not a folder, as sparse layers of %s must be",
                         path, file->name);
    if (!tern_iebin_is(path))
        return tern_fail(err, TERN_ERR_IO, "%s: has no " TERN_IEBIN_LIST " of sparse layers of %s",
                         path, file->name);
    const tern_status status = tern_iebin_open(path, &own_bytes, &list, err);
    return status == TERN_OK ? tern_sidecar_apply(file, list, err) : status;
}

const char *tern_gguf_sidecar(const tern_gguf *file, size_t *n) {
    *n = file->sidecar != NULL ? file->sidecar->n_tensors : 0;
    return file->sidecar != NULL ? file->sidecar->name : NULL;
}
