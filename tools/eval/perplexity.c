/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/eval/perplexity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/logprob.h"

typedef struct scorer {
    tern_engine *engine;
    const perplexity_params *params;
    const int32_t *tokens; /* of the text */
    size_t windows;
    int32_t *window;        /* [ctx] tokens of the next window */
    uint64_t *ids;          /* [windows] of their requests; 0: not submitted, or complete */
    double *nll;            /* [windows][scored tokens] */
    size_t asked, complete; /* windows; all before `complete` are complete, too */
    size_t n;               /* scored tokens in complete windows */
    perplexity_progress *progress;
    void *user;
    perplexity_result result; /* of the complete windows */
} scorer;

size_t perplexity_scored(const perplexity_params *p) {
    const size_t half = p->ctx - 1 - p->ctx / 2;
    return p->stride < half ? p->stride : half;
}

size_t perplexity_windows(const perplexity_params *p, size_t n) {
    const size_t windows = n < p->ctx ? 0 : (n - p->ctx) / p->stride + 1;
    return p->max_windows > 0 && p->max_windows < windows ? p->max_windows : windows;
}

/* ---- results --------------------------------------------------------------------------------- */

/*
 * Makes two passes in the order of the text: sums of squares in a single pass would lose precision.
 */
static perplexity_result summarize(const scorer *s, size_t windows) {
    const double n = (double)s->n;
    double sum = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < s->n; i++)
        sum += s->nll[i];
    const double mean = sum / n;
    for (size_t i = 0; i < s->n; i++)
        squares += (s->nll[i] - mean) * (s->nll[i] - mean);
    perplexity_result r = {.windows = windows, .scored = s->n, .nll = mean};
    r.nll_error = s->n > 1 ? sqrt(squares / (n * (n - 1.0))) : 0.0;
    r.value = tern_double_exp(mean);
    r.value_error = r.value * r.nll_error;
    r.low = tern_double_exp(mean - 1.96 * r.nll_error);
    r.high = tern_double_exp(mean + 1.96 * r.nll_error);
    return r;
}

/* ---- windows, several at once ---------------------------------------------------------------- */

/* The position in a window before the first scored token. */
static size_t first_position(const perplexity_params *p) {
    return p->ctx - 1 - perplexity_scored(p);
}

static tern_status ask_for_window(scorer *s, tern_error *err) {
    const perplexity_params *p = s->params;
    const tern_request request = {.tokens = s->window,
                                  .n_tokens = p->ctx,
                                  .prompt_only = true,
                                  .prompt_logprobs = true,
                                  .prompt_from = first_position(p)};
    memcpy(s->window, s->tokens + s->asked * p->stride, p->ctx * sizeof *s->window);
    if (p->bos >= 0)
        s->window[0] = p->bos;
    const tern_status status = tern_engine_submit(s->engine, &request, &s->ids[s->asked], err);
    s->asked += status == TERN_OK;
    return status == TERN_ERR_QUEUE ? TERN_OK : status;
}

/* Submits as many windows as the engine's queue takes. */
static tern_status ask(scorer *s, tern_error *err) {
    for (size_t before = SIZE_MAX; s->asked < s->windows && s->asked != before;) {
        before = s->asked;
        const tern_status status = ask_for_window(s, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

static tern_status score_token(scorer *s, size_t window, const tern_event *e, tern_error *err) {
    const size_t at = e->position - first_position(s->params) - 1;
    const size_t number = window * perplexity_scored(s->params) + at;
    const double nll = -e->logprob;
    if (!isfinite(nll)) {
        return tern_fail(err, TERN_ERR_NONFINITE, "scored token %zu, id %d: -ln p is %g", number,
                         e->token, nll);
    }
    s->nll[number] = nll;
    return TERN_OK;
}

static tern_status take(scorer *s, const tern_event *e, tern_error *err) {
    size_t window = s->complete;
    while (window < s->asked && s->ids[window] != e->request)
        window++;
    if (e->kind == TERN_EVENT_PROMPT)
        return score_token(s, window, e, err);
    if (e->end == TERN_END_ERROR)
        return tern_fail(err, e->error->status, "%s", e->error->message);
    s->ids[window] = 0;
    return TERN_OK;
}

/* Stores the mean of a complete window. */
static void note_mean(const scorer *s, size_t window) {
    const size_t n = perplexity_scored(s->params);
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += s->nll[window * n + i];
    if (s->params->means != NULL)
        s->params->means[window] = sum / (double)n;
}

/* Reports the result so far: of the windows before the first incomplete one. */
static void tell(scorer *s) {
    while (s->complete < s->asked && s->ids[s->complete] == 0) {
        note_mean(s, s->complete);
        s->n = ++s->complete * perplexity_scored(s->params);
        s->result = summarize(s, s->complete);
        if (s->progress != NULL)
            s->progress(&s->result, s->windows, s->user);
    }
}

static tern_status run_windows(scorer *s, tern_error *err) {
    tern_status status = TERN_OK;
    while (status == TERN_OK && s->complete < s->windows) {
        const tern_event *events;
        size_t n = 0;
        status = ask(s, err);
        if (status == TERN_OK)
            status = tern_engine_step(s->engine, &events, &n, err);
        for (size_t i = 0; i < n && status == TERN_OK; i++)
            status = take(s, &events[i], err);
        tell(s);
    }
    if (status == TERN_OK && !isfinite(s->result.high)) {
        return tern_fail(err, TERN_ERR_NONFINITE, "a perplexity of e^%g is not a number",
                         s->result.nll);
    }
    return status;
}

static tern_status check(tern_engine *engine, const perplexity_params *p, size_t n,
                         tern_error *err) {
    const uint32_t n_ctx = tern_engine_now(engine).n_ctx;
    if (p->ctx < PERPLEXITY_MIN_CTX || p->ctx > n_ctx) {
        return tern_fail(err, TERN_ERR_ARG, "windows have %d to %u tokens, not %zu",
                         PERPLEXITY_MIN_CTX, n_ctx, p->ctx);
    }
    if (p->stride < 1 || p->stride > p->ctx) {
        return tern_fail(err, TERN_ERR_ARG,
                         "the stride lies between 1 and the window's %zu, not %zu", p->ctx,
                         p->stride);
    }
    if (perplexity_windows(p, n) == 0) {
        return tern_fail(err, TERN_ERR_ARG,
                         "%zu tokens are less than one window of %zu; --ctx N takes others", n,
                         p->ctx);
    }
    return TERN_OK;
}

tern_status perplexity_run(tern_engine *engine, const perplexity_params *p, const int32_t *tokens,
                           size_t n, perplexity_progress *progress, void *user,
                           perplexity_result *out, tern_error *err) {
    tern_status status = check(engine, p, n, err);
    if (status != TERN_OK)
        return status;
    const size_t windows = perplexity_windows(p, n);
    scorer s = {.engine = engine,
                .params = p,
                .tokens = tokens,
                .windows = windows,
                .progress = progress,
                .user = user};
    s.window = calloc(p->ctx, sizeof *s.window);
    s.ids = calloc(windows, sizeof *s.ids);
    s.nll = calloc(windows * perplexity_scored(p), sizeof *s.nll); /* at most the tokens */
    if (s.window == NULL || s.ids == NULL || s.nll == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu windows", windows);
    else
        status = run_windows(&s, err);
    if (status == TERN_OK)
        *out = s.result;
    free(s.window);
    free(s.ids);
    free(s.nll);
    return status;
}
