/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_SCALAR_H
#define TERN_ISA_SCALAR_H

/*
 * The verbs in plain C, one lane. isa/README.md lists what each verb means; this file is the
 * fallback that every machine can run, so it uses nothing but integer and float arithmetic.
 */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/trits.h"

typedef float vf;
typedef int32_t vi;
typedef uint32_t vb;
typedef uint32_t vh;
typedef int32_t vp;
typedef int32_t vw;

/* Sums in 32 bits: 2^22 products of 3 * 128 stay below 2^31. */
#define TERN_MACS_2BIT (UINT32_C(1) << 22)
#define TERN_SS_BIAS 0

static inline vf vf_zero(void) {
    return 0.0f;
}
static inline vf vf_set1(float x) {
    return x;
}
static inline vf vf_load(const float *p) {
    return *p;
}
static inline vf vf_load_fill(const float *p, size_t n, float fill) {
    return n ? *p : fill;
}
static inline void vf_store(float *p, vf v) {
    *p = v;
}
static inline vf vf_first_n(vf v, size_t n) {
    return n ? v : 0.0f;
}
static inline vf vf_add(vf a, vf b) {
    return a + b;
}
static inline vf vf_sub(vf a, vf b) {
    return a - b;
}
static inline vf vf_mul(vf a, vf b) {
    return a * b;
}
static inline vf vf_mac_exact(vf s, vf a, vf b) {
    return s + a * b;
}
static inline vf vf_div(vf a, vf b) {
    return a / b;
}
static inline vf vf_max(vf a, vf b) {
    return a > b ? a : b;
}
static inline vf vf_min(vf a, vf b) {
    return a < b ? a : b;
}
static inline vf vf_abs(vf v) {
    return fabsf(v);
}
static inline vf vf_copysign(vf v, vf sign) {
    return copysignf(v, sign);
}
static inline vf vf_binade(vf v) {
    return tern_f32_from_bits(tern_f32_to_bits(v) & 0x7f800000u);
}
static inline vf vf_round_bf16(vf v) {
    return tern_bf16_to_f32(tern_f32_to_bf16(v));
}
static inline vf vf_round13(vf v) {
    const uint32_t bits = tern_f32_to_bits(v);
    if (!(fabsf(v) < 0x1p100f))
        return v * INFINITY;
    if (fabsf(v) < 0x1p-100f)
        return 0.0f;
    return tern_f32_from_bits((bits + 0x3ffu + (bits >> 11 & 1u)) & ~0x7ffu);
}
static inline float vf_hmax(vf v) {
    return v;
}

static inline void vf_store_n(float *p, vf v, size_t n) {
    if (n)
        *p = v;
}

/* 2^n for an integral n in [-126, 127]: the exponent field of a float. */
static inline vf vf_pow2(vf n) {
    return tern_f32_from_bits((uint32_t)((int32_t)n + 127) << 23);
}

static inline float vf_sum16(vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h, vf i, vf j, vf k, vf l,
                             vf m, vf n, vf o, vf p) {
    const float a8 = a + i, b8 = b + j, c8 = c + k, d8 = d + l;
    const float e8 = e + m, f8 = f + n, g8 = g + o, h8 = h + p;
    const float a4 = a8 + e8, b4 = b8 + f8, c4 = c8 + g8, d4 = d8 + h8;
    return (a4 + c4) + (b4 + d4);
}

static inline vf vf_sum16_rows(const float *p) {
    return vf_sum16(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12],
                    p[13], p[14], p[15]);
}

static inline vf vf_load_f16(const void *p) {
    return tern_f16_load(p);
}

static inline vf vf_load_power(const uint8_t *p) {
    return tern_power(*p);
}

static inline vf vf_load_e4m3(const uint8_t *p) {
    return tern_e4m3(*p);
}

static inline vf vf_load_bf16(const void *p) {
    return tern_bf16_load(p);
}

static inline vf vf_splat_f16(const void *p) {
    return vf_load_f16(p);
}

static inline vf vf_load_f16_n(const void *p, size_t n) {
    return n ? vf_load_f16(p) : 0.0f;
}
static inline vf vf_load_bf16_n(const void *p, size_t n) {
    return n ? vf_load_bf16(p) : 0.0f;
}

static inline void vf_store_f16(void *p, vf v) {
    const uint16_t half = tern_f32_to_f16(v);
    memcpy(p, &half, sizeof half);
}

static inline void vf_store_f16_n(void *p, vf v, size_t n) {
    if (n)
        vf_store_f16(p, v);
}

static inline vi vi_zero(void) {
    return 0;
}
static inline vi vi_set1(int32_t x) {
    return x;
}
static inline vi vi_add(vi a, vi b) {
    return a + b;
}
static inline vi vi_sub(vi a, vi b) {
    return a - b;
}
static inline int32_t vi_hsum(vi v) {
    return v;
}
static inline vf vi_to_f(vi v) {
    return (float)v;
}

/* |v| <= 2^22: adding 1.5 * 2^23 leaves no fraction bits, so the sum is rounded to nearest even. */
static inline vi vi_round(vf v) {
    return (int32_t)((v + 12582912.0f) - 12582912.0f);
}
static inline void vi_store_i8(int8_t *p, vi v) {
    *p = (int8_t)v;
}
static inline vi vi_load_i8(const int8_t *p) {
    return *p;
}
static inline vi vi_load_u8(const uint8_t *p) {
    return *p;
}
static inline vi vi_and(vi a, vi b) {
    return a & b;
}
static inline vi vi_srl4(vi v) {
    return (int32_t)((uint32_t)v >> 4);
}

static inline void vi_store_i16(int16_t *p, vi v) {
    *p = (int16_t)v;
}

static inline vh two_halves(int a, int b) {
    return (uint16_t)a | (uint32_t)(uint16_t)b << 16;
}

static inline vh vh_load(const int16_t *p) {
    return two_halves(p[0], p[1]);
}

static inline vh vh_load_i8(const int8_t *p) {
    return two_halves(p[0], p[1]);
}

static inline vh vh_zip_i8(const int8_t *a, const int8_t *b) {
    return two_halves(*a, *b);
}

static inline vh vh_splat2(const int16_t *p) {
    return vh_load(p);
}

static inline vw vw_zero(void) {
    return 0;
}

static inline vw vw_mac(vw sum, vh a, vh b) {
    const int32_t low = (int16_t)(uint16_t)a * (int16_t)(uint16_t)b;
    return sum + low + (int16_t)(uint16_t)(a >> 16) * (int16_t)(uint16_t)(b >> 16);
}

static inline vi vw_total(vw sum) {
    return sum;
}

static inline vi vi_sums(vi a) {
    return a;
}

static inline vb vb_load(const void *p) {
    uint32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return bytes;
}

static inline vb vb_splat4(const void *p) {
    return vb_load(p);
}
static inline vb vb_plane2(vb c, int plane) {
    return (c >> (2 * plane)) & 0x03030303u;
}
static inline vb vb_bit2(vb c, int i) {
    return (c >> i & 0x01010101u) << 1;
}
/*
 * Bytes are signed base-3 fractions; 128 more makes them unsigned. Tripling carries a digit out of
 * eight bits, so digit n is what three times the fraction tripled n times carries. Even and odd
 * bytes apart, in 16 bits: at most 255 * 81.
 */
static inline vb vb_trit(vb c, int n) {
    static const uint32_t powers[] = {1, 3, 9, 27, 81};
    const uint32_t bytes = c ^ 0x80808080u;
    const uint32_t even = (bytes & 0x00ff00ffu) * powers[n] & 0x00ff00ffu;
    const uint32_t odd = (bytes >> 8 & 0x00ff00ffu) * powers[n] & 0x00ff00ffu;
    return (even * 3 >> 8 & 0x00030003u) | (odd * 3 & 0x03000300u);
}

static inline vb vb_digit(vb c, int n) {
    return tern_trits_digit(c & 255, n) | tern_trits_digit(c >> 8 & 255, n) << 8 |
           tern_trits_digit(c >> 16 & 255, n) << 16 | tern_trits_digit(c >> 24, n) << 24;
}

static inline vb vb_nibble_lo(vb c) {
    return c & 0x0f0f0f0fu;
}
static inline vb vb_nibble_hi(vb c) {
    return (c >> 4) & 0x0f0f0f0fu;
}

static inline vb vb_join1(vb codes, vb bits, int i) {
    return codes | (bits >> i & 0x01010101u) << 4;
}

static inline vb vb_join3(vb codes, vb bits, int i) {
    return codes | (bits >> i & 0x01010101u) << 2;
}

static inline vb vb_join2(vb codes, vb bits, int plane) {
    return codes | vb_plane2(bits, plane) << 4;
}
static inline vb vb_lookup32(const uint8_t *table, vb index) {
    vb found = 0;
    for (int i = 0; i < 32; i += 8)
        found |= (vb)table[index >> i & 31] << i;
    return found;
}
static inline vb vb_lookup16(const int8_t *table, vb index) {
    vb found = 0;
    for (int i = 0; i < 32; i += 8)
        found |= (vb)(uint8_t)table[index >> i & 15] << i;
    return found;
}
static inline vb vb_set1(int x) {
    return (uint32_t)x * 0x01010101u;
}

static inline vp vp_zero(void) {
    return 0;
}

static inline int32_t signed_byte(uint32_t bytes, int i) {
    return (int8_t)(uint8_t)(bytes >> (8 * i));
}

static inline int32_t unsigned_byte(uint32_t bytes, int i) {
    return (int32_t)((bytes >> (8 * i)) & 0xffu);
}

/* Four products of at most 15 * 128. */
static inline vp vp_mac(vp sum, vb codes, vb x) {
    sum += unsigned_byte(codes, 0) * signed_byte(x, 0);
    sum += unsigned_byte(codes, 1) * signed_byte(x, 1);
    sum += unsigned_byte(codes, 2) * signed_byte(x, 2);
    return sum + unsigned_byte(codes, 3) * signed_byte(x, 3);
}

static inline vp vp_sub(vp a, vp b) {
    return a - b;
}
static inline vp vp_factors(vi v) {
    return v;
}
static inline vp vp_load_i8(const int8_t *p) {
    return *p;
}
static inline vi vi_flush_by(vi sum, vp part, vp scale) {
    return sum + part * scale;
}
static inline vi vi_flush(vi sum, vp part) {
    return sum + part;
}

/* Four products of at most 128 * 127. */
static inline vi vi_mac_ss(vi sum, vb w, vb x) {
    sum += signed_byte(w, 0) * signed_byte(x, 0);
    sum += signed_byte(w, 1) * signed_byte(x, 1);
    sum += signed_byte(w, 2) * signed_byte(x, 2);
    return sum + signed_byte(w, 3) * signed_byte(x, 3);
}

#endif
