/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of test results and of speed figures, and between them. */

#include "receipts/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "receipts/accuracy.h"
#include "receipts/rerun.h"

/* ---- tests ----------------------------------------------------------------------------------- */

static int64_t count_results(const json_t *list, const char *result) {
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        n += strcmp(rule_text(json_array_get(list, i), "result"), result) == 0;
    return n;
}

/* True if the list has exactly one test of that name, and it passed. */
static bool has_passed(const json_t *list, const char *name) {
    int n = 0;
    bool passed = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(rule_text(json_array_get(list, i), "name"), name) == 0) {
            passed = strcmp(rule_text(json_array_get(list, i), "result"), "passed") == 0;
            n++;
        }
    }
    return n == 1 && passed;
}

static void check_totals(const json_t *r, receipt_findings *f) {
    static const char *const always[] = {"repeated", "repeated_with_other_threads_and_batch",
                                         "prefill_decode_logits", "prefill_decode_keys_and_values"};
    static const char *const results[] = {"passed", "failed", "skipped"};
    const json_t *list = receipt_at(r, "test_results.tests");
    const size_t accurate = json_object_size(receipt_at(r, "test_results.accuracy_tests"));
    char path[48];
    rule_equal_counts(r, f, "test_results.total_tests", (int64_t)json_array_size(list),
                      "test_results.tests has as many");
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "test_results.%s", results[i]);
        rule_equal_counts(r, f, path, count_results(list, results[i]),
                          "test_results.tests has as many");
    }
    if (rule_count(r, "test_results.failed") != 0) {
        receipt_find(f, "test_results.failed: is %" PRId64 ", must be 0",
                     rule_count(r, "test_results.failed"));
    }
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!has_passed(list, always[i]))
            receipt_find(f, "test_results.tests: %s has not passed", always[i]);
    if (json_array_size(list) != accurate + sizeof always / sizeof *always) {
        receipt_find(f, "test_results.tests: %zu, must be %zu and those of accuracy_tests, %zu",
                     json_array_size(list), sizeof always / sizeof *always, accurate);
    }
}

/* True if a test measures a format that the model has, or a form of ternary weights. */
static bool measures_something(const json_t *r, const char *format) {
    return strcmp(format, "i2s") == 0 || strcmp(format, "tl1") == 0 || strcmp(format, "tl2") == 0 ||
           json_object_get(receipt_at(r, "model_info.weight_formats"), format) != NULL;
}

/* Accepts the tolerance of this version, or the one of earlier versions for formats of blocks. */
static bool is_tolerance(const char *format, double tolerance) {
    const bool blocks = strcmp(format, "tl1") != 0 && strcmp(format, "tl2") != 0;
    return tolerance == accuracy_tolerance(format) ||
           (blocks && tolerance == 1e-5 && accuracy_tolerance(format) == 1e-4);
}

static void check_accuracy(const json_t *r, const char *name, const json_t *test,
                           receipt_findings *f) {
    static const char suffix[] = "_accuracy";
    const size_t n = strlen(name);
    const double mse = rule_number(test, "mse"), tolerance = rule_number(test, "tolerance");
    char format[24];
    if (n < sizeof suffix || n - sizeof suffix + 2 > sizeof format ||
        strcmp(name + n - (sizeof suffix - 1), suffix) != 0) {
        receipt_find(f, "test_results.accuracy_tests.%.40s: is not a name of such a test", name);
        return;
    }
    (void)snprintf(format, sizeof format, "%.*s", (int)(n - (sizeof suffix - 1)), name);
    if (!measures_something(r, format))
        receipt_find(f, "test_results.accuracy_tests.%s: the model has no such weights", name);
    if (!is_tolerance(format, tolerance)) {
        receipt_find(f, "test_results.accuracy_tests.%s.tolerance: is %g, must be %g", name,
                     tolerance, accuracy_tolerance(format));
    }
    if (json_object_get(test, "inputs") != NULL &&
        strcmp(rule_text(test, "inputs"), ACCURACY_INPUTS) != 0) {
        receipt_find(f, "test_results.accuracy_tests.%s.inputs: must be \"%s\"", name,
                     ACCURACY_INPUTS);
    }
    if (mse > tolerance || !rule_flag(test, "passed")) {
        receipt_find(f, "test_results.accuracy_tests.%s: mse %g of at most %g, passed: %s", name,
                     mse, tolerance, rule_flag(test, "passed") ? "true" : "false");
    }
    const json_t *list = receipt_at(r, "test_results.tests"); /* answers have none */
    if (list != NULL && !has_passed(list, name))
        receipt_find(f, "test_results.tests: %s has not passed", name);
    for (int k = 0; k < 2; k++) {
        const char *op = k == 0 ? "gemv" : "gemm";
        const tern_kernel_row *kernel = tern_kernel_find(rule_text(test, op));
        if (kernel == NULL || kernel->op != (k == 0 ? TERN_OP_GEMV : TERN_OP_GEMM)) {
            receipt_find(f,
                         "test_results.accuracy_tests.%s.%s: \"%.60s\" is not a kernel of tern %s",
                         name, op, rule_text(test, op), tern_version());
        }
    }
}

static bool is_ternary(const char *format) {
    return strcmp(format, "i2_s") == 0 || strcmp(format, "tq1_0") == 0 ||
           strcmp(format, "tq2_0") == 0;
}

/* Checks that every format of weights was measured under its own name, ternary ones in all
 * forms. */
static void check_measured(const json_t *r, receipt_findings *f) {
    static const char *const forms[] = {"i2s_accuracy", "tl1_accuracy", "tl2_accuracy"};
    const json_t *tests = receipt_at(r, "test_results.accuracy_tests");
    const char *format;
    json_t *weights;
    json_object_foreach(receipt_at(r, "model_info.weight_formats"), format, weights) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.40s_accuracy", format);
        const bool measured = json_object_get(tests, name) != NULL;
        for (size_t i = 0; !measured && is_ternary(format) && i < 3; i++) {
            if (json_object_get(tests, forms[i]) == NULL) {
                receipt_find(f, "test_results.accuracy_tests.%s: is missing, there are %s weights",
                             forms[i], format);
            }
        }
        if (!measured && !is_ternary(format)) {
            receipt_find(f, "test_results.accuracy_tests.%s: is missing, there are %.40s weights",
                         name, format);
        }
    }
}

static void check_repetition(const json_t *r, size_t i, int64_t threads, int64_t batch,
                             receipt_findings *f) {
    static const char at[] = "test_results.determinism_tests.repetitions";
    const json_t *one = json_array_get(receipt_at(r, at), i);
    if (rule_count(one, "threads") != threads)
        receipt_find(f, "%s[%zu].threads: is %" PRId64 ", must be %" PRId64, at, i,
                     rule_count(one, "threads"), threads);
    if (rule_count(one, "batch") != batch)
        receipt_find(f, "%s[%zu].batch: is %" PRId64 ", must be %" PRId64, at, i,
                     rule_count(one, "batch"), batch);
    if (!rule_flag(one, "same"))
        receipt_find(f, "%s[%zu].same: is false", at, i);
}

/* Checks the repetitions: the run as it was, then with other threads and another division of the
 * prompt. Earlier versions do not record them. */
static void check_repetitions(const json_t *r, receipt_findings *f) {
    const json_t *list = receipt_at(r, "test_results.determinism_tests.repetitions");
    const int64_t threads = rule_count(r, "run.threads"), batch = rule_count(r, "run.batch");
    const int64_t n = rule_count(r, "prompt.tokens");
    const int64_t room = n + rule_count(r, "test_results.determinism_tests.tokens_per_run");
    if (list == NULL || threads > UINT32_MAX || batch > UINT32_MAX || n > INT32_MAX)
        return; /* sizes out of range were reported */
    if (json_array_size(list) != 2) {
        receipt_find(f, "test_results.determinism_tests.repetitions: has %zu, must have 2",
                     json_array_size(list));
        return;
    }
    check_repetition(r, 0, threads, batch < room ? batch : room, f);
    check_repetition(r, 1, receipt_other_threads((uint32_t)threads),
                     receipt_other_batch((uint32_t)batch, (uint64_t)n), f);
}

static void check_determinism(const json_t *r, receipt_findings *f) {
    const int64_t n = rule_count(r, "output.tokens");
    if (!rule_flag(r, "test_results.determinism_tests.identical_sequences")) {
        receipt_find(f, "test_results.determinism_tests.identical_sequences: is false, a run has "
                        "one answer");
    }
    rule_equal_counts(r, f, "test_results.determinism_tests.runs", 3,
                      "the run and its repetitions");
    rule_equal_counts(r, f, "test_results.determinism_tests.tokens_per_run",
                      n < RECEIPT_TEST_TOKENS ? n : RECEIPT_TEST_TOKENS,
                      "the output's first tokens");
    check_repetitions(r, f);
    if (!rule_flag(r, "test_results.kv_cache_tests.prefill_decode_parity"))
        receipt_find(f, "test_results.kv_cache_tests.prefill_decode_parity: is false");
    rule_equal_counts(r, f, "test_results.kv_cache_tests.positions",
                      rule_count(r, "prompt.tokens") +
                          rule_count(r, "test_results.determinism_tests.tokens_per_run"),
                      "prompt.tokens and tokens_per_run");
    rule_near(r, f, "test_results.kv_cache_tests.cache_hit_rate",
              rule_number(r, "performance_baseline.cache_efficiency.kv_cache_hit_rate"),
              "performance_baseline.cache_efficiency.kv_cache_hit_rate");
}

void rules_accuracy(const json_t *r, receipt_findings *f) {
    const char *name;
    json_t *test;
    json_object_foreach(receipt_at(r, "test_results.accuracy_tests"), name, test) {
        check_accuracy(r, name, test, f);
    }
    check_measured(r, f);
}

void rules_tests(const json_t *r, receipt_findings *f) {
    check_totals(r, f);
    check_determinism(r, f);
}

/* ---- speed ----------------------------------------------------------------------------------- */

/*
 * Checks the use of the cache and of the weights, from the sizes of the run: the prompt in batches,
 * then token by token. Batch i of the prompt finds i * batch positions in the cache.
 */
static void check_cache(const json_t *r, receipt_findings *f) {
    static const char at[] = "performance_baseline.cache_efficiency";
    const int64_t limit = INT64_C(1) << 30; /* contexts are smaller; keeps the squares in range */
    const int64_t first = rule_count(r, "prompt.tokens");
    const int64_t batch = rule_count(r, "run.batch");
    const int64_t n = rule_count(r, "output.tokens");
    const int64_t layers = rule_count(r, "model_info.layers");
    const int64_t deltas = rule_count(r, "model_info.delta_layers"); /* 0 where it is missing */
    const int64_t more = rule_known(r, "model_info.delta_matrices")  /* than 4 of attention */
                             ? rule_count(r, "model_info.delta_matrices") - 4
                             : 1;
    if (first < 1 || batch < 1 || first >= limit || n >= limit || layers >= 1 << 20 ||
        deltas >= layers || more > 64)
        return; /* was reported, or is refused as a size of a model or context */
    const int64_t passes = (first + batch - 1) / batch;
    const int64_t in_prompt = (first - 1) / batch * ((first - 1) / batch + 1) / 2 * batch;
    const int64_t reused = in_prompt + n * first + n * (n - 1) / 2;
    char path[80];
    (void)snprintf(path, sizeof path, "%s.tokens_evaluated", at);
    rule_equal_counts(r, f, path, first + n, "prompt.tokens and output.tokens");
    (void)snprintf(path, sizeof path, "%s.positions_reused", at);
    rule_equal_counts(r, f, path, reused, "what these batches find in the cache");
    (void)snprintf(path, sizeof path, "%s.tensor_cache_hits", at);
    const int64_t each = (rule_known(r, "model_info.experts") ? 8 : 7) + /* with a router */
                         4 * rule_count(r, "model_info.shared_experts"); /* with a gate */
    rule_equal_counts(r, f, path, (passes + n) * (each * layers + more * deltas) + 1 + n,
                      "seven matrices a layer and pass, eight with a router, four more with an "
                      "expert for all tokens, those of delta nets for four, and the head");
    (void)snprintf(path, sizeof path, "%s.tensor_cache_misses", at);
    rule_equal_counts(r, f, path, rule_count(r, "run.dequantized_rows"), "run.dequantized_rows");
    (void)snprintf(path, sizeof path, "%s.kv_cache_hit_rate", at);
    rule_near(r, f, path, (double)reused / (double)(reused + first + n),
              "positions_reused / (positions_reused + tokens_evaluated)");
}

static void at_most(const json_t *r, receipt_findings *f, const char *a, const char *b) {
    char low[64], high[64];
    (void)snprintf(low, sizeof low, "performance_baseline.%s", a);
    (void)snprintf(high, sizeof high, "performance_baseline.%s", b);
    if (rule_number(r, low) > rule_number(r, high) * (1 + 1e-9)) {
        receipt_find(f, "%s: %g is more than %s, %g", low, rule_number(r, low), high,
                     rule_number(r, high));
    }
}

void rules_performance(const json_t *r, receipt_findings *f) {
    const double total = rule_number(r, "performance_baseline.total_time_ms");
    const double decode = rule_number(r, "performance_baseline.decode_time_ms");
    const double n = (double)rule_count(r, "output.tokens");
    rule_equal_counts(r, f, "performance_baseline.tokens_generated", rule_count(r, "output.tokens"),
                      "output.tokens");
    rule_equal_counts(r, f, "performance_baseline.bytes_per_token",
                      rule_count(r, "model_info.weight_bytes"), "model_info.weight_bytes");
    rule_near(r, f, "performance_baseline.total_time_ms",
              rule_number(r, "performance_baseline.prefill_time_ms") + decode,
              "prefill_time_ms and decode_time_ms");
    rule_near(r, f, "performance_baseline.tokens_per_second", total > 0 ? 1e3 * n / total : 0.0,
              "tokens_generated / total_time_ms");
    rule_near(r, f, "performance_baseline.average_token_latency_ms", n > 0 ? decode / n : 0.0,
              "decode_time_ms / tokens_generated");
    if (!(total > 0) || !(rule_number(r, "performance_baseline.memory_usage_mb") > 0))
        receipt_find(f, "performance_baseline: a run takes time and memory");
    at_most(r, f, "p50_ms", "p95_ms");
    at_most(r, f, "p95_ms", "decode_time_ms");
    at_most(r, f, "first_token_latency_ms", "total_time_ms");
    if (n > 0)
        at_most(r, f, "prefill_time_ms", "first_token_latency_ms");
    check_cache(r, f);
}
