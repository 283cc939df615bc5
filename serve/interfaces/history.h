/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_HISTORY_H
#define TERN_SERVE_INTERFACES_HISTORY_H

/*
 * The messages of a conversation as a template gets them, with calls of tools. Each call must be
 * answered, once, before the next message. Texts are not copied: they must outlive the history,
 * except arguments of calls.
 */

#include "base/json_tree/text.h"
#include "serve/http/refusal.h"
#include "tern/tokenizer.h"

enum { MOST_CALLS = 128 }; /* in one message */

typedef struct history_call {
    const char *id, *name;
    bool answered;
} history_call;

/* Texts that a message owns. */
typedef struct history_texts {
    text content; /* parts, joined */
    text thought; /* what the assistant thought */
    text calls;   /* elements of a JSON array */
    text objects; /* the same, with {"text": ...} in place of arguments that are not an object */
} history_texts;

typedef struct history {
    tern_chat_message *list; /* [n] of [most] */
    history_texts *texts;    /* [most] */
    size_t n, most;
    history_call calls[MOST_CALLS]; /* [n_calls] calls of the latest message that has some */
    size_t n_calls, n_open;         /* n_open: those without an answer */
    bool has_texts;                 /* some arguments are not an object */
    const char *field;              /* the field with the messages, for refusals */
    refusal *r;
} history;

/* Opens a history with room for `most` messages. False after a refusal. Call history_free in any
 * case. */
bool history_open(history *h, size_t most, const char *field, refusal *r);
void history_free(history *h);

/* Adds a message of the system, the user or the assistant. The caller sets its content. `place`
 * names it in refusals. NULL after a refusal: calls wait for their answers. */
tern_chat_message *history_add(history *h, const char *role, const char *place);

/* Adds a call to the latest message, which must be the assistant's. Arguments that are not the text
 * of a JSON object are shown to the template as a text. False after a refusal. */
bool history_call_tool(history *h, const char *id, const char *name, const char *arguments,
                       size_t size, const char *place);

/* Adds the answer to a call. The caller sets its content. NULL after a refusal: there is no such
 * call, or it has been answered. */
tern_chat_message *history_answer(history *h, const char *id, const char *place);

/* True if the latest message is the assistant's, so that calls may be added to it. */
bool history_may_call(const history *h);

/* Takes the latest message out, which has no calls. Call it after history_close. */
void history_drop_last(history *h);

/* Ends the history, after the last message. False after a refusal: a call has no answer, or memory
 * is short. */
bool history_close(history *h);

/* For templates that cannot use arguments that are a text: from now on the messages have objects in
 * their place. False: there are no such arguments. Call it after history_close. */
bool history_use_objects(history *h);

#endif
