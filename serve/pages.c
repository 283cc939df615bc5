/* SPDX-License-Identifier: Apache-2.0 */
/* What a server says of itself and of its model. Nothing here waits for the engine. */

#include <inttypes.h>
#include <string.h>

#include "base/metrics.h"
#include "serve/server_internal.h"

static const char json[] = "application/json";

void page_home(server *s, http_exchange *x) {
    text t = {0};
    text_print(
        &t,
        "tern serves the model %s.\n\n"
        "Point any client of the OpenAI interface at this address and /v1:\n\n"
        "  curl -H 'Content-Type: application/json' \\\n"
        "       -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is 2+2?\"}]}' \\\n"
        "       ADDRESS/v1/chat/completions\n\n"
        "GET  /health /ready /metrics /props /v1/models\n"
        "POST /v1/chat/completions /v1/completions /tokenize /detokenize /apply-template\n",
        s->config.name);
    reply_with(x, 200, "text/plain; charset=utf-8", &t);
}

void page_health(server *s, http_exchange *x) {
    text t = {0};
    (void)s;
    text_print(&t, "{\"status\":\"ok\"}");
    reply_with(x, 200, json, &t);
}

void page_ready(server *s, http_exchange *x) {
    refusal r = {0};
    const double seconds = worker_stalled(s->worker);
    if (atomic_load(&s->draining)) {
        (void)refuse(&r, 503, NULL, "the server is ending");
    } else if (seconds > SERVER_STALLED_SECONDS) {
        (void)refuse(&r, 503, NULL, "a pass has taken %.0f seconds so far", seconds);
    }
    if (r.status != 0) {
        refusal_reply(&r, x);
        return;
    }
    text t = {0};
    text_print(&t, "{\"status\":\"ready\"}");
    reply_with(x, 200, json, &t);
}

static void write_model(const server *s, text *t) {
    text_print(t, "{");
    text_string(t, "id", s->config.name);
    text_print(t, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"tern\"",
               (long long)s->started);
    text_print(t,
               ",\"meta\":{\"n_ctx\":%" PRIu32 ",\"n_ctx_train\":%" PRIu32 ",\"n_vocab\":%" PRIu32
               ",\"n_embd\":%" PRIu32 ",\"n_params\":%" PRIu64 ",\"size\":%" PRIu64 "}}",
               s->rules.n_ctx, s->info.n_ctx_train, s->info.n_vocab, s->info.n_embd,
               s->info.parameters, s->info.file_bytes);
}

void page_models(server *s, http_exchange *x) {
    text t = {0};
    text_print(&t, "{\"object\":\"list\",\"data\":[");
    write_model(s, &t);
    text_print(&t, "]}");
    reply_with(x, 200, json, &t);
}

void page_model(server *s, http_exchange *x) {
    refusal r = {0};
    json_t *name = json_string(strstr(http_path(x), "/models/") + strlen("/models/"));
    const bool known = ask_check_model(&s->rules, name, &r);
    json_decref(name);
    if (!known) {
        refusal_reply(&r, x);
        return;
    }
    text t = {0};
    write_model(s, &t);
    reply_with(x, 200, json, &t);
}

void page_props(server *s, http_exchange *x) {
    const ask defaults = {.n = 1, .max_tokens = s->rules.max_tokens, .sampling = s->rules.sampling};
    text t = {0};
    text_print(&t, "{");
    text_string(&t, "model", s->config.name);
    text_string(&t, "system_fingerprint", s->fingerprint);
    text_string(&t, "build_info", tern_version());
    text_string(&t, "chat_format", tern_chat_format(s->tokenizer));
    text_print(&t,
               ",\"total_slots\":%" PRIu32 ",\"default_generation_settings\":{\"n_ctx\":%" PRIu32
               ",\"params\":",
               s->config.engine.n_sequences, s->rules.n_ctx);
    ask_write_effective(&defaults, &t);
    text_print(&t, "}}");
    reply_with(x, 200, json, &t);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void head(text *t, const char *name, const char *type, const char *help) {
    text_print(t, "# HELP tern_%s %s\n# TYPE tern_%s %s\n", name, help, name, type);
}

static void gauge(text *t, const char *name, const char *help, double value) {
    head(t, name, "gauge", help);
    text_print(t, "tern_%s %.17g\n", name, value);
}

static void counter(text *t, const char *name, const char *help, double value) {
    head(t, name, "counter", help);
    text_print(t, "tern_%s %.17g\n", name, value);
}

static void write_counts(const worker_counts *c, text *t) {
    counter(t, "requests_total", "Requests for text that were accepted.", (double)c->jobs);
    counter(t, "prompt_tokens_total", "Tokens of prompts of answers that ended.",
            (double)c->prompt_tokens);
    counter(t, "prompt_tokens_shared_total", "Of these, found in the cache and not computed.",
            (double)c->shared_tokens);
    counter(t, "generated_tokens_total", "Tokens of answers that ended.",
            (double)c->generated_tokens);
    head(t, "answers_total", "counter", "Answers that ended, by why.");
    for (int end = 0; end <= TERN_END_ERROR; end++) {
        if (end != TERN_END_STOP_TEXT) { /* has the name of TERN_END_STOP_TOKEN */
            const uint64_t texts = end == TERN_END_STOP_TOKEN ? c->ends[TERN_END_STOP_TEXT] : 0;
            text_print(t, "tern_answers_total{end=\"%s\"} %" PRIu64 "\n",
                       tern_end_name((tern_end)end), c->ends[end] + texts);
        }
    }
    uint64_t ended = 0;
    for (int end = 0; end <= TERN_END_ERROR; end++) {
        ended += c->ends[end];
    }
    head(t, "queue_seconds", "summary", "From submitting to admission.");
    text_print(t, "tern_queue_seconds_sum %.17g\ntern_queue_seconds_count %" PRIu64 "\n",
               c->queued_seconds, ended);
    head(t, "first_token_seconds", "summary", "From submitting to the first token.");
    text_print(t,
               "tern_first_token_seconds_sum %.17g\ntern_first_token_seconds_count %" PRIu64 "\n",
               c->first_token_seconds, c->first_tokens);
    head(t, "answer_seconds", "summary", "From submitting to the end.");
    text_print(t, "tern_answer_seconds_sum %.17g\ntern_answer_seconds_count %" PRIu64 "\n",
               c->seconds, ended);
}

void page_metrics(server *s, http_exchange *x) {
    const worker_counts counts = worker_count(s->worker);
    const tern_engine_state now = tern_engine_now(s->engine);
    text t = {0};
    gauge(&t, "answers_running", "Answers that are computed.", now.running);
    gauge(&t, "answers_waiting", "Answers that wait for their turn.", now.waiting);
    gauge(&t, "cache_pages", "Pages of keys and values.", now.pages);
    gauge(&t, "cache_pages_used", "Pages that running answers hold.", now.used_pages);
    gauge(&t, "cache_pages_kept", "Pages that are kept of answers that ended.", now.cached_pages);
    counter(&t, "passes_total", "Passes over the model.", (double)now.passes);
    counter(&t, "computed_tokens_total", "Tokens that passes computed.", (double)now.tokens);
    counter(&t, "set_aside_total", "Answers that made room and were computed again.",
            (double)now.set_aside);
    write_counts(&counts, &t);
    gauge(&t, "peak_resident_bytes", "Largest resident memory so far.",
          tern_peak_rss_mib() * 1048576.0);
    head(&t, "build_info", "gauge", "Always 1.");
    text_print(&t, "tern_build_info{version=\"%s\",fingerprint=\"%s\",isa=\"%s\"} 1\n",
               tern_version(), s->fingerprint, tern_model_isa(s->config.model));
    reply_with(x, 200, "text/plain; version=0.0.4; charset=utf-8", &t);
}
