/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way from files with two bits a code (I2_S, TQ2_0) to layout T2R16, for 16 full rows of
 * whole 128-code units. Both sides are 2-bit planes of four columns, so nothing is decoded: fields
 * of words change places, four rows at a time.
 */

#include "kernels/pack_bits.h"
#include "kernels/ternary.h"

enum { UNIT_CHUNKS = 8 /* T2R16 chunks that a unit of 128 codes fills */ };

/* Exchanges the fields of *a under mask << shift with the fields of *b under mask. */
static void swap_fields(tern_words *a, tern_words *b, unsigned shift, uint32_t mask) {
    const tern_words t = (*a >> shift ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

/*
 * Moves half a unit (16 bytes) of four neighbouring rows into the four chunks that its planes fill,
 * `step` bytes apart. Word p holds columns 4p..4p+3 of every plane, a field each; a chunk wants one
 * plane with p = 0..3 from the bottom up: a 4 x 4 transpose of 2-bit fields in every byte lane.
 * The plane in the bottom fields goes to `out`. Returns words that have even bits where a code
 * is 3.
 */
static tern_words pack_half_unit(const uint8_t *rows, size_t row_bytes, uint8_t *out,
                                 ptrdiff_t step) {
    tern_square s = tern_load_square(rows, row_bytes);
    const tern_words bad =
        (s.c0 & s.c0 >> 1) | (s.c1 & s.c1 >> 1) | (s.c2 & s.c2 >> 1) | (s.c3 & s.c3 >> 1);

    swap_fields(&s.c0, &s.c2, 4, UINT32_C(0x0f0f0f0f));
    swap_fields(&s.c1, &s.c3, 4, UINT32_C(0x0f0f0f0f));
    swap_fields(&s.c0, &s.c1, 2, UINT32_C(0x33333333));
    swap_fields(&s.c2, &s.c3, 2, UINT32_C(0x33333333));
    tern_store_square(out, step, s);
    return bad;
}

/* Plane l of a unit fills chunks 2l and 2l + 1. TQ2_0 has plane 0 in the bottom fields, I2_S 3. */
static tern_words pack_unit(const uint8_t *src, size_t row_bytes, bool reversed, uint8_t *out) {
    const ptrdiff_t step = (reversed ? -2 : 2) * TERN_CHUNK_BYTES;
    tern_words bad = {0};

    if (reversed)
        out += 6 * TERN_CHUNK_BYTES;
    for (size_t r = 0; r < TERN_ROW_GROUP; r += 4) {
        const uint8_t *a = src + r * row_bytes;
        bad |= pack_half_unit(a, row_bytes, out + 4 * r, step);
        bad |= pack_half_unit(a + 16, row_bytes, out + 4 * r + TERN_CHUNK_BYTES, step);
    }
    return bad;
}

bool tern_pack_planes(const tern_pack_job *job, size_t row0, uint8_t *out) {
    const tern_format_info *info = tern_format_describe(job->format);
    const size_t row_bytes = job->cols / info->block_elements * info->block_bytes;
    const uint8_t *row = job->file + row0 * row_bytes;
    const bool reversed = job->format == TERN_FORMAT_I2_S;
    tern_words bad = {0};

    for (size_t k = 0; k < job->cols; k += TERN_I2S_UNIT) {
        const size_t block = k / info->block_elements * info->block_bytes;
        bad |= pack_unit(row + block + k % info->block_elements / 4, row_bytes, reversed, out);
        out += UNIT_CHUNKS * TERN_CHUNK_BYTES;
    }
    return ((bad[0] | bad[1] | bad[2] | bad[3]) & UINT32_C(0x55555555)) == 0;
}
