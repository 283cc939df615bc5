/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/write.h"
#include "base/metrics.h"
#include "tools/answer/sampling.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/remote/exchange.h"
#include "tools/remote/reply.h"

enum { MOST_KEY_BYTES = 4096, MOST_REPLY_BYTES = 256 << 20 };

struct remote {
    char *base; /* URL up to the beginning of routes */
    char *key;  /* to be freed */
    exchange *exchange;
    exchange_config config;
    char model[REMOTE_NAME_BYTES];
};

/* A body while it is received. */
typedef struct incoming {
    text body; /* of a reply that is not a stream */
    const exchange_reply *reply;
    event_reader events;
    reply_reader *reader;
} incoming;

/* ---- opening --------------------------------------------------------------------------------- */

static int complain_of_url(const char *url) {
    complain("--server wants http://HOST:PORT, https://HOST or unix:PATH, not '%.200s'", url);
    return EXIT_USAGE;
}

static int complain_of_memory(void) {
    complain("no memory to ask a server");
    return EXIT_FAILED;
}

/* http://HOST and http://HOST/ mean http://HOST/v1; another path is used as it is. */
static int read_url(remote *r, const char *url) {
    if (strncmp(url, "unix:", 5) == 0 && url[5] != '\0') {
        r->config.unix_path = url + 5;
        r->base = strdup("http://localhost/v1");
        return r->base != NULL ? EXIT_DONE : complain_of_memory();
    }
    const size_t skip = strncmp(url, "https://", 8) == 0 ? 8 : 7;
    const char *host = url + skip;
    if ((skip == 7 && strncmp(url, "http://", 7) != 0) || strcspn(host, "/") == 0 ||
        strpbrk(url, " \t\r\n@?#") != NULL)
        return complain_of_url(url);
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/')
        n--;
    const bool has_path = strcspn(host, "/") < n - skip;
    if (asprintf(&r->base, "%.*s%s", (int)n, url, has_path ? "" : "/v1") < 0) {
        r->base = NULL;
        return complain_of_memory();
    }
    return EXIT_DONE;
}

/* Reads the key of --api-key-file, its only word; without the option that of the environment. */
static int read_key(remote *r, const options *o) {
    const char *path = options_text(o, OPT_API_KEY_FILE);
    const char *given = options_text(o, OPT_API_KEY);
    size_t size;
    if (path == NULL) {
        r->key = given != NULL ? strdup(given) : NULL;
    } else if (file_read(path, MOST_KEY_BYTES, &r->key, &size) != EXIT_DONE) {
        r->key = NULL;
        return EXIT_FAILED;
    }
    if (r->key == NULL)
        return given == NULL ? EXIT_DONE : complain_of_memory();
    const size_t blanks = strspn(r->key, " \t\r\n");
    memmove(r->key, r->key + blanks, strlen(r->key) - blanks + 1);
    const size_t n = strcspn(r->key, " \t\r\n");
    if (n == 0 || r->key[n + strspn(r->key + n, " \t\r\n")] != '\0') {
        complain("%s: wants one key and nothing else", path != NULL ? path : "--api-key");
        return EXIT_FAILED;
    }
    r->key[n] = '\0';
    return EXIT_DONE;
}

static bool keep(void *user, const char *bytes, size_t size) {
    incoming *in = user;
    if (in->body.size + size > MOST_REPLY_BYTES)
        return false;
    text_add(&in->body, bytes, size);
    return !in->body.failed;
}

/* Asks for the first model of the server. A server without a list gets the name "default". */
static int ask_model(remote *r) {
    exchange_reply reply;
    incoming in = {0};
    tern_error err = {0};
    (void)snprintf(r->model, sizeof r->model, "default");
    tern_status status = exchange_make(r->exchange, "/models", NULL, keep, &in, &reply, &err);
    if (status == TERN_OK && reply.status >= 300 && reply.status != 404) {
        status =
            reply_refuse(remote_place(r), reply.status, reply.retry_seconds, &reply.refusal, &err);
    }
    if (status == TERN_OK && in.body.failed)
        status = tern_fail(&err, TERN_ERR_NOMEM, "no memory to ask a server");
    if (status == TERN_OK && reply.status < 300 && in.body.size > 0) {
        json_t *root = json_read(in.body.bytes, in.body.size, remote_place(r), &err);
        status =
            err.status == TERN_ERR_NOMEM ? err.status : TERN_OK; /* other replies have no model */
        const json_t *list = json_object_get(root, "data");
        const json_t *name = json_object_get(json_array_get(list, 0), "id");
        if (json_is_string(name))
            (void)snprintf(r->model, sizeof r->model, "%s", json_string_value(name));
        json_decref(root);
    }
    text_free(&in.body);
    text_free(&reply.refusal);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

static int open_parts(remote *r, const options *o) {
    int status = read_url(r, options_text(o, OPT_SERVER));
    if (status == EXIT_DONE)
        status = read_key(r, o);
    if (status != EXIT_DONE)
        return status;
    r->config.base = r->base;
    r->config.key = r->key;
    r->config.ca_path = options_text(o, OPT_TLS_CA);
    r->config.idle_seconds = (unsigned)options_integer(o, OPT_TIMEOUT);
    tern_error err = {0};
    if (exchange_open(&r->config, &r->exchange, &err) != TERN_OK)
        return complain_error(&err);
    /* A variable names a local file, and the operand of `run PROMPT` is not a model. */
    if (o->values[OPT_MODEL].source == OPTION_FLAG && !o->model_may_be_prompt) {
        (void)snprintf(r->model, sizeof r->model, "%s", options_text(o, OPT_MODEL));
        return EXIT_DONE;
    }
    return ask_model(r);
}

int remote_open(const options *o, remote **out) {
    remote *r = calloc(1, sizeof *r);
    if (r == NULL)
        return complain_of_memory();
    const int status = open_parts(r, o);
    if (status != EXIT_DONE) {
        remote_close(&r);
        return status;
    }
    *out = r;
    return EXIT_DONE;
}

int remote_open_again(const remote *first, remote **out) {
    remote *r = calloc(1, sizeof *r);
    tern_error err = {0};
    if (r != NULL) {
        *r = *first;
        r->exchange = NULL;
        r->config.base = r->base = strdup(first->base);
        r->config.key = r->key = first->key != NULL ? strdup(first->key) : NULL;
    }
    if (r == NULL || r->base == NULL || (first->key != NULL && r->key == NULL))
        (void)tern_fail(&err, TERN_ERR_NOMEM, "no memory to ask a server");
    else if (exchange_open(&r->config, &r->exchange, &err) == TERN_OK) {
        *out = r;
        return EXIT_DONE;
    }
    remote_close(&r);
    return complain_error(&err);
}

void remote_close(remote **remote_) {
    remote *r = *remote_;
    if (r == NULL)
        return;
    exchange_close(&r->exchange);
    free(r->base);
    free(r->key);
    free(r);
    *remote_ = NULL;
}

const char *remote_model(const remote *r) {
    return r->model;
}

const char *remote_place(const remote *r) {
    return r->config.unix_path != NULL ? r->config.unix_path : r->base;
}

/* ---- requests -------------------------------------------------------------------------------- */

void remote_set_sampling(json_t *fields, sampling_parameter p, double value) {
    static const char *const names[SAMPLING_COUNT] = {[SAMPLING_TEMPERATURE] = "temperature",
                                                      [SAMPLING_TOP_K] = "top_k",
                                                      [SAMPLING_TOP_P] = "top_p",
                                                      [SAMPLING_MIN_P] = "min_p",
                                                      [SAMPLING_REPETITION] = "repetition_penalty",
                                                      [SAMPLING_PRESENCE] = "presence_penalty",
                                                      [SAMPLING_FREQUENCY] = "frequency_penalty",
                                                      [SAMPLING_LAST_N] = "repeat_last_n"};
    const bool whole = p == SAMPLING_TOP_K || p == SAMPLING_LAST_N;
    json_object_set_new(fields, names[p],
                        whole ? json_integer((json_int_t)value) : json_real(value));
}

/* Sets the sampling parameters that were given. */
static void set_sampling(json_t *fields, const sampling *s, bool likeliest) {
    for (int p = 0; p < SAMPLING_COUNT; p++)
        if (s->sources[p] != SAMPLING_BY_DEFAULT || (likeliest && p == SAMPLING_TEMPERATURE))
            remote_set_sampling(fields, (sampling_parameter)p, s->values[p]);
}

json_t *remote_fields(const options *o, bool likeliest, int *status) {
    sampling s;
    *status = sampling_read(o, NULL, false, &s); /* no model to recommend anything */
    if (*status != EXIT_DONE)
        return NULL;
    const option_id tokens = o->command == COMMAND_RUN ? OPT_MAX_TOKENS : OPT_CHAT_TOKENS;
    json_t *fields = json_object();
    json_object_set_new(fields, "max_tokens", json_integer((json_int_t)options_integer(o, tokens)));
    json_object_set_new(fields, "seed", json_integer((json_int_t)options_integer(o, OPT_SEED)));
    set_sampling(fields, &s, likeliest);
    if (options_count(o, OPT_STOP) > 0) {
        json_t *stops = json_array();
        for (size_t i = 0; i < options_count(o, OPT_STOP); i++)
            json_array_append_new(stops, json_string(options_nth(o, OPT_STOP, i)->text));
        json_object_set_new(fields, "stop", stops);
    }
    if (options_switch(o, OPT_IGNORE_EOS))
        json_object_set_new(fields, "ignore_eos", json_boolean(true));
    return fields;
}

static bool take_bytes(void *user, const char *bytes, size_t size) {
    incoming *in = user;
    return in->reply->stream ? events_feed(&in->events, bytes, size, reply_take, in->reader)
                             : keep(in, bytes, size);
}

/* Handles what is left after the last byte, and checks that the reply is complete. */
static tern_status finish(const remote *r, incoming *in, const exchange_reply *reply,
                          tern_error *err) {
    reply_reader *reader = in->reader;
    const bool ended = !reply->interrupted && !reply->unwanted;
    if (reply->status == 429 || reply->status == 503)
        reader->answer->retry_seconds = reply->retry_seconds;
    if (reply->status >= 300) {
        return reply_refuse(remote_place(r), reply->status, reply->retry_seconds, &reply->refusal,
                            err);
    }
    if (ended && reply->stream)
        (void)events_end(&in->events, reply_take, reader);
    else if (ended && in->body.size > 0)
        (void)reply_take(reader, in->body.bytes, in->body.size);
    if (reader->fault.status != TERN_OK)
        return tern_fail(err, reader->fault.status, "%s", reader->fault.message);
    if (reply->interrupted || reader->stopped) {
        reader->answer->end = REMOTE_INTERRUPTED;
        return TERN_OK;
    }
    if (!ended)
        return tern_fail(err, TERN_ERR_IO, "%s: the reply is too long", remote_place(r));
    return reader->done ? TERN_OK
                        : tern_fail(err, TERN_ERR_IO, "%s: the reply ended before the answer did",
                                    remote_place(r));
}

/* Sends `what` and takes ownership of it. */
static tern_status ask(remote *r, const char *path, const char *name, json_t *what,
                       const json_t *fields, remote_sink *sink, void *user, remote_answer *out,
                       tern_error *err) {
    json_t *root = json_deep_copy(fields);
    json_object_set_new(root, "model", json_string(r->model));
    json_object_set_new(root, name, what);
    json_object_set_new(root, "stream", json_boolean(true));
    json_object_set_new(root, "stream_options", json_pack("{s:b}", "include_usage", 1));
    char *body = json_dump(root, (json_style){0});
    json_decref(root);
    if (body == NULL || json_memory_failed()) {
        free(body);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to ask a server");
    }
    exchange_reply reply;
    reply_reader reader = {.place = remote_place(r),
                           .answer = out,
                           .sink = sink,
                           .user = user,
                           .began = tern_clock_seconds()};
    incoming in = {.reply = &reply, .reader = &reader};
    tern_status status = exchange_make(r->exchange, path, body, take_bytes, &in, &reply, err);
    if (status == TERN_OK)
        status = finish(r, &in, &reply, err);
    out->seconds = tern_clock_seconds() - reader.began;
    events_free(&in.events);
    text_free(&in.body);
    text_free(&reply.refusal);
    free(body);
    return status;
}

tern_status remote_chat(remote *r, const tern_chat_message *messages, size_t n,
                        const json_t *fields, remote_sink *sink, void *user, remote_answer *out,
                        tern_error *err) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_pack("{s:s, s:s}", "role", messages[i].role, "content",
                                              messages[i].content));
    }
    return ask(r, "/chat/completions", "messages", list, fields, sink, user, out, err);
}

tern_status remote_complete(remote *r, json_t *given, const json_t *fields, remote_sink *sink,
                            void *user, remote_answer *out, tern_error *err) {
    return ask(r, "/completions", "prompt", given, fields, sink, user, out, err);
}

void remote_answer_free(remote_answer *a) {
    text_free(&a->said);
    *a = (remote_answer){0};
}
