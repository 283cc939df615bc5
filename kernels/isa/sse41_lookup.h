/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_SSE41_LOOKUP_H
#define TERN_ISA_SSE41_LOOKUP_H

/* The verbs of table lookup for SSE4.1: one segment. isa/README.md lists what each verb means. */

#include <immintrin.h>
#include <stdint.h>

typedef __m128i vt; /* bytes, as they are in memory */
typedef __m128i vs; /* 16-bit sums: eight for each segment of 16 bytes */

static inline vt vt_load(const void *p) {
    return _mm_loadu_si128((const __m128i *)p);
}
static inline vt vt_low4(vt v) {
    return _mm_and_si128(v, _mm_set1_epi8(15));
}
static inline vt vt_high4(vt v) {
    return _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
}
static inline vt vt_lookup(vt table, vt index) {
    return _mm_shuffle_epi8(table, index);
}
static inline vs vt_zip_low(vt low, vt high) {
    return _mm_unpacklo_epi8(low, high);
}
static inline vs vt_zip_high(vt low, vt high) {
    return _mm_unpackhi_epi8(low, high);
}
static inline vs vs_zero(void) {
    return _mm_setzero_si128();
}
static inline vs vs_add(vs a, vs b) {
    return _mm_add_epi16(a, b);
}

/* Bit 15 of signs * places says which sums change sign. */
static inline vs vs_negate(vs v, vs signs, vs places) {
    const __m128i mask = _mm_srai_epi16(_mm_mullo_epi16(signs, places), 15);
    return _mm_sub_epi16(_mm_xor_si128(v, mask), mask);
}

static inline vt vt_repeat16(const void *p) {
    return vt_load(p);
}

/* Adds the eight sums, over all segments, to rows[0..7]. */
static inline void vs_flush(int32_t *rows, vs sum) {
    const __m128i low = _mm_cvtepi16_epi32(sum);
    const __m128i high = _mm_cvtepi16_epi32(_mm_unpackhi_epi64(sum, sum));
    __m128i *const at = (__m128i *)rows;
    _mm_storeu_si128(at, _mm_add_epi32(_mm_loadu_si128(at), low));
    _mm_storeu_si128(at + 1, _mm_add_epi32(_mm_loadu_si128(at + 1), high));
}

#endif
