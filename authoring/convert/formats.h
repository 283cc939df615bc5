/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_FORMATS_H
#define TERN_AUTHORING_CONVERT_FORMATS_H

/* Which format each tensor of a file that is written gets. */

#include <stdbool.h>
#include <stddef.h>

#include "authoring/convert/q4_map.h"
#include "authoring/importance.h"
#include "runtime/files/gguf/reading.h"
#include "tern/kernels.h"

/* What was asked for; TERN_FORMAT_NONE: nothing, the rules below decide. */
typedef struct convert_formats {
    tern_format body;      /* of matrices; without it they stay as they are */
    tern_format embedding; /* of token_embd.weight */
    tern_format output;    /* of output.weight */
    tern_tl_kind tiled;   /* the body, which is I2_S, is written in tiles: TL1, TL2; 0: it is not */
    tern_reading reading; /* which has their sizes */
    tern_int4_rows int4;  /* of the body, where it is INT4; group SIZE_MAX: a row */
    const tern_importance *importance; /* of columns; borrowed, or NULL */
    convert_q4_map *map; /* which matrices become INT4 whatever the body is; borrowed, or NULL */
} convert_formats;

/*
 * By the names of formats, of the body also "tl1" and "tl2", each NULL where it was not asked for;
 * sizes of tiles as tern_reading_init has them. TERN_ERR_ARG: these are not tiles.
 */
TERN_MUST_CHECK tern_status convert_formats_read(const char *body, const char *embedding,
                                                 const char *output, const char *tl_tiles,
                                                 convert_formats *out, tern_error *err);

/*
 * How the rows of a tensor that becomes INT4 are written: as the map says, or as was asked for.
 * TERN_ERR_ARG: the map names a vector, the embedding or the output head, which stay floats.
 */
TERN_MUST_CHECK tern_status convert_int4_choose(const convert_formats *asked, const char *name,
                                                bool vector, size_t cols, tern_format *target,
                                                tern_int4_rows *form, tern_error *err);

/*
 * What is known of the columns of a tensor of so many matrices that becomes `target`: NULL where
 * nothing is to be known, or of the embedding and the head nothing is. TERN_ERR_TENSOR_MISSING,
 * TERN_ERR_TENSOR_SHAPE: of a matrix of a block nothing is known, or of other columns or experts;
 * TERN_ERR_ARG: IQ2_S needs it.
 */
TERN_MUST_CHECK tern_status convert_importance_choose(const convert_formats *asked,
                                                      const char *name, size_t matrices,
                                                      size_t cols, tern_format target,
                                                      const tern_importance_entry **out,
                                                      tern_error *err);

/*
 * Whether a format has two or three values with one scale for many weights, so that only models
 * that were trained for it survive it.
 */
bool convert_is_coarse(tern_format format);

/* Whether a tensor that becomes I2_S is written in tiles: all but the output head are. */
bool convert_is_tiled(const convert_formats *asked, const char *name, tern_format target);

/* general.file_type of a file whose weights mostly are `most`. */
uint32_t convert_file_type(const convert_formats *asked, tern_format most);

/*
 * The format of a tensor that is `source` now. Vectors become f32. Matrices get the body's format,
 * or where its blocks do not fit the columns the next larger one: iq2_s q4_0, q4_k q5_0, q5_k and
 * q6_k q8_0, blocks of 32 f16; ternary formats have no such stand-in. The embedding and the output
 * head have, unless asked for, at least 8 bits: with a float body its format; else they stay as
 * they are where the body is ternary or they are quantized already, and become q8_0 where they are
 * not. Routers of experts stay as they are. TERN_ERR_TENSOR_SHAPE: a ternary format does not fit,
 * `err` says which would.
 */
TERN_MUST_CHECK tern_status convert_format_choose(const convert_formats *asked, const char *name,
                                                  tern_format source, size_t rows, size_t cols,
                                                  bool vector, tern_format *out, tern_error *err);

#endif
