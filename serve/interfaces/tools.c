/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/interfaces/call_schema.h"

static bool is_word(const json_t *value, const char *word) {
    const char *given = json_string_value(value);
    return given != NULL && strcmp(given, word) == 0;
}

static bool is_absent(const json_t *value) {
    return value == NULL || json_is_null(value);
}

/* ---- tools ----------------------------------------------------------------------------------- */

/* State while tools are read. */
typedef struct tools_reading {
    toolset *set;
    tools_dialect dialect;
    refusal *r;
} tools_reading;

static bool is_name(const json_t *value) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *name = json_string_value(value);
    const size_t n = json_string_length(value);
    return n > 0 && n < CALL_NAME_BYTES && strspn(name, letters) == n;
}

/* Returns the path to a tool's members, for messages. */
static const char *prefix_of(tools_dialect dialect) {
    return dialect == TOOLS_OF_CHATS ? "function." : "";
}

static const char *schema_name(tools_dialect dialect) {
    return dialect == TOOLS_OF_MESSAGES ? "input_schema" : "parameters";
}

/* True for a tool that the client does not run, or whose form the interface's server knows. It is
 * left out: the model is not told of it. */
static bool is_foreign(const tools_reading *in, const json_t *given) {
    const json_t *type = json_object_get(given, "type");
    return in->dialect != TOOLS_OF_CHATS && json_is_string(type) &&
           !is_word(type, in->dialect == TOOLS_OF_MESSAGES ? "custom" : "function");
}

static void note_foreign(toolset *set, const json_t *given) {
    enum { MOST_BYTES = 1024 };
    char name[64];
    if (set->left_out.size > MOST_BYTES)
        return;
    (void)snprintf(name, sizeof name, "tools.%.50s",
                   json_string_value(json_object_get(given, "type")));
    text_add(&set->left_out, ",", set->left_out.size > 0);
    text_quote(&set->left_out, name, strlen(name));
}

static bool check_type(const tools_reading *in, const json_t *type, size_t i) {
    const bool known = in->dialect == TOOLS_OF_MESSAGES ? is_absent(type) || is_word(type, "custom")
                                                        : is_word(type, "function");
    return known || refuse(in->r, 400, "tools", "tools[%zu].type must be \"%s\"", i,
                           in->dialect == TOOLS_OF_MESSAGES ? "custom" : "function");
}

static bool check_members(const tools_reading *in, const json_t *function, size_t i) {
    const char *prefix = prefix_of(in->dialect), *schema = schema_name(in->dialect);
    const json_t *described = json_object_get(function, "description");
    const json_t *strict = json_object_get(function, "strict");
    const json_t *given = json_object_get(function, schema);
    if (!is_name(json_object_get(function, "name")))
        return refuse(in->r, 400, "tools",
                      "tools[%zu].%sname must be 1 to %d letters, digits, '_', '-' or '.'", i,
                      prefix, CALL_NAME_BYTES - 1);
    if (!is_absent(described) && !json_is_string(described))
        return refuse(in->r, 400, "tools", "tools[%zu].%sdescription must be a text", i, prefix);
    if (!is_absent(strict) && !json_is_boolean(strict))
        return refuse(in->r, 400, "tools", "tools[%zu].%sstrict must be true or false", i, prefix);
    if (!json_is_object(given) && (!is_absent(given) || in->dialect == TOOLS_OF_MESSAGES))
        return refuse(in->r, 400, "tools", "tools[%zu].%s%s must be a JSON Schema, an object", i,
                      prefix, schema);
    return true;
}

static bool read_tool(const tools_reading *in, const json_t *given, size_t i) {
    toolset *set = in->set;
    tool *t = &set->list[set->n];
    const bool inner = in->dialect == TOOLS_OF_CHATS;
    const json_t *function = inner ? json_object_get(given, "function") : given;
    if (!check_type(in, json_object_get(given, "type"), i) || !check_members(in, function, i))
        return false;
    t->name = json_string_value(json_object_get(function, "name"));
    t->schema = json_object_get(function, schema_name(in->dialect));
    t->schema = json_is_object(t->schema) ? t->schema : NULL;
    (void)snprintf(t->place, sizeof t->place, "tools[%zu].%s%s", i, prefix_of(in->dialect),
                   schema_name(in->dialect));
    for (size_t k = 0; k < set->n; k++)
        if (strcmp(set->list[k].name, t->name) == 0)
            return refuse(in->r, 400, "tools", "tools[%zu] has the name of one before it: '%s'", i,
                          t->name);
    set->n++;
    return true;
}

static bool read_tools(const tools_reading *in, const json_t *tools) {
    const size_t n = json_array_size(tools);
    if (!json_is_array(tools) || n > MOST_TOOLS)
        return refuse(in->r, 400, "tools", "tools must be an array of at most %d tools",
                      MOST_TOOLS);
    in->set->list = calloc(n + 1, sizeof *in->set->list);
    if (in->set->list == NULL)
        return refuse(in->r, 503, "tools", "no memory for %zu tools", n);
    for (size_t i = 0; i < n; i++) {
        const json_t *given = json_array_get(tools, i);
        if (is_foreign(in, given))
            note_foreign(in->set, given);
        else if (!read_tool(in, given, i))
            return false;
    }
    return !in->set->left_out.failed || refuse(in->r, 503, "tools", "no memory for the tools");
}

/* ---- which may be called --------------------------------------------------------------------- */

static bool refuse_choice(const tools_reading *in) {
    static const char *const words[] = {
        [TOOLS_OF_CHATS] = "\"none\", \"auto\", \"required\", or {\"type\": \"function\", "
                           "\"function\": {\"name\": ...}}",
        [TOOLS_OF_RESPONSES] =
            "\"none\", \"auto\", \"required\", or {\"type\": \"function\", \"name\": ...}",
        [TOOLS_OF_MESSAGES] = "an object with \"type\": \"none\", \"auto\", \"any\", or \"tool\" "
                              "and \"name\"",
    };
    return refuse(in->r, 400, "tool_choice", "tool_choice must be %s", words[in->dialect]);
}

/* Reads the name of a tool: it is the only one that may be called, and it must be, once. */
static bool keep_named(const tools_reading *in, const json_t *name) {
    toolset *set = in->set;
    size_t i = 0;
    while (i < set->n && !is_word(name, set->list[i].name))
        i++;
    if (!json_is_string(name))
        return refuse_choice(in);
    if (i == set->n)
        return refuse(in->r, 400, "tool_choice", "tool_choice: there is no tool '%.128s'",
                      json_string_value(name));
    set->list[0] = set->list[i];
    set->n = 1;
    set->required = true;
    set->single = true;
    return true;
}

static bool read_word(const tools_reading *in, const json_t *word) {
    const bool messages = in->dialect == TOOLS_OF_MESSAGES;
    if (is_word(word, "none"))
        in->set->n = 0;
    else if (is_word(word, messages ? "any" : "required"))
        in->set->required = true;
    else if (!is_word(word, "auto"))
        return refuse_choice(in);
    return true;
}

static bool read_choice(const tools_reading *in, const json_t *choice) {
    const json_t *type = json_object_get(choice, "type");
    const json_t *single = json_object_get(choice, "disable_parallel_tool_use");
    if (in->dialect == TOOLS_OF_MESSAGES) {
        if (!is_absent(single) && !json_is_boolean(single))
            return refuse_choice(in);
        in->set->single = json_is_true(single);
        return is_word(type, "tool") ? keep_named(in, json_object_get(choice, "name"))
                                     : read_word(in, type);
    }
    if (!json_is_object(choice))
        return read_word(in, choice);
    if (!is_word(type, "function"))
        return refuse_choice(in);
    return keep_named(in, json_object_get(in->dialect == TOOLS_OF_CHATS
                                              ? json_object_get(choice, "function")
                                              : choice,
                                          "name"));
}

static bool read_parallel(const tools_reading *in, const json_t *parallel) {
    if (!json_is_boolean(parallel))
        return refuse(in->r, 400, "parallel_tool_calls",
                      "parallel_tool_calls must be true or false");
    in->set->single = in->set->single || !json_is_true(parallel);
    return true;
}

/* ---- what the model is told ------------------------------------------------------------------ */

/* Returns a tool in the dialect of chats; NULL: no memory. */
static json_t *as_in_chats(const json_t *given, tools_dialect dialect) {
    if (dialect == TOOLS_OF_CHATS)
        return json_deep_copy(given);
    json_t *function = json_object();
    const char *const names[][2] = {
        {"name", "name"}, {"description", "description"}, {"parameters", schema_name(dialect)}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(given, names[i][1]);
        if (!is_absent(value))
            (void)json_object_set(function, names[i][0], value);
    }
    return json_pack("{s:s, s:o}", "type", "function", "function", function);
}

/* Writes all declared tools for the template, even if only one may be called. */
static bool tell(const tools_reading *in, const json_t *tools) {
    const bool before = json_remember(false);
    json_t *told = json_array();
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!is_foreign(in, json_array_get(tools, i)))
            (void)json_array_append_new(told, as_in_chats(json_array_get(tools, i), in->dialect));
    in->set->told = json_dump(told, (json_style){0});
    json_decref(told);
    if (json_remember(before)) {
        free(in->set->told);
        in->set->told = NULL;
    }
    return in->set->told != NULL || refuse(in->r, 503, "tools", "no memory for the tools");
}

bool tools_read(toolset *set, tools_dialect dialect, const json_t *body, const call_form *form,
                refusal *r) {
    const tools_reading in = {set, dialect, r};
    const json_t *tools = json_object_get(body, "tools");
    const json_t *choice = json_object_get(body, "tool_choice");
    const json_t *parallel = json_object_get(body, "parallel_tool_calls");
    *set = (toolset){0};
    if (!is_absent(tools) && !read_tools(&in, tools))
        return false;
    if (!is_absent(choice) && !read_choice(&in, choice))
        return false;
    if (dialect != TOOLS_OF_MESSAGES && !is_absent(parallel) && !read_parallel(&in, parallel))
        return false;
    if (set->n == 0 && set->required)
        return refuse(r, 400, "tool_choice", "tool_choice asks for a call, and there are no tools");
    set->form = set->n > 0 ? form : NULL;
    set->single = set->single || (form != NULL && form->single);
    return set->n == 0 || tell(&in, tools);
}

call_value tools_value(const void *set, const char *called, const char *key, size_t size) {
    const toolset *all = set;
    char name[256];
    if (size >= sizeof name)
        return CALL_VALUE_ANY;
    memcpy(name, key, size);
    name[size] = '\0';
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->list[i].name, called) == 0)
            return call_schema_value(all->list[i].schema,
                                     call_schema_property(all->list[i].schema, name));
    return CALL_VALUE_ANY;
}

void tools_free(toolset *set) {
    free(set->list);
    free(set->told);
    text_free(&set->left_out);
    *set = (toolset){0};
}
