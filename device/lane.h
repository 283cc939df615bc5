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
#include "threads/fetch.h"
#include "threads/stages.h"

/* Memory that an operation reads or writes. */
typedef struct tern_lane_use {
    const void *begin;
    size_t bytes; /* 0: none, or a lane's own */
    /* Lane i has the items that `split` gives it of `count`, `stride` bytes apart. 0: any lane may
     * use any part. */
    size_t stride, count;
    bool writes;
} tern_lane_use;

enum { TERN_LANE_USES = 32, TERN_LANE_USES_OF_OP = 16 };

/* A stream of the processor. All zero but for worker.count = 1: a stream without a team, which
 * meets no other. */
typedef struct tern_lane {
    tern_worker worker;
    const tern_fetching *fetching; /* what is asked for before a product; NULL: nothing */
    uint64_t due;                  /* see tern_fetch_ask */
    /*
     * The stages that operations count towards. An operation that begins another stage ends the one
     * before it, at its meeting if it has one.
     */
    tern_stages *stages;                /* NULL: no measurement */
    tern_stage stage;                   /* of the operations so far */
    tern_stage next;                    /* of the operations to come */
    tern_lane_use uses[TERN_LANE_USES]; /* since all lanes met */
    size_t n;
} tern_lane;

/* Makes the lane of a worker within a running body. Its first operations belong to `stage`.
 * Everything is borrowed; stages may be NULL. */
void tern_lane_begin(tern_lane *lane, tern_worker worker, const tern_fetching *fetching,
                     tern_stages *stages, tern_stage stage);

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

/*
 * Works whose items stand in a row, each in whole units: the rows of q, k and v. They are divided
 * as one, so that a lane begins once to read from memory, not once for each of them. Where workers
 * are on several nodes each work is divided by itself, so that rows stay with the worker that
 * packed them.
 */
typedef struct tern_lane_works {
    const size_t *counts; /* [n] items of each */
    size_t n, unit;
} tern_lane_works;

/* Items [items.begin, items.end) of work number `work`. */
typedef struct tern_lane_piece {
    size_t work;
    tern_part items;
} tern_lane_piece;

/* The lane's pieces of works, one after another. The works must outlive it. */
typedef struct tern_lane_pieces {
    const tern_lane *lane;
    const tern_lane_works *works;
    bool shared;
    size_t first, end; /* works that are divided as one: first .. end - 1 */
    tern_pieces row;   /* of these */
    tern_part range;   /* of the row, being handed out */
    size_t work, at;   /* the next work of the range, and where in the row it begins */
} tern_lane_pieces;

/*
 * Pieces in whole units which cover all items once over all lanes: with `shared` those that no
 * other lane has taken yet, otherwise the lane's part, which is what it is given before others take
 * from it.
 *
 *     tern_lane_pieces pieces = tern_lane_divide(lane, &works, true);
 *     for (tern_lane_piece piece; tern_lane_next(&pieces, &piece);)
 *         ...
 */
tern_lane_pieces tern_lane_divide(const tern_lane *lane, const tern_lane_works *works, bool shared);
bool tern_lane_next(tern_lane_pieces *pieces, tern_lane_piece *piece);

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
