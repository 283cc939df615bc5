/* SPDX-License-Identifier: Apache-2.0 */

#include "device/lane.h"

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

void tern_lane_enter(tern_lane *lane, const tern_lane_use *uses, size_t n) {
    if (lane == NULL || lane->team == NULL)
        return;
    bool meet = lane->n + n > TERN_LANE_USES;
    for (size_t i = 0; i < n; i++)
        meet = meet || (uses[i].bytes > 0 && must_wait(lane, &uses[i]));
    lane->team->enter(lane->user, meet);
    if (meet)
        lane->n = 0;
    for (size_t i = 0; i < n; i++)
        if (uses[i].bytes > 0 && !is_known(lane, &uses[i]))
            lane->uses[lane->n++] = uses[i];
}

void tern_lane_meet(tern_lane *lane) {
    if (lane == NULL || lane->team == NULL)
        return;
    lane->team->enter(lane->user, lane->n > 0);
    lane->n = 0;
}

tern_part tern_lane_part(const tern_lane *lane, size_t count) {
    return lane != NULL && lane->team != NULL ? lane->team->split(lane->worker, count, 1)
                                              : (tern_part){0, count};
}

/* ---- works in a row ------------------------------------------------------------------------- */

/* Works that are divided together, and what is done with each piece. */
typedef struct row_of_works {
    tern_lane_works works;
    size_t first; /* number of the first one */
    tern_lane_piece *body;
    void *argument;
} row_of_works;

static size_t whole_units(size_t count, size_t unit) {
    return (count + unit - 1) / unit * unit;
}

static size_t length_of(const row_of_works *row) {
    size_t sum = 0;
    for (size_t i = 0; i < row->works.n; i++)
        sum += whole_units(row->works.counts[i], row->works.unit);
    return sum;
}

static size_t within(size_t at, size_t begin, size_t count) {
    const size_t offset = at > begin ? at - begin : 0;
    return offset < count ? offset : count;
}

/* Calls the body for what a piece of the row has of each work. */
static void spread(void *argument, tern_part piece) {
    const row_of_works *row = argument;
    size_t begin = 0;
    for (size_t i = 0; i < row->works.n; i++) {
        const size_t count = row->works.counts[i];
        const tern_part part = {within(piece.begin, begin, count), within(piece.end, begin, count)};
        if (part.begin < part.end)
            row->body(row->argument, row->first + i, part);
        begin += whole_units(count, row->works.unit);
    }
}

/* Works from number `first` on that are divided together: all that are left, or one. */
static row_of_works row_from(const tern_lane *lane, const tern_lane_works *works, size_t first,
                             tern_lane_piece *body, void *argument) {
    const bool joins = lane->team->joins == NULL || lane->team->joins(lane->worker);
    return (row_of_works){
        .works = {works->counts + first, joins ? works->n - first : 1, works->unit},
        .first = first,
        .body = body,
        .argument = argument};
}

/* Divides the works row by row. */
static void for_rows(const tern_lane *lane, const tern_lane_works *works, tern_lane_piece *body,
                     void *argument, void (*divide)(const tern_lane *lane, row_of_works *row)) {
    if (lane == NULL || lane->team == NULL) {
        for (size_t i = 0; i < works->n; i++)
            body(argument, i, (tern_part){0, works->counts[i]});
        return;
    }
    for (size_t i = 0; i < works->n;) {
        row_of_works row = row_from(lane, works, i, body, argument);
        divide(lane, &row);
        i += row.works.n;
    }
}

static void share_row(const tern_lane *lane, row_of_works *row) {
    lane->team->share(lane->worker, length_of(row), row->works.unit, spread, row);
}

void tern_lane_share(const tern_lane *lane, const tern_lane_works *works, tern_lane_piece *body,
                     void *argument) {
    for_rows(lane, works, body, argument, share_row);
}

static void split_row(const tern_lane *lane, row_of_works *row) {
    spread(row, lane->team->split(lane->worker, length_of(row), row->works.unit));
}

void tern_lane_parts(const tern_lane *lane, const tern_lane_works *works, tern_lane_piece *body,
                     void *argument) {
    for_rows(lane, works, body, argument, split_row);
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
