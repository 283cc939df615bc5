/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_FLOATS_H
#define TERN_TOOLS_CROSSVAL_FLOATS_H

/* A file of little-endian 32-bit floats, row by row. */

#include <stddef.h>
#include <stdio.h>

#include "tern/status.h"

typedef struct float_file {
    FILE *file;
    char *path;
    size_t width; /* floats of a row */
    size_t rows;
    size_t read; /* rows so far */
} float_file;

/* Opens folder/name; its size must be whole rows of `width` floats, at least one. Close in any
 * case; zero-initialise *f. */
TERN_MUST_CHECK tern_status float_file_open(float_file *f, const char *folder, const char *name,
                                            size_t width, tern_error *err);

/* The next row into row[width]; all its numbers are finite. */
TERN_MUST_CHECK tern_status float_file_next(float_file *f, float *row, tern_error *err);

void float_file_close(float_file *f);

#endif
