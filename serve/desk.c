/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/desk.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct entry {
    struct entry *next;
    desk_work *work;
    void *user;
    http_exchange *x;
} entry;

enum { MOST_THREADS = 16 };

struct desk {
    pthread_t threads[MOST_THREADS];
    unsigned n_threads;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    entry *first, **last;
    bool stop;
};

static void *run(void *user) {
    desk *d = user;
    (void)pthread_mutex_lock(&d->lock);
    while (d->first != NULL || !d->stop) {
        entry *e = d->first;
        if (e == NULL) {
            (void)pthread_cond_wait(&d->wanted, &d->lock);
            continue;
        }
        d->first = e->next;
        d->last = d->first == NULL ? &d->first : d->last;
        (void)pthread_mutex_unlock(&d->lock);
        e->work(e->user, e->x);
        http_release(e->x);
        free(e);
        (void)pthread_mutex_lock(&d->lock);
    }
    (void)pthread_mutex_unlock(&d->lock);
    return NULL;
}

tern_status desk_open(unsigned threads, desk **out, tern_error *err) {
    desk *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a server");
    d->last = &d->first;
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_cond_init(&d->wanted, NULL);
    while (d->n_threads < threads && d->n_threads < MOST_THREADS &&
           pthread_create(&d->threads[d->n_threads], NULL, run, d) == 0)
        d->n_threads++;
    if (d->n_threads == 0) {
        desk_free(&d);
        return tern_fail(err, TERN_ERR_NOMEM, "no thread to read requests");
    }
    *out = d;
    return TERN_OK;
}

bool desk_put(desk *d, desk_work *work, void *user, http_exchange *x) {
    entry *e = malloc(sizeof *e);
    if (e == NULL)
        return false;
    *e = (entry){.work = work, .user = user, .x = x};
    (void)pthread_mutex_lock(&d->lock);
    const bool put = !d->stop;
    if (put) {
        http_keep(x);
        *d->last = e;
        d->last = &e->next;
        (void)pthread_cond_signal(&d->wanted);
    }
    (void)pthread_mutex_unlock(&d->lock);
    if (!put)
        free(e);
    return put;
}

void desk_stop(desk *d) {
    if (d == NULL)
        return;
    (void)pthread_mutex_lock(&d->lock);
    d->stop = true;
    (void)pthread_cond_broadcast(&d->wanted);
    (void)pthread_mutex_unlock(&d->lock);
    while (d->n_threads > 0)
        (void)pthread_join(d->threads[--d->n_threads], NULL);
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
