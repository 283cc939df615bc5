/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_CHARSMAP_H
#define TERN_RUNTIME_TEXT_TOKENIZER_CHARSMAP_H

/*
 * SentencePiece's table of replacements (precompiled_charsmap): a u32 with the size of the trie in
 * bytes, the double-array trie, then replacements that end with NUL. All numbers are little-endian.
 */

#include "runtime/files/gguf/gguf.h"
#include "tern/status.h"

enum { TERN_CHARSMAP_MAX_BYTES = 64 << 20, TERN_CHARSMAP_WHY_BYTES = 160 };

/* Points into the bytes that it was made from. A map without units replaces nothing. */
typedef struct tern_charsmap {
    const char *units; /* [n_units] u32, not aligned */
    size_t n_units;
    tern_span texts; /* the replacements */
} tern_charsmap;

/*
 * Checks in one pass over the bytes that every entry of the trie leads to a text in UTF-8. On
 * failure, TERN_ERR_TOKENIZER_DATA, why[TERN_CHARSMAP_WHY_BYTES] says what is wrong. No bytes give
 * an empty map.
 */
TERN_MUST_CHECK tern_status tern_charsmap_open(tern_span bytes, tern_charsmap *out, char *why);

/*
 * Looks up the prefixes of text. False when the map has none of them. Otherwise *used is the size
 * of the longest one, or of the shortest one, and *to is its replacement, which may be empty.
 */
bool tern_charsmap_find(const tern_charsmap *map, tern_span text, bool shortest, size_t *used,
                        tern_span *to);

#endif
