/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/chat/styles.h"

#include <ctype.h>
#include <string.h>

enum { MOST = 4, LONGEST_MARK = 48 };

static const char *const names[] = {"none",
#define TERN_CHAT_NAME(id, name) name,
                                    TERN_CHAT_LIST(TERN_CHAT_NAME)
#undef TERN_CHAT_NAME
};

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

/* A template of a format: texts that must all be in it, one of `either` if there are any, and the
 * control tokens <|...|> that may be. The first that fits is taken. */
typedef struct template_kind {
    tern_chat_format_id format;
    const char *needs[MOST], *either[MOST];
    const char *marks; /* words */
} template_kind;

static const template_kind kinds[] = {
    /* The template inside the published file puts an end token before the answer: the trained
     * format is the one of the model's own tokenizer configuration, which capitalises roles. */
    {TERN_CHAT_BITNET, {"BITNET", "Assistant: "}, {NULL}, "<|eot_id|>"},
    {TERN_CHAT_BITNET,
     {"capitalize", "<|eot_id|>", "Assistant: "},
     {NULL},
     "<|eot_id|> <|begin_of_text|> <|end_of_text|>"},
    {TERN_CHAT_CHATML,
     {"<|im_start|>", "<|im_end|>", "assistant"},
     {NULL},
     "<|im_start|> <|im_end|> <|endoftext|> <|vision_start|> <|vision_end|> <|image_pad|> "
     "<|video_pad|>"},
    {TERN_CHAT_LLAMA3,
     {"<|start_header_id|>", "<|eot_id|>"},
     {"<|end_header_id|>\n\n", "<|end_header_id|>\\n\\n"},
     "<|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|> <|python_tag|> <|image|> "
     "<|begin_of_text|> <|end_of_text|>"},
    /* As falcon3, but the user's message ends with the end token too. */
    {TERN_CHAT_ZEPHYR,
     {"<|assistant|>"},
     {"'<|user|>\n' + message['content'] + eos_token",
      "'<|user|>\\n' + message['content'] + eos_token"},
     "<|system|> <|user|> <|assistant|> <|endoftext|>"},
    {TERN_CHAT_FALCON3,
     {"<|user|>", "<|assistant|>"},
     {"eos_token", "<|endoftext|>"},
     "<|system|> <|user|> <|assistant|> <|endoftext|>"},
    {TERN_CHAT_LLAMA2, {"[INST]", "[/INST]", "<<SYS>>"}, {NULL}, ""},
    {TERN_CHAT_QA, {"'Q: '", "' A:'"}, {NULL}, ""},
};

/* Marks of formats that are none of these. */
static const char *const foreign[] = {"[gMASK]",         "[AVAILABLE_TOOLS]", "[TOOL_CALLS]",
                                      "[SYSTEM_PROMPT]", "<start_of_turn>",   "<\xef\xbd\x9c"};

static bool is_foreign(const tern_tokenizer *t) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (tern_chat_template_has(t, foreign[i]))
            return true;
    return false;
}

/* Bytes of a control token "<|name|>" at the start of text[size]; 0: there is none. */
static size_t mark_size(const char *text, size_t size) {
    if (size < 5 || memcmp(text, "<|", 2) != 0)
        return 0;
    size_t n = 2;
    while (n < size && n < LONGEST_MARK && (isalnum((unsigned char)text[n]) || text[n] == '_'))
        n++;
    return n > 2 && n + 2 <= size && memcmp(text + n, "|>", 2) == 0 ? n + 2 : 0;
}

/* Whether each control token of the template is one of the words. */
static bool only_marks(const tern_tokenizer *t, const char *words) {
    const tern_span text = t->chat_template;
    for (size_t at = 0; at < text.size; at++) {
        const size_t n = mark_size(text.data + at, text.size - at);
        if (n > 0 && memmem(words, strlen(words), text.data + at, n) == NULL)
            return false;
    }
    return true;
}

static bool fits(const tern_tokenizer *t, const template_kind *k) {
    bool either = k->either[0] == NULL;
    for (int i = 0; i < MOST; i++) {
        if (k->needs[i] != NULL && !tern_chat_template_has(t, k->needs[i]))
            return false;
        either = either || (k->either[i] != NULL && tern_chat_template_has(t, k->either[i]));
    }
    if (k->format == TERN_CHAT_BITNET && tern_token_find_text(t, "<|eot_id|>") < 0)
        return false;
    return either && only_marks(t, k->marks);
}

tern_chat_format_id tern_chat_recognise(const tern_tokenizer *t) {
    if (t->chat_format != TERN_CHAT_UNKNOWN)
        return (tern_chat_format_id)t->chat_format;
    if (t->chat_template.size == 0)
        return t->bitnet && tern_token_find_text(t, "<|eot_id|>") >= 0 ? TERN_CHAT_BITNET
                                                                       : TERN_CHAT_UNKNOWN;
    if (is_foreign(t))
        return TERN_CHAT_UNKNOWN;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (fits(t, &kinds[i]))
            return kinds[i].format;
    /* The family's templates have no mark of their own. */
    return strcmp(t->pre, "falcon_e") == 0 && only_marks(t, "<|endoftext|>") ? TERN_CHAT_FALCON_E
                                                                             : TERN_CHAT_UNKNOWN;
}
