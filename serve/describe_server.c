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
                             .host = http_request_header(x, "Host")};
    text t = {0};
    http_reply_header(x, "Vary", "Accept");
    text_print(&t, "tern serves the model %s.\n\n", s->config.name);
    write_examples(&own, server_needs_key(s), &t);
    text_print(&t, "What there is, with and without /v1 before it:\n\n");
    route_list(&t);
    reply_with(x, 200, "text/plain; charset=utf-8", &t);
}

/* True if the model's files have not changed. Otherwise replies with the refusal. */
static bool model_is_whole(const server *s, http_exchange *x) {
    tern_error err = {0};
    refusal r;
    if (tern_model_unchanged(s->served.with.model, &err) == TERN_OK)
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

void page_ready(server *s, http_exchange *x) {
    refusal r = {0};
    const double seconds = worker_stalled(s->served.worker);
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

static void write_model(const server *s, const served *m, text *t) {
    text_print(t, "{");
    text_string(t, "id", m->place.model);
    text_print(t, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"tern\"",
               (long long)s->started);
    text_print(t,
               ",\"meta\":{\"n_ctx\":%" PRIu32 ",\"n_ctx_train\":%" PRIu32 ",\"n_vocab\":%" PRIu32
               ",\"n_embd\":%" PRIu32 ",\"n_params\":%" PRIu64 ",\"size\":%" PRIu64 "}}",
               m->rules.n_ctx, m->info.n_ctx_train, m->info.n_vocab, m->info.n_embd,
               m->info.parameters, m->info.file_bytes);
}

void page_models(server *s, http_exchange *x) {
    text t = {0};
    text_print(&t, "{\"object\":\"list\",\"data\":[");
    write_model(s, &s->served, &t);
    text_print(&t, "]}");
    reply_with(x, 200, json, &t);
}

void page_model(server *s, http_exchange *x) {
    refusal r = {0};
    json_t *name = json_string(strstr(http_path(x), "/models/") + strlen("/models/"));
    const bool known = ask_check_model(&s->served.rules, name, &r);
    json_decref(name);
    if (!known) {
        refusal_reply(&r, x);
        return;
    }
    text t = {0};
    write_model(s, &s->served, &t);
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
    const served *m = server_model(s, x);
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
    const served *m = server_model(s, x);
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

/* Lists one slot for each answer that can be computed at the same time. Texts are left out: they
 * belong to other clients. */
void page_slots(server *s, http_exchange *x) {
    const served *m = server_model(s, x);
    const size_t all = m->with.engine.n_sequences;
    text t = {0};
    text_print(&t, "[");
    size_t n = worker_write_slots(m->worker, all, &t);
    if (n == all && http_argument_is(x, "fail_on_no_slot", "1")) {
        refusal r;
        (void)refuse(&r, 503, NULL, "no slot is free");
        refusal_reply(&r, x);
        text_free(&t);
        return;
    }
    for (; n < all; n++) {
        text_print(&t,
                   "%s{\"id\":%zu,\"n_ctx\":%" PRIu32 ",\"speculative\":false,"
                   "\"is_processing\":false}",
                   n > 0 ? "," : "", n, m->rules.n_ctx);
    }
    text_print(&t, "]");
    reply_with(x, 200, json, &t);
}
