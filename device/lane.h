/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_LANE_H
#define TERN_DEVICE_LANE_H

/*
 * How the threads of a team share the operations of a processor. Each worker has a stream of its
 * own, a lane, and calls the same operations in the same order; an operation does that lane's
 * share. Items that share no sum (rows, heads, groups of matrix rows) are divided, so neither the
 * number of lanes nor the division changes a bit.
 *
 * The order of a stream is kept as if there were one lane. A lane remembers which memory has been
 * used since all lanes met, and in which shares; an operation first meets the others where it
 * reads or overwrites what another lane may have written, or overwrites what another lane may
 * still read. So a row that is normed and then quantized by the same lane needs no waiting. All
 * lanes remember the same, so all of them meet, or none does.
 *
 * A single row cannot be divided. Operations on it take microseconds, less than a meeting of all
 * lanes: so each lane may have such a row for itself (`own` of tern_device_rows), in memory that
 * no other lane uses. It then computes all of it, and that is not remembered.
 */

#include "tern/device.h"
#include "tern/team.h"

/* Memory that an operation reads or writes. */
typedef struct tern_lane_use {
    const void *begin;
    size_t bytes; /* 0: none, or a lane's own */
    /* Lane i has the items that `split` gives it of `count`, `stride` bytes apart. 0: any lane may
     * use any part. */
    size_t stride, count;
    bool writes;
} tern_lane_use;

/* A piece of works that are done together: items of work number `work`. */
typedef void tern_lane_piece(void *argument, size_t work, tern_part piece);

/* Works whose items stand in a row, each in whole units: the rows of q, k and v. */
typedef struct tern_lane_works {
    const size_t *counts; /* [n] items of each */
    size_t n, unit;
} tern_lane_works;

/* Services that a team offers its lanes. */
typedef struct tern_lane_team {
    /* An operation begins; `meet`: returns when all lanes have come. */
    void (*enter)(void *user, bool meet);
    /* A product comes, of which the lane reads `bytes` from `begin` on, whatever others still
     * write: memory may be asked for them. NULL: nobody asks. */
    void (*fetch)(void *user, const void *begin, size_t bytes);
    /* The part of `count` items that is the worker's, in whole units. */
    tern_part (*split)(tern_worker worker, size_t count, size_t unit);
    /* Calls `body` for pieces, in whole units, which cover all items once over all lanes. */
    void (*share)(tern_worker worker, size_t count, size_t unit,
                  void (*body)(void *argument, tern_part piece), void *argument);
    /* True if works in a row are divided as one. A lane then begins once to read from memory, not
     * once for each of them. Where workers are on several nodes each work is divided by itself, so
     * that rows stay with the worker that packed them. NULL: it is. */
    bool (*joins)(tern_worker worker);
} tern_lane_team;

enum { TERN_LANE_USES = 32, TERN_LANE_USES_OF_OP = 16 };

/* A stream of the processor. All zero but for worker.count = 1: a stream without a team. */
typedef struct tern_lane {
    const tern_lane_team *team; /* NULL: there is one lane, which meets no other */
    void *user;                 /* of team->enter and team->fetch */
    tern_worker worker;
    tern_lane_use uses[TERN_LANE_USES]; /* since all lanes met */
    size_t n;
} tern_lane;

/* The lane of a stream, which may be NULL. */
static inline tern_lane *tern_lane_of(tern_device_stream *stream) {
    return (tern_lane *)stream;
}
static inline tern_device_stream *tern_lane_stream(tern_lane *lane) {
    return (tern_device_stream *)lane;
}

/* Begins an operation that uses memory so; n <= TERN_LANE_USES_OF_OP. */
void tern_lane_enter(tern_lane *lane, const tern_lane_use *uses, size_t n);

/* Meets the others, if anything was used since. */
void tern_lane_meet(tern_lane *lane);

/* The lane's part of `count` items. */
tern_part tern_lane_part(const tern_lane *lane, size_t count);

/* Calls `body` for the lane's pieces of these works. */
void tern_lane_share(const tern_lane *lane, const tern_lane_works *works, tern_lane_piece *body,
                     void *argument);

/* Calls `body` for the lane's parts of these works: what it is given before others take pieces. */
void tern_lane_parts(const tern_lane *lane, const tern_lane_works *works, tern_lane_piece *body,
                     void *argument);

/* The rows that a lane computes: its part, or all where they are its own. */
tern_part tern_lane_rows(const tern_lane *lane, const tern_device_rows *rows);

/* Rows that an operation uses by row: as tern_lane_rows divides the rows of `split`. */
tern_lane_use tern_lane_use_rows(const tern_device_rows *x, const tern_device_rows *split,
                                 bool writes);

/* Memory of which any lane may use any part. */
tern_lane_use tern_lane_use_all(const void *begin, size_t bytes, bool writes);

/* Heads of tokens, head h of token t at begin + t*stride + h*dim floats, divided head by head. */
tern_lane_use tern_lane_use_heads(const float *begin, size_t stride, size_t dim, size_t tokens,
                                  size_t heads, bool writes);

#endif
