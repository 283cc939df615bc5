/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations, as three interfaces write them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/ask.h"

typedef struct talk_form {
    const char *field;    /* with the messages */
    const char *system;   /* with what the model is told first; NULL: there is none */
    const char *parts[3]; /* kinds of parts that are text */
    bool system_role;     /* a message may be the system's */
    bool items;           /* the field may be a text, and messages say that they are messages */
    bool user_last;       /* an answer to continue would be the last one: it is refused */
} talk_form;

static const talk_form chat_form = {.field = "messages", .parts = {"text"}, .system_role = true};
static const talk_form message_form = {
    .field = "messages", .system = "system", .parts = {"text"}, .user_last = true};
static const talk_form response_form = {.field = "input",
                                        .system = "instructions",
                                        .parts = {"input_text", "output_text", "text"},
                                        .system_role = true,
                                        .items = true};

static const talk_form *form_of(ask_kind kind) {
    return kind == ASK_MESSAGE ? &message_form : kind == ASK_RESPONSE ? &response_form : &chat_form;
}

/* What is read of a body. */
typedef struct talk {
    const talk_form *form;
    tern_chat_message *list; /* [n] of [n_most] */
    text *joined;            /* [n_most] parts as one text */
    size_t n, n_most;
    refusal *r;
} talk;

static bool is_text_part(const talk_form *form, const char *type) {
    for (size_t i = 0; i < 3 && type != NULL && form->parts[i] != NULL; i++)
        if (strcmp(type, form->parts[i]) == 0)
            return true;
    return false;
}

/* Parts of text, with a line's end between two of them. */
static bool join_parts(const talk *t, const json_t *parts, const char *place, text *out) {
    text_add(out, "", 0);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const json_t *words = json_object_get(part, "text");
        if (!is_text_part(t->form, json_string_value(json_object_get(part, "type"))) ||
            !json_is_string(words)) {
            return refuse(t->r, 400, t->form->field,
                          "%s[%zu]: only parts {\"type\": \"%s\", \"text\": ...} are understood",
                          place, i, t->form->parts[0]);
        }
        text_add(out, "\n", i > 0);
        text_add(out, json_string_value(words), json_string_length(words));
    }
    return !out->failed || refuse(t->r, 503, t->form->field, "no memory for the messages");
}

/* Adds a message with a text or parts of text; `place` names it. */
static bool add(talk *t, const char *role, const json_t *content, const char *place) {
    tern_chat_message *m = &t->list[t->n];
    text *joined = &t->joined[t->n++];
    m->role = role;
    if (json_is_string(content)) {
        m->content = json_string_value(content);
        return true;
    }
    if (!json_is_array(content))
        return refuse(t->r, 400, t->form->field, "%s is no text and no array of parts", place);
    const bool sound = join_parts(t, content, place, joined);
    m->content = joined->bytes;
    return sound;
}

/* The role that a chat format has a place for; NULL after a refusal. */
static const char *role_of(const talk *t, const json_t *message, size_t i) {
    static const char *const roles[] = {"user", "assistant", "system"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t k = 0; role != NULL && k < 2U + t->form->system_role; k++)
        if (strcmp(role, roles[k]) == 0)
            return roles[k];
    if (role != NULL && t->form->system_role && strcmp(role, "developer") == 0)
        return roles[2];
    (void)refuse(t->r, 400, t->form->field, "%s[%zu].role is not %suser or assistant",
                 t->form->field, i, t->form->system_role ? "system, developer, " : "");
    return NULL;
}

static bool read_message(talk *t, const json_t *message, size_t i) {
    char place[64];
    const json_t *type = json_object_get(message, "type");
    (void)snprintf(place, sizeof place, "%s[%zu].content", t->form->field, i);
    if (t->form->items && type != NULL &&
        (!json_is_string(type) || strcmp(json_string_value(type), "message") != 0))
        return refuse(t->r, 400, "input", "input[%zu].type: only messages are supported", i);
    const char *role = role_of(t, message, i);
    if (role == NULL)
        return false;
    if (json_array_size(json_object_get(message, "tool_calls")) > 0) {
        return refuse(t->r, 400, t->form->field, "%s[%zu].tool_calls: tools are not supported",
                      t->form->field, i);
    }
    return add(t, role, json_object_get(message, "content"), place);
}

static bool read_talk(talk *t, const json_t *system, const json_t *messages) {
    const bool told = system != NULL && !json_is_null(system);
    bool sound = true;
    if (told) {
        sound = add(t, "system", system, t->form->system);
        if (!sound && t->r->status == 400)
            (void)snprintf(t->r->param, sizeof t->r->param, "%s", t->form->system);
    }
    if (t->form->items && json_is_string(messages))
        return sound && add(t, "user", messages, t->form->field);
    for (size_t i = 0; i < json_array_size(messages) && sound; i++)
        sound = read_message(t, json_array_get(messages, i), i);
    if (sound && t->form->user_last && strcmp(t->list[t->n - 1].role, "user") != 0) {
        return refuse(t->r, 400, t->form->field,
                      "the last message must be the user's: an answer is not continued");
    }
    return sound;
}

/* Tokens of messages that were read. */
static int32_t *tokenize_chat(const tern_tokenizer *tokenizer, const talk *t, size_t *n) {
    tern_error err = {0};
    const char *param = t->form->field;
    if (tern_chat_tokenize(tokenizer, t->list, t->n, NULL, 0, n, &err) != TERN_OK) {
        (void)ask_refuse_text(t->r, param, &err);
        return NULL;
    }
    int32_t *ids = malloc((*n + 1) * sizeof *ids);
    if (ids == NULL) {
        (void)refuse(t->r, 503, param, "no memory for %zu tokens", *n);
    } else if (*n > 0 &&
               tern_chat_tokenize(tokenizer, t->list, t->n, ids, *n, n, &err) != TERN_OK) {
        (void)ask_refuse_text(t->r, param, &err);
        free(ids);
        ids = NULL;
    }
    return ids;
}

int32_t *ask_tokenize_talk(const tern_tokenizer *t, ask_kind kind, const json_t *body, size_t *n,
                           refusal *r) {
    const talk_form *form = form_of(kind);
    const json_t *messages = json_object_get(body, form->field);
    if (json_array_size(messages) == 0 && !(form->items && json_is_string(messages))) {
        (void)refuse(r, 400, form->field, "%s must be an array of at least one message",
                     form->field);
        return NULL;
    }
    talk read = {.form = form, .n_most = json_array_size(messages) + 2, .r = r};
    read.list = calloc(read.n_most, sizeof *read.list);
    read.joined = calloc(read.n_most, sizeof *read.joined);
    int32_t *ids = NULL;
    if (read.list == NULL || read.joined == NULL)
        (void)refuse(r, 503, form->field, "no memory for %zu messages", read.n_most);
    else if (read_talk(&read, form->system != NULL ? json_object_get(body, form->system) : NULL,
                       messages))
        ids = tokenize_chat(t, &read, n);
    for (size_t i = 0; i < read.n_most && read.joined != NULL; i++)
        text_free(&read.joined[i]);
    free(read.joined);
    free(read.list);
    return ids;
}
