/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_NEONDOT_H
#define TERN_ISA_NEONDOT_H

/* NEON with dot products: sdot sums four products of signed bytes in 32 bits. */

#include "kernels/isa/neon_float.h"

typedef int32x4_t vp;

/* 2^20 sums of four products of at most 3 * 128 stay below 2^31. */
#define TERN_MACS_2BIT (UINT32_C(1) << 20)
#define TERN_SS_BIAS 0

static inline vb vb_load(const void *p) {
    return vld1q_s8((const int8_t *)p);
}

static inline vb vb_splat4(const void *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

static inline vp vp_zero(void) {
    return vdupq_n_s32(0);
}

static inline vp vp_mac(vp sum, vb codes, vb x) {
    return vdotq_s32(sum, codes, x);
}

static inline vp vp_sub(vp a, vp b) {
    return vsubq_s32(a, b);
}

static inline vp vp_factors(vi v) {
    return v;
}

static inline vp vp_load_i8(const int8_t *p) {
    return vi_load_i8(p);
}

static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    return vmlaq_s32(sum, part, scale);
}

static inline vi vi_flush(vi sum, vp part) {
    return vaddq_s32(sum, part);
}

static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    return vdotq_s32(sum, w, x);
}

#endif
