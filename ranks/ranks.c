/* SPDX-License-Identifier: Apache-2.0 */

#include "ranks/ranks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/os/os.h"

struct tern_ranks {
    tern_ranks_opened opened;
    pthread_mutex_t mutex;
    tern_ranks_work work;
    tern_error broken;  /* of the first exchange that failed; TERN_OK: none did */
    _Atomic bool is_lost; /* `broken` is there, and stays */
};

/* ---- opening ------------------------------------------------------------------------------- */

bool tern_ranks_are_started(void) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *text = getenv(sizes[i]);
        if (text != NULL && strtol(text, NULL, 10) > 1)
            return true;
    }
    return false;
}

static tern_status open_way(const char *how, double limit, tern_ranks_opened *out,
                            tern_error *err) {
    char *end;
    if (strcmp(how, "mpi") == 0)
        return tern_ranks_open_mpi(limit, out, err);
    const long n = strtol(how, &end, 10);
    if (end == how || *end != '\0' || n < 1 || n > TERN_RANKS_MOST)
        return tern_fail(err, TERN_ERR_ARG,
                         "ranks: %s is neither \"mpi\" nor a number from 1 to %d", how,
                         (int)TERN_RANKS_MOST);
    return tern_ranks_open_local((uint32_t)n, limit, out, err);
}

tern_status tern_ranks_open(const char *how, double limit, tern_ranks **out, tern_error *err) {
    if (how == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_ranks_open needs a way and a place");
    tern_ranks *r = calloc(1, sizeof *r);
    *out = NULL;
    if (r == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for ranks");
    const tern_status status = open_way(how, limit, &r->opened, err);
    if (status != TERN_OK) {
        free(r);
        return status;
    }
    pthread_mutex_init(&r->mutex, NULL);
    *out = r;
    return TERN_OK;
}

void tern_ranks_free(tern_ranks **ranks) {
    tern_ranks *r = ranks != NULL ? *ranks : NULL;
    if (r == NULL)
        return;
    const bool met = r->work.gathers > 0; /* others wait for those that never came */
    r->opened.way->close(r->opened.self, r->broken.status != TERN_OK || !met);
    pthread_mutex_destroy(&r->mutex);
    free(r);
    *ranks = NULL;
}

uint32_t tern_ranks_rank(const tern_ranks *r) {
    return r->opened.rank;
}
uint32_t tern_ranks_size(const tern_ranks *r) {
    return r->opened.size;
}

/* True if the process may use every processor of the machine, or that is not known. */
static bool has_all_processors(void) {
    uint32_t *allowed, n;
    if (!tern_os_allowed_processors(&allowed, &n))
        return true;
    free(allowed);
    return n >= sysconf(_SC_NPROCESSORS_ONLN);
}

uint32_t tern_ranks_share(const tern_ranks *r, uint32_t threads) {
    if (!has_all_processors())
        return threads;
    return threads > r->opened.here ? threads / r->opened.here : 1;
}

tern_ranks_work tern_ranks_done(const tern_ranks *r) {
    return r->work;
}
void tern_ranks_lock(tern_ranks *r) {
    pthread_mutex_lock(&r->mutex);
}
void tern_ranks_unlock(tern_ranks *r) {
    pthread_mutex_unlock(&r->mutex);
}

/* ---- exchanges ----------------------------------------------------------------------------- */

/* The outcome of an exchange: the first failure stays. */
static tern_status keep(tern_ranks *r, tern_status status, const tern_error *failure,
                        tern_error *err) {
    if (status == TERN_OK)
        return TERN_OK;
    if (r->broken.status == TERN_OK) {
        r->broken = *failure;
        atomic_store_explicit(&r->is_lost, true, memory_order_release);
    }
    return tern_fail(err, r->broken.status, "%s", r->broken.message);
}

tern_status tern_ranks_check(const tern_ranks *r, tern_error *err) {
    return atomic_load_explicit(&r->is_lost, memory_order_acquire)
               ? tern_fail(err, r->broken.status, "%s", r->broken.message)
               : TERN_OK;
}

/* Counts a gather, of which this rank received what it did not give itself. */
static void count(tern_ranks *r, const tern_ranks_rows *rows, int to, double seconds,
                  double waiting) {
    const uint32_t rank = r->opened.rank;
    const size_t all = rows->bounds[r->opened.size] - rows->bounds[0];
    const size_t own = rows->bounds[rank + 1] - rows->bounds[rank];
    r->work.gathers++;
    r->work.seconds += seconds;
    r->work.waiting += waiting;
    if (to == TERN_RANKS_TO_ALL || (uint32_t)to == rank)
        r->work.bytes += rows->rows * (all - own);
}

tern_status tern_ranks_gather(tern_ranks *r, const tern_ranks_rows *rows, int to, tern_error *err) {
    tern_error failure = {0};
    double waiting = 0.0;
    tern_status status = tern_ranks_check(r, err);
    if (status != TERN_OK)
        return status;
    const double begin = tern_clock_seconds();
    status = r->opened.way->gather(r->opened.self, rows, to, &waiting, &failure);
    count(r, rows, to, tern_clock_seconds() - begin, waiting);
    return keep(r, status, &failure, err);
}

tern_status tern_ranks_collect(tern_ranks *r, void *all, size_t bytes, tern_error *err) {
    size_t bounds[TERN_RANKS_MOST + 1];
    for (size_t i = 0; i <= r->opened.size; i++)
        bounds[i] = i * bytes;
    const tern_ranks_rows rows = {
        .data = all, .rows = 1, .stride = bounds[r->opened.size], .bounds = bounds};
    return tern_ranks_gather(r, &rows, TERN_RANKS_TO_ALL, err);
}

tern_status tern_ranks_broadcast(tern_ranks *r, void *data, size_t bytes, bool idle,
                                 tern_error *err) {
    tern_error failure = {0};
    tern_status status = tern_ranks_check(r, err);
    if (status != TERN_OK)
        return status;
    status = r->opened.way->broadcast(r->opened.self, data, bytes, idle, &failure);
    return keep(r, status, &failure, err);
}

tern_status tern_ranks_agree(tern_ranks *r, tern_status status, tern_error *err) {
    tern_error all[TERN_RANKS_MOST] = {{.status = TERN_OK}};
    tern_error *own = &all[r->opened.rank];
    if (err != NULL && status != TERN_OK)
        *own = *err;
    own->status = status;
    const tern_status met = tern_ranks_collect(r, all, sizeof *all, err);
    if (met != TERN_OK)
        return met;
    for (uint32_t i = 0; status == TERN_OK && i < r->opened.size; i++)
        if (all[i].status != TERN_OK)
            return tern_fail(err, all[i].status, "rank %u: %.480s", i, all[i].message);
    return status;
}
