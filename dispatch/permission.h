/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_PERMISSION_H
#define TERN_DISPATCH_PERMISSION_H

/*
 * Features whose registers Linux gives only to processes that ask: AMX's tiles, 8 KB a thread. The
 * processor announces them all the same; a process that was not allowed dies when it uses them.
 */

#include <stdint.h>

/*
 * `features` (bits of dispatch/cpu.h) without those that the system refuses to this process. Asks
 * for tiles, for all threads from then on, if AMX is among them; asks nothing otherwise.
 */
uint64_t tern_permitted_features(uint64_t features);

/* Those that tern_permitted_features has left out, at any time. */
uint64_t tern_refused_features(void);

#endif
