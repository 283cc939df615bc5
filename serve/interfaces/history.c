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
        text_free(&h->texts[i].calls);
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

/* False after a refusal. */
static bool check_arguments(const history *h, const char *arguments, size_t size,
                            const char *place) {
    refusal why = {0};
    json_t *value = ask_parse(arguments, size, "the text", &why);
    const bool object = value != NULL;
    json_decref(value);
    return object || refuse(h->r, why.status, h->field, "%s.arguments is not a JSON object: %s",
                            place, why.message);
}

static void write_call(text *out, const char *id, const char *name, const char *arguments,
                       size_t size) {
    text_add(out, ",", out->size > 0);
    text_print(out, "{\"id\":");
    text_quote(out, id, strlen(id));
    text_print(out, ",\"type\":\"function\",\"function\":{\"name\":");
    text_quote(out, name, strlen(name));
    text_print(out, ",\"arguments\":");
    text_add(out, arguments, size);
    text_print(out, "}}");
}

bool history_call_tool(history *h, const char *id, const char *name, const char *arguments,
                       size_t size, const char *place) {
    for (size_t i = 0; i < h->n_calls; i++)
        if (strcmp(h->calls[i].id, id) == 0)
            return refuse(h->r, 400, h->field, "%s: there are two calls '%.100s'", place, id);
    if (h->n_calls == MOST_CALLS)
        return refuse(h->r, 400, h->field, "%s: a message has at most %d calls", place, MOST_CALLS);
    if (!check_arguments(h, arguments, size, place))
        return false;
    h->calls[h->n_calls++] = (history_call){.id = id, .name = name};
    h->n_open++;
    write_call(&h->texts[h->n - 1].calls, id, name, arguments, size);
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

bool history_close(history *h) {
    if (h->n_open > 0)
        return refuse(h->r, 400, h->field, "%s: the call '%.100s' has no answer", h->field,
                      open_call(h));
    for (size_t i = 0; i < h->n; i++) {
        text *calls = &h->texts[i].calls;
        if (calls->size > 0) {
            text whole = {0};
            text_print(&whole, "[");
            text_add(&whole, calls->bytes, calls->size);
            text_print(&whole, "]");
            whole.failed = whole.failed || calls->failed;
            text_free(calls);
            *calls = whole;
            h->list[i].tool_calls = calls->bytes;
        }
        if (calls->failed || h->texts[i].content.failed)
            return refuse(h->r, 503, h->field, "no memory for the messages");
    }
    return true;
}

bool history_has_calls(const history *h) {
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].tool_calls != NULL)
            return true;
    return false;
}
