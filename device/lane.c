/* SPDX-License-Identifier: Apache-2.0 */

#include "device/lane.h"

static bool overlap(const tern_lane_use *a, const tern_lane_use *b) {
    const uintptr_t first = (uintptr_t)a->begin, second = (uintptr_t)b->begin;
    return first < second + b->bytes && second < first + a->bytes;
}

/* Whether every lane uses, of what both use, the same part. */
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

void tern_lane_share(const tern_lane *lane, size_t count, size_t unit, tern_lane_piece *body,
                     void *argument) {
    if (lane != NULL && lane->team != NULL)
        lane->team->share(lane->worker, count, unit, body, argument);
    else
        body(argument, (tern_part){0, count});
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
