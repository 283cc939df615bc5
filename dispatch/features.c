/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/features.h"

#include <stddef.h>

#include "dispatch/cpu.h"

/* Registers that a feature needs, as XCR0 has them: SSE and AVX; these, masks and ZMM; tiles. */
enum { STATE_NONE = 0, STATE_YMM = 0x06, STATE_ZMM = 0xE6, STATE_TILES = 0x60000 };

typedef enum said_by { SAID_BY_X86, SAID_BY_ARM } said_by;

typedef struct feature_bit {
    uint64_t feature;
    said_by by;
    size_t word; /* offset in tern_x86_words, or in arm_words */
    unsigned bit;
    unsigned state;
} feature_bit;

typedef struct arm_words {
    uint64_t hwcap, hwcap2;
} arm_words;

static const feature_bit bits[] = {
#define X86(word, bit, state) SAID_BY_X86, offsetof(tern_x86_words, word), (bit), STATE_##state
#define ARM(word, bit) SAID_BY_ARM, offsetof(arm_words, word), (bit), STATE_NONE
#define FEATURE_BIT(name, mask_bit, said, asked) {TERN_CPU_MASK(name), said},
    TERN_CPU_LIST(FEATURE_BIT)
#undef FEATURE_BIT
#undef ARM
#undef X86
};
enum { BITS = sizeof bits / sizeof *bits };

uint64_t tern_features_of_x86(const tern_x86_words *w) {
    uint64_t mask = 0;
    for (size_t i = 0; i < BITS; i++) {
        if (bits[i].by != SAID_BY_X86 || (w->xcr0 & bits[i].state) != bits[i].state)
            continue;
        const uint32_t word = *(const uint32_t *)((const char *)w + bits[i].word);
        if ((word >> bits[i].bit & 1) != 0)
            mask |= bits[i].feature;
    }
    return mask;
}

uint64_t tern_features_of_arm(uint64_t hwcap, uint64_t hwcap2) {
    const arm_words w = {hwcap, hwcap2};
    uint64_t mask = 0;
    for (size_t i = 0; i < BITS; i++) {
        if (bits[i].by != SAID_BY_ARM)
            continue;
        const uint64_t word = *(const uint64_t *)((const char *)&w + bits[i].word);
        if ((word >> bits[i].bit & 1) != 0)
            mask |= bits[i].feature;
    }
    return mask;
}
