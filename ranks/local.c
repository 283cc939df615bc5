/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranks as copies of one process, which share memory. A gather goes through an area to which every
 * rank copies its columns and from which it copies those of the others. There are two areas that
 * take turns, so a rank fills one while others may still read the other. What does not fit goes in
 * several turns.
 */

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "ranks/ranks.h"

enum { AREA_BYTES = 4 << 20, LINE = 64 };

/* The counts of turns of one rank, written by it alone. */
typedef struct line {
    _Alignas(LINE) atomic_uint_least64_t put; /* turns whose columns lie in the area */
    atomic_uint_least64_t got;                /* turns that it has read */
} line;

typedef struct shared {
    line lines[TERN_RANKS_MOST];
    _Alignas(LINE) unsigned char areas[2][AREA_BYTES];
} shared;

typedef struct local {
    shared *memory;
    uint32_t rank, size, polls;
    double limit;
    uint64_t turn; /* the number of the next one, from 1 on */
    pid_t parent;
    pid_t children[TERN_RANKS_MOST]; /* of rank 0; 0: none, or it has ended */
} local;

/* ---- waiting ------------------------------------------------------------------------------- */

static tern_status lost(uint32_t rank, const char *why, long number, tern_error *err) {
    return tern_fail(err, TERN_ERR_RANKS, "rank %u %s %ld", rank, why, number);
}

/* Tells if a rank has ended without coming so far: rank 0 looks at its copies, these look at
 * rank 0, and end with it where another copy is lost. */
static tern_status check_alive(local *l, uint32_t other, const atomic_uint_least64_t *count,
                               uint64_t least, tern_error *err) {
    int state = 0;
    if (l->rank > 0)
        return other > 0 || getppid() == l->parent
                   ? TERN_OK
                   : lost(0, "has ended: process", (long)l->parent, err);
    if (other == 0 || waitpid(l->children[other], &state, WNOHANG) != l->children[other] ||
        atomic_load_explicit(count, memory_order_acquire) >= least)
        return TERN_OK;
    l->children[other] = 0;
    return WIFSIGNALED(state) ? lost(other, "was ended by signal", WTERMSIG(state), err)
                              : lost(other, "ended with exit status", WEXITSTATUS(state), err);
}

/* Returns when a count of rank `other` has come so far. limit 0: there is none. */
static tern_status wait_for(local *l, const atomic_uint_least64_t *count, uint64_t least,
                            uint32_t other, double limit, tern_error *err) {
    tern_ranks_wait wait = {.polls = l->polls};
    double seconds = 0.0;
    while (atomic_load_explicit(count, memory_order_acquire) < least) {
        if (!tern_ranks_pass_time(&wait, &seconds))
            continue;
        const tern_status status = check_alive(l, other, count, least, err);
        if (status != TERN_OK)
            return status;
        if (limit > 0.0 && seconds > limit)
            return lost(other, "does not answer; seconds waited:", (long)seconds, err);
    }
    return TERN_OK;
}

/* Waits until all ranks have read the area of this turn, when it was last used. */
static tern_status wait_for_area(local *l, tern_error *err) {
    tern_status status = TERN_OK;
    for (uint32_t i = 0; status == TERN_OK && l->turn > 2 && i < l->size; i++)
        status = wait_for(l, &l->memory->lines[i].got, l->turn - 2, i, l->limit, err);
    return status;
}

static void mark(atomic_uint_least64_t *count, uint64_t turn) {
    atomic_store_explicit(count, turn, memory_order_release);
}

/* ---- gathers ------------------------------------------------------------------------------- */

/* Copies the columns of one rank between the rows and the area, where rows lie side by side. */
static void copy_columns(const tern_ranks_rows *r, uint32_t rank, unsigned char *area, bool out) {
    const size_t first = r->bounds[rank], n = r->bounds[rank + 1] - first;
    const size_t width = r->stride;
    for (size_t i = 0; n > 0 && i < r->rows; i++) {
        unsigned char *mine = (unsigned char *)r->data + i * r->stride + first;
        unsigned char *shared_row = area + i * width + first;
        memcpy(out ? shared_row : mine, out ? mine : shared_row, n);
    }
}

/* One turn: rows that fit into an area. */
static tern_status gather_some(local *l, const tern_ranks_rows *r, int to, double *waiting,
                               tern_error *err) {
    unsigned char *area = l->memory->areas[l->turn % 2];
    const bool reads = to == TERN_RANKS_TO_ALL || (uint32_t)to == l->rank;
    tern_status status = wait_for_area(l, err);
    if (status != TERN_OK)
        return status;
    copy_columns(r, l->rank, area, true);
    mark(&l->memory->lines[l->rank].put, l->turn);
    for (uint32_t i = 0; status == TERN_OK && reads && i < l->size; i++) {
        if (i == l->rank || r->bounds[i] == r->bounds[i + 1])
            continue;
        const double begin = tern_clock_seconds();
        status = wait_for(l, &l->memory->lines[i].put, l->turn, i, l->limit, err);
        *waiting += tern_clock_seconds() - begin;
        if (status == TERN_OK)
            copy_columns(r, i, area, false);
    }
    mark(&l->memory->lines[l->rank].got, l->turn++);
    return status;
}

static tern_status gather(void *self, const tern_ranks_rows *r, int to, double *waiting,
                          tern_error *err) {
    local *l = self;
    const size_t most = r->stride > 0 ? AREA_BYTES / r->stride : 0;
    tern_status status = TERN_OK;
    if (most == 0)
        return tern_fail(err, TERN_ERR_RANKS, "ranks: a row of %zu bytes, at most %d are possible",
                         r->stride, (int)AREA_BYTES);
    for (size_t i = 0, n; status == TERN_OK && i < r->rows; i += n) {
        n = r->rows - i < most ? r->rows - i : most;
        const tern_ranks_rows some = {.data = (unsigned char *)r->data + i * r->stride,
                                      .rows = n,
                                      .stride = r->stride,
                                      .bounds = r->bounds};
        status = gather_some(l, &some, to, waiting, err);
    }
    return status;
}

static tern_status broadcast(void *self, void *data, size_t bytes, bool idle, tern_error *err) {
    local *l = self;
    tern_status status = TERN_OK;
    for (size_t at = 0, n; status == TERN_OK && at < bytes; at += n, l->turn++) {
        unsigned char *area = l->memory->areas[l->turn % 2], *piece = (unsigned char *)data + at;
        n = bytes - at < AREA_BYTES ? bytes - at : AREA_BYTES;
        status = wait_for_area(l, err);
        if (status == TERN_OK && l->rank == 0) {
            memcpy(area, piece, n);
            mark(&l->memory->lines[0].put, l->turn);
        } else if (status == TERN_OK) {
            status = wait_for(l, &l->memory->lines[0].put, l->turn, 0, idle ? 0.0 : l->limit, err);
            if (status == TERN_OK)
                memcpy(piece, area, n);
        }
        mark(&l->memory->lines[l->rank].got, l->turn);
    }
    return status;
}

/* ---- opening and closing ------------------------------------------------------------------- */

/* Waits for the copies, at most as long as an answer may take; ends those that are left. */
static void end_children(local *l, bool broken) {
    for (uint32_t i = 1; i < l->size; i++) {
        tern_ranks_wait wait = {.polls = 0};
        double seconds = 0.0;
        if (l->children[i] == 0)
            continue;
        while (!broken && waitpid(l->children[i], NULL, WNOHANG) == 0 && seconds < l->limit)
            (void)tern_ranks_pass_time(&wait, &seconds);
        if (kill(l->children[i], SIGKILL) == 0)
            (void)waitpid(l->children[i], NULL, 0);
    }
}

static void close_local(void *self, bool broken) {
    local *l = self;
    if (l->rank == 0)
        end_children(l, broken);
    (void)munmap(l->memory, sizeof *l->memory);
    free(l);
}

/* A copy ends when the first process does, whatever ends that. */
static void become_child(local *l, uint32_t rank) {
    l->rank = rank;
    tern_os_end_with_parent();
    if (getppid() != l->parent)
        _exit(1);
}

static tern_status copy_process(local *l, tern_error *err) {
    l->parent = getpid();
    for (uint32_t i = 1; i < l->size; i++) {
        const pid_t child = fork();
        if (child == 0) {
            become_child(l, i);
            return TERN_OK;
        }
        if (child < 0)
            return tern_fail(err, TERN_ERR_NOMEM, "ranks: no process for rank %u: %s", i,
                             strerror(errno));
        l->children[i] = child;
    }
    return TERN_OK;
}

tern_status tern_ranks_open_local(uint32_t size, double limit, tern_ranks_opened *out,
                                  tern_error *err) {
    static const tern_ranks_way way = {gather, broadcast, close_local};
    local *l = calloc(1, sizeof *l);
    void *memory = l == NULL ? MAP_FAILED
                             : mmap(NULL, sizeof *l->memory, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(l);
        return tern_fail(err, TERN_ERR_NOMEM, "ranks: no memory to share");
    }
    *l = (local){
        .memory = memory, .size = size, .polls = tern_ranks_polls(size), .limit = limit, .turn = 1};
    const tern_status status = copy_process(l, err);
    if (status != TERN_OK) {
        close_local(l, true);
        return status;
    }
    *out = (tern_ranks_opened){.way = &way, .self = l, .rank = l->rank, .size = size, .here = size};
    return TERN_OK;
}
