/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_tree/read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

typedef struct reader {
    const char *name;
    tern_error *err; /* never NULL */
    bool any_number; /* numbers that do not fit into 64 bits keep their digits */
    bool any_text;   /* texts may have U+0000 in them, and lone surrogates are repaired */
} reader;

/* NULL, with the error set. */
static json_t *refuse(const reader *r, const tern_json_value *at, const char *what) {
    (void)tern_fail(r->err, TERN_ERR_JSON, "%s: line %u: %s", r->name, at->line, what);
    return NULL;
}

static json_t *or_no_memory(const reader *r, json_t *value) {
    if (value == NULL && r->err->status == TERN_OK)
        (void)tern_fail(r->err, TERN_ERR_NOMEM, "%s: no memory to read it", r->name);
    return value;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static bool has_nul(const tern_json_value *v) {
    return memchr(v->text.data, '\0', v->text.size) != NULL;
}

static json_t *read_text(const reader *r, const tern_json_value *v) {
    return has_nul(v) && !r->any_text ? refuse(r, v, "a text has the character U+0000 in it")
                                      : json_text(v->text.data, v->text.size);
}

/* A number that does not fit into 64 bits. */
static json_t *read_large(const reader *r, const tern_json_value *v, const char *why) {
    if (!r->any_number)
        return refuse(r, v, why);
    char *digits = strndup(v->text.data, v->text.size);
    json_t *value = digits != NULL ? json_written_number(digits) : NULL;
    free(digits);
    return value;
}

/* After a number stands something that is none, or the terminator after all bytes. */
static json_t *read_number(const reader *r, const tern_json_value *v) {
    bool whole = true;
    for (size_t i = 0; i < v->text.size; i++)
        whole = whole && strchr(".eE", v->text.data[i]) == NULL;
    int64_t integer;
    if (whole) {
        return tern_json_integer(v, &integer)
                   ? json_integer(integer)
                   : read_large(r, v, "an integer does not fit into 64 bits");
    }
    const double real = strtod(v->text.data, NULL);
    return isfinite(real) ? json_real(real)
                          : read_large(r, v, "a number is too large for a double");
}

/* ---- containers ------------------------------------------------------------------------------ */

static json_t *read_value(const reader *r, const tern_json_value *v);

static int compare_keys(const void *a, const void *b) {
    const tern_json_value *x = *(const tern_json_value *const *)a;
    const tern_json_value *y = *(const tern_json_value *const *)b;
    const size_t common = x->text.size < y->text.size ? x->text.size : y->text.size;
    const int order = memcmp(x->text.data, y->text.data, common);
    if (order != 0)
        return order;
    return x->text.size != y->text.size ? (x->text.size < y->text.size ? -1 : 1)
                                        : (x > y) - (x < y);
}

static bool same_text(const tern_json_value *a, const tern_json_value *b) {
    return a->text.size == b->text.size && memcmp(a->text.data, b->text.data, a->text.size) == 0;
}

/* The second of two equal names, or one with U+0000; NULL: none, or *failed for want of memory. */
static const tern_json_value *bad_key(const tern_json_value *object, bool *failed) {
    const tern_json_value **keys = malloc((object->count + (size_t)1) * sizeof *keys), *bad = NULL;
    const tern_json_value *at = object + 1;
    *failed = keys == NULL;
    for (uint32_t i = 0; keys != NULL && i < object->count; i++) {
        keys[i] = at;
        bad = bad == NULL && has_nul(at) ? at : bad;
        at += 1 + (at + 1)->size;
    }
    if (keys != NULL)
        qsort(keys, object->count, sizeof *keys, compare_keys);
    for (uint32_t i = 1; keys != NULL && bad == NULL && i < object->count; i++)
        bad = same_text(keys[i - 1], keys[i]) ? keys[i] : NULL;
    free(keys);
    return bad;
}

static json_t *refuse_key(const reader *r, const tern_json_value *key) {
    enum { SHOWN = 64 };
    const int shown = key->text.size < SHOWN ? (int)key->text.size : SHOWN;
    if (has_nul(key))
        return refuse(r, key, "a name has the character U+0000 in it");
    (void)tern_fail(r->err, TERN_ERR_JSON, "%s: line %u: the name \"%.*s\" occurs twice", r->name,
                    key->line, shown, key->text.data);
    return NULL;
}

/* Adds the members to *object, which is freed and NULL when that fails. */
static void read_members(const reader *r, const tern_json_value *v, json_t **object) {
    const tern_json_value *at = v + 1;
    for (uint32_t i = 0; *object != NULL && i < v->count; i++) {
        json_t *value = read_value(r, at + 1);
        char *key = value != NULL ? strndup(at->text.data, at->text.size) : NULL;
        if (key == NULL || json_object_add_new(*object, key, json_incref(value)) != 0) {
            json_decref(*object);
            *object = NULL;
        }
        json_decref(value);
        free(key);
        at += 1 + (at + 1)->size;
    }
}

static json_t *read_object(const reader *r, const tern_json_value *v) {
    bool failed;
    const tern_json_value *bad = bad_key(v, &failed);
    if (bad != NULL)
        return refuse_key(r, bad);
    json_t *object = failed ? NULL : json_object();
    read_members(r, v, &object);
    return object;
}

static json_t *read_array(const reader *r, const tern_json_value *v) {
    json_t *array = json_array();
    const tern_json_value *at = v + 1;
    for (uint32_t i = 0; array != NULL && i < v->count; i++) {
        if (json_array_append_new(array, read_value(r, at)) != 0) {
            json_decref(array);
            array = NULL;
        }
        at += at->size;
    }
    return array;
}

/* Not deeper than TERN_JSON_MAX_DEPTH. NULL without an error: there was no memory. */
static json_t *read_value(const reader *r, const tern_json_value *v) {
    switch (v->type) {
    case TERN_JSON_OBJECT:
        return read_object(r, v);
    case TERN_JSON_ARRAY:
        return read_array(r, v);
    case TERN_JSON_STRING:
        return read_text(r, v);
    case TERN_JSON_NUMBER:
        return read_number(r, v);
    case TERN_JSON_TRUE:
    case TERN_JSON_FALSE:
        return json_boolean(v->type == TERN_JSON_TRUE);
    case TERN_JSON_NULL:
        break;
    }
    return json_null();
}

static json_t *read_lines(const char *bytes, size_t size, const char *name, uint32_t line,
                          bool any_number, bool any_text, tern_error *err) {
    tern_error own = {0};
    const reader r = {name, err != NULL ? err : &own, any_number, any_text};
    const bool failed_before = json_remember(false);
    tern_json parsed;
    json_t *root = NULL;
    *r.err = own;
    char *copy = malloc(size + 1); /* terminated, for the last number */
    if (copy != NULL) {
        memcpy(copy, bytes, size);
        copy[size] = '\0';
        const tern_status status = (any_text ? tern_json_parse_repaired : tern_json_parse_lines)(
            copy, size, name, line, &parsed, r.err);
        root = status == TERN_OK ? read_value(&r, parsed.values) : NULL;
        if (status == TERN_OK)
            tern_json_free(&parsed);
    }
    (void)json_remember(failed_before);
    return or_no_memory(&r, root);
}

json_t *json_read_lines(const char *bytes, size_t size, const char *name, uint32_t line,
                        tern_error *err) {
    return read_lines(bytes, size, name, line, false, false, err);
}

json_t *json_read_any(const char *bytes, size_t size, const char *name, tern_error *err) {
    return read_lines(bytes, size, name, 1, true, false, err);
}

json_t *json_read_body(const char *bytes, size_t size, const char *name, tern_error *err) {
    return read_lines(bytes, size, name, 1, true, true, err);
}

json_t *json_read(const char *bytes, size_t size, const char *name, tern_error *err) {
    return json_read_lines(bytes, size, name, 1, err);
}
