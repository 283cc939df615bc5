/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way from files with two bits a code (I2_S, TQ2_0) to layout T2R16, for 16 full rows of
 * whole 128-code units. Both sides are 2-bit planes of four columns, so nothing is decoded: fields
 * of 64-bit words change places.
 */

#include <string.h>

#include "kernels/pack.h"
#include "kernels/ternary.h"

enum { UNIT_CHUNKS = 8 /* T2R16 chunks that a unit of 128 codes fills */ };

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
 * `step` bytes apart. Word p holds columns 4p..4p+3 of every plane, a field each; a chunk wants one
 * plane with p = 0..3 from the bottom up: a 4 x 4 transpose of 2-bit fields in every byte lane.
 * The plane in the bottom fields goes to `out`. Returns non-zero when a code is 3.
 */
static uint64_t pack_half_unit(const uint8_t *a, const uint8_t *b, uint8_t *out, ptrdiff_t step) {
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
    memcpy(out, &w0, sizeof w0);
    memcpy(out + step, &w1, sizeof w1);
    memcpy(out + 2 * step, &w2, sizeof w2);
    memcpy(out + 3 * step, &w3, sizeof w3);
    return bad & low_bits;
}

/* Plane l of a unit fills chunks 2l and 2l + 1. TQ2_0 has plane 0 in the bottom fields, I2_S 3. */
static uint64_t pack_unit(const uint8_t *src, size_t row_bytes, bool reversed, uint8_t *out) {
    const ptrdiff_t step = (reversed ? -2 : 2) * TERN_CHUNK_BYTES;
    uint64_t bad = 0;

    if (reversed)
        out += 6 * TERN_CHUNK_BYTES;
    for (size_t r = 0; r < TERN_ROW_GROUP; r += 2) {
        const uint8_t *a = src + r * row_bytes;
        bad |= pack_half_unit(a, a + row_bytes, out + 4 * r, step);
        bad |= pack_half_unit(a + 16, a + row_bytes + 16, out + 4 * r + TERN_CHUNK_BYTES, step);
    }
    return bad;
}

bool tern_pack_planes(const tern_pack_job *job, size_t row0, uint8_t *out) {
    const tern_format_info *info = tern_format_describe(job->format);
    const size_t row_bytes = job->cols / info->block_elements * info->block_bytes;
    const uint8_t *row = job->file + row0 * row_bytes;
    const bool reversed = job->format == TERN_FORMAT_I2_S;
    uint64_t bad = 0;

    for (size_t k = 0; k < job->cols; k += TERN_I2S_UNIT) {
        const size_t block = k / info->block_elements * info->block_bytes;
        bad |= pack_unit(row + block + k % info->block_elements / 4, row_bytes, reversed, out);
        out += UNIT_CHUNKS * TERN_CHUNK_BYTES;
    }
    return bad == 0;
}
