/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_PROCESSORS_H
#define TERN_DISPATCH_PROCESSORS_H

/*
 * Processors by name, and which features of the table they have. TERN_PROCESSOR=NAME makes the
 * library act as on that processor, with the features that this machine has too: one that either
 * lacks is absent, so nothing faults. For tests, and to see what another machine would choose.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tern_known_processor {
    const char *name;
    uint64_t features; /* bits of dispatch/cpu.h */
} tern_known_processor;

const tern_known_processor *tern_known_processors(size_t *count);

/* Features that TERN_PROCESSOR leaves: all of them when it is not set or empty, none (scalar
 * kernels still run) for a name that is unknown, where *known becomes false. known may be NULL. */
uint64_t tern_believed_features(bool *known);

#endif
