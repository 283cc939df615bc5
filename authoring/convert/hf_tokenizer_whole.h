/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_TOKENIZER_WHOLE_H
#define TERN_AUTHORING_CONVERT_HF_TOKENIZER_WHOLE_H

/*
 * GGUF's usual keys cannot say all that a tokenizer.json says. Then the file holds the text of
 * tokenizer.json too, in the key tokenizer.huggingface.json, which tern reads in place of the
 * others.
 */

#include "authoring/gguf_writer.h"
#include "runtime/text/tokenizer/vocabulary.h"

/* How much of a tokenizer the usual keys say. */
typedef enum hf_said {
    HF_SAID_WHOLE,
    HF_SAID_NEARLY, /* other programs get other ids for some texts */
    HF_SAID_TOKENS  /* only which tokens there are, not how texts become tokens */
} hf_said;

/* *said is exact where it is WHOLE. Merges that repeat are for the caller to find. Fails without
 * memory only. */
TERN_MUST_CHECK tern_status hf_tokenizer_said(const tern_vocabulary *v, hf_said *said,
                                              tern_error *err);

/*
 * True if added tokens are cut out of each text in the same way whether the longest or the
 * left-most is looked for first, and without the white space or the words beside them.
 */
bool hf_has_plain_added(const tern_vocabulary *v);

/* Puts the text of the tokenizer.json at `path`, without the white space between values. */
TERN_MUST_CHECK tern_status hf_tokenizer_put_whole(tern_gguf_writer *w, const char *path,
                                                   tern_error *err);

#endif
