/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: received bytes are parsed as RFC 9112 demands, and replies are sent. */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "serve/http/internal.h"

enum {
    FIRST_BYTES = 16384,    /* first capacity of c->in */
    LINGER_SECONDS = 2,     /* longer than a round trip takes */
    SLOWEST_READER = 16384, /* bytes a second, after the time that every client has */
    TURNS = 64              /* of one connection before the others get theirs */
};

/* The result of one step of a phase. */
typedef enum turn {
    PAUSES, /* waits for the socket or for more of the reply */
    GOES_ON,
    ENDS
} turn;

static const char go_ahead[] = "HTTP/1.1 100 Continue\r\n\r\n";

/* ---- the socket ------------------------------------------------------------------------------ */

static long result_of(ssize_t n) {
    const bool later = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    return n >= 0 ? (long)n : later ? HTTP_LATER : HTTP_BROKEN;
}

static long receive(http_connection *c, char *bytes, size_t size) {
    return c->tls != NULL ? http_tls_receive(c->tls, bytes, size)
                          : result_of(recv(c->fd, bytes, size, 0));
}

/* Makes room for more bytes in c->in. False: there is no memory. */
static bool make_room(http_connection *c) {
    if (c->in_at > 0) {
        memmove(c->in, c->in + c->in_at, c->in_end - c->in_at);
        c->in_end -= c->in_at;
        c->in_at = 0;
    }
    if (c->in_end < c->in_capacity)
        return true;
    const size_t most = c->server->config.limits.header_bytes;
    size_t capacity = c->in_capacity > 0 ? 2 * c->in_capacity : FIRST_BYTES;
    capacity = capacity < most ? capacity : most;
    char *grown = realloc(c->in, capacity);
    if (grown == NULL)
        return false;
    c->in = grown;
    c->in_capacity = capacity;
    return true;
}

/* Frees the input buffer, so that an idle connection holds no memory for it. */
static void drop_in(http_connection *c) {
    free(c->in);
    c->in = NULL;
    c->in_at = c->in_end = c->in_capacity = 0;
}

/* Reads once, appending to the bytes that were not parsed yet. These are always fewer than a head
 * may have. */
static turn read_more(http_connection *c) {
    if (!make_room(c))
        return ENDS;
    const long n = receive(c, c->in + c->in_end, c->in_capacity - c->in_end);
    if (n == HTTP_LATER) {
        if (c->in_end == 0)
            drop_in(c);
        return PAUSES;
    }
    if (n <= 0)
        return ENDS;
    c->in_end += (size_t)n;
    c->moved = tern_clock_seconds();
    return GOES_ON;
}

/* Sends the bytes in c->out. */
static turn write_out(http_connection *c) {
    while (c->out_at < c->out_end) {
        const char *bytes = c->out + c->out_at;
        const size_t size = c->out_end - c->out_at;
        const long n = c->tls != NULL ? http_tls_send(c->tls, bytes, size)
                                      : result_of(send(c->fd, bytes, size, MSG_NOSIGNAL));
        if (n == HTTP_LATER)
            return PAUSES;
        if (n < 0)
            return ENDS;
        c->out_at += (size_t)n;
        c->moved = tern_clock_seconds();
    }
    c->out_at = c->out_end = 0;
    return GOES_ON;
}

static bool has_out(http_connection *c) {
    if (c->out == NULL)
        c->out = malloc(HTTP_OUT_BYTES);
    return c->out != NULL;
}

static void put_go_ahead(http_connection *c) {
    memcpy(c->out, go_ahead, sizeof go_ahead - 1);
    c->out_end = sizeof go_ahead - 1;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void wait_for_head(http_connection *c) {
    const http_limits *l = &c->server->config.limits;
    c->phase = HTTP_HEAD;
    c->scan = (http_scan){0};
    c->since = tern_clock_seconds();
    c->until = c->since + l->idle_seconds + l->request_seconds;
}

static turn shake(http_connection *c) {
    const int result = http_tls_shake(c->tls);
    if (result == HTTP_LATER)
        return PAUSES;
    if (result != 0)
        return ENDS;
    wait_for_head(c);
    return GOES_ON;
}

static turn begin_reply(http_connection *c) {
    c->phase = HTTP_REPLY;
    c->until = 0.0;
    return GOES_ON;
}

/* The received bytes are not a valid head: replies with the reason. */
static turn refuse_head(http_connection *c, http_verdict verdict) {
    http_exchange *x = http_begin(c, "", 0);
    if (x == NULL)
        return ENDS;
    http_refuse(x, verdict);
    return begin_reply(c);
}

/* True if a comma-separated list contains the word, in any case. */
static bool names(const char *list, const char *word) {
    const size_t n = strlen(word);
    while (list != NULL && *list != '\0') {
        list += strspn(list, " \t,");
        const size_t size = strcspn(list, " \t,");
        if (size == n && strncasecmp(list, word, n) == 0)
            return true;
        list += size;
    }
    return false;
}

/* A list may be spread over several fields: RFC 9110, 5.3. */
static bool has_option(const http_head *h, const char *word) {
    const char *at = NULL, *name, *value;
    while (http_head_next(h, &at, &name, &value))
        if (strcasecmp(name, "Connection") == 0 && names(value, word))
            return true;
    return false;
}

static bool closes_after(const http_head *h) {
    return has_option(h, "close") || (h->old && !has_option(h, "keep-alive"));
}

/* A client that sent "Expect: 100-continue" is told to send its body. If its head was refused
 * already, the connection is not read any further: nobody knows whether the client will send the
 * body. */
static turn answer_expectation(http_connection *c) {
    http_exchange *x = c->x;
    const char *expects = http_head_find(&x->head, "Expect");
    const bool waits = expects != NULL && strcasecmp(expects, "100-continue") == 0 &&
                       !x->head.old && c->in_at == c->in_end && (c->chunked || c->body_left > 0);
    if (!waits)
        return GOES_ON;
    if (http_status(x) != 0) {
        c->closes = true;
        return begin_reply(c);
    }
    if (!has_out(c))
        return ENDS;
    put_go_ahead(c);
    return GOES_ON;
}

static turn begin_request(http_connection *c) {
    http_exchange *x = http_begin(c, c->in + c->in_at, c->scan.at);
    if (x == NULL)
        return ENDS;
    c->in_at += c->scan.at;
    c->closes = closes_after(&x->head);
    c->chunked = false;
    c->body_left = 0;
    c->chunks = (http_chunks){0};
    http_judge(x);
    if (x->verdict != HTTP_SOUND && x->verdict != HTTP_UNWANTED)
        return begin_reply(c);
    c->phase = HTTP_BODY;
    c->since = tern_clock_seconds();
    c->until = c->since + c->server->config.limits.request_seconds;
    return answer_expectation(c);
}

static turn read_head(http_connection *c) {
    const size_t size = c->in_end - c->in_at;
    const http_head_verdict verdict =
        size > 0 ? http_head_scan(&c->scan, c->in + c->in_at, size) : HTTP_HEAD_MORE;
    if (verdict == HTTP_HEAD_WHOLE)
        return begin_request(c);
    if (verdict != HTTP_HEAD_MORE)
        return refuse_head(c, HTTP_BYTES);
    if (size >= c->server->config.limits.header_bytes)
        return refuse_head(c, c->scan.lines == 0 ? HTTP_LINE : HTTP_FIELDS);
    return read_more(c);
}

static bool is_read(const http_connection *c) {
    return c->chunked ? c->chunks.state == HTTP_CHUNKS_DONE : c->body_left == 0;
}

/* Takes a piece of the body from c->in, which is not empty. False: nothing more is read from this
 * client. */
static bool take_piece(http_connection *c) {
    const char *piece = c->in + c->in_at;
    size_t n = c->in_end - c->in_at;
    if (c->chunked) {
        c->in_at += http_chunks_take(&c->chunks, piece, n, &piece, &n);
    } else {
        n = c->body_left < n ? (size_t)c->body_left : n;
        c->body_left -= n;
        c->in_at += n;
    }
    return n == 0 || http_take(c->x, piece, n);
}

static turn end_body(http_connection *c) {
    const turn next = begin_reply(c);
    http_handle(c->x);
    return next;
}

static turn read_body(http_connection *c) {
    const turn asked = write_out(c);
    if (asked != GOES_ON)
        return asked;
    while (!is_read(c) && c->in_at < c->in_end) {
        if (!take_piece(c)) {
            c->closes = true;
            return end_body(c); /* the client hears why */
        }
        if (c->chunks.state == HTTP_CHUNKS_WRONG) {
            http_refuse(c->x, HTTP_CHUNKS);
            return begin_reply(c);
        }
    }
    if (!is_read(c))
        return read_more(c);
    return end_body(c);
}

/* The whole reply has been sent. */
static turn end_reply(http_connection *c) {
    http_finish(c->x, true);
    c->x = NULL;
    free(c->out);
    c->out = NULL;
    if (c->in_at == c->in_end)
        drop_in(c);
    if (!c->closes) {
        wait_for_head(c);
        return c->in_end > 0 || c->tls != NULL ? GOES_ON : PAUSES; /* poll reports it when more
                                                                      comes */
    }
    if (c->tls != NULL)
        http_tls_bye(c->tls);
    (void)shutdown(c->fd, SHUT_WR);
    c->phase = HTTP_LINGER;
    c->until = tern_clock_seconds() + LINGER_SECONDS;
    return GOES_ON;
}

/* Once the reply is complete, the client has a limited time to read the rest of it. */
static void wait_for_reader(http_connection *c) {
    const http_limits *l = &c->server->config.limits;
    http_exchange *x = c->x;
    (void)pthread_mutex_lock(&x->lock);
    if (x->ended && c->until == 0.0) {
        c->until = tern_clock_seconds() + l->idle_seconds + l->request_seconds +
                   (double)(x->reply_size - x->reply_sent + c->out_end) / SLOWEST_READER;
    }
    (void)pthread_mutex_unlock(&x->lock);
}

static turn write_reply(http_connection *c) {
    wait_for_reader(c);
    if (c->out_at == c->out_end) {
        switch (has_out(c) ? http_fill(c) : HTTP_CUT) {
        case HTTP_NOTHING:
            return PAUSES;
        case HTTP_ALL:
            return end_reply(c);
        case HTTP_CUT:
            return ENDS;
        case HTTP_FILLED:
            break;
        }
    }
    return write_out(c);
}

/* Reads and drops bytes straight from the socket. Those of a TLS session stay encrypted, since
 * nothing in them is needed any more. */
static turn linger(http_connection *c) {
    char dropped[4096];
    const long n = result_of(recv(c->fd, dropped, sizeof dropped, 0));
    if (n == HTTP_LATER)
        return PAUSES;
    if (n <= 0)
        return ENDS;
    c->dropped += (size_t)n;
    c->moved = tern_clock_seconds();
    return c->dropped <= 2 * c->server->config.limits.body_bytes ? GOES_ON : ENDS;
}

static turn take_turn(http_connection *c) {
    switch (c->phase) {
    case HTTP_SHAKES:
        return shake(c);
    case HTTP_HEAD:
        return read_head(c);
    case HTTP_BODY:
        return read_body(c);
    case HTTP_REPLY:
        return write_reply(c);
    case HTTP_LINGER:
        break;
    }
    return linger(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

void http_connect(http_server *s, int fd) {
    http_connection *c = calloc(1, sizeof *c);
    http_tls *tls = c != NULL && s->config.tls ? http_tls_open(fd) : NULL;
    if (c == NULL || (s->config.tls && tls == NULL)) {
        free(c);
        (void)close(fd);
        return;
    }
    c->server = s;
    c->fd = fd;
    c->tls = tls;
    c->moved = tern_clock_seconds();
    wait_for_head(c);
    if (tls != NULL)
        c->phase = HTTP_SHAKES;
    *s->last = c;
    s->last = &c->next;
    s->n_connections++;
}

void http_end(http_connection *c) {
    if (c->x != NULL)
        http_finish(c->x, false);
    http_tls_close(c->tls);
    (void)close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
}

static bool waits_for_us(const http_connection *c) {
    return c->phase == HTTP_REPLY && c->out_at == c->out_end;
}

/* True if the client has left while a reply was being computed. It is not answered any more; bytes
 * that are already on their way are still sent. */
static bool has_left(const http_connection *c, short news) {
    return waits_for_us(c) && (news & http_leaves_by(c, c->x)) != 0;
}

/* The client has closed its side, or has left. Bytes that mean nothing make its system tell which:
 * a comment in a stream; before a reply, the status that clients pass over. */
static turn ask_whether_it_is_there(http_connection *c) {
    c->half_closed = true;
    if (http_stream_ping(c->x) || http_status(c->x) != 0)
        return PAUSES;
    if (!has_out(c))
        return ENDS;
    put_go_ahead(c);
    return write_out(c) == ENDS ? ENDS : PAUSES;
}

/* True if the connection has passed its time limit, or no byte moved for too long while the client
 * had to send or read some. */
static bool is_late(const http_connection *c, double now) {
    return (c->until > 0.0 && now > c->until) ||
           (!waits_for_us(c) && now > c->moved + c->server->config.limits.idle_seconds);
}

bool http_go_on(http_connection *c, short news, double now) {
    const bool wanted = atomic_exchange(&c->woken, false) || news != 0 || c->again;
    turn next = wanted ? GOES_ON : PAUSES;
    c->again = false;
    for (int i = 0; next == GOES_ON && i < TURNS; i++)
        next = take_turn(c);
    c->again = next == GOES_ON;
    if (next == PAUSES && waits_for_us(c) && !has_left(c, news) &&
        (news & TERN_OS_HALF_CLOSED) != 0)
        next = ask_whether_it_is_there(c);
    if (next == ENDS || (next == PAUSES && (has_left(c, news) || is_late(c, now))))
        return false;
    return true;
}

short http_events(const http_connection *c) {
    const bool sends = c->out_at < c->out_end;
    if (c->tls != NULL && (c->phase == HTTP_SHAKES || sends))
        return http_tls_writes(c->tls) ? POLLOUT : POLLIN;
    if (sends)
        return POLLOUT;
    if (c->phase != HTTP_REPLY)
        return POLLIN;
    return c->half_closed ? 0 : TERN_OS_HALF_CLOSED;
}

/* True if a connection that waits for a head or a body is wanted less than another one that does.
 */
static bool is_less_wanted(const http_connection *c, const http_connection *other) {
    if ((c->phase == HTTP_BODY) != (other->phase == HTTP_BODY))
        return other->phase == HTTP_BODY;
    return c->since < other->since;
}

http_connection *http_least_wanted(const http_server *s) {
    const double latest = tern_clock_seconds() - HTTP_LEAST_WAIT;
    http_connection *least = NULL;
    for (http_connection *c = s->connections; c != NULL; c = c->next)
        if (c->phase <= HTTP_BODY && c->since <= latest &&
            (least == NULL || is_less_wanted(c, least)))
            least = c;
    return least;
}
