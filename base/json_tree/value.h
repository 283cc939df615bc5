/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_JSON_TREE_VALUE_H
#define TERN_BASE_JSON_TREE_VALUE_H

/*
 * JSON values as a tree that the program builds, reads and writes.
 *
 * Values are counted. The caller that makes one owns it; functions with `new` in their names, and
 * `o` of json_pack, take over what they are given, also when they fail. Members keep the order in
 * which they were set. NULL is not a value: it may be given to every function, setting it sets
 * nothing, and every question about it has the answer of a value that is not of the kind asked for.
 *
 * Memory: where there is none, a function gives NULL and the thread remembers it
 * (json_memory_failed). So values may be built without looking at each step; printing or saving
 * them looks once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef long long json_int_t;

typedef enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_INTEGER,
    JSON_REAL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
} json_type;

typedef struct json_t json_t;

bool json_memory_failed(void);

/* Sets what is remembered, and gives what was: for callers that report a failure in another way. */
bool json_remember(bool failed);

/* Like malloc; a failure is remembered like those of values. */
void *json_reserve(size_t bytes);

/* ---- making ---------------------------------------------------------------------------------- */

json_t *json_object(void);
json_t *json_array(void);
json_t *json_integer(json_int_t x);
json_t *json_real(double x); /* NULL when it is not finite */
json_t *json_boolean(bool x);
json_t *json_null(void);

/* A number that keeps its digits, which must be JSON: for those that do not fit into 64 bits. As a
 * double it is the nearest one that is finite. */
json_t *json_written_number(const char *digits);

/* A finite number; infinity and NaN become 0. */
json_t *json_number(double x);

/* A number of 64 bits; above INT64_MAX, where readers lose digits, as text. */
json_t *json_unsigned(uint64_t x);

/* Text of any bytes: what is not UTF-8 becomes U+FFFD. */
json_t *json_text(const char *bytes, size_t size);
json_t *json_string(const char *text); /* NULL: none */
json_t *json_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Several values at once. The format is one value: `{s:V, ...}` an object, `[V, ...]` an array,
 * where V is a value again; s a text (const char *), i an int, I a json_int_t, f a double, b an int
 * as truth, o a json_t *, which is taken over, O one that is not. NULL when any of them is no
 * value.
 */
json_t *json_pack(const char *format, ...);

json_t *json_deep_copy(const json_t *value);
json_t *json_incref(json_t *value);
void json_decref(json_t *value);

/* ---- containers: 0, or -1 when nothing was set ----------------------------------------------- */

int json_object_set_new(json_t *object, const char *key, json_t *value);
int json_object_set(json_t *object, const char *key, json_t *value);

/* The same for a name that the object does not have yet, which is not checked: objects with very
 * many members are made in this way. */
int json_object_add_new(json_t *object, const char *key, json_t *value);
int json_array_append_new(json_t *array, json_t *value);

size_t json_object_size(const json_t *object);
json_t *json_object_get(const json_t *object, const char *key);
/* The value in objects within objects to which a path such as "a.b" leads, with that separator
 * between keys of less than 160 bytes. "" is the object itself. NULL: there is none. */
json_t *json_object_follow(const json_t *object, const char *path, char separator);
size_t json_array_size(const json_t *array);
json_t *json_array_get(const json_t *array, size_t i);

/* Member number i of an object: false after the last one. */
bool json_object_at(const json_t *object, size_t i, const char **key, json_t **value);

#define json_object_foreach(object, key, value)                                                    \
    for (size_t json_at_ = 0; json_object_at(object, json_at_, &(key), &(value)); json_at_++)

/* ---- questions ------------------------------------------------------------------------------- */

json_type json_typeof(const json_t *value); /* not NULL */
bool json_is_object(const json_t *value);
bool json_is_array(const json_t *value);
bool json_is_string(const json_t *value);
bool json_is_integer(const json_t *value);
bool json_is_number(const json_t *value);
bool json_is_boolean(const json_t *value);
bool json_is_true(const json_t *value);
bool json_is_null(const json_t *value);

/* The same type and content; members in any order. */
bool json_equal(const json_t *a, const json_t *b);

const char *json_string_value(const json_t *value); /* terminated; NULL: no text */
size_t json_string_length(const json_t *value);     /* bytes; 0: no text */
json_int_t json_integer_value(const json_t *value); /* 0: not written as an integer */
double json_number_value(const json_t *value);      /* 0: no number */
const char *json_number_written(const json_t *value); /* NULL: 64 bits hold it */

#endif
