/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_CHAT_FORMATS_H
#define TERN_RUNTIME_TEXT_CHAT_FORMATS_H

/* The chat formats that are built in (docs/chat.md). */

#include "runtime/text/chat/builder.h"
#include "runtime/text/chat/styles.h"

/* Whether a format has a place for everything; TERN_ERR_CHAT names what it has none for. */
TERN_MUST_CHECK tern_status tern_chat_check(tern_chat_format_id format, const tern_conversation *c,
                                            tern_error *err);

/* Writes a conversation that was checked; b->status is the outcome. */
void tern_chat_write(tern_chat_format_id format, tern_chat_builder *b, const tern_conversation *c);

#endif
