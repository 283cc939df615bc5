/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_UNTOLD_H
#define TERN_SERVE_INTERFACES_UNTOLD_H

/*
 * Conversations with tools for templates that have no place for them. The model is told of the
 * tools in the server's own words, in the message of the system, or before the first question where
 * the template has no place for that either. Where the template writes no calls, they and their
 * results become parts of texts.
 */

#include "base/json_tree/text.h"
#include "serve/interfaces/call_form.h"
#include "tern/tokenizer.h"

/* Messages with texts of their own; the others are those that they were made of. */
typedef struct untold_talk {
    tern_chat_message *list; /* [n] */
    text *texts;             /* [n] */
    size_t *from;            /* [n] the first of the messages that each was made of */
    size_t n;
} untold_talk;

/*
 * Makes messages of messages[n]. `tools`: a JSON array in OpenAI's dialect, or NULL; they are told
 * if the form says so. False: no memory. Call untold_free in any case.
 */
bool untold_make(const tern_chat_message *messages, size_t n, const char *tools,
                 const call_form *form, bool in_question, untold_talk *out);
void untold_free(untold_talk *t);

/* Writes a conversation with the template, in that way if the form asks for it. Errors are those of
 * tern_conversation_render_within. */
TERN_MUST_CHECK tern_status untold_render(const tern_tokenizer *t, const tern_conversation *c,
                                          const call_form *form, const tern_tokenize_limits *limits,
                                          tern_rendering *out, tern_error *err);

#endif
