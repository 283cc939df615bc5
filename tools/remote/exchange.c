/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/remote/exchange.h"

#ifdef TERN_HAVE_CURL

#include <ctype.h>
#define CURL_DISABLE_TYPECHECK /* its macros refer to functions of the linked library */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/authority.h"
#include "base/in_file.h"
#include "base/late_library.h"
#include "base/metrics.h"
#include "tern/tern.h"
#include "tools/cli/interrupt.h"

enum {
    CONNECT_SECONDS = 15,
    LOOK_MILLISECONDS = 100,
    REFUSAL_BYTES = 64 << 10,
    HEADER_BYTES = 4096,
    MOST_MOVES = 5
};

struct exchange {
    exchange_config config;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers, *with_key; /* with_key: the same, and the key if there is one */
    char why[CURL_ERROR_SIZE];

    /* of the current exchange */
    const exchange_request *request;
    exchange_reply *reply;
    double heard; /* the time of the last byte */
    bool failed;  /* no memory for a refusal */
    bool secure;  /* the current server was reached by https */
};

/* ---- libcurl, which is loaded for the first exchange ------------------------------------------
 */

#define FUNCTIONS(X)                                                                               \
    X(easy_cleanup)                                                                                \
    X(easy_getinfo)                                                                                \
    X(easy_init)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_strerror)                                                                               \
    X(global_init)                                                                                 \
    X(multi_add_handle)                                                                            \
    X(multi_cleanup)                                                                               \
    X(multi_info_read)                                                                             \
    X(multi_init)                                                                                  \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_remove_handle)                                                                         \
    X(slist_append)                                                                                \
    X(slist_free_all)

#define FIELD(name) __typeof__(curl_##name) *name;
static struct { FUNCTIONS(FIELD) } curl;

#define SYMBOL(name) {"curl_" #name, &curl.name},
static const tern_late_symbol symbols[] = {FUNCTIONS(SYMBOL)};

/* ---- callbacks of the library ---------------------------------------------------------------- */

static bool keep_refusal(exchange_reply *r, const char *bytes, size_t size) {
    const size_t room = REFUSAL_BYTES - r->refusal.size;
    text_add(&r->refusal, bytes, size < room ? size : room);
    return !r->refusal.failed;
}

static void note_reply(exchange *e) {
    char *type = NULL;
    static const char stream[] = "text/event-stream";
    (void)curl.easy_getinfo(e->easy, CURLINFO_RESPONSE_CODE, &e->reply->status);
    (void)curl.easy_getinfo(e->easy, CURLINFO_CONTENT_TYPE, &type);
    e->reply->stream = type != NULL && strncasecmp(type, stream, sizeof stream - 1) == 0;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *user) {
    exchange *e = user;
    (void)one; /* always 1 */
    e->heard = tern_clock_seconds();
    note_reply(e);
    if (e->reply->status >= 300) {
        e->failed = !keep_refusal(e->reply, bytes, size);
        return e->failed ? 0 : size;
    }
    e->reply->unwanted = !e->request->sink(e->request->user, bytes, size);
    return e->reply->unwanted ? 0 : size;
}

/* Passes on name and value of a line "Name: value CR LF"; ignores other lines and long ones. */
static void tell_header(const exchange_request *request, const char *bytes, size_t size) {
    char line[HEADER_BYTES];
    const char *colon = memchr(bytes, ':', size);
    if (colon == NULL || size >= sizeof line)
        return;
    memcpy(line, bytes, size);
    line[size] = '\0';
    char *value = line + (colon - bytes);
    *value++ = '\0';
    value += strspn(value, " \t");
    value[strcspn(value, "\r\n")] = '\0';
    for (char *c = line; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    request->header(request->user, line, value);
}

static size_t on_header(char *bytes, size_t one, size_t size, void *user) {
    exchange *e = user;
    (void)one;
    e->heard = tern_clock_seconds();
    if (e->request->header != NULL)
        tell_header(e->request, bytes, size);
    return size;
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool add_header(struct curl_slist **list, const char *line) {
    struct curl_slist *longer = curl.slist_append(*list, line);
    *list = longer != NULL ? longer : *list;
    return longer != NULL;
}

static bool add_common(struct curl_slist **list) {
    return add_header(list, "Content-Type: application/json") &&
           add_header(list, "Accept: text/event-stream, application/json") &&
           add_header(list, "Expect:"); /* sends bodies at once */
}

static bool set_headers(exchange *e) {
    char *line = NULL;
    if (!add_common(&e->headers) || !add_common(&e->with_key))
        return false;
    if (e->config.key == NULL)
        return true;
    const bool made = asprintf(&line, "Authorization: Bearer %s", e->config.key) >= 0 &&
                      add_header(&e->with_key, line);
    free(line);
    return made;
}

/* The library follows no redirection: `move` checks the destination first. */
static bool set_options(exchange *e) {
    CURLcode code = curl.easy_setopt(e->easy, CURLOPT_ERRORBUFFER, e->why);
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {{CURLOPT_NOSIGNAL, 1L},
                   {CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS},
                   {CURLOPT_FOLLOWLOCATION, 0L},
                   {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2}, /* or later */
                   {CURLOPT_TCP_NODELAY, 1L}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        code |= curl.easy_setopt(e->easy, numbers[i].option, numbers[i].value);
    code |= curl.easy_setopt(e->easy, CURLOPT_WRITEFUNCTION, on_body);
    code |= curl.easy_setopt(e->easy, CURLOPT_WRITEDATA, e);
    code |= curl.easy_setopt(e->easy, CURLOPT_HEADERFUNCTION, on_header);
    code |= curl.easy_setopt(e->easy, CURLOPT_HEADERDATA, e);
    code |= curl.easy_setopt(e->easy, CURLOPT_UNIX_SOCKET_PATH, e->config.unix_path);
    if (e->config.ca_path != NULL)
        code |= curl.easy_setopt(e->easy, CURLOPT_CAINFO, e->config.ca_path);
    return code == CURLE_OK;
}

tern_status exchange_open(const exchange_config *config, exchange **out, tern_error *err) {
    const tern_status loaded =
        tern_late_library_load(TERN_CURL, symbols, sizeof symbols / sizeof *symbols, err);
    if (loaded != TERN_OK)
        return loaded;
    if (config->ca_path != NULL) { /* libcurl would wait for a pipe's writer */
        const tern_status sound = tern_in_file_check(config->ca_path, TERN_IN_FILE, err);
        if (sound != TERN_OK)
            return sound;
    }
    exchange *e = calloc(1, sizeof *e);
    if (e != NULL && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        e->config = *config;
        e->multi = curl.multi_init();
        e->easy = curl.easy_init();
    }
    if (e == NULL || e->multi == NULL || e->easy == NULL || !set_headers(e) || !set_options(e)) {
        exchange_close(&e);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to ask a server");
    }
    *out = e;
    return TERN_OK;
}

void exchange_close(exchange **exchange_) {
    exchange *e = *exchange_;
    if (e == NULL)
        return;
    curl.easy_cleanup(e->easy);
    (void)curl.multi_cleanup(e->multi);
    curl.slist_free_all(e->headers);
    curl.slist_free_all(e->with_key);
    free(e);
    *exchange_ = NULL;
}

/* ---- a request ------------------------------------------------------------------------------- */

bool exchange_is_own(const exchange *e, const char *url) {
    return tern_origin_is_same(url, e->config.base);
}

/* The key goes only to the server that the user named: scheme, host and port are compared
 * completely, for each request. */
static bool aim_at(exchange *e, const char *url) {
    CURLcode code = curl.easy_setopt(e->easy, CURLOPT_URL, url); /* libcurl copies it */
    code |= curl.easy_setopt(e->easy, CURLOPT_HTTPHEADER,
                             exchange_is_own(e, url) ? e->with_key : e->headers);
    return code == CURLE_OK;
}

static bool aim(exchange *e, const exchange_request *r) {
    char *url = NULL;
    char range[32];
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (r->path[0] != '/')
        code = aim_at(e, r->path) ? CURLE_OK : code;
    else if (asprintf(&url, "%s%s", e->config.base, r->path) >= 0)
        code = aim_at(e, url) ? CURLE_OK : code;
    free(url);
    (void)snprintf(range, sizeof range, "%" PRIu64 "-", r->from);
    code |= curl.easy_setopt(e->easy, CURLOPT_RANGE, r->from > 0 ? range : NULL);
    if (r->body != NULL) {
        code |= curl.easy_setopt(e->easy, CURLOPT_POST, 1L);
        code |= curl.easy_setopt(e->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->body));
        code |= curl.easy_setopt(e->easy, CURLOPT_POSTFIELDS, r->body);
    } else {
        code |= curl.easy_setopt(e->easy, CURLOPT_HTTPGET, 1L);
        code |= curl.easy_setopt(e->easy, CURLOPT_NOBODY, r->head ? 1L : 0L);
    }
    return code == CURLE_OK;
}

/* True if the server was silent for too long, or a signal came. */
static bool is_over(exchange *e, bool *late) {
    e->reply->interrupted = interrupt_seen();
    *late = tern_clock_seconds() - e->heard > e->config.idle_seconds;
    return e->reply->interrupted || *late;
}

/* Runs the transfer. The result is the library's if nothing else ended the transfer. */
static CURLcode transfer(exchange *e, bool *late) {
    int running = 1, left = 0;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (curl.multi_add_handle(e->multi, e->easy) != CURLM_OK)
        return code;
    while (curl.multi_perform(e->multi, &running) == CURLM_OK && running > 0 && !is_over(e, late))
        (void)curl.multi_poll(e->multi, NULL, 0, LOOK_MILLISECONDS, NULL);
    const CURLMsg *message = curl.multi_info_read(e->multi, &left);
    if (message != NULL && message->msg == CURLMSG_DONE)
        code = message->data.result;
    (void)curl.multi_remove_handle(e->multi, e->easy);
    return code;
}

static const char *place(const exchange *e) {
    return e->config.unix_path != NULL ? e->config.unix_path : e->config.base;
}

static tern_status explain(const exchange *e, CURLcode code, tern_error *err) {
    const char *why = e->why[0] != '\0' ? e->why : curl.easy_strerror(code);
    return tern_fail(err, TERN_ERR_IO, "%s: %s: %s", place(e),
                     e->reply->status > 0 ? "the reply broke off" : "cannot be asked", why);
}

/* Notes when and where the server wants to be asked again. */
static tern_status note_wishes(const exchange *e, tern_error *err) {
    curl_off_t wait = 0;
    const char *to = NULL;
    (void)curl.easy_getinfo(e->easy, CURLINFO_RETRY_AFTER, &wait);
    (void)curl.easy_getinfo(e->easy, CURLINFO_REDIRECT_URL, &to);
    e->reply->retry_seconds = (long)wait;
    const size_t size = to != NULL ? strlen(to) : 0;
    if (size >= sizeof e->reply->place)
        return tern_fail(err, TERN_ERR_ARG, "%s: it points to an address of %zu bytes", place(e),
                         size);
    (void)snprintf(e->reply->place, sizeof e->reply->place, "%s", to != NULL ? to : "");
    return TERN_OK;
}

/* True if the reply redirects and the request follows redirections. */
static bool points_on(const exchange *e) {
    return e->request->follow && e->reply->place[0] != '\0';
}

/* Goes to the place to which the reply redirects, if that is allowed: another server gets no key,
 * and a request by https does not continue by http, where the server cannot be authenticated. */
static tern_status move(exchange *e, unsigned moves, tern_error *err) {
    char url[sizeof e->reply->place];
    tern_origin to;
    (void)snprintf(url, sizeof url, "%s", e->reply->place);
    if (moves == MOST_MOVES)
        return tern_fail(err, TERN_ERR_ARG, "%s: it points on more than %d times", place(e),
                         MOST_MOVES);
    if (!tern_origin_read(url, &to))
        return tern_fail(err, TERN_ERR_ARG, "%s: it points to %.100s, which is not an http address",
                         place(e), url);
    if (e->secure && !to.secure)
        return tern_fail(err, TERN_ERR_ARG, "%s: it points from https to %.*s", place(e),
                         (int)to.size, url);
    e->secure = to.secure;
    text_free(&e->reply->refusal);
    *e->reply = (exchange_reply){0};
    return aim_at(e, url) ? TERN_OK : tern_fail(err, TERN_ERR_NOMEM, "no memory to ask a server");
}

/* Makes one request and reads its reply. */
static tern_status ask_once(exchange *e, tern_error *err) {
    bool late = false;
    e->heard = tern_clock_seconds();
    e->failed = false;
    e->why[0] = '\0';
    const CURLcode code = transfer(e, &late);
    if (late) {
        return tern_fail(err, TERN_ERR_IO, "%s: nothing came for %u seconds (--timeout)", place(e),
                         e->config.idle_seconds);
    }
    if (e->failed)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a reply");
    if (e->reply->interrupted || e->reply->unwanted)
        return TERN_OK;
    note_reply(e);
    if (code != CURLE_OK)
        return explain(e, code, err);
    return note_wishes(e, err);
}

tern_status exchange_ask(exchange *e, const exchange_request *request, exchange_reply *reply,
                         tern_error *err) {
    *reply = (exchange_reply){0};
    e->request = request;
    e->reply = reply;
    e->secure = strncasecmp(e->config.base, "https:", 6) == 0;
    if (!aim(e, request))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to ask a server");
    tern_status status = ask_once(e, err);
    for (unsigned moves = 0; status == TERN_OK && points_on(e); moves++) {
        status = move(e, moves, err);
        if (status == TERN_OK)
            status = ask_once(e, err);
    }
    return status;
}

#else

#include <stddef.h>

tern_status exchange_open(const exchange_config *config, exchange **out, tern_error *err) {
    (void)config, (void)out;
    return tern_fail(err, TERN_ERR_IO,
                     "this build asks no server: it was made without libcurl; scripts/install-deps "
                     "installs it (Debian: libcurl4-gnutls-dev), then build again");
}

void exchange_close(exchange **e) {
    (void)e; /* none was opened */
}

bool exchange_is_own(const exchange *e, const char *url) {
    (void)e, (void)url;
    return false;
}

tern_status exchange_ask(exchange *e, const exchange_request *request, exchange_reply *reply,
                         tern_error *err) {
    (void)e, (void)request, (void)reply;
    return tern_fail(err, TERN_ERR_STATE, "no server was opened");
}

#endif

tern_status exchange_make(exchange *e, const char *path, const char *body, exchange_sink *sink,
                          void *user, exchange_reply *reply, tern_error *err) {
    const exchange_request request = {.path = path, .body = body, .sink = sink, .user = user};
    return exchange_ask(e, &request, reply, err);
}
