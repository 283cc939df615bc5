/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/cache/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash64.h"

typedef struct page {
    uint32_t users;
    uint32_t before, next; /* in the ring of free or cached pages; meaningless while used */
    uint32_t chain;        /* next known page of the same bucket */
    uint64_t serial;       /* 0: not known, and the fields below mean nothing */
    uint64_t after;
    uint32_t bucket;
    uint8_t space[TERN_SPACE_BYTES];
    int32_t tokens[TERN_PAGE];
} page;

struct tern_pages {
    uint32_t n;
    uint32_t n_free, n_cached, reserved;
    uint32_t n_buckets; /* a power of two */
    uint64_t serials;   /* given so far */
    page *pages;        /* [n + 2]: the pages, then the heads of two rings, FREE and CACHED */
    uint32_t *buckets;  /* [n_buckets] first page of each chain */
};

/* Heads of the rings. Cached pages are in the order of their last use, the most recent one last. */
static uint32_t free_ring(const tern_pages *p) {
    return p->n;
}
static uint32_t cached_ring(const tern_pages *p) {
    return p->n + 1;
}

/* ---- rings --------------------------------------------------------------------------------- */

static void put_last(tern_pages *p, uint32_t head, uint32_t i) {
    page *pages = p->pages;
    const uint32_t last = pages[head].before;
    pages[i].before = last;
    pages[i].next = head;
    pages[last].next = i;
    pages[head].before = i;
}

static void take_out(tern_pages *p, uint32_t i) {
    page *pages = p->pages;
    pages[pages[i].before].next = pages[i].next;
    pages[pages[i].next].before = pages[i].before;
}

static void set_free(tern_pages *p, uint32_t i) {
    put_last(p, free_ring(p), i);
    p->n_free++;
}

/* ---- life ---------------------------------------------------------------------------------- */

tern_status tern_pages_new(uint32_t n, tern_pages **out, tern_error *err) {
    if (out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_pages_new needs a place");
    if (n == 0 || n > UINT32_MAX / 4)
        return tern_fail(err, TERN_ERR_ARG, "a cache of %u pages", n);
    tern_pages *p = calloc(1, sizeof *p);
    if (p == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the accounts of %u pages", n);
    p->n = n;
    for (p->n_buckets = 16; p->n_buckets < n; p->n_buckets *= 2) {
    }
    p->pages = calloc((size_t)n + 2, sizeof *p->pages);
    p->buckets = calloc(p->n_buckets, sizeof *p->buckets);
    if (p->pages == NULL || p->buckets == NULL) {
        tern_pages_free(&p);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the accounts of %u pages", n);
    }
    for (uint32_t i = n; i < n + 2; i++)
        p->pages[i].before = p->pages[i].next = i;
    for (uint32_t i = 0; i < p->n_buckets; i++)
        p->buckets[i] = TERN_NO_PAGE;
    for (uint32_t i = 0; i < n; i++)
        set_free(p, i);
    *out = p;
    return TERN_OK;
}

void tern_pages_free(tern_pages **pages) {
    if (pages == NULL || *pages == NULL)
        return;
    free((*pages)->pages);
    free((*pages)->buckets);
    free(*pages);
    *pages = NULL;
}

/* ---- known pages --------------------------------------------------------------------------- */

static uint32_t bucket_of(const tern_pages *p, const tern_page_key *key) {
    tern_hash64 h;
    tern_hash64_start(&h);
    tern_hash64_add(&h, &key->after, sizeof key->after);
    tern_hash64_add(&h, key->space, TERN_SPACE_BYTES);
    tern_hash64_add(&h, key->tokens, TERN_PAGE * sizeof *key->tokens);
    return (uint32_t)tern_hash64_value(&h) & (p->n_buckets - 1);
}

static bool holds(const page *a, const tern_page_key *key) {
    return a->after == key->after && memcmp(a->space, key->space, TERN_SPACE_BYTES) == 0 &&
           memcmp(a->tokens, key->tokens, sizeof a->tokens) == 0;
}

static uint32_t find_in(const tern_pages *p, uint32_t bucket, const tern_page_key *key) {
    uint32_t i = p->buckets[bucket];
    while (i != TERN_NO_PAGE && !holds(&p->pages[i], key))
        i = p->pages[i].chain;
    return i;
}

uint32_t tern_pages_find(const tern_pages *p, const tern_page_key *key) {
    return find_in(p, bucket_of(p, key), key);
}

static void make_unknown(tern_pages *p, uint32_t i) {
    uint32_t *link = &p->buckets[p->pages[i].bucket];
    while (*link != i)
        link = &p->pages[*link].chain;
    *link = p->pages[i].chain;
    p->pages[i].serial = 0;
}

uint32_t tern_pages_know(tern_pages *p, uint32_t i, const tern_page_key *key) {
    const uint32_t bucket = bucket_of(p, key);
    const uint32_t there = find_in(p, bucket, key);
    if (there != TERN_NO_PAGE) {
        tern_pages_release(p, i); /* first, so that the other page is available if this frees one */
        (void)tern_pages_share(p, there);
        return there;
    }
    page *a = &p->pages[i];
    a->serial = ++p->serials;
    a->after = key->after;
    memcpy(a->space, key->space, TERN_SPACE_BYTES);
    memcpy(a->tokens, key->tokens, sizeof a->tokens);
    a->bucket = bucket;
    a->chain = p->buckets[bucket];
    p->buckets[bucket] = i;
    return i;
}

uint64_t tern_pages_serial(const tern_pages *p, uint32_t i) {
    return p->pages[i].serial;
}

/* ---- use ----------------------------------------------------------------------------------- */

tern_page_counts tern_pages_count(const tern_pages *p) {
    return (tern_page_counts){.all = p->n,
                              .free = p->n_free,
                              .used = p->n - p->n_free - p->n_cached,
                              .cached = p->n_cached,
                              .reserved = p->reserved};
}

uint32_t tern_pages_available(const tern_pages *p) {
    return p->n_free + p->n_cached - p->reserved;
}

bool tern_pages_reserve(tern_pages *p, uint32_t n) {
    const bool there = n <= tern_pages_available(p);
    p->reserved += there ? n : 0;
    return there;
}

void tern_pages_unreserve(tern_pages *p, uint32_t n) {
    p->reserved -= n;
}

/* Frees the cached page that was used longest ago. */
static void evict(tern_pages *p) {
    const uint32_t i = p->pages[cached_ring(p)].next;
    take_out(p, i);
    p->n_cached--;
    make_unknown(p, i);
    set_free(p, i);
}

uint32_t tern_pages_take(tern_pages *p) {
    if (p->n_free == 0)
        evict(p);
    const uint32_t i = p->pages[free_ring(p)].next;
    take_out(p, i);
    p->n_free--;
    p->reserved--;
    p->pages[i].users = 1;
    return i;
}

bool tern_pages_share(tern_pages *p, uint32_t i) {
    if (p->pages[i].users == 0) {
        if (tern_pages_available(p) == 0)
            return false;
        take_out(p, i);
        p->n_cached--;
    }
    p->pages[i].users++;
    return true;
}

void tern_pages_release(tern_pages *p, uint32_t i) {
    if (--p->pages[i].users > 0)
        return;
    if (p->pages[i].serial == 0) {
        set_free(p, i);
        return;
    }
    put_last(p, cached_ring(p), i);
    p->n_cached++;
}

uint32_t tern_pages_users(const tern_pages *p, uint32_t i) {
    return p->pages[i].users;
}

void tern_pages_forget(tern_pages *p) {
    while (p->n_cached > 0)
        evict(p);
}

/* ---- consistency --------------------------------------------------------------------------- */

/* True if the ring has `expected` pages, none of them has users, and all or none of them are
 * known. */
static bool ring_is_sound(const tern_pages *p, uint32_t head, uint32_t expected, bool known) {
    uint32_t n = 0;
    for (uint32_t i = p->pages[head].next; i != head && n <= expected; i = p->pages[i].next, n++) {
        const page *a = &p->pages[i];
        if (i >= p->n || a->users > 0 || (a->serial != 0) != known || p->pages[a->before].next != i)
            return false;
    }
    return n == expected;
}

/* True if a known page is found by its own key, so that no other known page has that key. */
static bool is_found(const tern_pages *p, uint32_t i) {
    const page *a = &p->pages[i];
    const tern_page_key key = {.after = a->after, .space = a->space, .tokens = a->tokens};
    return tern_pages_find(p, &key) == i;
}

bool tern_pages_sound(const tern_pages *p) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        used += p->pages[i].users > 0;
        if (p->pages[i].serial != 0 && !is_found(p, i))
            return false;
    }
    return used + p->n_free + p->n_cached == p->n && p->reserved <= p->n_free + p->n_cached &&
           ring_is_sound(p, free_ring(p), p->n_free, false) &&
           ring_is_sound(p, cached_ring(p), p->n_cached, true);
}
