/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_IMPORTANCE_H
#define TERN_AUTHORING_IMPORTANCE_H

/*
 * How much the input columns of a model's matrices count: sums of squares of what a text brought
 * into each, with the number of rows that were added up. The matrices of experts, which are one
 * tensor, have sums of their own each. Files are those of llama.cpp, in both of its forms
 * (docs/formats.md, "Importance").
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out_file.h"
#include "tern/status.h"

enum { TERN_IMPORTANCE_NAME_BYTES = 256 };

typedef struct tern_importance_entry {
    char name[TERN_IMPORTANCE_NAME_BYTES]; /* of the tensor */
    size_t cols;     /* of a matrix; of several in a file of the older form, of all of them */
    size_t matrices; /* that have sums; 1: one matrix, or all alike */
    double *squares; /* [matrices][cols] sums of squares, finite, not negative; owned */
    double *rows;    /* [matrices] that were added, in the same memory; 0: an expert that no row
                        reached. Above 0 for some in what was read */
} tern_importance_entry;

/* Zero-initialise it; free in any case. */
typedef struct tern_importance {
    tern_importance_entry *entries; /* [n] owned */
    size_t n, capacity;
    uint32_t chunks, chunk_tokens;         /* of the text; 0: not said */
    char text[TERN_IMPORTANCE_NAME_BYTES]; /* the name of its file; "": not said */
} tern_importance;

/* A zeroed entry at the end of the list, or NULL when memory is short. Moves the others; a longer
 * name is cut. matrices >= 1. */
tern_importance_entry *tern_importance_add(tern_importance *importance, const char *name,
                                           size_t cols, size_t matrices);

/* The entry of a matrix, or NULL. */
const tern_importance_entry *tern_importance_find(const tern_importance *importance,
                                                  const char *name);

void tern_importance_free(tern_importance *importance);

/* Whether the entry can be that of so many matrices of so many columns. */
bool tern_importance_fits(const tern_importance_entry *entry, size_t cols, size_t matrices);

/*
 * How much the error of each column of a matrix counts, into w[cols]: its mean square, where all
 * together have a mean of 1, and 2^-10 more, so that none counts nothing. An expert that no row
 * reached has the sums of all experts. The entry fits.
 */
void tern_importance_weights(const tern_importance_entry *entry, size_t cols, size_t matrix,
                             float *w);

/*
 * Reads a file of either form. TERN_ERR_MAGIC: it is no such file; TERN_ERR_TRUNCATED, _COUNT,
 * _STRING, _TENSOR_SHAPE, _TENSOR_DUPLICATE, _TENSOR_MISSING, _TENSOR_DATA: what is wrong in it;
 * errors of reading GGUF files; TERN_ERR_NOMEM. *out is untouched on failure.
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
