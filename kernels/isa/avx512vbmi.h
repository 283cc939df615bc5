/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX512VBMI_H
#define TERN_ISA_AVX512VBMI_H

/* AVX-512 with VNNI and VBMI: vpermb and vpermi2b look up bytes in tables of 64 and 128. */

#define TERN_CODES_BY_TABLE
#include "kernels/isa/avx512vnni.h"

/* Held in a register, since gcc 12 would load the codes anew for each of the four planes. */
static inline vb vb_load(const void *p) {
    vb codes = _mm512_loadu_si512(p);
    __asm__("" : "+v"(codes));
    return codes;
}

/*
 * vpermb sees the low six bits of a byte: planes 0 to 2. A table gives plane 1 or 2 of them in one
 * instruction, where shift and mask take two. Plane 0 is masked, plane 3 shifted and masked.
 */
static inline vb vb_plane2(vb c, int plane) {
    const __m512i plane1 = _mm512_set4_epi32(0x03030303, 0x02020202, 0x01010101, 0);
    const __m512i plane2 = _mm512_setr_epi32(
        0, 0, 0, 0, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x02020202, 0x02020202,
        0x02020202, 0x02020202, 0x03030303, 0x03030303, 0x03030303, 0x03030303);
    if (plane == 1)
        return _mm512_permutexvar_epi8(c, plane1);
    if (plane == 2)
        return _mm512_permutexvar_epi8(c, plane2);
    return _mm512_and_si512(plane == 0 ? c : _mm512_srli_epi16(c, 6), _mm512_set1_epi8(3));
}

/* table[index] for 64 bytes: two tables of 128, of which bit 7 chooses one. */
static inline vb vb_lookup256(const uint8_t *table, vb index) {
    const __m512i quarter0 = _mm512_loadu_si512(table);
    const __m512i quarter1 = _mm512_loadu_si512(table + 64);
    const __m512i quarter2 = _mm512_loadu_si512(table + 128);
    const __m512i quarter3 = _mm512_loadu_si512(table + 192);
    const __m512i below = _mm512_permutex2var_epi8(quarter0, index, quarter1);
    const __m512i above = _mm512_permutex2var_epi8(quarter2, index, quarter3);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), below, above);
}

#endif
