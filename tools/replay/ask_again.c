/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/ask_again.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/logprob.h"
#include "receipts/facts.h"
#include "receipts/rules.h"
#include "tools/replay/locate.h"

/* ---- models ---------------------------------------------------------------------------------- */

static void close_model(kept_model *k) {
    json_decref(k->reading);
    tern_model_free(&k->model);
    *k = (kept_model){0};
}

/* All that decides how a file is read; NULL without memory. */
static json_t *reading_of(const json_t *record) {
    const json_t *activations = receipt_at(record, "run.activations");
    return json_pack("{s:o, s:o}", "model_info", json_deep_copy(receipt_at(record, "model_info")),
                     "activations",
                     activations != NULL ? json_deep_copy(activations) : json_null());
}

static tern_status open_model(const again *g, kept_model *k, const json_t *record, const char *path,
                              tern_error *err) {
    json_t *reading = reading_of(record);
    if (k->reading != NULL && strcmp(k->path, path) == 0 && json_equal(k->reading, reading)) {
        json_decref(reading);
        return TERN_OK;
    }
    close_model(k);
    k->reading = reading;
    (void)snprintf(k->path, sizeof k->path, "%s", path);
    tern_status status =
        reading == NULL ? tern_fail(err, TERN_ERR_NOMEM, "no memory for a replay") : TERN_OK;
    if (status == TERN_OK)
        status = recorded_model_open(record, g->document, k->path, g->o, &k->model, err);
    if (status == TERN_OK)
        status = tern_model_tokenizer(k->model, &k->tokenizer, err);
    if (status != TERN_OK)
        close_model(k);
    return status;
}

/* True if the model gives the recorded answers: its weights, arithmetic and type of cache. */
static bool is_recorded(const kept_model *k, const json_t *record) {
    char fingerprint[TERN_FINGERPRINT];
    tern_fingerprint(tern_model_identity(k->model),
                     tern_format_describe(recorded_answer_cache(record))->name, fingerprint);
    return strcmp(fingerprint, rule_text(record, "system_fingerprint")) == 0;
}

static bool is_same_text(const kept_model *k, const json_t *record, const char *path,
                         const int32_t *ids, size_t n) {
    json_t *hash = receipt_hash_text(k->tokenizer, ids, n);
    const char *text = json_string_value(hash);
    const bool same = text != NULL && strcmp(text, rule_text(record, path)) == 0;
    json_decref(hash);
    return same;
}

/* Ids of one vocabulary mean nothing in another. */
static tern_status check_vocabulary(const kept_model *k, const recorded_answer *a,
                                    tern_error *err) {
    const bool same =
        is_same_text(k, a->record, "prompt.text_sha256", a->prompt, a->plan.ask.n_tokens) &&
        is_same_text(k, a->record, "output.text_sha256", a->tokens, a->plan.n_tokens);
    return same ? TERN_OK
                : tern_fail(err, TERN_ERR_ARG,
                            "%s: its tokens stand for other texts than the recorded ones; only a "
                            "model of the same vocabulary can answer again",
                            k->path);
}

tern_status again_open(again *g, recorded_answer *a, const char *path, tern_error *err) {
    tern_status status = open_model(g, &g->now, a->record, path, err);
    if (status == TERN_OK)
        status = check_vocabulary(&g->now, a, err);
    if (status == TERN_OK)
        status = recorded_answer_open_form(g->now.model, a, err);
    return status;
}

/* ---- what models think of two tokens --------------------------------------------------------- */

/* Computes the logarithms of the probabilities of two tokens after the prompt and the first n
 * recorded tokens; NAN for ids that there are not. */
static tern_status think(const again *g, const kept_model *k, const recorded_answer *a, size_t n,
                         const int32_t ids[2], double logprobs[2], tern_error *err) {
    const size_t n_prompt = a->plan.ask.n_tokens;
    tern_session *session = NULL;
    tern_model_info info;
    float *logits;
    int32_t *tokens = malloc((n_prompt + n) * sizeof *tokens);
    if (tokens == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tokens", n_prompt + n);
    memcpy(tokens, a->prompt, n_prompt * sizeof *tokens);
    memcpy(tokens + n_prompt, a->tokens, n * sizeof *tokens);
    tern_model_describe(k->model, &info);
    tern_status status = recorded_answer_session(a, n, k->model, g->o, &session, err);
    logits = session != NULL ? tern_session_logits(session) : NULL;
    if (status == TERN_OK)
        status = tern_session_eval(session, tokens, n_prompt + n, TERN_LOGITS_LAST, logits, err);
    for (size_t i = 0; i < 2 && status == TERN_OK; i++)
        logprobs[i] = (uint32_t)ids[i] < info.n_vocab
                          ? logits[ids[i]] - tern_log_sum_exp(logits, info.n_vocab)
                          : NAN;
    tern_session_free(&session);
    free(tokens);
    return status;
}

/* Opens the model that was recorded, if it is found and still the same; false: it is not. */
static bool find_recorded(again *g, const recorded_answer *a) {
    char found[PATH_MAX];
    tern_error err = {0};
    const char *path = options_text(g->o, OPT_RECORDED_MODEL);
    if (path == NULL)
        path = locate_recorded(a->record, g->document, found);
    return path != NULL && open_model(g, &g->then, a->record, path, &err) == TERN_OK &&
           is_recorded(&g->then, a->record);
}

/* Asks both models why the tokens differ. */
static tern_status explain(again *g, const recorded_answer *a, again_answer *out, tern_error *err) {
    const int32_t ids[2] = {out->first.expected, out->first.got};
    const size_t n = (size_t)out->first.position;
    tern_status status = think(g, &g->now, a, n, ids, out->now, err);
    if (status == TERN_OK && !out->same_model && find_recorded(g, a))
        status = think(g, &g->then, a, n, ids, out->then, err);
    return status;
}

/* ---- answers --------------------------------------------------------------------------------- */

tern_status again_ask(again *g, recorded_answer *a, const char *path, again_answer *out,
                      tern_error *err) {
    tern_session *session = NULL;
    *out = (again_answer){.then = {NAN, NAN}, .now = {NAN, NAN}};
    tern_status status = again_open(g, a, path, err);
    if (status != TERN_OK)
        return status;
    out->same_model = is_recorded(&g->now, a->record);
    if (!out->same_model)
        a->plan.digest = NULL; /* other weights have other hidden states */
    status = recorded_answer_session(a, a->plan.n_tokens + 1, g->now.model, g->o, &session, err);
    if (status == TERN_OK)
        status = receipt_rerun(session, &a->plan, &out->first, err);
    if (status == TERN_OK && out->first.part == RERUN_TOKEN)
        status = explain(g, a, out, err);
    tern_session_free(&session);
    return status;
}

void again_free(again *g) {
    close_model(&g->now);
    close_model(&g->then);
}
