/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of whole tensors: a file lists them by numbers, and another file assigns numbers to names.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/dedup/dedup.h"
#include "base/json.h"
#include "runtime/files/gguf/internal.h"

enum { FILE_BYTES = 64 << 20 };

typedef struct numbering {
    int64_t index;
    size_t tensor; /* of the model */
} numbering;

typedef struct groups_reading {
    const tern_gguf *model;
    const char *map, *groups; /* paths */
    numbering *numbers;       /* [n] sorted by index */
    size_t n;
    bool *taken; /* [tensors] in a group */
    dedup_plan *plan;
    tern_error *err;
} groups_reading;

/* ---- the map --------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b) {
    const numbering *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static tern_status find_tensor(const groups_reading *g, const tern_json_value *v, size_t *out) {
    const tern_json_value *name = tern_json_get(v, "name");
    const tern_json_value *bytes = tern_json_get(v, "nbytes");
    char text[TERN_GGUF_MAX_NAME_BYTES + 1] = "";
    int64_t size;
    if (name != NULL && name->type == TERN_JSON_STRING && name->text.size < sizeof text)
        memcpy(text, name->text.data, name->text.size);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(g->model, text);
    if (t == NULL)
        return tern_fail(g->err, TERN_ERR_TENSOR_MISSING,
                         "%s: line %" PRIu32 ": '%s' is not a tensor of %s", g->map, v->line, text,
                         tern_gguf_name(g->model));
    if (bytes != NULL &&
        (!tern_json_integer(bytes, &size) || size < 0 || (uint64_t)size != t->bytes))
        return tern_fail(g->err, TERN_ERR_TENSOR_SHAPE,
                         "%s: line %" PRIu32 ": '%s' has %" PRIu64 " bytes in %s", g->map, v->line,
                         text, t->bytes, tern_gguf_name(g->model));
    *out = (size_t)(t - tern_gguf_tensor_at(g->model, 0));
    return TERN_OK;
}

static tern_status read_map(groups_reading *g, const tern_json_value *root) {
    const tern_json_value *tensors = tern_json_get(root, "tensors");
    tern_status status = TERN_OK;
    if (tensors == NULL || tensors->type != TERN_JSON_ARRAY)
        return tern_fail(g->err, TERN_ERR_JSON, "%s: 'tensors' is not a list", g->map);
    g->numbers = calloc((size_t)tensors->count + 1, sizeof *g->numbers); /* + 1: never 0 bytes */
    if (g->numbers == NULL)
        return tern_fail(g->err, TERN_ERR_NOMEM, "%s: no memory for %" PRIu32 " tensors", g->map,
                         tensors->count);
    const tern_json_value *v = tensors + 1;
    for (; status == TERN_OK && g->n < tensors->count; v += v->size) {
        numbering *number = &g->numbers[g->n];
        number->index = (int64_t)g->n; /* if the entry has no index */
        const tern_json_value *index = tern_json_get(v, "index");
        if (index != NULL && !tern_json_integer(index, &number->index))
            return tern_fail(g->err, TERN_ERR_JSON, "%s: line %" PRIu32 ": 'index' is not a number",
                             g->map, v->line);
        status = find_tensor(g, v, &number->tensor);
        g->n++;
    }
    qsort(g->numbers, g->n, sizeof *g->numbers, compare_numbers);
    for (size_t i = 1; status == TERN_OK && i < g->n; i++)
        if (g->numbers[i].index == g->numbers[i - 1].index)
            return tern_fail(g->err, TERN_ERR_TENSOR_DUPLICATE,
                             "%s: 'index' %" PRId64 " occurs twice", g->map, g->numbers[i].index);
    return status;
}

/* ---- the groups ------------------------------------------------------------------------------ */

/* The tensor with a number; it must not be in a group yet. */
static tern_status take_tensor(groups_reading *g, const tern_json_value *group,
                               const tern_json_value *v, size_t *out) {
    numbering key = {.index = -1};
    const bool number = tern_json_integer(v, &key.index);
    const numbering *found =
        number ? bsearch(&key, g->numbers, g->n, sizeof key, compare_numbers) : NULL;
    if (found == NULL)
        return tern_fail(g->err, TERN_ERR_TENSOR_MISSING,
                         "%s: line %" PRIu32 ": a tensor is not a number of %s", g->groups,
                         group->line, g->map);
    const tern_gguf_tensor *t = tern_gguf_tensor_at(g->model, found->tensor);
    if (g->taken[found->tensor])
        return tern_fail(g->err, TERN_ERR_TENSOR_DUPLICATE,
                         "%s: line %" PRIu32 ": tensor %" PRId64 " ('%.*s') is in two places",
                         g->groups, group->line, key.index, TERN_SPAN_ARG(t->name));
    if (t->bytes == 0 || t->type == TERN_GGUF_SPARSE_TYPE)
        return tern_fail(g->err, TERN_ERR_TENSOR_TYPE,
                         "%s: line %" PRIu32 ": tensor '%.*s' has type %s", g->groups, group->line,
                         TERN_SPAN_ARG(t->name), tern_gguf_tensor_type(t));
    *out = found->tensor;
    g->taken[*out] = true;
    return TERN_OK;
}

static tern_status add_target(groups_reading *g, const tern_json_value *group,
                              const tern_json_value *v, size_t first) {
    size_t tensor;
    const tern_status status = take_tensor(g, group, v, &tensor);
    if (status != TERN_OK)
        return status;
    const tern_gguf_tensor *t = tern_gguf_tensor_at(g->model, tensor);
    const tern_gguf_tensor *shared = tern_gguf_tensor_at(g->model, g->plan->parts[first].tensor);
    if (t->bytes != shared->bytes)
        return tern_fail(g->err, TERN_ERR_TENSOR_SHAPE,
                         "%s: line %" PRIu32 ": '%.*s' has %" PRIu64 " bytes, its default %" PRIu64,
                         g->groups, group->line, TERN_SPAN_ARG(t->name), t->bytes, shared->bytes);
    dedup_part *part = dedup_add(g->plan, tensor, 0, t->bytes);
    if (part == NULL)
        return tern_fail(g->err, TERN_ERR_NOMEM, "%s: no memory for its groups", g->groups);
    for (uint64_t i = 0; i < t->bytes; i++)
        part->differing += t->data[i] != shared->data[i];
    dedup_make_like(g->plan, g->plan->n - 1, first);
    return TERN_OK;
}

static tern_status read_group(groups_reading *g, const tern_json_value *group) {
    const tern_json_value *targets = tern_json_get(group, "targets");
    size_t tensor;
    if (targets == NULL || targets->type != TERN_JSON_ARRAY || targets->count == 0)
        return tern_fail(g->err, TERN_ERR_JSON,
                         "%s: line %" PRIu32 ": a group needs 'default_index' and 'targets'",
                         g->groups, group->line);
    tern_status status = take_tensor(g, group, tern_json_get(group, "default_index"), &tensor);
    if (status != TERN_OK)
        return status;
    const size_t first = g->plan->n;
    const uint64_t bytes = tern_gguf_tensor_at(g->model, tensor)->bytes;
    if (dedup_add(g->plan, tensor, 0, bytes) == NULL)
        return tern_fail(g->err, TERN_ERR_NOMEM, "%s: no memory for its groups", g->groups);
    const tern_json_value *v = targets + 1;
    for (uint32_t i = 0; status == TERN_OK && i < targets->count; i++, v += v->size)
        status = add_target(g, group, v, first);
    return status;
}

static tern_status read_groups(groups_reading *g, const tern_json_value *root) {
    const tern_json_value *inner = tern_json_get(root, "groups");
    const tern_json_value *groups = inner != NULL ? inner : root;
    const size_t n = tern_gguf_tensor_count(g->model);
    tern_status status = TERN_OK;
    if (groups->type != TERN_JSON_ARRAY)
        return tern_fail(g->err, TERN_ERR_JSON, "%s: is not a list of groups", g->groups);
    g->taken = calloc(n + 1, sizeof *g->taken); /* + 1: never 0 bytes */
    if (g->taken == NULL)
        return tern_fail(g->err, TERN_ERR_NOMEM, "%s: no memory for its groups", g->groups);
    const tern_json_value *v = groups + 1;
    for (uint32_t i = 0; status == TERN_OK && i < groups->count; i++, v += v->size)
        status = read_group(g, v);
    return status;
}

tern_status dedup_read_groups(const tern_gguf *model, const char *map, const char *groups,
                              dedup_plan *plan, tern_error *err) {
    groups_reading g = {.model = model, .map = map, .groups = groups, .plan = plan, .err = err};
    tern_json numbers = {.bytes = NULL}, lists = {.bytes = NULL};
    plan->model = model;
    tern_status status = tern_json_read(map, FILE_BYTES, &numbers, err);
    if (status == TERN_OK)
        status = tern_json_read(groups, FILE_BYTES, &lists, err);
    if (status == TERN_OK)
        status = read_map(&g, numbers.values);
    if (status == TERN_OK)
        status = read_groups(&g, lists.values);
    tern_json_free(&numbers);
    tern_json_free(&lists);
    free(g.numbers);
    free(g.taken);
    return status == TERN_OK ? dedup_finish(plan, err) : status;
}
