/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_UNIGRAM_RULES_H
#define TERN_RUNTIME_TEXT_TOKENIZER_UNIGRAM_RULES_H

/* The rules of normalizing that a GGUF file of model t5 can express, found in the steps of a
 * tokenizer.json. */

#include "runtime/text/tokenizer/vocabulary.h"

typedef struct tern_unigram_rules {
    tern_span charsmap; /* size 0: none */
    bool fewer_spaces;  /* several spaces become one, and none stays at the ends */
    bool prefix;        /* a space is put in front */
} tern_unigram_rules;

/*
 * Finds the rules that the steps of v express: at most one map, steps that reduce spaces, and
 * Metaspace with U+2581. False if there is anything else. Rare texts differ all the same: a
 * tokenizer.json looks up whole user-perceived characters in the map, a GGUF file the longest
 * prefix that the map has.
 */
bool tern_unigram_recognise(const tern_vocabulary *v, tern_unigram_rules *out);

#endif
