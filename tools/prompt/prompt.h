/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PROMPT_PROMPT_H
#define TERN_TOOLS_PROMPT_PROMPT_H

/* The prompt of the command line: read, tokenized, and complaints about it. */

#include "tools/load/loader.h"

typedef struct prompt {
    char *text; /* as given; NULL with --tokens */
    size_t size;
    int32_t *ids;
    size_t n;
} prompt;

/* Reads the text or ids of --prompt, --file, --tokens or standard input. Free it in any case. */
int prompt_take(const options *o, prompt *p);

/* Reads and tokenizes --prompt, --file, --tokens or standard input, which must fit into the
 * session. Free it in any case. */
int prompt_read(const options *o, const loaded *l, prompt *p);
void prompt_free(prompt *p);

/* Reports why a text cannot be tokenized, and what would help; returns the exit status. */
int prompt_complain(const tern_tokenizer *t, const tern_error *err);

/* Reports that the model's chat format omits message i; i == c->n: nothing is omitted. */
void prompt_tell_unseen(const tern_conversation *c, size_t i);

/* Tokenizes a prompt that has a text; EXIT_DONE, or the exit status after a complaint. */
int prompt_tokenize(const options *o, const loaded *l, prompt *p);

#endif
