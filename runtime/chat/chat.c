/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/chat/styles.h"

/*
 * Chat formats, recognised rather than executed: a template is a program, the formats in use are
 * few, and the strings in one published file are wrong (docs/chat.md). Control tokens go in by id;
 * everything a user wrote is encoded as text, so it cannot become one.
 */

typedef struct tern_chat_builder {
    tern_encoder *e;
    char *text; /* not yet encoded: neighbouring template and message text is one fragment */
    size_t size, capacity;
    tern_status status; /* the first failure; later calls do nothing */
} tern_chat_builder;

static void put_bytes(tern_chat_builder *b, tern_span bytes) {
    if (b->status != TERN_OK || bytes.size == 0)
        return;
    if (bytes.size > TERN_TOKENIZER_MAX_TEXT || b->size > TERN_TOKENIZER_MAX_TEXT - bytes.size) {
        b->status = TERN_ERR_ARG;
        return;
    }
    const size_t need = b->size + bytes.size;
    if (need > b->capacity) {
        char *grown = realloc(b->text, 2 * need);
        if (grown == NULL) {
            b->status = TERN_ERR_NOMEM;
            return;
        }
        b->text = grown;
        b->capacity = 2 * need;
    }
    memcpy(b->text + b->size, bytes.data, bytes.size);
    b->size = need;
}

static void put_text(tern_chat_builder *b, const char *text) {
    put_bytes(b, (tern_span){text, strlen(text)});
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void put_trimmed(tern_chat_builder *b, const char *text) {
    size_t size = strlen(text);
    while (size > 0 && is_blank(text[size - 1]))
        size--;
    for (; size > 0 && is_blank(*text); size--)
        text++;
    put_bytes(b, (tern_span){text, size});
}

static void flush_text(tern_chat_builder *b) {
    if (b->status == TERN_OK && b->size > 0)
        b->status = tern_encode_text(b->e, (tern_span){b->text, b->size}, false);
    b->size = 0;
}

static void put_id(tern_chat_builder *b, int32_t id) {
    flush_text(b);
    if (b->status == TERN_OK && id >= 0)
        tern_encoder_emit(b->e, id);
}

/* A control token of the format; a vocabulary without it gets its text, as any other text. */
static void put_control(tern_chat_builder *b, const char *text) {
    const int32_t id = tern_token_find_text(b->e->t, text);
    if (id >= 0)
        put_id(b, id);
    else
        put_text(b, text);
}

static bool is(const char *role, const char *name) {
    return strcmp(role, name) == 0;
}

/* ---- ChatML ---- */

/* A line end as templates write it: the character itself or its escape; 0 when there is none. */
static size_t line_end_size(tern_span text) {
    if (text.size >= 1 && text.data[0] == '\n')
        return 1;
    return text.size >= 2 && memcmp(text.data, "\\n", 2) == 0 ? 2 : 0;
}

/*
 * The system message that a template supplies when a chat has none: literal text between
 * "<|im_start|>system", a line end and "<|im_end|>". Quotes or braces mean an expression instead.
 */
static tern_span default_system(const tern_tokenizer *t) {
    static const char head[] = "<|im_start|>system", tail[] = "<|im_end|>";
    tern_span rest = t->chat_template;
    for (;;) {
        const char *found = memmem(rest.data, rest.size, head, sizeof head - 1);
        if (found == NULL)
            return (tern_span){"", 0};
        rest.size -= (size_t)(found - rest.data) + sizeof head - 1;
        rest.data = found + sizeof head - 1;
        const size_t skip = line_end_size(rest);
        const char *start = rest.data + skip;
        const char *end = memmem(start, rest.size - skip, tail, sizeof tail - 1);
        if (skip == 0 || end == NULL)
            continue;
        size_t size = 0;
        while (start + size < end && strchr("'\"{}", start[size]) == NULL)
            size++;
        if (size > 0 && start + size == end)
            return (tern_span){start, size};
    }
}

/* Literal template text, with its escaped line ends made real. */
static void put_literal(tern_chat_builder *b, tern_span text) {
    for (size_t at = 0; at < text.size;) {
        const tern_span rest = {text.data + at, text.size - at};
        const size_t escape = line_end_size(rest);
        put_bytes(b, escape > 0 ? (tern_span){"\n", 1} : (tern_span){rest.data, 1});
        at += escape > 0 ? escape : 1;
    }
}

static void build_chatml(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    const tern_span system = default_system(b->e->t);
    if (system.size > 0 && !is(messages[0].role, "system")) {
        put_control(b, "<|im_start|>");
        put_text(b, "system\n");
        put_literal(b, system);
        put_control(b, "<|im_end|>");
        put_text(b, "\n");
    }
    for (size_t i = 0; i < n; i++) {
        put_control(b, "<|im_start|>");
        put_text(b, messages[i].role);
        put_text(b, "\n");
        put_text(b, messages[i].content);
        put_control(b, "<|im_end|>");
        put_text(b, "\n");
    }
    put_control(b, "<|im_start|>");
    put_text(b, "assistant\n");
}

/* ---- the other formats ---- */

static void put_llama3_header(tern_chat_builder *b, const char *role) {
    put_control(b, "<|start_header_id|>");
    put_text(b, role);
    put_control(b, "<|end_header_id|>");
    put_text(b, "\n\n");
}

static void build_llama3(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    for (size_t i = 0; i < n; i++) {
        put_llama3_header(b, messages[i].role);
        put_trimmed(b, messages[i].content);
        put_control(b, "<|eot_id|>");
    }
    put_llama3_header(b, "assistant");
}

static void build_bitnet(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    for (size_t i = 0; i < n; i++) {
        put_text(b, is(messages[i].role, "system")      ? "System: "
                    : is(messages[i].role, "assistant") ? "Assistant: "
                                                        : "User: ");
        put_trimmed(b, messages[i].content);
        put_control(b, "<|eot_id|>");
    }
    put_text(b, "Assistant: ");
}

static void put_role_line(tern_chat_builder *b, const char *role) {
    put_control(b, is(role, "system")      ? "<|system|>"
                   : is(role, "assistant") ? "<|assistant|>"
                                           : "<|user|>");
    put_text(b, "\n");
}

/* Turns of a role line and a text; EOS after the assistant's, or after every one. */
static void build_role_lines(tern_chat_builder *b, const tern_chat_message *messages, size_t n,
                             bool every_turn_ends) {
    for (size_t i = 0; i < n; i++) {
        put_role_line(b, messages[i].role);
        put_text(b, messages[i].content);
        if (every_turn_ends || is(messages[i].role, "assistant"))
            put_id(b, b->e->t->eos);
        put_text(b, "\n");
    }
    put_role_line(b, "assistant");
}

static void build_falcon3(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    build_role_lines(b, messages, n, false);
}

static void build_zephyr(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    build_role_lines(b, messages, n, true);
}

static void build_falcon_e(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    for (size_t i = 0; i < n; i++) {
        put_text(b, messages[i].role);
        put_text(b, messages[i].content);
        put_text(b, "\n");
    }
    put_text(b, "assistant\n");
}

/* The system message goes inside the first user turn; each later exchange begins with BOS again. */
static void build_llama2(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    const char *system = NULL;
    bool answered = false;
    for (size_t i = 0; i < n; i++) {
        if (is(messages[i].role, "system")) {
            system = messages[i].content;
        } else if (is(messages[i].role, "assistant")) {
            put_text(b, " ");
            put_trimmed(b, messages[i].content);
            put_text(b, " ");
            put_id(b, b->e->t->eos);
            answered = true;
        } else {
            if (answered)
                put_id(b, b->e->t->bos);
            put_text(b, "[INST] ");
            if (system != NULL) {
                put_text(b, "<<SYS>>\n");
                put_text(b, system);
                put_text(b, "\n<</SYS>>\n\n");
                system = NULL;
            }
            put_trimmed(b, messages[i].content);
            put_text(b, " [/INST]");
        }
    }
}

/* Questions and answers as plain text; the format has no place for a system message. */
static void build_qa(tern_chat_builder *b, const tern_chat_message *messages, size_t n) {
    const bool ends = tern_chat_template_has(b->e->t, "eos_token");
    for (size_t i = 0; i < n; i++) {
        if (is(messages[i].role, "user")) {
            put_text(b, "Q: ");
            put_text(b, messages[i].content);
            put_text(b, " A:");
        } else if (is(messages[i].role, "assistant")) {
            put_text(b, " ");
            put_text(b, messages[i].content);
            if (ends)
                put_id(b, b->e->t->eos);
            else
                put_text(b, "\n");
        }
    }
}

/* ---- which format ---- */

typedef void tern_chat_build(tern_chat_builder *b, const tern_chat_message *messages, size_t n);

static tern_chat_build *const builders[TERN_CHAT_COUNT] = {
    [TERN_CHAT_BITNET] = build_bitnet,   [TERN_CHAT_CHATML] = build_chatml,
    [TERN_CHAT_LLAMA3] = build_llama3,   [TERN_CHAT_ZEPHYR] = build_zephyr,
    [TERN_CHAT_FALCON3] = build_falcon3, [TERN_CHAT_FALCON_E] = build_falcon_e,
    [TERN_CHAT_LLAMA2] = build_llama2,   [TERN_CHAT_QA] = build_qa,
};

const char *tern_chat_format(const tern_tokenizer *t) {
    return tern_chat_name(tern_chat_recognise(t));
}

tern_status tern_tokenizer_set_chat_format(tern_tokenizer *t, const char *name, tern_error *err) {
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tokenizer_set_chat_format: NULL argument");
    tern_chat_format_id id = TERN_CHAT_BITNET;
    while (name != NULL && id < TERN_CHAT_COUNT && strcmp(tern_chat_name(id), name) != 0)
        id++;
    if (name != NULL && id == TERN_CHAT_COUNT)
        return tern_fail(err, TERN_ERR_NAME, "%s: chat format '%.32s' is none of: %s", t->file,
                         name, tern_chat_names());
    t->chat_format = name != NULL ? id : TERN_CHAT_UNKNOWN;
    return TERN_OK;
}

static tern_status check_messages(const tern_tokenizer *t, const tern_chat_message *messages,
                                  size_t n, tern_error *err) {
    if (messages == NULL && n > 0)
        return tern_fail(err, TERN_ERR_NULL, "%s: no messages", t->file);
    if (n == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "%s: a chat needs a message", t->file);
    for (size_t i = 0; i < n; i++) {
        const tern_chat_message *m = &messages[i];
        if (m->role == NULL || m->content == NULL)
            return tern_fail(err, TERN_ERR_NULL, "%s: message %zu has no role or no content",
                             t->file, i);
        if (!is(m->role, "system") && !is(m->role, "user") && !is(m->role, "assistant"))
            return tern_fail(err, TERN_ERR_ARG,
                             "%s: message %zu: role '%.32s' is not system, user or assistant",
                             t->file, i, m->role);
    }
    return TERN_OK;
}

tern_status tern_chat_tokenize(const tern_tokenizer *t, const tern_chat_message *messages,
                               size_t n_messages, int32_t *ids, size_t capacity, size_t *n,
                               tern_error *err) {
    if (t == NULL || (ids == NULL && capacity > 0) || n == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_chat_tokenize: NULL argument");
    const tern_status checked = check_messages(t, messages, n_messages, err);
    if (checked != TERN_OK)
        return checked;
    const tern_chat_format_id format = tern_chat_recognise(t);
    if (format == TERN_CHAT_UNKNOWN)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: the model has no chat format that is known here (%s)", t->file,
                         t->chat_template.size == 0 ? "no tokenizer.chat_template"
                                                    : "its tokenizer.chat_template is another");
    tern_encoder e = {.t = t, .ids = ids, .capacity = capacity};
    tern_chat_builder b = {.e = &e};
    if (t->add_bos)
        put_id(&b, t->bos);
    builders[format](&b, messages, n_messages);
    flush_text(&b);
    free(b.text);
    return tern_encoder_finish(&e, b.status, n, err);
}
