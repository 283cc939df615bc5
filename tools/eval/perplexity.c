/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/eval/perplexity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/logprob.h"

enum { PIECE = 32 }; /* positions whose logits are in memory at once; changes no bit */

typedef struct scorer {
    tern_session *session;
    const perplexity_params *params;
    size_t n_vocab;
    int32_t *window; /* [ctx] tokens as they are evaluated */
    float *logits;   /* [PIECE][n_vocab] */
    double *nll;     /* of the scored tokens, in order */
    size_t n;        /* of them so far */
} scorer;

size_t perplexity_scored(const perplexity_params *p) {
    const size_t half = p->ctx - 1 - p->ctx / 2;
    return p->stride < half ? p->stride : half;
}

size_t perplexity_windows(const perplexity_params *p, size_t n) {
    const size_t windows = n < p->ctx ? 0 : (n - p->ctx) / p->stride + 1;
    return p->max_windows > 0 && p->max_windows < windows ? p->max_windows : windows;
}

/* ---- one window ------------------------------------------------------------------------------ */

static tern_status score_token(scorer *s, const float *logits, int32_t token, tern_error *err) {
    const double nll = tern_log_sum_exp(logits, s->n_vocab) - (double)logits[token];
    if (!isfinite(nll)) {
        return tern_fail(err, TERN_ERR_NONFINITE, "scored token %zu, id %d: -ln p is %g", s->n,
                         token, nll);
    }
    s->nll[s->n++] = nll;
    return TERN_OK;
}

/* Evaluates what nobody scores, then the logits in front of every scored token. */
static tern_status score_window(scorer *s, tern_error *err) {
    const size_t ctx = s->params->ctx;
    const size_t first = ctx - 1 - perplexity_scored(s->params); /* whose logits are wanted */
    tern_status status = tern_session_rewind(s->session, 0, err);
    if (status == TERN_OK && first > 0) {
        status = tern_session_eval(s->session, s->window, first, TERN_LOGITS_NONE, NULL, err);
    }
    for (size_t at = first; status == TERN_OK && at < ctx - 1; at += PIECE) {
        const size_t n = ctx - 1 - at < PIECE ? ctx - 1 - at : PIECE;
        status = tern_session_eval(s->session, s->window + at, n, TERN_LOGITS_ALL, s->logits, err);
        for (size_t i = 0; status == TERN_OK && i < n; i++) {
            status = score_token(s, s->logits + i * s->n_vocab, s->window[at + i + 1], err);
        }
    }
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Two passes in the order of the text: what one pass loses in squares, two keep. */
static perplexity_result summarize(const scorer *s, size_t windows) {
    const double n = (double)s->n;
    double sum = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        sum += s->nll[i];
    }
    const double mean = sum / n;
    for (size_t i = 0; i < s->n; i++) {
        squares += (s->nll[i] - mean) * (s->nll[i] - mean);
    }
    perplexity_result r = {.windows = windows, .scored = s->n, .nll = mean};
    r.nll_error = s->n > 1 ? sqrt(squares / (n * (n - 1.0))) : 0.0;
    r.value = tern_double_exp(mean);
    r.value_error = r.value * r.nll_error;
    r.low = tern_double_exp(mean - 1.96 * r.nll_error);
    r.high = tern_double_exp(mean + 1.96 * r.nll_error);
    return r;
}

static tern_status run_windows(scorer *s, const int32_t *tokens, size_t windows,
                               perplexity_progress *progress, void *user, perplexity_result *out,
                               tern_error *err) {
    perplexity_result result = {0};
    for (size_t w = 0; w < windows; w++) {
        memcpy(s->window, tokens + w * s->params->stride, s->params->ctx * sizeof *s->window);
        if (s->params->bos >= 0) {
            s->window[0] = s->params->bos;
        }
        const tern_status status = score_window(s, err);
        if (status != TERN_OK) {
            return status;
        }
        result = summarize(s, w + 1);
        if (progress != NULL) {
            progress(&result, windows, user);
        }
    }
    if (!isfinite(result.high)) {
        return tern_fail(err, TERN_ERR_NONFINITE, "a perplexity of e^%g is no number", result.nll);
    }
    *out = result;
    return TERN_OK;
}

static tern_status check(const tern_session *session, const perplexity_params *p, size_t n,
                         tern_error *err) {
    if (p->ctx < PERPLEXITY_MIN_CTX || p->ctx > tern_session_context(session)) {
        return tern_fail(err, TERN_ERR_ARG, "windows have %d to %u tokens, not %zu",
                         PERPLEXITY_MIN_CTX, tern_session_context(session), p->ctx);
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

tern_status perplexity_run(tern_session *session, const perplexity_params *p, const int32_t *tokens,
                           size_t n, perplexity_progress *progress, void *user,
                           perplexity_result *out, tern_error *err) {
    tern_status status = check(session, p, n, err);
    if (status != TERN_OK) {
        return status;
    }
    tern_model_info info;
    tern_model_describe(tern_session_model(session), &info);
    const size_t windows = perplexity_windows(p, n);
    scorer s = {.session = session, .params = p, .n_vocab = info.n_vocab};
    size_t floats; /* rounded up to whole lines of 64 bytes, as aligned_alloc wants them */
    if (!__builtin_mul_overflow((size_t)PIECE * sizeof *s.logits, s.n_vocab, &floats)) {
        s.logits = aligned_alloc(TERN_ALIGN, (floats + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN);
    }
    s.window = calloc(p->ctx, sizeof *s.window);
    s.nll = calloc(windows * perplexity_scored(p), sizeof *s.nll); /* no more than tokens */
    if (s.logits == NULL || s.window == NULL || s.nll == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for the logits of %d positions", PIECE);
    } else {
        status = run_windows(&s, tokens, windows, progress, user, out, err);
    }
    free(s.logits);
    free(s.window);
    free(s.nll);
    return status;
}
