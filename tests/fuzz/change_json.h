/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_FUZZ_CHANGE_JSON_H
#define TERN_TESTS_FUZZ_CHANGE_JSON_H

/*
 * Random changes of documents that stay JSON: a value is replaced, dropped or repeated, a member is
 * added. Bytes changed at random are seldom JSON, and so seldom get past a parser.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/json_tree/value.h"

/* Names and values that changes draw from. */
typedef struct words {
    const char *names[1024];
    const json_t *values[1024];
    size_t n_names, n_values;
} words;

/* Learns from a description of an interface (OpenAPI): names of properties, constants and limits.
 * The words stay the description's. */
void words_learn(words *w, const json_t *description);

/* bytes[size], of which most may be written, changed; `other` (NULL: none) gives a part of it. The
 * new size; 0: bytes are not JSON, or what it becomes is too long. */
size_t change_json(const words *w, char *bytes, size_t size, size_t most, const json_t *other,
                   unsigned seed);

#endif
