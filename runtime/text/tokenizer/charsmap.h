/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_CHARSMAP_H
#define TERN_RUNTIME_TEXT_TOKENIZER_CHARSMAP_H

/*
 * SentencePiece's table of replacements (precompiled_charsmap): the bytes of a double-array trie,
 * as a u32 in front says, then replacements that end with NUL. All numbers are little-endian.
 */

#include "runtime/files/gguf/gguf.h"
#include "tern/status.h"

enum { TERN_CHARSMAP_MAX_BYTES = 64 << 20, TERN_CHARSMAP_WHY_BYTES = 160 };

/* Points into the bytes that it was made of. No units: it replaces nothing. */
typedef struct tern_charsmap {
    const char *units; /* [n_units] u32, not aligned */
    size_t n_units;
    tern_span texts; /* the replacements */
} tern_charsmap;

/*
 * Checks that every entry of the trie leads to a text in UTF-8, in one turn over the bytes. On
 * failure, TERN_ERR_TOKENIZER_DATA, why[TERN_CHARSMAP_WHY_BYTES] says what is wrong. No bytes: an
 * empty map.
 */
TERN_MUST_CHECK tern_status tern_charsmap_open(tern_span bytes, tern_charsmap *out, char *why);

/*
 * Looks up the beginnings of text. False when the map has none; else *used is the size of the
 * longest one, or of the shortest one, and *to what replaces it (perhaps nothing).
 */
bool tern_charsmap_find(const tern_charsmap *map, tern_span text, bool shortest, size_t *used,
                        tern_span *to);

#endif
