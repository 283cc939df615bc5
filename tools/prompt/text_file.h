/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PROMPT_TEXT_FILE_H
#define TERN_TOOLS_PROMPT_TEXT_FILE_H

/* A text to measure with: the file of --file, tokenized for a model. */

#include "tools/load/loader.h"

typedef struct text_file {
    const char *path;
    char *bytes; /* owned */
    size_t size;
    int32_t *ids; /* owned; includes the tokens that the model's tokenizer puts around a text */
    size_t n;
} text_file;

/* EXIT_DONE, or the exit status after a complaint: no --file, no tokenizer, or an unreadable file.
 * Zero-initialise it; free it in any case. */
int text_file_read(const options *o, const loaded *l, text_file *t);
void text_file_free(text_file *t);

/* Tokens per window: --ctx; without it 512, or the model's training context if that is smaller. */
size_t text_file_window(const options *o, const loaded *l);

/* The beginning-of-text token if the model's tokenizer puts one before a text; otherwise -1. */
int32_t text_file_leading_token(const tern_tokenizer *t);

#endif
