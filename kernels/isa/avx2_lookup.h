/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX2_LOOKUP_H
#define TERN_ISA_AVX2_LOOKUP_H

/* The verbs of table lookup for AVX2: two segments. isa/README.md lists what each verb means. */

#include <immintrin.h>
#include <stdint.h>

typedef __m256i vt; /* bytes, as they are in memory */
typedef __m256i vs; /* 16-bit sums: eight for each segment of 16 bytes */

static inline vt vt_load(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
static inline vt vt_low4(vt v) {
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}
static inline vt vt_high4(vt v) {
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}
static inline vt vt_lookup(vt table, vt index) {
    return _mm256_shuffle_epi8(table, index);
}
static inline vs vt_zip_low(vt low, vt high) {
    return _mm256_unpacklo_epi8(low, high);
}
static inline vs vt_zip_high(vt low, vt high) {
    return _mm256_unpackhi_epi8(low, high);
}
static inline vs vs_zero(void) {
    return _mm256_setzero_si256();
}
static inline vs vs_add(vs a, vs b) {
    return _mm256_add_epi16(a, b);
}

/* Bit 15 of signs * places says which sums change sign. */
static inline vs vs_negate(vs v, vs signs, vs places) {
    const __m256i mask = _mm256_srai_epi16(_mm256_mullo_epi16(signs, places), 15);
    return _mm256_sub_epi16(_mm256_xor_si256(v, mask), mask);
}

static inline vt vt_repeat16(const void *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

/* Adds the eight sums, over all segments, to rows[0..7]. */
static inline void vs_flush(int32_t *rows, vs sum) {
    const __m256i first = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(sum));
    const __m256i second = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(sum, 1));
    __m256i *const at = (__m256i *)rows;
    const __m256i both = _mm256_add_epi32(first, second);
    _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), both));
}

#endif
