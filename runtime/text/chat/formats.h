/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_CHAT_FORMATS_H
#define TERN_RUNTIME_TEXT_CHAT_FORMATS_H

/* The built-in chat formats (docs/chat.md), as templates like those in a model's file. */

#include "runtime/text/chat/styles.h"
#include "runtime/text/template/template.h"

/*
 * The template of a format. Besides the words that every template knows, it uses `turn_end`, which
 * ends an answer, and `default_system`, the system message of a chat that has none (may be "").
 */
tern_span tern_chat_template(tern_chat_format_id format);

/* Checks that a format has a place for everything; TERN_ERR_CHAT names what it has none for. */
TERN_MUST_CHECK tern_status tern_chat_check(tern_chat_format_id format, const tern_conversation *c,
                                            tern_error *err);

#endif
