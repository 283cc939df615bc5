/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_JOBS_H
#define TERN_RUNTIME_MODEL_LOAD_JOBS_H

/*
 * Work on whole matrices that loading notes down while it hands out memory, and that a team then
 * does in one parallel region: hundreds of regions, one a matrix, would end with threads that wait
 * for each other. Rows are cut into pieces of a MiB. A worker makes those of its own part of every
 * matrix first, the part that tern_team_split gives it, because memory lies where it was first
 * written; then it takes what workers of its node have not begun. Who makes a row changes no bit.
 */

#include "runtime/files/gguf/gguf.h"
#include "threads/team.h"

typedef struct tern_load_job tern_load_job;

/* Rows [r0, r1); r0 is a multiple of TERN_ROW_GROUP, and so is r1 but at the end. */
typedef tern_status tern_load_rows(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                                   tern_error *err);

/* The beginning of a job's own structure, which comes from malloc and belongs to the list. */
struct tern_load_job {
    tern_load_job *next;
    tern_load_rows *make;
    size_t rows, row_bytes; /* bytes of a row that is read, to cut pieces by */
    const uint8_t *source;  /* row 0 in the map of *file, whose pages are given back; or NULL */
    void *memory;           /* freed with the job; NULL: none */
    const tern_gguf *file;  /* named by errors, and the tensor, too; NULL: neither */
    const tern_gguf_tensor *tensor;
    size_t number; /* in the list */
};

typedef struct tern_load_jobs {
    tern_load_job *first, *last;
} tern_load_jobs;

/* Takes over *job, whose fields up to the tensor are set. */
void tern_load_jobs_add(tern_load_jobs *jobs, tern_load_job *job);

/*
 * Does everything that was noted and leaves the list empty. Of several errors, the one of the first
 * row of the first job is told, whatever the number of threads and their timing. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_load_jobs_run(tern_load_jobs *jobs, tern_team *team,
                                               tern_error *err);

/* Forgets what was noted. */
void tern_load_jobs_free(tern_load_jobs *jobs);

#endif
