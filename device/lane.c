/* SPDX-License-Identifier: Apache-2.0 */

#include "device/lane.h"

void tern_lane_begin(tern_lane *lane, tern_worker worker, const tern_fetching *fetching,
                     tern_stages *stages, tern_stage stage) {
    lane->worker = worker;
    lane->fetching = fetching;
    lane->due = 0;
    lane->stages = stages;
    lane->stage = lane->next = stage;
    lane->n = 0;
}

/* ---- memory that operations use ------------------------------------------------------------- */

static bool overlap(const tern_lane_use *a, const tern_lane_use *b) {
    const uintptr_t first = (uintptr_t)a->begin, second = (uintptr_t)b->begin;
    return first < second + b->bytes && second < first + a->bytes;
}

/* True if each lane uses the same part of the memory that both operations use. */
static bool alike(const tern_lane_use *a, const tern_lane_use *b) {
    return a->count > 0 && a->count == b->count && a->stride == b->stride && a->begin == b->begin;
}

static bool must_wait(const tern_lane *lane, const tern_lane_use *use) {
    for (size_t i = 0; i < lane->n; i++) {
        const tern_lane_use *before = &lane->uses[i];
        if ((before->writes || use->writes) && overlap(before, use) && !alike(before, use))
            return true;
    }
    return false;
}

static bool is_known(const tern_lane *lane, const tern_lane_use *use) {
    for (size_t i = 0; i < lane->n; i++) {
        const tern_lane_use *known = &lane->uses[i];
        if (known->begin == use->begin && known->bytes >= use->bytes && alike(known, use) &&
            known->writes == use->writes)
            return true;
    }
    return false;
}

/* True if there are other lanes, or at least stages to mark. */
static bool has_team(const tern_lane *lane) {
    return lane != NULL && lane->worker.team != NULL;
}

/* An operation begins; `meet`: returns when all lanes have come. */
static void begin_operation(tern_lane *lane, bool meet) {
    if (meet)
        tern_stage_meet(lane->stages, lane->worker, lane->stage);
    else if (lane->next != lane->stage)
        tern_stage_end(lane->stages, lane->worker, lane->stage);
    lane->stage = lane->next;
    if (meet)
        lane->n = 0;
}

void tern_lane_enter(tern_lane *lane, const tern_lane_use *uses, size_t n) {
    if (!has_team(lane))
        return;
    bool meet = lane->n + n > TERN_LANE_USES;
    for (size_t i = 0; i < n; i++)
        meet = meet || (uses[i].bytes > 0 && must_wait(lane, &uses[i]));
    begin_operation(lane, meet);
    for (size_t i = 0; i < n; i++)
        if (uses[i].bytes > 0 && !is_known(lane, &uses[i]))
            lane->uses[lane->n++] = uses[i];
}

void tern_lane_meet(tern_lane *lane) {
    if (has_team(lane))
        begin_operation(lane, lane->n > 0);
}

tern_part tern_lane_part(const tern_lane *lane, size_t count) {
    return has_team(lane) ? tern_worker_part(lane->worker, count, 1) : (tern_part){0, count};
}

/* ---- works in a row ------------------------------------------------------------------------- */

static size_t whole_units(size_t count, size_t unit) {
    return (count + unit - 1) / unit * unit;
}

static size_t within(size_t at, size_t begin, size_t count) {
    const size_t offset = at > begin ? at - begin : 0;
    return offset < count ? offset : count;
}

/* Divides the next works as one: all that are left, or one. */
static void begin_row(tern_lane_pieces *p) {
    const tern_lane_works *works = p->works;
    const tern_worker alone = {.count = 1};
    const tern_worker worker = has_team(p->lane) ? p->lane->worker : alone;
    const bool joins = worker.team == NULL || tern_team_is_on_one_node(worker);
    size_t length = 0;
    p->first = p->end;
    p->work = p->end = joins ? works->n : p->first + 1;
    for (size_t i = p->first; i < p->end; i++)
        length += whole_units(works->counts[i], works->unit);
    p->row = p->shared && worker.team != NULL ? tern_team_pieces(worker, length, works->unit)
                                              : tern_worker_piece(worker, length, works->unit);
}

tern_lane_pieces tern_lane_divide(const tern_lane *lane, const tern_lane_works *works,
                                  bool shared) {
    tern_lane_pieces pieces = {.lane = lane, .works = works, .shared = shared};
    begin_row(&pieces);
    return pieces;
}

/* The items that the range has of the next work; false: it has none of any more. */
static bool next_of_range(tern_lane_pieces *p, tern_lane_piece *piece) {
    while (p->work < p->end) {
        const size_t count = p->works->counts[p->work];
        piece->work = p->work++;
        piece->items =
            (tern_part){within(p->range.begin, p->at, count), within(p->range.end, p->at, count)};
        p->at += whole_units(count, p->works->unit);
        if (piece->items.begin < piece->items.end)
            return true;
    }
    return false;
}

bool tern_lane_next(tern_lane_pieces *p, tern_lane_piece *piece) {
    while (!next_of_range(p, piece)) {
        if (tern_pieces_next(&p->row, &p->range)) {
            p->work = p->first;
            p->at = 0;
        } else if (p->end < p->works->n) {
            begin_row(p);
        } else {
            return false;
        }
    }
    return true;
}

tern_part tern_lane_rows(const tern_lane *lane, const tern_device_rows *rows) {
    return rows->own ? (tern_part){0, rows->rows} : tern_lane_part(lane, rows->rows);
}

tern_lane_use tern_lane_use_rows(const tern_device_rows *x, const tern_device_rows *split,
                                 bool writes) {
    return (tern_lane_use){.begin = x->data,
                           .bytes =
                               x->own ? 0 : ((x->rows - 1) * x->stride + x->n) * sizeof *x->data,
                           .stride = x->stride * sizeof *x->data,
                           .count = split->own ? 0 : split->rows,
                           .writes = writes};
}

tern_lane_use tern_lane_use_all(const void *begin, size_t bytes, bool writes) {
    return (tern_lane_use){.begin = begin, .bytes = bytes, .writes = writes};
}

tern_lane_use tern_lane_use_heads(const float *begin, size_t stride, size_t dim, size_t tokens,
                                  size_t heads, bool writes) {
    const bool close = stride == heads * dim;
    return (tern_lane_use){.begin = begin,
                           .bytes = ((tokens - 1) * stride + heads * dim) * sizeof *begin,
                           .stride = close ? dim * sizeof *begin : 0,
                           .count = close ? tokens * heads : 0,
                           .writes = writes};
}
