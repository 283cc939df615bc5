/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/desk.h"

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
    desk_work *work;
    void *user;
    http_exchange *x;
    const void *owner;
    bool is_long;
} entry;

struct desk {
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
static unsigned turns_ago(const desk *d, const void *owner) {
    unsigned ago = 0;
    while (ago < REMEMBERED && ago < d->n_served &&
           d->served[(d->n_served - 1 - ago) % REMEMBERED] != owner)
        ago++;
    return ago < d->n_served ? ago : REMEMBERED;
}

static bool may_begin(const desk *d, const entry *e) {
    return !e->is_long || d->n_threads <= 1 || d->n_long + 1 < d->n_threads;
}

/* Removes and returns the first entry of the owner whose turn was the longest ago; NULL: none may
 * begin now. */
static entry *take_next(desk *d) {
    entry **chosen = NULL;
    unsigned longest = 0;
    for (entry **at = &d->first; *at != NULL; at = &(*at)->next) {
        const unsigned ago = turns_ago(d, (*at)->owner);
        if (may_begin(d, *at) && (chosen == NULL || ago > longest)) {
            chosen = at;
            longest = ago;
        }
    }
    if (chosen == NULL)
        return NULL;
    entry *e = *chosen;
    *chosen = e->next;
    if (d->last == &e->next)
        d->last = chosen;
    d->n_waiting--;
    d->n_long += e->is_long;
    d->served[d->n_served++ % REMEMBERED] = e->owner;
    return e;
}

static unsigned count_of(const desk *d, const void *owner) {
    unsigned n = 0;
    for (const entry *e = d->first; e != NULL; e = e->next)
        n += e->owner == owner;
    return n;
}

static desk_answer answer_to(const desk *d, const void *owner) {
    if (d->stop)
        return DESK_CLOSED;
    const bool full =
        d->n_waiting >= MOST_WAITING || (owner != NULL && count_of(d, owner) >= MOST_OF_OWNER);
    return full ? DESK_FULL : DESK_TAKEN;
}

/* ---- the threads ----------------------------------------------------------------------------- */

static void *run(void *user) {
    desk *d = user;
    (void)pthread_mutex_lock(&d->lock);
    while (d->first != NULL || !d->stop) {
        entry *e = take_next(d);
        if (e == NULL) {
            (void)pthread_cond_wait(&d->wanted, &d->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&d->lock);
        e->work(e->user, e->x);
        http_release(e->x);
        (void)pthread_mutex_lock(&d->lock);
        d->n_long -= e->is_long;
        if (e->is_long)
            (void)pthread_cond_broadcast(&d->wanted); /* wakes threads that were not allowed to
                                                         begin a long one */
        free(e);
    }
    (void)pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

tern_status desk_open(unsigned threads, desk **out, tern_error *err) {
    desk *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a server");
    d->last = &d->first;
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_cond_init(&d->wanted, NULL);
    (void)pthread_mutex_lock(&d->lock);
    while (d->n_threads < threads && d->n_threads < MOST_THREADS &&
           pthread_create(&d->threads[d->n_threads], NULL, run, d) == 0)
        d->n_threads++;
    (void)pthread_mutex_unlock(&d->lock);
    if (d->n_threads == 0) {
        desk_free(&d);
        return tern_fail(err, TERN_ERR_NOMEM, "no thread to read requests");
    }
    *out = d;
    return TERN_OK;
}

desk_answer desk_put(desk *d, desk_work *work, void *user, http_exchange *x, const void *owner) {
    size_t size;
    entry *e = malloc(sizeof *e);
    if (e == NULL)
        return DESK_CLOSED;
    (void)http_body(x, &size);
    *e = (entry){.work = work, .user = user, .x = x, .owner = owner, .is_long = size > LONG_BYTES};
    (void)pthread_mutex_lock(&d->lock);
    const desk_answer answer = answer_to(d, owner);
    if (answer == DESK_TAKEN) {
        http_keep(x);
        *d->last = e;
        d->last = &e->next;
        d->n_waiting++;
        (void)pthread_cond_broadcast(&d->wanted); /* not every thread may begin every body */
    }
    (void)pthread_mutex_unlock(&d->lock);
    if (answer != DESK_TAKEN)
        free(e);
    return answer;
}

void desk_stop(desk *d) {
    if (d == NULL)
        return;
    (void)pthread_mutex_lock(&d->lock);
    d->stop = true;
    (void)pthread_cond_broadcast(&d->wanted);
    (void)pthread_mutex_unlock(&d->lock);
    for (unsigned i = 0; i < d->n_threads; i++)
        (void)pthread_join(d->threads[i], NULL);
    d->n_threads = 0;
}

void desk_free(desk **d) {
    if (*d == NULL)
        return;
    desk_stop(*d);
    (void)pthread_cond_destroy(&(*d)->wanted);
    (void)pthread_mutex_destroy(&(*d)->lock);
    free(*d);
    *d = NULL;
}
