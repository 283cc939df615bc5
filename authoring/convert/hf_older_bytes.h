/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_OLDER_BYTES_H
#define TERN_AUTHORING_CONVERT_HF_OLDER_BYTES_H

#include "authoring/convert/hf_older_files.h"

/*
 * Writes a tokenizer.json of byte-level BPE from the vocab.json at `path` and the merges.txt beside
 * it. Neither says how a text is cut, so it is cut as transformers' class of the tokenizer does it;
 * classes other than those of GPT-2 and Qwen 2 are refused. TERN_ERR_TOKENIZER_MODEL, _DATA; _JSON,
 * _IO, _NOMEM.
 */
TERN_MUST_CHECK tern_status hf_older_bytes_write(hf_older_files *f, const char *path, text *out,
                                                 tern_error *err);

#endif
