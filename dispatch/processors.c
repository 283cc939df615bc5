/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/processors.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"

#define HAS(name) TERN_CPU_MASK(name)
#define HASWELL (HAS(SSE41) | HAS(AVX2) | HAS(F16C) | HAS(FMA))
#define KNIGHTS_LANDING (HASWELL | HAS(AVX512F))
#define SKYLAKE_X (KNIGHTS_LANDING | HAS(AVX512BW) | HAS(AVX512VL) | HAS(AVX512DQ))
#define CASCADE_LAKE (SKYLAKE_X | HAS(AVX512VNNI))
#define ICE_LAKE (CASCADE_LAKE | HAS(AVX512VBMI) | HAS(GFNI))
#define ZEN5 (ICE_LAKE | HAS(AVXVNNI))
#define SAPPHIRE_RAPIDS (ZEN5 | HAS(AMXTILE) | HAS(AMXINT8))
#define CORTEX_A76 (HAS(NEON) | HAS(DOTPROD))
#define NEOVERSE_V1 (CORTEX_A76 | HAS(I8MM))

/* From the makers' manuals. Where processors of two names have the same, both stand here. */
static const tern_known_processor processors[] = {
    {"scalar", 0},
    {"nehalem", HAS(SSE41)},
    {"sandy-bridge", HAS(SSE41)},
    {"ivy-bridge", HAS(SSE41) | HAS(F16C)},
    {"tremont", HAS(SSE41) | HAS(GFNI)},
    {"haswell", HASWELL},
    {"knights-landing", KNIGHTS_LANDING},
    {"skylake-x", SKYLAKE_X},
    {"cascade-lake", CASCADE_LAKE},
    {"ice-lake", ICE_LAKE},
    {"alder-lake", HASWELL | HAS(AVXVNNI) | HAS(GFNI)},
    {"sapphire-rapids", SAPPHIRE_RAPIDS},
    {"granite-rapids", SAPPHIRE_RAPIDS},
    {"zen1", HASWELL},
    {"zen2", HASWELL},
    {"zen3", HASWELL},
    {"zen4", ICE_LAKE},
    {"zen5", ZEN5},
    {"cortex-a53", HAS(NEON)},
    {"cortex-a76", CORTEX_A76},
    {"neoverse-n1", CORTEX_A76},
    {"neoverse-v1", NEOVERSE_V1},
    {"neoverse-v2", NEOVERSE_V1},
    {"apple-m1", CORTEX_A76},
    {"apple-m2", NEOVERSE_V1},
};

const tern_known_processor *tern_known_processors(size_t *count) {
    *count = sizeof processors / sizeof *processors;
    return processors;
}

uint64_t tern_believed_features(bool *known) {
    const char *name = getenv("TERN_PROCESSOR");
    const bool all = name == NULL || *name == '\0';
    const tern_known_processor *found = NULL;
    for (size_t i = 0; !all && i < sizeof processors / sizeof *processors; i++)
        if (strcmp(processors[i].name, name) == 0)
            found = &processors[i];
    if (known != NULL)
        *known = all || found != NULL;
    return all ? UINT64_MAX : found != NULL ? found->features : 0;
}
