/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of tern bench must say together. */

#include "tools/receipt/receipt.h"

#include <string.h>

#include "tools/receipt/rules.h"

static double ratio(double x, double y) {
    return y > 0.0 ? x / y : 0.0;
}

static void check_bytes(const json_t *r, receipt_findings *f) {
    const double bytes =
        rule_number(r, "benchmark.bytes_per_token") + rule_number(r, "benchmark.cache_bytes");
    const double gbs = rule_number(r, "benchmark.decode_tps") * bytes * 1e-9;
    rule_equal_counts(r, f, "benchmark.bytes_per_token", rule_count(r, "model_info.weight_bytes"),
                      "model_info.weight_bytes");
    rule_near(r, f, "benchmark.bandwidth_gbs", gbs, "bytes of a token * decode_tps");
    rule_near(r, f, "benchmark.bandwidth_fraction",
              ratio(gbs, rule_number(r, "benchmark.read_gbs")), "bandwidth_gbs / read_gbs");
}

/* Bytes by component: receipts have all of it, or, of earlier versions, nothing. */
static void check_components(const json_t *r, receipt_findings *f) {
    const double bytes =
        rule_number(r, "benchmark.bytes_per_token") + rule_number(r, "benchmark.cache_bytes");
    const double tokens = rule_number(r, "benchmark.generated_tokens");
    const double parts = rule_number(r, "benchmark.attention_bytes") +
                         rule_number(r, "benchmark.feed_forward_bytes") +
                         rule_number(r, "benchmark.head_bytes");
    rule_near(r, f, "benchmark.bytes_per_token", parts, "attention, feed-forward and head");
    rule_near(r, f, "benchmark.mb_per_token", 1e-6 * bytes, "bytes_per_token + cache_bytes");
    rule_near(r, f, "benchmark.bytes_touched", bytes * tokens, "bytes of a token * tokens");
    rule_near(r, f, "benchmark.coverage", ratio(bytes, rule_number(r, "model_info.file_bytes")),
              "bytes of a token / model_info.file_bytes");
}

static void check_limits(const json_t *r, receipt_findings *f) {
    const double read = rule_number(r, "benchmark.read_gbs");
    const double peak = rule_number(r, "benchmark.peak_gmacs");
    if (read < rule_number(r, "benchmark.read_low_gbs") ||
        read > rule_number(r, "benchmark.read_high_gbs")) {
        receipt_find(f, "benchmark.read_gbs: is %g, not between read_low_gbs and read_high_gbs",
                     read);
    }
    rule_near(r, f, "benchmark.prefill_peak_fraction",
              ratio(rule_number(r, "benchmark.prefill_gweights"), peak),
              "prefill_gweights / peak_gmacs");
    rule_near(r, f, "benchmark.decode_peak_fraction",
              ratio(rule_number(r, "benchmark.decode_gweights"), peak),
              "decode_gweights / peak_gmacs");
}

void rules_benchmark(const json_t *r, receipt_findings *f) {
    const bool bench = strcmp(rule_text(r, "run.command"), "bench") == 0;
    if (bench != json_is_object(json_object_get(r, "benchmark"))) {
        receipt_find(f, "benchmark: is %s, but run.command is \"%s\"", bench ? "missing" : "there",
                     rule_text(r, "run.command"));
        return;
    }
    if (!bench) {
        return;
    }
    check_bytes(r, f);
    if (receipt_at(r, "benchmark.mb_per_token") != NULL) {
        check_components(r, f);
        check_limits(r, f);
    }
    rule_equal_counts(r, f, "benchmark.generated_tokens", rule_count(r, "output.max_tokens"),
                      "output.max_tokens");
    rule_positive(r, f, "benchmark.repeat");
}
