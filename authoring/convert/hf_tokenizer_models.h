/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_TOKENIZER_MODELS_H
#define TERN_AUTHORING_CONVERT_HF_TOKENIZER_MODELS_H

/* What GGUF has for the models Unigram (t5) and WordPiece (bert) alone. */

#include "authoring/gguf_writer.h"
#include "runtime/text/tokenizer/vocabulary.h"

/* Refuses rules of the vocabulary that GGUF has no key for; others than of these kinds are fine. */
TERN_MUST_CHECK tern_status hf_check_model(const tern_vocabulary *v, tern_error *err);

/*
 * Writes texts[n] of WordPiece as GGUF has them: U+2581 in front of what begins a word, nothing in
 * front of what goes on in one. They lie in *made, from malloc, which the caller frees.
 */
TERN_MUST_CHECK tern_status hf_mark_words(const tern_vocabulary *v, tern_span *texts, size_t n,
                                          char **made, tern_error *err);

/* Keys beside those that all models have. */
void hf_put_model(tern_gguf_writer *w, const tern_vocabulary *v);

#endif
