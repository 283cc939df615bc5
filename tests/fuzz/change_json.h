/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_FUZZ_CHANGE_JSON_H
#define TERN_TESTS_FUZZ_CHANGE_JSON_H

/*
 * Random changes of documents that stay JSON: a value is replaced, dropped or repeated, or a member
 * is added. Random changes of bytes seldom give JSON, so they seldom get past a parser.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/json_tree/value.h"

/* Names and values for changes to draw from. */
typedef struct words {
    const char *names[1024];
    const json_t *values[1024];
    size_t n_names, n_values;
} words;

/* Learns names of properties, constants and limits from an interface description (OpenAPI). The
 * words point into the description. */
void words_learn(words *w, const json_t *description);

/* Changes the document in bytes[size], which has room for `most`. `other` (may be NULL) may supply
 * a part. Returns the new size; 0 if bytes are not JSON, or if the result is too long. */
size_t change_json(const words *w, char *bytes, size_t size, size_t most, const json_t *other,
                   unsigned seed);

#endif
