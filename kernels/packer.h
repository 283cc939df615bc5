/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packers of a file of formats that differ in their shape alone. The file has functions
 * group_bytes, pack_group and unpack_matrix of a shape, and a constant shape by the name of each
 * format.
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

/* The same where the file's holds(own, format) says which formats the layout of `own` holds. */
#define TERN_FORMAT_PACKER(NAME, name)                                                             \
    static bool holds_##name(tern_format format) {                                                 \
        return holds(TERN_FORMAT_##NAME, format);                                                  \
    }                                                                                              \
    TERN_PACKER(NAME, name, holds_##name)

#endif
