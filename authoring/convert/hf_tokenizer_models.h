/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_TOKENIZER_MODELS_H
#define TERN_AUTHORING_CONVERT_HF_TOKENIZER_MODELS_H

/* GGUF's keys that only the models Unigram (t5) and WordPiece (bert) have. */

#include "authoring/gguf_writer.h"
#include "runtime/text/tokenizer/vocabulary.h"

/*
 * Writes texts[n] of WordPiece in GGUF's form: U+2581 precedes the beginning of a word, and the
 * continuation of a word has no prefix. The texts are in *made, from malloc, which the caller
 * frees.
 */
TERN_MUST_CHECK tern_status hf_mark_words(const tern_vocabulary *v, tern_span *texts, size_t n,
                                          char **made, tern_error *err);

/* Writes the keys beyond those that all models have, of rules that GGUF has keys for. */
void hf_put_model(tern_gguf_writer *w, const tern_vocabulary *v);

#endif
