/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/replay_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "receipts/facts.h"
#include "receipts/rules.h"
#include "tools/replay/recorded_form.h"

/* The state of a replay. */
typedef struct answer_run {
    const answer_plan *plan;
    receipt_findings *found;
    size_t n; /* tokens so far */
    bool differs, over;
    tern_error error; /* belongs to the sequence */
} answer_run;

/* ---- the request ----------------------------------------------------------------------------- */

/* An array of pointers to the stop texts; NULL: no memory. */
static const char **read_stops(const json_t *list) {
    const char **stops = calloc(json_array_size(list) + 1, sizeof *stops);
    for (size_t i = 0; stops != NULL && i < json_array_size(list); i++)
        stops[i] = json_string_value(json_array_get(list, i));
    return stops;
}

static void take_token(answer_run *run, const tern_event *e) {
    const size_t i = run->n++;
    if (run->differs)
        return;
    if (i >= run->plan->n_tokens) {
        run->differs = true;
        receipt_find(run->found, "output.ids: %zu were recorded, this run picks %d after them",
                     run->plan->n_tokens, (int)e->token);
    } else if (run->plan->tokens[i] != e->token) {
        run->differs = true;
        receipt_find(run->found, "output.ids[%zu]: recorded %d, this run picks %d", i,
                     (int)run->plan->tokens[i], (int)e->token);
    }
}

static void take_end(answer_run *run, const tern_event *e) {
    const json_t *r = run->plan->receipt;
    run->over = true;
    if (e->end == TERN_END_ERROR) {
        run->error = *e->error;
    } else if (run->differs) {
        return; /* all other differences follow from this one */
    } else if (run->n < run->plan->n_tokens) {
        receipt_find(run->found, "output.ids: %zu were recorded, this run picks %zu",
                     run->plan->n_tokens, run->n);
    } else if (strcmp(rule_text(r, "output.stop"), tern_end_name(e->end)) != 0) {
        receipt_find(run->found, "output.stop: recorded \"%s\", this run ends by \"%s\"",
                     rule_text(r, "output.stop"), tern_end_name(e->end));
    } else if (strcmp(rule_text(r, "output.hidden_sha256"), e->digest) != 0) {
        receipt_find(run->found, "output.hidden_sha256: this run's hidden states have %.16s...",
                     e->digest);
    }
}

static tern_status step_to_end(answer_run *run, tern_engine *engine, tern_error *err) {
    tern_status status = TERN_OK;
    while (status == TERN_OK && !run->over) {
        const tern_event *events;
        size_t n;
        status = tern_engine_step(engine, &events, &n, err);
        for (size_t i = 0; status == TERN_OK && i < n; i++)
            if (events[i].kind == TERN_EVENT_END)
                take_end(run, &events[i]);
            else
                take_token(run, &events[i]);
    }
    if (status == TERN_OK && run->error.status != TERN_OK) {
        *err = run->error;
        status = err->status;
    }
    return status;
}

static tern_status ask_again(answer_run *run, tern_engine *engine, tern_grammar_state *form,
                             tern_error *err) {
    const answer_plan *p = run->plan;
    const json_t *list = receipt_at(p->receipt, "output.stop_texts");
    const bool full = strcmp(rule_text(p->receipt, "output.stop"), "context") == 0;
    const char **stops = read_stops(list);
    uint64_t id;
    if (stops == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the replay");
    const tern_request request = {
        .tokens = p->prompt,
        .n_tokens = p->n_prompt,
        .sampling = p->sampling,
        .max_tokens = full ? 0 : (size_t)rule_count(p->receipt, "output.max_tokens"),
        .ignore_end = rule_flag(p->receipt, "output.ignore_end"),
        .stop_texts = stops,
        .n_stop_texts = json_array_size(list),
        .drop_space = rule_flag(p->receipt, "output.drop_space"),
        .mask = form != NULL ? tern_grammar_mask : NULL,
        .user = form};
    tern_status status = tern_engine_submit(engine, &request, &id, err);
    if (status == TERN_OK)
        status = step_to_end(run, engine, err);
    free(stops);
    return status;
}

static void check_text(const answer_plan *p, receipt_findings *f) {
    const tern_tokenizer *tokenizer;
    if (tern_model_tokenizer(p->model, &tokenizer, NULL) != TERN_OK) {
        receipt_find(f, "output.text_sha256: the model has no tokenizer");
        return;
    }
    json_t *hash = receipt_hash_text(tokenizer, p->tokens, p->n_tokens);
    if (hash == NULL ||
        strcmp(json_string_value(hash), rule_text(p->receipt, "output.text_sha256")) != 0)
        receipt_find(f, "output.text_sha256: is not the digest of the text of output.ids");
    json_decref(hash);
    const char *pre = rule_text(p->receipt, "model_info.pre_tokenizer");
    if (strcmp(pre, tern_tokenizer_pre(tokenizer)) != 0) {
        receipt_find(f, "model_info.pre_tokenizer: is \"%.60s\", the model's is \"%.60s\"", pre,
                     tern_tokenizer_pre(tokenizer));
    }
}

/* Checks the fingerprint, which is made of the model, the cache's precision and the arithmetic. */
static void check_fingerprint(const answer_plan *p, receipt_findings *f) {
    char fingerprint[TERN_FINGERPRINT];
    tern_fingerprint(tern_model_identity(p->model), tern_format_describe(p->kv)->name, fingerprint);
    if (strcmp(fingerprint, rule_text(p->receipt, "system_fingerprint")) != 0) {
        receipt_find(f, "system_fingerprint: is \"%.40s\", the model's is \"%s\"",
                     rule_text(p->receipt, "system_fingerprint"), fingerprint);
    }
}

tern_status replay_answer(const answer_plan *plan, receipt_findings *f, uint32_t *threads,
                          tern_error *err) {
    answer_run run = {.plan = plan, .found = f};
    tern_engine_params params = tern_engine_params_default();
    tern_engine *engine = NULL;
    params.n_ctx = (uint32_t)rule_count(plan->receipt, "run.context");
    params.n_sequences = 1;
    params.threads = plan->threads;
    params.n_batch = plan->batch;
    params.kv = plan->kv;
    tern_status status = tern_engine_new(plan->model, &params, &engine, err);
    if (status != TERN_OK)
        return status;
    *threads = tern_engine_now(engine).threads;
    recorded_form form = {0};
    status = recorded_form_open(plan->model, plan->receipt, &form, err);
    if (status == TERN_OK)
        status = ask_again(&run, engine, form.state, err);
    tern_engine_free(&engine);
    recorded_form_close(&form);
    if (status == TERN_OK) {
        check_text(plan, f);
        check_fingerprint(plan, f);
    }
    return status;
}
