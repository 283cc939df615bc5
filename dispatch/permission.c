/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/permission.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "dispatch/cpu.h"

#define TILES (TERN_CPU_MASK(AMXTILE) | TERN_CPU_MASK(AMXINT8))

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.16 and later; asm/prctl.h of older systems does not have them. */
enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

static bool tiles_allowed(void) {
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
static bool tiles_allowed(void) {
    return false;
}
#endif

static _Atomic uint64_t refused;

uint64_t tern_permitted_features(uint64_t features) {
    if ((features & TILES) == 0 || tiles_allowed())
        return features;
    atomic_fetch_or(&refused, features & TILES);
    return features & ~TILES;
}

uint64_t tern_refused_features(void) {
    return atomic_load(&refused);
}
