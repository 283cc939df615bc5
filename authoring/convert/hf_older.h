/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_OLDER_H
#define TERN_AUTHORING_CONVERT_HF_OLDER_H

/*
 * Tokenizers of folders without a tokenizer.json: a model of SentencePiece (tokenizer.model, or
 * XLM-RoBERTa's sentencepiece.bpe.model), GPT-2's pair of files (vocab.json, merges.txt), or BERT's
 * list of words (vocab.txt). The text of a tokenizer.json that says the same is made of them.
 */

#include "authoring/convert/hf_tokenizer_whole.h"

typedef struct hf_older {
    tern_vocabulary *vocabulary; /* NULL: the folder has no such files */
    char *json;                  /* the text that was made */
    hf_said said;                /* as hf_tokenizer_said */
} hf_older;

/*
 * Opens the tokenizer in the folder of the file `missing`, and reads what lies beside it. Files
 * that no such text can be made of are refused by name: TERN_ERR_TOKENIZER_MODEL, _PRE, _DATA;
 * TERN_ERR_JSON, _IO, _NOMEM.
 */
TERN_MUST_CHECK tern_status hf_older_open(const char *missing, hf_older *out, tern_error *err);
void hf_older_free(hf_older *o);

#endif
