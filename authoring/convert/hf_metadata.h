/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_METADATA_H
#define TERN_AUTHORING_CONVERT_HF_METADATA_H

#include <stddef.h>

#include "authoring/convert/hf_config.h"
#include "authoring/gguf_writer.h"

/* The keys that say what the model is: general.* and those of its architecture. */
void hf_metadata_put(tern_gguf_writer *w, const hf_config *c, const char *name, uint32_t file_type);

/*
 * The keys tokenizer.*, from FOLDER/tokenizer.json and what lies beside it. Tokens are filled up to
 * n_vocab, the rows of the embedding; control tokens beyond them are left out, unless texts begin
 * or end with them. *remark: what the user should know of it, static storage, or NULL; also when
 * there is no such file and so no key.
 * TERN_ERR_TOKENIZER_DATA when there are more tokens than rows otherwise, _PRE when GGUF has no
 * name for how text is cut; errors of tern_vocabulary_open.
 */
TERN_MUST_CHECK tern_status hf_tokenizer_put(tern_gguf_writer *w, const char *folder,
                                             size_t n_vocab, const char **remark, tern_error *err);

#endif
