/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/sample/end_of_text.h"

bool tern_ends_text(const tern_end_of_text *e, int32_t token, tern_end *why) {
    if (e->tokenizer != NULL && tern_token_ends_text(e->tokenizer, token)) {
        *why = TERN_END_OF_TEXT;
        return true;
    }
    for (size_t i = 0; i < e->n_stop_tokens; i++)
        if (e->stop_tokens[i] == token) {
            *why = TERN_END_STOP_TOKEN;
            return true;
        }
    return false;
}
