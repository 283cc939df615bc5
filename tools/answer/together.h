/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_TOGETHER_H
#define TERN_TOOLS_ANSWER_TOGETHER_H

/*
 * Runs many answers at once on an engine and tells them in the order of their numbers. The text of
 * the first incomplete answer is told as it comes; the text of later ones is kept until their turn.
 */

#include <stdbool.h>

#include "tern/engine.h"

typedef struct together_answer {
    size_t number;         /* from 0 */
    const int32_t *tokens; /* [n_tokens] */
    size_t n_tokens;
    const char *text; /* [text_size], not NULL; empty without a tokenizer */
    size_t text_size;
    tern_end end;
    const tern_error *error; /* NULL: it was answered, or cancelled */
    tern_branch_figures figures;
    double p50_ms, p95_ms; /* between tokens */
    const float *pooled;   /* from the event; NULL: none */
    char digest[65];       /* "" when there was an error */
} together_answer;

/* The task, and the functions that are called. */
typedef struct together_task {
    size_t n;            /* answers */
    size_t ahead;        /* that may be asked for before the first one is complete, >= 1 */
    size_t live;         /* of these, the most in the engine at once, >= 1; its queue holds as
                            many */
    size_t width;        /* of vectors, if requests ask for them */
    bool evaluates_last; /* the engine is a session's: an answer ends when its last token is
                            evaluated, which is part of that token's time */
    void (*ask)(void *user, size_t number, tern_request *request);
    bool (*go_on)(void *user); /* asked before each pass; false cancels the answers in progress */
    /*
     * Called after each token of any answer, with the seconds since the token before it in the same
     * answer, or a negative number for its first. This and `say` may be NULL if no request wants
     * tokens.
     */
    void (*on_token)(void *user, int32_t token, double seconds);
    void (*say)(void *user, size_t number, const char *bytes, size_t size);
    void (*tell)(void *user, const together_answer *answer); /* after all of its text was said */
    void *user;
} together_task;

/*
 * TERN_ERR_NOMEM, or an error of tern_engine_step; a request's own error is told with its answer.
 * After a cancel only answers that have tokens or vectors, or failed, are told.
 */
TERN_MUST_CHECK tern_status together_run(tern_engine *engine, const together_task *task,
                                         tern_error *err);

#endif
