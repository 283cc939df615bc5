/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/receipt/selftest.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "receipts/accuracy.h"
#include "receipts/rerun.h"
#include "tools/answer/form.h"
#include "tools/cli/output.h"

typedef struct tests {
    const receipt_run *run;
    uint64_t n_tokens; /* that test runs generate */
    json_t *list;
    size_t passed, failed;
} tests;

static void note(tests *t, const char *name, bool passed) {
    json_array_append_new(
        t->list, json_pack("{s:s, s:s}", "name", name, "result", passed ? "passed" : "failed"));
    t->passed += passed;
    t->failed += !passed;
}

/* ---- accuracy -------------------------------------------------------------------------------- */

static json_t *accuracy_json(const accuracy *a) {
    return json_pack("{s:f, s:f, s:b, s:s, s:o, s:s, s:s}", "mse", a->mse, "tolerance",
                     a->tolerance, "passed", a->passed, "inputs", ACCURACY_INPUTS, "tensor",
                     json_text(a->tensor, a->tensor_size), "gemv", a->gemv->name, "gemm",
                     a->gemm->name);
}

json_t *selftest_accuracy(const tern_model *model) {
    accuracy all[ACCURACY_MAX];
    size_t n;
    tern_error err = {0};
    if (accuracy_measure(model, all, &n, &err) != TERN_OK) {
        (void)complain_error(&err);
        return NULL;
    }
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%.23s_accuracy", all[i].name);
        json_object_set_new(object, name, accuracy_json(&all[i]));
    }
    return object;
}

static json_t *test_accuracy(tests *t) {
    const char *name;
    json_t *test;
    json_t *object = selftest_accuracy(t->run->l->model);
    json_object_foreach(object, name, test) {
        note(t, name, json_is_true(json_object_get(test, "passed")));
    }
    return object;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static tern_session *session_for(const tests *t, uint32_t threads, uint32_t batch) {
    const receipt_run *run = t->run;
    tern_session_params params = tern_session_params_default();
    tern_session *session = NULL;
    tern_error err = {0};
    params.n_ctx = (uint32_t)(run->prompt->n + t->n_tokens);
    params.n_batch = batch;
    params.threads = threads;
    params.kv = loader_kv_format(run->o);
    if (tern_session_new(run->l->model, &params, &session, &err) != TERN_OK)
        (void)complain_error(&err);
    return session;
}

/* The run's first tokens once more, and how. */
typedef struct repetition {
    uint32_t threads, batch; /* as asked for, then as they were */
    bool same;
} repetition;

/* The mask of the answer's form, with a state of its own, if there is one. */
static tern_status open_form(const receipt_run *run, tern_grammar_state **state, rerun_plan *plan,
                             tern_error *err) {
    if (run->form == NULL || run->form->grammar == NULL)
        return TERN_OK;
    plan->mask = tern_grammar_mask;
    const tern_status status = tern_grammar_state_new(run->form->grammar, 1, state, err);
    plan->mask_user = *state;
    return status;
}

/* False after a complaint. */
static bool repeat(const tests *t, repetition *r) {
    const receipt_run *run = t->run;
    tern_grammar_state *state = NULL;
    rerun_plan plan = {.prompt = run->prompt->ids,
                       .n_prompt = run->prompt->n,
                       .sampling = *run->request->sampling,
                       .tokens = run->answer->latest.tokens,
                       .n_tokens = t->n_tokens,
                       .points = run->watch->points,
                       .n_points = run->watch->n};
    rerun_result result;
    tern_error err = {0};
    tern_session *session = session_for(t, r->threads, r->batch);
    if (session == NULL)
        return false;
    tern_status status = open_form(run, &state, &plan, &err);
    if (status == TERN_OK)
        status = receipt_rerun(session, &plan, &result, &err);
    const bool ran = status == TERN_OK;
    if (!ran)
        (void)complain_error(&err);
    r->same = ran && result.part == RERUN_SAME;
    r->threads = tern_session_threads(session);
    r->batch = tern_session_batch(session);
    tern_grammar_state_free(&state);
    tern_session_free(&session);
    return ran;
}

static json_t *repetition_json(const repetition *r) {
    return json_pack("{s:I, s:I, s:b}", "threads", (json_int_t)r->threads, "batch",
                     (json_int_t)r->batch, "same", r->same);
}

static json_t *test_determinism(tests *t) {
    const uint32_t threads = tern_session_threads(t->run->l->session);
    const uint32_t batch = tern_session_batch(t->run->l->session);
    repetition again = {.threads = threads, .batch = batch};
    repetition other = {.threads = receipt_other_threads(threads),
                        .batch = receipt_other_batch(batch, t->run->prompt->n)};
    if (!repeat(t, &again) || !repeat(t, &other))
        return NULL;
    if (other.threads != receipt_other_threads(threads)) {
        complain("--receipt: a run with other threads is part of it, the system starts %u of %u",
                 other.threads, receipt_other_threads(threads));
        return NULL;
    }
    note(t, "repeated", again.same);
    note(t, "repeated_with_other_threads_and_batch", other.same);
    return json_pack("{s:b, s:i, s:I, s:[o, o]}", "identical_sequences", again.same && other.same,
                     "runs", 3, "tokens_per_run", (json_int_t)t->n_tokens, "repetitions",
                     repetition_json(&again), repetition_json(&other));
}

/* ---- cache ----------------------------------------------------------------------------------- */

/* Keys and values of the first n positions, of all layers and heads, where both sessions have them
 * still: where all layers have windows, those of early positions are gone. How many positions were
 * looked at; 0: something differs, or nothing could be compared. */
static uint32_t same_cache(const receipt_run *run, const tern_session *other, uint32_t n) {
    const tern_model_info *info = &run->l->info;
    const size_t row = (size_t)tern_model_kv_bytes(run->l->model, 1, loader_kv_format(run->o)) / 2 /
                       info->n_layer / info->n_head_kv;
    uint32_t looked = 0;
    bool met = false;
    for (uint32_t p = 0; p < n; p++, looked++) {
        for (uint32_t i = 0; i < 2 * info->n_head_kv * info->n_layer; i++) {
            const uint32_t layer = i / (2 * info->n_head_kv), head = i / 2 % info->n_head_kv;
            const void *a = tern_session_kv(run->l->session, i % 2 != 0, layer, head, p);
            const void *b = tern_session_kv(other, i % 2 != 0, layer, head, p);
            if (a == NULL || b == NULL)
                continue;
            met = true;
            if (memcmp(a, b, row) != 0)
                return 0;
        }
    }
    return met ? looked : 0;
}

/* The digest recorded after n tokens; every run has one for RECEIPT_TEST_TOKENS and its last. */
static const char *digest_behind(const receipt_watch *w, uint64_t n) {
    for (size_t i = 0; i < w->n; i++)
        if (w->points[i].after == n)
            return w->points[i].sha256;
    return "";
}

/* Prompt and first tokens in one go, without what decoding left in the cache. */
static bool recompute(tests *t, tern_session *session, bool *logits_same, uint32_t *compared) {
    const receipt_run *run = t->run;
    const size_t n = run->prompt->n + t->n_tokens;
    int32_t *ids = malloc(n * sizeof *ids);
    char hex[RECEIPT_HEX];
    tern_error err = {0};
    if (ids == NULL) {
        complain("no memory for %zu tokens", n);
        return false;
    }
    memcpy(ids, run->prompt->ids, run->prompt->n * sizeof *ids);
    memcpy(ids + run->prompt->n, run->answer->latest.tokens, t->n_tokens * sizeof *ids);
    tern_status status = tern_session_eval(session, ids, n, TERN_LOGITS_NONE, NULL, &err);
    free(ids);
    if (status == TERN_OK)
        status = receipt_hash_logits(session, hex, &err);
    if (status != TERN_OK) {
        (void)complain_error(&err);
        return false;
    }
    *logits_same = strcmp(hex, digest_behind(run->watch, t->n_tokens)) == 0;
    *compared = same_cache(run, session, (uint32_t)n);
    return true;
}

static json_t *test_cache(tests *t, double hit_rate) {
    bool logits_same = false;
    uint32_t compared = 0;
    tern_session *session = session_for(t, tern_session_threads(t->run->l->session), 0);
    const bool ran = session != NULL && recompute(t, session, &logits_same, &compared);
    tern_session_free(&session);
    if (!ran)
        return NULL;
    note(t, "prefill_decode_logits", logits_same);
    note(t, "prefill_decode_keys_and_values", compared > 0);
    return json_pack("{s:b, s:I, s:f}", "prefill_decode_parity", logits_same && compared > 0,
                     "positions", (json_int_t)compared, "cache_hit_rate", hit_rate);
}

/* ---- all ------------------------------------------------------------------------------------- */

double selftest_hit_rate(const tern_session_work *before, const tern_session_work *after) {
    const double reused = (double)(after->reused - before->reused);
    const double all = reused + (double)(after->tokens - before->tokens);
    return all > 0.0 ? reused / all : 0.0;
}

json_t *selftest_results(const receipt_run *run, double kv_hit_rate) {
    const double start = tern_clock_seconds();
    tests t = {.run = run,
               .n_tokens = run->answer->latest.n_tokens < RECEIPT_TEST_TOKENS
                               ? run->answer->latest.n_tokens
                               : RECEIPT_TEST_TOKENS,
               .list = json_array()};
    json_t *accurate = test_accuracy(&t);
    json_t *same = accurate != NULL ? test_determinism(&t) : NULL;
    json_t *cache = same != NULL ? test_cache(&t, kv_hit_rate) : NULL;
    if (cache == NULL) {
        json_decref(accurate);
        json_decref(same);
        json_decref(t.list);
        return NULL;
    }
    return json_pack("{s:I, s:I, s:I, s:i, s:f, s:o, s:o, s:o, s:o}", "total_tests",
                     (json_int_t)(t.passed + t.failed), "passed", (json_int_t)t.passed, "failed",
                     (json_int_t)t.failed, "skipped", 0, "seconds", tern_clock_seconds() - start,
                     "tests", t.list, "accuracy_tests", accurate, "determinism_tests", same,
                     "kv_cache_tests", cache);
}
