/* SPDX-License-Identifier: Apache-2.0 */
/* tern serve: a model that other programs use over HTTP. */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/text.h"
#include "base/metrics.h"
#include "serve/http/gate.h"
#include "serve/http/tls.h"
#include "serve/server.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/commands/serve_place.h"
#include "tools/served/fetched.h"
#include "tools/served/served_models.h"

typedef struct serving {
    const options *o;
    served_models models;
    recording *recording; /* NULL: none */
    keys keys;
    text allowed_hosts; /* from all options, separated by commas */
    bool needs_key;
    serve_place place;
    model_fetcher fetcher; /* of --pull-path */
    server *server;
} serving;

static int read_keys(const options *o, keys *k) {
    const char *list = options_text(o, OPT_API_KEY);
    const char *path = options_text(o, OPT_API_KEY_FILE);
    tern_error err = {0};
    if (list != NULL && keys_add_list(k, list, &err) != TERN_OK) {
        complain("--api-key: %s", err.message);
        return EXIT_USAGE;
    }
    if (path != NULL && keys_add_file(k, path, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

static int read_allowed_hosts(const options *o, text *all) {
    const option_value *value;
    for (unsigned i = 0; (value = options_nth(o, OPT_ALLOWED_HOST, i)) != NULL; i++) {
        if (!gate_list_is_sound(value->text)) {
            complain("--allowed-host: '%.100s' is not HOST or HOST:PORT, or several of them with "
                     "commas between them, or *",
                     value->text);
            return EXIT_USAGE;
        }
        text_print(all, "%s%s", i > 0 ? "," : "", value->text);
    }
    return all->failed ? EXIT_FAILED : EXIT_DONE;
}

/* Reads the certificate and its key, if given. */
static int read_certificate(const options *o) {
    const char *certificate = options_text(o, OPT_TLS_CERT),
               *key_path = options_text(o, OPT_TLS_KEY);
    tern_error err = {0};
    if ((certificate == NULL) != (key_path == NULL)) {
        complain("--tls-cert and --tls-key belong together");
        return EXIT_USAGE;
    }
    if (certificate != NULL && options_text(o, OPT_UNIX) != NULL) {
        complain("--tls-cert: a socket in the file system (--unix) has no TLS");
        return EXIT_USAGE;
    }
    if (certificate != NULL && http_tls_load(certificate, key_path, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

static http_limits limits(const options *o) {
    http_limits l = http_limits_default();
    l.idle_seconds = (unsigned)options_integer(o, OPT_IDLE_TIMEOUT);
    l.request_seconds = (unsigned)options_integer(o, OPT_REQUEST_TIMEOUT);
    l.ping_seconds = options_real(o, OPT_PING);
    return l;
}

static int open_server(serving *s) {
    const options *o = s->o;
    server_config config = {
        .http = {.unix_path = options_text(o, OPT_UNIX),
                 .tls = options_given(o, OPT_TLS_CERT),
                 .origin = options_text(o, OPT_CORS),
                 .limits = limits(o)},
        .models = s->models.listed,
        .n_models = s->models.n,
        .first_waits = s->models.first_waits,
        .source = served_models_source(&s->models),
        .fetcher = options_given(o, OPT_PULL_PATH) ? &s->fetcher : NULL,
        .models_bytes = options_integer(o, OPT_MODELS_MEMORY) << 20,
        .most_models = (unsigned)options_integer(o, OPT_MODELS_MAX),
        .ollama = options_switch(o, OPT_OLLAMA),
        .any_model = options_switch(o, OPT_ANY_MODEL),
        .keys = &s->keys,
        .allowed_hosts = s->allowed_hosts.bytes,
        .seeded = options_given(o, OPT_SEED),
        .max_tokens = options_integer(o, OPT_SERVE_TOKENS),
        .open_objects = options_switch(o, OPT_OPEN_OBJECTS),
        .keep_responses = options_integer(o, OPT_KEEP_RESPONSES),
        .slot_path = options_text(o, OPT_SLOT_SAVE_PATH),
        .draft = options_switch(o, OPT_NO_DRAFT) ? TERN_DRAFT_NEVER : TERN_DRAFT_WHERE_IT_PAYS,
        .stalled_seconds = options_real(o, OPT_STALLED),
        .logs = options_switch(o, OPT_ACCESS_LOG) || options_given(o, OPT_LOG_FILE),
        .log = {.path = options_text(o, OPT_LOG_FILE),
                .json = strcmp(options_text(o, OPT_LOG_FORMAT), "json") == 0,
                .prompts = options_switch(o, OPT_LOG_PROMPTS)}};
    const int placed = serve_place_read(o, &s->place, &config.http);
    if (placed != EXIT_DONE)
        return placed;
    tern_error err = {0};
    if (server_open(&config, &s->server, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

/* Opens the recording, if one is wanted. */
static int open_recording(serving *s) {
    const char *path = options_text(s->o, OPT_RECORD_ANSWERS);
    const uint64_t limit = options_integer(s->o, OPT_RECORD_LIMIT) << 20;
    if (path == NULL)
        return EXIT_DONE;
    const int status = recording_open(path, limit, &s->recording);
    s->models.recording = s->recording;
    return status;
}

static void greet(const serving *s) {
    const char *address = server_address(s->server);
    const bool local = strncmp(address, "unix:", 5) == 0;
    const char *prefix = options_text(s->o, OPT_API_PREFIX);
    const char *comma = server_fingerprint(s->server)[0] != '\0' ? ", " : "";
    out_print("serving %s", s->models.models[0].name);
    if (s->models.n > 1)
        out_print(" and %zu more", s->models.n - 1);
    out_print(" at %s%s%s\n", address, local || prefix == NULL ? "" : prefix, local ? "" : "/v1");
    out_print("%s%s%" PRIu64 " answers at once", server_fingerprint(s->server), comma,
              options_integer(s->o, OPT_PARALLEL));
    if (server_context(s->server) > 0)
        out_print(", %" PRIu32 " positions each", server_context(s->server));
    out_print("%s", s->needs_key ? ", a key is needed" : "");
    if (options_switch(s->o, OPT_SELF_AUDIT) && !s->models.first_waits)
        out_print(", %" PRIu64 " bytes of matrices serve to repeat them, too",
                  s->models.audit_bytes);
    out_print("\n");
    out_flush();
}

/* Reads keys and certificate again. If one cannot be read, the server keeps what it had. */
static void reload(serving *s) {
    keys fresh = {0};
    tern_error err = {0};
    if (s->needs_key && read_keys(s->o, &fresh) == EXIT_DONE) {
        complain("SIGHUP: %zu keys were read", fresh.n);
        server_set_keys(s->server, &fresh);
    } else if (s->needs_key) {
        complain("SIGHUP: the keys stay those that were read before");
    }
    keys_free(&fresh);
    if (options_given(s->o, OPT_TLS_CERT)) {
        complain(read_certificate(s->o) == EXIT_DONE
                     ? "SIGHUP: the certificate was read"
                     : "SIGHUP: the certificate stays the one that was read before");
    }
    if (server_reopen_log(s->server, &err) != TERN_OK)
        complain("SIGHUP: %s; the log stays in the old file", err.message);
}

/* Looks for models whose files have changed. EXIT_FAILED if the only one has. */
static int check_files(const serving *s) {
    tern_error err = {0};
    if (server_check(s->server, &err) == TERN_OK)
        return EXIT_DONE;
    const int status = complain_error(&err);
    return s->models.n > 1 || options_given(s->o, OPT_PULL_PATH) ? EXIT_DONE : status;
}

/* Serves until a signal asks for the end, or until the only model's file has changed. */
static int serve(serving *s) {
    while (!interrupt_seen()) {
        (void)poll(NULL, 0, 1000);
        server_tick(s->server);
        if (interrupt_reload_seen())
            reload(s);
        const int unchanged = check_files(s);
        if (unchanged != EXIT_DONE)
            return unchanged;
    }
    return EXIT_DONE;
}

/* Waits until answers in progress end, and cancels them after a while. */
static void drain(serving *s) {
    const double until = tern_clock_seconds() + (double)options_integer(s->o, OPT_DRAIN);
    server_drain(s->server);
    const unsigned active = server_active(s->server);
    if (active > 0)
        complain("ending: %u requests are under way; a second signal ends at once", active);
    while (server_active(s->server) > 0 && tern_clock_seconds() < until) {
        (void)poll(NULL, 0, 50);
        server_tick(s->server);
    }
}

int cmd_serve(const options *o) {
    serving s = {.o = o};
    int status = read_keys(o, &s.keys);
    s.needs_key = s.keys.n > 0;
    if (status == EXIT_DONE)
        status = read_allowed_hosts(o, &s.allowed_hosts);
    if (status == EXIT_DONE)
        status = read_certificate(o);
    if (status == EXIT_DONE)
        status = served_models_read(o, &s.models);
    s.fetcher = fetched_fetcher(options_text(o, OPT_PULL_PATH));
    if (status == EXIT_DONE)
        status = open_recording(&s);
    if (status == EXIT_DONE)
        status = served_models_begin(&s.models);
    if (status == EXIT_DONE) {
        interrupt_catch();
        interrupt_catch_reload();
        status = open_server(&s);
    }
    if (status == EXIT_DONE) {
        greet(&s);
        status = serve(&s);
        if (status == EXIT_DONE)
            drain(&s);
    }
    server_close(&s.server);
    keys_free(&s.keys);
    text_free(&s.allowed_hosts);
    http_tls_free();
    served_models_free(&s.models);
    recording_close(&s.recording);
    return status;
}
