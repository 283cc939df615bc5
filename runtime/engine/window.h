/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_WINDOW_H
#define TERN_RUNTIME_ENGINE_WINDOW_H

/*
 * Pages of layers with a window for the jobs of a schedule: a job has those that its next token
 * sees, and no others.
 *
 * Each job has a quota, the number of pages that it may have at once, and all quotas together are
 * at most all pages. The part of a quota that is not in use stays promised. A page that jobs share
 * counts once as used, but in the quota of each job that has it. So when a job leaves a page to
 * others it gets the promise of another page, and no job ever lacks a page because of other jobs.
 */

#include "runtime/engine/cache/pages.h"

/* The job has pages[first] to pages[end - 1]. */
typedef struct tern_job_window {
    uint32_t *pages; /* the sequence's table */
    uint32_t first, end;
    uint32_t known; /* pages before pages[known] have known content */
    uint32_t quota;
} tern_job_window;

/* The most pages that a job of this many positions has at once, when a pass has up to n_batch rows;
 * window >= 1. */
uint32_t tern_window_quota(uint32_t window, uint32_t n_batch, uint32_t positions);

/* Gives a job without pages its quota, and as part of it known pages: those from pages[first] to
 * pages[end - 1]. If the quota cannot be promised, the result is false and nothing changes. */
bool tern_window_open(tern_pages *p, tern_job_window *w, uint32_t quota, uint32_t first,
                      uint32_t end);

/* Takes pages up to `end`, within the quota. */
void tern_window_take(tern_pages *p, tern_job_window *w, uint32_t end);

/* Makes the next page known: it holds the content of the key. */
void tern_window_know(tern_pages *p, tern_job_window *w, const tern_page_key *key);

/* Leaves the pages before `first`, which are known. */
void tern_window_leave(tern_pages *p, tern_job_window *w, uint32_t first);

/* Leaves all pages and gives the quota back. */
void tern_window_close(tern_pages *p, tern_job_window *w);

#endif
