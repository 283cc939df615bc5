/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The decode loop. Every reported token is evaluated before the next one is picked, the last one
 * too: afterwards the session holds the prompt and all reported tokens, ready to go on, and n
 * tokens cost exactly n decode steps. Nothing is allocated here.
 */

#include "runtime/metrics.h"
#include "tern/tern.h"

typedef struct generate_call {
    tern_session *session;
    tern_sampler *sampler;
    const tern_tokenizer *tokenizer; /* NULL: no token of the model ends the text */
    tern_generate_params params;
    tern_token_callback *callback;
    void *user;
    double start;
    tern_latencies latencies;
    tern_generation result;
} generate_call;

/* Whether the token ends the text, and then why. */
static bool ends_text(generate_call *g, int32_t token) {
    if (g->tokenizer != NULL && tern_token_ends_text(g->tokenizer, token)) {
        g->result.stop = TERN_STOP_END;
        return true;
    }
    for (size_t i = 0; i < g->params.n_stop_tokens; i++) {
        if (g->params.stop_tokens[i] == token) {
            g->result.stop = TERN_STOP_TOKEN;
            return true;
        }
    }
    return false;
}

/* Tells the sampler and the caller about a token; false when it wants no more. */
static bool report(generate_call *g, int32_t token) {
    tern_sampler_accept(g->sampler, token);
    const double seconds = tern_clock_seconds() - g->start;
    if (g->result.n_generated++ == 0) {
        g->result.first_token_seconds = seconds;
    }
    return g->callback == NULL || g->callback(token, seconds, g->user);
}

static tern_status decode(generate_call *g, tern_error *err) {
    g->result.stop = TERN_STOP_LENGTH;
    while (g->result.n_generated < g->params.max_tokens) {
        if (tern_session_position(g->session) == tern_session_context(g->session)) {
            g->result.stop = TERN_STOP_CONTEXT;
            return TERN_OK;
        }
        const double begin = tern_clock_seconds();
        int32_t token;
        tern_status status = tern_session_pick(g->session, g->sampler, &token, err);
        if (status != TERN_OK) {
            return status;
        }
        if (ends_text(g, token)) {
            return TERN_OK;
        }
        const bool more = report(g, token);
        status = tern_session_eval(g->session, &token, 1, TERN_LOGITS_NONE, NULL, err);
        if (status != TERN_OK) {
            return status;
        }
        tern_latencies_add(&g->latencies, tern_clock_seconds() - begin);
        if (!more) {
            g->result.stop = TERN_STOP_CALLER;
            return TERN_OK;
        }
    }
    return TERN_OK;
}

static void summarize(generate_call *g) {
    tern_latencies_sort(&g->latencies);
    g->result.p50_ms = 1e3 * tern_latencies_percentile(&g->latencies, 0.50);
    g->result.p95_ms = 1e3 * tern_latencies_percentile(&g->latencies, 0.95);
}

tern_status tern_generate(tern_session *session, tern_sampler *sampler, const int32_t *prompt,
                          size_t n_prompt, const tern_generate_params *params,
                          tern_token_callback *callback, void *user, tern_generation *result,
                          tern_error *err) {
    if (session == NULL || sampler == NULL || params == NULL || (prompt == NULL && n_prompt > 0) ||
        (params->stop_tokens == NULL && params->n_stop_tokens > 0)) {
        return tern_fail(err, TERN_ERR_NULL, "generate: NULL argument");
    }
    if (n_prompt == 0) {
        return tern_fail(err, TERN_ERR_EMPTY, "generate: the prompt has no tokens");
    }
    generate_call g = {.session = session,
                       .sampler = sampler,
                       .params = *params,
                       .callback = callback,
                       .user = user,
                       .result = {.n_prompt = n_prompt},
                       .start = tern_clock_seconds()};
    if (!params->ignore_end &&
        tern_model_tokenizer(tern_session_model(session), &g.tokenizer, NULL) != TERN_OK) {
        g.tokenizer = NULL; /* a model without a tokenizer has no end-of-text token */
    }
    tern_status status = tern_session_eval(session, prompt, n_prompt, TERN_LOGITS_NONE, NULL, err);
    if (status != TERN_OK) {
        return status;
    }
    const double prefilled = tern_clock_seconds();
    for (size_t i = 0; i < n_prompt; i++) {
        tern_sampler_accept(sampler, prompt[i]);
    }
    g.result.prefill_seconds = prefilled - g.start;
    status = decode(&g, err);
    if (status != TERN_OK) {
        return status;
    }
    g.result.decode_seconds = tern_clock_seconds() - prefilled;
    summarize(&g);
    if (result != NULL) {
        *result = g.result;
    }
    return TERN_OK;
}
