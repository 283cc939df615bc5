/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between the figures in a receipt of tern bench: every median is that of its samples, and
 * figures agree with the figures that they are computed from. lab/figure_rules.py has the same
 * rules for documents of benchmarks, which have more figures. */

#include "receipts/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/probe.h"

typedef struct figures {
    const json_t *object; /* the member "benchmark" */
    receipt_findings *found;
} figures;

/* ---- lists of samples; 0 for an empty list ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const json_t *list) {
    const size_t n = json_array_size(list);
    double *sorted = json_reserve((n + 1) * sizeof *sorted);
    if (sorted == NULL || n == 0) {
        free(sorted);
        return 0.0;
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_number_value(json_array_get(list, i));
    qsort(sorted, n, sizeof *sorted, compare);
    const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    free(sorted);
    return median;
}

static double low_of(const json_t *list) {
    double low = json_number_value(json_array_get(list, 0));
    for (size_t i = 1; i < json_array_size(list); i++) {
        const double x = json_number_value(json_array_get(list, i));
        low = x < low ? x : low;
    }
    return low;
}

static double high_of(const json_t *list) {
    double high = json_number_value(json_array_get(list, 0));
    for (size_t i = 1; i < json_array_size(list); i++) {
        const double x = json_number_value(json_array_get(list, i));
        high = x > high ? x : high;
    }
    return high;
}

static double spread_of(const json_t *list) {
    const double median = median_of(list);
    return median > 0.0 ? 100.0 * (high_of(list) - low_of(list)) / median : 0.0;
}

/* Adds a finding unless the figure has the value or is missing; `why` says where the value comes
 * from. */
static void follows(const figures *p, const char *path, double expected, const char *why) {
    const json_t *value = receipt_at(p->object, path);
    if (value != NULL && !rule_is_near(json_number_value(value), expected)) {
        receipt_find(p->found, "benchmark.%s: is %.9g, must be %.9g: %s", path,
                     json_number_value(value), expected, why);
    }
}

static double ratio(double x, double y) {
    return y > 0.0 ? x / y : 0.0;
}

/* ---- a point --------------------------------------------------------------------------------- */

/* Checks the samples of a figure: as many as rounds (or none, if `may_miss`), with its median and
 * spread. */
static void check_samples(const figures *p, const char *key, const char *spread, int64_t rounds,
                          bool may_miss) {
    char path[48];
    (void)snprintf(path, sizeof path, "rounds.%s", key);
    const json_t *list = receipt_at(p->object, path);
    if (!json_is_array(list)) /* of an earlier version */
        return;
    const int64_t n = (int64_t)json_array_size(list);
    if (n != rounds && !(may_miss && n == 0)) {
        receipt_find(p->found, "benchmark.rounds.%s: %" PRId64 " values, must be %" PRId64, key, n,
                     rounds);
        return;
    }
    follows(p, key, median_of(list), "the median of its rounds");
    if (spread != NULL)
        follows(p, spread, spread_of(list), "(largest - smallest) / median of the rounds");
}

static void check_point(const json_t *r, const figures *p) {
    const int64_t repeat = rule_count(r, "benchmark.repeat");
    const int64_t prompts = rule_count(p->object, "prompt_tokens") > 0 ? repeat : 0;
    const int64_t decodes = rule_count(p->object, "generated_tokens") > 0 ? repeat : 0;
    check_samples(p, "prefill_tps", "prefill_spread_percent", prompts, false);
    check_samples(p, "first_token_ms", NULL, prompts, false);
    check_samples(p, "decode_tps", "decode_spread_percent", decodes, false);
    check_samples(p, "p50_ms", NULL, decodes, false);
    check_samples(p, "p95_ms", NULL, decodes, false);
    check_samples(p, "read_gbs", NULL, decodes, true);
    check_samples(p, "head_rows", NULL, decodes, true);
    const bool joules = json_object_get(p->object, "joules_per_token") != NULL;
    check_samples(p, "joules_per_token", NULL, joules ? decodes : 0, false);
    if (rule_number(p->object, "p50_ms") > rule_number(p->object, "p95_ms"))
        receipt_find(p->found, "benchmark.p50_ms: is more than p95_ms");
    const double bytes =
        rule_number(p->object, "bytes_per_token") + rule_number(p->object, "cache_bytes");
    const double gbs = rule_number(p->object, "decode_tps") * bytes * 1e-9;
    follows(p, "bytes_per_token", rule_number(r, "model_info.weight_bytes"),
            "model_info.weight_bytes");
    follows(p, "bandwidth_gbs", gbs, "bytes of a token * decode_tps");
    follows(p, "bandwidth_fraction", ratio(gbs, rule_number(p->object, "read_gbs")),
            "bandwidth_gbs / read_gbs");
}

/* ---- the main point -------------------------------------------------------------------------- */

/* Checks the bytes by component. Receipts have all of them, or none in earlier versions. */
static void check_components(const json_t *r, const figures *p) {
    const double bytes =
        rule_number(p->object, "bytes_per_token") + rule_number(p->object, "cache_bytes");
    const double parts = rule_number(p->object, "attention_bytes") +
                         rule_number(p->object, "feed_forward_bytes") +
                         rule_number(p->object, "head_bytes");
    follows(p, "bytes_per_token", parts, "attention, feed-forward and head");
    follows(p, "mb_per_token", 1e-6 * bytes, "bytes_per_token + cache_bytes");
    follows(p, "bytes_touched", bytes * rule_number(p->object, "generated_tokens"),
            "bytes of a token * tokens");
    follows(p, "coverage", ratio(bytes, rule_number(r, "model_info.file_bytes")),
            "bytes of a token / model_info.file_bytes");
}

static void check_limits(const figures *p) {
    const double read = rule_number(p->object, "read_gbs");
    const double peak = rule_number(p->object, "peak_gmacs");
    const json_t *list = receipt_at(p->object, "rounds.read_gbs");
    if (json_is_array(list)) {
        follows(p, "read_low_gbs", low_of(list), "the smallest of its rounds");
        follows(p, "read_high_gbs", high_of(list), "the largest of its rounds");
    } else if (read < rule_number(p->object, "read_low_gbs") ||
               read > rule_number(p->object, "read_high_gbs")) {
        receipt_find(p->found,
                     "benchmark.read_gbs: is %g, not between read_low_gbs and read_high_gbs", read);
    }
    if (json_object_get(p->object, "peak_gmacs") == NULL)
        return; /* without a kernel for several tokens there is nothing to measure it with */
    follows(p, "prefill_peak_fraction", ratio(rule_number(p->object, "prefill_gweights"), peak),
            "prefill_gweights / peak_gmacs");
    follows(p, "decode_peak_fraction", ratio(rule_number(p->object, "decode_gweights"), peak),
            "decode_gweights / peak_gmacs");
}

/* Checks the weights multiplied a second: all for each decoded token; the head once a prompt. */
static void check_weights(const json_t *r, const figures *p) {
    const json_t *formats = receipt_at(r, "model_info.weight_formats");
    const double head =
        rule_number(r, "model_info.vocab_size") * rule_number(r, "model_info.hidden_size");
    const double tokens = rule_number(p->object, "prompt_tokens");
    const char *format;
    json_t *weights;
    double all = 0.0;
    json_object_foreach((json_t *)(uintptr_t)formats, format, weights) {
        all += json_number_value(weights);
    }
    follows(p, "decode_gweights", rule_number(p->object, "decode_tps") * all * 1e-9,
            "weights * decode_tps");
    if (json_object_get(p->object, "operations_per_byte") != NULL) { /* not in earlier versions */
        follows(p, "operations_per_byte",
                ratio(2.0 * all, rule_number(p->object, "bytes_per_token")),
                "2 * weights / bytes_per_token");
    }
    follows(p, "prefill_gweights",
            rule_number(p->object, "prefill_tps") * (all - head + ratio(head, tokens)) * 1e-9,
            "weights * prefill_tps");
}

/* Checks that the processor's limit was measured with a unit that its probes know, on an
 * instruction set that the machine has. */
static void check_peak(const json_t *r, const figures *p) {
    const char *isa = rule_text(p->object, "peak_isa");
    const char *unit = rule_text(p->object, "peak_unit");
    const json_t *sets = receipt_at(r, "machine.instruction_sets");
    bool known = unit[0] == '\0';
    for (int i = 0; i < TERN_UNIT_COUNT; i++)
        known = known || strcmp(unit, tern_unit_name((tern_unit)i)) == 0;
    if (!known) {
        receipt_find(p->found, "benchmark.peak_unit: tern %s knows no \"%.40s\"", tern_version(),
                     unit);
    }
    if (isa[0] != '\0' && !rule_list_has(sets, isa)) {
        receipt_find(p->found,
                     "benchmark.peak_isa: \"%.40s\" is not one of machine.instruction_sets", isa);
    }
}

/* Bytes of the cache that decoding reads for each position that a token sees. */
static double bytes_of_position(const json_t *point) {
    const double depth = rule_number(point, "depth");
    const double twice =
        2.0 * (depth > 0.0 ? depth : 1.0) + rule_number(point, "generated_tokens") + 1.0;
    return 2.0 * rule_number(point, "cache_bytes") / twice;
}

/* Checks the size of the cache for the whole context, from the part that a token in the middle of
 * decoding reads. */
static void check_cache(const json_t *r, const figures *p) {
    if (rule_number(p->object, "generated_tokens") > 0.0) {
        follows(p, "kv_bytes", bytes_of_position(p->object) * rule_number(r, "run.context"),
                "cache_bytes of a position * run.context");
    }
}

static void check_main(const json_t *r, const figures *p) {
    const json_t *first = json_array_get(receipt_at(p->object, "rounds.first_token_ms"), 0);
    check_point(r, p);
    if (receipt_at(p->object, "mb_per_token") == NULL)
        return; /* of an earlier version */
    check_components(r, p);
    check_limits(p);
    check_weights(r, p);
    check_peak(r, p);
    check_cache(r, p);
    follows(p, "threads", rule_number(r, "run.threads"), "run.threads");
    if (first != NULL) {
        follows(p, "first_token_with_load_ms",
                rule_number(p->object, "load_ms") + json_number_value(first),
                "load_ms and the first of rounds.first_token_ms");
    }
}

void rules_benchmark(const json_t *r, receipt_findings *f) {
    const bool bench = strcmp(rule_text(r, "run.command"), "bench") == 0;
    const json_t *there = json_object_get(r, "benchmark");
    const figures main = {there, f};
    if (bench != json_is_object(there)) {
        receipt_find(f, "benchmark: is %s, but run.command is \"%s\"", bench ? "missing" : "there",
                     rule_text(r, "run.command"));
        return;
    }
    if (!bench)
        return;
    const int64_t depth = rule_count(r, "benchmark.depth");
    rule_equal_counts(r, f, "prompt.tokens", depth > 0 ? depth : 1, "benchmark.depth");
    rule_equal_counts(r, f, "benchmark.generated_tokens", rule_count(r, "output.max_tokens"),
                      "output.max_tokens");
    rule_positive(r, f, "benchmark.repeat");
    check_main(r, &main);
}
