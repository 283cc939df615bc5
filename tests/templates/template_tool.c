/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs chat templates for tests in Python. Each line of standard input is {"template", "messages",
 * "tools", "variables", "no_answer", "tokens", "now"}. The answer to it is one line: {"text",
 * "marks"} with a number for each byte, or {"status", "error"}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/text.h"
#include "base/json_tree/write.h"
#include "runtime/text/template/template.h"

enum { MOST = 64 };

/* A member as JSON text; NULL if it is missing. The caller frees it. */
static char *dumped(const json_t *of, const char *name) {
    const json_t *v = json_object_get(of, name);
    return v == NULL || json_is_null(v) ? NULL : json_dump(v, (json_style){0});
}

static const char *text_of(const json_t *of, const char *name) {
    return json_string_value(json_object_get(of, name));
}

static void run(const json_t *job, const tern_conversation *c, text *out) {
    tern_template_token tokens[MOST];
    tern_template_input input = {.conversation = c, .tokens = tokens};
    const char *name;
    json_t *value;
    tern_marked_text whole = {0};
    tern_error err = {0};
    json_object_foreach(json_object_get(job, "tokens"), name, value) {
        tokens[input.n_tokens++] =
            (tern_template_token){name, {json_string_value(value), json_string_length(value)}};
    }
    input.now = json_integer_value(json_object_get(job, "now"));
    const json_t *source = json_object_get(job, "template");
    const tern_status status = tern_template_run(
        (tern_span){json_string_value(source), json_string_length(source)}, &input, &whole, &err);
    text_add(out, "{", 1);
    if (status == TERN_OK) {
        text_print(out, "\"text\":");
        text_quote(out, whole.bytes != NULL ? whole.bytes : "", whole.size);
        text_print(out, ",\"marks\":[");
        for (size_t i = 0; i < whole.size; i++)
            text_print(out, "%s%d", i > 0 ? "," : "", whole.marks[i]);
        text_print(out, "]");
    } else {
        text_print(out, "\"status\":%d", (int)status);
        text_string(out, "error", err.message);
    }
    text_print(out, "}\n");
    tern_marked_free(&whole);
}

static void run_line(const char *line, size_t size, text *out) {
    tern_error err = {0};
    tern_chat_message messages[MOST] = {{0}};
    char *calls[MOST];
    json_t *job = json_read(line, size, "standard input", &err);
    if (job == NULL) {
        fprintf(stderr, "%s\n", err.message);
        exit(2);
    }
    const json_t *list = json_object_get(job, "messages");
    char *tools = dumped(job, "tools"), *variables = dumped(job, "variables");
    const tern_conversation c = {.messages = messages,
                                 .n = json_array_size(list) < MOST ? json_array_size(list) : MOST,
                                 .tools = tools,
                                 .variables = variables,
                                 .no_answer = json_is_true(json_object_get(job, "no_answer"))};
    for (size_t i = 0; i < c.n; i++) {
        const json_t *m = json_array_get(list, i);
        calls[i] = dumped(m, "tool_calls");
        messages[i] = (tern_chat_message){.role = text_of(m, "role"),
                                          .content = text_of(m, "content"),
                                          .tool_calls = calls[i],
                                          .tool_call_id = text_of(m, "tool_call_id"),
                                          .name = text_of(m, "name")};
    }
    run(job, &c, out);
    for (size_t i = 0; i < c.n; i++)
        free(calls[i]);
    free(tools);
    free(variables);
    json_decref(job);
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        text out = {0};
        run_line(line, (size_t)n, &out);
        fwrite(out.bytes, 1, out.size, stdout);
        fflush(stdout);
        text_free(&out);
    }
    free(line);
    return 0;
}
