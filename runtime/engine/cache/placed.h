/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_PLACED_H
#define TERN_RUNTIME_ENGINE_CACHE_PLACED_H

/* Memory of caches and runners: one arena each, on the model's memory places. */

#include "base/arena_plan.h"
#include "runtime/model/model.h"

/* Memory for a number of positions. */
typedef struct tern_placed_size {
    size_t bytes;
    uint32_t positions;
    bool huge_pages;     /* as in base/arena.h */
    tern_status missing; /* the status when there is no memory */
} tern_placed_size;

/*
 * Maps the memory. When the system refuses a place, the result is TERN_OK and *refused, if it was
 * 0, becomes the errno. `missing` when there is no memory; TERN_ERR_STRICT when a strict model's
 * place is refused.
 */
TERN_MUST_CHECK tern_status tern_arena_new_placed(const tern_model *model,
                                                  const tern_placed_size *size, tern_arena *arena,
                                                  int *refused, tern_error *err);

/* Bytes that a planning taker has added up. TERN_ERR_NOMEM when they exceed the address space. */
TERN_MUST_CHECK tern_status tern_taker_total(const tern_taker *planner, uint32_t positions,
                                             size_t *bytes, tern_error *err);

#endif
