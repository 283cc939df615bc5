/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_TOKENIZER_H
#define TERN_RUNTIME_TEXT_TOKENIZER_TOKENIZER_H

#include "runtime/files/gguf/gguf.h"
#include "runtime/text/tokenizer/vocabulary.h"
#include "tern/tern.h"

/*
 * Builds the tokenizer that a GGUF file describes (docs/tokenizers.md). `architecture` decides only
 * what the file leaves open: if the architecture has tern_arch.bitnet_text, a file with model gpt2,
 * 128256 tokens and no tokenizer.ggml.pre uses llama-bpe. pre overrides the file's pre-tokenizer
 * when not NULL. The tokenizer keeps pointers into `file`, which must outlive it. Immutable, shared
 * by threads.
 */
TERN_MUST_CHECK tern_status tern_tokenizer_new(const tern_gguf *file, const char *architecture,
                                               const char *pre, tern_tokenizer **out,
                                               tern_error *err);

/*
 * Builds the tokenizer of a vocabulary, which may be freed afterwards; what it borrowed must
 * outlive the tokenizer. architecture as above, NULL: unknown.
 */
TERN_MUST_CHECK tern_status tern_tokenizer_build(const tern_vocabulary *v, const char *architecture,
                                                 tern_tokenizer **out, tern_error *err);

/* The path of a tokenizer.json in a model's folder, from malloc; NULL when there is none. */
char *tern_tokenizer_beside(const char *model);

/*
 * Completes `t`, which must not be in use yet, from the file of the model that it is used with: the
 * tokens that begin and end a text; whether they are added, if `t` adds none by itself; the chat
 * template, if `t` has none. Keys that do not fit are ignored. `file` must outlive `t`.
 */
void tern_tokenizer_complete(tern_tokenizer *t, const tern_gguf *file, const char *architecture);

#endif
