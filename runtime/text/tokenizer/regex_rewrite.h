/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_REGEX_REWRITE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_REGEX_REWRITE_H

#include "runtime/files/gguf/gguf.h"
#include "runtime/text/tokenizer/regex_alphabet.h"
#include "tern/status.h"

/* A pattern of bytes, for PCRE2 without UTF, and the letters that these bytes are. */
typedef struct tern_regex_text {
    char *data; /* from malloc */
    size_t size;
    tern_regex_alphabet *alphabet; /* owned */
} tern_regex_text;

/*
 * Rewrites a pattern of Oniguruma for PCRE2 (regex.h says how). TERN_ERR_TOKENIZER_PRE for what has
 * no equal there, with a reason in why[TERN_REGEX_WHY_BYTES]; TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_regex_rewrite(tern_span pattern, tern_regex_text *out, char *why);

#endif
