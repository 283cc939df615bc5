/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"
#include "tools/model/placement.h"

static double rate(size_t n, double seconds) {
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

static double bandwidth_gbs(const tern_generation *g, const loaded *l) {
    return rate(g->n_generated, g->decode_seconds) * (double)l->info.weight_bytes * 1e-9;
}

void figures_print(const answerer *a, const loaded *l) {
    const tern_generation *g = &a->figures;
    (void)fprintf(stderr,
                  "prompt %zu tokens, %.1f/s | generated %zu, %.2f/s, p50 %.2f ms, p95 %.2f ms | "
                  "first after %.1f ms | %.1f GB/s | drafted %zu, %zu right | %.0f MiB | %s, %u "
                  "threads | stop: %s\n",
                  g->n_prompt, rate(g->n_prompt, g->prefill_seconds), g->n_generated,
                  rate(g->n_generated, g->decode_seconds), g->p50_ms, g->p95_ms,
                  1e3 * g->first_token_seconds, bandwidth_gbs(g, l), g->n_drafted, g->n_accepted,
                  tern_peak_rss_mib(), tern_model_isa(l->model), tern_session_threads(l->session),
                  answer_end_name(a->end));
}

static json_t *token_list(const int32_t *tokens, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(tokens[i]));
    return list;
}

void figures_set_rates(json_t *root, const tern_generation *g, const loaded *l) {
    const double wall = g->prefill_seconds + g->decode_seconds;
    json_object_set_new(root, "prompt_tokens", json_integer((json_int_t)g->n_prompt));
    json_object_set_new(root, "generated_tokens", json_integer((json_int_t)g->n_generated));
    json_object_set_new(root, "prefill_tps", json_number(rate(g->n_prompt, g->prefill_seconds)));
    json_object_set_new(root, "decode_tps", json_number(rate(g->n_generated, g->decode_seconds)));
    json_object_set_new(root, "true_tps", json_number(rate(g->n_generated, wall)));
    json_object_set_new(root, "bandwidth_gbs", json_number(bandwidth_gbs(g, l)));
}

static void set_drafts(json_t *root, uint64_t drafted, uint64_t accepted) {
    json_object_set_new(root, "drafted_tokens", json_unsigned(drafted));
    json_object_set_new(root, "accepted_tokens", json_unsigned(accepted));
}

void figures_set_answer(json_t *root, const answerer *a, const loaded *l) {
    const tern_generation *g = &a->figures;
    json_object_set_new(root, "text", json_text(a->text, a->text_size));
    json_object_set_new(root, "tokens", token_list(a->tokens, a->n_tokens));
    figures_set_rates(root, g, l);
    json_object_set_new(root, "kv_hits", json_integer((json_int_t)a->kv_hits));
    json_object_set_new(root, "kv_misses", json_integer((json_int_t)a->kv_misses));
    set_drafts(root, g->n_drafted, g->n_accepted);
    json_object_set_new(root, "first_token_ms", json_number(1e3 * g->first_token_seconds));
    json_object_set_new(root, "p50_ms", json_number(g->p50_ms));
    json_object_set_new(root, "p95_ms", json_number(g->p95_ms));
    json_object_set_new(root, "stop", json_string(answer_end_name(a->end)));
}

/* Seconds from the first token to the end. */
static double decode_seconds(const together_answer *a) {
    return a->n_tokens > 0 ? a->figures.seconds - a->figures.first_token_seconds : 0.0;
}

void figures_print_of_many(const together_answer *a, const char *end) {
    const tern_branch_figures *f = &a->figures;
    (void)fprintf(stderr,
                  "answer %zu: prompt %zu tokens, %zu of them shared | generated %zu, %.2f/s, p50 "
                  "%.2f ms, p95 %.2f ms | first after %.1f ms | drafted %" PRIu64 ", %" PRIu64
                  " right | stop: %s\n",
                  a->number + 1, f->n_prompt, f->n_shared, a->n_tokens,
                  rate(a->n_tokens, decode_seconds(a)), a->p50_ms, a->p95_ms,
                  1e3 * (f->first_token_seconds - f->queued_seconds), f->n_guessed,
                  f->n_guessed_right, end);
}

void figures_set_of_many(json_t *root, const together_answer *a, const char *end) {
    const tern_branch_figures *f = &a->figures;
    const double first = a->n_tokens > 0 ? f->first_token_seconds - f->queued_seconds : 0.0;
    json_object_set_new(root, "text", json_text(a->text, a->text_size));
    json_object_set_new(root, "tokens", token_list(a->tokens, a->n_tokens));
    json_object_set_new(root, "prompt_tokens", json_integer((json_int_t)f->n_prompt));
    json_object_set_new(root, "generated_tokens", json_integer((json_int_t)a->n_tokens));
    json_object_set_new(root, "shared_tokens", json_integer((json_int_t)f->n_shared));
    json_object_set_new(root, "kv_hits", json_integer((json_int_t)f->n_found));
    json_object_set_new(root, "kv_misses", json_integer((json_int_t)f->n_computed));
    set_drafts(root, f->n_guessed, f->n_guessed_right);
    json_object_set_new(root, "decode_tps", json_number(rate(a->n_tokens, decode_seconds(a))));
    json_object_set_new(root, "first_token_ms", json_number(1e3 * first));
    json_object_set_new(root, "p50_ms", json_number(a->p50_ms));
    json_object_set_new(root, "p95_ms", json_number(a->p95_ms));
    json_object_set_new(root, "digest", json_string(a->digest));
    json_object_set_new(root, "stop", json_string(end));
}

void figures_set_choices(json_t *root, const options *o) {
    json_object_set_new(root, "seed", json_unsigned(options_integer(o, OPT_SEED)));
    json_object_set_new(root, "deterministic", json_boolean(options_switch(o, OPT_DETERMINISTIC)));
}

void figures_set_process(json_t *root, const loaded *l) {
    json_object_set_new(root, "rss_mib", json_number(tern_peak_rss_mib()));
    json_object_set_new(root, "bytes_per_token", json_integer((json_int_t)l->info.weight_bytes));
    json_object_set_new(root, "threads", json_integer(l->threads));
    json_set_loading(root, l);
    json_set_kernels(root, l);
    json_set_activations(root, l->model);
    placement_set_json(root, l->model);
    json_object_set_new(root, "model", json_text(l->info.path, strlen(l->info.path)));
}
