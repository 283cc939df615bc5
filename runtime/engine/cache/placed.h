/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_PLACED_H
#define TERN_RUNTIME_ENGINE_CACHE_PLACED_H

/* Memory of caches and runners: one arena each, where the model's places say. */

#include "base/arena_plan.h"
#include "runtime/model/model.h"

/* Memory for so many positions. */
typedef struct tern_placed_size {
    size_t bytes;
    uint32_t positions;
    bool huge_pages;     /* as in base/arena.h */
    tern_status missing; /* where there is no memory */
} tern_placed_size;

/*
 * Maps it. TERN_OK with *refused, if it was 0, set to the errno of a place that the system refused.
 * `missing` when there is no memory; TERN_ERR_STRICT when a strict model's place is refused.
 */
TERN_MUST_CHECK tern_status tern_arena_new_placed(const tern_model *model,
                                                  const tern_placed_size *size, tern_arena *arena,
                                                  int *refused, tern_error *err);

/* What a taker that only added up came to. TERN_ERR_NOMEM when that exceeds the address space. */
TERN_MUST_CHECK tern_status tern_taker_total(const tern_taker *planner, uint32_t positions,
                                             size_t *bytes, tern_error *err);

#endif
