/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_OLDER_SPM_H
#define TERN_AUTHORING_CONVERT_HF_OLDER_SPM_H

#include "authoring/convert/hf_older_files.h"
#include "authoring/convert/hf_tokenizer_whole.h"
#include "authoring/convert/sentencepiece.h"

/*
 * Writes a tokenizer.json that does what the model does. Control pieces, and pieces that users
 * defined, become added tokens of *f. Pieces get the texts that *f has for their ids. With `legacy`
 * (tokenizer_config.json) every text between two added tokens gets a space in front, as the model
 * itself does with a text; without it only the beginning of the whole text.
 * TERN_ERR_TOKENIZER_DATA, _NOMEM.
 */
TERN_MUST_CHECK tern_status hf_older_spm_write(hf_older_files *f, sentencepiece *s,
                                               const char *name, text *out, tern_error *err);

/* Writes the fields of a Unigram model of list[n], of which number `unknown` is the unknown one.
 */
void hf_older_put_unigram(text *out, const sentencepiece_piece *list, size_t n, int32_t unknown);

/* Writes a normalizer of replacements; size > 0. */
void hf_older_put_charsmap(text *out, tern_span charsmap);

/*
 * Judges v, the vocabulary that was read from that text. If GGUF's usual keys say everything, *said
 * becomes HF_SAID_WHOLE, and v gets the scores of the model in place of merges: it is then only for
 * writing.
 */
TERN_MUST_CHECK tern_status hf_older_spm_said(const hf_older_files *f, const sentencepiece *s,
                                              tern_vocabulary *v, hf_said *said, tern_error *err);

#endif
