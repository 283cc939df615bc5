/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics for Prometheus, in its text format, version 0.0.4. Nothing here waits for the engine. */

#include <inttypes.h>
#include <string.h>

#include "base/metrics.h"
#include "serve/server_internal.h"

enum { MOST_FAMILIES = 64 };

/* A metric with its samples. The format wants all samples of a metric together, so those of one
 * model after the other are collected first. */
typedef struct family {
    const char *name, *type, *help;
    text samples;
} family;

typedef struct sheet {
    family families[MOST_FAMILIES]; /* [n] */
    size_t n, at;                   /* at: the next one of the present model */
    const char *label;              /* model="NAME", or "" if the server has one model */
} sheet;

/* The samples of the next metric; each model writes the same ones in the same order. */
static text *samples_of(sheet *s, const char *name, const char *type, const char *help) {
    family *f = &s->families[s->at++];
    f->name = name;
    f->type = type;
    f->help = help;
    s->n = s->at > s->n ? s->at : s->n;
    return &f->samples;
}

static void write_value(sheet *s, text *t, const char *name, double value) {
    if (s->label[0] != '\0')
        text_print(t, "%s{%s} %.17g\n", name, s->label, value);
    else
        text_print(t, "%s %.17g\n", name, value);
}

static void gauge(sheet *s, const char *name, const char *help, double value) {
    write_value(s, samples_of(s, name, "gauge", help), name, value);
}

static void counter(sheet *s, const char *name, const char *help, double value) {
    write_value(s, samples_of(s, name, "counter", help), name, value);
}

static void durations(sheet *s, const char *name, const char *help, const histogram *h) {
    histogram_write(h, name, s->label, samples_of(s, name, "histogram", help));
}

static void print_sheet(sheet *s, text *out) {
    for (size_t i = 0; i < s->n; i++) {
        family *f = &s->families[i];
        text_print(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, f->type);
        text_add(out, f->samples.bytes, f->samples.size);
        out->failed = out->failed || f->samples.failed;
        text_free(&f->samples);
    }
}

static double ratio(uint32_t part, uint32_t all) {
    return all > 0 ? (double)part / all : 0.0;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void write_state(const tern_engine_state *now, sheet *t) {
    gauge(t, "tern_answers_running", "Answers that are computed.", now->running);
    gauge(t, "tern_answers_waiting", "Answers that wait for their turn.", now->waiting);
    gauge(t, "tern_cache_pages", "Pages of keys and values.", now->pages);
    gauge(t, "tern_cache_pages_used", "Pages that running answers hold.", now->used_pages);
    gauge(t, "tern_cache_pages_kept", "Pages that are kept of answers that ended.",
          now->cached_pages);
    gauge(t, "tern_cache_window_pages", "Pages of layers with a window.", now->window_pages);
    gauge(t, "tern_cache_window_pages_used", "Of these, pages that running answers hold.",
          now->used_window_pages);
    gauge(t, "tern_cache_window_pages_kept", "Of these, pages that are kept for later answers.",
          now->cached_window_pages);
    gauge(t, "tern_cache_usage_ratio",
          "Part of the pages that running answers hold, of the kind that is shorter.",
          larger(ratio(now->used_pages, now->pages),
                 ratio(now->used_window_pages, now->window_pages)));
    counter(t, "tern_passes_total", "Passes over the model.", (double)now->passes);
    counter(t, "tern_computed_tokens_total", "Tokens that passes computed.", (double)now->tokens);
    counter(t, "tern_set_aside_total", "Answers that made room and were computed again.",
            (double)now->set_aside);
}

static void write_ends(const answer_metrics *f, sheet *s) {
    text *t = samples_of(s, "tern_answers_total", "counter", "Answers that ended, by why.");
    const char *comma = s->label[0] != '\0' ? "," : "";
    for (int end = 0; end <= TERN_END_ERROR; end++) {
        if (end != TERN_END_STOP_TEXT) { /* counted with TERN_END_STOP_TOKEN, which has the same
                                            name */
            const uint64_t texts = end == TERN_END_STOP_TOKEN ? f->ends[TERN_END_STOP_TEXT] : 0;
            text_print(t, "tern_answers_total{end=\"%s\"%s%s} %" PRIu64 "\n",
                       tern_end_name((tern_end)end), comma, s->label, f->ends[end] + texts);
        }
    }
}

static void write_figures(const answer_metrics *f, sheet *t) {
    counter(t, "tern_requests_total", "Requests for text that were accepted.", (double)f->jobs);
    counter(t, "tern_replays_total", "Answers that were repeated and compared.",
            (double)f->replays);
    counter(t, "tern_replay_mismatch_total", "Of these, repeated with another result: must be 0.",
            (double)f->mismatches);
    counter(t, "tern_generated_tokens_total", "Tokens of answers.", (double)f->generated_tokens);
    counter(t, "tern_prompt_tokens_total", "Tokens of prompts of answers that ended.",
            (double)f->prompt_tokens);
    counter(t, "tern_prefix_cache_hits_total",
            "Tokens of these prompts that were found in the cache and not computed.",
            (double)f->shared_tokens);
    counter(t, "tern_draft_tokens_total", "Tokens that were guessed for answers that ended.",
            (double)f->guessed_tokens);
    counter(t, "tern_draft_accepted_tokens_total", "Of these, tokens that were right.",
            (double)f->right_guesses);
    write_ends(f, t);
    durations(t, "tern_time_to_first_token_seconds",
              "From accepting a request to the first token of an answer.", &f->first_token);
    durations(t, "tern_inter_token_latency_seconds", "Between two tokens of an answer.",
              &f->between_tokens);
    durations(t, "tern_request_queue_time_seconds", "From accepting a request to its turn.",
              &f->queue);
    durations(t, "tern_request_prefill_time_seconds", "From its turn to the first token.",
              &f->prefill);
    durations(t, "tern_request_decode_time_seconds", "From the first token to the end.",
              &f->decode);
    durations(t, "tern_e2e_request_latency_seconds",
              "From accepting a request to the end of an answer.", &f->whole);
}

static void write_replies(server *s, sheet *t) {
    text *replies =
        samples_of(t, "tern_http_replies_total", "counter",
                   "Replies that ended, by status; 000: the client left before there was one.");
    for (unsigned i = 0; i < SERVER_STATUSES; i++) {
        const unsigned long long n = atomic_load(&s->replies[i]);
        if (n > 0 || i == 100)
            text_print(replies, "tern_http_replies_total{code=\"%03u\"} %llu\n",
                       i > 0 ? i + 100 : 0, n);
    }
    counter(t, "tern_log_dropped_lines_total", "Lines of the access log that could not be written.",
            s->log != NULL ? (double)log_dropped(s->log) : 0.0);
    counter(t, "tern_http_tokenized_bytes_total", "Bytes of texts that tokens were looked for in.",
            (double)atomic_load(&s->tokenized_bytes));
    counter(t, "tern_http_unread_requests_total",
            "Requests that were refused because too many waited to be read.",
            (double)atomic_load(&s->unread_requests));
    gauge(t, "tern_http_requests_active", "Requests that are not over.", http_active(s->http));
}

/* The label of a model in a server of several; "" otherwise. */
static void name_model(const server *s, model_entry *e, text *out) {
    out->size = 0;
    if (models_count(s->models) > 1) {
        text_print(out, "model=");
        text_quote(out, model_name(e), strlen(model_name(e)));
    }
    text_add(out, "", 1);
}

static void write_models(const server *s, sheet *t) {
    text label = {0};
    const size_t begin = t->at;
    for (size_t i = 0; i < models_count(s->models); i++) {
        model_entry *e = models_at(s->models, i);
        answer_metrics counts;
        tern_engine_state now;
        model_facts facts;
        if (!model_is_there(e))
            continue;
        models_count_answers(s->models, e, &counts, &now);
        models_tell(s->models, e, &facts);
        name_model(s, e, &label);
        t->label = label.bytes != NULL ? label.bytes : "";
        t->at = begin;
        write_state(&now, t);
        write_figures(&counts, t);
        gauge(t, "tern_model_loaded", "1: the model is loaded.", facts.state == MODEL_LOADED);
        gauge(t, "tern_model_bytes", "Memory that the model takes when it is loaded.",
              (double)facts.memory_bytes);
        gauge(t, "tern_model_shared_bytes",
              "Of these, matrices that another loaded model reads, too.",
              (double)facts.shared_bytes);
    }
    t->label = "";
    text_free(&label);
}

static void write_process(const server *s, sheet *t) {
    model_facts facts;
    /* The system counts pages of each processor apart and adds them up late, so its own largest
     * figure may lack a few that are held now. */
    const double resident = (double)tern_resident_bytes();
    const double peak = tern_peak_rss_mib() * 1048576.0;
    models_tell(s->models, models_at(s->models, 0), &facts);
    gauge(t, "process_resident_memory_bytes", "Memory that the process holds.", resident);
    gauge(t, "tern_peak_resident_bytes", "The most that it has held.",
          peak < resident ? resident : peak);
    counter(t, "process_cpu_seconds_total", "Time of processors that was used.",
            tern_processor_seconds());
    gauge(t, "process_start_time_seconds", "When it began, since 1970.", (double)s->started);
    text_print(samples_of(t, "tern_build_info", "gauge", "Always 1, with the first model."),
               "tern_build_info{version=\"%s\",fingerprint=\"%s\",isa=\"%s\"} 1\n", tern_version(),
               facts.fingerprint, facts.isa);
}

void page_metrics(server *s, http_exchange *x) {
    sheet all = {.label = ""};
    text t = {0};
    write_models(s, &all);
    write_replies(s, &all);
    write_process(s, &all);
    print_sheet(&all, &t);
    reply_with(x, 200, "text/plain; version=0.0.4; charset=utf-8", &t);
}
