/* SPDX-License-Identifier: Apache-2.0 */
/* The output of tern bench for programs. */

#include <string.h>

#include "receipts/facts.h"
#include "tools/cli/json_line.h"
#include "tools/load/loaded_json.h"
#include "tools/load/placement.h"
#include "tools/load/together.h"
#include "tools/record/run_facts.h"
#include "tools/speed/speed.h"
#include "tools/touch/touch_options.h"

static void set_number(json_t *root, const char *key, double x) {
    json_object_set_new(root, key, json_number(x));
}

static void set_count(json_t *root, const char *key, uint64_t n) {
    json_object_set_new(root, key, json_integer((json_int_t)n));
}

static json_t *list_of(const series *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(list, json_number(s->values[i]));
    return list;
}

/* All samples: value i of each list belongs to round i. */
static json_t *rounds(const bench_point *p) {
    json_t *root = json_object();
    json_object_set_new(root, "prefill_tps", list_of(&p->prefill_tps));
    json_object_set_new(root, "first_token_ms", list_of(&p->first_ms));
    json_object_set_new(root, "decode_tps", list_of(&p->decode_tps));
    json_object_set_new(root, "p50_ms", list_of(&p->p50_ms));
    json_object_set_new(root, "p95_ms", list_of(&p->p95_ms));
    json_object_set_new(root, "read_gbs", list_of(&p->read_gbs));
    json_object_set_new(root, "head_rows", list_of(&p->head_rows));
    json_object_set_new(root, "joules_per_token", list_of(&p->joules));
    return root;
}

/* Sets the figures that every point has. */
static void set_point(json_t *root, const bench *b, const bench_point *p) {
    set_count(root, "threads", p->threads);
    set_count(root, "prompt_tokens", p->n_prompt);
    set_count(root, "generated_tokens", p->n_decode);
    set_count(root, "depth", p->depth);
    set_number(root, "prefill_tps", series_median(&p->prefill_tps));
    set_number(root, "prefill_spread_percent", series_spread(&p->prefill_tps));
    set_number(root, "decode_tps", series_median(&p->decode_tps));
    set_number(root, "decode_spread_percent", series_spread(&p->decode_tps));
    set_number(root, "first_token_ms", series_median(&p->first_ms));
    set_number(root, "p50_ms", series_median(&p->p50_ms));
    set_number(root, "p95_ms", series_median(&p->p95_ms));
    set_count(root, "bytes_per_token", b->l.info.weight_bytes);
    set_count(root, "cache_bytes", bench_cache_bytes(b, p));
    set_number(root, "head_rows", series_median(&p->head_rows));
    set_number(root, "bandwidth_gbs", bench_gbs(b, p));
    set_number(root, "read_gbs", series_median(&p->read_gbs));
    set_number(root, "bandwidth_fraction", bench_fraction(b, p));
    if (p->joules.n > 0)
        set_number(root, "joules_per_token", series_median(&p->joules));
    json_object_set_new(root, "rounds", rounds(p));
}

static json_t *points(const bench *b, const bench_point *list, size_t n) {
    json_t *root = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *point = json_object();
        set_point(point, b, &list[i]);
        json_array_append_new(root, point);
    }
    return root;
}

static json_t *batches(const bench *b) {
    json_t *root = json_array();
    for (size_t i = 0; i < b->n_batches; i++) {
        const bench_batch *s = &b->batches[i];
        json_t *batch = json_object();
        set_count(batch, "tokens", s->tokens);
        set_number(batch, "all_ms", series_median(&s->all_ms));
        set_number(batch, "all_ratio", series_median(&s->all_ratio));
        set_number(batch, "pick_ms", series_median(&s->pick_ms));
        set_number(batch, "pick_ratio", series_median(&s->pick_ratio));
        json_object_set_new(batch, "rounds",
                            json_pack("{s:o, s:o}", "all_ms", list_of(&s->all_ms), "pick_ms",
                                      list_of(&s->pick_ms)));
        json_array_append_new(root, batch);
    }
    return root;
}

/* Sets a figure, and its samples in `rounds`. */
static void set_series(json_t *root, json_t *rounds, const char *key, const series *s) {
    set_number(root, key, series_median(s));
    json_object_set_new(rounds, key, list_of(s));
}

static json_t *sequences_json(const bench *b) {
    json_t *root = json_array();
    for (size_t i = 0; i < b->n_sequences; i++) {
        const bench_sequences *s = &b->sequences[i];
        json_t *one = json_object();
        json_t *samples = json_object();
        set_count(one, "n", s->n);
        set_series(one, samples, "tps", &s->tps);
        set_number(one, "each_tps", series_median(&s->tps) / (double)s->n);
        set_series(one, samples, "p50_ms", &s->p50_ms);
        set_series(one, samples, "p95_ms", &s->p95_ms);
        set_number(one, "bytes_per_token", bench_shared_bytes(b, s->n));
        json_object_set_new(one, "rounds", samples);
        json_array_append_new(root, one);
    }
    return root;
}

static json_t *arrivals_json(const bench *b) {
    json_t *root = json_array();
    for (size_t i = 0; i < b->n_sequences; i++) {
        const bench_arrival *a = &b->arrivals[i];
        json_t *one = json_object();
        json_t *samples = json_object();
        set_count(one, "n", a->n);
        set_count(one, "prompt_tokens", b->n_arriving);
        set_count(one, "gap_ms", options_integer(b->o, OPT_GAP));
        set_series(one, samples, "before_p50_ms", &a->before_p50_ms);
        set_series(one, samples, "before_p95_ms", &a->before_p95_ms);
        set_series(one, samples, "during_p50_ms", &a->during_p50_ms);
        set_series(one, samples, "during_p95_ms", &a->during_p95_ms);
        set_series(one, samples, "first_token_ms", &a->first_ms);
        json_object_set_new(one, "rounds", samples);
        json_array_append_new(root, one);
    }
    return root;
}

static json_t *sparsity_json(const sparsity_layer *l) {
    static const size_t sizes[SPARSITY_SIZES] = SPARSITY_GROUPS;
    json_t *root = json_object();
    json_t *groups = json_object();
    set_count(root, "values", l->values);
    set_count(root, "zeros", l->zeros);
    for (size_t i = 0; i < SPARSITY_SIZES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%zu", sizes[i]);
        set_number(groups, name, bench_ratio((double)l->zero_groups[i], (double)l->groups[i]));
    }
    json_object_set_new(root, "zero_groups", groups);
    return root;
}

static void set_sparsity(json_t *root, const sparsity *s) {
    const sparsity_layer total = sparsity_total(s);
    json_t *layers = json_array();
    for (size_t i = 0; i < s->n_layer; i++)
        json_array_append_new(layers, sparsity_json(&s->layers[i]));
    json_object_set_new(root, "sparsity",
                        json_pack("{s:o, s:o}", "all", sparsity_json(&total), "layers", layers));
}

static json_t *stage_json(tern_stage which, const bench_stage *s, double whole) {
    json_t *root = json_object();
    json_object_set_new(root, "stage", json_string(tern_stage_name(which)));
    set_number(root, "work_ms", series_median(&s->work_ms));
    set_number(root, "work_fraction", bench_ratio(series_median(&s->work_ms), whole));
    set_number(root, "wait_ms", series_median(&s->wait_ms));
    set_number(root, "wait_fraction", bench_ratio(series_median(&s->wait_ms), whole));
    set_number(root, "bytes", s->bytes);
    set_number(root, "gbs", bench_stage_gbs(s));
    set_number(root, "gweights", bench_stage_gweights(s));
    json_object_set_new(
        root, "rounds",
        json_pack("{s:o, s:o}", "work_ms", list_of(&s->work_ms), "wait_ms", list_of(&s->wait_ms)));
    return root;
}

static json_t *stages_json(const bench_stages *s, size_t depth) {
    json_t *root = json_object();
    json_t *list = json_array();
    const double whole = series_median(&s->whole_ms);
    for (tern_stage i = 0; i < TERN_STAGE_COUNT; i++)
        json_array_append_new(list, stage_json(i, &s->stage[i], whole));
    set_count(root, "tokens", s->tokens);
    set_count(root, "depth", depth);
    set_count(root, "threads", s->threads);
    set_number(root, "work_ms", series_median(&s->work_ms));
    set_number(root, "wait_ms", series_median(&s->wait_ms));
    set_number(root, "outside_ms", series_median(&s->outside_ms));
    set_number(root, "whole_ms", whole);
    json_object_set_new(root, "rounds",
                        json_pack("{s:o, s:o}", "outside_ms", list_of(&s->outside_ms), "whole_ms",
                                  list_of(&s->whole_ms)));
    json_object_set_new(root, "stages", list);
    return root;
}

/* Sets the kinds of passes that were measured. */
static void set_stages(json_t *root, const bench *b) {
    json_t *kinds = json_object();
    if (b->stages->prefill.tokens > 0)
        json_object_set_new(kinds, "prefill", stages_json(&b->stages->prefill, 0));
    if (b->stages->decode.tokens > 0)
        json_object_set_new(kinds, "decode", stages_json(&b->stages->decode, b->main.depth));
    json_object_set_new(root, "stages", kinds);
}

/* Sets bytes and weights by component, and the limits of the processor. */
static void set_work(json_t *root, const bench *b) {
    const tern_model_info *i = &b->l.info;
    const bench_point *p = &b->main;
    const double bytes = (double)bench_token_bytes(b, p);
    set_count(root, "attention_bytes", i->attention_bytes);
    set_count(root, "feed_forward_bytes", i->feed_forward_bytes);
    set_count(root, "head_bytes", i->head_bytes);
    set_number(root, "mb_per_token", 1e-6 * bytes);
    set_number(root, "bytes_touched", bytes * (double)p->n_decode);
    set_number(root, "coverage", bench_ratio(bytes, (double)i->file_bytes));
    set_number(root, "read_low_gbs", series_low(&p->read_gbs));
    set_number(root, "read_high_gbs", series_high(&p->read_gbs));
    set_number(root, "prefill_gweights", bench_prefill_gweights(b, p));
    set_number(root, "decode_gweights", bench_decode_gweights(b, p));
    set_number(root, "operations_per_byte", bench_intensity(b));
    if (b->peak_gmacs > 0.0) {
        set_number(root, "peak_gmacs", b->peak_gmacs);
        json_object_set_new(root, "peak_isa", json_string(b->peak_isa));
        json_object_set_new(root, "peak_unit", json_string(b->peak_unit));
        set_number(root, "prefill_peak_fraction",
                   bench_ratio(bench_prefill_gweights(b, p), b->peak_gmacs));
        set_number(root, "decode_peak_fraction",
                   bench_ratio(bench_decode_gweights(b, p), b->peak_gmacs));
    }
}

json_t *bench_figures(const bench *b) {
    json_t *root = json_object();
    const double first = b->main.first_ms.n > 0 ? b->main.first_ms.values[0] : 0.0;
    set_point(root, b, &b->main);
    set_work(root, b);
    set_count(root, "repeat", options_integer(b->o, OPT_REPEAT));
    set_number(root, "load_ms", 1e3 * b->load_seconds);
    set_number(root, "first_token_with_load_ms", 1e3 * b->load_seconds + first);
    set_number(root, "rss_mib", b->rss_mib);
    set_count(root, "kv_bytes",
              tern_model_kv_bytes(b->l.model, b->context, loader_kv_format(b->o)));
    return root;
}

/* Sets the parameters of prefetching, if it was used. */
static void set_fetch(json_t *root, const tern_model *model) {
    const tern_fetch f = tern_model_fetch(model);
    const bool passing = f.hint == TERN_FETCH_PASSING;
    if (f.ahead == 0)
        return;
    json_t *fetch = json_object();
    set_count(fetch, "ahead", f.ahead);
    json_object_set_new(fetch, "non_temporal", json_boolean(passing));
    set_number(fetch, "non_temporal_percent", passing ? 100.0 - f.kept_percent : 0.0);
    json_object_set_new(root, "fetch", fetch);
}

void bench_set_sweeps(json_t *root, const bench *b) {
    if (b->n_depths > 0)
        json_object_set_new(root, "depths", points(b, b->depths, b->n_depths));
    if (b->n_threads > 0)
        json_object_set_new(root, "thread_counts", points(b, b->threads, b->n_threads));
    if (b->n_batches > 0)
        json_object_set_new(root, "batches", batches(b));
    if (b->n_sequences > 0)
        json_object_set_new(root, "sequences", sequences_json(b));
    if (b->n_arriving > 0)
        json_object_set_new(root, "arrivals", arrivals_json(b));
    if (b->stages != NULL)
        set_stages(root, b);
    if (b->sparsity.n_layer > 0)
        set_sparsity(root, &b->sparsity);
    set_fetch(root, b->l.model);
    touch_set_json(root, &b->touch);
}

/* Sets the exchanges with other ranks, if there are any. */
static void set_ranks(json_t *root) {
    if (together_ranks() == NULL)
        return;
    const tern_ranks_work work = tern_ranks_done(together_ranks());
    json_t *ranks = json_object();
    set_count(ranks, "n", tern_ranks_size(together_ranks()));
    set_count(ranks, "gathers", work.gathers);
    set_count(ranks, "bytes", work.bytes);
    set_number(ranks, "seconds", work.seconds);
    set_number(ranks, "waiting_seconds", work.waiting);
    json_object_set_new(root, "ranks", ranks);
}

int bench_print_json(const bench *b) {
    json_t *root = bench_figures(b);
    set_ranks(root);
    bench_set_sweeps(root, b);
    json_set_loading(root, &b->l);
    json_set_kernels(root, &b->l);
    placement_set_json(root, b->l.model);
    json_object_set_new(root, "seed", json_unsigned(options_integer(b->o, OPT_SEED)));
    json_object_set_new(root, "deterministic",
                        json_boolean(options_switch(b->o, OPT_DETERMINISTIC)));
    json_object_set_new(root, "versions", facts_versions());
    json_object_set_new(root, "model", json_text(b->l.info.path, strlen(b->l.info.path)));
    return json_print(root);
}
