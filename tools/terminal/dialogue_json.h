/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TERMINAL_DIALOGUE_JSON_H
#define TERN_TOOLS_TERMINAL_DIALOGUE_JSON_H

/*
 * Dialogues as JSON: {"tern_chat": 1, "attempts": n, "messages": [{"role", "content"}]}.
 */

#include <stdint.h>

#include "tools/terminal/dialogue.h"

/*
 * The dialogue as text, to be freed, or NULL with the error set. Messages mention the file `name`.
 */
char *dialogue_to_json(const char *name, const dialogue *d, uint64_t attempts, tern_error *err);

/* Reads text[size], which is not trusted, into *d, which must be empty. Free *d in any case. */
TERN_MUST_CHECK tern_status dialogue_from_json(const char *name, const char *text, size_t size,
                                               dialogue *d, uint64_t *attempts, tern_error *err);

#endif
