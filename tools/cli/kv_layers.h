/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_KV_LAYERS_H
#define TERN_TOOLS_CLI_KV_LAYERS_H

/* Sequences keep keys and values of some layers, and states of the others. */

#include "tern/tern.h"

typedef struct kept_layers {
    uint32_t n;      /* layers that keep keys and values */
    uint32_t deltas; /* gated delta nets, which keep a state instead */
    uint64_t states; /* bytes of a sequence's states, and what aligns them */
} kept_layers;

/* For a cache of that format, which sessions of the model may have; also for a model without its
 * weights. */
kept_layers kept_layers_of(const tern_model *model, tern_format kv);

#endif
