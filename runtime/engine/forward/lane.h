/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_LANE_H
#define TERN_RUNTIME_ENGINE_FORWARD_LANE_H

/*
 * A worker of a team as a lane of the processor (device/lane.h), with the marks of its stages. A
 * step names its stage; the end of a stage follows from the operations: it is at their next
 * meeting, or where the next stage begins.
 */

#include "device/lane.h"
#include "runtime/engine/forward/stages.h"
#include "threads/fetch.h"
#include "threads/team.h"

typedef struct tern_team_lane {
    tern_lane lane;
    tern_stages *stages; /* NULL: no measurement */
    tern_stage stage;    /* of the operations so far */
    tern_stage next;     /* of the operations to come */
    const tern_fetching *fetching;
    uint64_t due; /* see tern_fetch_ask */
} tern_team_lane;

/* Makes the lane of a worker within a running body. Its first operations belong to `stage`.
 * `fetching` is borrowed. */
void tern_team_lane_begin(tern_team_lane *lane, tern_worker worker, const tern_fetching *fetching,
                          tern_stages *stages, tern_stage stage);

#endif
