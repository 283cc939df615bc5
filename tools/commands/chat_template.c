/* SPDX-License-Identifier: Apache-2.0 */
/* tern chat-template: shows what a model would see of a conversation. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/write.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/commands/commands.h"
#include "tools/load/loader.h"
#include "tools/prompt/prompt.h"

static const size_t input_limit = (size_t)1 << 26; /* bytes */

/* A conversation, as read from a file. */
typedef struct talk {
    const char *path;
    json_t *root;
    tern_chat_message *messages; /* texts are in root and calls */
    char **calls;                /* [n] tool calls as JSON, or NULL */
    char *tools, *variables;
    tern_conversation c;
} talk;

/* ---- input ----------------------------------------------------------------------------------- */

/* Reads a text of a message; false after a complaint if the member is not a text. */
static bool read_text(const talk *t, size_t i, const json_t *message, const char *name,
                      const char **out) {
    const json_t *text = json_object_get(message, name);
    *out = json_string_value(text);
    if (*out != NULL || text == NULL || json_is_null(text))
        return true;
    complain("%s: message %zu: %s is not text", t->path, i, name);
    return false;
}

static bool read_message(talk *t, size_t i, const json_t *message) {
    tern_chat_message *m = &t->messages[i];
    const json_t *calls = json_object_get(message, "tool_calls");
    if (!read_text(t, i, message, "role", &m->role) ||
        !read_text(t, i, message, "content", &m->content) ||
        !read_text(t, i, message, "name", &m->name) ||
        !read_text(t, i, message, "tool_call_id", &m->tool_call_id))
        return false;
    if (json_array_size(calls) > 0) {
        t->calls[i] = json_dump(calls, (json_style){0});
        m->tool_calls = t->calls[i];
    }
    return true;
}

/* Reads a member as JSON text, NULL if it is missing; false after a complaint. */
static bool read_json(const talk *t, const char *name, char **out) {
    const json_t *v = json_object_get(t->root, name);
    *out = v != NULL && !json_is_null(v) ? json_dump(v, (json_style){0}) : NULL;
    if (*out != NULL || v == NULL || json_is_null(v))
        return true;
    complain("%s: no memory for its %s", t->path, name);
    return false;
}

static int read_talk(talk *t) {
    const json_t *list = json_is_array(t->root) ? t->root : json_object_get(t->root, "messages");
    const size_t n = json_array_size(list);
    const json_t *begins = json_object_get(t->root, "add_generation_prompt");
    if (n == 0) {
        complain("%s: it is neither an array of messages nor an object with one as \"messages\"",
                 t->path);
        return EXIT_FAILED;
    }
    t->messages = calloc(n, sizeof *t->messages);
    t->calls = calloc(n, sizeof *t->calls);
    if (t->messages == NULL || t->calls == NULL) {
        complain("%s: no memory for %zu messages", t->path, n);
        return EXIT_FAILED;
    }
    t->c = (tern_conversation){.messages = t->messages, .n = n};
    t->c.no_answer = json_is_boolean(begins) && !json_is_true(begins);
    for (size_t i = 0; i < n; i++)
        if (!read_message(t, i, json_array_get(list, i)))
            return EXIT_FAILED;
    if (!read_json(t, "tools", &t->tools) || !read_json(t, "variables", &t->variables))
        return EXIT_FAILED;
    t->c.tools = t->tools;
    t->c.variables = t->variables;
    return EXIT_DONE;
}

static int open_talk(const options *o, talk *t) {
    char *bytes;
    size_t size;
    tern_error err = {0};
    t->path = options_text(o, OPT_MESSAGES);
    if (t->path == NULL) {
        complain("no messages: use --messages FILE, or --messages - for a pipe");
        return EXIT_USAGE;
    }
    const int status = file_read(t->path, input_limit, &bytes, &size);
    if (status != EXIT_DONE)
        return status;
    t->root = json_read(bytes, size, t->path, &err);
    free(bytes);
    return t->root != NULL ? read_talk(t) : complain_error(&err);
}

static void close_talk(talk *t) {
    for (size_t i = 0; t->calls != NULL && i < t->c.n; i++)
        free(t->calls[i]);
    free(t->calls);
    free(t->messages);
    free(t->tools);
    free(t->variables);
    json_decref(t->root);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Pieces with the same origin: the text, and as "from" a message's number, "template" or
 * "variables". */
static json_t *parts_json(const tern_rendering *r) {
    json_t *parts = json_array();
    for (size_t at = 0, end; at < r->size; at = end) {
        const int mark = r->marks[at];
        for (end = at; end < r->size && r->marks[end] == mark;)
            end++;
        json_t *from = mark == TERN_MARK_TEMPLATE    ? json_string("template")
                       : mark == TERN_MARK_VARIABLES ? json_string("variables")
                                                     : json_integer(mark - 1);
        json_array_append_new(parts, json_pack("{s:o, s:o}", "from", from, "text",
                                               json_text(r->text + at, end - at)));
    }
    return parts;
}

static int print_json(const tern_tokenizer *t, const tern_rendering *r) {
    json_t *ids = json_array(), *root = json_object();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(ids, json_integer(r->ids[i]));
    json_object_set_new(root, "chat_format", json_string(tern_chat_format(t)));
    json_object_set_new(root, "text", json_text(r->text, r->size));
    json_object_set_new(root, "tokens", ids);
    json_object_set_new(root, "parts", parts_json(r));
    return json_print(root);
}

static int print_result(const options *o, const tern_tokenizer *t, const tern_rendering *r) {
    if (options_switch(o, OPT_JSON))
        return print_json(t, r);
    if (!options_switch(o, OPT_IDS)) {
        out_write(r->text, r->size);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < r->n; i++)
        out_print("%s%" PRId32, i > 0 ? " " : "", r->ids[i]);
    out_print("\n");
    return EXIT_DONE;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int show(const options *o, tern_tokenizer *t, const tern_conversation *c) {
    tern_rendering r = {0};
    tern_error err = {0};
    const char *format = params_chat_format(o);
    if (tern_tokenizer_set_chat_format(t, format, &err) != TERN_OK ||
        tern_conversation_render(t, c, &r, &err) != TERN_OK)
        return prompt_complain(t, &err);
    prompt_tell_unseen(c, r.unseen);
    const int status = print_result(o, t, &r);
    tern_rendering_free(&r);
    return status;
}

int cmd_chat_template(const options *o) {
    talk t = {0};
    tern_tokenizer *tokenizer = NULL;
    if (options_switch(o, OPT_IDS) && options_switch(o, OPT_JSON)) {
        complain("--json has the ids already; --ids cannot be added");
        return EXIT_USAGE;
    }
    int status = open_talk(o, &t);
    if (status == EXIT_DONE)
        status = loader_open_tokenizer(o, &tokenizer);
    if (status == EXIT_DONE)
        status = show(o, tokenizer, &t.c);
    tern_tokenizer_free(&tokenizer);
    close_talk(&t);
    return status;
}
