/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SPAN_H
#define TERN_SPAN_H

#include <stddef.h>

/* Bytes that another object owns; not terminated, may hold any byte. */
typedef struct tern_span {
    const char *data;
    size_t size;
} tern_span;

#endif
