/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_AVXVNNI_H
#define TERN_ISA_AVXVNNI_H

/*
 * AVX2 with VNNI: vpdpbusd on eight lanes sums four products of a u8 and an i8 in 32 bits.
 *
 * Processors without AVX-512 have it in VEX encoding (AVX-VNNI). AVX-512 VL has the same operation
 * in EVEX encoding; a test compiles the rows that way, to run them where AVX-VNNI is missing.
 */

#include "kernels/isa/avx2_float.h"

typedef int32_t vp __attribute__((vector_size(32))); /* see isa/avx512vnni.h */
typedef vp vw;

#ifdef __AVXVNNI__
#define TERN_DPBUSD _mm256_dpbusd_avx_epi32
#define TERN_DPWSSD _mm256_dpwssd_avx_epi32
#else
#define TERN_DPBUSD _mm256_dpbusd_epi32
#define TERN_DPWSSD _mm256_dpwssd_epi32
#endif

/* 2^20 sums of four products of at most 3 * 128 stay below 2^31. */
#define TERN_MACS_2BIT (UINT32_C(1) << 20)

/* vi_mac_ss adds (w + 128) * x: the unsigned operand of vpdpbusd. */
#define TERN_SS_BIAS 128

static inline vp vp_zero(void) {
    return (vp)_mm256_setzero_si256();
}

static inline vp vp_mac(vp sum, vb codes, vb x) {
    return (vp)TERN_DPBUSD((__m256i)sum, codes, x);
}

static inline vp vp_sub(vp a, vp b) {
    return a - b;
}

static inline vp vp_spread4(vp s) {
    s += (vp)_mm256_shuffle_epi32((__m256i)s, 0x4e);
    return s + (vp)_mm256_shuffle_epi32((__m256i)s, 0xb1);
}

static inline vp vp_factors(vi v) {
    return (vp)v;
}

static inline vp vp_load_i8(const int8_t *p) {
    return (vp)vi_load_i8(p);
}

static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    return _mm256_add_epi32(sum, _mm256_mullo_epi32((__m256i)part, (__m256i)scale));
}

static inline vi vi_flush(vi sum, vp part) {
    return _mm256_add_epi32(sum, (__m256i)part);
}

static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    return TERN_DPBUSD(sum, _mm256_xor_si256(w, _mm256_set1_epi8(-128)), x);
}

static inline vw vw_zero(void) {
    return vp_zero();
}

static inline vw vw_mac(vw sum, vh a, vh b) {
    return (vw)TERN_DPWSSD((__m256i)sum, a, b);
}

static inline vi vw_total(vw sum) {
    return (vi)sum;
}

#endif
