/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_IMPORTANCE_H
#define TERN_AUTHORING_IMPORTANCE_H

/*
 * How much the input columns of a model's matrices count: sums of squares of what a text brought
 * into each, with the number of rows that were added up. Files are those of llama.cpp, in both of
 * its forms (docs/formats.md, "Importance").
 */

#include <stddef.h>
#include <stdint.h>

#include "base/out_file.h"
#include "tern/status.h"

enum { TERN_IMPORTANCE_NAME_BYTES = 256 };

typedef struct tern_importance_entry {
    char name[TERN_IMPORTANCE_NAME_BYTES]; /* of the matrix */
    size_t cols;
    double rows;     /* that were added; above 0 in what was read */
    double *squares; /* [cols] sums of squares, finite, not negative; owned */
} tern_importance_entry;

/* Zero-initialise it; free in any case. */
typedef struct tern_importance {
    tern_importance_entry *entries; /* [n] owned */
    size_t n, capacity;
    uint32_t chunks, chunk_tokens;         /* of the text; 0: not said */
    char text[TERN_IMPORTANCE_NAME_BYTES]; /* the name of its file; "": not said */
} tern_importance;

/* A zeroed entry at the end of the list, or NULL when memory is short. Moves the others; a longer
 * name is cut. */
tern_importance_entry *tern_importance_add(tern_importance *importance, const char *name,
                                           size_t cols);

/* The entry of a matrix, or NULL. */
const tern_importance_entry *tern_importance_find(const tern_importance *importance,
                                                  const char *name);

void tern_importance_free(tern_importance *importance);

/*
 * How much the error of each column counts, into w[cols]: its mean square, where all together have
 * a mean of 1, and 2^-10 more, so that none counts nothing.
 */
void tern_importance_weights(const tern_importance_entry *entry, float *w);

/*
 * Reads a file of either form. Entries of several matrices (experts) are left out. TERN_ERR_MAGIC:
 * it is no such file; TERN_ERR_TRUNCATED, _COUNT, _STRING, _TENSOR_SHAPE, _TENSOR_DUPLICATE,
 * _TENSOR_MISSING, _TENSOR_DATA: what is wrong in it; errors of reading GGUF files; TERN_ERR_NOMEM.
 * *out is untouched on failure.
 */
TERN_MUST_CHECK tern_status tern_importance_read(const char *path, tern_importance *out,
                                                 tern_error *err);

/* The same for bytes; `name` is used in messages. */
TERN_MUST_CHECK tern_status tern_importance_parse(const uint8_t *bytes, size_t size,
                                                  const char *name, tern_importance *out,
                                                  tern_error *err);

/* Writes a GGUF file, or where the path ends with ".dat" the older form. The same bytes for the
 * same sums. Errors of tern_out_file. */
TERN_MUST_CHECK tern_status tern_importance_write(const tern_importance *importance,
                                                  const char *path, tern_out_mode mode,
                                                  tern_error *err);

#endif
