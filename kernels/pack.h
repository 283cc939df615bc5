/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_PACK_H
#define TERN_KERNELS_PACK_H

/*
 * How one packed layout is written and read back. Every layout keeps rows in groups of 16 that
 * follow each other; pack.c walks the groups, a packer fills one. A new layout is an
 * entry of kernels/formats.toml and, unless it is one of plain blocks, a packer.
 */

#include "tern/kernels.h"

enum {
    TERN_CHUNK_BYTES = 64, /* one chunk of any R16 layout: 4 bytes for each of 16 rows */
    TERN_STRIP_ROWS = 32   /* of a foreign ternary tensor: whole units of I2_S for every width */
};

typedef struct tern_packer tern_packer;

/* A matrix on its way between the file's layout and a packed one. */
typedef struct tern_pack_job {
    tern_format format; /* of the file; the packer holds it */
    const uint8_t *file;
    size_t rows, cols;
    size_t group_bytes; /* of a packed group of 16 rows */
    const tern_packer *packer;
    float scale;            /* unpacking only: as in tern_matrix */
    const float *row_scale; /* unpacking only: as in tern_matrix */
} tern_pack_job;

struct tern_packer {
    tern_layout layout;

    /* True if matrices of this format can be packed so. */
    bool (*holds)(tern_format format);

    /* Bytes of a packed group of 16 rows; 0 on overflow. cols > 0. */
    size_t (*group_bytes)(size_t cols);

    /* Packs the up to 16 rows from row0 into `group`. TERN_ERR_TENSOR_DATA names row and column. */
    tern_status (*pack)(const tern_pack_job *job, size_t row0, uint8_t *group, tern_error *err);

    /* The inverse, for the whole matrix. */
    void (*unpack)(const tern_pack_job *job, const uint8_t *packed, uint8_t *file);
};

/* The packer of each layout of the table: tern_packer_NAME, in the file of its family. */
#define TERN_PACKED(layout) extern const tern_packer tern_packer_##layout;
#include "gen/packers.inc"
#undef TERN_PACKED

/*
 * The first `rows` rows, 16 or 32, of an I2_S stream of TERN_STRIP_ROWS rows to where their groups
 * lie in a packed matrix (pack.c).
 */
tern_status tern_pack_strip(const uint8_t *strip, size_t cols, tern_layout layout, size_t rows,
                            uint8_t *out, tern_error *err);

/*
 * The 16 rows from row0 of an I2_S or TQ2_0 matrix, cols a multiple of 128, as T2R16, several times
 * faster than by codes. False when a code is 3.
 */
bool tern_pack_planes(const tern_pack_job *job, size_t row0, uint8_t *group);

/*
 * Gives every block of a TQ1_0 or TQ2_0 row that is unpacked its row's scale; the scale of I2_S is
 * not part of the matrix (pack_tq.c).
 */
void tern_unpack_scales(const tern_pack_job *job, size_t row, uint8_t *file);

/* TQ1_0 and TQ2_0 in Q4_0R16 (pack_tq.c); the job's packer packs Q4_0 for them. */
tern_status tern_pack_tq(const tern_pack_job *job, size_t row0, uint8_t *group, tern_error *err);
void tern_unpack_tq(const tern_pack_job *job, const uint8_t *packed, uint8_t *file);

/* ---- layouts of blocks (pack.c) -------------------------------------------------------------- */

/* A block of row r of a group, from the file to the packed bytes of that block's 16 rows, or back.
 */
typedef void tern_pack_row_fn(tern_format format, const uint8_t *src, size_t r, uint8_t *out);

/* Bytes of a group whose 16 rows of a block take packed_bytes; 0 on overflow. */
size_t tern_blocks_bytes(tern_format format, size_t packed_bytes, size_t cols);

/* The group from row0, block by block; rows that the matrix does not have are zero bytes. */
void tern_pack_blocks(const tern_pack_job *job, tern_pack_row_fn *pack, size_t packed_bytes,
                      size_t row0, uint8_t *group);

/* The inverse, for the whole matrix. */
void tern_unpack_blocks(const tern_pack_job *job, tern_pack_row_fn *unpack, size_t packed_bytes,
                        const uint8_t *packed, uint8_t *file);

/* Rows that the group from row0 has: 16, fewer at the end of the matrix. */
static inline size_t tern_pack_group_rows(const tern_pack_job *job, size_t row0) {
    return job->rows - row0 < TERN_ROW_GROUP ? job->rows - row0 : TERN_ROW_GROUP;
}

#endif
