/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_TEXT_FILE_H
#define TERN_TOOLS_MODEL_TEXT_FILE_H

/* A text to measure with: the file of --file, as tokens of a model. */

#include "tools/model/loader.h"

typedef struct text_file {
    const char *path;
    char *bytes; /* owned */
    size_t size;
    int32_t *ids; /* owned; with the tokens that the model's tokenizer puts around a text */
    size_t n;
} text_file;

/* EXIT_DONE, or the exit status after a complaint: no --file, no tokenizer, not readable. Zero-
 * initialise it; free in any case. */
int text_file_read(const options *o, const loaded *l, text_file *t);
void text_file_free(text_file *t);

#endif
