/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_CPU_H
#define TERN_DISPATCH_CPU_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Processor features that rows of the kernel table may require. The names are the ones that
 * kernels.toml uses; cpu.c maps cpuinfo to them and is the only file that includes <cpuinfo.h>.
 */
#define TERN_CPU_LIST(X)                                                                           \
    X(SSE41, 0)                                                                                    \
    X(AVX2, 1)                                                                                     \
    X(F16C, 2)                                                                                     \
    X(FMA, 3)                                                                                      \
    X(AVXVNNI, 4)                                                                                  \
    X(AVX512F, 5)                                                                                  \
    X(AVX512BW, 6)                                                                                 \
    X(AVX512VL, 7)                                                                                 \
    X(AVX512DQ, 8)                                                                                 \
    X(AVX512VNNI, 9)                                                                               \
    X(AVX512VBMI, 10)                                                                              \
    X(GFNI, 11)                                                                                    \
    X(NEON, 32)                                                                                    \
    X(DOTPROD, 33)                                                                                 \
    X(I8MM, 34)

enum {
#define TERN_CPU_BIT(name, bit) TERN_CPU_BIT_##name = (bit),
    TERN_CPU_LIST(TERN_CPU_BIT)
#undef TERN_CPU_BIT
};

#define TERN_CPU_MASK(name) (UINT64_C(1) << TERN_CPU_BIT_##name)

/*
 * Features that the processor itself tells, by CPUID, or Linux on ARM. Needs no file and no memory,
 * so it is what is left where cpuinfo cannot start (it reads /proc and /sys, which a container may
 * lack), and it is the same: test_select holds both together.
 */
uint64_t tern_cpu_own_word(void);

/* Features that cpuinfo tells, and those that it has no word for; false: it cannot start. */
bool tern_cpu_cpuinfo_word(uint64_t *features, uint64_t *silent);

/*
 * Features that this machine announces, by cpuinfo and, for what it does not tell, by itself;
 * without those that TERN_PROCESSOR lacks (dispatch/processors.h). Thread-safe; the same value
 * every time.
 */
uint64_t tern_cpu_announced(void);

/*
 * The announced features whose instruction sets have been executed here and gave the right result
 * (dispatch/proof.h); executed at the first call. Thread-safe; the same value every time.
 */
uint64_t tern_cpu_features(void);

/* Processor name for reports ("AMD EPYC", ...); static storage, never NULL. */
const char *tern_cpu_name(void);

/* Bytes of all caches of the last level together; 0 when that is not known. */
uint64_t tern_cpu_cache_bytes(void);

#endif
