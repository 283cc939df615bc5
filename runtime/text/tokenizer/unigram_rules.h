/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_UNIGRAM_RULES_H
#define TERN_RUNTIME_TEXT_TOKENIZER_UNIGRAM_RULES_H

/* What a GGUF file of model t5 can say of normalizing, found in the steps of a tokenizer.json. */

#include "runtime/text/tokenizer/vocabulary.h"

typedef struct tern_unigram_rules {
    tern_span charsmap; /* size 0: none */
    bool fewer_spaces;  /* of a row of spaces one stays, none at the ends */
    bool prefix;        /* a space in front */
} tern_unigram_rules;

/*
 * The rules whose steps v has: at most one map, what makes spaces fewer, and Metaspace with U+2581;
 * false where there is anything else. Rare texts differ all the same: a json looks up whole
 * characters in the map, a GGUF file the longest part that it has.
 */
bool tern_unigram_recognise(const tern_vocabulary *v, tern_unigram_rules *out);

#endif
