/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_JSON_TREE_READ_H
#define TERN_BASE_JSON_TREE_READ_H

#include "base/json_tree/value.h"
#include "tern/status.h"

/*
 * Reads bytes[size] into a tree. They may come from anywhere: they are parsed by base/json.h,
 * and a name that an object has twice, a text with U+0000 in it, and numbers beyond 64 bits or
 * beyond a double are refused too. Messages begin with "NAME: line N", where the bytes begin in
 * line `line`.
 *
 * NULL with the error set otherwise. No memory is an error like the others, which
 * json_memory_failed() does not remember.
 */
json_t *json_read_lines(const char *bytes, size_t size, const char *name, uint32_t line,
                        tern_error *err);
json_t *json_read(const char *bytes, size_t size, const char *name, tern_error *err);

/* The same, but numbers beyond 64 bits keep their digits (json_written_number). */
json_t *json_read_any(const char *bytes, size_t size, const char *name, tern_error *err);

/* The same for what clients send: texts, except names, may have U+0000 in them too, which
 * json_string_length counts, and half of a surrogate pair that stands alone becomes U+FFFD. */
json_t *json_read_body(const char *bytes, size_t size, const char *name, tern_error *err);

#endif
