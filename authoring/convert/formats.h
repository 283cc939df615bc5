/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_FORMATS_H
#define TERN_AUTHORING_CONVERT_FORMATS_H

/* Chooses the format of each tensor of a file that is written. */

#include <stdbool.h>
#include <stddef.h>

#include "authoring/convert/mixture.h"
#include "authoring/convert/q4_map.h"
#include "authoring/importance.h"
#include "runtime/files/gguf/reading.h"
#include "tern/kernels.h"

/* The formats that were asked for; TERN_FORMAT_NONE: nothing, the rules below decide. */
typedef struct convert_formats {
    tern_format body;      /* of matrices; NONE: they keep their format */
    tern_format embedding; /* of token_embd.weight */
    tern_format output;    /* of output.weight */
    const convert_mixture *mixture; /* which of several formats a matrix gets; NULL: the body's */
    convert_shape shape;            /* of the model, for the mixture; convert_job_plan sets it */
    tern_tl_kind tiled;    /* tiles of the body, which is I2_S: TL1, TL2; 0: none */
    tern_bn_kind bn;       /* rows with scales of the body, which is I2_S; 0: none */
    tern_reading reading;  /* holds the sizes of the tiles */
    tern_int4_rows int4;   /* rows of the body if it is INT4; group SIZE_MAX: a whole row */
    const tern_importance *importance; /* of columns; borrowed, may be NULL */
    convert_q4_map *map; /* matrices that become INT4 whatever the body is; borrowed, or NULL */
} convert_formats;

/*
 * Reads the names of formats; each is NULL where it was not asked for. The body may also be a
 * mixture, "tl1", "tl2", "iq1_bn" or "iq2_bn". Some names are those of a format and of a mixture:
 * `pure` takes the format. Sizes of tiles have the form that tern_reading_init takes. TERN_ERR_ARG:
 * they are not sizes of tiles, or `pure` goes with a mixture that is not a format.
 */
TERN_MUST_CHECK tern_status convert_formats_read(const char *body, bool pure, const char *embedding,
                                                 const char *output, const char *tl_tiles,
                                                 convert_formats *out, tern_error *err);

/*
 * The rows of a tensor that becomes INT4: as the map says, or as was asked for. TERN_ERR_ARG: the
 * map names a vector, the embedding or the output head, which stay floats.
 */
TERN_MUST_CHECK tern_status convert_int4_choose(const convert_formats *asked, const char *name,
                                                bool vector, size_t cols, tern_format *target,
                                                tern_int4_rows *form, tern_error *err);

/*
 * Finds the importance of the columns of a tensor that consists of so many matrices and becomes
 * `target`. NULL: there is no importance file, the target does not use it, or it has no entry for
 * the embedding or the head. TERN_ERR_TENSOR_MISSING: a matrix of a block has no entry;
 * TERN_ERR_TENSOR_SHAPE: its entry has other columns or experts; TERN_ERR_ARG: a matrix of a
 * block needs importance for that format, or for it in that mixture.
 */
TERN_MUST_CHECK tern_status convert_importance_choose(const convert_formats *asked,
                                                      const char *name, size_t matrices,
                                                      size_t cols, tern_format target,
                                                      const tern_importance_entry **out,
                                                      tern_error *err);

/*
 * True if a format has two or three values and one scale for many weights. Only models that were
 * trained for such a format survive it.
 */
bool convert_is_coarse(tern_format format);

/* True if a tensor that becomes I2_S is written in the asked tiles or rows with scales: all but the
 * output head are. */
bool convert_has_form(const convert_formats *asked, const char *name, tern_format target);

/* general.file_type of a file most of whose weights are in the format `most`. */
uint32_t convert_file_type(const convert_formats *asked, tern_format most);

/*
 * The format of a tensor that is `source` now. Vectors become f32. Matrices get the body's format.
 * If its blocks do not fit the columns they get its stand_in of kernels/formats.toml, which is that
 * of llama.cpp; ternary formats have no such substitute. The embedding and the output head have at
 * least 8 bits unless asked for otherwise: with a float body they get its format; with another body
 * they stay as they are if the body is ternary or they are quantized already, and become q8_0
 * otherwise. Routers of experts stay as they are. TERN_ERR_TENSOR_SHAPE: a ternary format does not
 * fit, `err` says which would.
 */
TERN_MUST_CHECK tern_status convert_format_choose(const convert_formats *asked, const char *name,
                                                  tern_format source, size_t rows, size_t cols,
                                                  bool vector, tern_format *out, tern_error *err);

#endif
