/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_OWN_CPU_H
#define TERN_DISPATCH_OWN_CPU_H

#include <stdint.h>

/*
 * The name and the caches of a processor, where cpuinfo does not tell: it cannot start, or the
 * build has none (TERN_CPUINFO, cmake/Dependencies.cmake). No answer depends on either.
 */

/* By CPUID; "unknown processor" where that has no name, and on other architectures. */
const char *tern_cpu_own_name(void);

/*
 * Bytes of all caches of the last level together, as Linux describes them below `folder`:
 * /sys/devices/system/cpu. 0 when that is not known.
 */
uint64_t tern_cpu_own_cache_bytes(const char *folder);

#endif
