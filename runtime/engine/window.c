/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/window.h"

uint32_t tern_window_quota(uint32_t window, uint32_t n_batch, uint32_t positions) {
    const uint32_t seen = tern_window_pages(window, n_batch), all = tern_pages_of(positions);
    return seen < all ? seen : all;
}

/* Removes a user; a page without users is promised again. */
static void leave(tern_pages *p, uint32_t page) {
    const bool last = tern_pages_users(p, page) == 1;
    tern_pages_release(p, page);
    if (last)
        (void)tern_pages_reserve(p, 1);
}

/* Adds a user to a known page; a page without users is taken from the promised ones. */
static void join(tern_pages *p, uint32_t page) {
    if (tern_pages_users(p, page) == 0)
        tern_pages_unreserve(p, 1);
    (void)tern_pages_share(p, page);
}

bool tern_window_open(tern_pages *p, tern_job_window *w, uint32_t quota, uint32_t first,
                      uint32_t end) {
    if (!tern_pages_reserve(p, quota))
        return false;
    w->quota = quota;
    w->first = first;
    w->end = w->known = end;
    for (uint32_t i = first; i < end; i++)
        join(p, w->pages[i]);
    return true;
}

void tern_window_take(tern_pages *p, tern_job_window *w, uint32_t end) {
    while (w->end < end)
        w->pages[w->end++] = tern_pages_take(p);
}

void tern_window_know(tern_pages *p, tern_job_window *w, const tern_page_key *key) {
    uint32_t *page = &w->pages[w->known++];
    const uint32_t there = tern_pages_know(p, *page, key);
    if (there != *page && tern_pages_users(p, there) > 1)
        (void)tern_pages_reserve(p, 1); /* the page used before became free */
    *page = there;
}

void tern_window_leave(tern_pages *p, tern_job_window *w, uint32_t first) {
    while (w->first < first)
        leave(p, w->pages[w->first++]);
}

/* Leaves pages from the last one to the first: a page must be evicted after the pages that follow
 * it. */
void tern_window_close(tern_pages *p, tern_job_window *w) {
    while (w->end > w->first)
        leave(p, w->pages[--w->end]);
    tern_pages_unreserve(p, w->quota);
    *w = (tern_job_window){.pages = w->pages};
}
