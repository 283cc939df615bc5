/* SPDX-License-Identifier: Apache-2.0 */

#include "dispatch/cpu.h"

#include <cpuinfo.h>
#include <stdbool.h>

static uint64_t bit_if(bool present, uint64_t bit) {
    return present ? bit : 0;
}

uint64_t tern_cpu_announced(void) {
    uint64_t mask = 0;
    if (!cpuinfo_initialize())
        return 0; /* an unknown machine runs the scalar rows */
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
    mask |= bit_if(cpuinfo_has_x86_gfni(), TERN_CPU_MASK(GFNI));
    mask |= bit_if(cpuinfo_has_arm_neon(), TERN_CPU_MASK(NEON));
    mask |= bit_if(cpuinfo_has_arm_neon_dot(), TERN_CPU_MASK(DOTPROD));
    return mask;
}

const char *tern_cpu_name(void) {
    if (!cpuinfo_initialize() || cpuinfo_get_packages_count() == 0)
        return "unknown processor";
    return cpuinfo_get_package(0)->name;
}
