/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_OLDER_ROBERTA_H
#define TERN_AUTHORING_CONVERT_HF_OLDER_ROBERTA_H

#include "authoring/convert/hf_older_files.h"
#include "authoring/convert/sentencepiece.h"

/*
 * Writes a tokenizer.json of a sentencepiece.bpe.model, which is a Unigram model in spite of its
 * name, as transformers' class of XLM-RoBERTa has it: four tokens in place of the
 * model's first three pieces, and one after all; words are cut at white space, each with a space in
 * front, and only the model's replacements are made before. Other classes, and models of another
 * kind, are refused; `path` is for messages. TERN_ERR_TOKENIZER_MODEL, _DATA, _NOMEM.
 */
TERN_MUST_CHECK tern_status hf_older_roberta_write(hf_older_files *f, const sentencepiece *s,
                                                   const char *path, text *out, tern_error *err);

#endif
