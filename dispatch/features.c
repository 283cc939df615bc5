/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/features.h"

#include <stddef.h>

#include "dispatch/cpu.h"

/* Registers that a feature needs, as XCR0 has them: SSE and AVX; these, masks and ZMM. */
enum { STATE_NONE = 0, STATE_YMM = 0x06, STATE_ZMM = 0xE6 };

typedef struct x86_bit {
    uint64_t feature;
    size_t word; /* offset in tern_x86_words */
    unsigned bit;
    unsigned state;
} x86_bit;

#define LEAF(name) offsetof(tern_x86_words, name)

/* Intel's manual, volume 2, CPUID. */
static const x86_bit x86_bits[] = {
    {TERN_CPU_MASK(SSE41), LEAF(leaf1_ecx), 19, STATE_NONE},
    {TERN_CPU_MASK(FMA), LEAF(leaf1_ecx), 12, STATE_YMM},
    {TERN_CPU_MASK(F16C), LEAF(leaf1_ecx), 29, STATE_YMM},
    {TERN_CPU_MASK(AVX2), LEAF(leaf7_ebx), 5, STATE_YMM},
    {TERN_CPU_MASK(AVX512F), LEAF(leaf7_ebx), 16, STATE_ZMM},
    {TERN_CPU_MASK(AVX512DQ), LEAF(leaf7_ebx), 17, STATE_ZMM},
    {TERN_CPU_MASK(AVX512BW), LEAF(leaf7_ebx), 30, STATE_ZMM},
    {TERN_CPU_MASK(AVX512VL), LEAF(leaf7_ebx), 31, STATE_ZMM},
    {TERN_CPU_MASK(AVX512VBMI), LEAF(leaf7_ecx), 1, STATE_ZMM},
    {TERN_CPU_MASK(GFNI), LEAF(leaf7_ecx), 8, STATE_NONE},
    {TERN_CPU_MASK(AVX512VNNI), LEAF(leaf7_ecx), 11, STATE_ZMM},
    {TERN_CPU_MASK(AVXVNNI), LEAF(leaf7_1_eax), 4, STATE_YMM},
};

uint64_t tern_features_of_x86(const tern_x86_words *w) {
    uint64_t mask = 0;
    for (size_t i = 0; i < sizeof x86_bits / sizeof *x86_bits; i++) {
        const x86_bit *b = &x86_bits[i];
        const uint32_t word = *(const uint32_t *)((const char *)w + b->word);
        if ((word >> b->bit & 1) != 0 && (w->xcr0 & b->state) == b->state)
            mask |= b->feature;
    }
    return mask;
}

uint64_t tern_features_of_arm(uint64_t hwcap, uint64_t hwcap2) {
    enum { ASIMD = 1, ASIMDDP = 20, I8MM = 13 }; /* bits of Linux's asm/hwcap.h */
    return ((hwcap >> ASIMD & 1) != 0 ? TERN_CPU_MASK(NEON) : 0) |
           ((hwcap >> ASIMDDP & 1) != 0 ? TERN_CPU_MASK(DOTPROD) : 0) |
           ((hwcap2 >> I8MM & 1) != 0 ? TERN_CPU_MASK(I8MM) : 0);
}
