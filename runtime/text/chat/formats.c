/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/chat/formats.h"

#include <string.h>

/* Published templates trim the blanks of ASCII. */
#define TRIMMED "{{ m.content | trim(' \\t\\n\\v\\f\\r') }}"
#define EACH(turn) "{% for m in messages %}" turn "{% endfor %}"
#define ANSWER(head) "{% if add_generation_prompt %}" head "{% endif %}"

/* clang-format off: one turn a line */
static const char *const templates[TERN_CHAT_COUNT] = {
    [TERN_CHAT_BITNET] =
        EACH("{{ m.role | capitalize }}: " TRIMMED "<|eot_id|>") ANSWER("Assistant: "),

    [TERN_CHAT_CHATML] = "{% if default_system and messages[0].role != 'system' %}"
                         "<|im_start|>system\n{{ default_system }}<|im_end|>\n{% endif %}" EACH(
                             "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n")
                             ANSWER("<|im_start|>assistant\n"),

    [TERN_CHAT_LLAMA3] =
        EACH("<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n" TRIMMED "<|eot_id|>")
            ANSWER("<|start_header_id|>assistant<|end_header_id|>\n\n"),

    [TERN_CHAT_ZEPHYR] =
        EACH("<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n") ANSWER("<|assistant|>\n"),

    [TERN_CHAT_FALCON3] = /* no {% if %}: a line end right after a tag is dropped */
    EACH("<|{{ m.role }}|>\n{{ m.content }}{{ eos_token if m.role == 'assistant' }}\n")
        ANSWER("<|assistant|>\n"),

    [TERN_CHAT_FALCON_E] = EACH("{{ m.role }}{{ m.content }}\n") ANSWER("assistant\n"),

    /* The system message goes inside the next user turn; each later exchange begins with BOS. */
    [TERN_CHAT_LLAMA2] = "{% set now = namespace(system=none, answered=false) %}" EACH(
        "{% if m.role == 'system' %}{% set now.system = m.content %}"
        "{% elif m.role == 'assistant' %} " TRIMMED " {{ eos_token }}"
        "{% set now.answered = true %}"
        "{% else %}{{ bos_token if now.answered }}[INST] "
        "{% if now.system is not none %}<<SYS>>\n{{ now.system }}\n<</SYS>>\n\n"
        "{% set now.system = none %}{% endif %}" TRIMMED " [/INST]{% endif %}"),

    /* Questions and answers as plain text; there is no place for a system message. */
    [TERN_CHAT_QA] =
        EACH("{% if m.role == 'user' %}Q: {{ m.content }} A:"
             "{% elif m.role == 'assistant' %} {{ m.content }}{{ turn_end }}{% endif %}"),
};
/* clang-format on */

tern_span tern_chat_template(tern_chat_format_id format) {
    return (tern_span){templates[format], strlen(templates[format])};
}

static bool is(const char *role, const char *name) {
    return strcmp(role, name) == 0;
}

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
