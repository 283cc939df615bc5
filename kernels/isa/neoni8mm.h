/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_NEONI8MM_H
#define TERN_ISA_NEONI8MM_H

/*
 * NEON with matrix products of bytes: smmla multiplies 2 rows x 8 columns of codes by 2 tokens x
 * 8 columns of activations and adds the four sums, (row 0, token 0), (row 0, token 1), (row 1,
 * token 0), (row 1, token 1), in 32 bits. Twice the products of an sdot.
 *
 * The R16 layouts hold 4 columns of 4 rows in 16 bytes. Two such vectors, of neighbouring columns,
 * are zipped by 4 bytes into two operands of 2 rows x 8 columns.
 */

#include "kernels/isa/neon_float.h"

#define TERN_SS_BIAS 0

static inline vb vb_load(const void *p) {
    return vld1q_s8((const int8_t *)p);
}

/* Bits 2-7 of each byte. */
static inline vb vb_srl2(vb c) {
    return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(c), 2));
}

/* Rows 0 and 1, or 2 and 3, of four columns in a and the next four in b. */
static inline vb vb_rows01(vb a, vb b) {
    return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}
static inline vb vb_rows23(vb a, vb b) {
    return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}

/* The lower, or the upper, 8 columns of two tokens. */
static inline vb vb_tokens_lo(vb a, vb b) {
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
static inline vb vb_tokens_hi(vb a, vb b) {
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

/* Eight products a lane: at most 8 * 2 * 128 for 2-bit codes, so a row stays below 2^24. */
static inline vi vi_mmla(vi sum, vb rows, vb tokens) {
    return vmmlaq_s32(sum, rows, tokens);
}

/* The sums of rows 0-3 for the first, or the second, token. */
static inline vi vi_first_token(vi rows01, vi rows23) {
    return vuzp1q_s32(rows01, rows23);
}
static inline vi vi_second_token(vi rows01, vi rows23) {
    return vuzp2q_s32(rows01, rows23);
}

#endif
