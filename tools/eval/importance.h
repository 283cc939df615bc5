/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EVAL_IMPORTANCE_H
#define TERN_TOOLS_EVAL_IMPORTANCE_H

/*
 * What a text brings into the columns of a model's matrices (docs/converting.md, "Importance").
 * Windows are those of a perplexity without a stride: each is evaluated by itself, from an empty
 * cache, its first token replaced by `bos` if there is one.
 */

#include "authoring/importance.h"
#include "tern/tern.h"

typedef struct importance_params {
    size_t ctx;         /* tokens of a window */
    size_t max_windows; /* at most; 0: all */
    int32_t bos;        /* the first token of every window; -1: the text's own */
} importance_params;

/* After each window. */
typedef void importance_progress(size_t done, size_t windows, void *user);

/*
 * Adds up the squares of what every product of the layers reads, in the form that it reads, for n
 * tokens; *out has an entry for each matrix of the blocks, in the model's order, with sums of each
 * of its experts. The figures are the same bits whatever the kernels, threads and batches. The
 * session must have room for ctx positions. TERN_ERR_ARG when there is not one whole window; errors
 * of evaluating; progress may be NULL.
 */
TERN_MUST_CHECK tern_status importance_run(tern_session *session, const importance_params *p,
                                           const int32_t *tokens, size_t n,
                                           importance_progress *progress, void *user,
                                           tern_importance *out, tern_error *err);

#endif
