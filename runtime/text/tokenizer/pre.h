/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_PRE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_PRE_H

/* Pre-tokenizers that GGUF files name (tokenizer.ggml.pre), as steps. docs/tokenizers.md says where
 * each comes from. */

#include "runtime/text/tokenizer/vocabulary.h"

enum { TERN_PRE_MAX_PATTERNS = 6 };

typedef struct tern_pre_rule {
    const char *names;                       /* "a b c", the usual one first; static storage */
    uint8_t patterns[TERN_PRE_MAX_PATTERNS]; /* applied in this order; 0 ends the list */
    bool ignore_merges;                      /* a piece that is a token is taken whole */
    bool add_bos;                            /* unless the file says otherwise */
} tern_pre_rule;

/* The pattern of GPT-2. ByteLevel of a tokenizer.json means the same one. Static storage. */
extern const char tern_pattern_gpt2[];

/* Finds the rule of a name; NULL if unknown. */
const tern_pre_rule *tern_pre_find(tern_span name);

/* Appends the steps of a rule: it splits, then turns bytes into characters. */
void tern_pre_add_steps(const tern_pre_rule *rule, tern_vocabulary *v);

/* Sets v->pre to the usual name of the rule whose steps v has, normalizers aside; "" if none has.
 */
void tern_pre_recognise(tern_vocabulary *v);

#endif
