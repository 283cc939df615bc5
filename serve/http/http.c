/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/http.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/authority.h"
#include "base/metrics.h"
#include "base/out_file.h"
#include "serve/http/framing.h"
#include "serve/http/internal.h"
#include "serve/http/tls.h"

http_limits http_limits_default(void) {
    return (http_limits){.header_bytes = 64 << 10,
                         .body_bytes = 16 << 20,
                         .all_bodies_bytes = 256 << 20,
                         .all_replies_bytes = 256 << 20,
                         .unread_bytes = 1 << 20,
                         .connections = 512,
                         .idle_seconds = 60,
                         .request_seconds = 60,
                         .ping_seconds = 15.0};
}

/* ---- exchanges ------------------------------------------------------------------------------- */

void http_keep(http_exchange *x) {
    (void)atomic_fetch_add(&x->owners, 1);
}

static void drop_body(http_exchange *x) {
    (void)atomic_fetch_sub(&x->server->bodies, x->body_capacity);
    free(x->body);
    x->body = NULL;
    x->body_size = x->body_capacity = 0;
}

void http_release(http_exchange *x) {
    if (atomic_fetch_sub(&x->owners, 1) > 1)
        return;
    if (x->mark != NULL)
        x->server->config.hooks.forget(x->server->config.hooks.user, x->mark);
    drop_body(x);
    (void)atomic_fetch_sub(&x->server->replies, x->held);
    free(x->method);
    free(x->path);
    free(x->reply);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}

/* Of a whole address, which a client may send too, what follows the host. */
static const char *without_host(const char *path) {
    tern_origin at;
    if (!tern_origin_read(path, &at))
        return path;
    return path[at.size] == '/' ? path + at.size : "/";
}

/* Whether a whole address names the host that the Host line names. */
static bool names_host(const char *path, const char *host) {
    tern_origin at;
    if (path[0] == '/' || strstr(path, "://") == NULL)
        return true;
    return host != NULL && tern_origin_read(path, &at) && tern_origin_is_of(&at, host);
}

static http_exchange *new_exchange(http_server *s, struct MHD_Connection *connection,
                                   const char *method, const char *path) {
    http_exchange *x = calloc(1, sizeof *x);
    if (x == NULL)
        return NULL;
    x->server = s;
    x->method = strdup(method);
    x->path = strdup(without_host(path));
    if (x->method == NULL || x->path == NULL || pthread_mutex_init(&x->lock, NULL) != 0) {
        free(x->method);
        free(x->path);
        free(x);
        return NULL;
    }
    atomic_init(&x->owners, 1);
    x->began = x->body_began = tern_clock_seconds();
    x->connection = connection;
    x->fd = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    (void)atomic_fetch_add(&s->active, 1);
    return x;
}

const char *http_method(const http_exchange *x) {
    return x->method;
}

const char *http_path(const http_exchange *x) {
    return x->path;
}

const char *http_body(const http_exchange *x, size_t *size) {
    *size = x->body_size;
    return x->body != NULL ? x->body : "";
}

const char *http_request_header(const http_exchange *x, const char *name) {
    return mhd.lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

const char *http_argument(const http_exchange *x, const char *name) {
    return mhd.lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);
}

void http_set_mark(http_exchange *x, void *mark) {
    x->mark = mark;
}

void *http_mark(const http_exchange *x) {
    return x->mark;
}

unsigned http_status(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    const unsigned status = x->status;
    (void)pthread_mutex_unlock(&x->lock);
    return status;
}

uint64_t http_sent_bytes(http_exchange *x) {
    (void)pthread_mutex_lock(&x->lock);
    const uint64_t given = x->given;
    (void)pthread_mutex_unlock(&x->lock);
    return given;
}

double http_began(const http_exchange *x) {
    return x->began;
}

/* ---- framing --------------------------------------------------------------------------------- */

static http_result note_header(void *user, enum MHD_ValueKind kind, const char *name,
                               const char *value) {
    (void)kind;
    http_framing_note(user, name, value);
    return MHD_YES;
}

static http_verdict judge(const http_exchange *x, const char *path, const char *version) {
    http_framing f = {0};
    (void)mhd.get_connection_values(x->connection, MHD_HEADER_KIND, note_header, &f);
    if (!http_framing_is_sound(&f, version))
        return HTTP_FRAMING;
    if (!http_framing_has_one_host(&f) || !names_host(path, http_request_header(x, "Host")))
        return HTTP_HOST;
    if (f.bytes > x->server->config.limits.header_bytes)
        return HTTP_HEADER;
    return f.length > x->server->config.limits.body_bytes ? HTTP_TOO_LONG : HTTP_SOUND;
}

/* Replies to what no hook hears of. */
static void refuse(http_exchange *x) {
    static const struct {
        unsigned status;
        const char *message, *type;
    } kinds[] = {
        [HTTP_FRAMING] = {400, "the header does not say once, and only once, how long the body is",
                          "invalid_request_error"},
        [HTTP_HOST] = {400, "the header does not say once, and as HOST or HOST:PORT, who is asked",
                       "invalid_request_error"},
        [HTTP_HEADER] = {431, "the header is longer than", "invalid_request_error"},
        [HTTP_TOO_LONG] = {413, "the body is longer than", "invalid_request_error"},
        [HTTP_NO_MEMORY] = {503, "no memory for the body at the moment", "unavailable_error"},
    };
    char limit[48] = "";
    char *body = NULL;
    const http_limits *l = &x->server->config.limits;
    if (x->verdict == HTTP_TOO_LONG || x->verdict == HTTP_HEADER)
        (void)snprintf(limit, sizeof limit, " %zu bytes",
                       x->verdict == HTTP_HEADER ? l->header_bytes : l->body_bytes);
    else if (x->verdict == HTTP_NO_MEMORY)
        http_reply_header(x, "Retry-After", "5");
    const int n = asprintf(
        &body, "{\"error\":{\"message\":\"%s%s\",\"type\":\"%s\",\"param\":null,\"code\":null}}",
        kinds[x->verdict].message, limit, kinds[x->verdict].type);
    http_reply(x, kinds[x->verdict].status, "application/json", n > 0 ? body : NULL,
               n > 0 ? (size_t)n : 1);
}

/* ---- what the library calls ------------------------------------------------------------------ */

static http_connection *connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* From here on nothing is expected of the client but the body, which has a limit of its own. */
static void begin_exchange(http_server *s, http_exchange *x) {
    (void)pthread_mutex_lock(&s->lock);
    x->wire = connection_of(x->connection);
    if (x->wire != NULL)
        x->wire->until = 0.0;
    (void)pthread_mutex_unlock(&s->lock);
}

/* The next header is waited for. */
static void end_exchange(http_server *s, http_exchange *x) {
    (void)pthread_mutex_lock(&s->lock);
    if (x->wire != NULL) {
        http_wait_for(s, x->wire, 0);
        x->wire = NULL;
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static http_result begin(http_server *s, struct MHD_Connection *connection, const char *path,
                         const char *method, const char *version, void **slot) {
    http_exchange *x = new_exchange(s, connection, method, path);
    if (x == NULL)
        return MHD_NO;
    *slot = x;
    begin_exchange(s, x);
    x->verdict = judge(x, path, version);
    if (x->verdict != HTTP_SOUND) {
        refuse(x);
        return http_proceed(x); /* what follows is not read: the library ends the connection */
    }
    if (!s->config.hooks.admit(s->config.hooks.user, x))
        x->verdict = HTTP_UNWANTED;
    return MHD_YES;
}

static bool reserve(http_exchange *x, size_t size) {
    const http_limits *l = &x->server->config.limits;
    const size_t needed = x->body_size + size + 1; /* a terminator */
    if (needed <= x->body_capacity)
        return true;
    size_t capacity = 2 * needed;
    capacity = capacity > l->body_bytes + 1 ? l->body_bytes + 1 : capacity;
    const size_t more = capacity - x->body_capacity;
    if (atomic_fetch_add(&x->server->bodies, more) + more > l->all_bodies_bytes) {
        (void)atomic_fetch_sub(&x->server->bodies, more);
        return false;
    }
    char *grown = realloc(x->body, capacity);
    if (grown == NULL) {
        (void)atomic_fetch_sub(&x->server->bodies, more);
        return false;
    }
    x->body = grown;
    x->body_capacity = capacity;
    return true;
}

/* A piece of the body. What is not kept is read on for a while, so that the client hears why. */
static http_result take(http_exchange *x, const char *bytes, size_t size) {
    const http_limits *l = &x->server->config.limits;
    if (tern_clock_seconds() - x->body_began > l->request_seconds)
        return MHD_NO;
    if (x->verdict == HTTP_SOUND && size > l->body_bytes - x->body_size)
        x->verdict = HTTP_TOO_LONG;
    else if (x->verdict == HTTP_SOUND && !reserve(x, size))
        x->verdict = HTTP_NO_MEMORY;
    if (x->verdict != HTTP_SOUND) {
        drop_body(x);
        x->body_dropped += size;
        return x->body_dropped <= 2 * l->body_bytes ? MHD_YES : MHD_NO;
    }
    memcpy(x->body + x->body_size, bytes, size);
    x->body_size += size;
    x->body[x->body_size] = '\0';
    return MHD_YES;
}

static http_result on_request(void *user, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *bytes,
                              size_t *size, void **slot) {
    http_server *s = user;
    http_exchange *x = *slot;
    if (x == NULL)
        return begin(s, connection, path, method, version, slot);
    if (*size > 0) {
        const http_result result = take(x, bytes, *size);
        *size = 0;
        return result;
    }
    if (!x->handled) {
        x->handled = true;
        if (x->verdict == HTTP_SOUND || x->verdict == HTTP_UNWANTED)
            s->config.hooks.handle(s->config.hooks.user, x);
        else
            refuse(x);
    }
    return http_proceed(x);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode how) {
    http_server *s = user;
    http_exchange *x = *slot;
    (void)connection;
    if (x == NULL)
        return;
    *slot = NULL;
    end_exchange(s, x);
    (void)pthread_mutex_lock(&x->lock);
    x->connection = NULL;
    x->suspended = false;
    (void)pthread_mutex_unlock(&x->lock);
    http_stream_forget(x);
    s->config.hooks.done(s->config.hooks.user, x, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    (void)atomic_fetch_sub(&s->active, 1);
    http_release(x);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    http_server *s = user;
    http_connection *c = *context;
    (void)pthread_mutex_lock(&s->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c = calloc(1, sizeof *c);
        if (c != NULL) {
            c->fd =
                mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
            http_wait_for(s, c, 0);
            c->next = s->connections;
            if (c->next != NULL)
                c->next->before = c;
            s->connections = c;
            *context = c;
        }
    } else if (c != NULL) {
        if (c->before != NULL)
            c->before->next = c->next;
        else
            s->connections = c->next;
        if (c->next != NULL)
            c->next->before = c->before;
        free(c);
        *context = NULL;
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Bytes that are written as %XX, but for %00, which would end the text. */
static size_t unescape(void *user, struct MHD_Connection *connection, char *text) {
    char *out = text;
    (void)user;
    (void)connection;
    for (const char *in = text; *in != '\0'; out++) {
        const int high = *in == '%' ? digit(in[1]) : -1;
        const int low = high >= 0 ? digit(in[2]) : -1;
        const bool escaped = low >= 0 && high + low > 0;
        *out = escaped ? (char)(16 * high + low) : *in;
        in += escaped ? 3 : 1;
    }
    *out = '\0';
    return (size_t)(out - text);
}

/* The library keeps a header, its cookies once more, and a list of its lines in this memory, and
 * lays the reply there too: without room it ends the connection without a word. */
enum { COPIES = 4 };

/* By poll, not epoll: the library asks epoll for changes only, and so it misses that a client has
 * closed its side when the news comes together with a piece of a request. Options are those that
 * version 0.9.71 knows: the library that is loaded may be older than the header. */
static struct MHD_Daemon *start(http_server *s, int fd) {
    const http_limits *l = &s->config.limits;
    const bool tls = s->config.tls;
    return mhd.start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0), 0, NULL,
        NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        l->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, COPIES * l->header_bytes,
        MHD_OPTION_CONNECTION_TIMEOUT, l->idle_seconds, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, http_tls_callback(),
        MHD_OPTION_HTTPS_PRIORITIES, HTTP_TLS_PRIORITIES, MHD_OPTION_END);
}

static void remove_socket(const http_server *s) {
    if (s->config.unix_path == NULL)
        return;
    tern_temporary_unlist(s->config.unix_path);
    (void)unlink(s->config.unix_path);
}

tern_status http_open(const http_config *config, http_server **out, tern_error *err) {
    const tern_status loaded = http_library_load(err);
    if (loaded != TERN_OK)
        return loaded;
    http_server *s = calloc(1, sizeof *s);
    if (s == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a server");
    }
    s->config = *config;
    *out = s; /* hooks may ask for it as soon as the library's thread runs */
    const int fd = http_listen(config, s->address, sizeof s->address, err);
    if (fd >= 0)
        s->daemon = start(s, fd);
    if (s->daemon == NULL) {
        *out = NULL;
        if (fd >= 0) {
            (void)close(fd);
            remove_socket(s);
            (void)tern_fail(err, TERN_ERR_NOMEM, "%s: no thread or memory to serve it", s->address);
        }
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
        return fd >= 0 ? TERN_ERR_NOMEM : TERN_ERR_IO;
    }
    return TERN_OK;
}

const char *http_address(const http_server *s) {
    return s->address;
}

unsigned http_active(const http_server *s) {
    return atomic_load(&s->active);
}

void http_close(http_server **server) {
    http_server *s = *server;
    if (s == NULL)
        return;
    mhd.stop_daemon(s->daemon);
    remove_socket(s);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    *server = NULL;
}
