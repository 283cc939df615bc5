/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_ANSWERER_H
#define TERN_TOOLS_ANSWER_ANSWERER_H

/*
 * Answering: prompt tokens in; tokens, text as it arrives, and figures out. Everything that answers
 * (a run, each prompt of a file, each turn of a chat) does it through an answerer, one answer after
 * the other. Nothing here reads options, prints or knows where text goes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stops.h"
#include "tern/tern.h"
#include "tools/touch/touch.h"

/*
 * Takes text that is certain to belong to the answer. Called after every token, then with size 0
 * when nothing became certain, and with size 0 between the pieces of a prompt; false ends the
 * answer there.
 */
typedef bool answer_sink(const char *bytes, size_t size, void *user);

typedef struct answer_request {
    const int32_t *prompt; /* [n_prompt], evaluated after what the session holds; n_prompt >= 1 */
    size_t n_prompt;
    const int32_t *known; /* [n_known] what the session holds of this prompt: penalties look back */
    size_t n_known;
    size_t piece; /* tokens of the prompt evaluated between two looks at the sink; 0: all of them */
    uint64_t seed;
    size_t max_tokens;
    bool ignore_end; /* go on after the model's end of text */
    tern_draft_mode draft;
    bool drop_space;            /* one space at the start of the text is not part of it */
    const int32_t *stop_tokens; /* [n_stop_tokens] end the answer as the model's own end does */
    size_t n_stop_tokens;
    tern_stops stops;  /* of the text, after drop_space */
    answer_sink *sink; /* NULL: no listener */
    void *user;
} answer_request;

typedef enum answer_end {
    ANSWER_COMPLETE,    /* the model ended the text */
    ANSWER_LENGTH,      /* max_tokens */
    ANSWER_CONTEXT,     /* the context is full */
    ANSWER_STOPPED,     /* a stop token or stop string */
    ANSWER_INTERRUPTED, /* the sink wanted no more */
} answer_end;

const char *answer_end_name(answer_end end); /* "end", "length", "context", "stop", ... */

/* What is needed to answer, and the latest answer; tokens and text live until the next one. */
typedef struct answerer {
    tern_session *session;
    tern_sampler *sampler;
    const tern_tokenizer *tokenizer; /* NULL: there is none; the sink gets ids as numbers */
    tern_answer_text *pieces;        /* of the answer in work; NULL without a tokenizer */

    int32_t *tokens; /* [positions of the session] */
    size_t n_tokens;
    char *text; /* [text_size] without its stop string; empty without a tokenizer */
    size_t text_size;
    answer_end end;
    tern_generation figures;
    uint64_t dequantized; /* weights expanded to floats while generating: must be 0 */
    uint64_t kv_hits;     /* positions found in the cache, over all passes of the answer */
    uint64_t kv_misses;   /* positions computed */

    touch *touch; /* read besides every token; NULL: nothing is. Set by who opens the answerer */

    size_t text_capacity;
    bool stopped; /* by a stop string */
    bool out_of_memory;
    const answer_request *request; /* in work, else NULL */
} answerer;

/*
 * Makes an answerer for a session; tokenizer may be NULL. Both must outlive it. *a needs no
 * initialisation; after an error there is nothing to close.
 */
TERN_MUST_CHECK tern_status answerer_open(answerer *a, tern_session *session,
                                          const tern_tokenizer *tokenizer,
                                          const tern_sampler_params *sampling, tern_error *err);
void answerer_close(answerer *a);

/* Begins the random numbers anew from the request's seed and answers. On an error what the session
 * holds and a's tokens and text are those up to there. */
TERN_MUST_CHECK tern_status answerer_answer(answerer *a, const answer_request *request,
                                            tern_error *err);

#endif
