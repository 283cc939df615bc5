/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The decode loop. Every reported token is evaluated before the next one is picked, the last one
 * too: afterwards the session holds the prompt and all reported tokens, ready to go on. Without
 * guesses n tokens cost exactly n decode steps. Nothing is allocated in the loop.
 */

#include <stdlib.h>

#include "base/metrics.h"
#include "runtime/engine/sample/end_of_text.h"
#include "runtime/engine/sample/sampler.h"
#include "runtime/engine/session/session.h"
#include "tern/tern.h"

/* What the loop needs of a model: a session, or a forward pass of the caller's. */
typedef struct generate_source {
    tern_status (*append)(void *self, const int32_t *tokens, size_t n, tern_error *err);
    tern_status (*pick)(void *self, tern_sampler *sampler, int32_t *token, tern_error *err);
    bool (*is_full)(const void *self);
    void *self;
} generate_source;

typedef struct generate_call {
    generate_source source;
    tern_sampler *sampler;
    tern_end_of_text end;
    size_t max_tokens;
    tern_token_callback *callback;
    void *user;
    double start;
    tern_latencies latencies;
    tern_generation result;
} generate_call;

/* Tells the sampler and the caller about a token; false when it wants no more. */
static bool report(generate_call *g, int32_t token) {
    tern_sampler_accept(g->sampler, token);
    const double seconds = tern_clock_seconds() - g->start;
    if (g->result.n_generated++ == 0)
        g->result.first_token_seconds = seconds;
    return g->callback == NULL || g->callback(token, seconds, g->user);
}

static tern_status decode(generate_call *g, tern_error *err) {
    g->result.stop = TERN_STOP_LENGTH;
    while (g->result.n_generated < g->max_tokens) {
        if (g->source.is_full(g->source.self)) {
            g->result.stop = TERN_STOP_CONTEXT;
            return TERN_OK;
        }
        const double begin = tern_clock_seconds();
        int32_t token;
        tern_status status = g->source.pick(g->source.self, g->sampler, &token, err);
        if (status != TERN_OK)
            return status;
        if (tern_ends_text(&g->end, token, &g->result.stop))
            return TERN_OK;
        const bool more = report(g, token);
        status = g->source.append(g->source.self, &token, 1, err);
        if (status != TERN_OK)
            return status;
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

static tern_status check_call(const void *model, const tern_sampler *sampler, const int32_t *prompt,
                              size_t n_prompt, const tern_generate_params *params,
                              tern_error *err) {
    if (model == NULL || sampler == NULL || params == NULL || (prompt == NULL && n_prompt > 0) ||
        (params->stop_tokens == NULL && params->n_stop_tokens > 0))
        return tern_fail(err, TERN_ERR_NULL, "generate: NULL argument");
    return n_prompt > 0 ? TERN_OK
                        : tern_fail(err, TERN_ERR_EMPTY, "generate: the prompt has no tokens");
}

static tern_end_of_text end_of(const tern_tokenizer *tokenizer,
                               const tern_generate_params *params) {
    return (tern_end_of_text){.tokenizer = params->ignore_end ? NULL : tokenizer,
                              .stop_tokens = params->stop_tokens,
                              .n_stop_tokens = params->n_stop_tokens};
}

/* The whole call, and its figures. */
static tern_status generate(generate_call *g, const int32_t *prompt, size_t n_prompt,
                            tern_error *err) {
    g->start = tern_clock_seconds();
    g->result.n_prompt = n_prompt;
    tern_status status = g->source.append(g->source.self, prompt, n_prompt, err);
    if (status != TERN_OK)
        return status;
    const double prefilled = tern_clock_seconds();
    for (size_t i = 0; i < n_prompt; i++)
        tern_sampler_accept(g->sampler, prompt[i]);
    g->result.prefill_seconds = prefilled - g->start;
    status = decode(g, err);
    if (status != TERN_OK)
        return status;
    g->result.decode_seconds = tern_clock_seconds() - prefilled;
    summarize(g);
    return TERN_OK;
}

/* ---- a session --------------------------------------------------------------------------------
 */

typedef struct own {
    tern_session *session;
    tern_session_drafts drafts;
    bool has_prompt;
} own;

/* The prompt first, then each token. */
static tern_status append_to_session(void *self, const int32_t *tokens, size_t n, tern_error *err) {
    own *o = self;
    if (o->has_prompt)
        return tern_session_append(o->session, &o->drafts, tokens[0], err);
    o->has_prompt = true;
    const tern_status status =
        tern_session_eval(o->session, tokens, n, TERN_LOGITS_NONE, NULL, err);
    if (status == TERN_OK && o->drafts.draft != NULL)
        tern_draft_given(o->drafts.draft, tern_session_tokens(o->session),
                         tern_session_position(o->session));
    return status;
}

static tern_status pick_of_session(void *self, tern_sampler *sampler, int32_t *token,
                                   tern_error *err) {
    const own *o = self;
    return tern_session_pick(o->session, sampler, token, err);
}

static bool session_is_full(const void *self) {
    const own *o = self;
    return tern_session_position(o->session) == tern_session_context(o->session);
}

tern_status tern_generate(tern_session *session, tern_sampler *sampler, const int32_t *prompt,
                          size_t n_prompt, const tern_generate_params *params,
                          tern_token_callback *callback, void *user, tern_generation *result,
                          tern_error *err) {
    tern_status status = check_call(session, sampler, prompt, n_prompt, params, err);
    if (status != TERN_OK)
        return status;
    const tern_tokenizer *tokenizer = NULL; /* without one no token of the model ends the text */
    (void)!tern_model_tokenizer(tern_session_model(session), &tokenizer, NULL);
    own o = {.session = session, .drafts = {.mode = params->draft, .left = params->max_tokens}};
    if (params->draft != TERN_DRAFT_NEVER)
        status = tern_draft_new(tern_session_context(session), &o.drafts.draft, err);
    generate_call g = {.source = {append_to_session, pick_of_session, session_is_full, &o},
                       .sampler = sampler,
                       .end = end_of(tokenizer, params),
                       .max_tokens = params->max_tokens,
                       .callback = callback,
                       .user = user};
    if (status == TERN_OK)
        status = generate(&g, prompt, n_prompt, err);
    if (status == TERN_OK) /* weights are read from the model's files */
        status = tern_model_unchanged(tern_session_model(session), err);
    tern_draft_free(&o.drafts.draft);
    session->n_ahead = 0;
    g.result.n_drafted = o.drafts.n_drafted;
    g.result.n_accepted = o.drafts.n_accepted;
    if (status == TERN_OK && result != NULL)
        *result = g.result;
    return status;
}

/* ---- a forward pass of the caller's ------------------------------------------------------------
 */

typedef struct foreign {
    const tern_forward_model *model;
    float *logits; /* that follow the tokens so far */
    size_t n;      /* of them */
} foreign;

static tern_status append_to_foreign(void *self, const int32_t *tokens, size_t n, tern_error *err) {
    foreign *f = self;
    if (f->model->n_ctx > 0 && n > f->model->n_ctx - f->n) {
        return tern_fail(err, TERN_ERR_CONTEXT, "%zu tokens exceed the context of %zu", n,
                         f->model->n_ctx);
    }
    f->n += n;
    return f->model->forward(tokens, n, f->logits, f->model->user, err);
}

static tern_status pick_of_foreign(void *self, tern_sampler *sampler, int32_t *token,
                                   tern_error *err) {
    const foreign *f = self;
    return tern_sampler_pick(sampler, f->logits, token, err);
}

static bool foreign_is_full(const void *self) {
    const foreign *f = self;
    return f->model->n_ctx > 0 && f->n >= f->model->n_ctx;
}

tern_status tern_generate_with(const tern_forward_model *model, tern_sampler *sampler,
                               const int32_t *prompt, size_t n_prompt,
                               const tern_generate_params *params, tern_token_callback *callback,
                               void *user, tern_generation *result, tern_error *err) {
    tern_status status = check_call(model, sampler, prompt, n_prompt, params, err);
    if (status != TERN_OK)
        return status;
    if (model->forward == NULL)
        return tern_fail(err, TERN_ERR_NULL, "generate: no forward pass");
    const size_t lines = ((size_t)sampler->n_vocab * sizeof(float) + TERN_ALIGN - 1) / TERN_ALIGN;
    foreign f = {.model = model, .logits = aligned_alloc(TERN_ALIGN, lines * TERN_ALIGN)};
    if (f.logits == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "generate: no memory for the logits of %u tokens",
                         sampler->n_vocab);
    }
    generate_call g = {.source = {append_to_foreign, pick_of_foreign, foreign_is_full, &f},
                       .sampler = sampler,
                       .end = end_of(model->tokenizer, params),
                       .max_tokens = params->max_tokens,
                       .callback = callback,
                       .user = user};
    status = generate(&g, prompt, n_prompt, err);
    if (status == TERN_OK && result != NULL)
        *result = g.result;
    free(f.logits);
    return status;
}
