/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_WANTED_H
#define TERN_AUTHORING_CONVERT_HF_WANTED_H

/* Tensors of a Hugging Face folder, as the written file needs them. */

#include "authoring/convert/hf_tensors.h"

/* A tensor that the written file needs. */
typedef struct hf_wanted {
    const char *name; /* in the written file */
    size_t rows, cols;
    size_t first; /* rows of the folder's tensor before the first one */
    bool vector;
    bool ternary; /* a matrix that may be ternary */
    bool turned;  /* its rows, or elements, are heads that RoPE rotates */
    bool norm;    /* gains of a norm that may be stored minus 1 */
    bool rates;   /* numbers below 0, stored as logarithms */
    bool taps;    /* of a convolution, which folders hold as [rows][1][cols] */
    hf_turns turns;
    bool turns_columns;
    hf_packing packing;
    const char *packed; /* the folder's tensor that packs the rows; NULL: none does */
} hf_wanted;

/* The sizes that decide the shapes of the tensors of blocks. */
tern_block_sizes hf_wanted_sizes(const hf_config *c);

/* Describes a tensor of a block whose name has no number of an expert. */
hf_wanted hf_wanted_of(const hf_config *c, const tern_block_sizes *sizes,
                       const tern_block_tensor *t, const char *name);

#endif
