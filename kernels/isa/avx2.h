/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX2_H
#define TERN_ISA_AVX2_H

/* AVX2 without VNNI: 16-bit partial sums. */

#include "kernels/isa/avx2_float.h"

typedef __m256i vp; /* 16-bit partial sums */
typedef __m256i vw;

/*
 * vp_mac adds two products of a 2-bit code and an int8: at most 2 * 2 * 128 = 512 (a 2-bit plane
 * holds 0..2, see tern_pack_rows). 63 * 512 = 32256 is the last multiple below 2^15.
 * Nibbles: 2 * 15 * 127 = 3810; the 8 that a 32-column block needs give 30480.
 * 5 bits: 2 * 31 * 127 = 7874; 4 of them, half a block, give 31496.
 */
#define TERN_MACS_2BIT 63
#define TERN_SS_BIAS 0

/*
 * v, computed here: without this gcc puts the additions of several vp_mac off until the products
 * no longer fit into the registers, and moves them through the stack.
 */
static inline __m256i computed(__m256i v) {
    __asm__("" : "+x"(v));
    return v;
}

static inline vp vp_zero(void) {
    return _mm256_setzero_si256();
}

/* Budget: TERN_MACS_2BIT for 2-bit codes, 8 for nibbles, 4 for codes of 5 bits. */
static inline vp vp_mac(vp sum, vb codes, vb x) {
    return computed(_mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, x)));
}

static inline vp vp_sub(vp a, vp b) {
    return _mm256_sub_epi16(a, b);
}

/* In each of four lanes that stand together, the sum of all four. */
static inline vp vp_spread4(vp s) {
    s = _mm256_add_epi16(s, _mm256_shuffle_epi32(s, 0x4e));
    return _mm256_add_epi16(s, _mm256_shuffle_epi32(s, 0xb1));
}

/* Each factor twice, for the two partial sums of its row. */
static inline vp vp_factors(vi v) {
    const __m256i lower_words = _mm256_set1_epi64x(0x0504050401000100);
    const __m256i upper_words = _mm256_set1_epi64x(0x0d0c0d0c09080908);
    const __m256i twice = _mm256_blend_epi32(lower_words, upper_words, 0xcc);
    return _mm256_shuffle_epi8(v, twice);
}

static inline vp vp_load_i8(const int8_t *p) {
    return vp_factors(vi_load_i8(p));
}

/* Products of a partial sum, as a 16-bit number, and an int8: two of at most 2^15 * 2^7. */
static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(part, scale));
}

static inline vi vi_flush(vi sum, vp part) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(part, _mm256_set1_epi16(1)));
}

/*
 * Signed times signed: |w| * (x with w's sign). |w| <= 128 fits the unsigned operand; a pair sums
 * to at most 2 * 128 * 127 = 32512, so maddubs does not saturate. Needs x >= -127.
 */
static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return computed(vi_flush(sum, pairs));
}

static inline vw vw_zero(void) {
    return vi_zero();
}

static inline vw vw_mac(vw sum, vh a, vh b) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

static inline vi vw_total(vw sum) {
    return sum;
}

#endif
