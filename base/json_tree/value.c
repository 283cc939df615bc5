/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_tree/value.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

typedef struct member {
    char *key; /* NULL in arrays */
    json_t *value;
} member;

struct json_t {
    json_type type;
    unsigned owners;
    union {
        json_int_t integer;
        struct {
            double x;
            char *written; /* its digits, if a double does not keep them; else NULL */
        } real;
        struct {
            char *bytes; /* terminated */
            size_t size;
        } text;
        struct {
            member *at;
            size_t n, capacity;
        } inner; /* of an object or array */
    } as;
};

static _Thread_local bool memory_failed;

bool json_memory_failed(void) {
    return memory_failed;
}

bool json_remember(bool failed) {
    const bool before = memory_failed;
    memory_failed = failed;
    return before;
}

static void *noted(void *memory) {
    memory_failed |= memory == NULL;
    return memory;
}

void *json_reserve(size_t size) {
    return noted(malloc(size));
}

static bool is(const json_t *value, json_type type) {
    return value != NULL && value->type == type;
}

/* ---- making ---------------------------------------------------------------------------------- */

static json_t *make(json_type type) {
    json_t *value = noted(calloc(1, sizeof *value));
    if (value != NULL) {
        value->type = type;
        value->owners = 1;
    }
    return value;
}

json_t *json_object(void) {
    return make(JSON_OBJECT);
}

json_t *json_array(void) {
    return make(JSON_ARRAY);
}

json_t *json_null(void) {
    return make(JSON_NULL);
}

json_t *json_boolean(bool x) {
    return make(x ? JSON_TRUE : JSON_FALSE);
}

json_t *json_integer(json_int_t x) {
    json_t *value = make(JSON_INTEGER);
    if (value != NULL)
        value->as.integer = x;
    return value;
}

json_t *json_real(double x) {
    json_t *value = isfinite(x) ? make(JSON_REAL) : NULL;
    if (value != NULL)
        value->as.real.x = x;
    return value;
}

json_t *json_written_number(const char *digits) {
    const double x = strtod(digits, NULL);
    json_t *value = json_real(isfinite(x) ? x : x < 0 ? -DBL_MAX : DBL_MAX);
    char *copy = value != NULL ? noted(strdup(digits)) : NULL;
    if (copy == NULL) {
        json_decref(value);
        return NULL;
    }
    value->as.real.written = copy;
    return value;
}

json_t *json_number(double x) {
    return json_real(isfinite(x) ? x : 0.0);
}

json_t *json_unsigned(uint64_t x) {
    return x <= INT64_MAX ? json_integer((json_int_t)x) : json_sprintf("%" PRIu64, x);
}

json_t *json_text(const char *bytes, size_t size) {
    json_t *value = make(JSON_STRING);
    const size_t n = tern_utf8_repair(bytes, size, NULL, NULL);
    char *text = value != NULL ? json_reserve(n + 1) : NULL;
    if (text == NULL) {
        json_decref(value);
        return NULL;
    }
    text[tern_utf8_repair(bytes, size, text, NULL)] = '\0';
    value->as.text.bytes = text;
    value->as.text.size = n;
    return value;
}

json_t *json_string(const char *text) {
    return text != NULL ? json_text(text, strlen(text)) : NULL;
}

json_t *json_sprintf(const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    const int size = vasprintf(&text, format, args);
    va_end(args);
    memory_failed |= size < 0;
    json_t *value = size >= 0 ? json_text(text, (size_t)size) : NULL;
    if (size >= 0)
        free(text);
    return value;
}

json_t *json_incref(json_t *value) {
    if (value != NULL)
        value->owners++;
    return value;
}

void json_decref(json_t *value) {
    if (value == NULL || --value->owners > 0)
        return;
    if (value->type == JSON_STRING) {
        free(value->as.text.bytes);
    } else if (value->type == JSON_REAL) {
        free(value->as.real.written);
    } else if (value->type == JSON_OBJECT || value->type == JSON_ARRAY) {
        for (size_t i = 0; i < value->as.inner.n; i++) {
            free(value->as.inner.at[i].key);
            json_decref(value->as.inner.at[i].value);
        }
        free(value->as.inner.at);
    }
    free(value);
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool reserve_member(json_t *container) {
    if (container->as.inner.n < container->as.inner.capacity)
        return true;
    const size_t capacity = 2 * container->as.inner.capacity + 4; /* held already: no overflow */
    member *grown = noted(realloc(container->as.inner.at, capacity * sizeof *grown));
    if (grown == NULL)
        return false;
    container->as.inner.at = grown;
    container->as.inner.capacity = capacity;
    return true;
}

/* Takes value over. */
static int append(json_t *container, char *key, json_t *value) {
    if (!reserve_member(container)) {
        free(key);
        json_decref(value);
        return -1;
    }
    container->as.inner.at[container->as.inner.n++] = (member){key, value};
    return 0;
}

int json_array_append_new(json_t *array, json_t *value) {
    if (!is(array, JSON_ARRAY) || value == NULL) {
        json_decref(value);
        return -1;
    }
    return append(array, NULL, value);
}

int json_object_add_new(json_t *object, const char *key, json_t *value) {
    char *copy = is(object, JSON_OBJECT) && value != NULL ? noted(strdup(key)) : NULL;
    if (copy == NULL) {
        json_decref(value);
        return -1;
    }
    return append(object, copy, value);
}

static member *find(const json_t *object, const char *key) {
    for (size_t i = 0; is(object, JSON_OBJECT) && i < object->as.inner.n; i++)
        if (strcmp(object->as.inner.at[i].key, key) == 0)
            return &object->as.inner.at[i];
    return NULL;
}

int json_object_set_new(json_t *object, const char *key, json_t *value) {
    member *old = value != NULL ? find(object, key) : NULL;
    if (old == NULL)
        return json_object_add_new(object, key, value);
    json_decref(old->value);
    old->value = value;
    return 0;
}

int json_object_set(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, json_incref(value));
}

size_t json_object_size(const json_t *object) {
    return is(object, JSON_OBJECT) ? object->as.inner.n : 0;
}

json_t *json_object_get(const json_t *object, const char *key) {
    const member *found = find(object, key);
    return found != NULL ? found->value : NULL;
}

json_t *json_object_follow(const json_t *object, const char *path, char separator) {
    const char ends[] = {separator, '\0'};
    char key[160];
    const json_t *value = object;
    while (value != NULL && *path != '\0') {
        const size_t n = strcspn(path, ends);
        if (n >= sizeof key)
            return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        value = json_object_get(value, key);
        path += n + (path[n] == separator);
    }
    return (json_t *)(uintptr_t)value;
}

bool json_object_at(const json_t *object, size_t i, const char **key, json_t **value) {
    if (i >= json_object_size(object))
        return false;
    *key = object->as.inner.at[i].key;
    *value = object->as.inner.at[i].value;
    return true;
}

size_t json_array_size(const json_t *array) {
    return is(array, JSON_ARRAY) ? array->as.inner.n : 0;
}

json_t *json_array_get(const json_t *array, size_t i) {
    return i < json_array_size(array) ? array->as.inner.at[i].value : NULL;
}

/* ---- questions ------------------------------------------------------------------------------- */

json_type json_typeof(const json_t *value) {
    return value->type;
}

bool json_is_object(const json_t *value) {
    return is(value, JSON_OBJECT);
}

bool json_is_array(const json_t *value) {
    return is(value, JSON_ARRAY);
}

bool json_is_string(const json_t *value) {
    return is(value, JSON_STRING);
}

bool json_is_integer(const json_t *value) {
    return is(value, JSON_INTEGER);
}

bool json_is_number(const json_t *value) {
    return is(value, JSON_INTEGER) || is(value, JSON_REAL);
}

bool json_is_true(const json_t *value) {
    return is(value, JSON_TRUE);
}

bool json_is_null(const json_t *value) {
    return is(value, JSON_NULL);
}

bool json_is_boolean(const json_t *value) {
    return is(value, JSON_TRUE) || is(value, JSON_FALSE);
}

const char *json_string_value(const json_t *value) {
    return is(value, JSON_STRING) ? value->as.text.bytes : NULL;
}

size_t json_string_length(const json_t *value) {
    return is(value, JSON_STRING) ? value->as.text.size : 0;
}

json_int_t json_integer_value(const json_t *value) {
    return is(value, JSON_INTEGER) ? value->as.integer : 0;
}

double json_number_value(const json_t *value) {
    return is(value, JSON_REAL) ? value->as.real.x : (double)json_integer_value(value);
}

const char *json_number_written(const json_t *value) {
    return is(value, JSON_REAL) ? value->as.real.written : NULL;
}

/* ---- whole trees ----------------------------------------------------------------------------- */

json_t *json_deep_copy(const json_t *value) {
    if (value == NULL)
        return NULL;
    switch (value->type) {
    case JSON_STRING:
        return json_text(value->as.text.bytes, value->as.text.size);
    case JSON_INTEGER:
        return json_integer(value->as.integer);
    case JSON_REAL:
        return value->as.real.written != NULL ? json_written_number(value->as.real.written)
                                              : json_real(value->as.real.x);
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    default:
        return make(value->type);
    }
    json_t *copy = make(value->type);
    for (size_t i = 0; copy != NULL && i < value->as.inner.n; i++) {
        const member *m = &value->as.inner.at[i];
        json_t *inner = json_deep_copy(m->value);
        if (m->key != NULL)
            (void)json_object_add_new(copy, m->key, inner);
        else
            (void)json_array_append_new(copy, inner);
    }
    return copy;
}

static bool equal_inner(const json_t *a, const json_t *b) {
    bool same = a->as.inner.n == b->as.inner.n;
    for (size_t i = 0; same && i < a->as.inner.n; i++) {
        const member *m = &a->as.inner.at[i];
        same = json_equal(m->value,
                          m->key != NULL ? json_object_get(b, m->key) : b->as.inner.at[i].value);
    }
    return same;
}

static bool same_reals(const json_t *a, const json_t *b) {
    const char *p = a->as.real.written, *q = b->as.real.written;
    return p != NULL && q != NULL
               ? strcmp(p, q) == 0
               : !(a->as.real.x < b->as.real.x) && !(a->as.real.x > b->as.real.x);
}

bool json_equal(const json_t *a, const json_t *b) {
    if (a == NULL || b == NULL || a->type != b->type)
        return false;
    switch (a->type) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return equal_inner(a, b);
    case JSON_STRING:
        return a->as.text.size == b->as.text.size &&
               memcmp(a->as.text.bytes, b->as.text.bytes, a->as.text.size) == 0;
    case JSON_INTEGER:
        return a->as.integer == b->as.integer;
    case JSON_REAL:
        return same_reals(a, b);
    default:
        return true;
    }
}
