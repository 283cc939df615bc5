/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_PAGES_H
#define TERN_RUNTIME_ENGINE_CACHE_PAGES_H

/*
 * The accounts of cache memory: which page is used by whom. A page is a number; its content is
 * elsewhere. Each page is in one of these states:
 *
 *   free     its content is useless;
 *   used     by as many sequences as its count says;
 *   cached   by none, but it is full and its content is known, so it can be found again.
 *
 * A known page has a serial number, which no other content ever had. The content of a page is
 * determined by its TERN_PAGE tokens and by all tokens before them, so its key is its tokens and
 * the serial of the page before it. Keys are compared as a whole: two prompts whose hashes collide
 * are told apart.
 *
 * Memory is promised before it is taken: tern_pages_reserve. A promised page is always there when
 * it is taken; if no page is free, the cached page that was used longest ago gives way. Nothing is
 * copied, and nothing is allocated after tern_pages_new. Every call takes a constant number of
 * steps, except that the search by key follows one chain of a hash table.
 */

#include "runtime/engine/cache/pool.h"
#include "tern/engine.h"

#define TERN_NO_PAGE UINT32_MAX

/* The key of a full page: it determines the page's content. */
typedef struct tern_page_key {
    uint64_t after;        /* serial of the page before it; 0: it is the first of a sequence */
    const uint8_t *space;  /* [TERN_SPACE_BYTES] pages are found in their own space only */
    const int32_t *tokens; /* [TERN_PAGE] */
} tern_page_key;

typedef struct tern_page_counts {
    uint32_t all, free, used, cached; /* free + used + cached = all */
    uint32_t reserved;                /* promised but not yet taken, at most free + cached */
} tern_page_counts;

typedef struct tern_pages tern_pages;

/* Accounts of n pages, all free; 1 <= n <= UINT32_MAX / 4. TERN_ERR_ARG, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_pages_new(uint32_t n, tern_pages **out, tern_error *err);
void tern_pages_free(tern_pages **pages);

tern_page_counts tern_pages_count(const tern_pages *p);

/* Pages that can still be promised: free and cached pages less the promised ones. */
uint32_t tern_pages_available(const tern_pages *p);

/* Promises n pages. False when they are not available; then nothing changes. */
bool tern_pages_reserve(tern_pages *p, uint32_t n);

/* Gives n promised pages back. */
void tern_pages_unreserve(tern_pages *p, uint32_t n);

/* Takes one promised page. It has one user; its content is useless. The caller must have reserved
 * it. */
uint32_t tern_pages_take(tern_pages *p);

/* Finds the known page with that key; TERN_NO_PAGE: none. Changes nothing. */
uint32_t tern_pages_find(const tern_pages *p, const tern_page_key *key);

/* Adds a user to a page that tern_pages_find returned. A cached page must be available: false if
 * all available pages are promised to others. */
bool tern_pages_share(tern_pages *p, uint32_t page);

/* Removes a user. A page without users becomes cached if it is known, else free. */
void tern_pages_release(tern_pages *p, uint32_t page);

/*
 * Makes a page known: from now on it holds the content of the key. It must have one user and must
 * not be known. Returns the page that its user has to go on with: if another page has the same
 * content already, that page gets the user and `page` becomes free.
 */
uint32_t tern_pages_know(tern_pages *p, uint32_t page, const tern_page_key *key);

/* Serial of a known page; 0: the page is not known. */
uint64_t tern_pages_serial(const tern_pages *p, uint32_t page);

/* The number of sequences that use the page. */
uint32_t tern_pages_users(const tern_pages *p, uint32_t page);

/* Forgets the content of cached pages: all of them become free. */
void tern_pages_forget(tern_pages *p);

/* True if the accounts are consistent: every page is in one state, all counts agree, every known
 * page is found. Looks at all pages; for tests. */
bool tern_pages_sound(const tern_pages *p);

#endif
