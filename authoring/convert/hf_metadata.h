/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_METADATA_H
#define TERN_AUTHORING_CONVERT_HF_METADATA_H

#include <stddef.h>

#include "authoring/convert/hf_config.h"
#include "authoring/gguf_writer.h"

/* Writes the keys that describe the model: general.* and those of its architecture. */
void hf_metadata_put(tern_gguf_writer *w, const hf_config *c, const char *name, uint32_t file_type);

/*
 * Writes the keys tokenizer.*, from FOLDER/tokenizer.json and the files beside it. Tokens are
 * padded to n_vocab, the rows of the embedding. Control tokens beyond these are left out unless
 * texts begin or end with them. *remark: a note for the user in static storage, or NULL; it also
 * says that there is no such file and so no key.
 *
 * TERN_ERR_TOKENIZER_DATA: there are more tokens than rows otherwise; _PRE: GGUF has no name for
 * how text is split; errors of tern_vocabulary_open.
 */
TERN_MUST_CHECK tern_status hf_tokenizer_put(tern_gguf_writer *w, const char *folder,
                                             size_t n_vocab, const char **remark, tern_error *err);

#endif
