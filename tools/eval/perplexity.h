/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EVAL_PERPLEXITY_H
#define TERN_TOOLS_EVAL_PERPLEXITY_H

/*
 * Perplexity of a sequence of tokens, in windows (docs/validation.md).
 *
 * Window w holds the tokens w * stride ... w * stride + ctx - 1; only whole windows count. Each is
 * evaluated by itself, from an empty cache, its first token replaced by `bos` if there is one. Its
 * last min(stride, ctx - 1 - ctx / 2) tokens are scored by -ln of the probability that the model
 * gave them, so each has at least ctx / 2 tokens in front of it, and no token is scored twice. With
 * stride = ctx these are the windows and the tokens that llama.cpp's perplexity program takes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/engine.h"

enum { PERPLEXITY_MIN_CTX = 4 };

typedef struct perplexity_params {
    size_t ctx;         /* tokens of a window, at least PERPLEXITY_MIN_CTX */
    size_t stride;      /* from one window's start to the next, 1 ... ctx */
    size_t max_windows; /* at most; 0: all */
    int32_t bos;        /* the first token of every window; -1: the text's own */
    double *means;      /* [perplexity_windows] filled with the mean -ln p of each; NULL: nothing */
} perplexity_params;

/* All numbers are finite; with one scored token the standard errors are 0. */
typedef struct perplexity_result {
    size_t windows, scored;
    double nll;         /* mean of -ln p over the scored tokens, in nats */
    double nll_error;   /* its standard error: sqrt(sum (-ln p - nll)^2 / (n (n - 1))) */
    double value;       /* e^nll */
    double value_error; /* value * nll_error, the first order of the error */
    double low, high;   /* e^(nll -+ 1.96 nll_error): 95 % if the tokens were independent */
} perplexity_result;

/* Whole windows in n tokens, at most max_windows. */
size_t perplexity_windows(const perplexity_params *p, size_t n);

/* Tokens scored in each window. */
size_t perplexity_scored(const perplexity_params *p);

/* The result so far, after each window. */
typedef void perplexity_progress(const perplexity_result *so_far, size_t windows, void *user);

/*
 * Runs n tokens through the engine, which must have room for ctx positions and does nothing else.
 * The figures do not depend on what shares a pass. TERN_ERR_ARG when there is not one whole window,
 * TERN_ERR_NONFINITE when a token has probability 0 or none; progress may be NULL. After an error
 * some windows may still be in the engine.
 */
TERN_MUST_CHECK tern_status perplexity_run(tern_engine *engine, const perplexity_params *p,
                                           const int32_t *tokens, size_t n,
                                           perplexity_progress *progress, void *user,
                                           perplexity_result *out, tern_error *err);

#endif
