/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/chat/styles.h"

#include <string.h>

static const char *const names[] = {"none",
#define TERN_CHAT_NAME(id, name) name,
                                    TERN_CHAT_LIST(TERN_CHAT_NAME)
#undef TERN_CHAT_NAME
                                        "template"};

const char *tern_chat_name(tern_chat_format_id id) {
    return names[id];
}

const char *tern_chat_names(void) {
#define TERN_CHAT_WORD(id, name) name " "
    return TERN_CHAT_LIST(TERN_CHAT_WORD) "or auto";
#undef TERN_CHAT_WORD
}

bool tern_chat_template_has(const tern_tokenizer *t, const char *text) {
    return memmem(t->chat_template.data, t->chat_template.size, text, strlen(text)) != NULL;
}

/*
 * True for the template in the published file of the 2B model: it puts an end token before the
 * answer. The model was trained on the format of its own tokenizer configuration.
 */
static bool is_known_to_be_wrong(const tern_tokenizer *t) {
    return tern_chat_template_has(t, "BITNET") && tern_chat_template_has(t, "Assistant: ");
}

tern_chat_format_id tern_chat_of(const tern_tokenizer *t) {
    if (t->set_template != NULL)
        return TERN_CHAT_TEMPLATE;
    if (t->chat_format != TERN_CHAT_UNKNOWN)
        return (tern_chat_format_id)t->chat_format;
    const bool bitnet = t->chat_template.size == 0 ? t->bitnet : is_known_to_be_wrong(t);
    if (bitnet && tern_token_find_text(t, "<|eot_id|>") >= 0)
        return TERN_CHAT_BITNET;
    return t->chat_template.size > 0 ? TERN_CHAT_TEMPLATE : TERN_CHAT_UNKNOWN;
}
