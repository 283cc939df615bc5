/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TILE_TOKENS_H
#define TERN_TILE_TOKENS_H

/*
 * How many tokens in a tile pay for it: fewer are multiplied faster by vectors. The templates of
 * tiles decide by these numbers, and the tests of tiles count by them.
 */
enum {
    TERN_TILE_TOKENS_TERNARY = 16, /* of a whole product */
    TERN_TILE_TOKENS_BLOCK = 13,   /* of the last tile, where a block has one scale */
    TERN_TILE_TOKENS_HALVES = 16   /* the same, where halves of a block have scales of their own */
};

#endif
