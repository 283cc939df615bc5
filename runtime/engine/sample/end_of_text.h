/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SAMPLE_END_OF_TEXT_H
#define TERN_RUNTIME_ENGINE_SAMPLE_END_OF_TEXT_H

/* Tokens that end a text, and are not part of it. */

#include "tern/tern.h"

typedef struct tern_end_of_text {
    const tern_tokenizer *tokenizer; /* its end-of-text tokens count; NULL: none do */
    const int32_t *stop_tokens;      /* [n_stop_tokens] */
    size_t n_stop_tokens;
} tern_end_of_text;

/* True if the token ends the text; then *why is TERN_END_OF_TEXT or TERN_END_STOP_TOKEN. */
bool tern_ends_text(const tern_end_of_text *e, int32_t token, tern_end *why);

#endif
