/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that describe the server and its model. Nothing here waits for the engine. */

#include <inttypes.h>
#include <string.h>

#include "base/word_list.h"
#include "serve/http/own_address.h"
#include "serve/server_internal.h"

static const char json[] = "application/json";

/* Writes the base URL for clients, and an example request to paste into a shell. */
static void write_examples(const own_address *own, bool needs_key, text *t) {
    const char *socket = own_address_socket(own);
    text_print(t, "Any client of the OpenAI interface can ask it, with this base URL");
    if (socket != NULL)
        text_print(t, " over the socket %s", socket);
    text_print(t, ":\n\n  ");
    own_address_url(own, "/v1", t);
    text_print(t, "\n\nFor example%s:\n\n  ",
               needs_key ? ", with one of the server's keys in place of KEY" : "");
    own_address_curl(own, "/v1/chat/completions", t);
    if (needs_key)
        text_print(t, " \\\n       -H 'Authorization: Bearer KEY'");
    text_print(
        t, " \\\n       -H 'Content-Type: application/json' \\\n"
           "       -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is 2+2?\"}]}'\n\n");
    if (socket == NULL)
        text_print(t, "In a browser the server's address is a page to chat on.\n\n");
}

void page_home(server *s, http_exchange *x) {
    if (page_is_wanted(x)) {
        page_whole(x);
        return;
    }
    const own_address own = {.listening = http_address(s->http),
                             .host = http_request_header(x, "Host"),
                             .prefix = s->config.http.prefix};
    text t = {0};
    if (s->config.ollama) { /* clients look for these words */
        text_print(&t, "Ollama is running");
        reply_with(x, 200, "text/plain; charset=utf-8", &t);
        return;
    }
    http_reply_header(x, "Vary", "Accept");
    text_print(&t, "tern serves the model%s ", models_count(s->models) > 1 ? "s" : "");
    for (size_t i = 0; i < models_count(s->models); i++)
        if (model_is_there(models_at(s->models, i)))
            text_print(&t, "%s%s", i > 0 ? ", " : "", model_name(models_at(s->models, i)));
    text_print(&t, ".\n\n");
    write_examples(&own, server_needs_key(s), &t);
    text_print(&t, "What there is, with and without /v1 before it:\n\n");
    route_list(&t);
    reply_with(x, 200, "text/plain; charset=utf-8", &t);
}

/* True if the files of a server's only model have not changed, or if it has several: one of these
 * is loaded again. Otherwise replies with the refusal. */
static bool model_is_whole(const server *s, http_exchange *x) {
    tern_error err = {0};
    refusal r;
    const served *m =
        models_count(s->models) == 1 ? models_borrow(s->models, models_at(s->models, 0)) : NULL;
    const bool whole = m == NULL || tern_model_unchanged(m->with.model, &err) == TERN_OK;
    if (m != NULL)
        models_give_back(m);
    if (whole)
        return true;
    (void)refuse_error(&r, NULL, &err);
    r.status = 503;
    refusal_reply(&r, x);
    return false;
}

void page_health(server *s, http_exchange *x) {
    text t = {0};
    if (!model_is_whole(s, x))
        return;
    text_print(&t, "{\"status\":\"ok\"}");
    reply_with(x, 200, json, &t);
}

/* Returns the longest time that a pass of a model has taken so far. */
static double longest_pass(const server *s) {
    double longest = 0.0;
    for (size_t i = 0; i < models_count(s->models); i++) {
        const served *m = models_borrow(s->models, models_at(s->models, i));
        const double seconds = m != NULL ? worker_stalled(m->worker) : 0.0;
        longest = seconds > longest ? seconds : longest;
        if (m != NULL)
            models_give_back(m);
    }
    return longest;
}

void page_ready(server *s, http_exchange *x) {
    refusal r = {0};
    const double seconds = longest_pass(s);
    if (atomic_load(&s->draining))
        (void)refuse(&r, 503, NULL, "the server is ending");
    else if (seconds > s->config.stalled_seconds)
        (void)refuse(&r, 503, NULL, "a pass has taken %.3g seconds so far", seconds);
    if (r.status != 0) {
        refusal_reply(&r, x);
        return;
    }
    if (!model_is_whole(s, x))
        return;
    text t = {0};
    text_print(&t, "{\"status\":\"ready\"}");
    reply_with(x, 200, json, &t);
}

/* Sizes are told of models that have been loaded once. */
static void write_model(const server *s, model_entry *e, text *t) {
    model_facts f;
    models_tell(s->models, e, &f);
    text_print(t, "{");
    text_string(t, "id", f.name);
    text_print(t, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"tern\"",
               (long long)s->started);
    text_string(t, "root", f.name); /* this and the next member as in vLLM and SGLang */
    if (f.known)
        text_print(t, ",\"max_model_len\":%" PRIu32, f.n_ctx);
    text_print(t, ",\"meta\":{");
    if (f.known) {
        text_print(t,
                   "\"n_ctx\":%" PRIu32 ",\"n_ctx_train\":%" PRIu32 ",\"n_vocab\":%" PRIu32
                   ",\"n_embd\":%" PRIu32 ",\"n_params\":%" PRIu64 ",",
                   f.n_ctx, f.info.n_ctx_train, f.info.n_vocab, f.info.n_embd, f.info.parameters);
    }
    if (f.memory_bytes > 0)
        text_print(t, "\"memory\":%" PRIu64 ",\"shared_memory\":%" PRIu64 ",", f.memory_bytes,
                   f.shared_bytes);
    text_print(t, "\"size\":%" PRIu64 "},\"status\":{", f.known ? f.info.file_bytes : f.file_bytes);
    text_string(t, "value", model_state_name(f.state));
    if (f.problem[0] != '\0')
        text_string(t, "error", f.problem);
    text_print(t, "}}");
}

void page_models(server *s, http_exchange *x) {
    text t = {0};
    text_print(&t, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < models_count(s->models); i++) {
        if (!model_is_there(models_at(s->models, i)))
            continue;
        text_add(&t, ",", i > 0);
        write_model(s, models_at(s->models, i), &t);
    }
    text_print(&t, "]}");
    reply_with(x, 200, json, &t);
}

void page_model(server *s, http_exchange *x) {
    refusal r = {0};
    const char *name = strstr(http_path(x), "/models/") + strlen("/models/");
    model_entry *e = models_entry(s, name, &r);
    if (e == NULL) {
        refusal_reply(&r, x);
        return;
    }
    text t = {0};
    write_model(s, e, &t);
    reply_with(x, 200, json, &t);
}

static void write_token(text *t, const char *name, const tern_tokenizer *tokenizer, int32_t id) {
    size_t size = 0;
    const char *bytes = id >= 0 ? tern_token_bytes(tokenizer, id, true, &size) : "";
    text_name(t, name);
    text_quote(t, bytes, size);
}

static void write_token_or_null(text *t, const char *name, const tern_tokenizer *tokenizer,
                                int32_t id) {
    if (id >= 0)
        write_token(t, name, tokenizer, id);
    else
        text_print(t, ",\"%s\":null", name);
}

/* Uses vLLM's names: its clients ask a server how to tokenize. */
void page_tokenizer(server *s, http_exchange *x) {
    (void)s;
    const served *m = server_model(x);
    text t = {0};
    text_print(&t, "{\"model_max_length\":%" PRIu32 ",\"vocab_size\":%" PRIu32, m->rules.n_ctx,
               m->info.n_vocab);
    write_token_or_null(&t, "bos_token", m->tokenizer, tern_token_bos(m->tokenizer));
    write_token_or_null(&t, "eos_token", m->tokenizer, tern_token_eos(m->tokenizer));
    text_print(&t, "}");
    reply_with(x, 200, json, &t);
}

/* Uses llama.cpp's names: its clients ask for this. */
void page_props(server *s, http_exchange *x) {
    (void)s;
    const served *m = server_model(x);
    ask defaults = {.n = 1, .max_tokens = m->rules.max_tokens, .sampling = m->rules.sampling};
    text t = {0};
    if (!m->rules.seeded)
        defaults.sampling.seed = UINT32_MAX; /* tells these clients that each request draws its
                                                seed */
    text_print(&t, "{");
    text_string(&t, "model", m->place.model);
    text_string(&t, "model_alias", m->place.model);
    text_string(&t, "model_path", file_base_name(m->info.path));
    text_string(&t, "system_fingerprint", m->fingerprint);
    text_string(&t, "build_info", tern_version());
    text_string(&t, "chat_format", tern_chat_format(m->tokenizer));
    write_token(&t, "bos_token", m->tokenizer, tern_token_bos(m->tokenizer));
    write_token(&t, "eos_token", m->tokenizer, tern_token_eos(m->tokenizer));
    text_print(&t,
               ",\"modalities\":{\"vision\":false,\"audio\":false},\"total_slots\":%" PRIu32
               ",\"endpoint_slots\":true,\"endpoint_metrics\":true,\"endpoint_props\":false"
               ",\"default_generation_settings\":{\"n_ctx\":%" PRIu32 ",\"params\":",
               m->with.engine.n_sequences, m->rules.n_ctx);
    ask_write_native(&defaults, &t);
    text_print(&t, "}}");
    reply_with(x, 200, json, &t);
}

/* Appends the slots of a model, those in use first; returns how many are in use. */
static size_t write_slots(const server *s, const served *m, text *t) {
    const size_t all = m->with.engine.n_sequences;
    const bool several = models_count(s->models) > 1;
    const size_t used = worker_write_slots(m->worker, all, several, t);
    for (size_t n = used; n < all; n++) {
        text_print(t,
                   "%s{\"id\":%zu,\"n_ctx\":%" PRIu32 ",\"speculative\":false,"
                   "\"is_processing\":false",
                   t->size > 1 ? "," : "", n, m->rules.n_ctx);
        if (several)
            text_string(t, "model", m->params.name);
        text_print(t, "}");
    }
    return used;
}

/* Lists one slot for each answer that can be computed at the same time, of all models that are
 * loaded. Texts are left out: they belong to other clients. */
void page_slots(server *s, http_exchange *x) {
    char value[2], name[MODEL_NAME_BYTES];
    size_t all = 0, used = 0;
    text t = {0};
    const bool named = http_argument(x, "model", name, sizeof name);
    text_print(&t, "[");
    for (size_t i = 0; i < models_count(s->models); i++) {
        model_entry *e = models_at(s->models, i);
        const served *m =
            !named || strcmp(name, model_name(e)) == 0 ? models_borrow(s->models, e) : NULL;
        if (m == NULL)
            continue;
        all += m->with.engine.n_sequences;
        used += write_slots(s, m, &t);
        models_give_back(m);
    }
    text_print(&t, "]");
    if (used == all && http_argument(x, "fail_on_no_slot", value, sizeof value) &&
        value[0] == '1') {
        refusal r;
        (void)refuse(&r, 503, NULL, "no slot is free");
        refusal_reply(&r, x);
        text_free(&t);
        return;
    }
    reply_with(x, 200, json, &t);
}
