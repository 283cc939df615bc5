/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_TOGETHER_H
#define TERN_TOOLS_ANSWER_TOGETHER_H

/*
 * Many answers at once by an engine, told in the order of their numbers: the text of the first one
 * that is not complete is told as it comes, that of later ones is kept until it is their turn.
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
    const tern_error *error; /* NULL: it was answered, or ended by a cancel */
    tern_branch_figures figures;
    double p50_ms, p95_ms; /* from token to token */
    const float *pooled;   /* as of the event; NULL: there is none */
    char digest[65];       /* "" when there was an error */
} together_answer;

/* What is wanted, and who is told. */
typedef struct together_task {
    size_t n;            /* answers */
    size_t ahead;        /* that are asked for before the first of them is complete, >= 1 */
    size_t live;         /* of these that the engine has at once, >= 1; its queue holds as many */
    size_t width;        /* of vectors, where requests ask for those */
    bool evaluates_last; /* the engine is a session's: an answer ends when its last token is
                            evaluated, which is part of that token's time */
    void (*ask)(void *user, size_t number, tern_request *request);
    bool (*go_on)(void *user); /* asked before each pass; false ends what is under way */
    /* After each token of any answer, with the seconds since the one before of the same answer, or
     * a negative number for its first; it and say may be NULL where no request wants tokens. */
    void (*on_token)(void *user, int32_t token, double seconds);
    void (*say)(void *user, size_t number, const char *bytes, size_t size);
    void (*tell)(void *user, const together_answer *answer); /* when all of its text was said */
    void *user;
} together_task;

/*
 * TERN_ERR_NOMEM, or what tern_engine_step says; a request's own error is told with its answer.
 * After a cancel only answers with tokens, and those before them, are told.
 */
TERN_MUST_CHECK tern_status together_run(tern_engine *engine, const together_task *task,
                                         tern_error *err);

#endif
