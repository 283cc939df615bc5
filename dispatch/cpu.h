/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_CPU_H
#define TERN_DISPATCH_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/processor.h"

/*
 * Processor features that kernels of the table may require, each in one line: its name in
 * kernels.toml, its bit in masks, where the processor says it, and cpuinfo's query.
 *
 * X86(word, bit, state): a bit of tern_x86_words (dispatch/features.h; Intel's manual, volume 2,
 * CPUID), and the registers that the operating system must save: NONE besides SSE's, YMM, ZMM,
 * TILES.
 * ARM(word, bit): a bit of HWCAP or HWCAP2 of Linux (asm/hwcap.h).
 * SILENT: Debian 12's cpuinfo knows neither AVX-VNNI nor AMX nor I8MM, and GFNI only beside
 * AVX-512.
 */
#define TERN_CPU_LIST(X)                                                                           \
    X(SSE41, 0, X86(leaf1_ecx, 19, NONE), cpuinfo_has_x86_sse4_1())                                \
    X(AVX2, 1, X86(leaf7_ebx, 5, YMM), cpuinfo_has_x86_avx2())                                     \
    X(F16C, 2, X86(leaf1_ecx, 29, YMM), cpuinfo_has_x86_f16c())                                    \
    X(FMA, 3, X86(leaf1_ecx, 12, YMM), cpuinfo_has_x86_fma3())                                     \
    X(AVXVNNI, 4, X86(leaf7_1_eax, 4, YMM), SILENT)                                                \
    X(AVX512F, 5, X86(leaf7_ebx, 16, ZMM), cpuinfo_has_x86_avx512f())                              \
    X(AVX512BW, 6, X86(leaf7_ebx, 30, ZMM), cpuinfo_has_x86_avx512bw())                            \
    X(AVX512VL, 7, X86(leaf7_ebx, 31, ZMM), cpuinfo_has_x86_avx512vl())                            \
    X(AVX512DQ, 8, X86(leaf7_ebx, 17, ZMM), cpuinfo_has_x86_avx512dq())                            \
    X(AVX512VNNI, 9, X86(leaf7_ecx, 11, ZMM), cpuinfo_has_x86_avx512vnni())                        \
    X(AVX512VBMI, 10, X86(leaf7_ecx, 1, ZMM), cpuinfo_has_x86_avx512vbmi())                        \
    X(GFNI, 11, X86(leaf7_ecx, 8, NONE), SILENT)                                                   \
    X(AMXTILE, 12, X86(leaf7_edx, 24, TILES), SILENT)                                              \
    X(AMXINT8, 13, X86(leaf7_edx, 25, TILES), SILENT)                                              \
    X(NEON, 32, ARM(hwcap, 1), cpuinfo_has_arm_neon())                                             \
    X(DOTPROD, 33, ARM(hwcap, 20), cpuinfo_has_arm_neon_dot())                                     \
    X(I8MM, 34, ARM(hwcap2, 13), SILENT)

enum {
#define TERN_CPU_BIT(name, bit, said, asked) TERN_CPU_BIT_##name = (bit),
    TERN_CPU_LIST(TERN_CPU_BIT)
#undef TERN_CPU_BIT
};

#define TERN_CPU_MASK(name) (UINT64_C(1) << TERN_CPU_BIT_##name)

/*
 * Features that the processor itself tells, by CPUID, or Linux on ARM. Needs no file and no memory,
 * so it also works where cpuinfo cannot start (which reads /proc and /sys; a container may lack
 * them). Its answer is the same: tests/dispatch/test_features.c compares both.
 */
uint64_t tern_cpu_own_word(void);

/* Features that cpuinfo tells, and those that it has no word for; false: it cannot start. */
bool tern_cpu_cpuinfo_word(uint64_t *features, uint64_t *silent);

/*
 * Features that this machine announces, by cpuinfo and, for what it does not tell, by itself;
 * without those that TERN_PROCESSOR lacks (dispatch/processors.h) and those that the system refuses
 * to this process (dispatch/permission.h). Thread-safe; the same value every time.
 */
uint64_t tern_cpu_announced(void);

/* Bytes of all caches of the last level together; 0 when that is not known. */
uint64_t tern_cpu_cache_bytes(void);

#endif
