/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_GGUF_H
#define TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_GGUF_H

/* Shared by the files that read vocabularies of GGUF files. Each fills its part of *v, which has
 * its file, tokens, types and scores. */

#include "runtime/text/tokenizer/vocabulary.h"

/* Read optional keys; *out stays as it is when the key is absent. The id that means none becomes
 * -1. */
TERN_MUST_CHECK tern_status tern_gguf_vocabulary_bool(const tern_gguf *file, const char *key,
                                                      bool *out, tern_error *err);
TERN_MUST_CHECK tern_status tern_gguf_vocabulary_id(const tern_vocabulary *v, const tern_gguf *file,
                                                    const char *key, int32_t *out, tern_error *err);

/* Reads the keys tokenizer.chat_template.NAME; those that are not strings are left out. */
void tern_gguf_vocabulary_templates(tern_vocabulary *v, const tern_gguf *file);

/* Refuses `pre`, unless it is NULL, for a model that has no pre-tokenizer. */
TERN_MUST_CHECK tern_status tern_gguf_vocabulary_no_pre(const tern_vocabulary *v, const char *model,
                                                        const char *pre, tern_error *err);

/* For the models t5 and bert: `begin` sets the defaults for absent keys, `finish` what follows from
 * the keys. */
TERN_MUST_CHECK tern_status tern_gguf_vocabulary_begin_unigram(tern_vocabulary *v, const char *pre,
                                                               tern_error *err);
TERN_MUST_CHECK tern_status tern_gguf_vocabulary_finish_unigram(tern_vocabulary *v,
                                                                const tern_gguf *file,
                                                                tern_error *err);
TERN_MUST_CHECK tern_status tern_gguf_vocabulary_begin_words(tern_vocabulary *v, const char *pre,
                                                             tern_error *err);
TERN_MUST_CHECK tern_status tern_gguf_vocabulary_finish_words(tern_vocabulary *v,
                                                              const tern_gguf *file,
                                                              tern_error *err);

#endif
