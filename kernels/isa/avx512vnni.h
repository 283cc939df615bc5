/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVX512VNNI_H
#define TERN_ISA_AVX512VNNI_H

/* AVX-512 with VNNI: vpdpbusd sums four products of a u8 and an i8 in 32 bits. */

#include "kernels/isa/avx512_float.h"

/*
 * 32-bit sums, in the type that vpdpbusd has for gcc: of __m512i, which is eight 64-bit integers to
 * it, gcc 12 copies each accumulator twice around every vpdpbusd of a loop.
 */
typedef int32_t vp __attribute__((vector_size(64)));
typedef vp vw;

/* 2^20 sums of four products of at most 3 * 128 stay below 2^31. */
#define TERN_MACS_2BIT (UINT32_C(1) << 20)

/* vi_mac_ss adds (w + 128) * x: the unsigned operand of vpdpbusd. */
#define TERN_SS_BIAS 128

static inline vp vp_zero(void) {
    return (vp)_mm512_setzero_si512();
}

/* A sum that begins with x in each lane. */
static inline vp vp_set1(int32_t x) {
    return (vp)_mm512_set1_epi32(x);
}

static inline vp vp_mac(vp sum, vb codes, vb x) {
    return (vp)_mm512_dpbusd_epi32((__m512i)sum, codes, x);
}

static inline vp vp_sub(vp a, vp b) {
    return a - b;
}

static inline vp vp_factors(vi v) {
    return (vp)v;
}

static inline vp vp_load_i8(const int8_t *p) {
    return (vp)vi_load_i8(p);
}

static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    return _mm512_add_epi32(sum, _mm512_mullo_epi32((__m512i)part, (__m512i)scale));
}

static inline vi vi_flush(vi sum, vp part) {
    return _mm512_add_epi32(sum, (__m512i)part);
}

/* The multiples 0 .. 3 of each row's factor, which is at most 85; a row is a 32-bit lane. */
static inline vb vb_multiples(vi factors) {
    return _mm512_mullo_epi32(factors, _mm512_set1_epi32(0x03020100));
}

/* For each code of two bits that multiple of its row's factor: a shuffle sees four rows at once. */
static inline vb vb_multiple(vb multiples, vb codes) {
    const __m512i rows = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    return _mm512_shuffle_epi8(multiples, _mm512_or_si512(codes, rows));
}

/* Two 16-bit numbers in each lane; a is not negative. */
static inline vi vi_pair(vi a, vi b) {
    return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}

/* The sum of both products of pairs of 16-bit numbers. */
static inline vi vi_pair_product(vi a, vi b) {
    return _mm512_madd_epi16(a, b);
}

static inline vb vb_unsigned(vb w) {
    return _mm512_xor_si512(w, _mm512_set1_epi8(-128));
}

static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    return _mm512_dpbusd_epi32(sum, vb_unsigned(w), x);
}

static inline vw vw_zero(void) {
    return vp_zero();
}

static inline vw vw_mac(vw sum, vh a, vh b) {
    return (vw)_mm512_dpwssd_epi32((__m512i)sum, a, b);
}

static inline vi vw_total(vw sum) {
    return (vi)sum;
}

#endif
