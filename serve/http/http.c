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
#include "serve/http/paths.h"
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
    free(x->bytes);
    free(x->reply);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}

static int digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes %XX in place, except %00, which would end the text. */
static void unescape(char *text) {
    char *out = text;
    for (const char *in = text; *in != '\0'; out++) {
        const int high = *in == '%' ? digit(in[1]) : -1;
        const int low = high >= 0 ? digit(in[2]) : -1;
        const bool escaped = low >= 0 && high + low > 0;
        *out = escaped ? (char)(16 * high + low) : *in;
        in += escaped ? 3 : 1;
    }
    *out = '\0';
}

/* True if a target is not a full URL, or is one with the host of the Host line. */
static bool names_host(const char *target, const char *host) {
    tern_origin at;
    if (!tern_origin_read(target, &at))
        return true;
    return host != NULL && tern_origin_is_of(&at, host);
}

/* Splits the target into path and arguments. A client may also send a full URL; its path is what
 * follows the host. */
static void split_target(http_exchange *x) {
    tern_origin at;
    char *path = x->head.target;
    if (tern_origin_read(path, &at))
        path += at.size;
    char *question = strchr(path, '?');
    if (question != NULL)
        *question = '\0';
    x->arguments = question != NULL ? question + 1 : "";
    unescape(path);
    x->path = path_meant(path, x->server->config.prefix, &x->deployment);
}

/* Parses the head into x->head, which is left empty unless it returns HTTP_HEAD_WHOLE. */
static http_head_verdict read_head(http_exchange *x, size_t size) {
    static char nothing[1];
    const http_head_verdict verdict =
        size > 0 ? http_head_read(x->bytes, size, &x->head) : HTTP_HEAD_WRONG;
    if (verdict != HTTP_HEAD_WHOLE)
        x->head = (http_head){.method = nothing, .target = nothing};
    return verdict;
}

http_exchange *http_begin(http_connection *c, const char *bytes, size_t size) {
    http_server *s = c->server;
    http_exchange *x = calloc(1, sizeof *x);
    char *copy = x != NULL ? malloc(size + 1) : NULL;
    if (copy == NULL || pthread_mutex_init(&x->lock, NULL) != 0) {
        free(copy);
        free(x);
        return NULL;
    }
    memcpy(copy, bytes, size);
    atomic_init(&x->owners, 1);
    x->server = s;
    x->bytes = copy;
    x->began = tern_clock_seconds();
    x->connection = c;
    x->path = x->arguments = "";
    const http_head_verdict verdict = read_head(x, size);
    if (verdict != HTTP_HEAD_WHOLE)
        x->verdict = verdict == HTTP_HEAD_VERSION ? HTTP_VERSION : HTTP_BYTES;
    c->x = x;
    (void)atomic_fetch_add(&s->active, 1);
    return x;
}

const char *http_method(const http_exchange *x) {
    return x->head.method;
}

const char *http_path(const http_exchange *x) {
    return x->path;
}

const char *http_deployment(const http_exchange *x) {
    return x->deployment;
}

const char *http_body(const http_exchange *x, size_t *size) {
    *size = x->body_size;
    return x->body != NULL ? x->body : "";
}

const char *http_request_header(const http_exchange *x, const char *name) {
    return http_head_find(&x->head, name);
}

bool http_argument(const http_exchange *x, const char *name, char *out, size_t size) {
    const size_t n = strlen(name);
    for (const char *at = x->arguments; at != NULL; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, name, n) == 0 && at[n] == '=') {
            (void)snprintf(out, size, "%.*s", (int)strcspn(at + n + 1, "&"), at + n + 1);
            unescape(out);
            return true;
        }
    }
    return false;
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

/* ---- what a request comes to ----------------------------------------------------------------- */

static const struct {
    unsigned status;
    bool ends; /* closes the connection: it is not known, or not trusted, where the next request
                  begins */
    const char *message;
} refusals[] = {
    [HTTP_BYTES] = {400, true, "the request has a byte or a line that HTTP does not have"},
    [HTTP_VERSION] = {505, true, "the request is of another version than HTTP/1.0 and HTTP/1.1"},
    [HTTP_LINE] = {414, true, "the first line of the request is longer than"},
    [HTTP_FIELDS] = {431, true, "the header is longer than"},
    [HTTP_FRAMING] = {400, true,
                      "the header does not say once, and only once, how long the body is"},
    [HTTP_HOST] = {400, true,
                   "the header does not say once, and as HOST or HOST:PORT, who is asked"},
    [HTTP_CHUNKS] = {400, true, "the body is not in chunks as HTTP writes them"},
    [HTTP_TOO_LONG] = {413, false, "the body is longer than"},
    [HTTP_NO_MEMORY] = {503, false, "no memory for the body at the moment"},
};

/* Returns the limit that a verdict is about; 0: none. */
static size_t limit_of(const http_exchange *x) {
    const http_limits *l = &x->server->config.limits;
    if (x->verdict == HTTP_LINE || x->verdict == HTTP_FIELDS)
        return l->header_bytes;
    return x->verdict == HTTP_TOO_LONG ? l->body_bytes : 0;
}

/* Replies itself, because `handle` is not called for these requests. */
void http_refuse(http_exchange *x, http_verdict verdict) {
    char limit[48] = "";
    char *body = NULL;
    x->verdict = verdict;
    x->connection->closes = x->connection->closes || refusals[verdict].ends;
    if (limit_of(x) > 0)
        (void)snprintf(limit, sizeof limit, " %zu bytes", limit_of(x));
    if (verdict == HTTP_NO_MEMORY)
        http_reply_header(x, "Retry-After", "5");
    const int n = asprintf(
        &body, "{\"error\":{\"message\":\"%s%s\",\"type\":\"%s\",\"param\":null,\"code\":null}}",
        refusals[verdict].message, limit,
        verdict == HTTP_NO_MEMORY ? "unavailable_error" : "invalid_request_error");
    http_reply(x, refusals[verdict].status, "application/json", n > 0 ? body : NULL,
               n > 0 ? (size_t)n : 1);
}

static http_verdict judge(http_exchange *x) {
    http_framing f = {0};
    const char *at = NULL, *name, *value;
    if (x->verdict != HTTP_SOUND)
        return x->verdict;
    while (http_head_next(&x->head, &at, &name, &value))
        http_framing_note(&f, name, value);
    if (!http_framing_is_sound(&f, x->head.old))
        return HTTP_FRAMING;
    if (!http_framing_has_one_host(&f, x->head.old) ||
        !names_host(x->head.target, http_request_header(x, "Host")))
        return HTTP_HOST;
    x->connection->chunked = f.codings > 0;
    x->connection->body_left = f.length;
    return f.length > x->server->config.limits.body_bytes ? HTTP_TOO_LONG : HTTP_SOUND;
}

void http_judge(http_exchange *x) {
    http_server *s = x->server;
    const http_verdict verdict = judge(x);
    if (verdict == HTTP_SOUND)
        split_target(x);
    if (verdict == HTTP_SOUND && s->config.hooks.admit(s->config.hooks.user, x))
        return;
    if (verdict == HTTP_SOUND) {
        x->verdict = HTTP_UNWANTED;
    } else {
        x->connection->closes = true; /* the body is not read */
        http_refuse(x, verdict);
    }
}

static bool reserve(http_exchange *x, size_t size) {
    const http_limits *l = &x->server->config.limits;
    const size_t needed = x->body_size + size + 1; /* one for the terminator */
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

/* A body that is not kept is still read for a while, so that the client gets the reply that says
 * why. */
bool http_take(http_exchange *x, const char *bytes, size_t size) {
    const http_limits *l = &x->server->config.limits;
    if (x->verdict == HTTP_SOUND && size > l->body_bytes - x->body_size)
        x->verdict = HTTP_TOO_LONG;
    else if (x->verdict == HTTP_SOUND && !reserve(x, size))
        x->verdict = HTTP_NO_MEMORY;
    if (x->verdict != HTTP_SOUND) {
        drop_body(x);
        x->body_dropped += size;
        return x->body_dropped <= 2 * l->body_bytes;
    }
    memcpy(x->body + x->body_size, bytes, size);
    x->body_size += size;
    x->body[x->body_size] = '\0';
    return true;
}

void http_handle(http_exchange *x) {
    http_server *s = x->server;
    if (x->verdict == HTTP_SOUND || x->verdict == HTTP_UNWANTED)
        s->config.hooks.handle(s->config.hooks.user, x);
    else
        http_refuse(x, x->verdict);
}

void http_finish(http_exchange *x, bool whole) {
    http_server *s = x->server;
    (void)pthread_mutex_lock(&x->lock);
    x->connection = NULL;
    x->suspended = false;
    (void)pthread_mutex_unlock(&x->lock);
    http_stream_forget(x);
    s->config.hooks.done(s->config.hooks.user, x, whole);
    (void)atomic_fetch_sub(&s->active, 1);
    http_release(x);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void remove_socket(const http_server *s) {
    if (s->config.unix_path == NULL || s->config.handed != 0)
        return;
    tern_temporary_unlist(s->config.unix_path);
    (void)unlink(s->config.unix_path);
}

tern_status http_open(const http_config *config, http_server **out, tern_error *err) {
    http_server *s = calloc(1, sizeof *s);
    if (s == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a server");
    }
    s->config = *config;
    s->last = &s->connections;
    *out = s; /* hooks may need the server as soon as the thread runs */
    s->listening = http_listen(config, s->address, sizeof s->address, err);
    const bool listens = s->listening >= 0;
    if (listens && http_start(s))
        return TERN_OK;
    *out = NULL;
    if (listens) {
        (void)close(s->listening);
        remove_socket(s);
        (void)tern_fail(err, TERN_ERR_NOMEM, "%s: no thread or memory to serve it", s->address);
    }
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    return listens ? TERN_ERR_NOMEM : TERN_ERR_IO;
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
    http_stop(s);
    remove_socket(s);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    *server = NULL;
}
