/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AMX_H
#define TERN_ISA_AMX_H

/*
 * AMX: eight tiles, each up to 16 rows of 64 bytes. An instruction multiplies signed bytes of two
 * tiles and adds sums of four products to the 32-bit numbers of a third, exactly (modulo 2^32).
 * Everything else is AVX-512's.
 *
 * A tile of tokens has a token in each row. A tile of weights has four columns in each row, of
 * sixteen matrix rows: a chunk of 64 bytes of the R16 layouts is one row. A tile of sums has a
 * token in each row and a matrix row in each number. Which tile is what: see tiles_open.
 *
 * Tiles belong to a thread. A product opens them when it begins and closes them before it returns,
 * so no thread keeps 8 KB of state that the system would have to save, and nothing depends on
 * what another caller left in them. Functions that are called in between must not use tiles.
 */

#include <stdbool.h>

#include "kernels/isa/avx512vbmi.h"
#include "kernels/tile_tokens.h"

enum {
    TILE_ROWS = 16,
    TILE_ROW_BYTES = 64,
    TILE_SUMS = 0,    /* tiles 0 to 3 */
    TILE_TOKENS = 4,  /* tiles 4 and 5 */
    TILE_WEIGHTS = 6, /* tiles 6 and 7 */
    TILES = 8
};

/* The operand of ldtilecfg. */
typedef struct tile_config {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "ldtilecfg reads 64 bytes");

/*
 * gcc 12's own functions do not say that an instruction reads memory, so these do. Neither compiler
 * uses tiles unasked, so none of them is named as changed.
 */
#define TILE_NAME(t) "%%tmm" #t

/* Row i of tile t is read from (written to) p + i * stride. */
#define tile_load(t, p, stride)                                                                    \
    __asm__ volatile("tileloadd (%0,%1,1), " TILE_NAME(t)                                          \
                     :                                                                             \
                     : "r"((const void *)(p)), "r"((size_t)(stride))                               \
                     : "memory")
#define tile_store(t, p, stride)                                                                   \
    __asm__ volatile("tilestored " TILE_NAME(t) ", (%0,%1,1)"                                      \
                     :                                                                             \
                     : "r"((void *)(p)), "r"((size_t)(stride))                                     \
                     : "memory")
#define tile_zero(t) __asm__ volatile("tilezero " TILE_NAME(t) : :)

/* Tile `sums` += products of tile x of tokens and tile w of weights. */
#define tile_multiply(sums, x, w)                                                                  \
    __asm__ volatile("tdpbssd " TILE_NAME(w) ", " TILE_NAME(x) ", " TILE_NAME(sums) : :)

/*
 * Gives the tiles their shapes, for products of `columns` columns (16, 32 or 64) at once: sums in
 * tiles 0 to 3, tokens in 4 and 5, weights in 6 and 7. All become zero.
 */
static inline void tiles_open(size_t columns) {
    tile_config config = {.palette = 1};
    for (int t = TILE_SUMS; t < TILES; t++) {
        const bool tokens = t >= TILE_TOKENS && t < TILE_WEIGHTS;
        config.row_bytes[t] = tokens ? (uint16_t)columns : TILE_ROW_BYTES;
        config.rows[t] = t >= TILE_WEIGHTS ? (uint8_t)(columns / 4) : TILE_ROWS;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

static inline void tiles_close(void) {
    __asm__ volatile("tilerelease");
}

/* Differences of bytes. */
static inline vb vb_sub(vb a, vb b) {
    return _mm512_sub_epi8(a, b);
}

#endif
