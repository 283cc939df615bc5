/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_JSON_TREE_TEXT_H
#define TERN_BASE_JSON_TREE_TEXT_H

/*
 * Text that grows, and JSON written into it. Where memory fails nothing more is added and `failed`
 * says so: who writes looks once, at the end. Zero-initialise it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

typedef struct text {
    char *bytes; /* [size], terminated once there is something */
    size_t size, capacity;
    bool failed;
} text;

void text_free(text *t);
void text_clear(text *t); /* keeps the memory */
void text_add(text *t, const char *bytes, size_t size);
void text_base64(text *t, const void *bytes, size_t size); /* RFC 4648, without quotes */
void text_print(text *t, const char *format, ...) TERN_PRINTF(2, 3);

/* bytes[size] as a JSON string with its quotes; what is not UTF-8 becomes U+FFFD. Escaped is what
 * must be, and with `ascii` all that is not ASCII. */
void text_quote(text *t, const char *bytes, size_t size);
void text_quote_ascii(text *t, const char *bytes, size_t size);

/* `"NAME":` and the value, with a comma before it unless it is the first of an object. */
void text_name(text *t, const char *name);
void text_string(text *t, const char *name, const char *value);

/* In as few digits as give the same float again; -9999 in place of minus infinity. */
void text_real(text *t, const char *name, float value);
void text_float(text *t, float value); /* the number alone */

/* Its bytes, which the caller frees; NULL when memory failed. Empties t. */
char *text_take(text *t, size_t *size);

#endif
