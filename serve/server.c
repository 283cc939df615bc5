/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/server.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/metrics.h"
#include "base/thread_signals.h"
#include "serve/http/gate.h"
#include "serve/server_internal.h"

enum { READER_THREADS = 2, SEND_SECONDS = 5 };

/* ---- requests -------------------------------------------------------------------------------- */

/* Returns the rest of a line after a word and blanks; NULL: it does not begin with the word. */
static const char *behind_word(const char *line, const char *word) {
    const size_t n = strlen(word);
    if (line == NULL || strncasecmp(line, word, n) != 0 || line[n] != ' ')
        return NULL;
    return line + n + strspn(line + n, " ");
}

static bool is_json(const char *type) {
    static const char json[] = "application/json";
    const size_t n = sizeof json - 1;
    return type != NULL && strncasecmp(type, json, n) == 0 &&
           (type[n] == '\0' || type[n] == ';' || type[n] == ' ');
}

bool server_needs_key(server *s) {
    (void)pthread_mutex_lock(&s->keys_lock);
    const bool needed = s->keys.n > 0;
    (void)pthread_mutex_unlock(&s->keys_lock);
    return needed;
}

const served *server_model(const http_exchange *x) {
    return ((const account *)http_mark(x))->model;
}

/* Checks the key that a request shows, and keeps it in the account. False after a refusal. */
static bool check_key(server *s, http_exchange *x, account *a, refusal *r) {
    const char *given = behind_word(http_request_header(x, "Authorization"), "Bearer");
    given = given != NULL ? given : http_request_header(x, "x-api-key");
    given = given != NULL ? given : http_request_header(x, "api-key"); /* of Azure's clients */
    (void)pthread_mutex_lock(&s->keys_lock);
    const bool needed = s->keys.n > 0 && !a->route->open;
    a->key = needed && given != NULL ? keys_find(&s->keys, given, strlen(given)) : NULL;
    (void)pthread_mutex_unlock(&s->keys_lock);
    if (needed && a->key == NULL) {
        (void)refuse(r, 401, NULL,
                     given != NULL ? "this key is not known"
                                   : "a key is needed: Authorization: Bearer KEY");
        r->code = "invalid_api_key";
        return false;
    }
    return true;
}

/* Refuses a request that a foreign page has made a browser send; false after a refusal. This is
 * checked only if the server has no keys, since such a page does not know a key. OPTIONS passes for
 * every origin: it asks whether a page may, and its reply says so. */
static bool check_gate(server *s, http_exchange *x, refusal *r) {
    const char *host = http_request_header(x, "Host"), *origin = http_request_header(x, "Origin");
    const gate g = {.listening = http_address(s->http),
                    .allowed = s->config.allowed_hosts,
                    .origin = s->config.http.origin};
    if (server_needs_key(s))
        return true;
    if (!gate_takes_host(&g, host)) {
        (void)refuse(r, 403, NULL,
                     "this server has no keys, and is not asked by the name %.100s "
                     "(--allowed-host)",
                     host);
        r->code = "host_not_allowed";
        return false;
    }
    if (strcmp(http_method(x), "OPTIONS") != 0 && !gate_takes_origin(&g, host, origin)) {
        (void)refuse(
            r, 403, NULL,
            "this server has no keys, and is not asked by pages of other origins (--cors)");
        r->code = "origin_not_allowed";
        return false;
    }
    return true;
}

/* Checks that the body is sent as it is; false after a refusal. */
static bool check_coding(http_exchange *x, refusal *r) {
    const char *coding = http_request_header(x, "Content-Encoding");
    return coding == NULL || strcasecmp(coding, "identity") == 0 ||
           refuse(r, 415, NULL,
                  "Content-Encoding: %.40s: bodies are read as they are; send it without", coding);
}

/* Checks the name of Azure's deployment, which is that of a model; false after a refusal. */
static bool check_deployment(const server *s, http_exchange *x, refusal *r) {
    const char *name = http_deployment(x);
    return name == NULL || models_entry(s, name, r) != NULL;
}

/* Checks the header of a request; false after a refusal. */
static bool check(server *s, http_exchange *x, account *a, const char *methods, refusal *r) {
    const route *found = a->route;
    if (http_path(x)[0] == '\0')
        return refuse(r, 404, NULL, "paths of this server begin with %.100s",
                      s->config.http.prefix);
    if (found == NULL && methods[0] == '\0')
        return refuse(r, 404, NULL, "there is no %.200s here", http_path(x));
    if (found == NULL) {
        http_reply_header(x, "Allow", methods);
        return refuse(r, 405, NULL, "%.200s takes %s", http_path(x), methods);
    }
    if (!check_key(s, x, a, r))
        return false;
    if (found->reads_body && !found->any_type && !is_json(http_request_header(x, "Content-Type")))
        return refuse(r, 415, NULL,
                      "Content-Type must be application/json (curl: -H 'Content-Type: "
                      "application/json')");
    return check_coding(x, r) && check_deployment(s, x, r);
}

/* Replies to OPTIONS with the methods of a path; false: it is another method, or there is no such
 * path and no CORS. Browsers use it to ask, without the page's key, whether a page of another
 * origin may send a request. If it may not, the reply has no CORS fields. Clients send their own
 * headers, so all names are allowed; the star does not include Authorization. */
static bool reply_options(const server *s, http_exchange *x, const char *methods) {
    const bool shared = s->config.http.origin != NULL;
    if (strcmp(http_method(x), "OPTIONS") != 0 || (methods[0] == '\0' && !shared))
        return false;
    if (methods[0] != '\0')
        http_reply_header(x, "Allow", methods);
    if (shared) {
        http_reply_header(x, "Access-Control-Allow-Methods", "GET, POST, DELETE");
        http_reply_header(x, "Access-Control-Allow-Headers",
                          "Authorization, Content-Type, x-api-key, api-key, *");
        http_reply_header(x, "Access-Control-Max-Age", "600");
    }
    http_reply(x, 204, "text/plain", NULL, 0);
    return true;
}

static bool admit(void *user, http_exchange *x) {
    char methods[64];
    refusal r = {0};
    server *s = user;
    const route *found = route_find(http_method(x), http_path(x), methods, sizeof methods);
    account *a = account_new(found);
    http_set_mark(x, a);
    const bool open =
        a != NULL ? check_gate(s, x, &r) : refuse(&r, 503, NULL, "no memory for the request");
    if (open && reply_options(s, x, methods))
        return false;
    if (open && check(s, x, a, methods, &r))
        return true;
    refusal_reply(&r, x);
    return false;
}

/* False, after a refusal, if the client has left or the server is ending. */
static bool is_wanted(const server *s, http_exchange *x) {
    refusal r;
    if (!atomic_load(&s->stopping) && !http_gone(x))
        return true;
    (void)refuse(&r, 503, NULL, "the server is ending, or the client has left");
    refusal_reply(&r, x);
    return false;
}

/* True if a request has the model that its route needs. Otherwise it was refused, or it waits: then
 * another thread may be at work on it already, and nothing of it may be touched. */
static bool has_model(server *s, http_exchange *x, account *a) {
    const served *m = NULL;
    if (a->route->no_model || a->model != NULL)
        return true;
    if (!models_choose(s, x, &m))
        return false;
    a->model = m;
    return true;
}

static void give_back(account *a) {
    if (a->model != NULL)
        models_give_back(a->model);
    a->model = NULL;
}

static void read_request(void *user, http_exchange *x) {
    account *a = http_mark(x);
    if (!is_wanted(user, x)) {
        give_back(a);
    } else if (has_model(user, x, a)) {
        a->route->handle(user, x);
        give_back(a);
    }
}

/* Goes on with a request that waited for its model. */
static void go_on(void *user, http_exchange *x, const served *m, const refusal *why) {
    server *s = user;
    account *a = http_mark(x);
    refusal r;
    a->model = m;
    if (m != NULL && readers_put_again(s->readers, read_request, s, x, a->key) == READERS_TAKEN)
        return;
    (void)refuse(&r, 503, NULL, "the server is ending, or has no memory");
    refusal_reply(why != NULL ? why : &r, x);
    give_back(a);
}

/* Queues a body for a thread that reads it. */
static void put(server *s, http_exchange *x, const account *a) {
    refusal r;
    const readers_answer answer = readers_put(s->readers, read_request, s, x, a->key);
    if (answer == READERS_TAKEN)
        return;
    if (answer == READERS_FULL) {
        (void)atomic_fetch_add(&s->unread_requests, 1);
        (void)refuse(&r, 429, NULL, "too many requests wait to be read");
        r.code = "queue_full";
    } else {
        (void)refuse(&r, 503, NULL, "the server is ending, or has no memory");
    }
    refusal_reply(&r, x);
}

static void handle(void *user, http_exchange *x) {
    server *s = user;
    const account *a = http_mark(x);
    if (http_status(x) != 0)
        return; /* refused already, by its header */
    if (a->route->reads_body)
        put(s, x, a);
    else if (a->route->of_model)
        read_request(s, x);
    else
        a->route->handle(s, x);
}

/* Writes a line of the log. It has no text of the client, except bodies if the user asked for them:
 * method and path are those of the route. */
static void note_in_log(const server *s, http_exchange *x, const account *a, bool whole) {
    char methods[64], label[KEY_LABEL_BYTES];
    const route *found = a != NULL
                             ? a->route /* without one it was refused before `admit` */
                             : route_find(http_method(x), http_path(x), methods, sizeof methods);
    log_entry e = {.method = found != NULL ? found->method : "-",
                   .path = found != NULL ? found->path : "-",
                   .status = http_status(x),
                   .bytes = http_sent_bytes(x),
                   .seconds = tern_clock_seconds() - http_began(x),
                   .whole = whole};
    if (a != NULL) {
        e.prompt_tokens = atomic_load(&a->prompt_tokens);
        e.cached_tokens = atomic_load(&a->cached_tokens);
        e.generated_tokens = atomic_load(&a->generated_tokens);
        e.body = http_body(x, &e.body_size);
    }
    if (a != NULL && a->key != NULL) {
        key_label(a->key, label);
        e.label = label;
    }
    log_add(s->log, &e);
}

static void done(void *user, http_exchange *x, bool whole) {
    server *s = user;
    const unsigned status = http_status(x);
    (void)atomic_fetch_add(&s->replies[status >= 100 ? (status - 100) % SERVER_STATUSES : 0], 1);
    if (s->log != NULL)
        note_in_log(s, x, http_mark(x), whole);
}

static void forget(void *user, void *mark) {
    (void)user;
    account_release(mark);
}

/* ---- life ------------------------------------------------------------------------------------ */

static tern_status open_parts(server *s, tern_error *err) {
    const models_config with = {.server = &s->config, .user = s, .ready = go_on};
    tern_status status = models_open(&with, &s->models, err);
    if (status == TERN_OK)
        models_tell(s->models, models_at(s->models, 0), &s->first);
    if (status == TERN_OK && s->config.fetcher != NULL) {
        s->pulls = pulls_new(s->config.fetcher, s->models);
        if (s->pulls == NULL)
            status = tern_fail(err, TERN_ERR_NOMEM, "no memory for models that are fetched");
    }
    if (status == TERN_OK && s->config.logs)
        status = log_open(&s->config.log, &s->log, err);
    if (status == TERN_OK)
        status = readers_open(READER_THREADS, &s->readers, err);
    if (status == TERN_OK) {
        s->config.http.hooks = (http_hooks){s, admit, handle, done, forget};
        status = http_open(&s->config.http, &s->http, err);
    }
    return status;
}

tern_status server_open(const server_config *config, server **out, tern_error *err) {
    server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a server");
    sigset_t before;
    s->config = *config;
    s->keys = *config->keys;
    *config->keys = (keys){0};
    (void)pthread_mutex_init(&s->keys_lock, NULL);
    s->started = time(NULL);
    tern_signals_block(&before); /* new threads inherit the blocked signals */
    s->kept = config->keep_responses > 0 ? kept_new(config->keep_responses) : NULL;
    const tern_status status =
        config->keep_responses > 0 && s->kept == NULL
            ? tern_fail(err, TERN_ERR_NOMEM, "no memory for responses that are kept")
            : open_parts(s, err);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != TERN_OK) {
        server_close(&s);
        return status;
    }
    *out = s;
    return TERN_OK;
}

const char *server_address(const server *s) {
    return http_address(s->http);
}

const char *server_fingerprint(const server *s) {
    return s->first.fingerprint;
}

uint32_t server_context(const server *s) {
    return s->first.n_ctx;
}

void server_tick(server *s) {
    http_tick(s->http);
}

void server_set_keys(server *s, keys *fresh) {
    (void)pthread_mutex_lock(&s->keys_lock);
    keys_replace(&s->keys, fresh);
    (void)pthread_mutex_unlock(&s->keys_lock);
}

tern_status server_reopen_log(server *s, tern_error *err) {
    return s->log != NULL ? log_reopen(s->log, err) : TERN_OK;
}

tern_status server_check(server *s, tern_error *err) {
    return models_check(s->models, err);
}

void server_drain(server *s) {
    atomic_store(&s->draining, true);
}

unsigned server_active(const server *s) {
    return http_active(s->http);
}

/* Waits until replies have been sent, for SEND_SECONDS at most. */
static void wait_sent(const server *s) {
    const double until = tern_clock_seconds() + SEND_SECONDS;
    while (s->http != NULL && http_active(s->http) > 0 && tern_clock_seconds() < until) {
        const struct timespec pause = {.tv_nsec = 10000000};
        (void)nanosleep(&pause, NULL);
    }
}

void server_close(server **server_) {
    server *s = *server_;
    if (s == NULL)
        return;
    atomic_store(&s->draining, true);
    atomic_store(&s->stopping, true);
    readers_stop(s->readers); /* all received requests are now with the worker, or refused */
    pulls_stop(s->pulls);
    models_stop(s->models);
    wait_sent(s);
    http_close(&s->http); /* pages ask the worker until then */
    readers_free(&s->readers);
    pulls_free(s->pulls);
    models_free(&s->models);
    log_close(&s->log);
    kept_free(s->kept);
    keys_free(&s->keys);
    (void)pthread_mutex_destroy(&s->keys_lock);
    free(s);
    *server_ = NULL;
}
