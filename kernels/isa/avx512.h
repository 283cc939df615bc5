/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX512_H
#define TERN_ISA_AVX512_H

/* AVX-512 without VNNI: 16-bit partial sums, with the budgets of isa/avx2.h. */

#include "kernels/isa/avx512_float.h"

typedef __m512i vp; /* 16-bit partial sums */
typedef __m512i vw;

#define TERN_MACS_2BIT 63
#define TERN_SS_BIAS 0

static inline vp vp_zero(void) {
    return _mm512_setzero_si512();
}

/* Budget: TERN_MACS_2BIT for 2-bit codes, 8 for nibbles, 4 for codes of 5 bits. */
static inline vp vp_mac(vp sum, vb codes, vb x) {
    return _mm512_add_epi16(sum, _mm512_maddubs_epi16(codes, x));
}

static inline vp vp_sub(vp a, vp b) {
    return _mm512_sub_epi16(a, b);
}

/* Each factor twice, for the two partial sums of its row. */
static inline vp vp_factors(vi v) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, v, _mm512_slli_epi32(v, 16));
}

static inline vp vp_load_i8(const int8_t *p) {
    return vp_factors(vi_load_i8(p));
}

/* Products of a partial sum, as a 16-bit number, and an int8: two of at most 2^15 * 2^7. */
static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(part, scale));
}

static inline vi vi_flush(vi sum, vp part) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(part, _mm512_set1_epi16(1)));
}

/* |w| * (x with w's sign), see isa/avx2.h; AVX-512 has no vpsignb, so x is negated under a mask. */
static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    const __m512i signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), vi_zero(), x);
    return vi_flush(sum, _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x));
}

static inline vw vw_zero(void) {
    return vi_zero();
}

static inline vw vw_mac(vw sum, vh a, vh b) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}

static inline vi vw_total(vw sum) {
    return sum;
}

#endif
