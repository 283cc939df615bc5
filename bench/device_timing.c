/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/device_timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "kernels/reference_fill.h"

enum { ROUNDS = 7, LEAST_ROUNDS = 3, MOST_CALLS = 1 << 20 };

#define ROUND_SECONDS 0.02
#define CASE_SECONDS 1.0

/* ---- rounds -------------------------------------------------------------------------------- */

typedef struct timed {
    tern_device *d;
    tern_device_stream *stream;
    tern_device_queue_fn *queue;
    void *operands;
} timed;

/* Seconds that `calls` calls take, from the start of the first one to the end of the last one. */
static tern_status run(const timed *t, size_t calls, double *seconds, tern_error *err) {
    const double begin = tern_clock_seconds();
    tern_status status = TERN_OK;

    for (size_t i = 0; status == TERN_OK && i < calls; i++)
        status = t->queue(t->operands, err);
    if (status == TERN_OK)
        status = t->d->ops->stream_sync(t->d, t->stream, err);
    *seconds = tern_clock_seconds() - begin;
    return status;
}

/* Finds how many calls make a round. */
static tern_status find_calls(const timed *t, size_t *calls, tern_error *err) {
    double seconds = 0.0;
    tern_status status = TERN_OK;

    for (*calls = 1; status == TERN_OK && *calls < MOST_CALLS; *calls *= 4) {
        status = run(t, *calls, &seconds, err);
        if (seconds < ROUND_SECONDS / 4)
            continue;
        *calls = (size_t)((double)*calls * ROUND_SECONDS / seconds) + 1;
        break;
    }
    return status;
}

tern_status tern_device_measure(tern_device *d, tern_device_stream *stream,
                                tern_device_queue_fn *queue, void *operands, tern_device_time *time,
                                tern_error *err) {
    const timed t = {d, stream, queue, operands};
    const double begin = tern_clock_seconds();
    tern_latencies rounds = {.added = 0};
    double seconds = 0.0;
    size_t calls = 0;
    tern_status status = find_calls(&t, &calls, err);

    while (status == TERN_OK && rounds.added < ROUNDS &&
           (rounds.added < LEAST_ROUNDS || tern_clock_seconds() - begin < CASE_SECONDS)) {
        status = run(&t, calls, &seconds, err);
        tern_latencies_add(&rounds, seconds);
    }
    if (status != TERN_OK)
        return status;
    tern_latencies_sort(&rounds);
    const double median = tern_latencies_percentile(&rounds, 0.5);
    const double range = rounds.seconds[rounds.added - 1] - rounds.seconds[0];
    *time = (tern_device_time){.calls = calls,
                               .rounds = rounds.added,
                               .seconds = median / (double)calls,
                               .spread = range / median};
    return TERN_OK;
}

/* ---- the roof ------------------------------------------------------------------------------ */

enum {
    ROW_FLOATS = 2048,
    PIECE_ROWS = 512, /* 4 MiB: the same numbers in every piece */
    PIECE_FLOATS = PIECE_ROWS * ROW_FLOATS,
    PIECES = 128
};

typedef struct copying {
    tern_device *d;
    tern_device_stream *stream;
    float *piece, *got; /* on the host */
    size_t pieces;
    tern_device_rows from, to;
} copying;

static tern_status queue_copy(void *operands, tern_error *err) {
    const copying *c = operands;

    return c->d->ops->copy(c->d, c->stream, &c->from, &c->to, err);
}

static tern_status make(copying *c, tern_error *err) {
    const size_t bytes = PIECE_FLOATS * sizeof(float), rows = c->pieces * PIECE_ROWS;
    uint64_t random = 1;
    void *from = NULL, *to = NULL;
    tern_status status = TERN_OK;

    c->piece = malloc(bytes);
    c->got = malloc(bytes);
    if (c->piece == NULL || c->got == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the copy");
    for (size_t i = 0; i < PIECE_FLOATS; i++)
        c->piece[i] = (float)(tern_ref_random(&random) >> 40);
    status = c->d->ops->alloc(c->d, c->pieces * bytes, &from, err);
    if (status == TERN_OK)
        status = c->d->ops->alloc(c->d, c->pieces * bytes, &to, err);
    c->from = (tern_device_rows){.data = from, .stride = ROW_FLOATS, .n = ROW_FLOATS, .rows = rows};
    c->to = (tern_device_rows){.data = to, .stride = ROW_FLOATS, .n = ROW_FLOATS, .rows = rows};
    for (size_t i = 0; status == TERN_OK && i < c->pieces; i++)
        status = c->d->ops->upload(c->d, c->stream, c->from.data + i * PIECE_FLOATS, c->piece,
                                   bytes, err);
    return status;
}

static tern_status check(const copying *c, tern_error *err) {
    const size_t bytes = PIECE_FLOATS * sizeof(float);
    tern_status status = TERN_OK;

    for (size_t i = 0; status == TERN_OK && i < c->pieces; i++) {
        status =
            c->d->ops->download(c->d, c->stream, c->got, c->to.data + i * PIECE_FLOATS, bytes, err);
        if (status == TERN_OK && memcmp(c->piece, c->got, bytes) != 0)
            status = tern_fail(err, TERN_ERR_DEVICE, "copy: another number arrived");
    }
    return status;
}

static void drop(copying *c) {
    (void)c->d->ops->stream_sync(c->d, c->stream, NULL); /* the first error was reported */
    (void)c->d->ops->free(c->d, c->from.data, NULL);
    (void)c->d->ops->free(c->d, c->to.data, NULL);
    free(c->piece);
    free(c->got);
}

tern_status tern_device_roof(tern_device *d, tern_device_stream *stream, bool small, double *roof,
                             tern_error *err) {
    copying c = {.d = d, .stream = stream, .pieces = small ? 1 : PIECES};
    tern_device_time time = {0};
    tern_status status = make(&c, err);

    *roof = 0.0;
    if (status == TERN_OK)
        status = queue_copy(&c, err);
    if (status == TERN_OK)
        status = check(&c, err);
    if (status == TERN_OK && !small)
        status = tern_device_measure(d, stream, queue_copy, &c, &time, err);
    if (status == TERN_OK && !small)
        *roof = 2.0 * (double)(c.pieces * PIECE_FLOATS * sizeof(float)) / time.seconds;
    drop(&c);
    return status;
}
