/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: held by the exchange until the socket takes them. */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/metrics.h"
#include "serve/http/internal.h"

enum { SLOWEST_READER = 16384 }; /* bytes a second, after the seconds that all have */

/* With the exchange's lock held: the thread that moves bytes looks at it again. */
static void wake(http_exchange *x) {
    if (x->suspended && x->connection != NULL) {
        x->suspended = false;
        mhd.resume_connection(x->connection);
    }
}

static void suspend(http_exchange *x) {
    x->suspended = true;
    mhd.suspend_connection(x->connection);
}

/* ---- the thread that moves bytes ------------------------------------------------------------- */

/* Gives the library what is not sent yet. */
static ssize_t read_stream(void *user, uint64_t position, char *out, size_t most) {
    http_exchange *x = user;
    (void)position;
    ssize_t given = 0;
    (void)pthread_mutex_lock(&x->lock);
    const size_t left = x->reply_size - x->reply_sent;
    if (x->gone) {
        given = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (left > 0) {
        given = (ssize_t)(left < most ? left : most);
        memcpy(out, x->reply + x->reply_sent, (size_t)given);
        x->reply_sent += (size_t)given;
    } else if (x->ended) {
        given = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        suspend(x);
    }
    (void)pthread_mutex_unlock(&x->lock);
    return given;
}

/* With the lock held. */
static struct MHD_Response *make_response(http_exchange *x) {
    enum { BLOCK = 16384 };
    if (x->stream)
        return mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, x, NULL);
    struct MHD_Response *response =
        mhd.create_response_from_buffer(x->reply_size, x->reply, MHD_RESPMEM_MUST_FREE);
    if (response != NULL)
        x->reply = NULL; /* the library's now */
    return response;
}

static bool add(struct MHD_Response *response, const char *name, const char *value) {
    return mhd.add_response_header(response, name, value) == MHD_YES;
}

/* False: there is no memory for one of them, and without it the reply would say something else. */
static bool add_headers(const http_exchange *x, struct MHD_Response *response) {
    const char *origin = x->server->config.origin;
    bool added = add(response, "Content-Type", x->type);
    if (x->stream) {
        added = added && add(response, "Cache-Control", "no-cache") &&
                add(response, "X-Accel-Buffering", "no");
    }
    if (x->verdict == HTTP_FRAMING || x->verdict == HTTP_HOST || x->verdict == HTTP_HEADER)
        added = added && add(response, "Connection", "close");
    if (origin != NULL) {
        added = added && add(response, "Access-Control-Allow-Origin", origin) &&
                add(response, "Access-Control-Expose-Headers", "X-Tern-Digest, Retry-After") &&
                add(response, "Vary", "Origin");
    }
    for (unsigned i = 0; i < x->n_headers && added; i++)
        added = add(response, x->headers[i].name, x->headers[i].value);
    return added;
}

/* The response is queued without the exchange's lock: the library locks it, and asks it for bytes
 * while it holds that lock. */
http_result http_proceed(http_exchange *x) {
    struct MHD_Response *response = NULL;
    (void)pthread_mutex_lock(&x->lock);
    const bool waits = !x->gone && x->status == 0;
    const unsigned status = x->status;
    if (waits)
        suspend(x);
    else if (!x->gone)
        response = make_response(x);
    (void)pthread_mutex_unlock(&x->lock);
    if (response == NULL)
        return waits ? MHD_YES : MHD_NO;
    const http_result result =
        add_headers(x, response) ? mhd.queue_response(x->connection, status, response) : MHD_NO;
    mhd.destroy_response(response);
    return result;
}

/* ---- any thread ------------------------------------------------------------------------------ */

/* With the lock held. */
static void add_header(http_exchange *x, const char *name, const char *value) {
    if (x->n_headers < HTTP_MOST_HEADERS && x->status == 0) {
        http_header *h = &x->headers[x->n_headers++];
        h->name = name;
        (void)snprintf(h->value, sizeof h->value, "%s", value);
    }
}

void http_reply_header(http_exchange *x, const char *name, const char *value) {
    (void)pthread_mutex_lock(&x->lock);
    add_header(x, name, value);
    (void)pthread_mutex_unlock(&x->lock);
}

void http_wait_for(const http_server *s, http_connection *c, size_t bytes) {
    const http_limits *l = &s->config.limits;
    c->until = tern_clock_seconds() + l->idle_seconds + l->request_seconds +
               (double)bytes / SLOWEST_READER;
}

/* All of the reply is there, and its client has to read what it has not read yet. */
static void wait_for_reader(http_exchange *x, size_t bytes) {
    (void)pthread_mutex_lock(&x->server->lock);
    if (x->wire != NULL)
        http_wait_for(x->server, x->wire, bytes);
    (void)pthread_mutex_unlock(&x->server->lock);
}

/* With the exchange's lock held: whether so many bytes more may be held until a client reads them.
 * A short reply always may, so that clients hear of errors. */
static bool hold(http_exchange *x, size_t size) {
    enum { SHORT_BYTES = 4096 };
    http_server *s = x->server;
    if (atomic_fetch_add(&s->replies, size) + size > s->config.limits.all_replies_bytes &&
        size > SHORT_BYTES) {
        (void)atomic_fetch_sub(&s->replies, size);
        return false;
    }
    x->held += size;
    return true;
}

/* In place of a reply that finds no room. */
static char *busy(size_t *size) {
    static const char text[] = "{\"error\":{\"message\":\"clients have not read too many replies "
                               "yet\",\"type\":\"unavailable_error\",\"param\":null,"
                               "\"code\":\"replies_full\"}}";
    *size = sizeof text - 1;
    return strdup(text);
}

void http_reply(http_exchange *x, unsigned status, const char *type, char *bytes, size_t size) {
    (void)pthread_mutex_lock(&x->lock);
    if (x->status == 0 && bytes != NULL && !hold(x, size)) {
        free(bytes);
        bytes = busy(&size);
        status = 503;
        type = "application/json";
        add_header(x, "Retry-After", "5");
    }
    if (x->status != 0) {
        free(bytes);
    } else {
        x->gone = x->gone || (bytes == NULL && size > 0);
        x->reply = bytes;
        x->reply_size = bytes != NULL ? size : 0;
        x->given = x->reply_size;
        x->type = type;
        x->status = status;
        x->ended = true;
        wake(x);
    }
    (void)pthread_mutex_unlock(&x->lock);
    wait_for_reader(x, size);
}

void http_stream_open(http_exchange *x) {
    http_server *s = x->server;
    (void)pthread_mutex_lock(&s->lock);
    (void)pthread_mutex_lock(&x->lock);
    if (x->status == 0) {
        x->status = 200;
        x->type = "text/event-stream";
        x->stream = true;
        x->written = tern_clock_seconds();
        x->next = s->streams;
        if (x->next != NULL)
            x->next->before = x;
        s->streams = x;
        http_keep(x); /* by the list */
        wake(x);
    }
    (void)pthread_mutex_unlock(&x->lock);
    (void)pthread_mutex_unlock(&s->lock);
}

/* With the server's lock held. */
static void unlink_stream(http_exchange *x) {
    http_server *s = x->server;
    if (s->streams == x)
        s->streams = x->next;
    else if (x->before == NULL)
        return; /* it is not in the list */
    if (x->before != NULL)
        x->before->next = x->next;
    if (x->next != NULL)
        x->next->before = x->before;
    x->next = x->before = NULL;
    http_release(x);
}

void http_stream_forget(http_exchange *x) {
    (void)pthread_mutex_lock(&x->server->lock);
    unlink_stream(x);
    (void)pthread_mutex_unlock(&x->server->lock);
}

/* With the lock held: room for size more bytes to be sent. */
static bool make_room(http_exchange *x, size_t size) {
    const size_t left = x->reply_size - x->reply_sent;
    if (left + size > x->server->config.limits.unread_bytes)
        return false;
    if (x->reply_sent > 0) {
        memmove(x->reply, x->reply + x->reply_sent, left);
        x->reply_size = left;
        x->reply_sent = 0;
    }
    if (left + size > x->reply_capacity) {
        const size_t capacity = 2 * (left + size) + 1024;
        char *grown = hold(x, capacity - x->reply_capacity) ? realloc(x->reply, capacity) : NULL;
        if (grown == NULL)
            return false;
        x->reply = grown;
        x->reply_capacity = capacity;
    }
    return true;
}

/* With the lock held: what was sent does not become whole any more, and the client sees that. */
static void cut(http_exchange *x) {
    x->gone = true;
    (void)shutdown(x->fd, SHUT_RDWR);
}

bool http_stream_write(http_exchange *x, const char *bytes, size_t size) {
    (void)pthread_mutex_lock(&x->lock);
    bool written = x->stream && !x->ended && !x->gone && x->connection != NULL;
    if (written && !make_room(x, size)) {
        cut(x); /* it does not read, and what is sent would have a hole */
        written = false;
    }
    if (written && size > 0) {
        memcpy(x->reply + x->reply_size, bytes, size);
        x->reply_size += size;
        x->given += size;
        x->written = tern_clock_seconds();
    }
    wake(x);
    (void)pthread_mutex_unlock(&x->lock);
    return written;
}

void http_stream_end(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    x->ended = true;
    const size_t left = x->reply_size - x->reply_sent;
    wake(x);
    (void)pthread_mutex_unlock(&x->lock);
    wait_for_reader(x, left);
    http_stream_forget(x);
}

void http_stream_cut(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    if (x->connection != NULL)
        cut(x);
    (void)pthread_mutex_unlock(&x->lock);
    http_stream_end(x);
}

bool http_gone(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    if (!x->gone && x->connection != NULL) {
        struct pollfd look = {.fd = x->fd, .events = POLLRDHUP};
        x->gone = poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    }
    const bool gone = x->gone || x->connection == NULL;
    if (gone)
        wake(x);
    (void)pthread_mutex_unlock(&x->lock);
    return gone;
}

int http_socket(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    const int fd = x->gone || x->connection == NULL ? -1 : x->fd;
    (void)pthread_mutex_unlock(&x->lock);
    return fd;
}

static void ping_streams(http_server *s, double now) {
    static const char ping[] = ": ping\n\n";
    (void)pthread_mutex_lock(&s->lock);
    for (http_exchange *x = s->streams; x != NULL; x = x->next) {
        (void)pthread_mutex_lock(&x->lock);
        const bool silent = now - x->written >= s->config.limits.ping_seconds;
        (void)pthread_mutex_unlock(&x->lock);
        if (silent)
            (void)http_stream_write(x, ping, sizeof ping - 1);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* Those that send a header, or read a reply, byte by byte; a connection on which nothing moves is
 * ended before that. */
static void end_slow_ones(http_server *s, double now) {
    (void)pthread_mutex_lock(&s->lock);
    for (http_connection *c = s->connections; c != NULL; c = c->next)
        if (c->until > 0.0 && now > c->until)
            (void)shutdown(c->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&s->lock);
}

void http_tick(http_server *s) {
    const double now = tern_clock_seconds();
    ping_streams(s, now);
    end_slow_ones(s, now);
}
