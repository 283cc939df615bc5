/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of tern perplexity must say together: all follow from the windows' means, but
 * for the error of a token, which only the tokens know. */

#include "receipts/rules.h"

#include <math.h>

static double mean_of(const json_t *list) {
    double sum = 0.0;
    for (size_t i = 0; i < json_array_size(list); i++)
        sum += json_number_value(json_array_get(list, i));
    return json_array_size(list) > 0 ? sum / (double)json_array_size(list) : 0.0;
}

/* Windows fit into the text, and each has as many scored tokens as its length and stride make. */
static void check_windows(const json_t *r, receipt_findings *f) {
    const int64_t ctx = rule_count(r, "perplexity.ctx"),
                  stride = rule_count(r, "perplexity.stride");
    const int64_t windows = rule_count(r, "perplexity.windows");
    const int64_t half = ctx - 1 - ctx / 2;
    const int64_t each = stride < half ? stride : half;
    if (stride < 1 || stride > ctx) {
        receipt_find(f, "perplexity.stride: is %lld, must be 1 to %lld", (long long)stride,
                     (long long)ctx);
        return;
    }
    rule_equal_counts(r, f, "perplexity.windows",
                      (int64_t)json_array_size(receipt_at(r, "perplexity.window_nll")),
                      "there are as many means");
    int64_t scored = 0;
    (void)__builtin_mul_overflow(windows, each, &scored);
    rule_equal_counts(r, f, "perplexity.scored_tokens", scored, "scored tokens of the windows");
    const int64_t tokens = rule_count(r, "perplexity.text_tokens");
    if (windows < 1 || tokens < ctx || windows - 1 > (tokens - ctx) / stride)
        receipt_find(f, "perplexity.windows: %lld windows are not in %lld tokens",
                     (long long)windows, (long long)tokens);
}

void rules_perplexity(const json_t *r, receipt_findings *f) {
    rules_header(r, f);
    rules_origin(r, f);
    rules_kernel_names(r, f);
    rules_model(r, f);
    rule_positive(r, f, "run.threads");
    rule_positive(r, f, "perplexity.rss_mib");
    check_windows(r, f);
    const double nll = rule_number(r, "perplexity.nll");
    const double error = rule_number(r, "perplexity.nll_error");
    rule_near(r, f, "perplexity.nll", mean_of(receipt_at(r, "perplexity.window_nll")),
              "the mean of perplexity.window_nll");
    rule_near(r, f, "perplexity.value", exp(nll), "e^nll");
    rule_near(r, f, "perplexity.error", exp(nll) * error, "value * nll_error");
    rule_near(r, f, "perplexity.low", exp(nll - 1.96 * error), "e^(nll - 1.96 nll_error)");
    rule_near(r, f, "perplexity.high", exp(nll + 1.96 * error), "e^(nll + 1.96 nll_error)");
}
