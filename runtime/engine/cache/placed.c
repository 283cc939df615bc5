/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/cache/placed.h"

#include "threads/bind.h"

tern_status tern_arena_new_placed(const tern_model *model, const tern_placed_size *size,
                                  tern_arena *arena, int *refused, tern_error *err) {
    if (tern_arena_new(size->bytes, size->huge_pages, arena, NULL) != TERN_OK)
        return tern_fail(err, size->missing, "%s: cannot map %zu bytes for %u positions",
                         tern_status_str(size->missing), size->bytes, size->positions);
    return tern_model_note_refusal(
        model, tern_place_memory(model->topology, &model->places, arena->base, size->bytes),
        refused, err);
}

tern_status tern_taker_total(const tern_taker *planner, uint32_t positions, size_t *bytes,
                             tern_error *err) {
    if (planner->overflow)
        return tern_fail(err, TERN_ERR_NOMEM, "a session of %u positions exceeds the address space",
                         positions);
    *bytes = planner->bytes;
    return TERN_OK;
}
