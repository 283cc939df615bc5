/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_FEATURES_H
#define TERN_DISPATCH_FEATURES_H

/*
 * Turns what a processor says of itself into bits of dispatch/cpu.h. Pure functions, of every
 * architecture on every machine, so that tests can forge processors.
 */

#include <stdint.h>

/* Registers of CPUID, and of XGETBV: which registers the operating system saves. */
typedef struct tern_x86_words {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx, leaf7_ecx, leaf7_edx;
    uint32_t leaf7_1_eax; /* 0 without that subleaf */
    uint64_t xcr0;        /* 0 without OSXSAVE */
} tern_x86_words;

uint64_t tern_features_of_x86(const tern_x86_words *w);

/* HWCAP and HWCAP2 of Linux on aarch64. */
uint64_t tern_features_of_arm(uint64_t hwcap, uint64_t hwcap2);

#endif
