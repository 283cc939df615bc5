/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/turns.h"

#include <pthread.h>
#include <stdlib.h>

/* A turn lasts so many seconds at least, so that short passes do not change all the time. */
static const double shortest = 0.002;

struct turns {
    pthread_mutex_t lock; /* protects the members below, and those of all places */
    pthread_cond_t changed;
    turn *holder, *waiting;
    double left; /* the time of who gave the turn away last */
    double (*clock)(void);
};

turns *turns_new(double (*clock)(void)) {
    turns *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->clock = clock;
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_cond_init(&t->changed, NULL);
    return t;
}

void turns_free(turns **t) {
    if (*t == NULL)
        return;
    (void)pthread_cond_destroy(&(*t)->changed);
    (void)pthread_mutex_destroy(&(*t)->lock);
    free(*t);
    *t = NULL;
}

/* ---- with the lock held ---------------------------------------------------------------------- */

/* The waiting place with the least time; NULL: nobody waits. */
static turn *next_of(const turns *t) {
    turn *found = t->waiting;
    for (turn *at = t->waiting; at != NULL; at = at->next)
        found = at->used < found->used ? at : found;
    return found;
}

/* The time that a place has had, with its present turn. */
static double used_by(const turns *t, const turn *place) {
    return place->holds ? place->used + t->clock() - place->began : place->used;
}

/* The least time of all that have or want the turn: where a place begins that comes later. */
static double least_used(const turns *t) {
    const turn *next = next_of(t);
    const double held = t->holder != NULL ? used_by(t, t->holder) : t->left;
    return next != NULL && next->used < held ? next->used : held;
}

static void grant(turns *t, turn *to) {
    turn **at = &t->waiting;
    while (*at != to)
        at = &(*at)->next;
    *at = to->next;
    to->holds = true;
    to->began = t->clock();
    t->holder = to;
    (void)pthread_cond_broadcast(&t->changed);
}

static void wait_for(turns *t, turn *mine) {
    mine->next = t->waiting;
    t->waiting = mine;
    if (t->holder == NULL)
        grant(t, mine);
    while (!mine->holds)
        (void)pthread_cond_wait(&t->changed, &t->lock);
}

static void give_away(turns *t, turn *mine) {
    turn *next = next_of(t);
    mine->used = used_by(t, mine);
    mine->holds = false;
    t->left = mine->used;
    t->holder = NULL;
    if (next != NULL)
        grant(t, next);
}

/* ---- from outside ---------------------------------------------------------------------------- */

void turns_take(turns *t, turn *mine) {
    (void)pthread_mutex_lock(&t->lock);
    const double least = least_used(t);
    mine->used = mine->used > least ? mine->used : least;
    wait_for(t, mine);
    (void)pthread_mutex_unlock(&t->lock);
}

void turns_offer(turns *t, turn *mine) {
    (void)pthread_mutex_lock(&t->lock);
    const turn *next = next_of(t);
    if (next != NULL && next->used + shortest <= used_by(t, mine)) {
        give_away(t, mine);
        wait_for(t, mine);
    }
    (void)pthread_mutex_unlock(&t->lock);
}

void turns_leave(turns *t, turn *mine) {
    (void)pthread_mutex_lock(&t->lock);
    give_away(t, mine);
    (void)pthread_mutex_unlock(&t->lock);
}

bool turns_wanted(turns *t) {
    (void)pthread_mutex_lock(&t->lock);
    const bool wanted = t->waiting != NULL;
    (void)pthread_mutex_unlock(&t->lock);
    return wanted;
}
