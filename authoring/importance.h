/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_IMPORTANCE_H
#define TERN_AUTHORING_IMPORTANCE_H

/*
 * Importance of the input columns of a model's matrices: sums of squares of the values that a text
 * feeds into each column, and the number of rows in each sum. The matrices of experts share a
 * tensor, but each expert has its own sums. Files are those of llama.cpp, in both of its forms
 * (docs/formats.md, "Importance").
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out_file.h"
#include "tern/status.h"

enum { TERN_IMPORTANCE_NAME_BYTES = 256 };

typedef struct tern_importance_entry {
    char name[TERN_IMPORTANCE_NAME_BYTES]; /* name of the tensor */
    size_t cols;     /* of one matrix; in the older form of all matrices together */
    size_t matrices; /* that have their own sums; 1: a single matrix, or common sums */
    double *squares; /* [matrices][cols] sums of squares, finite, not negative; owned */
    double *rows;    /* [matrices] rows in each sum, in the same memory; 0: no row reached this
                        expert. At least one is above 0 in a file that was read */
} tern_importance_entry;

/* Zero-initialise it; free in any case. */
typedef struct tern_importance {
    tern_importance_entry *entries; /* [n] owned */
    size_t n, capacity;
    uint32_t chunks, chunk_tokens;         /* of the text; 0: unknown */
    char text[TERN_IMPORTANCE_NAME_BYTES]; /* the name of the text's file; "": unknown */
} tern_importance;

/* Appends a zeroed entry, or returns NULL when memory is short. May move the others; a longer name
 * is cut. matrices >= 1. */
tern_importance_entry *tern_importance_add(tern_importance *importance, const char *name,
                                           size_t cols, size_t matrices);

/* The entry of a matrix, or NULL. */
const tern_importance_entry *tern_importance_find(const tern_importance *importance,
                                                  const char *name);

void tern_importance_free(tern_importance *importance);

/* True if the entry fits so many matrices of so many columns. */
bool tern_importance_fits(const tern_importance_entry *entry, size_t cols, size_t matrices);

/*
 * Writes the weights of a matrix's columns into w[cols]: mean squares, scaled to a mean of 1, plus
 * 2^-10 so that no weight is 0. An expert that no row reached gets the sums of all experts. The
 * entry must fit.
 */
void tern_importance_weights(const tern_importance_entry *entry, size_t cols, size_t matrix,
                             float *w);

/*
 * Reads a file of either form. TERN_ERR_MAGIC: it is not such a file; TERN_ERR_TRUNCATED, _COUNT,
 * _STRING, _TENSOR_SHAPE, _TENSOR_DUPLICATE, _TENSOR_MISSING, _TENSOR_DATA: its contents are wrong;
 * errors of reading GGUF files; TERN_ERR_NOMEM. *out is untouched on failure.
 */
TERN_MUST_CHECK tern_status tern_importance_read(const char *path, tern_importance *out,
                                                 tern_error *err);

/* The same for bytes; `name` is used in messages. */
TERN_MUST_CHECK tern_status tern_importance_parse(const uint8_t *bytes, size_t size,
                                                  const char *name, tern_importance *out,
                                                  tern_error *err);

/* Writes a GGUF file, or the older form if the path ends with ".dat". Equal sums give equal bytes.
 * Errors of tern_out_file. */
TERN_MUST_CHECK tern_status tern_importance_write(const tern_importance *importance,
                                                  const char *path, tern_out_mode mode,
                                                  tern_error *err);

#endif
