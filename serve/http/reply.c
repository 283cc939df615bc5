/* SPDX-License-Identifier: Apache-2.0 */
/* Replies. The exchange holds them until the socket takes them. */

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "serve/http/internal.h"

enum { CHUNK_ROOM = 8 /* for a chunk's size in digits and the end of a line */, PIECE = 16384 };

/* Makes the thread that moves bytes look at the exchange again. Needs the exchange's lock. */
static void wake(http_exchange *x) {
    if (x->suspended && x->connection != NULL) {
        x->suspended = false;
        atomic_store(&x->connection->woken, true);
        http_wake(x->server);
    }
}

/* ---- the thread that moves bytes ------------------------------------------------------------- */

static const char *reason_of(unsigned status) {
    static const struct {
        unsigned status;
        const char *words;
    } reasons[] = {
        {200, "OK"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].words;
    return "";
}

/* Appends to the head in c->out. */
static void print(http_connection *c, const char *format, ...) TERN_PRINTF(2, 3);
static void print(http_connection *c, const char *format, ...) {
    const size_t room = HTTP_OUT_BYTES - c->out_end;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(c->out + c->out_end, room, format, args);
    va_end(args);
    c->out_end += n >= 0 && (size_t)n < room ? (size_t)n : room;
}

/* Always uses English names, whatever the locale is: RFC 9110, 5.6.7. */
static void print_date(http_connection *c) {
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t;
    const time_t now = time(NULL);
    if (gmtime_r(&now, &t) != NULL)
        print(c, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT\r\n", days + 3 * t.tm_wday, t.tm_mday,
              months + 3 * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* True if the status itself says that there is no body. A length would describe another reply. */
static bool is_bare(const http_exchange *x) {
    return x->status == 204 || x->status == 304;
}

/* Prints the fields that tell the client where the reply ends. */
static void print_framing(http_connection *c, const http_exchange *x) {
    if (c->closes)
        print(c, "Connection: close\r\n");
    else if (x->head.old)
        print(c, "Connection: keep-alive\r\n");
    if (x->stream && !x->head.old)
        print(c, "Transfer-Encoding: chunked\r\n");
    else if (!x->stream && !is_bare(x))
        print(c, "Content-Length: %zu\r\n", x->reply_size);
}

/* Prints the head into c->out. Needs the exchange's lock. False: there is no room for all lines.
 * The reply is then not sent, since it would mean something else without them. */
static bool print_head(http_connection *c, http_exchange *x) {
    const char *origin = x->server->config.origin;
    c->closes = c->closes || (x->stream && x->head.old);
    print(c, "HTTP/1.1 %u %s\r\n", x->status, reason_of(x->status));
    print_date(c);
    print_framing(c, x);
    print(c, "Content-Type: %s\r\n", x->type);
    if (x->stream)
        print(c, "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n");
    if (origin != NULL)
        print(c,
              "Access-Control-Allow-Origin: %s\r\n"
              "Access-Control-Expose-Headers: X-Tern-Digest, Retry-After\r\nVary: Origin\r\n",
              origin);
    for (unsigned i = 0; i < x->n_headers; i++)
        print(c, "%s: %s\r\n", x->headers[i].name, x->headers[i].value);
    print(c, "\r\n");
    return c->out_end + PIECE + 2 * CHUNK_ROOM <= HTTP_OUT_BYTES;
}

/* Puts the next bytes of the reply into c->out, as a chunk if it is sent in chunks. Returns how
 * many bytes of the reply these are. Needs the exchange's lock. */
static size_t put_piece(http_connection *c, http_exchange *x) {
    const size_t left = x->reply_size - x->reply_sent, n = left < PIECE ? left : PIECE;
    const bool chunked = x->stream && !x->head.old;
    if (n == 0)
        return 0;
    if (chunked)
        print(c, "%zx\r\n", n);
    memcpy(c->out + c->out_end, x->reply + x->reply_sent, n);
    c->out_end += n;
    x->reply_sent += n;
    if (chunked)
        print(c, "\r\n");
    return n;
}

static bool has_no_body(const http_exchange *x) {
    return is_bare(x) || strcmp(x->head.method, "HEAD") == 0;
}

/* Puts what is ready of the reply into c->out, its head first. Needs the exchange's lock. */
static http_filled fill(http_connection *c, http_exchange *x) {
    if (x->gone)
        return HTTP_CUT;
    if (x->over)
        return HTTP_ALL;
    if (x->status == 0)
        return HTTP_NOTHING;
    if (!x->begun && !print_head(c, x))
        return HTTP_CUT;
    x->begun = true;
    const size_t put = has_no_body(x) ? 0 : put_piece(c, x);
    const bool last = x->ended && (has_no_body(x) || x->reply_sent == x->reply_size);
    if (last && x->stream && !x->head.old && !has_no_body(x))
        print(c, "0\r\n\r\n");
    x->over = last;
    if (put == 0 && c->out_end == 0)
        return last ? HTTP_ALL : HTTP_NOTHING;
    return HTTP_FILLED;
}

http_filled http_fill(http_connection *c) {
    http_exchange *x = c->x;
    (void)pthread_mutex_lock(&x->lock);
    const http_filled filled = fill(c, x);
    x->suspended = filled == HTTP_NOTHING;
    (void)pthread_mutex_unlock(&x->lock);
    return filled;
}

/* ---- any thread ------------------------------------------------------------------------------ */

/* Needs the exchange's lock. */
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

/* Reserves `size` bytes for replies that clients have not read; false: all_replies_bytes is
 * reached. A short reply is always allowed, so that clients hear of errors. Needs the exchange's
 * lock. */
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

/* Returns the body that replaces a reply for which there is no room; NULL: no memory. */
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
}

void http_stream_open(http_exchange *x, const char *type) {
    http_server *s = x->server;
    (void)pthread_mutex_lock(&s->lock);
    (void)pthread_mutex_lock(&x->lock);
    if (x->status == 0) {
        x->status = 200;
        x->type = type != NULL ? type : "text/event-stream";
        x->stream = true;
        x->pinged = type == NULL;
        x->written = tern_clock_seconds();
        x->next = s->streams;
        if (x->next != NULL)
            x->next->before = x;
        s->streams = x;
        http_keep(x); /* the list keeps it */
        wake(x);
    }
    (void)pthread_mutex_unlock(&x->lock);
    (void)pthread_mutex_unlock(&s->lock);
}

/* Needs the server's lock. */
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

/* Makes room for `size` more bytes; false: a limit is reached, or no memory. Needs the exchange's
 * lock. */
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

/* Breaks the connection off, so that the client sees that the reply is incomplete. Needs the
 * exchange's lock. */
static void cut(http_exchange *x) {
    x->gone = true;
    (void)shutdown(x->connection->fd, SHUT_RDWR);
}

bool http_stream_write(http_exchange *x, const char *bytes, size_t size) {
    (void)pthread_mutex_lock(&x->lock);
    bool written = x->stream && !x->ended && !x->gone && x->connection != NULL;
    if (written && !make_room(x, size)) {
        cut(x); /* the client does not read, or memory is short: a gap in the stream would be
                   worse */
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
    wake(x);
    (void)pthread_mutex_unlock(&x->lock);
    http_stream_forget(x);
}

void http_stream_cut(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    if (x->connection != NULL)
        cut(x);
    (void)pthread_mutex_unlock(&x->lock);
    http_stream_end(x);
}

short http_leaves_by(const http_connection *c, const http_exchange *x) {
    const bool answers = c->tls == NULL && !x->head.old;
    return answers ? POLLHUP | POLLERR : TERN_OS_HALF_CLOSED | POLLHUP | POLLERR;
}

bool http_gone(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    if (!x->gone && x->connection != NULL) {
        struct pollfd look = {.fd = x->connection->fd, .events = TERN_OS_HALF_CLOSED};
        x->gone = poll(&look, 1, 0) > 0 && (look.revents & http_leaves_by(x->connection, x)) != 0;
    }
    const bool gone = x->gone || x->connection == NULL;
    if (gone)
        wake(x);
    (void)pthread_mutex_unlock(&x->lock);
    return gone;
}

int http_socket(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    const int fd = x->gone || x->connection == NULL ? -1 : x->connection->fd;
    (void)pthread_mutex_unlock(&x->lock);
    return fd;
}

bool http_stream_ping(http_exchange *x) {
    static const char ping[] = ": ping\n\n";
    return x->pinged && http_stream_write(x, ping, sizeof ping - 1);
}

void http_tick(http_server *s) {
    const double now = tern_clock_seconds();
    (void)pthread_mutex_lock(&s->lock);
    for (http_exchange *x = s->streams; x != NULL; x = x->next) {
        (void)pthread_mutex_lock(&x->lock);
        const bool silent = now - x->written >= s->config.limits.ping_seconds;
        (void)pthread_mutex_unlock(&x->lock);
        if (silent)
            (void)http_stream_ping(x);
    }
    (void)pthread_mutex_unlock(&s->lock);
}
