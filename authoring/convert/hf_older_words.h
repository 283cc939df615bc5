/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_OLDER_WORDS_H
#define TERN_AUTHORING_CONVERT_HF_OLDER_WORDS_H

#include "authoring/convert/hf_older_files.h"

/*
 * Writes a tokenizer.json of WordPiece from the bytes of a vocab.txt: a token a line, its number is
 * its id. tokenizer_config.json says how texts are prepared (do_lower_case, strip_accents,
 * tokenize_chinese_chars). Classes other than BERT's and DistilBERT's are refused; `path` is for
 * messages. TERN_ERR_TOKENIZER_MODEL, _DATA, _NOMEM.
 */
TERN_MUST_CHECK tern_status hf_older_words_write(hf_older_files *f, tern_span bytes,
                                                 const char *path, text *out, tern_error *err);

#endif
