/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_BERT_RULES_H
#define TERN_RUNTIME_TEXT_TOKENIZER_BERT_RULES_H

/* The rules of BERT's normalizer, as steps and as keys of GGUF files
 * (tokenizer.ggml.normalizer.*). */

#include "runtime/text/tokenizer/vocabulary.h"

typedef struct tern_bert_rules {
    bool clean;     /* control characters vanish, white space becomes spaces */
    bool han;       /* Han characters are words */
    bool accents;   /* non-spacing marks vanish */
    bool lowercase; /* upper case becomes lower case */
} tern_bert_rules;

/* Keys of the rules. Without its key, `accents` is what `lowercase` is, and the others are true.
 * The keys of `clean`, `han` and the length of words are tern's own. */
#define TERN_BERT_KEY_LOWERCASE "tokenizer.ggml.normalizer.lowercase"
#define TERN_BERT_KEY_ACCENTS "tokenizer.ggml.normalizer.strip_accents"
#define TERN_BERT_KEY_CLEAN "tokenizer.ggml.normalizer.clean_text"
#define TERN_BERT_KEY_HAN "tokenizer.ggml.normalizer.handle_chinese_chars"
#define TERN_BERT_KEY_LONGEST "tokenizer.ggml.max_input_chars_per_word"

/* Tells why a build without utf8proc refuses rules for accents and lower case. */
extern const char tern_no_bert[];

/* Appends the steps of the normalizer; false when there are too many. */
bool tern_bert_add_normalizer(tern_vocabulary *v, tern_bert_rules rules);

/* Finds the rules that the steps of v express. False if v has any other steps than these and BERT's
 * words after them. */
bool tern_bert_recognise(const tern_vocabulary *v, tern_bert_rules *out);

#endif
