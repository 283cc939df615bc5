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
    size_t width; /* floats per row */
    size_t rows;
    size_t read; /* rows read so far */
} float_file;

/* Opens folder/name, whose size must be at least one whole row of `width` floats. Zero-initialise
 * *f and close it in any case. */
TERN_MUST_CHECK tern_status float_file_open(float_file *f, const char *folder, const char *name,
                                            size_t width, tern_error *err);

/* Reads the next row into row[width]; all its numbers are finite. */
TERN_MUST_CHECK tern_status float_file_next(float_file *f, float *row, tern_error *err);

void float_file_close(float_file *f);

#endif
