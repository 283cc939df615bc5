/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_LANE_H
#define TERN_RUNTIME_ENGINE_FORWARD_LANE_H

/*
 * A worker of a team as a lane of the processor (device/lane.h), with the marks of its stages.
 * Steps say which stage they are; where a stage ends follows from the operations: at their next
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
    tern_stage next;     /* of those that come */
    const tern_fetching *fetching;
    uint64_t due; /* of tern_fetch_ask */
} tern_team_lane;

/* The lane of a worker within a running body, whose first operations are of that stage. What it
 * asks memory for ahead is borrowed. */
void tern_team_lane_begin(tern_team_lane *lane, tern_worker worker, const tern_fetching *fetching,
                          tern_stages *stages, tern_stage stage);

#endif
