/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_FACTS_H
#define TERN_KERNELS_FACTS_H

/*
 * The columns of the table of formats and layouts (kernels/formats.toml) that are not public. That
 * file explains them; codegen/facts.py writes them as C. NONE and 0 mean: nothing.
 */

#include "tern/kernels.h"

/* How the codes of a plain block of 32 columns are stored: (code - bias) * d, + m with a minimum.
 */
typedef struct tern_plain {
    uint8_t bits;         /* 4, 5 or 8 (signed); 0: the format is not plain */
    uint8_t bias;         /* 0 where bits is 8, and with levels */
    bool power;           /* d is 2^(e - 128), and the block begins with the byte e */
    bool minimum;         /* f16 m follows f16 d */
    uint8_t codes_at;     /* after the fifth bits of 5-bit codes */
    const int8_t *levels; /* [16] what nibbles stand for; NULL: they are numbers */
} tern_plain;

typedef struct tern_format_facts {
    tern_layout layout;       /* in which products read it */
    uint32_t file_type;       /* of a GGUF file that is mostly of it */
    tern_format stand_in;     /* where its blocks do not fit the columns */
    bool ternary;             /* codes -1, 0, 1 of ternary layouts */
    bool coarse;              /* too coarse for embeddings that nobody asked for */
    uint8_t halves;           /* f16 fields of a block */
    uint8_t half_at[2];       /* where they lie */
    const char *half_name[2]; /* what they are */
    uint8_t int8_from;        /* the bytes of a block that are signed */
    uint8_t int8_to;
    tern_plain plain;
    const int8_t *levels; /* [16] of other formats: what codes stand for; NULL: they are numbers */
    float unit;           /* of formats with grids (kernels/grids.h): what d is multiplied by */
} tern_format_facts;

typedef struct tern_layout_facts {
    bool packed;        /* a packer brings matrices into it */
    bool dense;         /* ternary: less memory than the usual layout, for more arithmetic */
    tern_format sparse; /* of which it stores some blocks */
} tern_layout_facts;

/* The format is one of the list, the layout is one of the list. */
const tern_format_facts *tern_format_facts_of(tern_format format);
const tern_layout_facts *tern_layout_facts_of(tern_layout layout);

#endif
