/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_ANSWERER_H
#define TERN_TOOLS_ANSWER_ANSWERER_H

/*
 * Answers requests with an engine: a session's, for `tern run` and each turn of a chat, or one of
 * many sequences, for prompts of a file and for vectors. Answers are told in the order of their
 * numbers: the text of the first incomplete one as it comes, that of later ones when it is their
 * turn. Nothing here reads options, prints, or knows where the text goes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/engine.h"
#include "tools/touch/touch.h"

typedef struct one_answer {
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
} one_answer;

/* The requests, and the functions that are called. */
typedef struct answer_task {
    size_t n;     /* answers */
    size_t ahead; /* that may be asked for before the first one is complete, >= 1 */
    size_t live;  /* of these, the most in the engine at once, >= 1; its queue holds as many */
    const tern_request *request; /* of each answer where `ask` is NULL */
    void (*ask)(void *user, size_t number, tern_request *request);
    /* Asked before each pass; false cancels the answers in progress. NULL: nothing does. */
    bool (*go_on)(void *user);
    /* Text that certainly belongs to an answer; without a tokenizer the ids as numbers. NULL: the
     * text is in the answer alone. */
    void (*say)(void *user, size_t number, const char *bytes, size_t size);
    /* Called after each token of any answer, with the seconds since the token before it in the same
     * answer, or a negative number for its first. NULL: nobody counts. */
    void (*on_token)(void *user, double seconds);
    void (*tell)(void *user, const one_answer *answer); /* after all of its text; NULL: `latest` */
    void *user;
} answer_task;

/* Whose engine answers, and the latest answer. Set engine and the members below it; close it in any
 * case. What is set must outlive it. */
typedef struct answerer {
    tern_engine *engine;
    bool is_session; /* the engine is a session's: an answer ends when its last token is evaluated,
                        which is part of that token's time */
    const tern_tokenizer *tokenizer; /* NULL: none */
    touch *touch;                    /* read after every token; NULL: none */
    size_t width;                    /* of vectors, if requests ask for them */

    one_answer latest;    /* the last one that was told; lives until the next run */
    uint64_t dequantized; /* rows of weights expanded to floats by the latest run: must be 0 */

    struct answer_slot *slots; /* [n_slots] */
    size_t n_slots;
} answerer;

/* An answerer of a session. */
answerer answerer_of(tern_session *session, const tern_tokenizer *tokenizer);
void answerer_close(answerer *a);

/*
 * Answers all of a task. TERN_ERR_NOMEM, or an error of tern_engine_step; a request's own error is
 * told with its answer, and is the run's where the task has `request`. After a cancel only answers
 * that have tokens or vectors, or failed, are told; `latest` is an empty cancelled one if there was
 * none. tern_session_engine describes what a session holds after an error.
 */
TERN_MUST_CHECK tern_status answerer_run(answerer *a, const answer_task *task, tern_error *err);

/* "interrupted" for a cancelled answer, otherwise tern_end_name. */
const char *answer_end_name(tern_end end);

#endif
