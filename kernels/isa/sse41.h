/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_SSE41_H
#define TERN_ISA_SSE41_H

/*
 * The verbs for SSE4.1: four lanes. isa/README.md lists what each verb means. Every processor with
 * SSE4.1 has SSSE3 too, where maddubs, abs and sign of bytes come from. There is no F16C and no
 * masked load here: halves are converted by their bits, tails go in pieces of two and one.
 */

#include <math.h>
#include <smmintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef __m128 vf;
typedef __m128i vi;
typedef __m128i vb;
typedef __m128i vh;
typedef __m128i vw;
typedef __m128i vp; /* 16-bit partial sums, with the budgets of isa/avx2.h */

#define X86(op) _mm_##op
#define X86_BITS(op) _mm_##op##_si128
#include "kernels/isa/x86_bytes.h"

#define TERN_MACS_2BIT 63
#define TERN_SS_BIAS 0

static inline vf vf_repeat2(const float *p) {
    const __m128 two = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)p));
    return _mm_unpacklo_ps(two, two);
}
static inline vf vf_repeat4(const float *p) {
    return _mm_set1_ps(*p);
}
static inline vf vf_mac_exact(vf s, vf a, vf b) {
    return vf_add(s, vf_mul(a, b));
}

/* All ones in the lanes below n. */
static inline __m128i lanes_below(size_t n) {
    return _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_setr_epi32(0, 1, 2, 3));
}

/* A pair if n has its bit 1, then one more if it has bit 0: nothing from p[n] on is read. */
static inline vf vf_load_fill(const float *p, size_t n, float fill) {
    if (n >= 4)
        return vf_load(p);
    vf v = n & 1 ? _mm_load_ss(p + (n & 2)) : vf_zero();
    if (n & 2)
        v = _mm_movelh_ps(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)p)), v);
    return _mm_blendv_ps(vf_set1(fill), v, _mm_castsi128_ps(lanes_below(n)));
}

static inline void vf_store_n(float *p, vf v, size_t n) {
    if (n >= 4) {
        vf_store(p, v);
        return;
    }
    if (n & 2)
        _mm_storel_pi((__m64 *)p, v);
    if (n & 1)
        _mm_store_ss(p + (n & 2), n & 2 ? _mm_movehl_ps(v, v) : v);
}

static inline vf vf_first_n(vf v, size_t n) {
    return _mm_and_ps(v, _mm_castsi128_ps(lanes_below(n)));
}

static inline vf vf_abs(vf v) {
    return _mm_andnot_ps(vf_set1(-0.0f), v);
}

static inline vf vf_copysign(vf v, vf sign) {
    return _mm_or_ps(vf_abs(v), _mm_and_ps(vf_set1(-0.0f), sign));
}

/* The exponent field alone. */
static inline vf vf_binade(vf v) {
    return _mm_and_ps(v, _mm_castsi128_ps(_mm_set1_epi32(0x7f800000)));
}

/* Half of the last bit that stays, less one where that bit is even, carries into it. */
static inline vf vf_round_bf16(vf v) {
    const __m128i bits = _mm_castps_si128(v);
    const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
    const __m128i up = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
    const vf rounded = _mm_castsi128_ps(_mm_and_si128(up, _mm_set1_epi32(-0x10000)));
    return _mm_blendv_ps(rounded, v, _mm_cmpunord_ps(v, v));
}

/* To 13 bits in the same way; what is below 2^-100 or not below 2^100 is told by its magnitude. */
static inline vf vf_round13(vf v) {
    const __m128i bits = _mm_castps_si128(v);
    const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 11), _mm_set1_epi32(1));
    const __m128i up = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x3ff)));
    const vf rounded = _mm_castsi128_ps(_mm_and_si128(up, _mm_set1_epi32(-0x800)));
    const vf some = _mm_cmpnlt_ps(vf_abs(v), vf_set1(0x1p-100f));
    const vf large = _mm_cmpnlt_ps(vf_abs(v), vf_set1(0x1p100f));
    return _mm_blendv_ps(_mm_and_ps(some, rounded), vf_mul(v, vf_set1(INFINITY)), large);
}

/* 2^n for integral n in [-126, 127]: the exponent field of a float. */
static inline vf vf_pow2(vf n) {
    const __m128i biased = _mm_add_epi32(_mm_cvtps_epi32(n), _mm_set1_epi32(127));
    return _mm_castsi128_ps(_mm_slli_epi32(biased, 23));
}

static inline float vf_hmax(vf v) {
    const vf two = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* a, b, c, d hold the virtual lanes 0-3, 4-7, 8-11, 12-15: fold by 8, by 4, by 2, by 1. */
static inline float vf_sum16(vf a, vf b, vf c, vf d) {
    const vf four = _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d));
    const vf two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Row r folded by 8 and by 4. */
static inline vf four_of_row(const float *p, size_t r) {
    const float *row = p + 16 * r;
    return _mm_add_ps(_mm_add_ps(vf_load(row), vf_load(row + 8)),
                      _mm_add_ps(vf_load(row + 4), vf_load(row + 12)));
}

static inline vf vf_sum16_rows(const float *p) {
    const vf a = four_of_row(p, 0), b = four_of_row(p, 1);
    const vf c = four_of_row(p, 2), d = four_of_row(p, 3);
    const vf ab = _mm_add_ps(_mm_shuffle_ps(a, b, 0x44), _mm_shuffle_ps(a, b, 0xee));
    const vf cd = _mm_add_ps(_mm_shuffle_ps(c, d, 0x44), _mm_shuffle_ps(c, d, 0xee));
    return _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xdd));
}

/*
 * Four halves (in the low 64 bits) to floats, as tern_f16_to_f32 of kernels/half.h. The exponent is
 * biased by 127 in place of 15, 112 more; the largest one, of infinity and NaN, becomes the
 * largest. Without exponent the half f * 2^-24 is read as (1024 + f) * 2^-24, less 2^-14: no
 * denormal float is touched, which would cost some processors a hundred cycles. The subtraction
 * makes a NaN quiet.
 */
static inline vf widen_f16(__m128i halves) {
    const __m128i h = _mm_cvtepu16_epi32(halves);
    const __m128i magnitude = _mm_and_si128(h, _mm_set1_epi32(0x7fff));
    const __m128i sign = _mm_slli_epi32(_mm_xor_si128(h, magnitude), 16);
    const __m128i denormal = _mm_cmplt_epi32(magnitude, _mm_set1_epi32(0x400));
    const __m128i special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7bff));
    __m128i v = _mm_add_epi32(_mm_slli_epi32(magnitude, 13), _mm_set1_epi32(112 << 23));
    v = _mm_add_epi32(v, _mm_and_si128(denormal, _mm_set1_epi32(1 << 23)));
    v = _mm_or_si128(v, _mm_and_si128(special, _mm_set1_epi32(0x7f800000)));
    const vf excess = _mm_and_ps(_mm_castsi128_ps(denormal), vf_set1(0x1p-14f));
    return _mm_or_ps(_mm_sub_ps(_mm_castsi128_ps(v), excess), _mm_castsi128_ps(sign));
}

/*
 * Four floats to halves (in the low 64 bits), as tern_f32_to_f16: from 65520 on infinity; below
 * 2^-14 adding 0.5 leaves multiples of 2^-24 in the fraction; else round to nearest even at bit 13.
 */
static inline __m128i narrow_f16(vf v) {
    const __m128i bits = _mm_castps_si128(v);
    const __m128i magnitude = _mm_and_si128(bits, _mm_set1_epi32(0x7fffffff));
    const __m128i sign = _mm_srli_epi32(_mm_xor_si128(bits, magnitude), 16);
    const __m128i fraction = _mm_srli_epi32(magnitude, 13);
    const __m128i odd = _mm_and_si128(fraction, _mm_set1_epi32(1));
    const __m128i down = _mm_add_epi32(magnitude, _mm_set1_epi32(0xfff - (112 << 23)));
    const __m128i normal = _mm_srli_epi32(_mm_add_epi32(down, odd), 13);
    const vf shifted = _mm_add_ps(_mm_castsi128_ps(magnitude), vf_set1(0.5f));
    const __m128i denormal = _mm_sub_epi32(_mm_castps_si128(shifted), _mm_set1_epi32(0x3f000000));
    const __m128i nan =
        _mm_or_si128(_mm_and_si128(fraction, _mm_set1_epi32(0x3ff)), _mm_set1_epi32(0x7e00));
    __m128i half =
        _mm_blendv_epi8(normal, denormal, _mm_cmplt_epi32(magnitude, _mm_set1_epi32(0x38800000)));
    half = _mm_blendv_epi8(half, _mm_set1_epi32(0x7c00),
                           _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x477fefff)));
    half = _mm_blendv_epi8(half, nan, _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7f800000)));
    half = _mm_or_si128(half, sign);
    return _mm_packus_epi32(half, half);
}

static inline vf vf_load_f16(const void *p) {
    return widen_f16(_mm_loadl_epi64((const __m128i *)p));
}

static inline vf vf_splat_f16(const void *p) {
    int16_t half;
    memcpy(&half, p, sizeof half);
    return widen_f16(_mm_set1_epi16(half));
}

static inline vf widen_bf16(__m128i halves) {
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(halves), 16));
}

static inline vf vf_load_bf16(const void *p) {
    return widen_bf16(_mm_loadl_epi64((const __m128i *)p));
}

/* n <= 4 halves through a zeroed buffer. */
static inline __m128i load_halves_n(const void *p, size_t n) {
    uint16_t halves[4] = {0};
    memcpy(halves, p, n * sizeof *halves);
    return _mm_loadl_epi64((const __m128i *)halves);
}

static inline vf vf_load_f16_n(const void *p, size_t n) {
    return widen_f16(load_halves_n(p, n));
}

static inline vf vf_load_bf16_n(const void *p, size_t n) {
    return widen_bf16(load_halves_n(p, n));
}

static inline void vf_store_f16(void *p, vf v) {
    _mm_storel_epi64((__m128i *)p, narrow_f16(v));
}

static inline void vf_store_f16_n(void *p, vf v, size_t n) {
    uint16_t halves[4];
    vf_store_f16(halves, v);
    memcpy(p, halves, n * sizeof *halves);
}

/* Pairs of neighbouring lanes, for RoPE: c0 c0 c1 c1 from two floats; x1 x0 x3 x2. */
static inline vf vf_swap_pairs(vf v) {
    return _mm_shuffle_ps(v, v, 0xb1);
}
static inline vf vf_swap2(vf v) {
    return _mm_shuffle_ps(v, v, 0x4e);
}
static inline vf vf_addsub(vf a, vf b) {
    return _mm_addsub_ps(a, b);
} /* even -, odd + */

static inline int32_t vi_hsum(vi v) {
    const __m128i two = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/* Four bytes of any alignment, in the low lane. */
static inline __m128i load_four(const void *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm_cvtsi32_si128(four);
}

/* Lanes within int8. */
static inline void vi_store_i8(int8_t *p, vi v) {
    const __m128i words = _mm_packs_epi32(v, v);
    const int32_t four = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
    memcpy(p, &four, sizeof four);
}

static inline vi vi_load_i8(const int8_t *p) {
    return _mm_cvtepi8_epi32(load_four(p));
}

static inline vi vi_load_u8(const uint8_t *p) {
    return _mm_cvtepu8_epi32(load_four(p));
}

/* 2^-127 and 2^-128 are denormal: of the two forms the larger one is right. */
static inline vf vf_load_power(const uint8_t *p) {
    const vi e = vi_load_u8(p);
    const vi normal = _mm_sub_epi32(_mm_slli_epi32(e, 23), _mm_set1_epi32(1 << 23));
    const vi denormal = _mm_add_epi32(_mm_slli_epi32(e, 21), _mm_set1_epi32(1 << 21));
    return _mm_castsi128_ps(_mm_max_epi32(normal, denormal));
}

/* A denormal float becomes a normal one. */
static inline vf vf_load_e4m3(const uint8_t *p) {
    return vf_mul(_mm_castsi128_ps(_mm_slli_epi32(vi_load_u8(p), 20)), vf_set1(0x1p119f));
}

static inline void vi_store_i16(int16_t *p, vi v) {
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi32(v, v));
}

static inline vh vh_load(const int16_t *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

static inline vh vh_load_i8(const int8_t *p) {
    return _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p));
}

static inline vh vh_zip_i8(const int8_t *a, const int8_t *b) {
    return _mm_cvtepi8_epi16(_mm_unpacklo_epi8(load_four(a), load_four(b)));
}

static inline vh vh_splat2(const int16_t *p) {
    return _mm_shuffle_epi32(load_four(p), 0);
}

static inline vw vw_zero(void) {
    return vi_zero();
}

static inline vw vw_mac(vw sum, vh a, vh b) {
    return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
}

static inline vi vw_total(vw sum) {
    return sum;
}

static inline vi vi_sums(vi a, vi b, vi c, vi d) {
    return _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
}

static inline vb vb_load(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

static inline vb vb_splat4(const void *p) {
    return _mm_shuffle_epi32(load_four(p), 0);
}

static inline vb vb_lookup16(const int8_t *table, vb index) {
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)table), index);
}

/* The same as in isa/avx2_float.h. */
static inline vb vb_lookup32(const uint8_t *table, vb index) {
    const __m128i below = _mm_loadu_si128((const __m128i *)table);
    const __m128i above = _mm_loadu_si128((const __m128i *)(table + 16));
    return _mm_blendv_epi8(_mm_shuffle_epi8(below, index), _mm_shuffle_epi8(above, index),
                           _mm_slli_epi16(index, 3));
}

/* v, computed here: see isa/avx2.h. */
static inline __m128i computed(__m128i v) {
    __asm__("" : "+x"(v));
    return v;
}

static inline vp vp_zero(void) {
    return _mm_setzero_si128();
}

/* Budget: TERN_MACS_2BIT for 2-bit codes, 8 for nibbles, 4 for codes of 5 bits. */
static inline vp vp_mac(vp sum, vb codes, vb x) {
    return computed(_mm_add_epi16(sum, _mm_maddubs_epi16(codes, x)));
}

static inline vp vp_sub(vp a, vp b) {
    return _mm_sub_epi16(a, b);
}

/* Each factor twice, for the two partial sums of its row. */
static inline vp vp_factors(vi v) {
    const __m128i twice = _mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13);
    return _mm_shuffle_epi8(v, twice);
}

static inline vp vp_load_i8(const int8_t *p) {
    return vp_factors(vi_load_i8(p));
}

/* Products of a partial sum, as a 16-bit number, and an int8: two of at most 2^15 * 2^7. */
static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    return _mm_add_epi32(sum, _mm_madd_epi16(part, scale));
}

static inline vi vi_flush(vi sum, vp part) {
    return _mm_add_epi32(sum, _mm_madd_epi16(part, _mm_set1_epi16(1)));
}

/* |w| * (x with w's sign), see isa/avx2.h. Needs x >= -127. */
static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    return computed(vi_flush(sum, _mm_maddubs_epi16(_mm_abs_epi8(w), _mm_sign_epi8(x, w))));
}

#endif
