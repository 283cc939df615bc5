/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/chat/formats.h"

#include <string.h>

#include "runtime/text/chat/styles.h"

/* The built-in chat formats (docs/chat.md). */

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
        tern_chat_put_bytes(b, escape > 0 ? (tern_span){"\n", 1} : (tern_span){rest.data, 1});
        at += escape > 0 ? escape : 1;
    }
}

static void build_chatml(tern_chat_builder *b, const tern_conversation *c) {
    const tern_span system = default_system(b->t);
    if (system.size > 0 && !is(c->messages[0].role, "system")) {
        tern_chat_put_control(b, "<|im_start|>");
        tern_chat_put_text(b, "system\n");
        put_literal(b, system);
        tern_chat_put_control(b, "<|im_end|>");
        tern_chat_put_text(b, "\n");
    }
    for (size_t i = 0; i < c->n; i++) {
        tern_chat_put_control(b, "<|im_start|>");
        tern_chat_put_role(b, c, i);
        tern_chat_put_text(b, "\n");
        tern_chat_put_content(b, c, i);
        tern_chat_put_control(b, "<|im_end|>");
        tern_chat_put_text(b, "\n");
    }
    if (!c->no_answer) {
        tern_chat_put_control(b, "<|im_start|>");
        tern_chat_put_text(b, "assistant\n");
    }
}

/* ---- the other formats ---- */

static void put_llama3_header(tern_chat_builder *b, const char *role) {
    tern_chat_put_control(b, "<|start_header_id|>");
    tern_chat_put_text(b, role);
    tern_chat_put_control(b, "<|end_header_id|>");
    tern_chat_put_text(b, "\n\n");
}

static void build_llama3(tern_chat_builder *b, const tern_conversation *c) {
    for (size_t i = 0; i < c->n; i++) {
        put_llama3_header(b, c->messages[i].role);
        tern_chat_put_trimmed(b, c, i);
        tern_chat_put_control(b, "<|eot_id|>");
    }
    if (!c->no_answer)
        put_llama3_header(b, "assistant");
}

static void build_bitnet(tern_chat_builder *b, const tern_conversation *c) {
    for (size_t i = 0; i < c->n; i++) {
        tern_chat_put_text(b, is(c->messages[i].role, "system")      ? "System: "
                              : is(c->messages[i].role, "assistant") ? "Assistant: "
                                                                     : "User: ");
        tern_chat_put_trimmed(b, c, i);
        tern_chat_put_control(b, "<|eot_id|>");
    }
    if (!c->no_answer)
        tern_chat_put_text(b, "Assistant: ");
}

static void put_role_line(tern_chat_builder *b, const char *role) {
    tern_chat_put_control(b, is(role, "system")      ? "<|system|>"
                             : is(role, "assistant") ? "<|assistant|>"
                                                     : "<|user|>");
    tern_chat_put_text(b, "\n");
}

/* Turns of a role line and a text; EOS after the assistant's, or after every one. */
static void build_role_lines(tern_chat_builder *b, const tern_conversation *c,
                             bool every_turn_ends) {
    for (size_t i = 0; i < c->n; i++) {
        put_role_line(b, c->messages[i].role);
        tern_chat_put_content(b, c, i);
        if (every_turn_ends || is(c->messages[i].role, "assistant"))
            tern_chat_put_id(b, b->t->eos);
        tern_chat_put_text(b, "\n");
    }
    if (!c->no_answer)
        put_role_line(b, "assistant");
}

static void build_falcon3(tern_chat_builder *b, const tern_conversation *c) {
    build_role_lines(b, c, false);
}

static void build_zephyr(tern_chat_builder *b, const tern_conversation *c) {
    build_role_lines(b, c, true);
}

static void build_falcon_e(tern_chat_builder *b, const tern_conversation *c) {
    for (size_t i = 0; i < c->n; i++) {
        tern_chat_put_role(b, c, i);
        tern_chat_put_content(b, c, i);
        tern_chat_put_text(b, "\n");
    }
    if (!c->no_answer)
        tern_chat_put_text(b, "assistant\n");
}

/* The system message goes inside the first user turn; each later exchange begins with BOS again. */
static void build_llama2(tern_chat_builder *b, const tern_conversation *c) {
    size_t system = c->n; /* none that is still to be written */
    bool answered = false;
    for (size_t i = 0; i < c->n; i++) {
        if (is(c->messages[i].role, "system")) {
            system = i;
        } else if (is(c->messages[i].role, "assistant")) {
            tern_chat_put_text(b, " ");
            tern_chat_put_trimmed(b, c, i);
            tern_chat_put_text(b, " ");
            tern_chat_put_id(b, b->t->eos);
            answered = true;
        } else {
            if (answered)
                tern_chat_put_id(b, b->t->bos);
            tern_chat_put_text(b, "[INST] ");
            if (system < c->n) {
                tern_chat_put_text(b, "<<SYS>>\n");
                tern_chat_put_content(b, c, system);
                tern_chat_put_text(b, "\n<</SYS>>\n\n");
                system = c->n;
            }
            tern_chat_put_trimmed(b, c, i);
            tern_chat_put_text(b, " [/INST]");
        }
    }
}

/* Questions and answers as plain text; the format has no place for a system message. */
static void build_qa(tern_chat_builder *b, const tern_conversation *c) {
    const bool ends = tern_chat_template_has(b->t, "eos_token");
    for (size_t i = 0; i < c->n; i++) {
        if (is(c->messages[i].role, "user")) {
            tern_chat_put_text(b, "Q: ");
            tern_chat_put_content(b, c, i);
            tern_chat_put_text(b, " A:");
        } else if (is(c->messages[i].role, "assistant")) {
            tern_chat_put_text(b, " ");
            tern_chat_put_content(b, c, i);
            if (ends)
                tern_chat_put_id(b, b->t->eos);
            else
                tern_chat_put_text(b, "\n");
        }
    }
}

/* ---- which format ---- */

typedef void build(tern_chat_builder *b, const tern_conversation *c);

static build *const builders[TERN_CHAT_COUNT] = {
    [TERN_CHAT_BITNET] = build_bitnet,   [TERN_CHAT_CHATML] = build_chatml,
    [TERN_CHAT_LLAMA3] = build_llama3,   [TERN_CHAT_ZEPHYR] = build_zephyr,
    [TERN_CHAT_FALCON3] = build_falcon3, [TERN_CHAT_FALCON_E] = build_falcon_e,
    [TERN_CHAT_LLAMA2] = build_llama2,   [TERN_CHAT_QA] = build_qa,
};

static tern_status no_place(tern_error *err, tern_chat_format_id format, size_t i,
                            const char *what) {
    return tern_fail(err, TERN_ERR_CHAT, "message %zu: the chat format '%s' has no place for %s", i,
                     tern_chat_name(format), what);
}

tern_status tern_chat_check(tern_chat_format_id format, const tern_conversation *c,
                            tern_error *err) {
    if (c->tools != NULL)
        return tern_fail(err, TERN_ERR_CHAT, "the chat format '%s' has no place for tools",
                         tern_chat_name(format));
    for (size_t i = 0; i < c->n; i++) {
        const tern_chat_message *m = &c->messages[i];
        if (is(m->role, "tool"))
            return no_place(err, format, i, "the role 'tool'");
        if (m->tool_calls != NULL)
            return no_place(err, format, i, "tool calls");
        if (!is(m->role, "system") && !is(m->role, "user") && !is(m->role, "assistant"))
            return tern_fail(err, TERN_ERR_CHAT,
                             "message %zu: role '%.32s' is not system, user or assistant", i,
                             m->role);
    }
    return TERN_OK;
}

void tern_chat_write(tern_chat_format_id format, tern_chat_builder *b, const tern_conversation *c) {
    if (b->t->add_bos)
        tern_chat_put_id(b, b->t->bos);
    builders[format](b, c);
    tern_chat_flush(b);
}
