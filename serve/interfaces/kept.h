/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_KEPT_H
#define TERN_SERVE_INTERFACES_KEPT_H

/*
 * Conversations that responses ended with, kept in memory so that a later request can go on from
 * one by its id. The oldest is given up for a new one. From any thread.
 */

#include "base/json_tree/value.h"
#include "serve/http/keys.h"

typedef struct kept kept;

/* Makes room for `most` of them, at least 1; NULL: no memory. */
kept *kept_new(size_t most);

/* Keeps items[size], a JSON array, under an id for the owner of a key's digest (NULL: no key).
 * Without memory nothing is kept. */
void kept_add(kept *k, const char *id, const uint8_t *owner, const char *items, size_t size);

/* Returns the items, which the caller owns; NULL: they are not kept for this owner. */
json_t *kept_find(kept *k, const char *id, const uint8_t *owner);

/* NULL is fine. */
void kept_free(kept *k);

#endif
