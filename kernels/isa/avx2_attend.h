/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX2_ATTEND_H
#define TERN_ISA_AVX2_ATTEND_H

/*
 * Verbs of eight lanes for attention over codes alone, on top of a set's own. A shuffle has two units on the
 * processors that were measured, a blend four, and a horizontal addition takes two cycles.
 */

/* The vector in a register: a compiler that may load it again for each use does, and then loads
 * limit a kernel. */
static inline vh vh_held(vh v) {
    __asm__("" : "+x"(v));
    return v;
}

/* Words of two vectors by turns: of the first four (last four) of each half. */
static inline vh vh_zip_low(vh a, vh b) {
    return _mm256_unpacklo_epi16(a, b);
}
static inline vh vh_zip_high(vh a, vh b) {
    return _mm256_unpackhi_epi16(a, b);
}

static inline vi vi_first_halves(vi a, vi b) {
    return _mm256_permute2x128_si256(a, b, 0x20);
}
static inline vi vi_last_halves(vi a, vi b) {
    return _mm256_permute2x128_si256(a, b, 0x31);
}

/* Sums of neighbouring lanes, a's and b's by turns. */
static inline vi sums_by_two(vi a, vi b) {
    const vi swapped = _mm256_shuffle_epi32(_mm256_blend_epi32(b, a, 0xaa), 0xb1);
    return _mm256_add_epi32(_mm256_blend_epi32(a, b, 0xaa), swapped);
}

/* The sums of a, b, c, d in each half, from sums_by_two(a, b) and (c, d). */
static inline vi sums_by_four(vi ab, vi cd) {
    const __m256d swapped = _mm256_shuffle_pd(_mm256_castsi256_pd(ab), _mm256_castsi256_pd(cd), 5);
    return _mm256_add_epi32(_mm256_blend_epi32(ab, cd, 0xcc), _mm256_castpd_si256(swapped));
}

/* The same sums as those of vi_sums. */
static inline vi vi_sums_blended(vi a, vi b, vi c, vi d, vi e, vi f, vi g, vi h) {
    const vi abcd = sums_by_four(sums_by_two(a, b), sums_by_two(c, d));
    const vi efgh = sums_by_four(sums_by_two(e, f), sums_by_two(g, h));
    return _mm256_add_epi32(_mm256_blend_epi32(abcd, efgh, 0xf0),
                            _mm256_permute2x128_si256(abcd, efgh, 0x21));
}

/* Four rows of four floats become columns: to[i * stride + j] = from[4 * j + i]. */
static inline void turn4(const float *from, float *to, size_t stride) {
    __m128 r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + 4);
    __m128 r2 = _mm_loadu_ps(from + 8), r3 = _mm_loadu_ps(from + 12);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(to, r0);
    _mm_storeu_ps(to + stride, r1);
    _mm_storeu_ps(to + 2 * stride, r2);
    _mm_storeu_ps(to + 3 * stride, r3);
}

#endif
