/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_ANSWERER_H
#define TERN_TOOLS_ANSWER_ANSWERER_H

/*
 * One answer after the other, by the engine of a session: a run's, each turn of a chat. Nothing
 * here reads options, prints or knows where text goes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/answer/together.h"
#include "tools/touch/touch.h"

/*
 * Takes text that is certain to belong to the answer, a token's at a time; with size 0 it is asked
 * before each pass whether to go on. False ends the answer there.
 */
typedef bool answer_sink(const char *bytes, size_t size, void *user);

/* What is needed to answer, and the latest answer. */
typedef struct answerer {
    tern_session *session;
    const tern_tokenizer *tokenizer; /* NULL: there is none; the sink gets ids as numbers */
    touch *touch; /* read besides every token; NULL: nothing is. Set by who opens the answerer */

    together_answer latest; /* its tokens and text live until the next one */
    uint64_t dequantized;   /* weights expanded to floats while generating: must be 0 */

    int32_t *tokens; /* of the latest */
    char *text;
    tern_error error;
} answerer;

/* An answerer for a session; tokenizer may be NULL. Both must outlive it. */
answerer answerer_open(tern_session *session, const tern_tokenizer *tokenizer);
void answerer_close(answerer *a);

/* Answers; sink may be NULL. On an error the session holds what tern_session_engine says. */
TERN_MUST_CHECK tern_status answerer_answer(answerer *a, const tern_request *request,
                                            answer_sink *sink, void *user, tern_error *err);

/* "interrupted" for a cancelled one, else tern_end_name. */
const char *answer_end_name(tern_end end);

#endif
