/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_NEON_H
#define TERN_ISA_NEON_H

/*
 * Plain NEON, which every 64-bit ARM processor has: widening multiplications into 16-bit partial
 * sums.
 *
 * smlal adds bytes 0-7 of its products to eight sums, smlal2 bytes 8-15 to the same eight. So that
 * both belong to one row, the bytes of a vector are ordered anew when they are loaded: byte i of
 * the lower half and byte i of the upper half come from the row i / 2,
 *
 *     in memory   r0c0 r0c1 r0c2 r0c3  r1c0 r1c1 r1c2 r1c3  r2c0 ...
 *     here        r0c0 r0c1 r1c0 r1c1 r2c0 r2c1 r3c0 r3c1   r0c2 r0c3 r1c2 r1c3 r2c2 ...
 *
 * and the two 16-bit sums of a row are neighbours, which sadalp adds to its 32-bit lane.
 */

#include "kernels/isa/neon_float.h"

typedef int16x8_t vp; /* sums of columns 0 + 2 and of columns 1 + 3 for each row */

/*
 * vp_mac adds two products of a 2-bit code and an int8 to each 16-bit sum: at most 2 * 2 * 128 =
 * 512 (a 2-bit plane holds 0..2, see tern_pack_rows). 63 * 512 = 32256 is the last multiple below
 * 2^15. Nibbles: 2 * 15 * 127 = 3810; the 8 that a 32-column block needs give 30480.
 * 5 bits: 2 * 31 * 127 = 7874; 4 of them, half a block, give 31496.
 */
#define TERN_MACS_2BIT 63
#define TERN_SS_BIAS 0

static inline vb rows_in_halves(vb v) {
    static const uint8_t order[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
    return vqtbl1q_s8(v, vld1q_u8(order));
}

static inline vb vb_load(const void *p) {
    return rows_in_halves(vld1q_s8((const int8_t *)p));
}

static inline vb vb_splat4(const void *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    return rows_in_halves(vreinterpretq_s8_s32(vdupq_n_s32(four)));
}

static inline vp vp_zero(void) {
    return vdupq_n_s16(0);
}

/* Budget: TERN_MACS_2BIT for 2-bit codes, 8 for nibbles, 4 for codes of 5 bits. */
static inline vp vp_mac(vp sum, vb codes, vb x) {
    return vmlal_high_s8(vmlal_s8(sum, vget_low_s8(codes), vget_low_s8(x)), codes, x);
}

static inline vp vp_sub(vp a, vp b) {
    return vsubq_s16(a, b);
}

/* Each factor twice, for the two partial sums of its row. */
static inline vp vp_factors(vi v) {
    const int16x8_t factors = vreinterpretq_s16_s32(v);
    return vtrn1q_s16(factors, factors);
}

static inline vp vp_load_i8(const int8_t *p) {
    return vp_factors(vi_load_i8(p));
}

/* Products of a partial sum, as a 16-bit number, and an int8: two of at most 2^15 * 2^7. */
static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    const vi low = vmull_s16(vget_low_s16(part), vget_low_s16(scale));
    return vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(part, scale)));
}

static inline vi vi_flush(vi sum, vp part) {
    return vpadalq_s16(sum, part);
}

/* Two products in 16 bits: at most 2 * 128 * 127 = 32512. Needs x >= -127. */
static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    return vi_flush(sum, vmlal_high_s8(vmull_s8(vget_low_s8(w), vget_low_s8(x)), w, x));
}

#endif
