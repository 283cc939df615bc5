/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations as values of a template. */

#include "runtime/text/template/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

typedef tern_tpl_value value;

/* A text of the caller, repaired to valid UTF-8, with one mark. */
static value *text_value(tern_tpl *x, tern_span given, uint8_t mark) {
    const size_t size = tern_utf8_repair(given.data, given.size, NULL, NULL);
    char *bytes = tern_tpl_take(x, size + 1, 1);
    if (bytes == NULL)
        return NULL;
    (void)tern_utf8_repair(given.data, given.size, bytes, NULL);
    return tern_tpl_text_value(x, (tern_tpl_text){.bytes = bytes, .size = size, .mark = mark});
}

static tern_span span_of(const char *text) {
    return (tern_span){text, strlen(text)};
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* An integer beyond 64 bits is a float that keeps its digits. */
static value *number(tern_tpl *x, tern_span written) {
    char *text = tern_tpl_take(x, written.size + 1, 1);
    if (text == NULL)
        return NULL;
    memcpy(text, written.data, written.size);
    text[written.size] = '\0';
    errno = 0;
    const bool whole = strpbrk(text, ".eE") == NULL;
    const long long integer = whole ? strtoll(text, NULL, 10) : 0;
    if (whole && errno == 0)
        return tern_tpl_int(x, integer);
    value *v = tern_tpl_real(x, strtod(text, NULL));
    if (v != NULL && whole)
        v->written = (tern_span){text, written.size};
    return v;
}

static value *from_json(tern_tpl *x, const tern_json_value *v, uint8_t mark);

static value *list_from(tern_tpl *x, const tern_json_value *v, uint8_t mark) {
    value **items = tern_tpl_items(x, v->count);
    const tern_json_value *at = v + 1;
    for (size_t i = 0; items != NULL && i < v->count; i++, at += at->size)
        if ((items[i] = from_json(x, at, mark)) == NULL)
            return NULL;
    return items != NULL ? tern_tpl_list_value(x, items, v->count) : NULL;
}

static value *dict_from(tern_tpl *x, const tern_json_value *v, uint8_t mark) {
    value *dict = tern_tpl_dict_new(x, TERN_TPL_DICT);
    const tern_json_value *at = v + 1;
    for (size_t i = 0; dict != NULL && i < v->count; i++) {
        value *key = text_value(x, at->text, mark);
        at += at->size;
        if (!tern_tpl_set(x, dict, key, from_json(x, at, mark)))
            return NULL;
        at += at->size;
    }
    return dict;
}

/* Recursion is not deeper than TERN_JSON_MAX_DEPTH. */
static value *from_json(tern_tpl *x, const tern_json_value *v, uint8_t mark) {
    if (!tern_tpl_work(x, 1))
        return NULL;
    switch (v->type) {
    case TERN_JSON_NULL:
        return tern_tpl_none(x);
    case TERN_JSON_FALSE:
    case TERN_JSON_TRUE:
        return tern_tpl_bool(x, v->type == TERN_JSON_TRUE);
    case TERN_JSON_NUMBER:
        return number(x, v->text);
    case TERN_JSON_STRING:
        return text_value(x, v->text, mark);
    case TERN_JSON_ARRAY:
        return list_from(x, v, mark);
    default:
        return dict_from(x, v, mark);
    }
}

/* Reads a JSON text as a value of a kind; NULL after a failure, whose message calls it `name`. */
static value *parse_json(tern_tpl *x, tern_span text, const char *name, tern_tpl_kind kind,
                         uint8_t mark) {
    tern_json json = {0};
    tern_error err = {0};
    char *copy = malloc(text.size + 1);
    if (copy == NULL) {
        (void)tern_tpl_fail(x, TERN_ERR_NOMEM, "no memory for %s", name);
        return NULL;
    }
    memcpy(copy, text.data, text.size);
    if (tern_json_parse(copy, text.size, name, &json, &err) != TERN_OK) {
        (void)tern_tpl_fail(x, err.status, "%s", err.message);
        return NULL;
    }
    value *v = from_json(x, json.values, mark);
    tern_json_free(&json);
    if (v == NULL || v->kind == kind)
        return v;
    (void)tern_tpl_fail(x, TERN_ERR_JSON, "%s is not a JSON %s", name,
                        kind == TERN_TPL_LIST ? "array" : "object");
    return NULL;
}

/* ---- tool calls ------------------------------------------------------------------------------ */

/* Replaces arguments that are the text of a JSON object by that object. */
static bool open_arguments(tern_tpl *x, value *function, uint8_t mark, bool *had) {
    value *text = tern_tpl_get_name(function, (tern_span){"arguments", 9});
    if (text == NULL || text->kind != TERN_TPL_TEXT)
        return true;
    tern_tpl trial = {.limits = x->limits}; /* a text that is not a JSON object stays a text */
    const bool object =
        parse_json(&trial, tern_tpl_span(text), "arguments", TERN_TPL_DICT, mark) != NULL;
    const bool memory = trial.error.status == TERN_ERR_NOMEM;
    tern_tpl_free(&trial);
    if (memory)
        return tern_tpl_fail(x, TERN_ERR_NOMEM, "no memory for the arguments of a call");
    if (!object)
        return true;
    *had = true;
    return tern_tpl_set_word(x, function, "arguments",
                             parse_json(x, tern_tpl_span(text), "arguments", TERN_TPL_DICT, mark));
}

static bool open_calls(tern_tpl *x, const value *calls, uint8_t mark, bool *had) {
    for (size_t i = 0; i < calls->list.n; i++) {
        value *call = calls->list.items[i];
        if (call->kind != TERN_TPL_DICT)
            return tern_tpl_fail(x, TERN_ERR_JSON, "tool call %zu is not a JSON object", i);
        value *function = tern_tpl_get_name(call, (tern_span){"function", 8});
        if (function != NULL && function->kind == TERN_TPL_DICT &&
            !open_arguments(x, function, mark, had))
            return false;
    }
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool set_text(tern_tpl *x, value *message, const char *name, const char *text,
                     uint8_t mark) {
    return text == NULL || tern_tpl_set_word(x, message, name, text_value(x, span_of(text), mark));
}

/* A template may make a control token of a role, as in '<|' + role + '|>'. So roles that templates
 * know count as the template's own words; any other role counts as the caller's text. */
static uint8_t mark_of_role(const char *role) {
    static const char *const known[] = {"system", "developer", "user", "assistant", "tool"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(role, known[i]) == 0)
            return TERN_MARK_TEMPLATE;
    return TERN_MARK_VARIABLES;
}

/* Sets what an assistant thought. Templates know it under one of these names. */
static bool set_reasoning(tern_tpl *x, value *message, const char *text, uint8_t mark) {
    return set_text(x, message, "reasoning_content", text, mark) &&
           set_text(x, message, "reasoning", text, mark) &&
           set_text(x, message, "thinking", text, mark);
}

static value *message_value(tern_tpl *x, const tern_conversation *c, size_t i, tern_tpl_way way,
                            tern_tpl_calls *had) {
    const tern_chat_message *m = &c->messages[i];
    const char *content = m->content == NULL && way.contents ? "" : m->content;
    const uint8_t mark = tern_mark_of_message(i);
    value *message = tern_tpl_dict_new(x, TERN_TPL_DICT);
    if (message == NULL || !set_text(x, message, "role", m->role, mark_of_role(m->role)) ||
        !set_text(x, message, "content", content, mark) ||
        !set_text(x, message, "name", m->name, TERN_MARK_VARIABLES) ||
        !set_reasoning(x, message, m->reasoning, mark))
        return NULL;
    had->silent = had->silent || m->content == NULL;
    if (m->tool_calls != NULL) {
        char name[48];
        (void)snprintf(name, sizeof name, "tool_calls of message %zu", i);
        value *calls = parse_json(x, span_of(m->tool_calls), name, TERN_TPL_LIST, mark);
        if (calls == NULL || (way.objects && !open_calls(x, calls, mark, &had->objects)) ||
            !tern_tpl_set_word(x, message, "tool_calls", calls))
            return NULL;
    }
    return set_text(x, message, "tool_call_id", m->tool_call_id, TERN_MARK_VARIABLES) ? message
                                                                                      : NULL;
}

static value *messages_value(tern_tpl *x, const tern_conversation *c, tern_tpl_way way,
                             tern_tpl_calls *had) {
    value **items = tern_tpl_items(x, c->n);
    for (size_t i = 0; items != NULL && i < c->n; i++)
        if ((items[i] = message_value(x, c, i, way, had)) == NULL)
            return NULL;
    return items != NULL ? tern_tpl_list_value(x, items, c->n) : NULL;
}

static bool set(tern_tpl *x, tern_tpl_frame *f, const char *name, value *v) {
    return tern_tpl_frame_set(x, f, span_of(name), v);
}

static bool add_variables(tern_tpl *x, tern_tpl_frame *f, const char *variables) {
    if (variables == NULL)
        return true;
    const value *all =
        parse_json(x, span_of(variables), "variables", TERN_TPL_DICT, TERN_MARK_VARIABLES);
    for (size_t i = 0; all != NULL && i < all->dict->n; i++)
        if (!tern_tpl_frame_set(x, f, tern_tpl_span(all->dict->keys[i]), all->dict->values[i]))
            return false;
    return all != NULL;
}

bool tern_tpl_add_input(tern_tpl *x, tern_tpl_frame *f, const tern_template_input *input,
                        tern_tpl_way way, tern_tpl_calls *calls) {
    const tern_conversation *c = input->conversation;
    for (size_t i = 0; i < input->n_tokens; i++)
        if (!set(x, f, input->tokens[i].name,
                 text_value(x, input->tokens[i].text, TERN_MARK_TEMPLATE)))
            return false;
    value *tools = c->tools != NULL ? parse_json(x, span_of(c->tools), "tools", TERN_TPL_LIST,
                                                 TERN_MARK_VARIABLES)
                                    : tern_tpl_none(x);
    return set(x, f, "messages", messages_value(x, c, way, calls)) && set(x, f, "tools", tools) &&
           set(x, f, "documents", tern_tpl_none(x)) &&
           set(x, f, "add_generation_prompt", tern_tpl_bool(x, !c->no_answer)) &&
           add_variables(x, f, c->variables);
}
