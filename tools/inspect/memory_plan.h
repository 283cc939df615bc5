/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_INSPECT_MEMORY_PLAN_H
#define TERN_TOOLS_INSPECT_MEMORY_PLAN_H

/* The memory that a model and a session of it would take, before any of it is allocated. */

#include "base/json_tree/value.h"
#include "tern/tern.h"

/* Sizes in bytes. */
typedef struct memory_plan {
    uint64_t file;     /* mapped while the model is loaded */
    uint64_t in_place; /* of the file: float matrices, which are read where they are mapped */
    uint64_t packed;
    uint64_t replicas; /* copies of hot weights on all nodes together */
    uint64_t replica;  /* one of these copies */
    uint32_t n_replicas;
    const char *no_replicas; /* why there are none; NULL: there are, or none were asked for */
    uint64_t kv;             /* keys and values: cache.bytes without the states */
    uint64_t states;         /* of delta nets; 0: there are none */
    uint32_t n_delta;        /* layers that are such nets */
    tern_session_cache_size cache;
    uint64_t scratch;
    uint64_t needed;    /* all but the file's other parts, which are dropped after packing */
    uint64_t available; /* on this machine now; 0: unknown */
    uint32_t n_ctx;
    tern_format kv_format;
} memory_plan;

/* For an open model, which may lack its weights, and the session that --ctx and --kv ask for. */
TERN_MUST_CHECK tern_status memory_plan_make(const tern_model *model,
                                             const tern_session_params *params, uint64_t in_place,
                                             memory_plan *plan, tern_error *err);

/* False only if it is known not to fit. */
bool memory_plan_fits(const memory_plan *plan);

/* Prints lines for people, with the formula of the cache and its numbers. */
void memory_plan_print(const memory_plan *plan, const tern_model_info *info);

json_t *memory_plan_json(const memory_plan *plan);

#endif
