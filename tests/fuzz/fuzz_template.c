/* SPDX-License-Identifier: Apache-2.0 */
/* Chat templates of anybody: bytes before the first NUL are the template, those after it a message
 * and, after another one, tools. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/template/template.h"

static void require(bool condition) {
    if (!condition)
        abort();
}

/* The next part of the input, with a terminator, from malloc. */
static char *next_part(const uint8_t **data, size_t *size) {
    const uint8_t *end = *size > 0 ? memchr(*data, 0, *size) : NULL;
    const size_t n = end != NULL ? (size_t)(end - *data) : *size;
    char *part = malloc(n + 1);
    require(part != NULL);
    if (n > 0)
        memcpy(part, *data, n);
    part[n] = '\0';
    *data += end != NULL ? n + 1 : n;
    *size -= end != NULL ? n + 1 : n;
    return part;
}

static void check(const tern_marked_text *text) {
    size_t pending = 0;
    require(tern_utf8_repair(text->bytes, text->size, NULL, &pending) == text->size &&
            pending == 0);
    for (size_t i = 0; i < text->size; i++)
        require(text->marks[i] <= 2 || text->marks[i] == TERN_MARK_VARIABLES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *source = next_part(&data, &size), *content = next_part(&data, &size);
    char *tools = next_part(&data, &size);
    const tern_chat_message messages[] = {{.role = "user", .content = content},
                                          {.role = "assistant", .content = content}};
    const tern_conversation c = {
        .messages = messages, .n = 2, .tools = tools[0] != '\0' ? tools : NULL};
    const tern_template_token tokens[] = {{"bos_token", {"<s>", 3}}, {"eos_token", {"</s>", 4}}};
    const tern_template_input input = {.conversation = &c, .tokens = tokens, .n_tokens = 2};
    tern_marked_text text = {0};
    tern_error err = {0};
    const tern_span whole = {source, strlen(source)};
    if (tern_template_run(whole, &input, &text, &err) == TERN_OK)
        check(&text);
    else
        require(err.message[0] != '\0' && text.size == 0);
    (void)tern_template_check(whole, NULL);
    tern_marked_free(&text);
    free(source);
    free(content);
    free(tools);
    return 0;
}
