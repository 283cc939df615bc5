/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of Ollama's interface as messages of a chat. */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/interfaces/ollama.h"

enum { ID_BYTES = 32 };

/* A conversation while its calls get ids. */
typedef struct writing {
    ollama_reading *in;
    json_t *open;   /* calls without an answer, in their order: {"id", "name"} */
    size_t n_calls; /* so far */
} writing;

static const char *word_of(const json_t *object, const char *name) {
    const char *word = json_string_value(json_object_get(object, name));
    return word != NULL && word[0] != '\0' ? word : NULL;
}

bool ollama_take_images(ollama_reading *in, json_t *value) {
    return json_array_size(value) == 0 || refuse(in->r, 400, "images",
                                                 "images: the model reads "
                                                 "texts, no images");
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Arguments are an object; a text is passed on as it is. */
static json_t *arguments_of(const json_t *function) {
    const json_t *given = json_object_get(function, "arguments");
    if (json_is_string(given))
        return json_string(json_string_value(given));
    char *words = json_is_object(given) ? json_dump(given, (json_style){0}) : strdup("{}");
    json_t *arguments = json_string(words);
    free(words);
    return arguments;
}

static json_t *write_call(writing *w, const json_t *call) {
    char made[ID_BYTES];
    const json_t *function = json_object_get(call, "function");
    const char *name = word_of(function, "name"), *id = word_of(call, "id");
    (void)snprintf(made, sizeof made, "call_%zu", w->n_calls++);
    id = id != NULL ? id : made;
    name = name != NULL ? name : "";
    (void)json_array_append_new(w->open, json_pack("{s:s, s:s}", "id", id, "name", name));
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name",
                     name, "arguments", arguments_of(function));
}

static json_t *write_calls(writing *w, const json_t *calls) {
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(calls); i++)
        (void)json_array_append_new(list, write_call(w, json_array_get(calls, i)));
    return list;
}

/* Takes the call that an answer belongs to out of the open ones: the one with its id, else the
 * first with its name, else the first. Returns its id; the caller frees it. NULL: there is none. */
static char *close_call(writing *w, const json_t *message) {
    const char *id = word_of(message, "tool_call_id"), *name = word_of(message, "tool_name");
    const size_t n = json_array_size(w->open);
    size_t found = n > 0 ? 0 : n;
    name = name != NULL ? name : word_of(message, "name");
    for (size_t i = n; i-- > 0;) {
        const json_t *call = json_array_get(w->open, i);
        const bool same_id = id != NULL && strcmp(id, word_of(call, "id")) == 0;
        const char *called = word_of(call, "name");
        if (same_id || (name != NULL && called != NULL && strcmp(name, called) == 0))
            found = i;
        if (same_id)
            break;
    }
    if (found == n)
        return NULL;
    char *closed = strdup(word_of(json_array_get(w->open, found), "id"));
    json_t *left = json_array();
    for (size_t i = 0; i < n; i++)
        if (i != found)
            (void)json_array_append_new(left, json_incref(json_array_get(w->open, i)));
    json_decref(w->open);
    w->open = left;
    return closed;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Roles may have capital letters. */
static json_t *role_of(const json_t *message) {
    char role[ASK_ROLE_BYTES];
    const char *given = word_of(message, "role");
    (void)snprintf(role, sizeof role, "%s", given != NULL ? given : "");
    for (char *c = role; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return json_string(role);
}

static json_t *write_message(writing *w, const json_t *message) {
    json_t *made = json_object(), *role = role_of(message);
    json_t *content = json_object_get(message, "content");
    const json_t *calls = json_object_get(message, "tool_calls");
    const char *thought = word_of(message, "thinking");
    if (strcmp(json_string_value(role), "tool") == 0) {
        char *id = close_call(w, message);
        (void)json_object_set_new(made, "tool_call_id", json_string(id != NULL ? id : "call_none"));
        free(id);
    }
    (void)json_object_set_new(made, "role", role);
    (void)json_object_set_new(made, "content",
                              content != NULL && !json_is_null(content) ? json_incref(content)
                                                                        : json_string(""));
    if (json_array_size(calls) > 0)
        (void)json_object_set_new(made, "tool_calls", write_calls(w, calls));
    if (thought != NULL)
        (void)json_object_set_new(made, "reasoning_content", json_string(thought));
    return made;
}

bool ollama_take_messages(ollama_reading *in, json_t *value) {
    writing w = {.in = in, .open = json_array()};
    json_t *list = json_array();
    bool sound = json_is_array(value) ||
                 refuse(in->r, 400, "messages", "messages must be an array of messages");
    for (size_t i = 0; i < json_array_size(value) && sound; i++) {
        const json_t *message = json_array_get(value, i);
        sound = json_is_object(message)
                    ? ollama_take_images(in, json_object_get(message, "images"))
                    : refuse(in->r, 400, "messages", "messages[%zu] is not an object", i);
        if (sound)
            (void)json_array_append_new(list, write_message(&w, message));
    }
    json_decref(w.open);
    if (sound)
        (void)json_object_set_new(in->body, "messages", list);
    else
        json_decref(list);
    return sound;
}
