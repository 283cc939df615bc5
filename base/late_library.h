/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_LATE_LIBRARY_H
#define TERN_BASE_LATE_LIBRARY_H

/*
 * Shared libraries that are loaded when they are first needed. libcurl and GnuTLS bring some
 * thirty others, which would cost every start of the program 4 ms; and where one is missing, only
 * what needs it is refused.
 *
 *     static struct { __typeof__(f) *f; } late;
 *     const tern_late_symbol symbols[] = {{"f", &late.f}};
 */

#include <stddef.h>

#include "tern/status.h"

typedef struct tern_late_symbol {
    const char *name;
    void *place; /* of a pointer: NULL until the library is there */
} tern_late_symbol;

/*
 * Loads a library by its name (libcurl.so.4), which stays until the program ends, and fills all
 * places. Places that are filled already are left alone, so threads that use them are not
 * disturbed. By one thread at a time. TERN_ERR_IO: the library or a symbol is not there; then no
 * place is filled.
 */
TERN_MUST_CHECK tern_status tern_late_library_load(const char *library,
                                                   const tern_late_symbol *symbols, size_t n,
                                                   tern_error *err);

#endif
