/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX2_FLOAT_H
#define TERN_ISA_AVX2_FLOAT_H

/*
 * The verbs that AVX2 (with F16C and FMA) and AVX-VNNI share: eight lanes. isa/README.md lists
 * what each verb means.
 */

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vb;
typedef __m256i vh;

#define X86(op) _mm256_##op
#define X86_BITS(op) _mm256_##op##_si256
#include "kernels/isa/x86_bytes.h"

static inline vf vf_repeat2(const float *p) {
    const __m128 four = _mm_loadu_ps(p);
    return _mm256_set_m128(_mm_unpackhi_ps(four, four), _mm_unpacklo_ps(four, four));
}
static inline vf vf_repeat4(const float *p) {
    return _mm256_set_m128(_mm_broadcast_ss(p + 1), _mm_broadcast_ss(p));
}
static inline vf vf_mac_exact(vf s, vf a, vf b) {
    return _mm256_fmadd_ps(a, b, s);
}

/* All ones in the lanes below n. */
static inline __m256i lanes_below(size_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

static inline vf vf_load_fill(const float *p, size_t n, float fill) {
    const __m256i mask = lanes_below(n);
    return _mm256_blendv_ps(vf_set1(fill), _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}

static inline void vf_store_n(float *p, vf v, size_t n) {
    _mm256_maskstore_ps(p, lanes_below(n), v);
}

static inline vf vf_first_n(vf v, size_t n) {
    return _mm256_and_ps(v, _mm256_castsi256_ps(lanes_below(n)));
}

static inline vf vf_abs(vf v) {
    return _mm256_andnot_ps(vf_set1(-0.0f), v);
}

static inline vf vf_copysign(vf v, vf sign) {
    return _mm256_or_ps(vf_abs(v), _mm256_and_ps(vf_set1(-0.0f), sign));
}

/* The exponent field alone. */
static inline vf vf_binade(vf v) {
    return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000)));
}

/* Half of the last bit that stays, less one where that bit is even, carries into it. */
static inline vf vf_round_bf16(vf v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const vf rounded = _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(-0x10000)));
    return _mm256_blendv_ps(rounded, v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

/* To 13 bits in the same way; what is below 2^-100 or not below 2^100 is told by its magnitude. */
static inline vf vf_round13(vf v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 11), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x3ff)));
    const vf rounded = _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(-0x800)));
    const vf some = _mm256_cmp_ps(vf_abs(v), vf_set1(0x1p-100f), _CMP_NLT_UQ);
    const vf large = _mm256_cmp_ps(vf_abs(v), vf_set1(0x1p100f), _CMP_NLT_UQ);
    return _mm256_blendv_ps(_mm256_and_ps(some, rounded), vf_mul(v, vf_set1(INFINITY)), large);
}

/* 2^n for integral n in [-126, 127]: the exponent field of a float. */
static inline vf vf_pow2(vf n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}

static inline float vf_hmax(vf v) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static inline float vf_sum16(vf a, vf b) {
    const __m256 eight = _mm256_add_ps(a, b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Eight rows of eight lanes: by 4, which leaves rows r and r + 4 in the halves, by 2, by 1. */
static inline vf sums_of_rows(vf r0, vf r1, vf r2, vf r3, vf r4, vf r5, vf r6, vf r7) {
    const vf a = vf_add(_mm256_permute2f128_ps(r0, r4, 0x20), _mm256_permute2f128_ps(r0, r4, 0x31));
    const vf b = vf_add(_mm256_permute2f128_ps(r1, r5, 0x20), _mm256_permute2f128_ps(r1, r5, 0x31));
    const vf c = vf_add(_mm256_permute2f128_ps(r2, r6, 0x20), _mm256_permute2f128_ps(r2, r6, 0x31));
    const vf d = vf_add(_mm256_permute2f128_ps(r3, r7, 0x20), _mm256_permute2f128_ps(r3, r7, 0x31));
    const vf ab = vf_add(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
    const vf cd = vf_add(_mm256_shuffle_ps(c, d, 0x44), _mm256_shuffle_ps(c, d, 0xee));
    return vf_add(_mm256_shuffle_ps(ab, cd, 0x88), _mm256_shuffle_ps(ab, cd, 0xdd));
}

/* Rows of sixteen lanes that were folded by 8. */
static inline vf vf_sum8_rows(const float *p) {
    return sums_of_rows(vf_load(p), vf_load(p + 8), vf_load(p + 16), vf_load(p + 24),
                        vf_load(p + 32), vf_load(p + 40), vf_load(p + 48), vf_load(p + 56));
}

static inline vf folded_row(const float *p) {
    return vf_add(vf_load(p), vf_load(p + 8));
}

static inline vf vf_sum16_rows(const float *p) {
    return sums_of_rows(folded_row(p), folded_row(p + 16), folded_row(p + 32), folded_row(p + 48),
                        folded_row(p + 64), folded_row(p + 80), folded_row(p + 96),
                        folded_row(p + 112));
}

static inline vf vf_load_f16(const void *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

/* One lane widened and spread takes fewer instructions than eight widened. */
static inline vf vf_splat_f16(const void *p) {
    int32_t half;
    memcpy(&half, p, sizeof half);
    return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

static inline vf widen_bf16(__m128i halves) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

static inline vf vf_load_bf16(const void *p) {
    return widen_bf16(_mm_loadu_si128((const __m128i *)p));
}

/* n <= 8 halves through a zeroed buffer: there is no masked load of 16-bit lanes. */
static inline __m128i load_halves_n(const void *p, size_t n) {
    uint16_t halves[8] = {0};
    memcpy(halves, p, n * sizeof *halves);
    return _mm_loadu_si128((const __m128i *)halves);
}

static inline vf vf_load_f16_n(const void *p, size_t n) {
    return _mm256_cvtph_ps(load_halves_n(p, n));
}

static inline vf vf_load_bf16_n(const void *p, size_t n) {
    return widen_bf16(load_halves_n(p, n));
}

static inline void vf_store_f16(void *p, vf v) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline void vf_store_f16_n(void *p, vf v, size_t n) {
    uint16_t halves[8];
    vf_store_f16(halves, v);
    memcpy(p, halves, n * sizeof *halves);
}

/* Pairs of neighbouring lanes, for RoPE: c0 c0 c1 c1 ... from four floats; x1 x0 x3 x2 ... */
static inline vf vf_swap_pairs(vf v) {
    return _mm256_permute_ps(v, 0xb1);
}
static inline vf vf_swap2(vf v) {
    return _mm256_permute_ps(v, 0x4e);
}
static inline vf vf_swap4(vf v) {
    return _mm256_permute2f128_ps(v, v, 1);
}
static inline vf vf_addsub(vf a, vf b) {
    return _mm256_addsub_ps(a, b);
} /* even -, odd + */

static inline int32_t vi_hsum(vi v) {
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/* Lanes within int8. */
static inline void vi_store_i8(int8_t *p, vi v) {
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(words, words));
}

static inline vi vi_load_i8(const int8_t *p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

static inline vi vi_load_u8(const uint8_t *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

/* 2^-127 and 2^-128 are denormal: of the two forms the larger one is right. */
static inline vf vf_load_power(const uint8_t *p) {
    const vi e = vi_load_u8(p);
    const vi normal = _mm256_sub_epi32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(1 << 23));
    const vi denormal = _mm256_add_epi32(_mm256_slli_epi32(e, 21), _mm256_set1_epi32(1 << 21));
    return _mm256_castsi256_ps(_mm256_max_epi32(normal, denormal));
}

/* A denormal float becomes a normal one. */
static inline vf vf_load_e4m3(const uint8_t *p) {
    return vf_mul(_mm256_castsi256_ps(_mm256_slli_epi32(vi_load_u8(p), 20)), vf_set1(0x1p119f));
}

static inline void vi_store_i16(int16_t *p, vi v) {
    const __m128i packed =
        _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128((__m128i *)p, packed);
}

static inline vh vh_load(const int16_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline vh vh_load_i8(const int8_t *p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}

static inline vh vh_zip_i8(const int8_t *a, const int8_t *b) {
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)a),
                                                  _mm_loadl_epi64((const __m128i *)b)));
}

static inline vh vh_splat2(const int16_t *p) {
    int32_t two;
    memcpy(&two, p, sizeof two);
    return _mm256_set1_epi32(two);
}

static inline vi vi_sums(vi a, vi b, vi c, vi d, vi e, vi f, vi g, vi h) {
    const vi abcd = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    const vi efgh = _mm256_hadd_epi32(_mm256_hadd_epi32(e, f), _mm256_hadd_epi32(g, h));
    return _mm256_add_epi32(_mm256_permute2x128_si256(abcd, efgh, 0x20),
                            _mm256_permute2x128_si256(abcd, efgh, 0x31));
}

static inline vb vb_load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline vb vb_splat4(const void *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

static inline vb vb_lookup16(const int8_t *table, vb index) {
    const __m128i entries = _mm_loadu_si128((const __m128i *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index);
}

/* A shuffle sees four bits; the fifth, moved to the top of its byte, chooses between two. */
static inline vb vb_lookup32(const uint8_t *table, vb index) {
    const __m128i below = _mm_loadu_si128((const __m128i *)table);
    const __m128i above = _mm_loadu_si128((const __m128i *)(table + 16));
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(below), index),
                              _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(above), index),
                              _mm256_slli_epi16(index, 3));
}

static inline vb vb_sub(vb a, vb b) {
    return _mm256_sub_epi8(a, b);
}

#endif
