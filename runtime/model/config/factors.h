/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_FACTORS_H
#define TERN_RUNTIME_MODEL_CONFIG_FACTORS_H

/*
 * Factors of whole matrices. Beside a matrix NAME.weight a file may have NAME.scale, a number that
 * its products are multiplied by before a bias is added, one for each expert where there are
 * experts; and NAME.input_scale, by which other programs quantize what the matrix reads. The
 * second one stays in files and is not read.
 */

#include "runtime/model/config/config.h"

typedef enum tern_factor_kind {
    TERN_FACTOR_NONE,    /* the name is that of another tensor */
    TERN_FACTOR_RESULTS, /* NAME.scale */
    TERN_FACTOR_INPUTS   /* NAME.input_scale */
} tern_factor_kind;

enum { TERN_FACTOR_NAME_BYTES = 64 };

/* The kind of a tensor of that name; *stem becomes the name of its matrix without "weight". */
tern_factor_kind tern_factor_of_name(tern_span name, tern_span *stem);

/* Writes the name of a matrix's factor, which ends in `ending`: "scale" or "input_scale". */
void tern_factor_name(const char *matrix, const char *ending, char out[TERN_FACTOR_NAME_BYTES]);

/* The first factor of products that the file has; NULL: none. */
const tern_gguf_tensor *tern_factor_first(const tern_gguf *file);

#endif
