/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ternary files to the layouts of table lookup, TL1R16 and TL2R16, and back. Both keep 16 rows in
 * segments of 16 bytes, one byte a row, each nibble an index; TL2R16 has sign bits after them.
 */

#include <string.h>

#include "kernels/pack.h"
#include "kernels/packer.h"
#include "kernels/ternary.h"

enum {
    SEGMENTS = 4,   /* in a chunk */
    RUN_COLS = 768, /* columns decoded at a time: whole chunks of either layout, whole TQ blocks */
    SIGNS_AT = 64   /* TL2R16: offset of the sign bytes in a chunk */
};

/* The differences between the two layouts. */
typedef struct lookup_shape {
    size_t picked; /* weights that a nibble stands for */
    size_t chunk_bytes;
} lookup_shape;

static const lookup_shape tl1 = {2, 64};
static const lookup_shape tl2 = {3, 80};

static size_t chunk_cols(const lookup_shape *shape) {
    return 2 * SEGMENTS * shape->picked;
}

static size_t group_bytes(const lookup_shape *shape, size_t cols) {
    const size_t chunks = cols / chunk_cols(shape) + (cols % chunk_cols(shape) != 0);
    size_t bytes;

    return __builtin_mul_overflow(chunks, shape->chunk_bytes, &bytes) ? 0 : bytes;
}

/* ---- nibbles ------------------------------------------------------------------------------- */

/* A weight triple as TL2R16 keeps it: its magnitude, with 16 where it is negative. */
static uint8_t triple_of(const uint8_t *codes) {
    static const uint8_t triples[27] = {29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 0,
                                        1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13};
    return triples[9 * codes[0] + 3 * codes[1] + codes[2]];
}

/* A row's bytes of a chunk, and its sign bits, from the codes of the chunk's columns. */
static void put_pairs(const uint8_t *codes, uint8_t *chunk, size_t r) {
    for (size_t s = 0; s < SEGMENTS; s++, codes += 4)
        chunk[s * TERN_ROW_GROUP + r] =
            (uint8_t)(3 * codes[0] + codes[1] + (3 * codes[2] + codes[3]) * 16);
}

static void put_triples(const uint8_t *codes, uint8_t *chunk, size_t r) {
    unsigned signs = 0;

    for (size_t s = 0; s < SEGMENTS; s++, codes += 6) {
        const unsigned low = triple_of(codes), high = triple_of(codes + 3);
        chunk[s * TERN_ROW_GROUP + r] = (uint8_t)(low % 16 + high % 16 * 16);
        signs |= (low / 16 + high / 16 * 2) << 2 * s;
    }
    chunk[SIGNS_AT + r] = (uint8_t)signs;
}

static void get_nibble(const lookup_shape *shape, const uint8_t *chunk, size_t n, size_t r,
                       uint8_t *codes) {
    const int index = chunk[n / 2 * TERN_ROW_GROUP + r] >> 4 * (n % 2) & 15;

    if (shape->picked == 2) {
        codes[0] = (uint8_t)(index / 3);
        codes[1] = (uint8_t)(index % 3);
        return;
    }
    const int value = chunk[SIGNS_AT + r] >> n & 1 ? -index : index;
    const int code = value + 13; /* 9 * c0 + 3 * c1 + c2 */
    codes[0] = (uint8_t)(code / 9);
    codes[1] = (uint8_t)(code / 3 % 3);
    codes[2] = (uint8_t)(code % 3);
}

/* ---- whole matrices ------------------------------------------------------------------------ */

/* Codes of columns [k, k + RUN_COLS) of a row; 1 (weight 0) after the last. */
static void read_run(const tern_pack_job *job, size_t row, size_t k, uint8_t *codes) {
    const size_t n = job->cols - k < RUN_COLS ? job->cols - k : RUN_COLS;

    if (n < RUN_COLS)
        memset(codes, 1, RUN_COLS);
    tern_ternary_read(job->format, job->file, row * job->cols + k, n, codes);
}

static inline __attribute__((always_inline)) tern_status pack_group(const tern_pack_job *job,
                                                                    const lookup_shape *shape,
                                                                    size_t row0, uint8_t *group,
                                                                    tern_error *err) {
    const size_t n = tern_pack_group_rows(job, row0);
    uint8_t codes[RUN_COLS];

    for (size_t r = 0; r < TERN_ROW_GROUP; r++) {
        for (size_t k = 0; k < job->cols; k += RUN_COLS) {
            if (r < n)
                read_run(job, row0 + r, k, codes);
            else
                memset(codes, 1, sizeof codes);
            if (tern_ternary_invalid(codes, RUN_COLS))
                return tern_ternary_fail(job->format, job->file, job->cols, row0, err);
            uint8_t *chunk = group + k / chunk_cols(shape) * shape->chunk_bytes;
            for (size_t at = 0; at < RUN_COLS && k + at < job->cols; at += chunk_cols(shape)) {
                if (shape->picked == 2)
                    put_pairs(codes + at, chunk, r);
                else
                    put_triples(codes + at, chunk, r);
                chunk += shape->chunk_bytes;
            }
        }
    }
    return TERN_OK;
}

static void unpack_matrix(const tern_pack_job *job, const lookup_shape *shape,
                          const uint8_t *packed, uint8_t *file) {
    uint8_t codes[RUN_COLS];

    if (job->format == TERN_FORMAT_I2_S)
        memset(file, 0, job->rows * job->cols / 4);
    for (size_t row = 0; row < job->rows; row++) {
        const uint8_t *group = packed + row / TERN_ROW_GROUP * job->group_bytes;
        for (size_t k = 0; k < job->cols; k += RUN_COLS) {
            const size_t n = job->cols - k < RUN_COLS ? job->cols - k : RUN_COLS;
            for (size_t at = 0; at < n; at += chunk_cols(shape)) {
                const uint8_t *chunk = group + (k + at) / chunk_cols(shape) * shape->chunk_bytes;
                for (size_t i = 0; i < 2 * SEGMENTS; i++)
                    get_nibble(shape, chunk, i, row % TERN_ROW_GROUP,
                               codes + at + i * shape->picked);
            }
            tern_ternary_write(job->format, codes, row * job->cols + k, n, file);
        }
        tern_unpack_scales(job, row, file);
    }
}

TERN_PACKER(TL1, tl1, tern_format_is_ternary)
TERN_PACKER(TL2, tl2, tern_format_is_ternary)
