/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_ISA_X86_BYTES_H
#define TERN_KERNELS_ISA_X86_BYTES_H

/* Verbs of bytes that SSE4.1 and AVX2 spell alike; AVX-512 has masks for some of them. */

#include "kernels/isa/x86.h"

static inline vb vb_plane2(vb c, int plane) {
    return X86_BITS(and)(plane ? X86(srli_epi16)(c, 2 * plane) : c, X86(set1_epi8)(3));
}

static inline vb vb_bit2(vb c, int i) {
    const vb moved = i > 0 ? X86(srli_epi16)(c, i - 1) : X86(slli_epi16)(c, 1);
    return X86_BITS(and)(moved, X86(set1_epi8)(2));
}

/* For matmul_ternary_masked: planes 2 and 3 moved down; an even plane; an odd one, as 4 * code. */
static inline vb vb_high4(vb c) {
    return X86(srli_epi16)(c, 4);
}

static inline vb vb_even2(vb c) {
    return X86_BITS(and)(c, X86(set1_epi8)(3));
}

static inline vb vb_odd2(vb c) {
    return X86_BITS(and)(c, X86(set1_epi8)(12));
}

/* v / 4, exact for multiples of 4. */
static inline vi vi_quarter(vi v) {
    return X86(srai_epi32)(v, 2);
}

static inline vb vb_trit(vb c, int n) {
    const vb fraction = vb_fraction(c, n);
    const vb above = X86(cmpgt_epi8)(fraction, X86(set1_epi8)(42));
    const vb not_below = X86(cmpgt_epi8)(fraction, X86(set1_epi8)(-43));
    return X86(abs_epi8)(X86(add_epi8)(above, not_below)); /* a comparison gives -1 */
}

/* Bits that a 16-bit shift moves into the neighbouring byte are masked away. */
static inline vb vb_join1(vb codes, vb bits, int i) {
    const vb moved = i < 4 ? X86(slli_epi16)(bits, 4 - i) : X86(srli_epi16)(bits, i - 4);
    return X86_BITS(or)(codes, X86_BITS(and)(moved, X86(set1_epi8)(16)));
}

static inline vb vb_join3(vb codes, vb bits, int i) {
    const vb moved = i < 2 ? X86(slli_epi16)(bits, 2 - i) : X86(srli_epi16)(bits, i - 2);
    return X86_BITS(or)(codes, X86_BITS(and)(moved, X86(set1_epi8)(4)));
}

static inline vb vb_join2(vb codes, vb bits, int plane) {
    const int left = 4 - 2 * plane;
    const vb moved = left >= 0 ? X86(slli_epi16)(bits, left) : X86(srli_epi16)(bits, -left);
    return X86_BITS(or)(codes, X86_BITS(and)(moved, X86(set1_epi8)(0x30)));
}

#endif
