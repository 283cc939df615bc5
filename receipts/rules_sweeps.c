/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps of tern bench: passes of several tokens, and where the time goes. */

#include "receipts/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tern/inspect.h"

/* ---- passes of several tokens ---------------------------------------------------------------- */

/* A time in its rounds, and its ratio to that of passes of one token in the same rounds. */
static void check_times(const rule_place *p, const json_t *one, const char *what) {
    char times[32], ms[16], name[16];
    (void)snprintf(times, sizeof times, "rounds.%s_ms", what);
    (void)snprintf(ms, sizeof ms, "%s_ms", what);
    (void)snprintf(name, sizeof name, "%s_ratio", what);
    const json_t *mine = receipt_at(p->object, times);
    const json_t *ones = receipt_at(one, times);
    const size_t n = json_array_size(mine);
    if (!json_is_array(mine) || !json_is_array(ones))
        return; /* not recorded */
    if (n == 0 || n != json_array_size(ones)) {
        receipt_find(p->found, "%s.%s: as many values as for passes of one token are needed",
                     p->shown, times);
        return;
    }
    json_t *ratios = json_array();
    for (size_t i = 0; i < n; i++) {
        const double base = json_number_value(json_array_get(ones, i));
        const double x = json_number_value(json_array_get(mine, i));
        json_array_append_new(ratios, json_number(base > 0.0 ? x / base : 0.0));
    }
    rule_near_in(p, ms, rule_median(mine), "the median of its rounds");
    rule_near_in(p, name, rule_median(ratios), "the median of its rounds over those of one token");
    json_decref(ratios);
}

static void check_batches(const json_t *r, receipt_findings *f) {
    const json_t *list = receipt_at(r, "benchmark.batches");
    const json_t *one = json_array_get(list, 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char shown[48];
        (void)snprintf(shown, sizeof shown, "benchmark.batches[%zu]", i);
        const rule_place p = {json_array_get(list, i), shown, f};
        check_times(&p, one, "all");
        check_times(&p, one, "pick");
    }
    if (one != NULL && rule_count(one, "tokens") != 1)
        receipt_find(f, "benchmark.batches[0].tokens: is not 1");
}

/* ---- many sequences -------------------------------------------------------------------------- */

/* Each figure is the median of its rounds, of which there are as many as of everything. */
static void check_medians(const json_t *r, const rule_place *p, const char *const *keys,
                          size_t n_keys) {
    const int64_t repeat = rule_count(r, "benchmark.repeat");
    for (size_t i = 0; i < n_keys; i++) {
        char path[48];
        (void)snprintf(path, sizeof path, "rounds.%s", keys[i]);
        const json_t *list = receipt_at(p->object, path);
        if ((int64_t)json_array_size(list) != repeat) {
            receipt_find(p->found, "%s.%s: %zu values, must be %" PRId64, p->shown, path,
                         json_array_size(list), repeat);
        }
        rule_near_in(p, keys[i], rule_median(list), "the median of its rounds");
    }
}

static void check_sequences(const json_t *r, receipt_findings *f) {
    static const char *const keys[] = {"tps", "p50_ms", "p95_ms"};
    const json_t *list = receipt_at(r, "benchmark.sequences");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char shown[48];
        (void)snprintf(shown, sizeof shown, "benchmark.sequences[%zu]", i);
        const rule_place p = {json_array_get(list, i), shown, f};
        const double n = rule_number(p.object, "n");
        if (n < 1.0) {
            receipt_find(f, "%s.n: is not at least 1", shown);
            continue;
        }
        check_medians(r, &p, keys, sizeof keys / sizeof *keys);
        rule_near_in(&p, "each_tps", rule_number(p.object, "tps") / n, "tps / n");
        rule_near_in(&p, "bytes_per_token",
                     rule_number(r, "benchmark.bytes_per_token") / n +
                         rule_number(r, "benchmark.cache_bytes"),
                     "benchmark.bytes_per_token / n + cache_bytes");
        if (rule_number(p.object, "p50_ms") > rule_number(p.object, "p95_ms"))
            receipt_find(f, "%s.p50_ms: is more than p95_ms", shown);
    }
}

/* They are of the same sequences, and of one prompt. */
static void check_arrivals(const json_t *r, receipt_findings *f) {
    static const char *const keys[] = {"before_p50_ms", "before_p95_ms", "during_p50_ms",
                                       "during_p95_ms", "first_token_ms"};
    const json_t *list = receipt_at(r, "benchmark.arrivals");
    const json_t *sequences = receipt_at(r, "benchmark.sequences");
    const json_t *first = json_array_get(list, 0);
    if (list != NULL && json_array_size(list) != json_array_size(sequences))
        receipt_find(f, "benchmark.arrivals: as many values as of benchmark.sequences are needed");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char shown[48];
        (void)snprintf(shown, sizeof shown, "benchmark.arrivals[%zu]", i);
        const rule_place p = {json_array_get(list, i), shown, f};
        check_medians(r, &p, keys, sizeof keys / sizeof *keys);
        rule_near_in(&p, "n", rule_number(json_array_get(sequences, i), "n"),
                     "n of benchmark.sequences");
        rule_near_in(&p, "prompt_tokens", rule_number(first, "prompt_tokens"),
                     "that of the first arrival");
        rule_near_in(&p, "gap_ms", rule_number(first, "gap_ms"), "that of the first arrival");
    }
}

/* ---- stages ---------------------------------------------------------------------------------- */

static bool is_stage(const char *name) {
    for (tern_stage i = 0; i < TERN_STAGE_COUNT; i++)
        if (strcmp(tern_stage_name(i), name) == 0)
            return true;
    return false;
}

static void check_stage(const rule_place *p, double whole) {
    const char *name = rule_text(p->object, "stage");
    const double work = rule_number(p->object, "work_ms");
    if (!is_stage(name)) {
        receipt_find(p->found, "%s.stage: tern %s has no stage \"%.40s\"", p->shown, tern_version(),
                     name);
    }
    const double wait = rule_number(p->object, "wait_ms");
    rule_near_in(p, "work_ms", rule_median(receipt_at(p->object, "rounds.work_ms")),
                 "the median of its rounds");
    rule_near_in(p, "wait_ms", rule_median(receipt_at(p->object, "rounds.wait_ms")),
                 "the median of its rounds");
    rule_near_in(p, "work_fraction", whole > 0.0 ? work / whole : 0.0, "work_ms / whole_ms");
    rule_near_in(p, "wait_fraction", whole > 0.0 ? wait / whole : 0.0, "wait_ms / whole_ms");
    rule_near_in(p, "gbs", work > 0.0 ? 1e-6 * rule_number(p->object, "bytes") / work : 0.0,
                 "bytes / work_ms");
}

/* The sum over the stages of value `round` of a series. */
static double sum_of(const json_t *stages, const char *series, size_t round) {
    double sum = 0.0;
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const json_t *list = receipt_at(json_array_get(stages, i), series);
        sum += json_number_value(json_array_get(list, round));
    }
    return sum;
}

/* In every round work, wait and what is outside of the stages make up the whole. */
static void check_rounds(const rule_place *p, const json_t *stages) {
    const json_t *outside = receipt_at(p->object, "rounds.outside_ms");
    const json_t *whole = receipt_at(p->object, "rounds.whole_ms");
    json_t *works = json_array();
    json_t *waits = json_array();
    for (size_t i = 0; i < json_array_size(whole); i++) {
        const double work = sum_of(stages, "rounds.work_ms", i);
        const double wait = sum_of(stages, "rounds.wait_ms", i);
        const double all = json_number_value(json_array_get(whole, i));
        const double rest = json_number_value(json_array_get(outside, i));
        if (fabs(work + wait + rest - all) > 1e-6 * all) {
            receipt_find(p->found, "%s.rounds.whole_ms[%zu]: is %g, its parts make %g", p->shown, i,
                         all, work + wait + rest);
        }
        json_array_append_new(works, json_number(work));
        json_array_append_new(waits, json_number(wait));
    }
    rule_near_in(p, "whole_ms", rule_median(whole), "the median of its rounds");
    rule_near_in(p, "outside_ms", rule_median(outside), "the median of its rounds");
    rule_near_in(p, "work_ms", rule_median(works), "the median of the stages' rounds");
    rule_near_in(p, "wait_ms", rule_median(waits), "the median of the stages' rounds");
    json_decref(works);
    json_decref(waits);
}

static void check_stages(const json_t *r, receipt_findings *f, const char *kind) {
    char shown[48];
    (void)snprintf(shown, sizeof shown, "benchmark.stages.%s", kind);
    const rule_place p = {receipt_at(r, shown), shown, f};
    const json_t *stages = receipt_at(p.object, "stages");
    if (p.object == NULL)
        return;
    for (size_t i = 0; i < json_array_size(stages); i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s.stages[%zu]", shown, i);
        const rule_place stage = {json_array_get(stages, i), name, f};
        check_stage(&stage, rule_number(p.object, "whole_ms"));
    }
    check_rounds(&p, stages);
    rule_near_in(&p, "threads", rule_number(r, "run.threads"), "run.threads");
}

/* ---- zeros ----------------------------------------------------------------------------------- */

static void check_zeros(const json_t *r, receipt_findings *f) {
    static const char *const keys[] = {"values", "zeros"};
    const rule_place all = {receipt_at(r, "benchmark.sparsity.all"), "benchmark.sparsity.all", f};
    const json_t *layers = receipt_at(r, "benchmark.sparsity.layers");
    for (size_t k = 0; k < 2 && all.object != NULL; k++) {
        double sum = 0.0;
        for (size_t i = 0; i < json_array_size(layers); i++)
            sum += rule_number(json_array_get(layers, i), keys[k]);
        rule_near_in(&all, keys[k], sum, "the sum of the layers");
    }
}

void rules_sweeps(const json_t *r, receipt_findings *f) {
    check_batches(r, f);
    check_sequences(r, f);
    check_arrivals(r, f);
    check_stages(r, f, "prefill");
    check_stages(r, f, "decode");
    check_zeros(r, f);
}
