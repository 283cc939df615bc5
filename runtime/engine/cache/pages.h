/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_PAGES_H
#define TERN_RUNTIME_ENGINE_CACHE_PAGES_H

/*
 * Who uses which page of cache memory. A page is a number; what it holds is elsewhere. Each page is
 * one of these:
 *
 *   free     nothing in it is of use;
 *   used     by as many sequences as its count says;
 *   cached   by none, but it is full and it is known what it holds, so it can be found again.
 *
 * A page that is known has a serial number, which no other content ever had. What a page holds is
 * decided by its TERN_PAGE tokens and by all that they follow, so its key is its tokens and the
 * serial of the page before it. Keys are compared as a whole: two prompts whose hashes collide are
 * told apart.
 *
 * Memory is promised before it is taken: tern_pages_reserve. A promised page is there when it is
 * taken, if need be in place of the cached page that was last used the longest ago. Nothing is
 * copied, and nothing is allocated after tern_pages_new. Every call takes the same few steps but
 * for the search by key, which follows one chain of a hash table.
 */

#include "runtime/engine/cache/pool.h"
#include "tern/engine.h"

#define TERN_NO_PAGE UINT32_MAX

/* What a full page holds. */
typedef struct tern_page_key {
    uint64_t after;        /* serial of the page before it; 0: it is the first of a sequence */
    const uint8_t *space;  /* [TERN_SPACE_BYTES] pages are found in their own space only */
    const int32_t *tokens; /* [TERN_PAGE] */
} tern_page_key;

typedef struct tern_page_counts {
    uint32_t all, free, used, cached; /* free + used + cached = all */
    uint32_t reserved;                /* promised and not taken, at most free + cached */
} tern_page_counts;

typedef struct tern_pages tern_pages;

/* Accounts of n pages, all free; 1 <= n < TERN_NO_PAGE. TERN_ERR_ARG, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_pages_new(uint32_t n, tern_pages **out, tern_error *err);
void tern_pages_free(tern_pages **pages);

tern_page_counts tern_pages_count(const tern_pages *p);

/* Pages that can still be promised: free and cached ones less those that are promised. */
uint32_t tern_pages_available(const tern_pages *p);

/* Promises n pages; false when they are not available, and then nothing changes. */
bool tern_pages_reserve(tern_pages *p, uint32_t n);

/* Gives n promised pages back. */
void tern_pages_unreserve(tern_pages *p, uint32_t n);

/* One promised page, now used once, its content of no use. The caller has it reserved. */
uint32_t tern_pages_take(tern_pages *p);

/* The page that is known to hold what the key says; TERN_NO_PAGE: none. Changes nothing. */
uint32_t tern_pages_find(const tern_pages *p, const tern_page_key *key);

/* One user more of a page that tern_pages_find gave. A cached page must be available: false when
 * it is promised to others. */
bool tern_pages_share(tern_pages *p, uint32_t page);

/* One user less. Without any the page is cached if it is known, else free. */
void tern_pages_release(tern_pages *p, uint32_t page);

/*
 * The page, which one sequence uses and which is not known, holds what the key says from now on.
 * Returns the page that the sequence has to go on with: another one where it was there already
 * with the same content, which then has one user more, and `page` is free.
 */
uint32_t tern_pages_know(tern_pages *p, uint32_t page, const tern_page_key *key);

/* Of a known page; 0: it is not known. */
uint64_t tern_pages_serial(const tern_pages *p, uint32_t page);

/* How many sequences use it. */
uint32_t tern_pages_users(const tern_pages *p, uint32_t page);

/* Forgets what cached pages hold: all of them are free. */
void tern_pages_forget(tern_pages *p);

/* Whether the books are in order: every page is in one place, every count agrees, every known page
 * is found. Looks at all of them; for tests. */
bool tern_pages_sound(const tern_pages *p);

#endif
