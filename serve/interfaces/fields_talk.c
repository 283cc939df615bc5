/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that the chat template gets as variables. */

#include <stdio.h>
#include <string.h>

#include "serve/interfaces/fields.h"

enum { PLACE_BYTES = 128 };

static bool is_word(const json_t *value, const char *word) {
    const char *given = json_string_value(value);
    return given != NULL && strcmp(given, word) == 0;
}

static bool is_absent(const json_t *value) {
    return value == NULL || json_is_null(value);
}

static bool is_named(const field_reading *in, const char *variable) {
    return tern_chat_mentions(in->rules->tokenizer, variable);
}

static bool set(const field_reading *in, const char *name, const json_t *value) {
    ask *a = in->a;
    if (a->variables == NULL)
        a->variables = json_object();
    return json_object_set(a->variables, name, (json_t *)(uintptr_t)value) == 0 ||
           refuse(in->r, 503, in->at->name, "no memory for the variables of the template");
}

/* Gives the template a variable, unless chat_template_kwargs have given it. One that the template
 * does not name cannot change an answer: `place`, where it stands in the request, is noted. */
static bool set_variable(const field_reading *in, const char *place, const char *name,
                         const json_t *value) {
    if (!is_named(in, name)) {
        ask_note_ignored(in->a, place);
        return true;
    }
    return json_object_get(in->a->variables, name) != NULL || set(in, name, value);
}

bool field_switch_thinking(const field_reading *in, const char *place, bool on) {
    static const char *const names[] = {"enable_thinking", "thinking"}; /* templates have either */
    json_t *value = json_boolean(on);
    bool known = false, sound = true;
    in->a->tells = in->a->tells || on;
    for (size_t i = 0; i < sizeof names / sizeof *names && sound; i++) {
        if (is_named(in, names[i])) {
            known = true;
            sound = set_variable(in, place, names[i], value);
        }
    }
    json_decref(value);
    if (!known && place != NULL)
        ask_note_ignored(in->a, place);
    return sound;
}

bool field_read_variables(const field_reading *in, const json_t *value) {
    const char *name;
    json_t *one;
    bool sound = json_is_object(value) ||
                 refuse(in->r, 400, in->at->name, "%s must be an object", in->at->name);
    json_object_foreach(value, name, one) {
        char place[PLACE_BYTES];
        (void)snprintf(place, sizeof place, "%s.%.64s", in->at->name, name);
        if (strcmp(name, "messages") == 0 || strcmp(name, "tools") == 0)
            return refuse(in->r, 400, in->at->name, "%s: a field of its own says that", place);
        if (!is_named(in, name))
            ask_note_ignored(in->a, place);
        else
            sound = sound && set(in, name, one);
    }
    return sound;
}

bool field_read_variable(const field_reading *in, const json_t *value) {
    return set_variable(in, in->at->name, in->at->name, value);
}

bool field_read_enable_thinking(const field_reading *in, const json_t *value) {
    if (!json_is_boolean(value))
        return refuse(in->r, 400, in->at->name, "%s must be true or false", in->at->name);
    return field_switch_thinking(in, in->at->name, json_is_true(value));
}

/* ---- how much a model thinks ----------------------------------------------------------------- */

/* Reads how much the model is to think; "none" also switches thinking off. */
static bool read_effort(const field_reading *in, const char *place, const json_t *value) {
    if (is_absent(value))
        return true;
    if (!json_is_string(value))
        return refuse(in->r, 400, in->at->name, "%s must be a text", place);
    if (!is_word(value, "none"))
        return set_variable(in, place, "reasoning_effort", value);
    return (!is_named(in, "reasoning_effort") ||
            set_variable(in, place, "reasoning_effort", value)) &&
           field_switch_thinking(in, place, false);
}

bool field_read_effort(const field_reading *in, const json_t *value) {
    return read_effort(in, in->at->name, value);
}

bool field_read_reasoning(const field_reading *in, const json_t *value) {
    if (!json_is_object(value))
        return refuse(in->r, 400, in->at->name, "%s must be an object", in->at->name);
    return read_effort(in, "reasoning.effort", json_object_get(value, "effort"));
}

bool field_read_thinking(const field_reading *in, const json_t *value) {
    const json_t *type = json_object_get(value, "type");
    if (is_word(type, "disabled"))
        return field_switch_thinking(in, NULL, false);
    if (!is_word(type, "enabled") && !is_word(type, "adaptive"))
        return refuse(in->r, 400, in->at->name,
                      "%s: \"type\" must be \"enabled\", \"adaptive\" or \"disabled\"",
                      in->at->name);
    if (!is_absent(json_object_get(value, "budget_tokens")))
        ask_note_ignored(in->a, "thinking.budget_tokens");
    return field_switch_thinking(in, in->at->name, true);
}

bool field_read_output_config(const field_reading *in, const json_t *value) {
    const json_t *format = json_object_get(value, "format");
    if (!json_is_object(value))
        return refuse(in->r, 400, in->at->name, "%s must be an object", in->at->name);
    if (!read_effort(in, "output_config.effort", json_object_get(value, "effort")))
        return false;
    return is_absent(format) || field_read_output_format(in, format);
}
