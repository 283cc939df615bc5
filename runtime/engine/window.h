/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_WINDOW_H
#define TERN_RUNTIME_ENGINE_WINDOW_H

/*
 * Pages of layers with a window, as jobs of a schedule have them: those that the job's next token
 * sees, and no others.
 *
 * Each job has a quota, so many pages that it may have at once, and all quotas together are at most
 * all pages. What of them is not in use stays promised. A page that jobs share counts once as used,
 * but in the quota of each job that has it: so whoever leaves a page to others has the promise of
 * another one, and no job ever lacks a page because of what others do.
 */

#include "runtime/engine/cache/pages.h"

/* Pages pages[first] to pages[end - 1] are the job's. */
typedef struct tern_job_window {
    uint32_t *pages; /* the sequence's table */
    uint32_t first, end;
    uint32_t known; /* the content of those before pages[known] is known */
    uint32_t quota;
} tern_job_window;

/* Pages that a job of so many positions has at once at most, when passes have up to n_batch rows;
 * window >= 1. */
uint32_t tern_window_quota(uint32_t window, uint32_t n_batch, uint32_t positions);

/* Gives a job without pages its quota, and of that the known pages from pages[first] to
 * pages[end - 1]. False, and nothing is changed, when not so many pages can be promised. */
bool tern_window_open(tern_pages *p, tern_job_window *w, uint32_t quota, uint32_t first,
                      uint32_t end);

/* Pages up to `end`, of its quota. */
void tern_window_take(tern_pages *p, tern_job_window *w, uint32_t end);

/* The next page whose content is not known holds what the key says. */
void tern_window_know(tern_pages *p, tern_job_window *w, const tern_page_key *key);

/* Leaves the pages before `first`, which are known. */
void tern_window_leave(tern_pages *p, tern_job_window *w, uint32_t first);

/* Leaves all pages, and the quota. */
void tern_window_close(tern_pages *p, tern_job_window *w);

#endif
