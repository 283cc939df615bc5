/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_JSON_H
#define TERN_BASE_JSON_H

/*
 * Reader for JSON files of some megabytes, such as vocabularies: one pass, and one array of values.
 * The text of strings stays in the bytes of the file. So there is no node and no copy for each of a
 * vocabulary's hundred thousand values, and libtern needs no JSON library.
 *
 * Strict: RFC 8259, valid UTF-8, no lone surrogates (unless they are repaired), nothing after the
 * value. Nesting up to
 * TERN_JSON_MAX_DEPTH. Of equal keys in an object the last one counts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/span.h"
#include "tern/status.h"

enum { TERN_JSON_MAX_DEPTH = 64 };

typedef enum tern_json_type {
    TERN_JSON_NULL,
    TERN_JSON_FALSE,
    TERN_JSON_TRUE,
    TERN_JSON_NUMBER,
    TERN_JSON_STRING,
    TERN_JSON_ARRAY,
    TERN_JSON_OBJECT
} tern_json_type;

/*
 * A value, and after it in memory what it contains: the elements of an array, or key, value, key,
 * value of an object. `v + 1` is the first of them, `v + v->size` what follows v.
 */
typedef struct tern_json_value {
    tern_json_type type;
    uint32_t count; /* elements, or members */
    uint32_t size;  /* values in this one, itself included */
    uint32_t line;  /* where it begins, from 1 on */
    tern_span text; /* of a string, without escapes, not terminated; of a number as written */
} tern_json_value;

typedef struct tern_json {
    char *bytes;             /* strings lie in here */
    tern_json_value *values; /* [0] is the whole */
} tern_json;

/*
 * Parses bytes[size], which come from malloc and belong to *out afterwards, or are freed on
 * failure. `name` is used in messages. Errors: TERN_ERR_JSON, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_json_parse(char *bytes, size_t size, const char *name,
                                            tern_json *out, tern_error *err);

/* The same for bytes that begin in line `line` of what `name` is. */
TERN_MUST_CHECK tern_status tern_json_parse_lines(char *bytes, size_t size, const char *name,
                                                  uint32_t line, tern_json *out, tern_error *err);

/* The same, but half of a surrogate pair that stands alone becomes U+FFFD. */
TERN_MUST_CHECK tern_status tern_json_parse_repaired(char *bytes, size_t size, const char *name,
                                                     uint32_t line, tern_json *out,
                                                     tern_error *err);

/* The same as tern_json_parse for a file of at most `limit` bytes; TERN_ERR_IO too. */
TERN_MUST_CHECK tern_status tern_json_read(const char *path, size_t limit, tern_json *out,
                                           tern_error *err);
void tern_json_free(tern_json *json); /* zero-initialised or parsed */

/* Member of an object; NULL when there is none, when it is null, or when v is not an object. v may
 * be NULL. */
const tern_json_value *tern_json_get(const tern_json_value *v, const char *key);

bool tern_json_is_string(const tern_json_value *v, const char *text); /* v may be NULL */
bool tern_json_is_true(const tern_json_value *v);                     /* v may be NULL */

/* A number without fraction and exponent in the range of *out; false otherwise. v may be NULL. */
bool tern_json_integer(const tern_json_value *v, int64_t *out);

#endif
