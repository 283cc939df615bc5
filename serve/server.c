/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/server.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/metrics.h"
#include "base/sha256.h"
#include "serve/server_internal.h"

enum { READERS = 2, SEND_SECONDS = 5 };

/* ---- requests -------------------------------------------------------------------------------- */

/* What is left over of a line behind a word and blanks; NULL when it begins otherwise. */
static const char *behind_word(const char *line, const char *word) {
    const size_t n = strlen(word);
    if (line == NULL || strncasecmp(line, word, n) != 0 || line[n] != ' ') {
        return NULL;
    }
    return line + n + strspn(line + n, " ");
}

static bool is_json(const char *type) {
    static const char json[] = "application/json";
    const size_t n = sizeof json - 1;
    return type != NULL && strncasecmp(type, json, n) == 0 &&
           (type[n] == '\0' || type[n] == ';' || type[n] == ' ');
}

/* Why a request is refused by its header alone. */
static bool check(const server *s, http_exchange *x, const route *found, const char *methods,
                  refusal *r) {
    const keys *known = s->config.keys;
    if (found == NULL && methods[0] == '\0') {
        return refuse(r, 404, NULL, "there is no %.200s here", http_path(x));
    }
    if (found == NULL) {
        http_reply_header(x, "Allow", methods);
        return refuse(r, 405, NULL, "%.200s takes %s", http_path(x), methods);
    }
    if (known->n > 0 && !found->open) {
        const char *given = behind_word(http_request_header(x, "Authorization"), "Bearer");
        given = given != NULL ? given : http_request_header(x, "x-api-key");
        const key *shown = given != NULL ? keys_find(known, given, strlen(given)) : NULL;
        if (shown == NULL) {
            (void)refuse(r, 401, NULL,
                         given != NULL ? "this key is not known"
                                       : "a key is needed: Authorization: Bearer KEY");
            r->code = "invalid_api_key";
            return false;
        }
        http_set_mark(x, shown);
    }
    if (found->at_desk && !is_json(http_request_header(x, "Content-Type"))) {
        return refuse(r, 415, NULL, "Content-Type must be application/json");
    }
    return true;
}

/* A browser asks whether a page of another origin may. */
static bool reply_preflight(const server *s, http_exchange *x) {
    if (s->config.http.origin == NULL || strcmp(http_method(x), "OPTIONS") != 0) {
        return false;
    }
    http_reply_header(x, "Access-Control-Allow-Methods", "GET, POST");
    http_reply_header(x, "Access-Control-Allow-Headers", "Authorization, Content-Type, x-api-key");
    http_reply_header(x, "Access-Control-Max-Age", "600");
    http_reply(x, 204, "text/plain", NULL, 0);
    return true;
}

static bool admit(void *user, http_exchange *x) {
    char methods[64];
    refusal r = {0};
    const server *s = user;
    const route *found = route_find(http_method(x), http_path(x), methods, sizeof methods);
    if (check(s, x, found, methods, &r)) {
        return true;
    }
    if (!reply_preflight(s, x)) {
        refusal_reply(&r, x);
    }
    return false;
}

static void at_desk(void *user, http_exchange *x) {
    char methods[64];
    route_find(http_method(x), http_path(x), methods, sizeof methods)->handle(user, x);
}

static void handle(void *user, http_exchange *x) {
    server *s = user;
    char methods[64];
    if (http_status(x) != 0) {
        return; /* refused when its header came */
    }
    const route *found = route_find(http_method(x), http_path(x), methods, sizeof methods);
    if (!found->at_desk) {
        found->handle(s, x);
    } else if (!desk_put(s->desk, at_desk, s, x)) {
        refusal r;
        (void)refuse(&r, 503, NULL, "the server is ending, or has no memory");
        refusal_reply(&r, x);
    }
}

/* A line for each request: when, who, what, how it ended. Nothing that a client wrote but the
 * path, which is a route's. */
static void done(void *user, http_exchange *x, bool whole) {
    server *s = user;
    const unsigned status = http_status(x);
    (void)atomic_fetch_add(&s->replies[status >= 100 ? (status - 100) % SERVER_STATUSES : 0], 1);
    if (!s->config.log) {
        return;
    }
    char methods[64], when[32];
    const time_t now = time(NULL);
    struct tm utc;
    const key *shown = http_mark(x);
    const route *found = route_find(http_method(x), http_path(x), methods, sizeof methods);
    (void)gmtime_r(&now, &utc);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    (void)fprintf(stderr, "%s %s %s %s %u %" PRIu64 " bytes %.3f s%s\n", when,
                  shown != NULL ? shown->label : "-", found != NULL ? found->method : "-",
                  found != NULL ? found->path : "-", http_status(x), http_sent_bytes(x),
                  tern_clock_seconds() - http_began(x), whole ? "" : " cut");
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The same on every machine that gives the same answers. */
static void make_fingerprint(server *s) {
    char line[128], hex[65];
    tern_sha256 h;
    const int n =
        snprintf(line, sizeof line, "%016" PRIx64 " %s %d", tern_model_identity(s->config.model),
                 tern_format_describe(s->config.engine.kv)->name, TERN_NUMERICS_VERSION);
    tern_sha256_start(&h);
    tern_sha256_add(&h, line, (size_t)n);
    tern_sha256_finish(&h, hex);
    (void)snprintf(s->fingerprint, sizeof s->fingerprint, "b%.16s", hex);
}

static void set_rules(server *s) {
    const server_config *c = &s->config;
    const uint32_t n_ctx = tern_engine_now(s->engine).n_ctx;
    const uint32_t queue = c->engine.n_queue;
    s->rules = (ask_rules){.tokenizer = s->tokenizer,
                           .model = c->name,
                           .any_model = c->any_model,
                           .sampling = c->sampling,
                           .seeded = c->seeded,
                           .max_tokens = c->max_tokens,
                           .n_vocab = s->info.n_vocab,
                           .n_ctx = n_ctx,
                           .most_choices = queue < ASK_MOST_CHOICES ? queue : ASK_MOST_CHOICES};
    s->place = (job_place){s->tokenizer, c->name, s->fingerprint, n_ctx};
}

static tern_status open_parts(server *s, tern_error *err) {
    tern_status status = tern_model_tokenizer(s->config.model, &s->tokenizer, err);
    if (status == TERN_OK) {
        status = tern_engine_new(s->config.model, &s->config.engine, &s->engine, err);
    }
    if (status != TERN_OK) {
        return status;
    }
    tern_model_describe(s->config.model, &s->info);
    make_fingerprint(s);
    set_rules(s);
    status = worker_open(s->engine, &s->worker, err);
    if (status == TERN_OK) {
        status = desk_open(READERS, &s->desk, err);
    }
    if (status == TERN_OK) {
        s->config.http.hooks = (http_hooks){s, admit, handle, done};
        status = http_open(&s->config.http, &s->http, err);
    }
    return status;
}

tern_status server_open(const server_config *config, server **out, tern_error *err) {
    server *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a server");
    }
    sigset_t all, before;
    s->config = *config;
    s->started = time(NULL);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before); /* threads begin with what is blocked here */
    const tern_status status = open_parts(s, err);
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
    return s->fingerprint;
}

uint32_t server_context(const server *s) {
    return s->rules.n_ctx;
}

void server_tick(server *s) {
    http_tick(s->http);
}

void server_drain(server *s) {
    atomic_store(&s->draining, true);
}

unsigned server_active(const server *s) {
    return http_active(s->http);
}

void server_cancel(server *s) {
    worker_cancel(s->worker);
}

/* Until what was replied is sent. */
static void wait_sent(const server *s) {
    const double until = tern_clock_seconds() + SEND_SECONDS;
    while (s->http != NULL && http_active(s->http) > 0 && tern_clock_seconds() < until) {
        const struct timespec pause = {.tv_nsec = 10000000};
        (void)nanosleep(&pause, NULL);
    }
}

void server_close(server **server_) {
    server *s = *server_;
    if (s == NULL) {
        return;
    }
    atomic_store(&s->draining, true);
    desk_stop(s->desk); /* all requests that came are with the worker, or refused */
    worker_stop(s->worker);
    wait_sent(s);
    http_close(&s->http); /* until here pages ask the worker */
    worker_free(&s->worker);
    desk_free(&s->desk);
    tern_engine_free(&s->engine);
    free(s);
    *server_ = NULL;
}
