/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_NEON_FLOAT_H
#define TERN_ISA_NEON_FLOAT_H

/*
 * The verbs that all 64-bit ARM instruction sets share (Advanced SIMD of Armv8.0-A): four lanes.
 * isa/README.md lists what each verb means.
 */

#include <arm_neon.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float32x4_t vf;
typedef int32x4_t vi;
typedef int16x8_t vh;
typedef int32x4_t vw;
typedef int8x16_t vb; /* all codes are at most 15, so signed multiplications take them as well */

static inline vf vf_zero(void) {
    return vdupq_n_f32(0.0f);
}
static inline vf vf_set1(float x) {
    return vdupq_n_f32(x);
}
static inline vf vf_load(const float *p) {
    return vld1q_f32(p);
}
static inline vf vf_repeat2(const float *p) {
    const float32x2_t two = vld1_f32(p);
    return vcombine_f32(vdup_lane_f32(two, 0), vdup_lane_f32(two, 1));
}
static inline vf vf_repeat4(const float *p) {
    return vdupq_n_f32(*p);
}
static inline void vf_store(float *p, vf v) {
    vst1q_f32(p, v);
}
static inline vf vf_add(vf a, vf b) {
    return vaddq_f32(a, b);
}
static inline vf vf_sub(vf a, vf b) {
    return vsubq_f32(a, b);
}
static inline vf vf_mul(vf a, vf b) {
    return vmulq_f32(a, b);
}
static inline vf vf_mac_exact(vf s, vf a, vf b) {
    return vfmaq_f32(s, a, b);
}
static inline vf vf_div(vf a, vf b) {
    return vdivq_f32(a, b);
}
static inline vf vf_abs(vf v) {
    return vabsq_f32(v);
}
static inline vf vf_copysign(vf v, vf sign) {
    return vbslq_f32(vdupq_n_u32(UINT32_C(1) << 31), sign, v);
}

/* Compare and select: vmaxq_f32 and vminq_f32 have rules of their own for NaN and zeros. */
static inline vf vf_max(vf a, vf b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
static inline vf vf_min(vf a, vf b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

/* There is no masked load or store: lanes of a tail go one by one. */
static inline vf vf_load_fill(const float *p, size_t n, float fill) {
    if (n >= 4)
        return vld1q_f32(p);
    vf v = vdupq_n_f32(fill);
    if (n > 0)
        v = vld1q_lane_f32(p, v, 0);
    if (n > 1)
        v = vld1q_lane_f32(p + 1, v, 1);
    if (n > 2)
        v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}

static inline void vf_store_n(float *p, vf v, size_t n) {
    if (n >= 4) {
        vst1q_f32(p, v);
        return;
    }
    if (n > 0)
        vst1q_lane_f32(p, v, 0);
    if (n > 1)
        vst1q_lane_f32(p + 1, v, 1);
    if (n > 2)
        vst1q_lane_f32(p + 2, v, 2);
}

static inline vf vf_first_n(vf v, size_t n) {
    static const uint32_t lane[4] = {0, 1, 2, 3};
    const uint32x4_t below = vcltq_u32(vld1q_u32(lane), vdupq_n_u32((uint32_t)n));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), below));
}

/* The exponent field alone. */
static inline vf vf_binade(vf v) {
    const uint32x4_t field = vdupq_n_u32(0x7f800000u);
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), field));
}

/* Half of the last bit that stays, less one where that bit is even, carries into it. */
static inline vf vf_round_bf16(vf v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t rounded = vandq_u32(up, vdupq_n_u32(0xffff0000u));
    return vreinterpretq_f32_u32(vbslq_u32(vceqq_f32(v, v), rounded, bits));
}

/* To 13 bits in the same way; what is below 2^-100 or not below 2^100 is told by its magnitude. */
static inline vf vf_round13(vf v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 11), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x3ff)));
    const uint32x4_t rounded = vandq_u32(up, vdupq_n_u32(0xfffff800u));
    const uint32x4_t tiny = vcaltq_f32(v, vdupq_n_f32(0x1p-100f));
    const uint32x4_t usual = vcaltq_f32(v, vdupq_n_f32(0x1p100f));
    return vbslq_f32(usual, vreinterpretq_f32_u32(vbicq_u32(rounded, tiny)),
                     vmulq_f32(v, vdupq_n_f32(INFINITY)));
}

/* 2^n for integral n in [-126, 127]: the exponent field of a float. */
static inline vf vf_pow2(vf n) {
    const int32x4_t biased = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
}

/* fmaxv passes a NaN on; the lanes of a maximum are all NaN (from its first operand) or none is. */
static inline float vf_hmax(vf v) {
    return vmaxvq_f32(v);
}

/* a, b, c, d hold the virtual lanes 0-3, 4-7, 8-11, 12-15: fold by 8, by 4, by 2, by 1. */
static inline float vf_sum16(vf a, vf b, vf c, vf d) {
    const vf four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
    return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

/* Row r folded by 8 and by 4. */
static inline vf four_of_row(const float *p, size_t r) {
    const float *row = p + 16 * r;
    return vaddq_f32(vaddq_f32(vld1q_f32(row), vld1q_f32(row + 8)),
                     vaddq_f32(vld1q_f32(row + 4), vld1q_f32(row + 12)));
}

/* a folded by 2, then b. */
static inline vf two_of_rows(vf a, vf b) {
    return vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                     vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
}

static inline vf vf_sum16_rows(const float *p) {
    return vpaddq_f32(two_of_rows(four_of_row(p, 0), four_of_row(p, 1)),
                      two_of_rows(four_of_row(p, 2), four_of_row(p, 3)));
}

static inline uint16x4_t load_halves(const void *p) {
    uint16x4_t halves;
    memcpy(&halves, p, sizeof halves);
    return halves;
}

static inline uint16x4_t load_halves_n(const void *p, size_t n) {
    uint16_t halves[4] = {0};
    memcpy(halves, p, n * sizeof *halves);
    return vld1_u16(halves);
}

/* fcvtl makes a NaN quiet and keeps its payload, as kernels/half.h does. */
static inline vf widen_f16(uint16x4_t halves) {
    return vcvt_f32_f16(vreinterpret_f16_u16(halves));
}

static inline vf widen_bf16(uint16x4_t halves) {
    return vreinterpretq_f32_u32(vshll_n_u16(halves, 16));
}

static inline vf vf_load_f16(const void *p) {
    return widen_f16(load_halves(p));
}

static inline vf vf_splat_f16(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return widen_f16(vdup_n_u16(half));
}

static inline vf vf_load_bf16(const void *p) {
    return widen_bf16(load_halves(p));
}
static inline vf vf_load_f16_n(const void *p, size_t n) {
    return widen_f16(load_halves_n(p, n));
}
static inline vf vf_load_bf16_n(const void *p, size_t n) {
    return widen_bf16(load_halves_n(p, n));
}

/* fcvtn rounds to nearest even, the mode that every program starts in. */
static inline void vf_store_f16_n(void *p, vf v, size_t n) {
    const uint16x4_t halves = vreinterpret_u16_f16(vcvt_f16_f32(v));
    memcpy(p, &halves, n * sizeof(uint16_t));
}

static inline void vf_store_f16(void *p, vf v) {
    vf_store_f16_n(p, v, 4);
}

/* Pairs of neighbouring lanes, for RoPE: c0 c0 c1 c1 from two floats; x1 x0 x3 x2. */
static inline vf vf_swap_pairs(vf v) {
    return vrev64q_f32(v);
}

static inline vf vf_swap2(vf v) {
    return vextq_f32(v, v, 2);
}

/* Even lanes a - b, odd lanes a + b: a - b is a + (-b). */
static inline vf vf_addsub(vf a, vf b) {
    const uint32x4_t even_sign = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
    return vaddq_f32(a, vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(b), even_sign)));
}

static inline vi vi_zero(void) {
    return vdupq_n_s32(0);
}
static inline vi vi_set1(int32_t x) {
    return vdupq_n_s32(x);
}
static inline vi vi_add(vi a, vi b) {
    return vaddq_s32(a, b);
}
static inline vi vi_sub(vi a, vi b) {
    return vsubq_s32(a, b);
}
static inline vf vi_to_f(vi v) {
    return vcvtq_f32_s32(v);
}
static inline vi vi_round(vf v) {
    return vcvtnq_s32_f32(v);
}
static inline vi vi_and(vi a, vi b) {
    return vandq_s32(a, b);
}
static inline vi vi_srl4(vi v) {
    return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(v), 4));
}
static inline int32_t vi_hsum(vi v) {
    return vaddvq_s32(v);
}

/* Lanes within int8. */
static inline void vi_store_i8(int8_t *p, vi v) {
    const int16x4_t words = vmovn_s32(v);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    memcpy(p, &bytes, 4);
}

static inline vi vi_load_i8(const int8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four))));
}

static inline vi vi_load_u8(const uint8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four)))));
}

/* 2^-127 and 2^-128 are denormal: of the two forms the larger one is right. */
static inline vf vf_load_power(const uint8_t *p) {
    const vi e = vi_load_u8(p);
    const vi normal = vsubq_s32(vshlq_n_s32(e, 23), vdupq_n_s32(1 << 23));
    const vi denormal = vaddq_s32(vshlq_n_s32(e, 21), vdupq_n_s32(1 << 21));
    return vreinterpretq_f32_s32(vmaxq_s32(normal, denormal));
}

/* A denormal float becomes a normal one. */
static inline vf vf_load_e4m3(const uint8_t *p) {
    return vf_mul(vreinterpretq_f32_s32(vshlq_n_s32(vi_load_u8(p), 20)), vf_set1(0x1p119f));
}

static inline void vi_store_i16(int16_t *p, vi v) {
    vst1_s16(p, vmovn_s32(v));
}

static inline vh vh_load(const int16_t *p) {
    return vld1q_s16(p);
}

static inline vh vh_load_i8(const int8_t *p) {
    return vmovl_s8(vld1_s8(p));
}

static inline int8x8_t four_bytes(const int8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpret_s8_u32(vdup_n_u32(four));
}

static inline vh vh_zip_i8(const int8_t *a, const int8_t *b) {
    return vmovl_s8(vzip1_s8(four_bytes(a), four_bytes(b)));
}

static inline vh vh_splat2(const int16_t *p) {
    int32_t two;
    memcpy(&two, p, sizeof two);
    return vreinterpretq_s16_s32(vdupq_n_s32(two));
}

static inline vw vw_zero(void) {
    return vi_zero();
}

static inline vw vw_mac(vw sum, vh a, vh b) {
    const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
    return vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(a, b)));
}

static inline vi vw_total(vw sum) {
    return sum;
}

static inline vi vi_sums(vi a, vi b, vi c, vi d) {
    return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

/* The shift takes its distance as a constant, so each plane has a line. */
static inline vb vb_plane2(vb c, int plane) {
    const uint8x16_t codes = vreinterpretq_u8_s8(c);
    const uint8x16_t shifted = plane == 0   ? codes
                               : plane == 1 ? vshrq_n_u8(codes, 2)
                               : plane == 2 ? vshrq_n_u8(codes, 4)
                                            : vshrq_n_u8(codes, 6);
    return vreinterpretq_s8_u8(plane == 3 ? shifted : vandq_u8(shifted, vdupq_n_u8(3)));
}

static inline vb vb_bit2(vb c, int i) {
    const uint8x16_t set = vtstq_u8(vreinterpretq_u8_s8(c), vdupq_n_u8((uint8_t)(1 << i)));
    return vreinterpretq_s8_u8(vandq_u8(set, vdupq_n_u8(2)));
}

/* Tripling a signed base-3 fraction n times carries its first n digits out of eight bits. Digit n
 * is 2 above 42/256, 0 below -42/256; a comparison gives -1. */
static inline vb vb_trit(vb c, int n) {
    static const int8_t powers[] = {1, 3, 9, 27, 81};
    const int8x16_t fraction = n == 0 ? c : vmulq_s8(c, vdupq_n_s8(powers[n]));
    const uint8x16_t above = vcgtq_s8(fraction, vdupq_n_s8(42));
    const uint8x16_t not_below = vcgtq_s8(fraction, vdupq_n_s8(-43));
    return vnegq_s8(vreinterpretq_s8_u8(vaddq_u8(above, not_below)));
}

static inline vb vb_nibble_lo(vb c) {
    return vandq_s8(c, vdupq_n_s8(15));
}

static inline vb vb_nibble_hi(vb c) {
    return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(c), 4));
}

/* Bit 4 comes from a byte that is all ones where the bit is set, the others from the code. */
static inline vb vb_join1(vb codes, vb bits, int i) {
    const uint8x16_t set = vtstq_u8(vreinterpretq_u8_s8(bits), vdupq_n_u8((uint8_t)(1 << i)));
    return vbslq_s8(vdupq_n_u8(16), vreinterpretq_s8_u8(set), codes);
}

static inline vb vb_join3(vb codes, vb bits, int i) {
    const uint8x16_t set = vtstq_u8(vreinterpretq_u8_s8(bits), vdupq_n_u8((uint8_t)(1 << i)));
    return vbslq_s8(vdupq_n_u8(4), vreinterpretq_s8_u8(set), codes);
}

static inline vb vb_join2(vb codes, vb bits, int plane) {
    const uint8x16_t two = vreinterpretq_u8_s8(vb_plane2(bits, plane));
    return vreinterpretq_s8_u8(vsliq_n_u8(vreinterpretq_u8_s8(codes), two, 4));
}

static inline vb vb_lookup16(const int8_t *table, vb index) {
    return vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_s8(index));
}

static inline vb vb_lookup32(const uint8_t *table, vb index) {
    const uint8x16x2_t entries = {{vld1q_u8(table), vld1q_u8(table + 16)}};
    return vreinterpretq_s8_u8(vqtbl2q_u8(entries, vreinterpretq_u8_s8(index)));
}

static inline vb vb_set1(int x) {
    return vdupq_n_s8((int8_t)x);
}

#endif
