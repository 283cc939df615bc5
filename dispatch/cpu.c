/* SPDX-License-Identifier: Apache-2.0 */

#include "dispatch/cpu.h"

#include <cpuinfo.h>
#include <stdbool.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static uint64_t bit_if(bool present, uint64_t bit) {
    return present ? bit : 0;
}

/* Integer matrix products of ARM: Debian 12's cpuinfo has no query for them, Linux tells. */
static bool has_arm_i8mm(void) {
#if defined(__aarch64__) && defined(HWCAP2_I8MM)
    return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#else
    return false;
#endif
}

/*
 * AVX-VNNI, which the cpuinfo of Debian 12 does not know: bit 4 of EAX in subleaf 1 of leaf 7. The
 * operating system saves the registers if it saves those of AVX2, which cpuinfo has asked XGETBV.
 */
static bool has_avxvnni(void) {
#ifdef __x86_64__
    unsigned subleaves, eax, ebx, ecx, edx;
    return cpuinfo_has_x86_avx2() && __get_cpuid_count(7, 0, &subleaves, &ebx, &ecx, &edx) &&
           subleaves >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax >> 4 & 1) != 0;
#else
    return false;
#endif
}

/*
 * Where cpuinfo has nothing to say (it reads /proc, which a container may lack): what the
 * compiler's own library finds by CPUID, or the kernel tells every process. Sets without such a
 * query, and other machines, run what is weaker.
 */
static uint64_t announced_without_files(void) {
    uint64_t mask = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    mask |= bit_if(__builtin_cpu_supports("sse4.1"), TERN_CPU_MASK(SSE41));
    mask |= bit_if(__builtin_cpu_supports("avx2"), TERN_CPU_MASK(AVX2));
    mask |= bit_if(__builtin_cpu_supports("fma"), TERN_CPU_MASK(FMA));
    /* F16C has no query in older compilers: bit 29 of ECX in leaf 1, its registers are AVX's. */
    unsigned eax, ebx, ecx, edx;
    const bool leaf = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0;
    mask |=
        bit_if(leaf && __builtin_cpu_supports("avx2") && (ecx >> 29 & 1) != 0, TERN_CPU_MASK(F16C));
    mask |= bit_if(__builtin_cpu_supports("avx512f"), TERN_CPU_MASK(AVX512F));
    mask |= bit_if(__builtin_cpu_supports("avx512bw"), TERN_CPU_MASK(AVX512BW));
    mask |= bit_if(__builtin_cpu_supports("avx512vl"), TERN_CPU_MASK(AVX512VL));
    mask |= bit_if(__builtin_cpu_supports("avx512dq"), TERN_CPU_MASK(AVX512DQ));
    mask |= bit_if(__builtin_cpu_supports("avx512vnni"), TERN_CPU_MASK(AVX512VNNI));
    mask |= bit_if(__builtin_cpu_supports("avx512vbmi"), TERN_CPU_MASK(AVX512VBMI));
    mask |= bit_if(__builtin_cpu_supports("gfni"), TERN_CPU_MASK(GFNI));
#elif defined(__aarch64__)
    mask |= bit_if((getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0, TERN_CPU_MASK(NEON));
    mask |= bit_if((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0, TERN_CPU_MASK(DOTPROD));
    mask |= bit_if(has_arm_i8mm(), TERN_CPU_MASK(I8MM));
#endif
    return mask;
}

uint64_t tern_cpu_announced(void) {
    uint64_t mask = 0;
    if (!cpuinfo_initialize())
        return announced_without_files();
    mask |= bit_if(cpuinfo_has_x86_sse4_1(), TERN_CPU_MASK(SSE41));
    mask |= bit_if(cpuinfo_has_x86_avx2(), TERN_CPU_MASK(AVX2));
    mask |= bit_if(cpuinfo_has_x86_f16c(), TERN_CPU_MASK(F16C));
    mask |= bit_if(cpuinfo_has_x86_fma3(), TERN_CPU_MASK(FMA));
    mask |= bit_if(has_avxvnni(), TERN_CPU_MASK(AVXVNNI));
    mask |= bit_if(cpuinfo_has_x86_avx512f(), TERN_CPU_MASK(AVX512F));
    mask |= bit_if(cpuinfo_has_x86_avx512bw(), TERN_CPU_MASK(AVX512BW));
    mask |= bit_if(cpuinfo_has_x86_avx512vl(), TERN_CPU_MASK(AVX512VL));
    mask |= bit_if(cpuinfo_has_x86_avx512dq(), TERN_CPU_MASK(AVX512DQ));
    mask |= bit_if(cpuinfo_has_x86_avx512vnni(), TERN_CPU_MASK(AVX512VNNI));
    mask |= bit_if(cpuinfo_has_x86_avx512vbmi(), TERN_CPU_MASK(AVX512VBMI));
    mask |= bit_if(cpuinfo_has_x86_gfni(), TERN_CPU_MASK(GFNI));
    mask |= bit_if(cpuinfo_has_arm_neon(), TERN_CPU_MASK(NEON));
    mask |= bit_if(cpuinfo_has_arm_neon_dot(), TERN_CPU_MASK(DOTPROD));
    mask |= bit_if(has_arm_i8mm(), TERN_CPU_MASK(I8MM));
    return mask;
}

const char *tern_cpu_name(void) {
    if (!cpuinfo_initialize() || cpuinfo_get_packages_count() == 0)
        return "unknown processor";
    return cpuinfo_get_package(0)->name;
}

uint64_t tern_cpu_cache_bytes(void) {
    uint64_t third = 0, second = 0;
    if (!cpuinfo_initialize())
        return 0;
    for (uint32_t i = 0; i < cpuinfo_get_l3_caches_count(); i++)
        third += cpuinfo_get_l3_cache(i)->size;
    for (uint32_t i = 0; i < cpuinfo_get_l2_caches_count(); i++)
        second += cpuinfo_get_l2_cache(i)->size;
    return third > 0 ? third : second;
}
