/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ternary files to layout T2R16 and back. Packing runs over every weight when a model is loaded, so
 * the shapes that models have (16 full rows of whole 128-code units of I2_S) move 64-bit words;
 * others go code by code.
 */

#include <string.h>

#include "kernels/i2s.h"
#include "kernels/pack.h"

enum {
    TERNARY_CHUNK = 16,     /* columns in a T2R16 chunk */
    TERNARY_UNIT_CHUNKS = 8 /* T2R16 chunks that a 128-code unit fills */
};

static uint32_t load32(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

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
    memcpy(out + 2 * TERN_CHUNK_BYTES, &w2, sizeof w2);
    memcpy(out + 4 * TERN_CHUNK_BYTES, &w1, sizeof w1);
    memcpy(out + 6 * TERN_CHUNK_BYTES, &w0, sizeof w0);
    return bad & low_bits;
}

/* 16 full rows of whole units. False when a code is 3 somewhere. */
static bool pack_ternary_units(const uint8_t *src, size_t row_bytes, uint8_t *out) {
    uint64_t bad = 0;

    for (size_t u = 0; u < row_bytes; u += TERN_I2S_UNIT_BYTES) {
        for (size_t r = 0; r < TERN_ROW_GROUP; r += 2) {
            const uint8_t *a = src + r * row_bytes + u;
            bad |= pack_half_unit(a, a + row_bytes, out + 4 * r);
            bad |= pack_half_unit(a + 16, a + row_bytes + 16, out + 4 * r + TERN_CHUNK_BYTES);
        }
        out += TERNARY_UNIT_CHUNKS * TERN_CHUNK_BYTES;
    }
    return bad == 0;
}

/* Place of (row in group, column) in a packed group: byte and shift. */
static size_t ternary_byte(size_t r, size_t k) {
    return k / TERNARY_CHUNK * TERN_CHUNK_BYTES + 4 * r + k % 4;
}

static unsigned ternary_shift(size_t k) {
    return 2u * (unsigned)(k % TERNARY_CHUNK / 4);
}

/* Any shape, code by code. False when a code is 3 somewhere. */
static bool pack_ternary_codes(const tern_pack_job *job, size_t row0, uint8_t *out) {
    const size_t n = tern_pack_group_rows(job, row0);
    unsigned bad = 0;

    memset(out, 0x55, job->group_bytes); /* code 1 everywhere */
    for (size_t r = 0; r < n; r++) {
        for (size_t k = 0; k < job->cols; k++) {
            const unsigned code = tern_i2s_code(job->file, (row0 + r) * job->cols + k);
            uint8_t *byte = out + ternary_byte(r, k);
            *byte = (uint8_t)(*byte ^ (code ^ 1u) << ternary_shift(k));
            bad |= code & code >> 1;
        }
    }
    return bad == 0;
}

/* Names the first code 3 at or after row0. */
static tern_status fail_ternary(const tern_pack_job *job, size_t row0, tern_error *err) {
    size_t element = row0 * job->cols;

    while (tern_i2s_code(job->file, element) != 3)
        element++;
    return tern_fail(err, TERN_ERR_TENSOR_DATA, "invalid ternary code 3 at row %zu, column %zu",
                     element / job->cols, element % job->cols);
}

static tern_status pack_group(const tern_pack_job *job, size_t row0, uint8_t *out,
                              tern_error *err) {
    const bool whole = job->cols % TERN_I2S_UNIT == 0 && job->rows - row0 >= TERN_ROW_GROUP;
    const bool valid =
        whole ? pack_ternary_units(job->file + row0 * job->cols / 4, job->cols / 4, out)
              : pack_ternary_codes(job, row0, out);

    return valid ? TERN_OK : fail_ternary(job, row0, err);
}

static void unpack_matrix(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
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

static bool holds(tern_format format) {
    return format == TERN_FORMAT_I2_S;
}

static size_t group_bytes(size_t cols) {
    const size_t chunks = cols / TERNARY_CHUNK + (cols % TERNARY_CHUNK != 0);
    size_t bytes;

    return __builtin_mul_overflow(chunks, (size_t)TERN_CHUNK_BYTES, &bytes) ? 0 : bytes;
}

const tern_packer tern_packer_t2r16 = {TERN_LAYOUT_T2R16, holds, group_bytes, pack_group,
                                       unpack_matrix};
