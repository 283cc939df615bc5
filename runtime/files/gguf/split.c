/* SPDX-License-Identifier: Apache-2.0 */
/* Models that were split into several files: NAME-00001-of-00003.gguf and so on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/files/gguf/internal.h"

#define NUMBER_KEY "split.no"
#define COUNT_KEY "split.count"
#define TENSORS_KEY "split.tensors.count"

enum { MAX_PARTS = 65535 /* the keys are 16 bits wide */ };

/* ---- what a part says of itself ------------------------------------------------------------- */

/* The number of parts, and which of them (from 0) this is; 0 parts for a whole model. */
typedef struct place {
    uint32_t number, count;
} place;

static tern_status read_place(const tern_gguf *file, place *out, tern_error *err) {
    place p = {0, 0};
    if (tern_gguf_find(file, COUNT_KEY) != NULL) {
        const tern_status status = tern_gguf_u32(file, COUNT_KEY, &p.count, err);
        if (status != TERN_OK)
            return status;
    }
    if (p.count <= 1) {
        *out = (place){0, 0};
        return TERN_OK;
    }
    if (p.count > MAX_PARTS)
        return tern_fail(err, TERN_ERR_KEY_RANGE, "%s: key '%s' is %" PRIu32 ", at most %d",
                         file->name, COUNT_KEY, p.count, MAX_PARTS);
    const tern_status status = tern_gguf_u32(file, NUMBER_KEY, &p.number, err);
    if (status == TERN_OK && p.number >= p.count)
        return tern_fail(err, TERN_ERR_KEY_RANGE,
                         "%s: key '%s' is %" PRIu32 ", but there are %" PRIu32 " parts", file->name,
                         NUMBER_KEY, p.number, p.count);
    *out = p;
    return status;
}

/* ---- do they belong together ---------------------------------------------------------------- */

/* True for keys that may differ between the parts of a model. */
static bool is_of_the_file(tern_span key) {
    static const char *const own[] = {NUMBER_KEY, "general.alignment"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (tern_span_compare(key, (tern_span){own[i], strlen(own[i])}) == 0)
            return true;
    return false;
}

static bool equal_values(const tern_gguf_value *a, const tern_gguf_value *b) {
    const size_t size = tern_gguf_value_bytes(a);
    return a->type == b->type && a->element == b->element && a->count == b->count &&
           size == tern_gguf_value_bytes(b) && memcmp(a->data, b->data, size) == 0;
}

/* True for keys that describe the model; only the first part has to have them. */
static bool is_of_the_model(tern_span key) {
    static const char *const others[] = {"split.", "general."};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (key.size > strlen(others[i]) && memcmp(key.data, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

/* Checks that metadata of the model in another part agrees with the first part's. Most have
 * none. */
static tern_status check_metadata(const tern_gguf *first, const tern_gguf *part, tern_error *err) {
    for (size_t i = 0; i < part->n_values; i++) {
        const tern_gguf_value *value = &part->values[i];
        const tern_gguf_value *other = tern_gguf_find_key(first, value->key);
        if (other != NULL && !is_of_the_file(value->key) && !equal_values(value, other))
            return tern_fail(err, TERN_ERR_PARTS,
                             "%s: key '%.*s' is not as in %s: a part of another model", part->name,
                             TERN_SPAN_ARG(value->key), first->name);
        if (other == NULL && is_of_the_model(value->key))
            return tern_fail(err, TERN_ERR_PARTS,
                             "%s: key '%.*s' is not in %s, which has the model's metadata",
                             part->name, TERN_SPAN_ARG(value->key), first->name);
    }
    return TERN_OK;
}

static tern_status check_place(const tern_gguf *part, size_t number, size_t count,
                               tern_error *err) {
    place p;
    const tern_status status = read_place(part, &p, err);
    if (status != TERN_OK)
        return status;
    if (p.count == 0)
        return tern_fail(err, TERN_ERR_PARTS, "%s: is a whole model, not part %zu of %zu",
                         part->name, number + 1, count);
    if (p.count != count || p.number != number)
        return tern_fail(err, TERN_ERR_PARTS,
                         "%s: is part %" PRIu32 " of %" PRIu32 " by its keys, not part %zu of %zu",
                         part->name, p.number + 1, p.count, number + 1, count);
    return TERN_OK;
}

static tern_status check_parts(tern_gguf *const *parts, size_t n, tern_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        tern_status status = check_place(parts[i], i, n, err);
        if (status == TERN_OK)
            status = check_metadata(parts[0], parts[i], err);
        if (status != TERN_OK)
            return status;
        total += parts[i]->n_own;
    }
    uint32_t wanted;
    if (tern_gguf_find(parts[0], TENSORS_KEY) != NULL) {
        const tern_status status = tern_gguf_u32(parts[0], TENSORS_KEY, &wanted, err);
        if (status != TERN_OK)
            return status;
        if (wanted != total)
            return tern_fail(err, TERN_ERR_PARTS,
                             "%s: key '%s' is %" PRIu32 ", but the %zu parts hold %zu tensors",
                             parts[0]->name, TENSORS_KEY, wanted, n, total);
    }
    if (total > TERN_GGUF_MAX_RECORDS)
        return tern_fail(err, TERN_ERR_COUNT, "%s: %zu tensors in %zu parts, at most %d",
                         parts[0]->name, total, n, TERN_GGUF_MAX_RECORDS);
    return TERN_OK;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* The first part that holds a tensor of this name, or the last one. */
static const char *holder(tern_gguf *const *parts, size_t n, tern_span name, bool last) {
    const char *found = parts[0]->name;
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < parts[i]->n_own; t++)
            if (tern_span_compare(parts[i]->tensors[t].name, name) == 0) {
                found = parts[i]->name;
                if (!last)
                    return found;
            }
    return found;
}

/* Gives the first part the tensors of all parts. Its own tensors were put aside before. */
static tern_status merge_tensors(tern_gguf **parts, size_t n, tern_error *err) {
    tern_gguf whole = {.n_tensors = 0};
    for (size_t i = 0; i < n; i++)
        whole.n_tensors += parts[i]->n_own;
    whole.tensors = calloc(whole.n_tensors + 1, sizeof *whole.tensors); /* + 1: never of size 0 */
    whole.by_name = calloc(whole.n_tensors + 1, sizeof *whole.by_name);
    if (whole.tensors == NULL || whole.by_name == NULL) {
        free(whole.tensors);
        free(whole.by_name);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu tensors", parts[0]->name,
                         whole.n_tensors);
    }
    for (size_t i = 0, at = 0; i < n; at += parts[i]->n_own, i++)
        if (parts[i]->n_own > 0)
            memcpy(whole.tensors + at, parts[i]->tensors, parts[i]->n_own * sizeof *whole.tensors);
    const tern_gguf_tensor *twice = tern_gguf_sort_names(&whole);
    if (twice != NULL) {
        const tern_span name = twice->name;
        free(whole.tensors);
        free(whole.by_name);
        return tern_fail(err, TERN_ERR_TENSOR_DUPLICATE, "%s: tensor '%.*s' is also in %s",
                         holder(parts, n, name, true), TERN_SPAN_ARG(name),
                         holder(parts, n, name, false));
    }
    free(parts[0]->tensors);
    free(parts[0]->by_name);
    parts[0]->tensors = whole.tensors;
    parts[0]->by_name = whole.by_name;
    parts[0]->n_tensors = whole.n_tensors;
    return TERN_OK;
}

static tern_status adopt(tern_gguf **parts, size_t n, tern_error *err) {
    tern_gguf *first = parts[0];
    first->others = calloc(n, sizeof(tern_gguf *));
    if (first->others == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu parts", first->name, n);
    for (size_t i = 1; i < n; i++) {
        first->others[first->n_others++] = parts[i];
        parts[i] = NULL;
    }
    return TERN_OK;
}

tern_status tern_gguf_join(tern_gguf **parts, size_t n, tern_gguf **out, tern_error *err) {
    if (parts == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_gguf_join: NULL argument");
    if (n == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "tern_gguf_join: no parts");
    tern_status status = check_parts(parts, n, err);
    if (status == TERN_OK)
        status = merge_tensors(parts, n, err);
    if (status == TERN_OK)
        status = adopt(parts, n, err);
    if (status == TERN_OK) {
        *out = parts[0];
        return TERN_OK;
    }
    for (size_t i = 0; i < n; i++)
        tern_gguf_close(&parts[i]);
    return status;
}

/* ---- finding the others --------------------------------------------------------------------- */

/* Writes the end of a part's name; returns its length. */
static size_t write_ending(char *out, size_t size, uint32_t number, uint32_t count) {
    return (size_t)snprintf(out, size, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", number + 1, count);
}

static tern_status open_part(const tern_gguf *known, uint32_t number, uint32_t count,
                             size_t ending_size, tern_gguf **out, tern_error *err) {
    const size_t size = strlen(known->name) + 1;
    char *path = strdup(known->name);
    tern_error inner = {.status = TERN_OK};
    if (path == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the name of a part", known->name);
    write_ending(path + size - 1 - ending_size, ending_size + 1, number, count);
    const tern_status status = tern_gguf_open_file(path, out, &inner);
    free(path);
    if (status == TERN_OK)
        return TERN_OK;
    return tern_fail(err, status, "%s (part %" PRIu32 " of %" PRIu32 " of this model)",
                     inner.message, number + 1, count);
}

static tern_status open_others(tern_gguf **file, const place *p, tern_gguf **parts,
                               tern_error *err) {
    char ending[48];
    const size_t size = write_ending(ending, sizeof ending, p->number, p->count);
    const char *name = (*file)->name;
    if (strlen(name) < size || strcmp(name + strlen(name) - size, ending) != 0)
        return tern_fail(err, TERN_ERR_PARTS,
                         "%s: is part %" PRIu32 " of %" PRIu32
                         ", so its name must end in %s for the others to be found",
                         name, p->number + 1, p->count, ending);
    for (uint32_t i = 0; i < p->count; i++) {
        if (i == p->number)
            continue;
        const tern_status status = open_part(*file, i, p->count, size, &parts[i], err);
        if (status != TERN_OK)
            return status;
    }
    parts[p->number] = *file;
    *file = NULL;
    return TERN_OK;
}

tern_status tern_gguf_complete(tern_gguf **file, tern_error *err) {
    place p;
    tern_gguf **parts = NULL;
    tern_status status = read_place(*file, &p, err);
    if (status == TERN_OK && p.count == 0)
        return TERN_OK;
    if (status == TERN_OK) {
        parts = calloc(p.count, sizeof(tern_gguf *));
        if (parts == NULL)
            status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %" PRIu32 " parts",
                               (*file)->name, p.count);
    }
    if (status == TERN_OK)
        status = open_others(file, &p, parts, err);
    if (status == TERN_OK)
        status = tern_gguf_join(parts, p.count, file, err);
    for (uint32_t i = 0; status != TERN_OK && parts != NULL && i < p.count; i++)
        tern_gguf_close(&parts[i]);
    free(parts);
    if (status != TERN_OK)
        tern_gguf_close(file);
    return status;
}
