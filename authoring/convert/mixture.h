/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_MIXTURE_H
#define TERN_AUTHORING_CONVERT_MIXTURE_H

/*
 * Mixtures of formats, as files of llama.cpp have them: most matrices are of one format, those
 * whose errors cost most have more bits. docs/converting.md lists the rules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"

/* For options: names of mixtures that are not names of formats. */
#define CONVERT_MIXTURES                                                                           \
    "q2_k_s q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_s q5_k_m iq2_m iq3_xs iq3_m mxfp4_moe"

typedef struct convert_mixture convert_mixture;

/* The facts of a model that the rules depend on. */
typedef struct convert_shape {
    size_t layers;   /* blocks of the model */
    size_t queries;  /* heads of queries that share one of keys; 0: unknown */
    size_t experts;  /* 0: none */
    bool tied;       /* the embedding is the output head, too */
    bool importance; /* that of the columns is known */
} convert_shape;

/* The mixture of that name, in any case: one of CONVERT_MIXTURES, q2_k, iq4_xs or a type of grids,
 * iq1_s to iq3_s. NULL: there is none. */
const convert_mixture *convert_mixture_find(const char *name);

/* Its general.file_type. */
uint32_t convert_mixture_file_type(const convert_mixture *mixture);

/* True if matrices of blocks become that format by importance alone in this mixture, though the
 * format can do without. */
bool convert_mixture_needs_importance(const convert_mixture *mixture, tern_format format);

/* The format of a matrix with that name and so many columns, which blocks of 256 may not fit.
 * TERN_FORMAT_NONE: it stays as it is. */
tern_format convert_mixture_format(const convert_mixture *mixture, const convert_shape *shape,
                                   const char *name, size_t cols);

#endif
