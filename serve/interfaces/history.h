/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_HISTORY_H
#define TERN_SERVE_INTERFACES_HISTORY_H

/*
 * The messages of a conversation as a template gets them, with the calls of tools in them: each
 * call is answered, once, before anybody else speaks. Texts that are given are pointed at.
 */

#include "base/json_tree/text.h"
#include "serve/http/refusal.h"
#include "tern/tokenizer.h"

enum { MOST_CALLS = 128 }; /* of one message */

typedef struct history_call {
    const char *id, *name;
    bool answered;
} history_call;

/* What a message owns. */
typedef struct history_texts {
    text content; /* joined of parts */
    text calls;   /* elements of a JSON array */
} history_texts;

typedef struct history {
    tern_chat_message *list; /* [n] of [most] */
    history_texts *texts;    /* [most] */
    size_t n, most;
    history_call calls[MOST_CALLS]; /* [n_calls] of the latest message with calls */
    size_t n_calls, n_open;         /* n_open: of them without an answer */
    const char *field;              /* that they are in, for messages */
    refusal *r;
} history;

/* Room for `most` messages. False after a refusal. Call history_free in any case. */
bool history_open(history *h, size_t most, const char *field, refusal *r);
void history_free(history *h);

/* A message of the system, the user or the assistant, whose content its caller sets. `place` names
 * it in messages. NULL after a refusal: calls wait for their answers. */
tern_chat_message *history_add(history *h, const char *role, const char *place);

/* A call by the latest message, which is the assistant's. `arguments` is the text of a JSON object.
 * False after a refusal. */
bool history_call_tool(history *h, const char *id, const char *name, const char *arguments,
                       size_t size, const char *place);

/* The answer to a call, whose content its caller sets. NULL after a refusal: there is no such call,
 * or it has been answered. */
tern_chat_message *history_answer(history *h, const char *id, const char *place);

/* Whether the latest message is the assistant's, so that it may call more. */
bool history_may_call(const history *h);

/* All messages are there. False after a refusal. */
bool history_close(history *h);

/* Whether there is a call in it. */
bool history_has_calls(const history *h);

#endif
