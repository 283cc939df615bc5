/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules between the fields of a receipt. Every function here needs a document whose fields are all
 * present and of the right types (fields.c).
 */

#include "receipts/document.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "receipts/accuracy.h"
#include "receipts/facts.h"
#include "receipts/rules.h"

/* ---- reading --------------------------------------------------------------------------------- */

int64_t rule_count(const json_t *root, const char *path) {
    return json_integer_value(receipt_at(root, path));
}

double rule_number(const json_t *root, const char *path) {
    return json_number_value(receipt_at(root, path));
}

const char *rule_text(const json_t *root, const char *path) {
    const char *text = json_string_value(receipt_at(root, path));
    return text != NULL ? text : "";
}

bool rule_known(const json_t *root, const char *path) {
    const json_t *value = receipt_at(root, path);
    return value != NULL && !json_is_null(value);
}

bool rule_flag(const json_t *root, const char *path) {
    return json_is_true(receipt_at(root, path));
}

void rule_equal_counts(const json_t *r, receipt_findings *f, const char *path, int64_t expected,
                       const char *why) {
    if (rule_count(r, path) != expected) {
        receipt_find(f, "%s: is %" PRId64 ", must be %" PRId64 ": %s", path, rule_count(r, path),
                     expected, why);
    }
}

/* Both were computed in double: a relative difference of 1e-9 is rounding. */
bool rule_is_near(double a, double b) {
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-12;
}

void rule_near(const json_t *r, receipt_findings *f, const char *path, double expected,
               const char *why) {
    if (!rule_is_near(rule_number(r, path), expected))
        receipt_find(f, "%s: is %.9g, must be %.9g: %s", path, rule_number(r, path), expected, why);
}

bool rule_list_has(const json_t *list, const char *text) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *element = json_string_value(json_array_get(list, i));
        if (element != NULL && strcmp(element, text) == 0)
            return true;
    }
    return false;
}

static void same_text(const json_t *r, receipt_findings *f, const char *path, const char *other) {
    if (strcmp(rule_text(r, path), rule_text(r, other)) != 0) {
        receipt_find(f, "%s: is \"%.60s\", but %s is \"%.60s\"", path, rule_text(r, path), other,
                     rule_text(r, other));
    }
}

void rule_positive(const json_t *r, receipt_findings *f, const char *path) {
    if (!(rule_number(r, path) > 0))
        receipt_find(f, "%s: is %g, must be more than 0", path, rule_number(r, path));
}

/* ---- header ---------------------------------------------------------------------------------- */

/* True for a time such as "2026-11-21T19:30:00Z", with or without a fraction of a second. */
static bool is_time(const char *text) {
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, hour, minute, second, used = 0;
    if (strlen(text) < 20 || strspn(text, "0123456789-T:.Z") != strlen(text) ||
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second,
               &used) != 6 ||
        used != 19)
        return false;
    const char *rest = text + used;
    if (*rest == '.') {
        const size_t digits = strspn(rest + 1, "0123456789");
        rest += digits > 0 ? 1 + digits : 0;
    }
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return strcmp(rest, "Z") == 0 && month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] && (month != 2 || day <= 28 || leap) && hour <= 23 &&
           minute <= 59 && second <= 60;
}

static void check_header(const json_t *r, receipt_findings *f) {
    if (!is_time(rule_text(r, "timestamp"))) {
        receipt_find(f, "timestamp: is \"%.40s\", must be a time of RFC 3339 in UTC",
                     rule_text(r, "timestamp"));
    }
    if (strcmp(rule_text(r, "compute_path"), "real") != 0) {
        receipt_find(f, "compute_path: is \"%.40s\", must be \"real\"",
                     rule_text(r, "compute_path"));
    }
    if (strcmp(rule_text(r, "backend"), "cpu") != 0) {
        receipt_find(f, "backend: is \"%s\", but every kernel of a receipt runs on the cpu",
                     rule_text(r, "backend"));
    }
}

static void check_environment(const json_t *r, receipt_findings *f) {
    char threads[32];
    const bool asked = strcmp(rule_text(r, "environment.BITNET_DETERMINISTIC"), "1") == 0;
    const bool strict = strcmp(rule_text(r, "environment.BITNET_STRICT_MODE"), "1") == 0;
    if (asked != rule_flag(r, "deterministic")) {
        receipt_find(f, "deterministic: is %s, but environment.BITNET_DETERMINISTIC is \"%d\"",
                     rule_flag(r, "deterministic") ? "true" : "false", asked);
    }
    if (strict != rule_flag(r, "run.strict")) {
        receipt_find(f, "run.strict: is %s, but environment.BITNET_STRICT_MODE is \"%d\"",
                     rule_flag(r, "run.strict") ? "true" : "false", strict);
    }
    same_text(r, f, "environment.BITNET_SEED", "sampler.seed");
    same_text(r, f, "environment.TERN_VERSION", "versions.tern");
    same_text(r, f, "environment.COMPILER", "versions.compiler");
    same_text(r, f, "environment.OS", "machine.os");
    same_text(r, f, "environment.CPU_BRAND", "machine.cpu");
    (void)snprintf(threads, sizeof threads, "%" PRId64, rule_count(r, "run.threads"));
    if (strcmp(threads, rule_text(r, "environment.RAYON_NUM_THREADS")) != 0) {
        receipt_find(f, "environment.RAYON_NUM_THREADS: is \"%.20s\", but run.threads is %s",
                     rule_text(r, "environment.RAYON_NUM_THREADS"), threads);
    }
}

/* ---- model ----------------------------------------------------------------------------------- */

/* Checks that sizes add up, and that the model's digest follows from those of its files. */
static void check_files(const json_t *r, receipt_findings *f) {
    const json_t *files = receipt_at(r, "model_info.files");
    const size_t n = json_array_size(files);
    char hex[RECEIPT_HEX];
    int64_t bytes = 0;
    tern_sha256 all;
    tern_sha256_start(&all);
    for (size_t i = 0; i < n; i++) {
        const json_t *file = json_array_get(files, i);
        if (__builtin_add_overflow(bytes, rule_count(file, "bytes"), &bytes)) {
            receipt_find(f, "model_info.files[%zu].bytes: is too large", i);
            return;
        }
        tern_sha256_add(&all, rule_text(file, "sha256"), RECEIPT_HEX - 1);
    }
    tern_sha256_finish(&all, hex);
    const char *expected = n == 1 ? rule_text(json_array_get(files, 0), "sha256") : hex;
    rule_equal_counts(r, f, "model_info.file_bytes", bytes, "model_info.files have as many");
    if (strcmp(rule_text(r, "model_info.sha256"), expected) != 0)
        receipt_find(f, "model_info.sha256: is not that of model_info.files, %.16s...", expected);
}

/* Checks that the format of most weights is one of the model's formats. */
static void check_formats(const json_t *r, receipt_findings *f) {
    const char *type = rule_text(r, "model_info.quantization_type");
    const char *format;
    json_t *weights;
    bool known = false;
    json_object_foreach(receipt_at(r, "model_info.weight_formats"), format, weights) {
        known = known || strcasecmp(type, format) == 0;
    }
    if (!known) {
        receipt_find(
            f, "model_info.quantization_type: \"%.40s\" is not one of model_info.weight_formats",
            type);
    }
}

static void check_model(const json_t *r, receipt_findings *f) {
    static const char *const sizes[] = {
        "file_bytes",          "layers",       "experts",
        "shared_experts",      "delta_layers", "delta_matrices",
        "hidden_size",         "ffn_size",     "num_attention_heads",
        "num_key_value_heads", "head_dim",     "vocab_size",
        "context_length",      "parameters",   "weight_bytes"};
    char path[64];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        (void)snprintf(path, sizeof path, "model_info.%s", sizes[i]);
        if (rule_known(r, path))
            rule_positive(r, f, path);
    }
    check_files(r, f);
    const int64_t heads = rule_count(r, "model_info.num_attention_heads");
    const int64_t shared = rule_count(r, "model_info.num_key_value_heads");
    if (shared > 0 && heads % shared != 0) {
        receipt_find(f,
                     "model_info.num_key_value_heads: %" PRId64 " do not divide %" PRId64 " heads",
                     shared, heads);
    }
    if (rule_count(r, "model_info.delta_layers") >= rule_count(r, "model_info.layers") &&
        rule_known(r, "model_info.delta_layers"))
        receipt_find(f, "model_info.delta_layers: no layer attends");
    if (rule_count(r, "model_info.delta_matrices") > 64)
        receipt_find(f, "model_info.delta_matrices: no layer has more than 64");
    if (rule_count(r, "model_info.shared_experts") > 1)
        receipt_find(f, "model_info.shared_experts: no model has more than one");
    check_formats(r, f);
    if (rule_count(r, "run.dequantized_rows") != 0) {
        receipt_find(f,
                     "run.dequantized_rows: %" PRId64
                     " rows of weights were expanded to floats while generating",
                     rule_count(r, "run.dequantized_rows"));
    }
}

/* ---- prompt and output ----------------------------------------------------------------------- */

/* Checks the number of ids, their digest and their range. */
static void check_ids(const json_t *r, receipt_findings *f, const char *part) {
    char path[32], hex[RECEIPT_HEX];
    const json_t *object = receipt_at(r, part);
    const json_t *list = json_object_get(object, "ids");
    const size_t n = json_array_size(list);
    const int64_t vocabulary = rule_count(r, "model_info.vocab_size");
    (void)snprintf(path, sizeof path, "%s.tokens", part);
    rule_equal_counts(r, f, path, (int64_t)n, "there are as many ids");
    int32_t *ids = calloc(n + 1, sizeof *ids);
    if (ids == NULL) {
        f->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t id = json_integer_value(json_array_get(list, i));
        if (id >= vocabulary || id > INT32_MAX) {
            receipt_find(f, "%s.ids[%zu]: is %" PRId64 ", the vocabulary has %" PRId64 " tokens",
                         part, i, id, vocabulary);
        }
        ids[i] = id <= INT32_MAX ? (int32_t)id : 0;
    }
    facts_hash_ids(ids, n, hex);
    free(ids);
    if (strcmp(hex, json_string_value(json_object_get(object, "ids_sha256"))) != 0) {
        receipt_find(f, "%s.ids_sha256: is not the digest of the ids, which is %.16s...", part,
                     hex);
    }
}

/* Checks that there is a digest after each RECEIPT_EVERY tokens, and one after the last. */
static void check_points(const json_t *r, receipt_findings *f) {
    const json_t *list = receipt_at(r, "output.logits");
    const int64_t n = rule_count(r, "output.tokens");
    const size_t wanted = (size_t)((n + RECEIPT_EVERY - 1) / RECEIPT_EVERY + 1);
    if (json_array_size(list) != wanted) {
        receipt_find(f, "output.logits: has %zu digests, %" PRId64 " tokens make %zu",
                     json_array_size(list), n, wanted);
        return;
    }
    for (size_t i = 0; i < wanted; i++) {
        const int64_t after = json_integer_value(json_object_get(json_array_get(list, i), "after"));
        const int64_t right = i + 1 == wanted ? n : (int64_t)i * RECEIPT_EVERY;
        if (after != right) {
            receipt_find(f, "output.logits[%zu].after: is %" PRId64 ", must be %" PRId64, i, after,
                         right);
        }
    }
}

/* Checks that the output has no stop token: generation would have stopped before it. */
static void check_stop_tokens(const json_t *r, receipt_findings *f) {
    const json_t *list = receipt_at(r, "output.stop_tokens");
    const json_t *ids = receipt_at(r, "output.ids");
    for (size_t i = 0; i < json_array_size(list); i++) {
        for (size_t k = 0; k < json_array_size(ids); k++) {
            if (json_equal(json_array_get(list, i), json_array_get(ids, k))) {
                receipt_find(f, "output.ids[%zu]: is one of output.stop_tokens", k);
                return;
            }
        }
    }
}

static void check_stop(const json_t *r, receipt_findings *f) {
    const char *stop = rule_text(r, "output.stop");
    const int64_t n = rule_count(r, "output.tokens");
    const int64_t most = rule_count(r, "output.max_tokens");
    const int64_t used = n + rule_count(r, "prompt.tokens");
    const int64_t context = rule_count(r, "run.context");
    if (n > most || (strcmp(stop, "length") == 0 && n != most)) {
        receipt_find(f, "output.max_tokens: is %" PRId64 ", but %" PRId64 " were generated (%s)",
                     most, n, stop);
    }
    if (used > context || (strcmp(stop, "context") == 0 && used != context)) {
        receipt_find(f, "run.context: is %" PRId64 ", but the run took %" PRId64 " positions (%s)",
                     context, used, stop);
    }
    if (context > rule_count(r, "model_info.context_length")) {
        receipt_find(f, "run.context: is %" PRId64 ", the model has %" PRId64, context,
                     rule_count(r, "model_info.context_length"));
    }
    if (strcmp(stop, "stop") == 0 && json_array_size(receipt_at(r, "output.stop_tokens")) == 0 &&
        json_array_size(receipt_at(r, "output.stop_texts")) == 0)
        receipt_find(f, "output.stop: is \"stop\", but there was nothing to stop at");
    check_stop_tokens(r, f);
    if (strcmp(stop, "end") == 0 && rule_flag(r, "output.ignore_end"))
        receipt_find(f, "output.stop: is \"end\", which output.ignore_end forbids");
}

static void check_sampler(const json_t *r, receipt_findings *f) {
    static const char *const without[] = {"sha256", NULL};
    char hex[RECEIPT_HEX];
    char seed[32];
    receipt_digest(receipt_at(r, "sampler"), without, hex);
    if (strcmp(hex, rule_text(r, "sampler.sha256")) != 0) {
        receipt_find(f, "sampler.sha256: is not the digest of the settings, which is %.16s...",
                     hex);
    }
    const char *text = rule_text(r, "sampler.seed");
    (void)snprintf(seed, sizeof seed, "%llu", strtoull(text, NULL, 10));
    if (strcmp(seed, text) != 0)
        receipt_find(f, "sampler.seed: \"%.40s\" is not a 64-bit number", text);
    const double top_p = rule_number(r, "sampler.top_p");
    if (!(top_p > 0 && top_p <= 1))
        receipt_find(f, "sampler.top_p: is %g, must be above 0 and at most 1", top_p);
    if (rule_count(r, "sampler.top_k") > UINT32_MAX)
        receipt_find(f, "sampler.top_k: is %" PRId64, rule_count(r, "sampler.top_k"));
}

/* Checks that the ids are not made from the prompt's text alone, since a chat format adds to it. */
static void check_chat(const json_t *r, receipt_findings *f) {
    if (rule_flag(r, "run.chat") &&
        (receipt_at(r, "prompt.text_sha256") == NULL || rule_flag(r, "prompt.text_from_ids"))) {
        receipt_find(f, "run.chat: is true, but the prompt is %s",
                     receipt_at(r, "prompt.text_sha256") == NULL ? "tokens" : "its text alone");
    }
}

static void check_tokens(const json_t *r, receipt_findings *f) {
    rule_positive(r, f, "prompt.tokens");
    check_ids(r, f, "prompt");
    check_ids(r, f, "output");
    check_stop(r, f);
    check_sampler(r, f);
}

/* ---- everything else ------------------------------------------------------------------------- */

static void check_cross_validation(const json_t *r, receipt_findings *f) {
    if (rule_flag(r, "cross_validation.cpp_reference_available") ||
        rule_count(r, "cross_validation.parity_tests_passed") != 0 ||
        rule_number(r, "cross_validation.tolerance") != 0) {
        receipt_find(f, "cross_validation: a run compares with no other engine, so it must say "
                        "false, 0 and 0");
    }
}

/* An answer without tests of its own was repeated before its receipt was made. */
static void check_repetition(const json_t *r, receipt_findings *f) {
    if (!rule_flag(r, "test_results.determinism_tests.identical_sequences")) {
        receipt_find(f, "test_results.determinism_tests.identical_sequences: is false, a request "
                        "has one answer");
    }
    rule_equal_counts(r, f, "test_results.determinism_tests.runs", 2,
                      "the answer and its repetition");
}

/* Beside its answer a run tells what ran, tests and figures. */
static void check_run(const json_t *r, receipt_findings *f) {
    rules_kernels(r, f);
    check_environment(r, f);
    rule_positive(r, f, "run.batch");
    check_points(r, f);
    check_chat(r, f);
    rules_tests(r, f);
    rules_performance(r, f);
    check_cross_validation(r, f);
    rules_benchmark(r, f);
}

void receipt_check_rules(const json_t *r, receipt_findings *f) {
    check_header(r, f);
    check_model(r, f);
    rules_places(r, f);
    rules_machine(r, f);
    check_tokens(r, f);
    rules_form(r, f);
    rules_accuracy(r, f);
    rule_positive(r, f, "run.threads");
    rule_positive(r, f, "machine.cores");
    if (rule_known(r, "kernels"))
        check_run(r, f);
    else
        check_repetition(r, f);
}

bool receipt_check_record(const json_t *record, receipt_findings *f) {
    const char *schema = json_string_value(json_object_get(record, "$schema"));
    if (schema == NULL || strcmp(schema, RECORD_SCHEMA) != 0)
        receipt_find(f, "$schema: is \"%.60s\", must be \"" RECORD_SCHEMA "\"",
                     schema != NULL ? schema : "");
    else if (receipt_check_fields(record, &document_record, f)) {
        check_tokens(record, f);
        rules_form(record, f);
    }
    return f->n == 0 && !f->out_of_memory;
}

/* Checks that the document's digest is that of its content. */
static void check_digest(const json_t *receipt, receipt_findings *f) {
    char hex[RECEIPT_HEX];
    receipt_digest_of(receipt, hex);
    f->out_of_memory |=
        json_memory_failed(); /* then digests, and what they were compared with, are wrong */
    const char *value = json_string_value(receipt_at(receipt, "digest.value"));
    if (value != NULL && strcmp(value, hex) != 0) {
        receipt_find(f, "digest.value: is %.16s..., but the content has %.16s...: it was changed",
                     value, hex);
    }
}

const document_type *receipt_check(const json_t *receipt, receipt_findings *f) {
    const char *version = json_string_value(receipt_at(receipt, "schema_version"));
    if (version == NULL) {
        receipt_find(f, "schema_version: is missing, this is not a receipt");
        return NULL;
    }
    const document_type *type = receipt_type(receipt, f);
    if (type == NULL)
        return NULL;
    if (strcmp(version, RECEIPT_VERSION) != 0) {
        receipt_find(f, "schema_version: is \"%.40s\", must be \"%s\"", version, RECEIPT_VERSION);
        return type; /* the fields of other versions are unknown */
    }
    if (receipt_check_fields(receipt, type, f))
        receipt_check_rules(receipt, f);
    check_digest(receipt, f);
    return type;
}
