/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_KEPT_H
#define TERN_SERVE_INTERFACES_KEPT_H

/*
 * Responses, kept in memory so that they can be asked for again, and a later request can go on from
 * one by its id. The oldest is given up for a new one. From any thread.
 */

#include "base/json_tree/text.h"
#include "base/json_tree/value.h"
#include "serve/http/keys.h"
#include "tern/span.h"

typedef struct kept kept;

/* Makes room for `most` of them, at least 1; NULL: no memory. */
kept *kept_new(size_t most);

/* Keeps a response under an id for the owner of a key's digest (NULL: no key): the conversation
 * that it ended with, a JSON array, and its own document. Without memory nothing is kept. */
void kept_add(kept *k, const char *id, const uint8_t *owner, tern_span items, tern_span document);

/* Returns the items, which the caller owns; NULL: they are not kept for this owner. */
json_t *kept_find(kept *k, const char *id, const uint8_t *owner);

/* Appends the document; false: it is not kept for this owner. */
bool kept_write(kept *k, const char *id, const uint8_t *owner, text *out);

/* Gives a response up; false: it is not kept for this owner. */
bool kept_remove(kept *k, const char *id, const uint8_t *owner);

/* NULL is fine. */
void kept_free(kept *k);

#endif
