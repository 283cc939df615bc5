/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_ANSWERER_H
#define TERN_TOOLS_ANSWER_ANSWERER_H

/*
 * Answers one request after the other with a session's engine: the answer of a run, or each turn of
 * a chat. Nothing here reads options, prints, or knows where the text goes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/answer/together.h"
#include "tools/touch/touch.h"

/*
 * Takes text that certainly belongs to the answer, one token's at a time. Before each pass it is
 * called with size 0 to ask whether to go on. False ends the answer there.
 */
typedef bool answer_sink(const char *bytes, size_t size, void *user);

/* The inputs of an answer, and the latest answer. */
typedef struct answerer {
    tern_session *session;
    const tern_tokenizer *tokenizer; /* NULL: there is none; the sink gets ids as numbers */
    touch *touch; /* read after every token; NULL: none. Set by the code that opens the answerer */

    together_answer latest; /* its tokens and text live until the next one */
    uint64_t dequantized;   /* rows of weights expanded to floats while answering: must be 0 */

    int32_t *tokens; /* of the latest */
    char *text;
    tern_error error;
} answerer;

/* An answerer for a session; tokenizer may be NULL. Both must outlive it. */
answerer answerer_open(tern_session *session, const tern_tokenizer *tokenizer);
void answerer_close(answerer *a);

/*
 * Answers; sink may be NULL. tern_session_engine describes what the session holds after an error.
 */
TERN_MUST_CHECK tern_status answerer_answer(answerer *a, const tern_request *request,
                                            answer_sink *sink, void *user, tern_error *err);

/* "interrupted" for a cancelled answer, otherwise tern_end_name. */
const char *answer_end_name(tern_end end);

#endif
