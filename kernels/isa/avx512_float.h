/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX512_FLOAT_H
#define TERN_ISA_AVX512_FLOAT_H

/*
 * The verbs that the AVX-512 instruction sets share (F, BW, VL, DQ): sixteen lanes.
 * isa/README.md lists what each verb means.
 */

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TERN_ASK_SECOND_LEVEL /* ask_ahead of vmath.h */

typedef __m512 vf;
typedef __m512i vi;
typedef __m512i vb;
typedef __m512i vh;

#define X86(op) _mm512_##op
#define X86_BITS(op) _mm512_##op##_si512
#include "kernels/isa/x86.h"

static inline __mmask16 lanes_below(size_t n) {
    return (__mmask16)((UINT32_C(1) << n) - 1);
}

static inline vf vf_repeat2(const float *p) {
    const __m512 eight = _mm512_castps256_ps512(_mm256_loadu_ps(p));
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7),
                                 eight);
}
static inline vf vf_mac_exact(vf s, vf a, vf b) {
    return _mm512_fmadd_ps(a, b, s);
}

/*
 * A division keeps its port for 16 cycles on Intel's processors; these three instructions keep two
 * ports for one and a half. 1 / b is rounded once, so the first quotient is less than two units off,
 * and its remainder mends it. The sum is the quotient rounded once: only quotients next to the
 * middle between two floats could differ, and test_quotient.c tries all of them. In the range below
 * nothing overflows, and no remainder is lost: |a| is 0 or at least 1, and the lowest bit of a
 * remainder at least 2^-48 of a.
 */
#define TERN_OWN_QUOTIENT
static inline vf vf_quotient(vf a, float b) {
    const vf divisor = _mm512_set1_ps(b);
    if (!(b >= 0x1p-60f && b <= 0x1p60f))
        return _mm512_div_ps(a, divisor);
    const vf inverse = _mm512_set1_ps(1.0f / b);
    const vf quotient = _mm512_mul_ps(a, inverse);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(quotient, divisor, a), inverse, quotient);
}

static inline vf vf_abs(vf v) {
    return _mm512_abs_ps(v);
}

static inline vf vf_copysign(vf v, vf sign) {
    return _mm512_or_ps(vf_abs(v), _mm512_and_ps(vf_set1(-0.0f), sign));
}

/* The exponent field alone. */
static inline vf vf_binade(vf v) {
    return _mm512_and_ps(v, _mm512_castsi512_ps(_mm512_set1_epi32(0x7f800000)));
}

/* Half of the last bit that stays, less one where that bit is even, carries into it. */
static inline vf vf_round_bf16(vf v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const vf rounded = _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32(-0x10000)));
    return _mm512_mask_mov_ps(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v);
}

/* To 13 bits in the same way; what is below 2^-100 or not below 2^100 is told by its magnitude. */
static inline vf vf_round13(vf v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 11), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x3ff)));
    const __mmask16 some = _mm512_cmp_ps_mask(vf_abs(v), vf_set1(0x1p-100f), _CMP_NLT_UQ);
    const __mmask16 large = _mm512_cmp_ps_mask(vf_abs(v), vf_set1(0x1p100f), _CMP_NLT_UQ);
    const __m512i rounded = _mm512_maskz_and_epi32(some, up, _mm512_set1_epi32(-0x800));
    return _mm512_mask_mul_ps(_mm512_castsi512_ps(rounded), large, v, vf_set1(INFINITY));
}

/* The same for numbers of 0 .. 2^100. */
static inline vf vf_round13_weight(vf v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 11), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x3ff)));
    const __mmask16 some = _mm512_cmp_ps_mask(v, vf_set1(0x1p-100f), _CMP_NLT_UQ);
    return _mm512_castsi512_ps(_mm512_maskz_and_epi32(some, up, _mm512_set1_epi32(-0x800)));
}

#define TERN_OWN_SCALE
static inline vf vf_scale(vf p, vf n) {
    return _mm512_scalef_ps(p, n);
}

static inline vf vf_load_fill(const float *p, size_t n, float fill) {
    return _mm512_mask_loadu_ps(vf_set1(fill), lanes_below(n), p);
}

static inline void vf_store_n(float *p, vf v, size_t n) {
    _mm512_mask_storeu_ps(p, lanes_below(n), v);
}

static inline vf vf_first_n(vf v, size_t n) {
    return _mm512_maskz_mov_ps(lanes_below(n), v);
}

/* 2^n for integral n in [-126, 127]: the exponent field of a float. */
static inline vf vf_pow2(vf n) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
}

static inline __m256 upper_half(vf v) {
    return _mm512_extractf32x8_ps(v, 1);
}

static inline float vf_hmax(vf v) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), upper_half(v));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static inline float vf_sum16(vf v) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), upper_half(v));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Rows r and r + 4 folded by 8, in the halves. */
static inline vf eights_of_rows(const float *p, size_t r) {
    const vf a = vf_load(p + 16 * r), b = vf_load(p + 16 * (r + 4));
    return vf_add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

/* Rows r, r + 4, r + 8, r + 12 folded by 4, in the quarters. */
static inline vf fours_of_rows(const float *p, size_t r) {
    const vf a = eights_of_rows(p, r), b = eights_of_rows(p, r + 8);
    return vf_add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

static inline vf vf_sum16_rows(const float *p) {
    const vf a = fours_of_rows(p, 0), b = fours_of_rows(p, 1);
    const vf c = fours_of_rows(p, 2), d = fours_of_rows(p, 3);
    const vf ab = vf_add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    const vf cd = vf_add(_mm512_shuffle_ps(c, d, 0x44), _mm512_shuffle_ps(c, d, 0xee));
    return vf_add(_mm512_shuffle_ps(ab, cd, 0x88), _mm512_shuffle_ps(ab, cd, 0xdd));
}

static inline vf vf_load_f16(const void *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline vf vf_splat_f16(const void *p) {
    int16_t half;
    memcpy(&half, p, sizeof half);
    return _mm512_cvtph_ps(_mm256_set1_epi16(half));
}

static inline vf widen_bf16(__m256i halves) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

static inline vf vf_load_bf16(const void *p) {
    return widen_bf16(_mm256_loadu_si256((const __m256i *)p));
}

static inline vf vf_load_f16_n(const void *p, size_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes_below(n), p));
}

static inline vf vf_load_bf16_n(const void *p, size_t n) {
    return widen_bf16(_mm256_maskz_loadu_epi16(lanes_below(n), p));
}

static inline void vf_store_f16(void *p, vf v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline void vf_store_f16_n(void *p, vf v, size_t n) {
    _mm256_mask_storeu_epi16(p, lanes_below(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* Pairs of neighbouring lanes, for RoPE: c0 c0 c1 c1 ... from eight floats; x1 x0 x3 x2 ... */
static inline vf vf_swap_pairs(vf v) {
    return _mm512_permute_ps(v, 0xb1);
}

static inline vf vf_swap2(vf v) {
    return _mm512_permute_ps(v, 0x4e);
}

static inline vf vf_swap4(vf v) {
    return _mm512_shuffle_f32x4(v, v, 0xb1);
}

static inline vf vf_swap8(vf v) {
    return _mm512_shuffle_f32x4(v, v, 0x4e);
}

/* Even lanes a - b, odd lanes a + b. */
static inline vf vf_addsub(vf a, vf b) {
    return _mm512_mask_sub_ps(_mm512_add_ps(a, b), 0x5555, a, b);
}

static inline int32_t vi_hsum(vi v) {
    return _mm512_reduce_add_epi32(v);
}

/* Lanes within int8. */
static inline void vi_store_i8(int8_t *p, vi v) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
}

static inline vi vi_load_i8(const int8_t *p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}

static inline vi vi_load_u8(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}

/* 2^-127 and 2^-128 are denormal: of the two forms the larger one is right. */
static inline vf vf_load_power(const uint8_t *p) {
    const vi e = vi_load_u8(p);
    const vi normal = _mm512_sub_epi32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(1 << 23));
    const vi denormal = _mm512_add_epi32(_mm512_slli_epi32(e, 21), _mm512_set1_epi32(1 << 21));
    return _mm512_castsi512_ps(_mm512_max_epi32(normal, denormal));
}

/* A denormal float becomes a normal one. */
static inline vf vf_load_e4m3(const uint8_t *p) {
    return vf_mul(_mm512_castsi512_ps(_mm512_slli_epi32(vi_load_u8(p), 20)), vf_set1(0x1p119f));
}

static inline void vi_store_i16(int16_t *p, vi v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(v));
}

static inline vh vh_load(const int16_t *p) {
    return _mm512_loadu_si512(p);
}

static inline vh vh_zip_i8(const int8_t *a, const int8_t *b) {
    const __m128i x = _mm_loadu_si128((const __m128i *)a);
    const __m128i y = _mm_loadu_si128((const __m128i *)b);
    return _mm512_cvtepi8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(x, y), _mm_unpacklo_epi8(x, y)));
}

/* The signed bytes 0, 2, ... widened; 1, 3, ... */
static inline vh vh_even_i8(vb c) {
    return _mm512_srai_epi16(_mm512_slli_epi16(c, 8), 8);
}

static inline vh vh_odd_i8(vb c) {
    return _mm512_srai_epi16(c, 8);
}

/* Lanes 1 and 2 of each four change places. */
static inline vi vi_swap_middle(vi v) {
    return _mm512_shuffle_epi32(v, (_MM_PERM_ENUM)_MM_SHUFFLE(3, 1, 2, 0));
}

static inline vb vb_rows2(const int8_t *a, const int8_t *b) {
    const __m256i low = _mm256_loadu_si256((const __m256i *)a);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), _mm256_loadu_si256((const __m256i *)b), 1);
}

static inline vb vb_zip2_low(vb a, vb b) {
    return _mm512_unpacklo_epi16(a, b);
}

static inline vb vb_zip2_high(vb a, vb b) {
    return _mm512_unpackhi_epi16(a, b);
}

static inline vb vb_zip4_low(vb a, vb b) {
    return _mm512_unpacklo_epi32(a, b);
}

static inline vb vb_zip4_high(vb a, vb b) {
    return _mm512_unpackhi_epi32(a, b);
}

static inline vb vb_zip8_low(vb a, vb b) {
    return _mm512_unpacklo_epi64(a, b);
}

static inline vb vb_zip8_high(vb a, vb b) {
    return _mm512_unpackhi_epi64(a, b);
}

static inline vb vb_zip16_low(vb a, vb b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), b);
}

static inline vb vb_zip16_high(vb a, vb b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), b);
}

static inline void vb_store(void *p, vb v) {
    _mm512_storeu_si512(p, v);
}

/* Up to 32 halves, zeros after them. */
static inline vb vh_load_n(const void *p, size_t n) {
    return n >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16((UINT32_C(1) << n) - 1, p);
}

static inline vb vb_even16(vb a, vb b) {
    return _mm512_shuffle_i32x4(a, b, _MM_SHUFFLE(2, 0, 2, 0));
}

static inline vb vb_odd16(vb a, vb b) {
    return _mm512_shuffle_i32x4(a, b, _MM_SHUFFLE(3, 1, 3, 1));
}

static inline vh vh_splat2(const int16_t *p) {
    int32_t two;
    memcpy(&two, p, sizeof two);
    return _mm512_set1_epi32(two);
}

/* Four sums in each quarter, of that quarter of a, b, c and d. */
static inline vi vi_quarter_sums(vi a, vi b, vi c, vi d) {
    const vi ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const vi cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

static inline vb vb_splat4(const void *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

static inline vb vb_load(const void *p) {
    return _mm512_loadu_si512(p);
}

static inline vb vb_plane2(vb c, int plane) {
    const __m512i shifted = plane == 0   ? c
                            : plane == 1 ? _mm512_srli_epi16(c, 2)
                            : plane == 2 ? _mm512_srli_epi16(c, 4)
                                         : _mm512_srli_epi16(c, 6);
    return _mm512_and_si512(shifted, _mm512_set1_epi8(3));
}

static inline vb vb_bit2(vb c, int i) {
    const __m512i moved = i == 0   ? _mm512_slli_epi16(c, 1)
                          : i == 1 ? c
                          : i == 2 ? _mm512_srli_epi16(c, 1)
                          : i == 3 ? _mm512_srli_epi16(c, 2)
                          : i == 4 ? _mm512_srli_epi16(c, 3)
                          : i == 5 ? _mm512_srli_epi16(c, 4)
                          : i == 6 ? _mm512_srli_epi16(c, 5)
                                   : _mm512_srli_epi16(c, 6);
    return _mm512_and_si512(moved, _mm512_set1_epi8(2));
}

static inline vb vb_trit(vb c, int n) {
    const vb fraction = vb_fraction(c, n);
    const __m512i one = _mm512_set1_epi8(1);
    const __mmask64 above = _mm512_cmpgt_epi8_mask(fraction, _mm512_set1_epi8(42));
    const __mmask64 not_below = _mm512_cmpgt_epi8_mask(fraction, _mm512_set1_epi8(-43));
    const vb some = _mm512_maskz_mov_epi8(not_below, one);
    return _mm512_mask_add_epi8(some, above, some, one);
}

static inline vb vb_join1(vb codes, vb bits, int i) {
    const __mmask64 set = _mm512_test_epi8_mask(bits, _mm512_set1_epi8((char)(1 << i)));
    return _mm512_mask_add_epi8(codes, set, codes, _mm512_set1_epi8(16));
}

/* Counts of shifts are int to gcc 12 and unsigned to gcc 14; a byte becomes either. */
static inline vb vb_join3(vb codes, vb bits, int i) {
    const __m512i moved = i < 2 ? _mm512_slli_epi16(bits, (uint8_t)(2 - i))
                                : _mm512_srli_epi16(bits, (uint8_t)(i - 2));
    return _mm512_or_si512(codes, _mm512_and_si512(moved, _mm512_set1_epi8(4)));
}

static inline vb vb_join2(vb codes, vb bits, int plane) {
    const __m512i moved = plane == 0   ? _mm512_slli_epi16(bits, 4)
                          : plane == 1 ? _mm512_slli_epi16(bits, 2)
                          : plane == 2 ? bits
                                       : _mm512_srli_epi16(bits, 2);
    return _mm512_or_si512(codes, _mm512_and_si512(moved, _mm512_set1_epi8(0x30)));
}

static inline vb vb_lookup16(const int8_t *table, vb index) {
    const __m128i entries = _mm_loadu_si128((const __m128i *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), index);
}

/* A shuffle sees four bits; the fifth chooses between two. */
static inline vb vb_lookup32(const uint8_t *table, vb index) {
    const __m512i below = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
    const __m512i above = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(table + 16)));
    const __mmask64 fifth = _mm512_test_epi8_mask(index, _mm512_set1_epi8(16));
    return _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(below, index), fifth, above, index);
}

#endif
