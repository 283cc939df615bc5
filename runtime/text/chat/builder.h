/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_CHAT_BUILDER_H
#define TERN_RUNTIME_TEXT_CHAT_BUILDER_H

/*
 * What the built-in chat formats write with. Control tokens go in by id; all else is encoded as
 * text, so that it cannot become one.
 */

#include "runtime/text/template/marked.h"
#include "runtime/text/tokenizer/internal.h"

typedef struct tern_chat_builder {
    const tern_tokenizer *t;
    tern_encoder *e;        /* NULL: the ids are not wanted */
    tern_marked_text *text; /* all so far, control tokens as their texts */
    size_t encoded;         /* bytes of it whose ids are in e; what follows is one fragment */
    tern_status status;     /* the first failure; later calls do nothing */
} tern_chat_builder;

void tern_chat_put_text(tern_chat_builder *b, const char *text);    /* of the format */
void tern_chat_put_bytes(tern_chat_builder *b, tern_span bytes);    /* the same */
void tern_chat_put_id(tern_chat_builder *b, int32_t id);            /* below 0: nothing */
void tern_chat_put_control(tern_chat_builder *b, const char *text); /* as text if it is no token */

/* The content of message i, and without the white space around it. */
void tern_chat_put_content(tern_chat_builder *b, const tern_conversation *c, size_t i);
void tern_chat_put_trimmed(tern_chat_builder *b, const tern_conversation *c, size_t i);

/* The role of message i, which is the message's too. */
void tern_chat_put_role(tern_chat_builder *b, const tern_conversation *c, size_t i);

/* A text with marks, in which the control tokens of the template are recognised. */
void tern_chat_put_marked(tern_chat_builder *b, const tern_marked_text *text);

/* Encodes what is left. */
void tern_chat_flush(tern_chat_builder *b);

#endif
