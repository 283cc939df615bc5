/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/remote/exchange.h"

#ifdef TERN_HAVE_CURL

#include <ctype.h>
#define CURL_DISABLE_TYPECHECK /* its macros look at calls of the linked functions */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
    struct curl_slist *headers;
    char why[CURL_ERROR_SIZE];

    /* of the exchange that is under way */
    const exchange_request *request;
    exchange_reply *reply;
    double heard; /* when the last byte came */
    bool failed;  /* no memory for a refusal */
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

/* ---- what the library calls ------------------------------------------------------------------ */

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

/* Name and value of a line "Name: value CR LF"; what is no such line, or a long one, is passed by.
 */
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

static bool add_header(exchange *e, const char *line) {
    struct curl_slist *longer = curl.slist_append(e->headers, line);
    e->headers = longer != NULL ? longer : e->headers;
    return longer != NULL;
}

static bool set_headers(exchange *e) {
    char *line = NULL;
    if (!add_header(e, "Content-Type: application/json") ||
        !add_header(e, "Accept: text/event-stream, application/json") ||
        !add_header(e, "Expect:")) /* bodies are sent at once */
        return false;
    if (e->config.key == NULL)
        return true;
    const bool made =
        asprintf(&line, "Authorization: Bearer %s", e->config.key) >= 0 && add_header(e, line);
    free(line);
    return made;
}

/* Where redirections are followed the library leaves the key away: it is shown to the server that
 * was named, and to no other. */
static bool set_options(exchange *e) {
    CURLcode code = curl.easy_setopt(e->easy, CURLOPT_ERRORBUFFER, e->why);
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {{CURLOPT_NOSIGNAL, 1L},
                   {CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS},
                   {CURLOPT_MAXREDIRS, MOST_MOVES},
                   {CURLOPT_TCP_NODELAY, 1L}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        code |= curl.easy_setopt(e->easy, numbers[i].option, numbers[i].value);
    code |= curl.easy_setopt(e->easy, CURLOPT_HTTPHEADER, e->headers);
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
    free(e);
    *exchange_ = NULL;
}

/* ---- a request ------------------------------------------------------------------------------- */

static bool aim(exchange *e, const exchange_request *r) {
    char *url = NULL;
    char range[32];
    if (asprintf(&url, "%s%s", e->config.base, r->path) < 0)
        return false;
    CURLcode code = curl.easy_setopt(e->easy, CURLOPT_URL, url);
    free(url); /* libcurl has a copy */
    (void)snprintf(range, sizeof range, "%" PRIu64 "-", r->from);
    code |= curl.easy_setopt(e->easy, CURLOPT_RANGE, r->from > 0 ? range : NULL);
    code |= curl.easy_setopt(e->easy, CURLOPT_FOLLOWLOCATION, r->follow ? 1L : 0L);
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

/* Whether it took too long, or somebody wants no more. */
static bool is_over(exchange *e, bool *late) {
    e->reply->interrupted = interrupt_seen();
    *late = tern_clock_seconds() - e->heard > e->config.idle_seconds;
    return e->reply->interrupted || *late;
}

/* What the library says of the transfer when nothing else ended it. */
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

/* When and where the server wants to be asked again. */
static void note_wishes(const exchange *e) {
    curl_off_t wait = 0;
    const char *place = NULL;
    (void)curl.easy_getinfo(e->easy, CURLINFO_RETRY_AFTER, &wait);
    (void)curl.easy_getinfo(e->easy, CURLINFO_REDIRECT_URL, &place);
    e->reply->retry_seconds = (long)wait;
    (void)snprintf(e->reply->place, sizeof e->reply->place, "%s", place != NULL ? place : "");
}

tern_status exchange_ask(exchange *e, const exchange_request *request, exchange_reply *reply,
                         tern_error *err) {
    bool late = false;
    *reply = (exchange_reply){0};
    e->request = request;
    e->reply = reply;
    e->heard = tern_clock_seconds();
    e->failed = false;
    e->why[0] = '\0';
    if (!aim(e, request))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to ask a server");
    const CURLcode code = transfer(e, &late);
    if (late) {
        return tern_fail(err, TERN_ERR_IO, "%s: nothing came for %u seconds (--timeout)", place(e),
                         e->config.idle_seconds);
    }
    if (e->failed)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a reply");
    if (reply->interrupted || reply->unwanted)
        return TERN_OK;
    note_reply(e);
    note_wishes(e);
    return code == CURLE_OK ? TERN_OK : explain(e, code, err);
}

#else

#include <stddef.h>

tern_status exchange_open(const exchange_config *config, exchange **out, tern_error *err) {
    (void)config, (void)out;
    return tern_fail(err, TERN_ERR_IO,
                     "this build asks no server: it was made without libcurl; tools/install-deps "
                     "installs it (Debian: libcurl4-gnutls-dev), then build again");
}

void exchange_close(exchange **e) {
    (void)e; /* none was opened */
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
