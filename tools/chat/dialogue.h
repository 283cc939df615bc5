/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CHAT_DIALOGUE_H
#define TERN_TOOLS_CHAT_DIALOGUE_H

/*
 * The messages of a conversation: perhaps one of the system, then the user's and the assistant's in
 * turn. The texts are all that a conversation is: tokens and cache follow from them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "tern/tern.h"

typedef struct dialogue {
    tern_chat_message *messages; /* [n]; contents are owned, roles are static */
    size_t n, capacity;
} dialogue;

/* Whether a message of this role may come next. */
bool dialogue_may_add(const dialogue *d, const char *role);

/* Adds a copy of content[size], which holds no NUL; what is not UTF-8 becomes U+FFFD. role:
 * "system", "user" or "assistant". False without memory. */
bool dialogue_add(dialogue *d, const char *role, const char *content, size_t size);

/* Takes the last message away, when it is of this role; whether it was. */
bool dialogue_drop(dialogue *d, const char *role);

/* How many questions have been answered. */
size_t dialogue_exchanges(const dialogue *d);

/* Forgets the oldest n of them, at most all, with their answers. The system's message stays. */
void dialogue_forget(dialogue *d, size_t n);

/* All but what the system said, if keep_system. */
void dialogue_clear(dialogue *d, bool keep_system);
void dialogue_free(dialogue *d);

#endif
