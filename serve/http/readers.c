/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/readers.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    MOST_THREADS = 16,
    MOST_WAITING = 256,
    MOST_OF_OWNER = 128, /* for one owner that is not NULL */
    LONG_BYTES = 64 << 10,
    REMEMBERED = 32 /* the latest owners whose turn it was */
};

typedef struct entry {
    struct entry *next;
    readers_work *work;
    void *user;
    http_exchange *x;
    const void *owner;
    bool is_long;
} entry;

struct readers {
    pthread_t threads[MOST_THREADS];
    unsigned n_threads;   /* does not change while the threads run */
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t wanted;
    entry *first, **last;
    unsigned n_waiting, n_long; /* n_long: long ones in work */
    const void *served[REMEMBERED];
    unsigned n_served; /* turns so far; number i is at i % REMEMBERED */
    bool stop;
};

/* ---- with the lock held ---------------------------------------------------------------------- */

/* Returns how many turns ago the owner had one; REMEMBERED: longer ago, or never. */
static unsigned turns_ago(const readers *r, const void *owner) {
    unsigned ago = 0;
    while (ago < REMEMBERED && ago < r->n_served &&
           r->served[(r->n_served - 1 - ago) % REMEMBERED] != owner)
        ago++;
    return ago < r->n_served ? ago : REMEMBERED;
}

static bool may_begin(const readers *r, const entry *e) {
    return !e->is_long || r->n_threads <= 1 || r->n_long + 1 < r->n_threads;
}

/* Removes and returns the first entry of the owner whose turn was the longest ago; NULL: none may
 * begin now. */
static entry *take_next(readers *r) {
    entry **chosen = NULL;
    unsigned longest = 0;
    for (entry **at = &r->first; *at != NULL; at = &(*at)->next) {
        const unsigned ago = turns_ago(r, (*at)->owner);
        if (may_begin(r, *at) && (chosen == NULL || ago > longest)) {
            chosen = at;
            longest = ago;
        }
    }
    if (chosen == NULL)
        return NULL;
    entry *e = *chosen;
    *chosen = e->next;
    if (r->last == &e->next)
        r->last = chosen;
    r->n_waiting--;
    r->n_long += e->is_long;
    r->served[r->n_served++ % REMEMBERED] = e->owner;
    return e;
}

static unsigned count_of(const readers *r, const void *owner) {
    unsigned n = 0;
    for (const entry *e = r->first; e != NULL; e = e->next)
        n += e->owner == owner;
    return n;
}

static readers_answer answer_to(const readers *r, const void *owner) {
    if (r->stop)
        return READERS_CLOSED;
    const bool full =
        r->n_waiting >= MOST_WAITING || (owner != NULL && count_of(r, owner) >= MOST_OF_OWNER);
    return full ? READERS_FULL : READERS_TAKEN;
}

/* ---- the threads ----------------------------------------------------------------------------- */

static void *run(void *user) {
    readers *r = user;
    (void)pthread_mutex_lock(&r->lock);
    while (r->first != NULL || !r->stop) {
        entry *e = take_next(r);
        if (e == NULL) {
            (void)pthread_cond_wait(&r->wanted, &r->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&r->lock);
        e->work(e->user, e->x);
        http_release(e->x);
        (void)pthread_mutex_lock(&r->lock);
        r->n_long -= e->is_long;
        if (e->is_long)
            (void)pthread_cond_broadcast(&r->wanted); /* wakes threads that were not allowed to
                                                         begin a long one */
        free(e);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

tern_status readers_open(unsigned threads, readers **out, tern_error *err) {
    readers *r = calloc(1, sizeof *r);
    if (r == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a server");
    r->last = &r->first;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->wanted, NULL);
    (void)pthread_mutex_lock(&r->lock);
    while (r->n_threads < threads && r->n_threads < MOST_THREADS &&
           pthread_create(&r->threads[r->n_threads], NULL, run, r) == 0)
        r->n_threads++;
    (void)pthread_mutex_unlock(&r->lock);
    if (r->n_threads == 0) {
        readers_free(&r);
        return tern_fail(err, TERN_ERR_NOMEM, "no thread to read requests");
    }
    *out = r;
    return TERN_OK;
}

static readers_answer put(readers *r, readers_work *work, void *user, http_exchange *x,
                          const void *owner, bool again) {
    size_t size;
    entry *e = malloc(sizeof *e);
    if (e == NULL)
        return READERS_CLOSED;
    (void)http_body(x, &size);
    *e = (entry){.work = work, .user = user, .x = x, .owner = owner, .is_long = size > LONG_BYTES};
    (void)pthread_mutex_lock(&r->lock);
    const readers_answer full = answer_to(r, owner);
    const readers_answer answer = again && full == READERS_FULL ? READERS_TAKEN : full;
    if (answer == READERS_TAKEN) {
        http_keep(x);
        *r->last = e;
        r->last = &e->next;
        r->n_waiting++;
        (void)pthread_cond_broadcast(&r->wanted); /* not every thread may begin every body */
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (answer != READERS_TAKEN)
        free(e);
    return answer;
}

readers_answer readers_put(readers *r, readers_work *work, void *user, http_exchange *x,
                           const void *owner) {
    return put(r, work, user, x, owner, false);
}

readers_answer readers_put_again(readers *r, readers_work *work, void *user, http_exchange *x,
                                 const void *owner) {
    return put(r, work, user, x, owner, true);
}

void readers_stop(readers *r) {
    if (r == NULL)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->stop = true;
    (void)pthread_cond_broadcast(&r->wanted);
    (void)pthread_mutex_unlock(&r->lock);
    for (unsigned i = 0; i < r->n_threads; i++)
        (void)pthread_join(r->threads[i], NULL);
    r->n_threads = 0;
}

void readers_free(readers **r) {
    if (*r == NULL)
        return;
    readers_stop(*r);
    (void)pthread_cond_destroy(&(*r)->wanted);
    (void)pthread_mutex_destroy(&(*r)->lock);
    free(*r);
    *r = NULL;
}
