/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_READING_H
#define TERN_RUNTIME_FILES_GGUF_READING_H

/*
 * Says how to read the ternary tensors of a model where no file tells: the order and the meaning of
 * codes in I2_S, and the tile sizes of TL1 and TL2.
 */

#include "base/hash64.h"
#include "kernels/import.h"
#include "runtime/files/gguf/gguf.h"

enum { TERN_TILE_RULES = 32 };

/* Tile sizes of matrices of this shape; 0 x 0: of every shape. */
typedef struct tern_tile_rule {
    uint32_t rows, cols;
    tern_tl_tiles tiles;
} tern_tile_rule;

typedef struct tern_reading {
    tern_i2s_order order;
    uint8_t map[4];                        /* tern_import.map */
    bool map_given;                        /* the user gave it, so it is not doubted */
    tern_tile_rule rules[TERN_TILE_RULES]; /* the first one that fits counts */
    size_t n_rules;
} tern_reading;

/*
 * Reads the texts of tern_model_params (i2s_map, tl_tiles), which may be NULL. TERN_ERR_ARG says
 * what is wrong with a text.
 */
TERN_MUST_CHECK tern_status tern_reading_init(tern_reading *reading, tern_i2s_order order,
                                              const char *map, const char *tiles, tern_error *err);

/*
 * Says how to read one tensor, which tern_gguf_format calls I2_S. The tiles are those of the first
 * rule that fits, else those known for the shape. TERN_ERR_TILES: there are neither.
 */
TERN_MUST_CHECK tern_status tern_reading_of(const tern_reading *reading,
                                            const tern_gguf_tensor *tensor, tern_import *out,
                                            tern_error *err);

/* Finds the tiles of a shape, as above. */
TERN_MUST_CHECK tern_status tern_reading_tiles(const tern_reading *reading, tern_tl_kind kind,
                                               size_t rows, size_t cols, tern_tl_tiles *out,
                                               tern_error *err);

/* A number for how codes are read; 0: as the published models need it. */
uint64_t tern_reading_hash(const tern_reading *reading);

#endif
