/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/permission.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/os/os.h"
#include "dispatch/cpu.h"

#define TILES (TERN_CPU_MASK(AMXTILE) | TERN_CPU_MASK(AMXINT8))

static _Atomic uint64_t refused;

uint64_t tern_permitted_features(uint64_t features) {
    if ((features & TILES) == 0 || tern_os_allow_tiles())
        return features;
    atomic_fetch_or(&refused, features & TILES);
    return features & ~TILES;
}

uint64_t tern_refused_features(void) {
    return atomic_load(&refused);
}
