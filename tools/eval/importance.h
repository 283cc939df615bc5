/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EVAL_IMPORTANCE_H
#define TERN_TOOLS_EVAL_IMPORTANCE_H

/*
 * Importance of the columns of a model's matrices for a text (docs/converting.md, "Importance").
 * Windows are those of a perplexity without a stride: each is evaluated separately from an empty
 * cache, and `bos`, if there is one, replaces its first token.
 */

#include "authoring/importance.h"
#include "tern/tern.h"

typedef struct importance_params {
    size_t ctx;         /* tokens per window */
    size_t max_windows; /* limit; 0: all */
    int32_t bos;        /* the first token of every window; -1: the text's own */
} importance_params;

/* Called after each window. */
typedef void importance_progress(size_t done, size_t windows, void *user);

/*
 * Sums the squares of the inputs of every product in the layers, in the form in which it reads
 * them, for n tokens. *out has an entry for each matrix of the blocks, in the model's order, with
 * separate sums for each of its experts. The sums are the same bits for all kernels, threads and
 * batches. The session must have room for ctx positions. TERN_ERR_ARG if there is no whole window;
 * errors of evaluating; progress may be NULL.
 */
TERN_MUST_CHECK tern_status importance_run(tern_session *session, const importance_params *p,
                                           const int32_t *tokens, size_t n,
                                           importance_progress *progress, void *user,
                                           tern_importance *out, tern_error *err);

#endif
