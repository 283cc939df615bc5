/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File layouts to the R16 layouts and back. Packing runs over every weight when a model is
 * loaded, so the shapes that models have (I2_S with 16 full rows of whole 128-code units, and all
 * block formats) move 32- and 64-bit words; other I2_S shapes go code by code.
 */

#include <string.h>

#include "kernels/i2s.h"
#include "tern/kernels.h"

enum {
    CHUNK_BYTES = 64,        /* one chunk of any R16 layout: 4 bytes for each of 16 rows */
    TERNARY_CHUNK = 16,      /* columns in a T2R16 chunk */
    TERNARY_UNIT_CHUNKS = 8, /* T2R16 chunks that a 128-code unit fills */
    SCALES_BYTES = 2 * TERN_ROW_GROUP, /* one f16 for each row of a group */
    SCALES_MAX = 2
};

/* How a block format becomes its R16 layout. */
typedef struct block_shape {
    tern_format format;
    size_t file_bytes; /* of a block in the file */
    size_t scales;     /* f16 fields before the codes */
    size_t chunks;     /* of 64 bytes in a packed block */
} block_shape;

/* A matrix on its way between the two layouts. */
typedef struct pack_job {
    size_t rows, cols;
    size_t group_bytes; /* of a packed group of 16 rows */
    const block_shape *shape;
} pack_job;

static const block_shape *block_shape_of(tern_layout layout) {
    static const block_shape q4_0 = {TERN_FORMAT_Q4_0, 18, 1, 4};
    static const block_shape q4_1 = {TERN_FORMAT_Q4_1, 20, 2, 4};
    static const block_shape q8_0 = {TERN_FORMAT_Q8_0, 34, 1, 8};

    switch (layout) {
    case TERN_LAYOUT_Q4_0R16:
        return &q4_0;
    case TERN_LAYOUT_Q4_1R16:
        return &q4_1;
    case TERN_LAYOUT_Q8_0R16:
        return &q8_0;
    default:
        return NULL;
    }
}

static size_t packed_block_bytes(const block_shape *shape) {
    return shape->scales * SCALES_BYTES + shape->chunks * CHUNK_BYTES;
}

static size_t groups_of(size_t rows) {
    return rows / TERN_ROW_GROUP + (rows % TERN_ROW_GROUP != 0);
}

/* Bytes of one packed row group; 0 when the layout is not packed or the size overflows. */
static size_t packed_group_bytes(tern_layout layout, size_t cols) {
    const block_shape *shape = block_shape_of(layout);
    size_t bytes;

    if (layout == TERN_LAYOUT_T2R16) {
        const size_t chunks = cols / TERNARY_CHUNK + (cols % TERNARY_CHUNK != 0);
        return __builtin_mul_overflow(chunks, (size_t)CHUNK_BYTES, &bytes) ? 0 : bytes;
    }
    if (shape == NULL)
        return 0;
    return __builtin_mul_overflow(cols / TERN_BLOCK, packed_block_bytes(shape), &bytes) ? 0 : bytes;
}

size_t tern_packed_bytes(tern_layout layout, size_t rows, size_t cols) {
    size_t bytes;

    if (__builtin_mul_overflow(groups_of(rows), packed_group_bytes(layout, cols), &bytes))
        return 0;
    return bytes;
}

static uint32_t load32(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static void store32(uint8_t *p, uint32_t word) {
    memcpy(p, &word, sizeof word);
}

/* ---- ternary ------------------------------------------------------------------------------- */

/* Four bytes of row a in the low half, four of row b in the high half: neighbours in a chunk. */
static uint64_t load_pair(const uint8_t *a, const uint8_t *b) {
    return load32(a) | (uint64_t)load32(b) << 32;
}

/* Exchanges the fields of *a under mask << shift with the fields of *b under mask. */
static void swap_fields(uint64_t *a, uint64_t *b, unsigned shift, uint64_t mask) {
    const uint64_t t = (*a >> shift ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

/*
 * Moves half a unit (16 bytes) of two neighbouring rows into the four chunks that its planes fill,
 * 128 bytes apart. Word p holds columns 4p..4p+3 of plane 0 in the top field of each byte, plane 3
 * in the bottom field; a chunk wants one plane with p = 0..3 from the bottom up: a 4 x 4 transpose
 * of 2-bit fields in every byte lane. Returns non-zero when a code is 3.
 */
static uint64_t pack_half_unit(const uint8_t *a, const uint8_t *b, uint8_t *out) {
    const uint64_t low_bits = UINT64_C(0x5555555555555555);
    uint64_t w0 = load_pair(a, b);
    uint64_t w1 = load_pair(a + 4, b + 4);
    uint64_t w2 = load_pair(a + 8, b + 8);
    uint64_t w3 = load_pair(a + 12, b + 12);
    const uint64_t bad = ((w0 & w0 >> 1) | (w1 & w1 >> 1) | (w2 & w2 >> 1) | (w3 & w3 >> 1));

    swap_fields(&w0, &w2, 4, UINT64_C(0x0f0f0f0f0f0f0f0f));
    swap_fields(&w1, &w3, 4, UINT64_C(0x0f0f0f0f0f0f0f0f));
    swap_fields(&w0, &w1, 2, UINT64_C(0x3333333333333333));
    swap_fields(&w2, &w3, 2, UINT64_C(0x3333333333333333));
    memcpy(out, &w3, sizeof w3);
    memcpy(out + 2 * CHUNK_BYTES, &w2, sizeof w2);
    memcpy(out + 4 * CHUNK_BYTES, &w1, sizeof w1);
    memcpy(out + 6 * CHUNK_BYTES, &w0, sizeof w0);
    return bad & low_bits;
}

/* 16 full rows of whole units. False when a code is 3 somewhere. */
static bool pack_ternary_units(const uint8_t *src, size_t row_bytes, uint8_t *out) {
    uint64_t bad = 0;

    for (size_t u = 0; u < row_bytes; u += TERN_I2S_UNIT_BYTES) {
        for (size_t r = 0; r < TERN_ROW_GROUP; r += 2) {
            const uint8_t *a = src + r * row_bytes + u;
            bad |= pack_half_unit(a, a + row_bytes, out + 4 * r);
            bad |= pack_half_unit(a + 16, a + row_bytes + 16, out + 4 * r + CHUNK_BYTES);
        }
        out += TERNARY_UNIT_CHUNKS * CHUNK_BYTES;
    }
    return bad == 0;
}

/* Place of (row in group, column) in a packed group: byte and shift. */
static size_t ternary_byte(size_t r, size_t k) {
    return k / TERNARY_CHUNK * CHUNK_BYTES + 4 * r + k % 4;
}

static unsigned ternary_shift(size_t k) {
    return 2u * (unsigned)(k % TERNARY_CHUNK / 4);
}

/* Any shape, code by code. False when a code is 3 somewhere. */
static bool pack_ternary_codes(const pack_job *job, const uint8_t *file, size_t row0,
                               uint8_t *out) {
    const size_t n = job->rows - row0 < TERN_ROW_GROUP ? job->rows - row0 : TERN_ROW_GROUP;
    unsigned bad = 0;

    memset(out, 0x55, job->group_bytes); /* code 1 everywhere */
    for (size_t r = 0; r < n; r++) {
        for (size_t k = 0; k < job->cols; k++) {
            const unsigned code = tern_i2s_code(file, (row0 + r) * job->cols + k);
            uint8_t *byte = out + ternary_byte(r, k);
            *byte = (uint8_t)(*byte ^ (code ^ 1u) << ternary_shift(k));
            bad |= code & code >> 1;
        }
    }
    return bad == 0;
}

/* Names the first code 3 at or after row0. */
static tern_status fail_ternary(const pack_job *job, const uint8_t *file, size_t row0,
                                tern_error *err) {
    size_t element = row0 * job->cols;

    while (tern_i2s_code(file, element) != 3)
        element++;
    return tern_fail(err, TERN_ERR_TENSOR_DATA, "invalid ternary code 3 at row %zu, column %zu",
                     element / job->cols, element % job->cols);
}

static tern_status pack_ternary_group(const pack_job *job, const uint8_t *file, size_t row0,
                                      uint8_t *out, tern_error *err) {
    const bool whole = job->cols % TERN_I2S_UNIT == 0 && job->rows - row0 >= TERN_ROW_GROUP;
    const bool valid = whole ? pack_ternary_units(file + row0 * job->cols / 4, job->cols / 4, out)
                             : pack_ternary_codes(job, file, row0, out);

    return valid ? TERN_OK : fail_ternary(job, file, row0, err);
}

static void unpack_ternary(const pack_job *job, const uint8_t *packed, uint8_t *file) {
    memset(file, 0, job->rows * job->cols / 4);
    for (size_t row = 0; row < job->rows; row++) {
        const uint8_t *group = packed + row / TERN_ROW_GROUP * job->group_bytes;
        for (size_t k = 0; k < job->cols; k++) {
            const size_t e = row * job->cols + k;
            const unsigned byte = group[ternary_byte(row % TERN_ROW_GROUP, k)];
            const unsigned code = byte >> ternary_shift(k) & 3u;
            file[tern_i2s_byte(e)] = (uint8_t)(file[tern_i2s_byte(e)] | code << tern_i2s_shift(e));
        }
    }
}

/* ---- block formats ------------------------------------------------------------------------- */

static const uint32_t low_nibbles = 0x0f0f0f0fu;

/*
 * A Q4 block of the file keeps columns j and j+16 in one byte; a chunk wants j and j+4. Word i of
 * the file holds columns 4i..4i+3 (low nibbles) and 16+4i.. (high nibbles).
 */
static void pack_nibbles(const uint8_t *qs, uint8_t *out) {
    for (int i = 0; i < 2; i++) {
        const uint32_t a = load32(qs + 8 * i);
        const uint32_t b = load32(qs + 8 * i + 4);
        store32(out + i * CHUNK_BYTES, (a & low_nibbles) | (b & low_nibbles) << 4);
        store32(out + (i + 2) * CHUNK_BYTES, (a >> 4 & low_nibbles) | (b & ~low_nibbles));
    }
}

static void unpack_nibbles(const uint8_t *packed, uint8_t *qs) {
    for (int i = 0; i < 2; i++) {
        const uint32_t low = load32(packed + i * CHUNK_BYTES);
        const uint32_t high = load32(packed + (i + 2) * CHUNK_BYTES);
        store32(qs + 8 * i, (low & low_nibbles) | (high & low_nibbles) << 4);
        store32(qs + 8 * i + 4, (low >> 4 & low_nibbles) | (high & ~low_nibbles));
    }
}

/* One row's share of a packed block; `out` points at the block, r is the row in its group. */
static void pack_block(const block_shape *shape, const uint8_t *src, size_t r, uint8_t *out) {
    uint8_t *codes = out + shape->scales * SCALES_BYTES + 4 * r;

    for (size_t i = 0; i < shape->scales; i++)
        memcpy(out + i * SCALES_BYTES + 2 * r, src + 2 * i, 2);
    src += 2 * shape->scales;
    if (shape->chunks == 4) {
        pack_nibbles(src, codes);
        return;
    }
    for (size_t c = 0; c < shape->chunks; c++)
        memcpy(codes + c * CHUNK_BYTES, src + 4 * c, 4);
}

static void unpack_block(const block_shape *shape, const uint8_t *packed, size_t r, uint8_t *dst) {
    const uint8_t *codes = packed + shape->scales * SCALES_BYTES + 4 * r;

    for (size_t i = 0; i < shape->scales; i++)
        memcpy(dst + 2 * i, packed + i * SCALES_BYTES + 2 * r, 2);
    dst += 2 * shape->scales;
    if (shape->chunks == 4) {
        unpack_nibbles(codes, dst);
        return;
    }
    for (size_t c = 0; c < shape->chunks; c++)
        memcpy(dst + 4 * c, codes + c * CHUNK_BYTES, 4);
}

static void pack_block_group(const pack_job *job, const uint8_t *file, size_t row0, uint8_t *out) {
    const block_shape *shape = job->shape;
    const size_t blocks = job->cols / TERN_BLOCK;
    const size_t n = job->rows - row0 < TERN_ROW_GROUP ? job->rows - row0 : TERN_ROW_GROUP;

    if (n < TERN_ROW_GROUP)
        memset(out, 0, job->group_bytes);
    for (size_t b = 0; b < blocks; b++, out += packed_block_bytes(shape))
        for (size_t r = 0; r < n; r++)
            pack_block(shape, file + ((row0 + r) * blocks + b) * shape->file_bytes, r, out);
}

static void unpack_blocks(const pack_job *job, const uint8_t *packed, uint8_t *file) {
    const block_shape *shape = job->shape;
    const size_t blocks = job->cols / TERN_BLOCK;

    for (size_t row = 0; row < job->rows; row++) {
        const uint8_t *group = packed + row / TERN_ROW_GROUP * job->group_bytes;
        for (size_t b = 0; b < blocks; b++, file += shape->file_bytes)
            unpack_block(shape, group + b * packed_block_bytes(shape), row % TERN_ROW_GROUP, file);
    }
}

/* ---- entry points -------------------------------------------------------------------------- */

/* Checks that the matrix can have this layout and describes the work. */
static tern_status job_init(pack_job *job, tern_format format, tern_layout layout, size_t rows,
                            size_t cols, tern_error *err) {
    const char *name = tern_layout_name(layout);
    uint64_t file_bytes;

    job->shape = block_shape_of(layout);
    if (job->shape != NULL ? job->shape->format != format
                           : layout != TERN_LAYOUT_T2R16 || format != TERN_FORMAT_I2_S)
        return tern_fail(err, TERN_ERR_ARG, "format %d has no packed layout %s", (int)format,
                         name != NULL ? name : "(out of range)");
    if (tern_format_bytes(format, rows, cols, &file_bytes) != TERN_OK ||
        tern_packed_bytes(layout, rows, cols) == 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "a matrix of %zu x %zu cannot be packed as %s",
                         rows, cols, name);
    job->rows = rows;
    job->cols = cols;
    job->group_bytes = packed_group_bytes(layout, cols);
    return TERN_OK;
}

tern_status tern_pack_rows(tern_format format, const void *file, size_t rows, size_t cols,
                           tern_layout layout, size_t r0, size_t r1, void *out, tern_error *err) {
    pack_job job;
    const tern_status status = job_init(&job, format, layout, rows, cols, err);

    if (status != TERN_OK)
        return status;
    if (file == NULL || out == NULL || r0 % TERN_ROW_GROUP != 0 || r0 > r1 || r1 > rows ||
        (r1 % TERN_ROW_GROUP != 0 && r1 != rows))
        return tern_fail(err, TERN_ERR_ARG, "rows [%zu, %zu) of %zu are not whole row groups", r0,
                         r1, rows);
    if ((uintptr_t)out % TERN_ALIGN != 0)
        return tern_fail(err, TERN_ERR_UNALIGNED, "packed matrix is not aligned to %d bytes",
                         (int)TERN_ALIGN);
    for (size_t row = r0; row < r1; row += TERN_ROW_GROUP) {
        uint8_t *group = (uint8_t *)out + row / TERN_ROW_GROUP * job.group_bytes;
        if (job.shape != NULL)
            pack_block_group(&job, file, row, group);
        else if (pack_ternary_group(&job, file, row, group, err) != TERN_OK)
            return TERN_ERR_TENSOR_DATA;
    }
    return TERN_OK;
}

tern_status tern_unpack(const tern_matrix *packed, void *file, tern_error *err) {
    pack_job job;
    const tern_status status =
        job_init(&job, packed->format, packed->layout, packed->rows, packed->cols, err);

    if (status != TERN_OK)
        return status;
    if (packed->data == NULL || file == NULL)
        return tern_fail(err, TERN_ERR_ARG, "no matrix to unpack, or no place to unpack it to");
    if (job.shape != NULL)
        unpack_blocks(&job, packed->data, file);
    else
        unpack_ternary(&job, packed->data, file);
    return TERN_OK;
}
