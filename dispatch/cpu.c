/* SPDX-License-Identifier: Apache-2.0 */

#include "dispatch/cpu.h"

#ifdef TERN_HAVE_CPUINFO
#include <cpuinfo.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "base/os/os.h"
#include "dispatch/features.h"
#include "dispatch/own_cpu.h"
#include "dispatch/permission.h"
#include "dispatch/processors.h"

#define CPU_FOLDER "/sys/devices/system/cpu"

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
    if (__get_cpuid_count(7, 0, &subleaves, &w.leaf7_ebx, &w.leaf7_ecx, &w.leaf7_edx) &&
        subleaves >= 1)
        (void)__get_cpuid_count(7, 1, &w.leaf7_1_eax, &ebx, &ecx, &edx);
    return tern_features_of_x86(&w);
}
#elif defined(__aarch64__)
uint64_t tern_cpu_own_word(void) {
    unsigned long words[2];
    tern_os_arm_features(words);
    return tern_features_of_arm(words[0], words[1]);
}
#else
uint64_t tern_cpu_own_word(void) {
    return 0;
}
#endif

#ifdef TERN_HAVE_CPUINFO
/* An answer of cpuinfo: false, true, or that it has no such question. */
enum { SILENT = 2 };

static void note(int answer, uint64_t feature, uint64_t *features, uint64_t *silent) {
    *features |= answer == true ? feature : 0;
    *silent |= answer == SILENT ? feature : 0;
}

bool tern_cpu_cpuinfo_word(uint64_t *features, uint64_t *silent) {
    *features = *silent = 0;
    if (!cpuinfo_initialize())
        return false;
#define ASK(name, bit, said, asked) note((asked), TERN_CPU_MASK(name), features, silent);
    TERN_CPU_LIST(ASK)
#undef ASK
    return true;
}
#else
bool tern_cpu_cpuinfo_word(uint64_t *features, uint64_t *silent) {
    *features = *silent = 0;
    return false;
}
#endif

uint64_t tern_cpu_announced(void) {
    const uint64_t own = tern_cpu_own_word();
    uint64_t features, silent;
    if (tern_cpu_cpuinfo_word(&features, &silent))
        features |= own & silent;
    else
        features = own;
    return tern_permitted_features(features & tern_believed_features(NULL));
}

const char *tern_cpu_feature_name(uint64_t features) {
    static const struct {
        const char *name;
        uint64_t bit;
    } known[] = {
#define FEATURE(name, bit, said, asked) {#name, TERN_CPU_MASK(name)},
        TERN_CPU_LIST(FEATURE)
#undef FEATURE
    };
    const uint64_t first = features & (0 - features);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].bit == first)
            return known[i].name;
    return NULL;
}

#ifdef TERN_HAVE_CPUINFO
const char *tern_cpu_name(void) {
    if (!cpuinfo_initialize() || cpuinfo_get_packages_count() == 0)
        return tern_cpu_own_name();
    return cpuinfo_get_package(0)->name;
}

uint64_t tern_cpu_cache_bytes(void) {
    uint64_t third = 0, second = 0;
    if (!cpuinfo_initialize())
        return tern_cpu_own_cache_bytes(CPU_FOLDER);
    for (uint32_t i = 0; i < cpuinfo_get_l3_caches_count(); i++)
        third += cpuinfo_get_l3_cache(i)->size;
    for (uint32_t i = 0; i < cpuinfo_get_l2_caches_count(); i++)
        second += cpuinfo_get_l2_cache(i)->size;
    return third > 0 ? third : second;
}
#else
const char *tern_cpu_name(void) {
    return tern_cpu_own_name();
}

uint64_t tern_cpu_cache_bytes(void) {
    return tern_cpu_own_cache_bytes(CPU_FOLDER);
}
#endif
