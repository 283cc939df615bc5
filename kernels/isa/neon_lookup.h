/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_NEON_LOOKUP_H
#define TERN_ISA_NEON_LOOKUP_H

/* The verbs of table lookup for NEON: one segment. isa/README.md lists what each verb means. */

#include <arm_neon.h>
#include <stdint.h>

typedef uint8x16_t vt; /* bytes, as they are in memory */
typedef int16x8_t vs;  /* 16-bit sums: eight for each segment of 16 bytes */

static inline vt vt_load(const void *p) {
    return vld1q_u8((const uint8_t *)p);
}
static inline vt vt_repeat16(const void *p) {
    return vt_load(p);
}
static inline vt vt_low4(vt v) {
    return vandq_u8(v, vdupq_n_u8(15));
}
static inline vt vt_high4(vt v) {
    return vshrq_n_u8(v, 4);
}
static inline vt vt_lookup(vt table, vt index) {
    return vqtbl1q_u8(table, index);
}
static inline vs vt_zip_low(vt low, vt high) {
    return vreinterpretq_s16_u8(vzip1q_u8(low, high));
}
static inline vs vt_zip_high(vt low, vt high) {
    return vreinterpretq_s16_u8(vzip2q_u8(low, high));
}
static inline vs vs_zero(void) {
    return vdupq_n_s16(0);
}
static inline vs vs_add(vs a, vs b) {
    return vaddq_s16(a, b);
}

/* Bit 15 of signs * places says which sums change sign. */
static inline vs vs_negate(vs v, vs signs, vs places) {
    const int16x8_t mask = vshrq_n_s16(vmulq_s16(signs, places), 15);
    return vsubq_s16(veorq_s16(v, mask), mask);
}

/* Adds the eight sums, over all segments, to rows[0..7]. */
static inline void vs_flush(int32_t *rows, vs sum) {
    vst1q_s32(rows, vaddw_s16(vld1q_s32(rows), vget_low_s16(sum)));
    vst1q_s32(rows + 4, vaddw_s16(vld1q_s32(rows + 4), vget_high_s16(sum)));
}

#endif
