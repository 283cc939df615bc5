/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_CHAT_STYLES_H
#define TERN_RUNTIME_TEXT_CHAT_STYLES_H

/* The chat format of a tokenizer. runtime/text/chat/formats.c has what each format writes. */

#include "runtime/text/tokenizer/internal.h"

/* X(ID, name) for each built-in format. */
#define TERN_CHAT_LIST(X)                                                                          \
    X(BITNET, "bitnet")                                                                            \
    X(CHATML, "chatml")                                                                            \
    X(LLAMA3, "llama3")                                                                            \
    X(ZEPHYR, "zephyr")                                                                            \
    X(FALCON3, "falcon3")                                                                          \
    X(FALCON_E, "falcon-e")                                                                        \
    X(LLAMA2, "llama2")                                                                            \
    X(QA, "qa")

typedef enum tern_chat_format_id {
    TERN_CHAT_UNKNOWN, /* no format was set for the tokenizer */
#define TERN_CHAT_ENUM(id, name) TERN_CHAT_##id,
    TERN_CHAT_LIST(TERN_CHAT_ENUM)
#undef TERN_CHAT_ENUM
        TERN_CHAT_COUNT,
    TERN_CHAT_TEMPLATE = TERN_CHAT_COUNT /* the template of the file */
} tern_chat_format_id;

/* "none" for TERN_CHAT_UNKNOWN. */
const char *tern_chat_name(tern_chat_format_id id);

/* All names, separated by spaces, as messages list them. */
const char *tern_chat_names(void);

/*
 * Returns the format that was set for the tokenizer, TERN_CHAT_TEMPLATE for a file's, or else
 * TERN_CHAT_TEMPLATE if it has a template that is run. Without a template, or with one that is
 * known to be wrong, returns the format that is known to be right.
 */
tern_chat_format_id tern_chat_of(const tern_tokenizer *t);

/* True if the tokenizer's template contains a text. */
bool tern_chat_template_has(const tern_tokenizer *t, const char *text);

#endif
