/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX512_LOOKUP_H
#define TERN_ISA_AVX512_LOOKUP_H

/* The verbs of table lookup for AVX-512 (BW): four segments. isa/README.md lists what each verb
 * means. */

#include <immintrin.h>
#include <stdint.h>

typedef __m512i vt; /* bytes, as they are in memory */
typedef __m512i vs; /* 16-bit sums: eight for each segment of 16 bytes */

static inline vt vt_load(const void *p) {
    return _mm512_loadu_si512(p);
}
static inline vt vt_low4(vt v) {
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}
static inline vt vt_high4(vt v) {
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}
static inline vt vt_lookup(vt table, vt index) {
    return _mm512_shuffle_epi8(table, index);
}
static inline vs vt_zip_low(vt low, vt high) {
    return _mm512_unpacklo_epi8(low, high);
}
static inline vs vt_zip_high(vt low, vt high) {
    return _mm512_unpackhi_epi8(low, high);
}
static inline vs vs_zero(void) {
    return _mm512_setzero_si512();
}
static inline vs vs_add(vs a, vs b) {
    return _mm512_add_epi16(a, b);
}

/* Bit 15 of signs * places says which sums change sign. */
static inline vs vs_negate(vs v, vs signs, vs places) {
    const __m512i mask = _mm512_srai_epi16(_mm512_mullo_epi16(signs, places), 15);
    return _mm512_sub_epi16(_mm512_xor_si512(v, mask), mask);
}

static inline vt vt_repeat16(const void *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
}

/* Adds the eight sums, over all segments, to rows[0..7]. */
static inline void vs_flush(int32_t *rows, vs sum) {
    const __m512i first = _mm512_cvtepi16_epi32(_mm512_castsi512_si256(sum));
    const __m512i second = _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(sum, 1));
    const __m512i both = _mm512_add_epi32(first, second);
    const __m256i all =
        _mm256_add_epi32(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1));
    __m256i *const at = (__m256i *)rows;
    _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), all));
}

#endif
