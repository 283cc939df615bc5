/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TERMINAL_DIALOGUE_H
#define TERN_TOOLS_TERMINAL_DIALOGUE_H

/*
 * The messages of a conversation: perhaps a system message, then alternating messages of user and
 * assistant. The texts define the conversation; tokens and cache follow from them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "tern/tern.h"

typedef struct dialogue {
    tern_chat_message *messages; /* [n]; contents are owned, roles are static strings */
    size_t n, capacity;
} dialogue;

/* True if a message of this role may come next. */
bool dialogue_may_add(const dialogue *d, const char *role);

/* Appends a copy of content[size], which contains no NUL; bytes that are not UTF-8 become U+FFFD.
 * role: "system", "user" or "assistant". False without memory. */
bool dialogue_add(dialogue *d, const char *role, const char *content, size_t size);

/* Puts a system message in the place of the one before; size 0: there is none then. False
 * without memory: nothing has changed. */
bool dialogue_set_system(dialogue *d, const char *content, size_t size);

/* The text of the system message; NULL: there is none. */
const char *dialogue_system(const dialogue *d);

/* Removes the last message if it has this role; returns whether it did. */
bool dialogue_drop(dialogue *d, const char *role);

/* The number of questions that were answered. */
size_t dialogue_exchanges(const dialogue *d);

/* Removes the oldest n questions, at most all, with their answers. The system message stays. */
void dialogue_forget(dialogue *d, size_t n);

/* Removes all messages, except the system message if keep_system. */
void dialogue_clear(dialogue *d, bool keep_system);
void dialogue_free(dialogue *d);

#endif
