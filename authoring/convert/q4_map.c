/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/q4_map.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runtime/model/parts/block.h"

enum { MAP_BYTES = 16 << 20, NAME_BYTES = 256 };

/* ---- reading --------------------------------------------------------------------------------- */

static tern_status wrong(const convert_q4_map *map, tern_span name, const char *what,
                         tern_error *err) {
    return tern_fail(err, TERN_ERR_JSON, "%s: '%.*s': %s", map->path,
                     (int)(name.size < 96 ? name.size : 96), name.data, what);
}

/* True for a field that is missing or has one of these texts. */
static bool is_one_of(const tern_json_value *v, const char *a, const char *b) {
    return v == NULL || tern_json_is_string(v, a) || tern_json_is_string(v, b);
}

static bool is_absent_or(const tern_json_value *v, int64_t wanted) {
    int64_t number;
    return v == NULL || (tern_json_integer(v, &number) && number == wanted);
}

/* Reads "per": "row", or "per": "group" with a "group". */
static bool read_group(const tern_json_value *v, tern_int4_rows *form) {
    const tern_json_value *per = tern_json_get(v, "per"), *group = tern_json_get(v, "group");
    int64_t number = 0;
    if (tern_json_is_string(per, "row")) {
        form->group = SIZE_MAX;
        return group == NULL;
    }
    form->group = tern_json_integer(group, &number) ? (uint64_t)number : 0;
    return (per == NULL || tern_json_is_string(per, "group")) &&
           (form->group == 32 || form->group == 64 || form->group == 128);
}

static tern_status read_entry(convert_q4_map *map, const tern_json_value *key,
                              const tern_json_value *v, tern_error *err) {
    convert_q4_entry *e = &map->entries[map->n];
    const tern_json_value *symmetric = tern_json_get(v, "symmetric");
    const bool is_false = symmetric != NULL && symmetric->type == TERN_JSON_FALSE;
    if (v->type != TERN_JSON_OBJECT || key->text.size >= NAME_BYTES ||
        memchr(key->text.data, 0, key->text.size) != NULL)
        return wrong(map, key->text, "is not a tensor with its settings", err);
    if (!read_group(v, &e->form))
        return wrong(map, key->text, "needs \"per\": \"row\", or \"group\": 32, 64 or 128", err);
    if (!tern_json_is_true(symmetric) && !is_false)
        return wrong(map, key->text, "needs \"symmetric\": true or false", err);
    if (!is_absent_or(tern_json_get(v, "bits"), 4) ||
        !is_one_of(tern_json_get(v, "scale_dtype"), "f16", "fp16") ||
        !is_one_of(tern_json_get(v, "pack"), "nibble_lohi", "nibble_lohi"))
        return wrong(map, key->text,
                     "only 4 \"bits\", \"scale_dtype\" fp16 and \"pack\" nibble_lohi are written",
                     err);
    if (!is_false && (!is_absent_or(tern_json_get(v, "zp"), 0) ||
                      !is_absent_or(tern_json_get(v, "zero_point"), 0)))
        return wrong(map, key->text, "is symmetric, and has a zero point that is not 0", err);
    e->form.zero_points = is_false;
    e->name = strndup(key->text.data, key->text.size);
    map->n += e->name != NULL;
    return e->name != NULL ? TERN_OK
                           : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a name", map->path);
}

static tern_status read_root(convert_q4_map *map, const tern_json_value *root, tern_error *err) {
    if (root->type != TERN_JSON_OBJECT)
        return tern_fail(err, TERN_ERR_JSON,
                         "%s: must be a JSON object that maps tensor names to settings", map->path);
    map->entries = calloc((size_t)root->count + 1, sizeof *map->entries); /* + 1: never 0 bytes */
    if (map->entries == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its entries", map->path);
    tern_status status = TERN_OK;
    const tern_json_value *key = root + 1;
    for (uint32_t i = 0; status == TERN_OK && i < root->count; i++) {
        const tern_json_value *v = key + key->size;
        status = read_entry(map, key, v, err);
        key = v + v->size;
    }
    return status;
}

tern_status convert_q4_map_read(const char *path, convert_q4_map *out, tern_error *err) {
    convert_q4_map map = {.path = strdup(path)};
    tern_json json = {.bytes = NULL};
    tern_status status = map.path != NULL
                             ? tern_json_read(path, MAP_BYTES, &json, err)
                             : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", path);
    if (status == TERN_OK)
        status = read_root(&map, json.values, err);
    tern_json_free(&json);
    if (status != TERN_OK) {
        convert_q4_map_free(&map);
        return status;
    }
    *out = map;
    return TERN_OK;
}

void convert_q4_map_free(convert_q4_map *map) {
    for (size_t i = 0; i < map->n; i++)
        free(map->entries[i].name);
    free(map->entries);
    free(map->path);
    *map = (convert_q4_map){.n = 0};
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Writes Hugging Face's name of a tensor of a block; false for other tensors. */
static bool name_by_hf(const char *name, char hf[NAME_BYTES]) {
    size_t n;
    const tern_block_tensor *tensors = tern_block_tensors(&n);
    if (strncmp(name, "blk.", 4) != 0)
        return false;
    const size_t digits = strspn(name + 4, "0123456789");
    const char *suffix = name + 4 + digits;
    for (size_t i = 0; *suffix == '.' && i < n; i++)
        if (tensors[i].hf != NULL && strcmp(tensors[i].name, suffix + 1) == 0)
            return snprintf(hf, NAME_BYTES, "model.layers.%.*s.%s", (int)digits, name + 4,
                            tensors[i].hf) < NAME_BYTES;
    return false;
}

/* True if a name matches an entry, in which '*' stands for digits. */
static bool fits(const char *pattern, const char *name) {
    const char *star = strchr(pattern, '*');
    if (star == NULL)
        return strcmp(pattern, name) == 0;
    const size_t head = (size_t)(star - pattern);
    if (strncmp(pattern, name, head) != 0)
        return false;
    const size_t digits = strspn(name + head, "0123456789");
    return digits > 0 && strcmp(star + 1, name + head + digits) == 0;
}

const convert_q4_entry *convert_q4_map_find(convert_q4_map *map, const char *name) {
    char hf[NAME_BYTES];
    const bool known = name_by_hf(name, hf);
    convert_q4_entry *found = NULL;
    for (size_t i = 0; map != NULL && i < map->n; i++) {
        convert_q4_entry *e = &map->entries[i];
        if (!fits(e->name, name) && !(known && fits(e->name, hf)))
            continue;
        e->used = true;
        found = e; /* the last one counts: exceptions come after a rule */
    }
    return found;
}

tern_status convert_q4_map_check(const convert_q4_map *map, tern_error *err) {
    for (size_t i = 0; map != NULL && i < map->n; i++)
        if (!map->entries[i].used)
            return tern_fail(err, TERN_ERR_TENSOR_MISSING,
                             "%s: '%.96s' is not a matrix of a block of this model", map->path,
                             map->entries[i].name);
    return TERN_OK;
}
