/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_CHAT_STYLES_H
#define TERN_RUNTIME_TEXT_CHAT_STYLES_H

/* Which chat format a tokenizer has; what each format writes is in runtime/text/chat/formats.c. */

#include "runtime/text/tokenizer/internal.h"

/* X(ID, name): the formats, that are built in. */
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
    TERN_CHAT_UNKNOWN, /* of a tokenizer: none was set */
#define TERN_CHAT_ENUM(id, name) TERN_CHAT_##id,
    TERN_CHAT_LIST(TERN_CHAT_ENUM)
#undef TERN_CHAT_ENUM
        TERN_CHAT_COUNT,
    TERN_CHAT_TEMPLATE = TERN_CHAT_COUNT /* that of the file */
} tern_chat_format_id;

/* "none" for TERN_CHAT_UNKNOWN. */
const char *tern_chat_name(tern_chat_format_id id);

/* All names, separated by spaces, as messages list them. */
const char *tern_chat_names(void);

/*
 * The format that was set for the tokenizer, or else TERN_CHAT_TEMPLATE where it has a template
 * that is run. Without a template, and where the template is known to be wrong: the format that is
 * known to be right.
 */
tern_chat_format_id tern_chat_of(const tern_tokenizer *t);

/* Whether the tokenizer's template holds a text. */
bool tern_chat_template_has(const tern_tokenizer *t, const char *text);

#endif
