/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CHAT_DIALOGUE_JSON_H
#define TERN_TOOLS_CHAT_DIALOGUE_JSON_H

/*
 * Dialogues as JSON: {"tern_chat": 1, "attempts": n, "messages": [{"role", "content"}]}.
 */

#include <stdint.h>

#include "tools/chat/dialogue.h"

/* The text, to be freed, or NULL with the error set. `name` is the file's, for messages. */
char *dialogue_to_json(const char *name, const dialogue *d, uint64_t attempts, tern_error *err);

/* Reads text[size], anybody's, into *d, which must be empty and is to be freed in any case. */
TERN_MUST_CHECK tern_status dialogue_from_json(const char *name, const char *text, size_t size,
                                               dialogue *d, uint64_t *attempts, tern_error *err);

#endif
