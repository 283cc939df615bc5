/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that moves bytes. It waits for all sockets in one call of poll. */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "serve/http/internal.h"

enum {
    AT_ONCE = 64,       /* new clients that are accepted before the others have their turn */
    TICK = 1000,        /* milliseconds between two checks for late clients */
    WITHOUT_ROOM = 100, /* the same while the system has no descriptor for new clients */
    OURS = 2            /* entries in the list before those of the connections */
};

typedef struct loop {
    http_server *s;
    struct pollfd *polled; /* [OURS + connections] */
    bool full;             /* the system has no room for new clients */
} loop;

/* True if another client can be taken, maybe in place of one that asks for nothing. */
static bool has_room(const http_server *s) {
    return s->n_connections < s->config.limits.connections || http_least_wanted(s) != NULL;
}

/* Fills the list for poll, connections in their order. Returns the milliseconds to wait. */
static int prepare(loop *l, nfds_t *n) {
    const http_server *s = l->s;
    const bool more = !l->full && has_room(s);
    int wait = s->connections != NULL ? TICK : -1;
    wait = l->full ? WITHOUT_ROOM : wait;
    l->polled[0] = (struct pollfd){.fd = s->bell.hears, .events = POLLIN};
    l->polled[1] = (struct pollfd){.fd = more ? s->listening : -1, .events = POLLIN};
    *n = OURS;
    for (const http_connection *c = s->connections; c != NULL; c = c->next) {
        l->polled[(*n)++] = (struct pollfd){.fd = c->fd, .events = http_events(c)};
        wait = c->again ? 0 : wait;
    }
    return wait;
}

static void end(http_server *s, http_connection **at) {
    http_connection *c = *at;
    *at = c->next;
    s->n_connections--;
    http_end(c);
}

/* Lets each connection go on, and removes those that have ended. */
static void go_on(loop *l) {
    const double now = tern_clock_seconds();
    const struct pollfd *news = l->polled + OURS;
    http_connection **at = &l->s->connections;
    for (; *at != NULL; news++) {
        if (http_go_on(*at, news->revents, now))
            at = &(*at)->next;
        else
            end(l->s, at);
    }
    l->s->last = at;
}

/* Ends the least wanted connection if there are as many as may be. */
static void make_room(http_server *s) {
    if (s->n_connections < s->config.limits.connections)
        return;
    const http_connection *least = http_least_wanted(s);
    http_connection **at = &s->connections;
    while (*at != least)
        at = &(*at)->next;
    if (s->last == &(*at)->next)
        s->last = at;
    end(s, at);
}

/* Accepts new clients. They are polled from the next round on. */
static void take_who_comes(loop *l) {
    http_server *s = l->s;
    const int yes = 1;
    for (int i = 0; i < AT_ONCE && has_room(s); i++) {
        const int fd = tern_os_accept(s->listening);
        if (fd < 0) {
            l->full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            return;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        make_room(s);
        http_connect(s, fd);
    }
}

static void *run(void *user) {
    loop *l = user;
    http_server *s = l->s;
    while (!atomic_load(&s->stops)) {
        nfds_t n;
        const int wait = prepare(l, &n);
        if (poll(l->polled, n, wait) < 0)
            continue; /* a signal, or no memory at the moment */
        if (l->polled[0].revents != 0)
            tern_os_bell_hush(&s->bell); /* reset before looking at who was woken */
        go_on(l);
        if (l->polled[1].revents != 0 || l->full) {
            l->full = false;
            take_who_comes(l);
        }
    }
    while (s->connections != NULL) {
        http_connection *c = s->connections;
        s->connections = c->next;
        http_end(c);
    }
    free(l->polled);
    free(l);
    return NULL;
}

bool http_start(http_server *s) {
    loop *l = calloc(1, sizeof *l);
    if (l == NULL)
        return false;
    l->s = s;
    l->polled = calloc(OURS + s->config.limits.connections, sizeof *l->polled);
    const bool has_bell = tern_os_bell_open(&s->bell);
    if (l->polled != NULL && has_bell && pthread_create(&s->thread, NULL, run, l) == 0)
        return true;
    if (has_bell)
        tern_os_bell_close(&s->bell);
    free(l->polled);
    free(l);
    return false;
}

void http_stop(http_server *s) {
    atomic_store(&s->stops, true);
    http_wake(s);
    (void)pthread_join(s->thread, NULL);
    tern_os_bell_close(&s->bell);
    (void)close(s->listening);
}

void http_wake(const http_server *s) {
    tern_os_bell_ring(&s->bell);
}
