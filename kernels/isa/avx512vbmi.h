/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX512VBMI_H
#define TERN_ISA_AVX512VBMI_H

/*
 * AVX-512 with VNNI, VBMI and GFNI: vpermb and vpermi2b look up bytes in tables of 64 and 128,
 * vgf2p8affineqb makes each bit of a byte of any of its bits.
 */

/* The verbs that this set replaces have another name in what it inherits. */
#define vb_load vb_load_inherited
#define vb_plane2 vb_plane2_inherited
#define vb_bit2 vb_bit2_inherited
#define vb_trit vb_trit_inherited
#define vb_lookup32 vb_lookup32_inherited
#include "kernels/isa/avx512vnni.h"
#undef vb_load
#undef vb_plane2
#undef vb_bit2
#undef vb_trit
#undef vb_lookup32

#include "kernels/trits.h"

/* Held in a register, since gcc 12 would load the codes anew for each of the four planes. */
static inline vb vb_load(const void *p) {
    vb codes = _mm512_loadu_si512(p);
    __asm__("" : "+v"(codes));
    return codes;
}

/* One instruction where shift and mask take two: bit 1 of each byte is bit i, the others are 0. */
static inline vb vb_bit2(vb c, int i) {
    return _mm512_gf2p8affine_epi64_epi8(c, _mm512_set1_epi64(INT64_C(1) << (48 + i)), 0);
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

static inline vb vb_lookup32(const uint8_t *table, vb index) {
    const __m256i entries = _mm256_loadu_si256((const __m256i *)table);
    return _mm512_permutexvar_epi8(index, _mm512_broadcast_i64x4(entries));
}

/*
 * vb_lookup32 sees the low six bits of an index, and its table stands there twice: so only the
 * fifth bit is put right, and what is above may stay.
 */
#define TERN_OWN_QUAD
static inline vb vb_quad(vb slots, int half, vb bits, int i) {
    const __m512i slot = half ? _mm512_srli_epi16(slots, 4) : slots;
    const __m512i bit = i < 4 ? _mm512_slli_epi16(bits, (uint8_t)(4 - i))
                              : _mm512_srli_epi16(bits, (uint8_t)(i - 4));
    const __m512i fifth = _mm512_set1_epi8(16);
    return _mm512_ternarylogic_epi32(fifth, bit, slot, 0xCA); /* fifth ? bit : slot */
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

/* Plane p of two bits in one instruction, whichever plane it is. */
static inline vb vb_affine2(vb c, int p) {
    const uint64_t bits = UINT64_C(1) << (56 + 2 * p) | UINT64_C(1) << (48 + 2 * p + 1);
    return _mm512_gf2p8affine_epi64_epi8(c, _mm512_set1_epi64((int64_t)bits), 0);
}

/*
 * Base-3 codes of layout T5R16 by table. A byte is a fraction f / 256 less 128; digit n of f is
 * what 3 * (f * 3^n mod 256) carries out of 8 bits. Digit 0 is so 0 below 86, 1 below 171, 2 from
 * there on: two comparisons. One table turns a byte into its other digits as planes of two bits.
 * That is 13 instructions for five digits of 64 bytes, where arithmetic takes 28.
 */
#define TERN_TRIT(byte, power) ((((byte) + 128) % 256 * (power) % 256 * 3) >> 8)
#define TERN_FOUR(byte)                                                                            \
    TERN_TRIT(byte, 3) | TERN_TRIT(byte, 9) << 2 | TERN_TRIT(byte, 27) << 4 |                      \
        TERN_TRIT(byte, 81) << 6
#define TERN_BYTES4(m, b) m(b), m(b + 1), m(b + 2), m(b + 3)
#define TERN_BYTES16(m, b)                                                                         \
    TERN_BYTES4(m, b), TERN_BYTES4(m, b + 4), TERN_BYTES4(m, b + 8), TERN_BYTES4(m, b + 12)
#define TERN_BYTES64(m, b)                                                                         \
    TERN_BYTES16(m, b), TERN_BYTES16(m, b + 16), TERN_BYTES16(m, b + 32), TERN_BYTES16(m, b + 48)
#define TERN_BYTES256(m)                                                                           \
    TERN_BYTES64(m, 0), TERN_BYTES64(m, 64), TERN_BYTES64(m, 128), TERN_BYTES64(m, 192)

static inline vb vb_trit(vb c, int n) {
    static const _Alignas(64) uint8_t last_four[256] = {TERN_BYTES256(TERN_FOUR)};
    if (n == 0) {
        const vb one = _mm512_set1_epi8(1);
        const vb low =
            _mm512_maskz_mov_epi8(_mm512_cmpgt_epi8_mask(c, _mm512_set1_epi8(86 - 128 - 1)), one);
        return _mm512_mask_add_epi8(low, _mm512_cmpgt_epi8_mask(c, _mm512_set1_epi8(171 - 128 - 1)),
                                    low, one);
    }
    const vb digits = vb_lookup256(last_four, c);
    return n == 1 ? _mm512_and_si512(digits, _mm512_set1_epi8(3)) : vb_affine2(digits, n - 1);
}

/* Digits 0 .. 4 of layout T5BR16 (kernels/trits.h). vpermb reads the low six bits of each byte. */
static inline vb vb_digit(vb c, int n) {
    const vb table = _mm512_load_si512(tern_trits_table(n));
    if (n < 2)
        return _mm512_permutexvar_epi8(c, table);
    if (n < 4)
        return _mm512_permutexvar_epi8(_mm512_srli_epi16(c, 2), table);
    /* Bits 0 to 3, 6 and 7. */
    const vb bits = _mm512_set1_epi64(INT64_C(0x0102040840800000));
    return _mm512_permutexvar_epi8(_mm512_gf2p8affine_epi64_epi8(c, bits, 0), table);
}

#endif
