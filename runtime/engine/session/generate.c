/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tern_generate is a request to the session's engine, with the caller's sampler. tern_generate_with
 * has its own loop over the caller's forward pass: every reported token is evaluated before the
 * next one is picked, the last one too. Neither allocates anything after it has begun.
 */

#include <stdlib.h>

#include "base/metrics.h"
#include "runtime/engine/sample/end_of_text.h"
#include "runtime/engine/sample/sampler.h"
#include "runtime/engine/session.h"
#include "runtime/engine/slot.h"

static tern_status check_call(const void *model, const tern_sampler *sampler, const int32_t *prompt,
                              size_t n_prompt, const tern_generate_params *params,
                              tern_error *err) {
    if (model == NULL || sampler == NULL || params == NULL || (prompt == NULL && n_prompt > 0) ||
        (params->stop_tokens == NULL && params->n_stop_tokens > 0))
        return tern_fail(err, TERN_ERR_NULL, "generate: NULL argument");
    return n_prompt > 0 ? TERN_OK
                        : tern_fail(err, TERN_ERR_EMPTY, "generate: the prompt has no tokens");
}

static void set_percentiles(tern_generation *g, tern_latencies *latencies) {
    tern_latencies_sort(latencies);
    g->p50_ms = 1e3 * tern_latencies_percentile(latencies, 0.50);
    g->p95_ms = 1e3 * tern_latencies_percentile(latencies, 0.95);
}

/* ---- a session --------------------------------------------------------------------------------
 */

/* An answer in progress. A token's time ends when the next one is there; the last one's when it is
 * evaluated. */
typedef struct answering {
    double last; /* seconds of the last token */
    bool over;
    tern_end end;
    tern_latencies latencies;
    tern_generation result;
} answering;

static void take(answering *a, const tern_event *e) {
    if (a->result.n_generated > 0)
        tern_latencies_add(&a->latencies, e->seconds - a->last);
    a->last = e->seconds;
    a->result.n_generated += e->kind == TERN_EVENT_TOKEN;
}

static tern_status take_end(answering *a, const tern_event *e, tern_error *err) {
    a->over = true;
    if (e->end == TERN_END_ERROR)
        return tern_fail(err, e->error->status, "%s", e->error->message);
    a->result.n_prompt = e->figures.n_prompt;
    a->result.prefill_seconds = e->figures.prompt_seconds;
    a->result.decode_seconds = e->seconds - e->figures.prompt_seconds;
    a->result.first_token_seconds = e->figures.first_token_seconds;
    a->result.n_drafted = e->figures.n_guessed;
    a->result.n_accepted = e->figures.n_guessed_right;
    a->result.stop = e->end;
    set_percentiles(&a->result, &a->latencies);
    return TERN_OK;
}

static tern_status step_to_end(tern_engine *engine, answering *a, tern_error *err) {
    tern_status status = TERN_OK;
    while (status == TERN_OK && !a->over) {
        const tern_event *events;
        size_t n;
        status = tern_engine_step(engine, &events, &n, err);
        for (size_t i = 0; status == TERN_OK && i < n; i++) {
            take(a, &events[i]);
            if (events[i].kind == TERN_EVENT_END)
                status = take_end(a, &events[i], err);
        }
    }
    return status;
}

tern_status tern_generate(tern_session *session, tern_sampler *sampler, const int32_t *prompt,
                          size_t n_prompt, const tern_generate_params *params,
                          tern_token_callback *callback, void *user, tern_generation *result,
                          tern_error *err) {
    tern_status status = check_call(session, sampler, prompt, n_prompt, params, err);
    if (status == TERN_OK)
        status = tern_session_check(session, prompt, n_prompt, session->sequence.position, err);
    if (status != TERN_OK)
        return status;
    tern_lent lent = {.sampler = sampler, .callback = callback, .user = user};
    const tern_request request = {.tokens = prompt,
                                  .n_tokens = n_prompt,
                                  .max_tokens = params->max_tokens,
                                  .within_context = true,
                                  .prompt_only = params->max_tokens == 0,
                                  .ignore_end = params->ignore_end,
                                  .stop_tokens = params->stop_tokens,
                                  .n_stop_tokens = params->n_stop_tokens,
                                  .draft = params->draft};
    answering a = {.over = false};
    status = tern_slot_lend(session->engine, &request, &lent, err);
    if (status == TERN_OK)
        status = step_to_end(session->engine, &a, err);
    if (status == TERN_OK && result != NULL)
        *result = a.result;
    return status;
}

/* ---- a forward pass of the caller's ------------------------------------------------------------
 */

/* A call in progress. */
typedef struct foreign {
    const tern_forward_model *model;
    float *logits; /* after the tokens so far */
    size_t n;      /* the number of tokens so far */
    tern_sampler *sampler;
    tern_end_of_text end;
    size_t max_tokens;
    tern_token_callback *callback;
    void *user;
    double start;
    tern_latencies latencies;
    tern_generation result;
} foreign;

static tern_status append(foreign *f, const int32_t *tokens, size_t n, tern_error *err) {
    if (f->model->n_ctx > 0 && n > f->model->n_ctx - f->n) {
        return tern_fail(err, TERN_ERR_CONTEXT, "%zu tokens exceed the context of %zu", n,
                         f->model->n_ctx);
    }
    f->n += n;
    return f->model->forward(tokens, n, f->logits, f->model->user, err);
}

/* Tells the sampler and the caller about a token; false when the caller wants no more. */
static bool report(foreign *f, int32_t token) {
    tern_sampler_accept(f->sampler, token);
    const double seconds = tern_clock_seconds() - f->start;
    if (f->result.n_generated++ == 0)
        f->result.first_token_seconds = seconds;
    return f->callback == NULL || f->callback(token, seconds, f->user);
}

static tern_status decode(foreign *f, tern_error *err) {
    f->result.stop = TERN_END_LENGTH;
    while (f->result.n_generated < f->max_tokens) {
        if (f->model->n_ctx > 0 && f->n >= f->model->n_ctx) {
            f->result.stop = TERN_END_CONTEXT;
            return TERN_OK;
        }
        const double begin = tern_clock_seconds();
        int32_t token;
        tern_status status = tern_sampler_pick(f->sampler, f->logits, &token, err);
        if (status != TERN_OK)
            return status;
        if (tern_ends_text(&f->end, token, &f->result.stop))
            return TERN_OK;
        const bool more = report(f, token);
        status = append(f, &token, 1, err);
        if (status != TERN_OK)
            return status;
        tern_latencies_add(&f->latencies, tern_clock_seconds() - begin);
        if (!more) {
            f->result.stop = TERN_END_CANCELLED;
            return TERN_OK;
        }
    }
    return TERN_OK;
}

/* Runs the whole call and sets its figures. */
static tern_status generate(foreign *f, const int32_t *prompt, size_t n_prompt, tern_error *err) {
    f->start = tern_clock_seconds();
    f->result.n_prompt = n_prompt;
    tern_status status = append(f, prompt, n_prompt, err);
    if (status != TERN_OK)
        return status;
    const double prefilled = tern_clock_seconds();
    for (size_t i = 0; i < n_prompt; i++)
        tern_sampler_accept(f->sampler, prompt[i]);
    f->result.prefill_seconds = prefilled - f->start;
    status = decode(f, err);
    if (status != TERN_OK)
        return status;
    f->result.decode_seconds = tern_clock_seconds() - prefilled;
    set_percentiles(&f->result, &f->latencies);
    return TERN_OK;
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
    foreign f = {.model = model,
                 .logits = aligned_alloc(TERN_ALIGN, lines * TERN_ALIGN),
                 .sampler = sampler,
                 .end = {.tokenizer = params->ignore_end ? NULL : model->tokenizer,
                         .stop_tokens = params->stop_tokens,
                         .n_stop_tokens = params->n_stop_tokens},
                 .max_tokens = params->max_tokens,
                 .callback = callback,
                 .user = user};
    if (f.logits == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "generate: no memory for the logits of %u tokens",
                         sampler->n_vocab);
    }
    status = generate(&f, prompt, n_prompt, err);
    if (status == TERN_OK && result != NULL)
        *result = f.result;
    free(f.logits);
    return status;
}
