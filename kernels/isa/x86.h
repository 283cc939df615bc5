/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_ISA_X86_H
#define TERN_KERNELS_ISA_X86_H

/*
 * Verbs that x86's sets spell alike. The set that includes this has defined vf, vi and vb,
 * X86(op), its intrinsic of that name, and X86_BITS(op), the same for whole registers of integers.
 */

static inline vf vf_zero(void) {
    return X86(setzero_ps)();
}
static inline vf vf_set1(float x) {
    return X86(set1_ps)(x);
}
static inline vf vf_load(const float *p) {
    return X86(loadu_ps)(p);
}
static inline void vf_store(float *p, vf v) {
    X86(storeu_ps)(p, v);
}
static inline vf vf_add(vf a, vf b) {
    return X86(add_ps)(a, b);
}
static inline vf vf_sub(vf a, vf b) {
    return X86(sub_ps)(a, b);
}
static inline vf vf_mul(vf a, vf b) {
    return X86(mul_ps)(a, b);
}
static inline vf vf_div(vf a, vf b) {
    return X86(div_ps)(a, b);
}
static inline vf vf_max(vf a, vf b) {
    return X86(max_ps)(a, b);
} /* a > b ? a : b */
static inline vf vf_min(vf a, vf b) {
    return X86(min_ps)(a, b);
} /* a < b ? a : b */

static inline vi vi_zero(void) {
    return X86_BITS(setzero)();
}
static inline vi vi_set1(int32_t x) {
    return X86(set1_epi32)(x);
}
static inline vi vi_add(vi a, vi b) {
    return X86(add_epi32)(a, b);
}
static inline vi vi_sub(vi a, vi b) {
    return X86(sub_epi32)(a, b);
}
static inline vf vi_to_f(vi v) {
    return X86(cvtepi32_ps)(v);
}
static inline vi vi_round(vf v) {
    return X86(cvtps_epi32)(v);
}
static inline vi vi_and(vi a, vi b) {
    return X86_BITS(and)(a, b);
}
static inline vi vi_srl4(vi v) {
    return X86(srli_epi32)(v, 4);
}

static inline vb vb_nibble_lo(vb c) {
    return X86_BITS(and)(c, X86(set1_epi8)(15));
}
static inline vb vb_nibble_hi(vb c) {
    return X86_BITS(and)(X86(srli_epi16)(c, 4), X86(set1_epi8)(15));
}
static inline vb vb_set1(int x) {
    return X86(set1_epi8)((char)x);
}

/* The next base-3 digits of signed fractions: what stays when a digit is carried out. */
static inline vb vb_tripled(vb c) {
    return X86(add_epi8)(c, X86(add_epi8)(c, c));
}

/* The signed fraction that digit n of base 3 is read from: 2 above 42/256, 0 below -42/256. */
static inline vb vb_fraction(vb c, int n) {
    const vb first = vb_tripled(c), second = vb_tripled(first), third = vb_tripled(second);
    return n == 0 ? c : n == 1 ? first : n == 2 ? second : n == 3 ? third : vb_tripled(third);
}

#endif
