/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TOKENIZER_TOKENIZER_H
#define TERN_RUNTIME_TOKENIZER_TOKENIZER_H

#include "runtime/gguf.h"
#include "tern/tern.h"

/*
 * Builds the tokenizer that a GGUF file describes (docs/tokenizers.md). `architecture` decides
 * only what the file leaves open: bitnet-b1.58 and bitnet-25 files with model gpt2, 128256 tokens
 * and no tokenizer.ggml.pre use llama-bpe. pre overrides the file's pre-tokenizer when not NULL.
 * The tokenizer keeps pointers into `file`, which must outlive it. Immutable, shared by threads.
 */
TERN_MUST_CHECK tern_status tern_tokenizer_new(const tern_gguf *file, const char *architecture,
                                               const char *pre, tern_tokenizer **out,
                                               tern_error *err);
void tern_tokenizer_free(tern_tokenizer **tokenizer);

#endif
