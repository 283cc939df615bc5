/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVFP4 to its R16 layout and back: of each 32 columns the scales of both runs, then nibbles in
 * 32-bit words. Scales are kept as the finite numbers that they stand for.
 */

#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/packer.h"

typedef struct run_shape {
    size_t half_bytes; /* of 32 columns of a group */
} run_shape;

static const run_shape nvfp4 = {2 * TERN_ROW_GROUP + 4 * TERN_CHUNK_BYTES};

static size_t packed_bytes(const run_shape *shape) {
    return 2 * shape->half_bytes;
}

/* Runs 2s and 2s + 1: byte j of a run has columns j and j + 8, of a chunk j and j + 4. */
static void pack_half(const uint8_t *block, size_t s, size_t r, uint8_t *out) {
    for (size_t run = 0; run < 2; run++) {
        const uint8_t *nibbles = block + TERN_NVFP4_NIBBLES + 8 * (2 * s + run);
        const uint32_t a = tern_load32(nibbles), b = tern_load32(nibbles + 4);
        uint8_t *codes = out + 2 * TERN_ROW_GROUP + 2 * run * TERN_CHUNK_BYTES + 4 * r;
        out[run * TERN_ROW_GROUP + r] = tern_nvfp4_scale(block, 2 * s + run);
        tern_store32(codes, (a & TERN_LOW_NIBBLES) | (b & TERN_LOW_NIBBLES) << 4);
        tern_store32(codes + TERN_CHUNK_BYTES,
                     (a >> 4 & TERN_LOW_NIBBLES) | (b & ~TERN_LOW_NIBBLES));
    }
}

static void unpack_half(const uint8_t *packed, size_t s, size_t r, uint8_t *block) {
    for (size_t run = 0; run < 2; run++) {
        const uint8_t *codes = packed + 2 * TERN_ROW_GROUP + 2 * run * TERN_CHUNK_BYTES + 4 * r;
        const uint32_t low = tern_load32(codes), high = tern_load32(codes + TERN_CHUNK_BYTES);
        uint8_t *nibbles = block + TERN_NVFP4_NIBBLES + 8 * (2 * s + run);
        block[2 * s + run] = packed[run * TERN_ROW_GROUP + r];
        tern_store32(nibbles, (low & TERN_LOW_NIBBLES) | (high & TERN_LOW_NIBBLES) << 4);
        tern_store32(nibbles + 4, (low >> 4 & TERN_LOW_NIBBLES) | (high & ~TERN_LOW_NIBBLES));
    }
}

static void pack_row(const run_shape *shape, tern_format format, const uint8_t *src, size_t r,
                     uint8_t *out) {
    (void)format;
    pack_half(src, 0, r, out);
    pack_half(src, 1, r, out + shape->half_bytes);
}

static void unpack_row(const run_shape *shape, tern_format format, const uint8_t *packed, size_t r,
                       uint8_t *dst) {
    (void)format;
    unpack_half(packed, 0, r, dst);
    unpack_half(packed + shape->half_bytes, 1, r, dst);
}

TERN_BLOCK_PACKER(NVFP4, nvfp4)
