/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/lane.h"

static void enter(void *user, bool meet) {
    tern_team_lane *l = user;
    if (meet)
        tern_stage_meet(l->stages, l->lane.worker, l->stage);
    else if (l->next != l->stage)
        tern_stage_end(l->stages, l->lane.worker, l->stage);
    l->stage = l->next;
}

static void fetch(void *user, const void *begin, size_t bytes) {
    tern_team_lane *l = user;
    (void)tern_fetch_ask(l->fetching, begin, bytes, &l->due);
}

static void share(tern_worker worker, size_t count, size_t unit,
                  void (*body)(void *argument, tern_part piece), void *argument) {
    tern_pieces pieces = tern_team_pieces(worker, count, unit);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);)
        body(argument, piece);
}

void tern_team_lane_begin(tern_team_lane *lane, tern_worker worker, const tern_fetching *fetching,
                          tern_stages *stages, tern_stage stage) {
    static const tern_lane_team team = {.enter = enter,
                                        .split = tern_team_split,
                                        .share = share,
                                        .joins = tern_team_is_on_one_node};
    static const tern_lane_team asking = {.enter = enter,
                                          .fetch = fetch,
                                          .split = tern_team_split,
                                          .share = share,
                                          .joins = tern_team_is_on_one_node};
    lane->lane.team = fetching->ahead > 0 ? &asking : &team;
    lane->fetching = fetching;
    lane->due = 0;
    lane->lane.user = lane;
    lane->lane.worker = worker;
    lane->lane.n = 0;
    lane->stages = stages;
    lane->stage = lane->next = stage;
}
