/* SPDX-License-Identifier: Apache-2.0 */

#include "dispatch/cpu.h"

#include <cpuinfo.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#include "dispatch/features.h"
#include "dispatch/processors.h"

#if defined(__x86_64__)
uint64_t tern_cpu_own_word(void) {
    enum { OSXSAVE = 1 << 27 };
    tern_x86_words w = {0};
    unsigned eax, ebx, ecx, edx, subleaves;
    if (!__get_cpuid(1, &eax, &ebx, &w.leaf1_ecx, &edx))
        return 0;
    if ((w.leaf1_ecx & OSXSAVE) != 0) {
        __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
        w.xcr0 = (uint64_t)edx << 32 | eax;
    }
    if (__get_cpuid_count(7, 0, &subleaves, &w.leaf7_ebx, &w.leaf7_ecx, &edx) && subleaves >= 1)
        (void)__get_cpuid_count(7, 1, &w.leaf7_1_eax, &ebx, &ecx, &edx);
    return tern_features_of_x86(&w);
}
#elif defined(__aarch64__)
uint64_t tern_cpu_own_word(void) {
    return tern_features_of_arm(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}
#else
uint64_t tern_cpu_own_word(void) {
    return 0;
}
#endif

static uint64_t bit_if(bool present, uint64_t bit) {
    return present ? bit : 0;
}

bool tern_cpu_cpuinfo_word(uint64_t *features, uint64_t *silent) {
    uint64_t mask = 0;
    if (!cpuinfo_initialize())
        return false;
    mask |= bit_if(cpuinfo_has_x86_sse4_1(), TERN_CPU_MASK(SSE41));
    mask |= bit_if(cpuinfo_has_x86_avx2(), TERN_CPU_MASK(AVX2));
    mask |= bit_if(cpuinfo_has_x86_f16c(), TERN_CPU_MASK(F16C));
    mask |= bit_if(cpuinfo_has_x86_fma3(), TERN_CPU_MASK(FMA));
    mask |= bit_if(cpuinfo_has_x86_avx512f(), TERN_CPU_MASK(AVX512F));
    mask |= bit_if(cpuinfo_has_x86_avx512bw(), TERN_CPU_MASK(AVX512BW));
    mask |= bit_if(cpuinfo_has_x86_avx512vl(), TERN_CPU_MASK(AVX512VL));
    mask |= bit_if(cpuinfo_has_x86_avx512dq(), TERN_CPU_MASK(AVX512DQ));
    mask |= bit_if(cpuinfo_has_x86_avx512vnni(), TERN_CPU_MASK(AVX512VNNI));
    mask |= bit_if(cpuinfo_has_x86_avx512vbmi(), TERN_CPU_MASK(AVX512VBMI));
    mask |= bit_if(cpuinfo_has_arm_neon(), TERN_CPU_MASK(NEON));
    mask |= bit_if(cpuinfo_has_arm_neon_dot(), TERN_CPU_MASK(DOTPROD));
    *features = mask;
    /* Debian 12's knows neither AVX-VNNI nor I8MM, and GFNI only beside AVX-512. */
    *silent = TERN_CPU_MASK(AVXVNNI) | TERN_CPU_MASK(I8MM) | TERN_CPU_MASK(GFNI);
    return true;
}

uint64_t tern_cpu_announced(void) {
    const uint64_t own = tern_cpu_own_word();
    uint64_t features, silent;
    if (tern_cpu_cpuinfo_word(&features, &silent))
        features |= own & silent;
    else
        features = own;
    return features & tern_believed_features(NULL);
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
