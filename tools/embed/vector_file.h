/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EMBED_VECTOR_FILE_H
#define TERN_TOOLS_EMBED_VECTOR_FILE_H

/*
 * Output of vectors in the order of their texts: lines of JSON on standard output or in a file, or
 * a NumPy array (format 1.0, little-endian float32, rows x width) in a file whose name ends with
 * .npy.
 */

#include "base/json_tree/text.h"
#include "base/out_file.h"

typedef struct vector_file {
    tern_out_file *file; /* NULL: standard output */
    bool is_array;
    size_t rows, width;
    text line;
} vector_file;

/* One vector, and facts that are written with it if the format has room. */
typedef struct vector_row {
    size_t number; /* number of its text, from 0 */
    size_t n_tokens;
    const float *x; /* [width] */
    const char *digest;
} vector_row;

/* Opens the output for `rows` rows; path NULL: standard output. Returns the exit status, after a
 * complaint. *v must be zero-initialised; close it in any case. */
int vector_file_open(vector_file *v, const char *path, tern_out_mode mode, size_t rows,
                     size_t width);

/* Writes the next row; returns the exit status. */
int vector_file_add(vector_file *v, const vector_row *row);

/* Completes the file after all rows, which gives it its name. Returns the exit status. */
int vector_file_commit(vector_file *v);
void vector_file_close(vector_file *v);

#endif
