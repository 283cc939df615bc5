/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packers of a file of formats that differ in their shape alone, a constant by the name of each
 * format. For TERN_PACKER the file has functions group_bytes, pack_group and unpack_matrix of a
 * shape, for TERN_BLOCK_PACKER packed_bytes, pack_row and unpack_row.
 */
#ifndef TERN_KERNELS_PACKER_H
#define TERN_KERNELS_PACKER_H

#include "kernels/pack.h"

/* tern_packer_NAMEr16. HOLDS: as tern_packer.holds. */
#define TERN_PACKER(NAME, name, HOLDS)                                                             \
    static size_t group_bytes_##name(size_t cols) {                                                \
        return group_bytes(&name, cols);                                                           \
    }                                                                                              \
    static tern_status pack_##name(const tern_pack_job *job, size_t row0, uint8_t *group,          \
                                   tern_error *err) {                                              \
        return pack_group(job, &name, row0, group, err);                                           \
    }                                                                                              \
    static void unpack_##name(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {    \
        unpack_matrix(job, &name, packed, file);                                                   \
    }                                                                                              \
    const tern_packer tern_packer_##name##r16 = {TERN_LAYOUT_##NAME##R16, HOLDS,                   \
                                                 group_bytes_##name, pack_##name, unpack_##name};

/*
 * A layout of blocks, which holds the formats that have it in the table: packed_bytes(shape) for 16
 * rows of a block, and functions to pack and unpack a block of row r of a group. Unpacking sets all
 * bytes of the block.
 */
#define TERN_BLOCK_PACKER(NAME, name)                                                              \
    static void pack_row_##name(tern_format format, const uint8_t *src, size_t r, uint8_t *out) {  \
        pack_row(&name, format, src, r, out);                                                      \
    }                                                                                              \
    static void unpack_row_##name(tern_format format, const uint8_t *packed, size_t r,             \
                                  uint8_t *dst) {                                                  \
        unpack_row(&name, format, packed, r, dst);                                                 \
    }                                                                                              \
    static bool holds_##name(tern_format format) {                                                 \
        return tern_format_layout(format) == TERN_LAYOUT_##NAME##R16;                              \
    }                                                                                              \
    static size_t group_bytes_##name(size_t cols) {                                                \
        return tern_blocks_bytes(TERN_FORMAT_##NAME, packed_bytes(&name), cols);                   \
    }                                                                                              \
    static tern_status pack_##name(const tern_pack_job *job, size_t row0, uint8_t *group,          \
                                   tern_error *err) {                                              \
        (void)err; /* every bit pattern is a block */                                              \
        tern_pack_blocks(job, pack_row_##name, packed_bytes(&name), row0, group);                  \
        return TERN_OK;                                                                            \
    }                                                                                              \
    static void unpack_##name(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {    \
        tern_unpack_blocks(job, unpack_row_##name, packed_bytes(&name), packed, file);             \
    }                                                                                              \
    const tern_packer tern_packer_##name##r16 = {TERN_LAYOUT_##NAME##R16, holds_##name,            \
                                                 group_bytes_##name, pack_##name, unpack_##name};

#endif
