/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/load/jobs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tern/kernels.h"

/* Small enough for threads to end at the same time; large enough that taking a piece and giving its
 * pages back costs nothing. */
enum { PIECE_BYTES = 1 << 20 };

typedef struct piece {
    tern_load_job *job;
    size_t r0, r1;
} piece;

/* A worker's pieces, which others may take, too. Each share has cache lines of its own. */
typedef struct share {
    _Alignas(TERN_ALIGN) size_t begin, end;
    _Atomic size_t next;
} share;

/* One run, shared by the team. */
typedef struct run {
    piece *pieces; /* those of worker 0, then of worker 1 ... */
    share *shares; /* [workers] */
    pthread_mutex_t mutex;
    piece failed; /* the first one that failed; no job: none */
    tern_error error;
} run;

void tern_load_jobs_add(tern_load_jobs *jobs, tern_load_job *job) {
    job->next = NULL;
    job->number = jobs->last != NULL ? jobs->last->number + 1 : 0;
    if (jobs->last != NULL)
        jobs->last->next = job;
    else
        jobs->first = job;
    jobs->last = job;
}

void tern_load_jobs_free(tern_load_jobs *jobs) {
    for (tern_load_job *job = jobs->first; job != NULL;) {
        tern_load_job *next = job->next;
        free(job->memory);
        free(job);
        job = next;
    }
    *jobs = (tern_load_jobs){.first = NULL};
}

/* ---- pieces -------------------------------------------------------------------------------- */

static size_t piece_rows(const tern_load_job *job) {
    const size_t groups = PIECE_BYTES / (job->row_bytes * TERN_ROW_GROUP + 1);
    return (groups > 0 ? groups : 1) * TERN_ROW_GROUP;
}

/* Writes the pieces of one worker to *out unless that is NULL; returns how many they are. */
static size_t cut(const tern_load_jobs *jobs, tern_worker worker, piece *out) {
    size_t n = 0;
    for (tern_load_job *job = jobs->first; job != NULL; job = job->next) {
        const tern_part part = tern_team_split(worker, job->rows, TERN_ROW_GROUP);
        const size_t step = piece_rows(job);
        for (size_t r = part.begin; r < part.end; r += step, n++)
            if (out != NULL)
                out[n] = (piece){job, r, part.end - r < step ? part.end : r + step};
    }
    return n;
}

/* Cuts all jobs into pieces. False: no memory. */
static bool cut_all(const tern_load_jobs *jobs, tern_team *team, run *r) {
    const uint32_t workers = tern_team_size(team);
    size_t n = 0;
    r->shares = aligned_alloc(TERN_ALIGN, workers * sizeof *r->shares);
    for (uint32_t i = 0; r->shares != NULL && i < workers; i++) {
        const tern_worker worker = {.team = team, .index = i, .count = workers};
        r->shares[i].begin = n;
        atomic_init(&r->shares[i].next, n);
        n += cut(jobs, worker, NULL);
        r->shares[i].end = n;
    }
    r->pieces = r->shares != NULL ? malloc((n + 1) * sizeof *r->pieces) : NULL;
    for (uint32_t i = 0; r->pieces != NULL && i < workers; i++) {
        const tern_worker worker = {.team = team, .index = i, .count = workers};
        (void)cut(jobs, worker, r->pieces + r->shares[i].begin);
    }
    return r->pieces;
}

/* ---- running ------------------------------------------------------------------------------- */

static bool is_before(const piece *a, const piece *b) {
    return a->job->number != b->job->number ? a->job->number < b->job->number : a->r0 < b->r0;
}

static void keep_error(run *r, const piece *p, const tern_error *error) {
    pthread_mutex_lock(&r->mutex);
    if (r->failed.job == NULL || is_before(p, &r->failed)) {
        r->failed = *p;
        r->error = *error;
    }
    pthread_mutex_unlock(&r->mutex);
}

static void make(run *r, tern_worker worker, const piece *p) {
    tern_error error = {.status = TERN_OK};
    tern_load_job *job = p->job;
    if (job->make(job, worker, p->r0, p->r1, &error) != TERN_OK)
        keep_error(r, p, &error);
    if (job->source != NULL)
        tern_gguf_drop_range(job->file, job->source + p->r0 * job->row_bytes,
                             (p->r1 - p->r0) * job->row_bytes);
}

static void run_part(tern_worker worker, void *argument) {
    run *r = argument;
    for (uint32_t i = 0; i < worker.count; i++) {
        const uint32_t owner = (worker.index + i) % worker.count;
        share *s = &r->shares[owner];
        if (!tern_team_is_near(worker, owner))
            continue; /* the thread that multiplies by those rows needs them on its own node */
        for (size_t at; (at = atomic_fetch_add(&s->next, 1)) < s->end;)
            make(r, worker, &r->pieces[at]);
    }
}

static tern_status tell(const run *r, tern_error *err) {
    const tern_load_job *job = r->failed.job;
    if (job == NULL)
        return TERN_OK;
    if (job->file == NULL)
        return tern_fail(err, r->error.status, "%s", r->error.message);
    return tern_fail(err, r->error.status, "%s: tensor %.*s: %s", tern_gguf_name(job->file),
                     (int)job->tensor->name.size, job->tensor->name.data, r->error.message);
}

tern_status tern_load_jobs_run(tern_load_jobs *jobs, tern_team *team, tern_error *err) {
    run r = {.failed = {.job = NULL}};
    tern_status status = TERN_OK;
    if (jobs->first == NULL)
        return TERN_OK;
    if (!cut_all(jobs, team, &r)) {
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory to pack weights");
    } else {
        pthread_mutex_init(&r.mutex, NULL);
        tern_team_run(team, run_part, &r);
        pthread_mutex_destroy(&r.mutex);
        status = tell(&r, err);
    }
    free(r.pieces);
    free(r.shares);
    tern_load_jobs_free(jobs);
    return status;
}
