/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_JSON_H
#define TERN_TOOLS_JSON_H

/*
 * JSON output by jansson. Builds without it refuse --json when the arguments are read (options.c),
 * so JSON_OR_NOTHING is never reached there.
 */
#ifdef TERN_HAVE_JANSSON

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/loader.h"

#define JSON_OR_NOTHING(print) (print)

/*
 * Once, at the program's start. From then on every allocation of jansson that fails is noted, so
 * values may be built without looking at each step: json_print refuses what is incomplete.
 */
void json_watch_memory(void);
bool json_memory_failed(void);

/* As malloc, with failures noted like those of jansson. */
void *json_reserve(size_t bytes);

/*
 * What the bytes say; NULL with *error filled: no JSON, a key twice, or no memory. jansson alone
 * does not tell: where its buffer for a text cannot grow it leaves out a byte and goes on.
 */
json_t *json_read(const char *bytes, size_t size, json_error_t *error);

/* Prints root as one line and frees it; the exit status. NULL (no memory) is a failure. */
int json_print(json_t *root);

/* A finite number; infinity and NaN become 0. */
json_t *json_number(double x);

/* A number of 64 bits; above INT64_MAX, which JSON integers of jansson cannot hold, as text. */
json_t *json_unsigned(uint64_t x);

/* Text of any bytes: what is not UTF-8 becomes U+FFFD. */
json_t *json_text(const char *bytes, size_t size);

/* Sets "isa", "choice" (tern_model_choice), "kernels" (names of the rows in use) and
 * "refused_kernels" (rows found to be wrong).
 */
void json_set_kernels(json_t *root, const loaded *l);

/* Sets "load_seconds" and "weights": "mapped" from the cache, or "packed". */
void json_set_loading(json_t *root, const loaded *l);

#else
#define JSON_OR_NOTHING(print) EXIT_USAGE
static inline void json_watch_memory(void) {}
#endif
#endif
