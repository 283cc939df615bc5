/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"
#include "tools/load/loaded_json.h"
#include "tools/load/placement.h"

static double rate(size_t n, double seconds) {
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

double figures_prompt_seconds(const one_answer *a) {
    const tern_branch_figures *f = &a->figures;
    return f->prompt_seconds > 0.0 ? f->prompt_seconds - f->queued_seconds : 0.0;
}

double figures_decode_seconds(const one_answer *a) {
    const tern_branch_figures *f = &a->figures;
    return f->prompt_seconds > 0.0 ? f->seconds - f->prompt_seconds : 0.0;
}

/* Tokens of the prompt that were computed, per second. */
static double prefill_rate(const one_answer *a) {
    return rate(a->figures.n_prompt - a->figures.n_shared, figures_prompt_seconds(a));
}

static double decode_rate(const one_answer *a) {
    return rate(a->n_tokens, figures_decode_seconds(a));
}

double figures_first_token_ms(const one_answer *a) {
    const tern_branch_figures *f = &a->figures;
    return a->n_tokens > 0 ? 1e3 * (f->first_token_seconds - f->queued_seconds) : 0.0;
}

static double bandwidth_gbs(const one_answer *a, const loaded *l) {
    return decode_rate(a) * (double)l->info.weight_bytes * 1e-9;
}

void figures_print(const char *name, const one_answer *a, const loaded *l) {
    const tern_branch_figures *f = &a->figures;
    (void)fprintf(stderr,
                  "%sprompt %zu tokens, %.1f/s | generated %zu, %.2f/s, p50 %.2f ms, p95 %.2f ms | "
                  "first after %.1f ms | %.1f GB/s | drafted %" PRIu64 ", %" PRIu64
                  " right | %.0f MiB | %s, %u threads | stop: %s\n",
                  name, f->n_prompt - f->n_shared, prefill_rate(a), a->n_tokens, decode_rate(a),
                  a->p50_ms, a->p95_ms, figures_first_token_ms(a), bandwidth_gbs(a, l),
                  f->n_guessed, f->n_guessed_right, tern_peak_rss_mib(), tern_model_isa(l->model),
                  l->threads, answer_end_name(a->end));
}

static json_t *token_list(const int32_t *tokens, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(tokens[i]));
    return list;
}

void figures_set_answer(json_t *root, const one_answer *a, const loaded *l) {
    const tern_branch_figures *f = &a->figures;
    const double wall = figures_prompt_seconds(a) + figures_decode_seconds(a);
    json_object_set_new(root, "text", json_text(a->text, a->text_size));
    json_object_set_new(root, "tokens", token_list(a->tokens, a->n_tokens));
    json_object_set_new(root, "prompt_tokens", json_integer((json_int_t)f->n_prompt));
    json_object_set_new(root, "generated_tokens", json_integer((json_int_t)a->n_tokens));
    json_object_set_new(root, "shared_tokens", json_integer((json_int_t)f->n_shared));
    json_object_set_new(root, "kv_hits", json_integer((json_int_t)f->n_found));
    json_object_set_new(root, "kv_misses", json_integer((json_int_t)f->n_computed));
    json_object_set_new(root, "drafted_tokens", json_unsigned(f->n_guessed));
    json_object_set_new(root, "accepted_tokens", json_unsigned(f->n_guessed_right));
    json_object_set_new(root, "prefill_tps", json_number(prefill_rate(a)));
    json_object_set_new(root, "decode_tps", json_number(decode_rate(a)));
    json_object_set_new(root, "true_tps", json_number(rate(a->n_tokens, wall)));
    json_object_set_new(root, "bandwidth_gbs", json_number(bandwidth_gbs(a, l)));
    json_object_set_new(root, "first_token_ms", json_number(figures_first_token_ms(a)));
    json_object_set_new(root, "p50_ms", json_number(a->p50_ms));
    json_object_set_new(root, "p95_ms", json_number(a->p95_ms));
    json_object_set_new(root, "digest", json_string(a->digest));
    json_object_set_new(root, "stop", json_string(answer_end_name(a->end)));
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
