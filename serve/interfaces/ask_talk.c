/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations in the dialects of three interfaces. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/interfaces/ask.h"
#include "serve/interfaces/history.h"
#include "serve/interfaces/untold.h"

typedef struct talk_dialect {
    const char *field;    /* the field with the messages */
    const char *system;   /* the field with the system's text; NULL: there is none */
    const char *parts[3]; /* types of parts that are text */
    bool items;           /* the field may be a text; elements have a type, which need not be
                             "message" */
    bool prefill;         /* a last message of the assistant is the beginning of the answer */
} talk_dialect;

static const talk_dialect chat_dialect = {.field = "messages", .parts = {"text"}};
static const talk_dialect message_dialect = {
    .field = "messages", .system = "system", .parts = {"text"}, .prefill = true};
static const talk_dialect response_dialect = {.field = "input",
                                              .system = "instructions",
                                              .parts = {"input_text", "output_text", "text"},
                                              .items = true};

static const talk_dialect *dialect_of(ask_kind kind) {
    return kind == ASK_MESSAGE    ? &message_dialect
           : kind == ASK_RESPONSE ? &response_dialect
                                  : &chat_dialect;
}

/* State while a body is read. */
typedef struct talk {
    const talk_dialect *dialect;
    ask *a;
    history history;
    text thought; /* of items that come before the assistant's message */
    refusal *r;
} talk;

enum { PLACE_BYTES = 96 }; /* for the name of a place in a body */

/* ---- contents -------------------------------------------------------------------------------- */

static bool is_text_part(const talk_dialect *dialect, const char *type) {
    for (size_t i = 0; i < 3 && type != NULL && dialect->parts[i] != NULL; i++)
        if (strcmp(type, dialect->parts[i]) == 0)
            return true;
    return false;
}

static const char *type_of(const json_t *part) {
    return json_string_value(json_object_get(part, "type"));
}

static bool is_type(const json_t *part, const char *type) {
    const char *given = type_of(part);
    return given != NULL && strcmp(given, type) == 0;
}

static bool is_picture(const json_t *part) {
    static const char *const types[] = {"image", "image_url", "input_image"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_type(part, types[i]))
            return true;
    return false;
}

/* Adds words to what a message of the assistant thought. */
static bool add_thought(talk *t, tern_chat_message *m, const char *words) {
    text *out = &t->history.texts[m - t->history.list].thought;
    text_add(out, "\n", out->size > 0);
    text_add(out, words, strlen(words));
    m->reasoning = out->bytes;
    return !out->failed || refuse(t->r, 503, t->dialect->field, "no memory for the messages");
}

/* Appends a part of text to a message, on a new line if it is not the first. */
static bool join_part(talk *t, tern_chat_message *m, const json_t *part, const char *place,
                      size_t i) {
    text *out = &t->history.texts[m - t->history.list].content;
    const json_t *words = json_object_get(part, "text");
    if (is_picture(part))
        return refuse(t->r, 400, t->dialect->field,
                      "%s[%zu]: this model does not support images: it reads text only", place, i);
    if (!is_text_part(t->dialect, type_of(part)) || !json_is_string(words))
        return refuse(t->r, 400, t->dialect->field,
                      "%s[%zu]: only parts {\"type\": \"%s\", \"text\": ...} are understood", place,
                      i, t->dialect->parts[0]);
    text_add(out, "\n", m->content != NULL);
    text_add(out, json_string_value(words), json_string_length(words));
    m->content = out->bytes;
    return !out->failed || refuse(t->r, 503, t->dialect->field, "no memory for the messages");
}

/* Sets what a message says: a text or parts of text; `place` names it. */
static bool set_content(talk *t, tern_chat_message *m, const json_t *content, const char *place) {
    if (m == NULL)
        return false;
    if (json_is_string(content)) {
        m->content = json_string_value(content);
        return true;
    }
    if (!json_is_array(content))
        return refuse(t->r, 400, t->dialect->field, "%s is neither a text nor an array of parts",
                      place);
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!join_part(t, m, json_array_get(content, i), place, i))
            return false;
    m->content = m->content != NULL ? m->content : "";
    return true;
}

/* Returns a text that a call or its answer must have; NULL after a refusal. */
static const char *text_of(const talk *t, const json_t *object, const char *name,
                           const char *place) {
    const char *given = json_string_value(json_object_get(object, name));
    if (given == NULL || given[0] == '\0') {
        (void)refuse(t->r, 400, t->dialect->field, "%s.%s must be a text that is not empty", place,
                     name);
        return NULL;
    }
    return given;
}

static bool call_by_object(talk *t, const char *id, const char *name, const json_t *arguments,
                           const char *place) {
    char *words = json_dump(arguments, (json_style){0});
    const bool called = words != NULL
                            ? history_call_tool(&t->history, id, name, words, strlen(words), place)
                            : refuse(t->r, 503, t->dialect->field, "no memory for the messages");
    free(words);
    return called;
}

/* Adds a call whose arguments are a text, which may be any, or an object. */
static bool call_by_text(talk *t, const char *id, const json_t *function, const char *place) {
    const char *name = id != NULL ? text_of(t, function, "name", place) : NULL;
    const json_t *arguments = json_object_get(function, "arguments");
    if (name == NULL)
        return false;
    if (json_is_object(arguments))
        return call_by_object(t, id, name, arguments, place);
    if (!json_is_string(arguments))
        return refuse(t->r, 400, t->dialect->field, "%s.arguments must be a text", place);
    return history_call_tool(&t->history, id, name, json_string_value(arguments),
                             json_string_length(arguments), place);
}

/* ---- chats ----------------------------------------------------------------------------------- */

static bool read_calls(talk *t, const json_t *calls, size_t i) {
    char place[PLACE_BYTES];
    for (size_t k = 0; k < json_array_size(calls); k++) {
        const json_t *call = json_array_get(calls, k);
        (void)snprintf(place, sizeof place, "%s[%zu].tool_calls[%zu]", t->dialect->field, i, k);
        if (!is_type(call, "function"))
            return refuse(t->r, 400, t->dialect->field, "%s.type is not \"function\"", place);
        const char *id = text_of(t, call, "id", place);
        (void)snprintf(place, sizeof place, "%s[%zu].tool_calls[%zu].function", t->dialect->field,
                       i, k);
        if (!call_by_text(t, id, json_object_get(call, "function"), place))
            return false;
    }
    return json_is_array(calls) ||
           refuse(t->r, 400, t->dialect->field, "%s[%zu].tool_calls is not an array",
                  t->dialect->field, i);
}

/* Returns the role under which a template gets a message; NULL after a refusal. Chats may have any:
 * the template decides. */
static const char *role_of(const talk *t, const json_t *message, size_t i) {
    static const char *const roles[] = {"user", "assistant", "system"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t k = 0; role != NULL && k < sizeof roles / sizeof *roles; k++)
        if (strcmp(role, roles[k]) == 0)
            return roles[k];
    if (role != NULL && strcmp(role, "developer") == 0)
        return roles[2];
    if (role != NULL && role[0] != '\0' && t->dialect == &chat_dialect)
        return role;
    (void)refuse(t->r, 400, t->dialect->field, "%s[%zu].role is not %s", t->dialect->field, i,
                 t->dialect == &chat_dialect ? "a text, such as system, user, assistant or tool"
                                             : "system, developer, user or assistant");
    return NULL;
}

static bool is_tool(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role != NULL && strcmp(role, "tool") == 0;
}

static bool read_tool(talk *t, const json_t *message, size_t i) {
    char place[PLACE_BYTES];
    (void)snprintf(place, sizeof place, "%s[%zu]", t->dialect->field, i);
    const char *id = text_of(t, message, "tool_call_id", place);
    tern_chat_message *m = id != NULL ? history_answer(&t->history, id, place) : NULL;
    (void)snprintf(place, sizeof place, "%s[%zu].content", t->dialect->field, i);
    return set_content(t, m, json_object_get(message, "content"), place);
}

/* Sets what the assistant thought before this message, under the name that the client uses. */
static void set_thought(tern_chat_message *m, const json_t *message) {
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};
    for (size_t i = 0; i < sizeof names / sizeof *names && m->reasoning == NULL; i++)
        m->reasoning = json_string_value(json_object_get(message, names[i]));
}

/* Gives the thoughts that came as items of their own to the assistant's message after them. */
static bool settle_thought(talk *t, tern_chat_message *m) {
    const bool assistant = strcmp(m->role, "assistant") == 0;
    const bool sound = !assistant || t->thought.size == 0 || add_thought(t, m, t->thought.bytes);
    text_clear(&t->thought);
    return sound;
}

/* Reads a message with a role. Calls may replace its content. */
static bool read_said(talk *t, const json_t *message, size_t i) {
    char place[PLACE_BYTES];
    const json_t *content = json_object_get(message, "content");
    const json_t *calls = json_object_get(message, "tool_calls");
    const bool none = calls == NULL || json_is_null(calls) ||
                      (json_is_array(calls) && json_array_size(calls) == 0);
    const char *role = role_of(t, message, i);
    if (role == NULL)
        return false;
    (void)snprintf(place, sizeof place, "%s[%zu]", t->dialect->field, i);
    tern_chat_message *m = history_add(&t->history, role, place);
    if (m == NULL || !settle_thought(t, m))
        return false;
    if (t->dialect == &chat_dialect && strcmp(role, "assistant") == 0)
        set_thought(m, message);
    (void)snprintf(place, sizeof place, "%s[%zu].content", t->dialect->field, i);
    if (none)
        return set_content(t, m, content, place);
    if (t->dialect != &chat_dialect || strcmp(role, "assistant") != 0)
        return refuse(t->r, 400, t->dialect->field, "%s[%zu].tool_calls: only %s has calls",
                      t->dialect->field, i,
                      t->dialect == &chat_dialect ? "the assistant" : "an item of its own");
    const bool silent = content == NULL || json_is_null(content);
    return (silent || set_content(t, m, content, place)) && read_calls(t, calls, i);
}

static bool read_chat(talk *t, const json_t *message, size_t i) {
    return is_tool(message) ? read_tool(t, message, i) : read_said(t, message, i);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Reads the answer to a call. It may be empty. */
static bool read_result(talk *t, const json_t *part, const char *place) {
    char inner[2 * PLACE_BYTES];
    const json_t *content = json_object_get(part, "content");
    const char *id = text_of(t, part, "tool_use_id", place);
    tern_chat_message *m = id != NULL ? history_answer(&t->history, id, place) : NULL;
    (void)snprintf(inner, sizeof inner, "%s.content", place);
    if (m == NULL || (content != NULL && !json_is_null(content)))
        return set_content(t, m, content, inner);
    m->content = "";
    return true;
}

static bool read_use(talk *t, const json_t *part, const char *place) {
    const json_t *input = json_object_get(part, "input");
    const char *id = text_of(t, part, "id", place);
    const char *name = id != NULL ? text_of(t, part, "name", place) : NULL;
    if (name == NULL)
        return false;
    if (!json_is_object(input))
        return refuse(t->r, 400, t->dialect->field, "%s.input is not an object", place);
    return call_by_object(t, id, name, input, place);
}

/* Reads one part of a message. Texts go to the message *m; NULL: a new one begins. */
static bool read_part(talk *t, const char *role, const json_t *part, const char *place, size_t k,
                      tern_chat_message **m) {
    char inner[PLACE_BYTES + 32];
    const bool user = strcmp(role, "user") == 0;
    (void)snprintf(inner, sizeof inner, "%s[%zu]", place, k);
    if (user && is_type(part, "tool_result")) {
        *m = NULL;
        return read_result(t, part, inner);
    }
    *m = *m != NULL ? *m : history_add(&t->history, role, inner);
    if (*m == NULL)
        return false;
    if (!user && is_type(part, "tool_use"))
        return read_use(t, part, inner);
    if (!user && is_type(part, "redacted_thinking"))
        return true;
    if (!user && is_type(part, "thinking")) {
        const char *words = json_string_value(json_object_get(part, "thinking"));
        return words == NULL || add_thought(t, *m, words);
    }
    return join_part(t, *m, part, place, k);
}

/* Reads the results among the parts of a message, or all other parts. Results come first wherever
 * they stand, since each answers a call before it. */
static bool read_parts(talk *t, const char *role, const json_t *content, const char *place,
                       bool results) {
    const bool user = strcmp(role, "user") == 0;
    tern_chat_message *m = NULL;
    for (size_t k = 0; k < json_array_size(content); k++) {
        const json_t *part = json_array_get(content, k);
        if ((user && is_type(part, "tool_result")) == results &&
            !read_part(t, role, part, place, k, &m))
            return false;
    }
    if (m != NULL && m->content == NULL && t->history.texts[m - t->history.list].calls.size == 0)
        m->content = "";
    return true;
}

static bool read_message(talk *t, const json_t *message, size_t i) {
    char place[PLACE_BYTES];
    const json_t *content = json_object_get(message, "content");
    const char *role = role_of(t, message, i);
    if (role == NULL)
        return false;
    (void)snprintf(place, sizeof place, "%s[%zu].content", t->dialect->field, i);
    if (json_array_size(content) == 0)
        return set_content(t, history_add(&t->history, role, place), content, place);
    return read_parts(t, role, content, place, true) && read_parts(t, role, content, place, false);
}

/* ---- responses ------------------------------------------------------------------------------- */

/* Reads a call. Calls that follow each other or a text of the assistant join its message. */
static bool read_call_item(talk *t, const json_t *item, const char *place) {
    const char *id = text_of(t, item, "call_id", place);
    if (id == NULL)
        return false;
    if (!history_may_call(&t->history) && history_add(&t->history, "assistant", place) == NULL)
        return false;
    if (!settle_thought(t, &t->history.list[t->history.n - 1]))
        return false;
    if (!is_type(item, "custom_tool_call"))
        return call_by_text(t, id, item, place);
    const char *name = text_of(t, item, "name", place);
    const char *input = json_string_value(json_object_get(item, "input"));
    input = input != NULL ? input : "";
    return name != NULL && history_call_tool(&t->history, id, name, input, strlen(input), place);
}

/* Reads what the model thought: its words, or else their summary. */
static bool read_reasoning_item(talk *t, const json_t *item) {
    const json_t *list = json_object_get(item, "content");
    if (json_array_size(list) == 0)
        list = json_object_get(item, "summary");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *words = json_string_value(json_object_get(json_array_get(list, i), "text"));
        text_print(&t->thought, "%s%s", t->thought.size > 0 ? "\n" : "",
                   words != NULL ? words : "");
    }
    return !t->thought.failed || refuse(t->r, 503, "input", "no memory for the messages");
}

/* True for items about tools that the interface's own server runs. They hold nothing that the model
 * would read. */
static bool is_foreign_item(const json_t *item) {
    static const char *const types[] = {
        "web_search_call", "file_search_call",     "code_interpreter_call", "image_generation_call",
        "mcp_list_tools",  "mcp_approval_request", "mcp_approval_response"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_type(item, types[i]))
            return true;
    return false;
}

static bool leave_out(talk *t, const json_t *item) {
    char name[64];
    (void)snprintf(name, sizeof name, "input.%.50s", type_of(item));
    ask_note_ignored(t->a, name);
    return true;
}

static bool read_output_item(talk *t, const json_t *item, const char *place) {
    char inner[PLACE_BYTES + 16];
    const char *id = text_of(t, item, "call_id", place);
    (void)snprintf(inner, sizeof inner, "%s.output", place);
    return set_content(t, id != NULL ? history_answer(&t->history, id, place) : NULL,
                       json_object_get(item, "output"), inner);
}

static bool read_item(talk *t, const json_t *item, size_t i) {
    char place[PLACE_BYTES];
    const json_t *type = json_object_get(item, "type");
    (void)snprintf(place, sizeof place, "%s[%zu]", t->dialect->field, i);
    if (is_type(item, "function_call") || is_type(item, "custom_tool_call"))
        return read_call_item(t, item, place);
    if (is_type(item, "function_call_output") || is_type(item, "custom_tool_call_output"))
        return read_output_item(t, item, place);
    if (is_type(item, "reasoning"))
        return read_reasoning_item(t, item);
    if (is_foreign_item(item))
        return leave_out(t, item);
    if (is_type(item, "item_reference"))
        return refuse(t->r, 400, "input",
                      "%s: nothing is kept by this server: send the item itself", place);
    if (type != NULL && !is_type(item, "message"))
        return refuse(t->r, 400, "input",
                      "%s.type: messages, calls of functions, their outputs and reasoning are "
                      "supported",
                      place);
    return read_said(t, item, i);
}

/* ---- all of it ------------------------------------------------------------------------------- */

typedef bool read_one(talk *t, const json_t *message, size_t i);

static bool read_talk(talk *t, const json_t *system, const json_t *messages) {
    read_one *read = t->dialect == &chat_dialect       ? read_chat
                     : t->dialect == &response_dialect ? read_item
                                                       : read_message;
    history *h = &t->history;
    bool sound = true;
    if (system != NULL && !json_is_null(system)) {
        const char *name = t->dialect->system;
        sound = set_content(t, history_add(h, "system", name), system, name);
        if (!sound && t->r->status == 400)
            (void)snprintf(t->r->param, sizeof t->r->param, "%s", name);
    }
    if (t->dialect->items && json_is_string(messages))
        return sound &&
               set_content(t, history_add(h, "user", "input"), messages, t->dialect->field);
    for (size_t i = 0; i < json_array_size(messages) && sound; i++)
        sound = read(t, json_array_get(messages, i), i);
    return sound && history_close(h);
}

/* Finds out if the answer goes on from the last message. One without text is left out. False after
 * a refusal. */
static bool find_beginning(ask *a, talk *t) {
    history *h = &t->history;
    a->continues = a->continues || (t->dialect->prefill && history_may_call(h));
    if (!a->continues)
        return true;
    const tern_chat_message *last = h->n > 0 ? &h->list[h->n - 1] : NULL;
    if (!history_may_call(h) || last->tool_calls != NULL)
        return refuse(
            t->r, 400, t->dialect->field,
            "the last message must be a text of the assistant for an answer to go on from "
            "it");
    if (json_is_true(json_object_get(a->body, "add_generation_prompt")))
        return refuse(t->r, 400, "continue_final_message",
                      "continue_final_message: not together with \"add_generation_prompt\": true");
    if (last->content != NULL && last->content[0] != '\0')
        return true;
    a->continues = false;
    history_drop_last(h);
    return true;
}

/* Returns an upper bound of messages: a part may become a message of its own. */
static size_t count_parts(const json_t *messages) {
    size_t n = 2;
    for (size_t i = 0; i < json_array_size(messages); i++)
        n += 1 + json_array_size(json_object_get(json_array_get(messages, i), "content"));
    return n;
}

/* Tokenizes the messages. The role of the first message that the template leaves out is reported to
 * the client. */
static bool tokenize_chat(ask *a, const ask_rules *rules, talk *t, ask_prompt *out) {
    tern_error err = {0};
    tern_rendering seen;
    char *variables = a->variables != NULL ? json_dump(a->variables, (json_style){0}) : NULL;
    if (a->variables != NULL && variables == NULL)
        return refuse(t->r, 503, t->dialect->field, "no memory for the messages");
    const tern_conversation c = {.messages = t->history.list,
                                 .n = t->history.n,
                                 .tools = a->tools.told,
                                 .variables = variables,
                                 .no_answer = a->no_answer,
                                 .continues = a->continues};
    tern_status status =
        untold_render(rules->tokenizer, &c, rules->calls, &rules->limits, &seen, &err);
    if (status == TERN_ERR_TEMPLATE && history_use_objects(&t->history))
        status = untold_render(rules->tokenizer, &c, rules->calls, &rules->limits, &seen, &err);
    free(variables);
    if (status == TERN_ERR_CONTEXT || status == TERN_ERR_STATE)
        return ask_refuse_limits(rules, t->dialect->field, status, t->r);
    if (status != TERN_OK)
        return ask_refuse_text(t->r, t->dialect->field, &err);
    if (seen.unseen < c.n)
        (void)snprintf(out->unseen, sizeof out->unseen, "%s", c.messages[seen.unseen].role);
    const char *last = c.messages[c.n - 1].content;
    a->thinks = a->continues ? thinking_is_open(rules->thinking, last, strlen(last))
                             : thinking_begins(rules->thinking, seen.text, seen.size);
    out->n = seen.n;
    out->ids = seen.ids;
    seen.ids = NULL;
    tern_rendering_free(&seen);
    return true;
}

bool ask_tokenize_talk(ask *a, const ask_rules *rules, ask_prompt *out, refusal *r) {
    const talk_dialect *dialect = dialect_of(a->kind);
    const json_t *messages = json_object_get(a->body, dialect->field);
    if (json_array_size(messages) == 0 && !(dialect->items && json_is_string(messages)))
        return refuse(r, 400, dialect->field, "%s must be an array of at least one message",
                      dialect->field);
    talk read = {.dialect = dialect, .a = a, .r = r};
    const bool sound =
        history_open(&read.history, count_parts(messages), dialect->field, r) &&
        read_talk(&read, dialect->system != NULL ? json_object_get(a->body, dialect->system) : NULL,
                  messages) &&
        find_beginning(a, &read) && tokenize_chat(a, rules, &read, out);
    history_free(&read.history);
    text_free(&read.thought);
    return sound;
}
