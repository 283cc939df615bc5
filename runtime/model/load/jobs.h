/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_JOBS_H
#define TERN_RUNTIME_MODEL_LOAD_JOBS_H

/*
 * Work on whole matrices. Loading lists the jobs, and a team then does all of them in one parallel
 * region: hundreds of regions, one for each matrix, would each end with threads that wait for each
 * other. Rows are cut into pieces of a MiB. A worker first makes the pieces of its own part of
 * every matrix, the part that tern_team_split gives it, because memory lies where it was first
 * written. Then it takes pieces that other workers of its node have not begun. No bit depends on
 * who makes a row.
 */

#include "runtime/files/gguf/gguf.h"
#include "threads/team.h"

typedef struct tern_load_job tern_load_job;

/* Makes rows [r0, r1). r0 is a multiple of TERN_ROW_GROUP, and so is r1 unless it is the end. */
typedef tern_status tern_load_rows(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                                   tern_error *err);

/* The beginning of a job's own structure, which comes from malloc and belongs to the list. */
struct tern_load_job {
    tern_load_job *next;
    tern_load_rows *make;
    size_t rows, row_bytes; /* bytes read for a row, by which pieces are cut */
    const uint8_t *source;  /* row 0 in the map of *file, whose pages are given back; or NULL */
    void *memory;           /* freed with the job; NULL: none */
    const tern_gguf *file;  /* errors name it and the tensor; NULL: neither */
    const tern_gguf_tensor *tensor;
    size_t number; /* in the list */
};

typedef struct tern_load_jobs {
    tern_load_job *first, *last;
} tern_load_jobs;

/* Takes over *job, whose fields up to the tensor are set. */
void tern_load_jobs_add(tern_load_jobs *jobs, tern_load_job *job);

/* Does all jobs and leaves the list empty. Of several errors it reports the one of the first row of
 * the first job, whatever the number of threads and their timing. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_load_jobs_run(tern_load_jobs *jobs, tern_team *team,
                                               tern_error *err);

/* Frees the jobs without doing them. */
void tern_load_jobs_free(tern_load_jobs *jobs);

#endif
