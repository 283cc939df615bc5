/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EVAL_PERPLEXITY_H
#define TERN_TOOLS_EVAL_PERPLEXITY_H

/*
 * Perplexity of a sequence of tokens, in windows (docs/validation.md).
 *
 * Window w holds the tokens w * stride ... w * stride + ctx - 1; only whole windows count. Each is
 * evaluated separately from an empty cache, and `bos`, if there is one, replaces its first token.
 * Its last min(stride, ctx - 1 - ctx / 2) tokens are scored by -ln of the probability that the
 * model gave them. So each has at least ctx / 2 tokens before it, and no token is scored twice.
 * With stride = ctx these are the windows and tokens of llama.cpp's perplexity program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/engine.h"

enum { PERPLEXITY_MIN_CTX = 4 };

typedef struct perplexity_params {
    size_t ctx;         /* tokens per window, at least PERPLEXITY_MIN_CTX */
    size_t stride;      /* from one window's start to the next, 1 ... ctx */
    size_t max_windows; /* limit; 0: all */
    int32_t bos;        /* the first token of every window; -1: the text's own */
    double *means;      /* [perplexity_windows] gets the mean -ln p of each; may be NULL */
} perplexity_params;

/* All numbers are finite; with one scored token the standard errors are 0. */
typedef struct perplexity_result {
    size_t windows, scored;
    double nll;         /* mean of -ln p over the scored tokens, in nats */
    double nll_error;   /* standard error of nll: sqrt(sum (-ln p - nll)^2 / (n (n - 1))) */
    double value;       /* e^nll */
    double value_error; /* value * nll_error, to first order */
    double low, high;   /* e^(nll -+ 1.96 nll_error): 95 % if the tokens were independent */
} perplexity_result;

/* The number of whole windows in n tokens, at most max_windows. */
size_t perplexity_windows(const perplexity_params *p, size_t n);

/* The number of tokens scored in each window. */
size_t perplexity_scored(const perplexity_params *p);

/* Called after each window with the result so far. */
typedef void perplexity_progress(const perplexity_result *so_far, size_t windows, void *user);

/*
 * Evaluates n tokens with the engine, which must have room for ctx positions and do nothing else.
 * The figures do not depend on which windows share a pass. TERN_ERR_ARG if there is no whole
 * window, TERN_ERR_NONFINITE if a token's probability is 0 or undefined; progress may be NULL.
 * After an error some windows may still be in the engine.
 */
TERN_MUST_CHECK tern_status perplexity_run(tern_engine *engine, const perplexity_params *p,
                                           const int32_t *tokens, size_t n,
                                           perplexity_progress *progress, void *user,
                                           perplexity_result *out, tern_error *err);

#endif
