/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

/*
 * Takes the longest token that fits, again and again. This is for vocabularies that have neither
 * merges nor scores, and so give no better rule. A character without a token becomes its byte
 * tokens, else the unknown token, else nothing.
 */
static void emit_strange(tern_encoder *e, tern_span character) {
    for (size_t i = 0; i < character.size; i++) {
        const int32_t byte = e->t->byte_tokens[(unsigned char)character.data[i]];
        if (byte < 0) {
            if (e->t->unknown >= 0)
                tern_encoder_emit(e, e->t->unknown);
            return;
        }
    }
    for (size_t i = 0; i < character.size; i++)
        tern_encoder_emit(e, e->t->byte_tokens[(unsigned char)character.data[i]]);
}

tern_status tern_greedy_encode(tern_encoder *e, tern_span piece) {
    for (size_t at = 0; at < piece.size;) {
        const tern_span rest = {piece.data + at, piece.size - at};
        const int32_t id = tern_prefix_set_find(&e->t->greedy, rest);
        if (id >= 0) {
            tern_encoder_emit(e, id);
            at += e->t->tokens[id].size;
            continue;
        }
        const size_t size = tern_utf8_next(rest.data, rest.size).size;
        emit_strange(e, (tern_span){rest.data, size});
        at += size;
    }
    return TERN_OK;
}
