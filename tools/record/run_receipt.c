/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a receipt from a finished run. */

#include "tools/prompt/prompt.h"
#include "tools/record/receipt.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"
#include "receipts/facts.h"
#include "receipts/sign.h"
#include "tools/answer/figures.h"
#include "tools/answer/form.h"
#include "tools/cli/output.h"
#include "tools/load/loaded_json.h"
#include "tools/load/placement.h"
#include "tools/record/run_facts.h"
#include "tools/record/selftest.h"

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *count(uint64_t n) {
    return json_integer((json_int_t)n);
}

/* ---- the run --------------------------------------------------------------------------------- */

static json_t *settings(const receipt_run *run) {
    const options *o = run->o;
    const char *disabled = options_text(o, OPT_DISABLE);
    json_t *root = json_object();
    set(root, "command", json_string(command_describe(o->command)->name));
    set(root, "isa", json_string(tern_model_isa(run->l->model)));
    set(root, "disabled", json_string(disabled != NULL ? disabled : ""));
    set(root, "layout", json_string(tern_model_layout(run->l->model)));
    set(root, "choice", json_string(tern_model_choice(run->l->model)));
    set(root, "kv", json_string(tern_format_describe(loader_kv_format(o))->name));
    json_set_activations(root, run->l->model);
    set(root, "context", count(tern_session_context(run->l->session)));
    set(root, "batch", count(tern_session_batch(run->l->session)));
    set(root, "threads", count(tern_session_threads(run->l->session)));
    placement_set_json(root, run->l->model);
    set(root, "chat", json_boolean(options_switch(o, OPT_CHAT)));
    set(root, "strict", json_boolean(options_switch(o, OPT_STRICT)));
    set(root, "dequantized_rows", count(run->answer->dequantized));
    return root;
}

static json_t *prompt_json(const prompt *p, const tern_tokenizer *tokenizer) {
    json_t *root = facts_tokens(p->ids, p->n);
    char hex[RECEIPT_HEX];
    if (p->text == NULL)
        return root;
    facts_hash(p->text, p->size, hex);
    json_t *hash = receipt_hash_text(tokenizer, p->ids, p->n);
    const char *of_ids = json_string_value(hash);
    set(root, "text_sha256", json_string(hex));
    set(root, "text_from_ids", json_boolean(of_ids != NULL && strcmp(of_ids, hex) == 0));
    json_decref(hash);
    return root;
}

static json_t *form_json(const form *f) {
    json_t *json = json_pack("{s:s, s:o}", "kind", f->kind, "text", json_text(f->text, f->size));
    if (f->params.closed)
        set(json, "closed", json_boolean(true));
    return json;
}

static json_t *output_json(const receipt_run *run) {
    const one_answer *a = &run->answer->latest;
    const tern_request *asked = run->request;
    json_t *points = json_array();
    json_t *root = facts_output(&(const facts_answer){.tokens = a->tokens,
                                                      .n_tokens = a->n_tokens,
                                                      .stop = answer_end_name(a->end),
                                                      .max_tokens = asked->max_tokens,
                                                      .ignore_end = asked->ignore_end,
                                                      .stop_texts = asked->stop_texts,
                                                      .n_stop_texts = asked->n_stop_texts,
                                                      .tokenizer = run->l->tokenizer});
    for (size_t i = 0; i < run->watch->n; i++) {
        json_array_append_new(points, json_pack("{s:I, s:s}", "after",
                                                (json_int_t)run->watch->points[i].after, "sha256",
                                                run->watch->points[i].sha256));
    }
    if (asked->drop_space != options_switch(run->o, OPT_CHAT)) /* not said, it is so for chats */
        set(root, "drop_space", json_boolean(asked->drop_space));
    set(root, "stop_tokens", facts_ids(asked->stop_tokens, asked->n_stop_tokens));
    set(root, "logits", points);
    return root;
}

/* ---- speed ----------------------------------------------------------------------------------- */

static json_t *cache_json(const receipt_run *run, double hit_rate) {
    const tern_session_work *before = &run->watch->before;
    const tern_session_work after = tern_session_work_done(run->l->session);
    json_t *root = json_object();
    set(root, "kv_cache_hit_rate", json_number(hit_rate));
    set(root, "positions_reused", count(after.reused - before->reused));
    set(root, "tokens_evaluated", count(after.tokens - before->tokens));
    set(root, "tensor_cache_hits", count(after.products - before->products));
    set(root, "tensor_cache_misses", count(run->answer->dequantized));
    return root;
}

static json_t *performance(const receipt_run *run, double rss_mib, double hit_rate) {
    const one_answer *a = &run->answer->latest;
    const double prefill = figures_prompt_seconds(a), decode = figures_decode_seconds(a);
    const double n = (double)a->n_tokens;
    json_t *root = json_object();
    set(root, "tokens_generated", count(run->answer->latest.n_tokens));
    set(root, "total_time_ms", json_number(1e3 * (prefill + decode)));
    set(root, "prefill_time_ms", json_number(1e3 * prefill));
    set(root, "decode_time_ms", json_number(1e3 * decode));
    set(root, "tokens_per_second", json_number(n / (prefill + decode)));
    set(root, "first_token_latency_ms", json_number(figures_first_token_ms(a)));
    set(root, "average_token_latency_ms", json_number(n > 0.0 ? 1e3 * decode / n : 0.0));
    set(root, "p50_ms", json_number(a->p50_ms));
    set(root, "p95_ms", json_number(a->p95_ms));
    set(root, "logits_hash_ms", json_number(1e3 * run->watch->seconds));
    set(root, "memory_usage_mb", json_number(rss_mib * 1.048576));
    set(root, "bytes_per_token", count(run->l->info.weight_bytes));
    set(root, "cache_efficiency", cache_json(run, hit_rate));
    return root;
}

/* ---- the document ---------------------------------------------------------------------------- */

/* A run is not compared with another engine; `tern crossval` does that. */
static json_t *cross_validation(void) {
    return json_pack("{s:b, s:f, s:i}", "cpp_reference_available", 0, "tolerance", 0.0,
                     "parity_tests_passed", 0);
}

/* Builds the document without digest and signature; NULL after a complaint. */
static json_t *build(const receipt_run *run, const json_t *benchmark) {
    const double rss = tern_peak_rss_mib(); /* before the tests need memory of their own */
    const tern_session_work after = tern_session_work_done(run->l->session);
    const double hit_rate = selftest_hit_rate(&run->watch->before, &after);
    double hash_seconds = 0.0;
    json_t *kernels = facts_kernels(run->l->session);
    json_t *model = facts_model(run->l, run->o, &hash_seconds);
    json_t *results = model != NULL ? selftest_results(run, hit_rate) : NULL;
    json_t *root = json_object();
    if (results == NULL) {
        json_decref(kernels);
        json_decref(model);
        json_decref(root);
        return NULL;
    }
    set(root, "$schema", json_string(RECEIPT_SCHEMA));
    set(root, "schema_version", json_string(RECEIPT_VERSION));
    set(root, "timestamp", facts_now());
    set(root, "compute_path", json_string(facts_compute_path(kernels)));
    set(root, "backend", json_string("cpu"));
    set(root, "kernels", kernels);
    set(root, "deterministic", json_boolean(options_switch(run->o, OPT_DETERMINISTIC)));
    set(root, "environment", facts_environment(run));
    set(root, "model_info", model);
    set(root, "run", settings(run));
    set(root, "sampler", facts_sampler(run->request->sampling, run->request->sampling->seed));
    if (run->form != NULL && run->form->grammar != NULL)
        set(root, "form", form_json(run->form));
    set(root, "prompt", prompt_json(run->prompt, run->l->tokenizer));
    set(root, "output", output_json(run));
    set(root, "test_results", results);
    set(root, "performance_baseline", performance(run, rss, hit_rate));
    set(root, "cross_validation", cross_validation());
    set(root, "machine", facts_machine(run->l->model));
    set(root, "versions", facts_versions());
    set(root, "model_hash_seconds", json_number(hash_seconds));
    if (benchmark != NULL)
        set(root, "benchmark", json_deep_copy(benchmark));
    return root;
}

/* Complains about each finding; fails if there are any, or if memory was short. */
static int check(const json_t *receipt, const char *path) {
    receipt_findings f = {0};
    (void)receipt_check(receipt, &f);
    const int status = f.n == 0 && !f.out_of_memory ? EXIT_DONE : EXIT_FAILED;
    if (f.out_of_memory) {
        complain("no memory for the receipt");
    } else if (f.n > 0) {
        for (size_t i = 0; i < f.n; i++)
            complain("receipt: %s", f.lines[i]);
        complain("%s: not written, the receipt would not pass", path);
    }
    receipt_findings_free(&f);
    return status;
}

int receipt_finish(json_t *receipt, const options *o, const char *path) {
    const char *key = options_text(o, OPT_SIGN_KEY);
    if (json_memory_failed()) {
        complain("no memory for the receipt");
        return EXIT_FAILED;
    }
    receipt_seal(receipt);
    if (key != NULL) {
        tern_error err = {0};
        if (sign_receipt(receipt, key, &err) != TERN_OK)
            return complain_error(&err);
    }
    const int status = receipt_is_of_figures(receipt) ? EXIT_DONE : check(receipt, path);
    return status == EXIT_DONE ? receipt_save(receipt, path, targets_mode(o)) : status;
}

int receipt_write(const receipt_run *run, const json_t *benchmark) {
    if (run->watch->error.status != TERN_OK)
        return complain_error(&run->watch->error);
    json_t *receipt = build(run, benchmark);
    if (receipt == NULL) {
        if (json_memory_failed())
            complain("no memory for the receipt");
        return EXIT_FAILED;
    }
    int status = loader_check_file(run->l); /* the tests computed with it, too */
    if (status == EXIT_DONE)
        status = receipt_finish(receipt, run->o, options_text(run->o, OPT_RECEIPT));
    json_decref(receipt);
    return status;
}
