/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/history.h"

#include <stdlib.h>
#include <string.h>

#include "serve/interfaces/ask.h"

bool history_open(history *h, size_t most, const char *field, refusal *r) {
    *h = (history){.most = most, .field = field, .r = r};
    h->list = calloc(most, sizeof *h->list);
    h->texts = calloc(most, sizeof *h->texts);
    return (h->list != NULL && h->texts != NULL) ||
           refuse(r, 503, field, "no memory for %zu messages", most);
}

void history_free(history *h) {
    for (size_t i = 0; i < h->n; i++) {
        text_free(&h->texts[i].content);
        text_free(&h->texts[i].thought);
        text_free(&h->texts[i].calls);
        text_free(&h->texts[i].objects);
    }
    free(h->texts);
    free(h->list);
    *h = (history){0};
}

/* Returns the id of the first call without an answer. */
static const char *open_call(const history *h) {
    size_t i = 0;
    while (h->calls[i].answered)
        i++;
    return h->calls[i].id;
}

static tern_chat_message *add(history *h, const char *role) {
    tern_chat_message *m = &h->list[h->n++];
    m->role = role;
    return m;
}

tern_chat_message *history_add(history *h, const char *role, const char *place) {
    if (h->n_open > 0) {
        (void)refuse(h->r, 400, h->field, "%s: the call '%.100s' before it has no answer", place,
                     open_call(h));
        return NULL;
    }
    h->n_calls = 0;
    return add(h, role);
}

bool history_may_call(const history *h) {
    return h->n > 0 && strcmp(h->list[h->n - 1].role, "assistant") == 0;
}

/* True if a text is a JSON object. */
static bool is_object(const char *arguments, size_t size) {
    refusal why = {0};
    json_t *value = ask_parse(arguments, size, "the text", &why);
    const bool object = value != NULL;
    json_decref(value);
    return object;
}

/* Opens a call, up to its arguments. */
static void open_call_text(text *out, const char *id, const char *name) {
    text_add(out, ",", out->size > 0);
    text_print(out, "{\"id\":");
    text_quote(out, id, strlen(id));
    text_print(out, ",\"type\":\"function\",\"function\":{\"name\":");
    text_quote(out, name, strlen(name));
    text_print(out, ",\"arguments\":");
}

/* Arguments that are not a JSON object, such as those that a limit cut, are a text; nothing at all
 * is an object without members. */
static void write_call(history *h, const char *id, const char *name, const char *arguments,
                       size_t size) {
    history_texts *t = &h->texts[h->n - 1];
    const bool empty = size == 0, object = empty || is_object(arguments, size);
    open_call_text(&t->calls, id, name);
    open_call_text(&t->objects, id, name);
    if (object) {
        text_add(&t->calls, empty ? "{}" : arguments, empty ? 2 : size);
        text_add(&t->objects, empty ? "{}" : arguments, empty ? 2 : size);
    } else {
        text_quote(&t->calls, arguments, size);
        text_print(&t->objects, "{\"text\":");
        text_quote(&t->objects, arguments, size);
        text_print(&t->objects, "}");
    }
    text_print(&t->calls, "}}");
    text_print(&t->objects, "}}");
    h->has_texts = h->has_texts || !object;
}

bool history_call_tool(history *h, const char *id, const char *name, const char *arguments,
                       size_t size, const char *place) {
    for (size_t i = 0; i < h->n_calls; i++)
        if (strcmp(h->calls[i].id, id) == 0)
            return refuse(h->r, 400, h->field, "%s: there are two calls '%.100s'", place, id);
    if (h->n_calls == MOST_CALLS)
        return refuse(h->r, 400, h->field, "%s: a message has at most %d calls", place, MOST_CALLS);
    h->calls[h->n_calls++] = (history_call){.id = id, .name = name};
    h->n_open++;
    write_call(h, id, name, arguments, size);
    return true;
}

tern_chat_message *history_answer(history *h, const char *id, const char *place) {
    size_t i = 0;
    while (i < h->n_calls && strcmp(h->calls[i].id, id) != 0)
        i++;
    if (i == h->n_calls || h->calls[i].answered) {
        (void)refuse(h->r, 400, h->field, "%s: %s '%.100s'", place,
                     i == h->n_calls ? "no message before it has the call"
                                     : "there are two answers to the call",
                     id);
        return NULL;
    }
    h->calls[i].answered = true;
    h->n_open--;
    tern_chat_message *m = add(h, "tool");
    m->tool_call_id = h->calls[i].id;
    m->name = h->calls[i].name;
    return m;
}

/* Makes an array of the elements. */
static void enclose(text *elements) {
    text whole = {0};
    text_print(&whole, "[");
    text_add(&whole, elements->bytes, elements->size);
    text_print(&whole, "]");
    whole.failed = whole.failed || elements->failed;
    text_free(elements);
    *elements = whole;
}

bool history_close(history *h) {
    if (h->n_open > 0)
        return refuse(h->r, 400, h->field, "%s: the call '%.100s' has no answer", h->field,
                      open_call(h));
    for (size_t i = 0; i < h->n; i++) {
        history_texts *t = &h->texts[i];
        if (t->calls.size > 0) {
            enclose(&t->calls);
            enclose(&t->objects);
            h->list[i].tool_calls = t->calls.bytes;
        }
        if (t->calls.failed || t->objects.failed || t->content.failed)
            return refuse(h->r, 503, h->field, "no memory for the messages");
    }
    return true;
}

bool history_use_objects(history *h) {
    for (size_t i = 0; i < h->n && h->has_texts; i++)
        if (h->list[i].tool_calls != NULL)
            h->list[i].tool_calls = h->texts[i].objects.bytes;
    return h->has_texts;
}

void history_drop_last(history *h) {
    h->n--;
    text_free(&h->texts[h->n].content);
    text_free(&h->texts[h->n].thought);
    text_free(&h->texts[h->n].calls);
    text_free(&h->texts[h->n].objects);
}
