/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pulls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/text.h"
#include "base/metrics.h"
#include "base/thread_signals.h"

enum { MOST_AT_ONCE = 4 };

static const char success[] = "{\"status\":\"success\"}";

/* A request that waits for a model. */
typedef struct client {
    struct client *next;
    http_exchange *x; /* kept */
    bool stream;
} client;

/* A model that is being fetched. */
typedef struct pull {
    struct pull *next;
    pulls *all;
    client *clients;
    text latest; /* what was told last */
    double told; /* when */
    char name[MODEL_FETCHED_BYTES];
} pull;

struct pulls {
    const model_fetcher *fetcher;
    models *models;
    pthread_mutex_t lock; /* protects the members below, and all pulls */
    pthread_cond_t ended; /* a pull has ended */
    pull *first;
    size_t n;
    bool stops;
};

pulls *pulls_new(const model_fetcher *fetcher, models *all) {
    pulls *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->fetcher = fetcher;
    p->models = all;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->ended, NULL);
    return p;
}

/* ---- clients, with the lock held ------------------------------------------------------------- */

static void release(client *c) {
    http_release(c->x);
    free(c);
}

static bool send(const client *c, const char *line) {
    return http_stream_write(c->x, line, strlen(line)) && http_stream_write(c->x, "\n", 1);
}

/* Sends a line to all clients with a stream, and lets those go who have left. NULL: only that. */
static void send_all(pull *p, const char *line) {
    for (client **at = &p->clients; *at != NULL;) {
        client *c = *at;
        const bool hears = line == NULL || !c->stream || send(c, line);
        if (hears && !http_gone(c->x)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        if (c->stream)
            http_stream_cut(c->x);
        else
            http_reply(c->x, 503, "application/json", NULL, 0); /* nobody reads it */
        release(c);
    }
}

/* Gives the last line to all clients: success, or the reason why there is none. */
static void finish(pull *p, tern_status status, const tern_error *err) {
    refusal r = {0};
    text line = {0};
    if (status != TERN_OK) {
        (void)refuse(&r, p->all->stops ? 503 : 400, "model", "%s", err->message);
        text_print(&line, "{\"error\":");
        text_quote(&line, err->message, strlen(err->message));
        text_print(&line, "}");
    }
    for (client *c = p->clients; c != NULL;) {
        client *done = c;
        c = c->next;
        if (done->stream) {
            (void)send(done, status == TERN_OK ? success : line.bytes != NULL ? line.bytes : "{}");
            http_stream_end(done->x);
        } else if (status == TERN_OK) {
            http_reply(done->x, 200, "application/json", strdup(success), sizeof success - 1);
        } else {
            refusal_reply(&r, done->x);
        }
        release(done);
    }
    p->clients = NULL;
    text_free(&line);
}

/* ---- the work -------------------------------------------------------------------------------- */

/* Takes a line from the fetcher. After a silence of a second the latest one is sent again, which
 * shows who has left. False: nobody waits any more. */
static bool take(void *user, const char *line) {
    pull *p = user;
    pulls *all = p->all;
    const double now = tern_clock_seconds();
    (void)pthread_mutex_lock(&all->lock);
    if (line != NULL) {
        text_clear(&p->latest);
        text_add(&p->latest, line, strlen(line));
    } else if (now > p->told + 1.0) {
        line = p->latest.bytes;
    }
    p->told = line != NULL ? now : p->told;
    send_all(p, line);
    const bool wanted = p->clients != NULL && !all->stops;
    (void)pthread_mutex_unlock(&all->lock);
    return wanted;
}

static void take_out(pulls *all, const pull *p) {
    pull **at = &all->first;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    all->n--;
    (void)pthread_cond_broadcast(&all->ended);
}

/* Fetches a model, and once more if all its clients had left and others came meanwhile. */
static void *run(void *user) {
    pull *p = user;
    pulls *all = p->all;
    tern_error err = {0};
    char path[PATH_MAX];
    tern_status status;
    bool again = true;
    while (again) {
        status = all->fetcher->fetch(all->fetcher->user, p->name, take, p, path, &err);
        if (status == TERN_OK)
            status = models_add(all->models, p->name, path, &err);
        (void)pthread_mutex_lock(&all->lock);
        again = status == TERN_ERR_STATE && p->clients != NULL && !all->stops;
        if (!again) {
            finish(p, status, &err);
            take_out(all, p);
        }
        (void)pthread_mutex_unlock(&all->lock);
    }
    text_free(&p->latest);
    free(p);
    return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Finds a model that is being fetched; NULL: it is not. The caller holds the lock. */
static pull *find(const pulls *all, const char *name) {
    pull *p = all->first;
    while (p != NULL && strcmp(p->name, name) != 0)
        p = p->next;
    return p;
}

/* Begins to fetch a model; NULL: there is no memory. With the lock. */
static pull *begin(pulls *all, const char *name) {
    pull *p = calloc(1, sizeof *p);
    pthread_t thread;
    sigset_t before;
    if (p == NULL)
        return NULL;
    *p = (pull){.all = all, .next = all->first};
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    tern_signals_block(&before);
    const bool began = pthread_create(&thread, NULL, run, p) == 0; /* it waits for the lock */
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!began) {
        free(p);
        return NULL;
    }
    (void)pthread_detach(thread);
    all->first = p;
    all->n++;
    return p;
}

static void add_client(pull *p, client *c) {
    c->next = p->clients;
    p->clients = c;
    http_keep(c->x);
    if (c->stream)
        http_stream_open(c->x, "application/x-ndjson");
    if (c->stream && p->latest.size > 0)
        (void)send(c, p->latest.bytes); /* one who has left is let go with the next line */
}

bool pulls_join(pulls *all, http_exchange *x, const char *name, bool stream, refusal *r) {
    bool joined = false;
    client *c = malloc(sizeof *c);
    (void)pthread_mutex_lock(&all->lock);
    pull *p = find(all, name);
    if (all->stops) {
        (void)refuse(r, 503, NULL, "the server is ending");
    } else if (p == NULL && all->n == MOST_AT_ONCE) {
        (void)refuse(r, 429, "model", "%d models are being fetched already", MOST_AT_ONCE);
        r->code = "queue_full";
    } else {
        p = c == NULL ? NULL : p != NULL ? p : begin(all, name);
        joined = p != NULL || refuse(r, 503, NULL, "no memory for the request");
    }
    if (joined) {
        *c = (client){.x = x, .stream = stream};
        add_client(p, c);
    }
    (void)pthread_mutex_unlock(&all->lock);
    if (!joined)
        free(c);
    return joined;
}

bool pulls_has(pulls *all, const char *name) {
    (void)pthread_mutex_lock(&all->lock);
    const bool has = find(all, name) != NULL;
    (void)pthread_mutex_unlock(&all->lock);
    return has;
}

void pulls_stop(pulls *all) {
    if (all == NULL)
        return;
    (void)pthread_mutex_lock(&all->lock);
    all->stops = true;
    while (all->n > 0)
        (void)pthread_cond_wait(&all->ended, &all->lock);
    (void)pthread_mutex_unlock(&all->lock);
}

void pulls_free(pulls *all) {
    if (all == NULL)
        return;
    pulls_stop(all);
    (void)pthread_cond_destroy(&all->ended);
    (void)pthread_mutex_destroy(&all->lock);
    free(all);
}
