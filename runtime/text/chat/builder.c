/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/chat/builder.h"

#include <string.h>

static void put(tern_chat_builder *b, tern_span bytes, uint8_t mark) {
    if (b->status == TERN_OK)
        b->status = tern_marked_add(b->text, bytes, mark, TERN_TOKENIZER_MAX_TEXT);
}

void tern_chat_put_bytes(tern_chat_builder *b, tern_span bytes) {
    put(b, bytes, TERN_MARK_TEMPLATE);
}

void tern_chat_put_text(tern_chat_builder *b, const char *text) {
    tern_chat_put_bytes(b, (tern_span){text, strlen(text)});
}

void tern_chat_put_content(tern_chat_builder *b, const tern_conversation *c, size_t i) {
    const char *text = c->messages[i].content;
    put(b, (tern_span){text, strlen(text)}, tern_mark_of_message(i));
}

void tern_chat_put_role(tern_chat_builder *b, const tern_conversation *c, size_t i) {
    tern_chat_put_text(b, c->messages[i].role); /* one of three words */
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void tern_chat_put_trimmed(tern_chat_builder *b, const tern_conversation *c, size_t i) {
    const char *text = c->messages[i].content;
    size_t size = strlen(text);
    while (size > 0 && is_blank(text[size - 1]))
        size--;
    for (; size > 0 && is_blank(*text); size--)
        text++;
    put(b, (tern_span){text, size}, tern_mark_of_message(i));
}

void tern_chat_flush(tern_chat_builder *b) {
    const size_t n = b->text->size - b->encoded;
    if (b->e != NULL && b->status == TERN_OK && n > 0)
        b->status = tern_encode_text(b->e, (tern_span){b->text->bytes + b->encoded, n}, false);
    b->encoded = b->text->size;
}

void tern_chat_put_id(tern_chat_builder *b, int32_t id) {
    tern_chat_flush(b);
    if (b->status != TERN_OK || id < 0)
        return;
    tern_chat_put_bytes(b, b->t->tokens[id]);
    b->encoded = b->text->size;
    if (b->e != NULL)
        tern_encoder_emit(b->e, id);
}

void tern_chat_put_control(tern_chat_builder *b, const char *text) {
    const int32_t id = tern_token_find_text(b->t, text);
    if (id >= 0)
        tern_chat_put_id(b, id);
    else
        tern_chat_put_text(b, text);
}

void tern_chat_put_marked(tern_chat_builder *b, const tern_marked_text *text) {
    const tern_span bytes = {text->bytes, text->size};
    tern_chat_flush(b);
    if (b->status != TERN_OK || text->size == 0)
        return;
    b->status = tern_marked_add_marks(b->text, bytes, text->marks, TERN_TOKENIZER_MAX_TEXT);
    b->encoded = b->text->size;
    if (b->e != NULL && b->status == TERN_OK)
        b->status = tern_encode_marked(b->e, bytes, text->marks);
}
