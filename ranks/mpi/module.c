/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranks as processes of MPI's world, the module libtern-mpi.so. Exchanges are sends and receives
 * between pairs, not MPI's collectives: so a wait has a limit and knows whom it waits for, and a
 * rank that waits for rank 0 to have something to do can sleep.
 */

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "ranks/ranks.h"

typedef struct world {
    MPI_Comm comm;
    int rank, size;
    uint32_t polls;
    double limit;
} world;

enum { TAG_GATHER = 1, TAG_BROADCAST = 2 };

/* Transfers that have begun, at most one to and one from every rank. */
typedef struct transfers {
    MPI_Request requests[2 * TERN_RANKS_MOST];
    int ranks[2 * TERN_RANKS_MOST];
    int n;
    int code; /* of the first call that failed */
} transfers;

static void note(transfers *t, int code) {
    if (t->code == MPI_SUCCESS)
        t->code = code;
}

static void begin_send(const world *w, transfers *t, const void *data, int count, MPI_Datatype type,
                       int rank, int tag) {
    t->ranks[t->n] = rank;
    note(t, MPI_Isend(data, count, type, rank, tag, w->comm, &t->requests[t->n++]));
}

static void begin_receive(const world *w, transfers *t, void *data, int count, MPI_Datatype type,
                          int rank, int tag) {
    t->ranks[t->n] = rank;
    note(t, MPI_Irecv(data, count, type, rank, tag, w->comm, &t->requests[t->n++]));
}

/* ---- waiting ------------------------------------------------------------------------------- */

static tern_status failed(int code, tern_error *err) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    return tern_fail(err, TERN_ERR_RANKS, "mpi: %s", text);
}

/* The first rank with which a transfer has not ended. */
static int unfinished(const transfers *t) {
    for (int i = 0; i < t->n; i++) {
        int done = 1;
        if (t->requests[i] != MPI_REQUEST_NULL &&
            MPI_Request_get_status(t->requests[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
            !done)
            return t->ranks[i];
    }
    return 0;
}

/* Returns when all transfers have ended. limit 0: there is none. */
static tern_status finish(const world *w, transfers *t, double limit, tern_error *err) {
    tern_ranks_wait wait = {.polls = w->polls};
    double seconds = 0.0;
    int done = 0;
    while (t->code == MPI_SUCCESS) {
        note(t, MPI_Testall(t->n, t->requests, &done, MPI_STATUSES_IGNORE));
        if (done)
            break;
        if (tern_ranks_pass_time(&wait, &seconds) && limit > 0.0 && seconds > limit)
            return tern_fail(err, TERN_ERR_RANKS, "rank %d does not answer; seconds waited: %.0f",
                             unfinished(t), seconds);
    }
    return t->code == MPI_SUCCESS ? TERN_OK : failed(t->code, err);
}

/* ---- exchanges ----------------------------------------------------------------------------- */

/* The columns of one rank in all rows, as MPI describes them. */
static MPI_Datatype columns_of(const tern_ranks_rows *r, int rank, transfers *t) {
    MPI_Datatype type = MPI_BYTE;
    const size_t n = r->bounds[rank + 1] - r->bounds[rank];
    note(t, MPI_Type_create_hvector((int)r->rows, (int)n, (MPI_Aint)r->stride, MPI_BYTE, &type));
    note(t, MPI_Type_commit(&type));
    return type;
}

static bool has_columns(const tern_ranks_rows *r, int rank) {
    return r->bounds[rank + 1] > r->bounds[rank];
}

static unsigned char *first_of(const tern_ranks_rows *r, int rank) {
    return (unsigned char *)r->data + r->bounds[rank];
}

static tern_status gather(void *self, const tern_ranks_rows *r, int to, double *waiting,
                          tern_error *err) {
    const world *w = self;
    MPI_Datatype types[TERN_RANKS_MOST];
    transfers t = {.code = MPI_SUCCESS};
    if (r->rows > INT_MAX || r->stride > INT_MAX)
        return tern_fail(err, TERN_ERR_RANKS, "mpi: %zu rows of %zu bytes are too many", r->rows,
                         r->stride);
    for (int i = 0; i < w->size; i++)
        types[i] = columns_of(r, i, &t);
    for (int i = 0; i < w->size; i++)
        if (i != w->rank && has_columns(r, i) && (to == TERN_RANKS_TO_ALL || to == w->rank))
            begin_receive(w, &t, first_of(r, i), 1, types[i], i, TAG_GATHER);
    for (int i = 0; has_columns(r, w->rank) && i < w->size; i++)
        if (i != w->rank && (to == TERN_RANKS_TO_ALL || to == i))
            begin_send(w, &t, first_of(r, w->rank), 1, types[w->rank], i, TAG_GATHER);
    const double begin = tern_clock_seconds();
    const tern_status status = finish(w, &t, w->limit, err);
    *waiting += tern_clock_seconds() - begin;
    for (int i = 0; i < w->size; i++)
        (void)MPI_Type_free(&types[i]);
    return status;
}

static tern_status broadcast_piece(const world *w, void *data, int bytes, bool idle,
                                   tern_error *err) {
    transfers t = {.code = MPI_SUCCESS};
    for (int i = 1; w->rank == 0 && i < w->size; i++)
        begin_send(w, &t, data, bytes, MPI_BYTE, i, TAG_BROADCAST);
    if (w->rank > 0)
        begin_receive(w, &t, data, bytes, MPI_BYTE, 0, TAG_BROADCAST);
    return finish(w, &t, idle && w->rank > 0 ? 0.0 : w->limit, err);
}

static tern_status broadcast(void *self, void *data, size_t bytes, bool idle, tern_error *err) {
    enum { PIECE = 1 << 30 };
    tern_status status = TERN_OK;
    for (size_t at = 0, n; status == TERN_OK && at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        status = broadcast_piece(self, (unsigned char *)data + at, (int)n, idle, err);
    }
    return status;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static void close_world(void *self, bool broken) {
    world *w = self;
    if (broken)
        (void)MPI_Abort(w->comm, 1);
    (void)MPI_Finalize();
    free(w);
}

static uint32_t ranks_here(const world *w) {
    MPI_Comm here = MPI_COMM_NULL;
    int size = 1;
    if (MPI_Comm_split_type(w->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) ==
        MPI_SUCCESS) {
        (void)MPI_Comm_size(here, &size);
        (void)MPI_Comm_free(&here);
    }
    return (uint32_t)size;
}

static tern_status open_world(double limit, tern_ranks_opened *out, tern_error *err) {
    static const tern_ranks_way way = {gather, broadcast, close_world};
    int level = MPI_THREAD_SINGLE;
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    world *w = calloc(1, sizeof *w);
    if (code != MPI_SUCCESS || w == NULL || level < MPI_THREAD_SERIALIZED) {
        free(w);
        return tern_fail(err, TERN_ERR_DEVICE, "mpi: it cannot be used by one of several threads");
    }
    *w = (world){.comm = MPI_COMM_WORLD, .limit = limit};
    (void)MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(w->comm, &w->rank);
    (void)MPI_Comm_size(w->comm, &w->size);
    if (w->size > TERN_RANKS_MOST) {
        (void)MPI_Finalize();
        tern_status status = tern_fail(err, TERN_ERR_ARG, "mpi: %d ranks, at most %d are possible",
                                       w->size, (int)TERN_RANKS_MOST);
        free(w);
        return status;
    }
    const uint32_t here = ranks_here(w);
    w->polls = tern_ranks_polls(here);
    *out = (tern_ranks_opened){
        .way = &way, .self = w, .rank = (uint32_t)w->rank, .size = (uint32_t)w->size, .here = here};
    return TERN_OK;
}

extern const tern_ranks_module tern_ranks_module_info;
__attribute__((visibility("default")))
const tern_ranks_module tern_ranks_module_info = {TERN_VERSION, open_world};
