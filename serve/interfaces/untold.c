/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/untold.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/write.h"

static bool is_role(const tern_chat_message *m, const char *role) {
    return strcmp(m->role, role) == 0;
}

/* ---- what the model is told ------------------------------------------------------------------ */

/* Writes words of a form; a number stands for a hole. */
static void write_words(text *out, const char *words) {
    for (; *words != '\0'; words++)
        text_add(out, *words == CALL_HOLE ? "1" : words, 1);
}

static void write_example(text *out, const call_form *f) {
    write_words(out, f->section_open);
    write_words(out, f->open);
    text_print(out, "NAME");
    write_words(out, f->middle);
    if (f->writing == CALL_EACH)
        text_print(out, "%sARGUMENT%sVALUE%s", f->key_open, f->text_open, f->text_close);
    else if (f->writing == CALL_LITERALS && f->bracket == '(')
        text_print(out, "(ARGUMENT%sVALUE)", f->assign);
    else
        text_print(out, "{\"ARGUMENT\": VALUE}");
    write_words(out, f->close);
    write_words(out, f->section_close);
}

static void write_tools(text *out, const char *tools, const call_form *f) {
    json_t *all = json_read_any(tools, strlen(tools), "tools", NULL);
    text_print(out, "You can call these functions:\n");
    for (size_t i = 0; i < json_array_size(all); i++) {
        char *line =
            json_dump(json_object_get(json_array_get(all, i), "function"), (json_style){0});
        text_print(out, "%s\n", line != NULL ? line : "");
        out->failed = out->failed || line == NULL;
        free(line);
    }
    text_print(out, "To call a function, write its name and its arguments in this form:\n");
    write_example(out, f);
    text_print(out, "\n%sThen wait for the result. If no function is needed, just answer.",
               f->single ? "" : "Several calls may follow each other. ");
    json_decref(all);
}

/* ---- calls and results as texts -------------------------------------------------------------- */

static void write_calls(text *out, const tern_chat_message *m, const call_form *f) {
    json_t *calls = json_read_any(m->tool_calls, strlen(m->tool_calls), "calls", NULL);
    text_print(out, "%s", m->content != NULL ? m->content : "");
    text_print(out, "%s%s", out->size > 0 ? "\n" : "", f->section_open);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        char *arguments = json_dump(json_object_get(function, "arguments"), (json_style){0});
        const char *name = json_string_value(json_object_get(function, "name"));
        text_print(out, "%s%s%s%s%s%s", i > 0 ? f->separator : "", f->open,
                   name != NULL ? name : "", f->middle, arguments != NULL ? arguments : "{}",
                   f->close);
        out->failed = out->failed || arguments == NULL;
        free(arguments);
    }
    text_print(out, "%s", f->section_close);
    json_decref(calls);
}

static void write_result(text *out, const tern_chat_message *m) {
    text_print(out, "%s<tool_response>\n%s\n</tool_response>", out->size > 0 ? "\n" : "",
               m->content != NULL ? m->content : "");
}

/* ---- the messages ---------------------------------------------------------------------------- */

/* Adds a message whose text the caller writes. */
static text *add(untold_talk *t, const char *role) {
    t->list[t->n] = (tern_chat_message){.role = role};
    return &t->texts[t->n++];
}

static void add_message(untold_talk *t, const tern_chat_message *m, size_t i, const call_form *f) {
    t->from[t->n] = i;
    const bool result = is_role(m, "tool");
    if (!f->unwritten || (!result && m->tool_calls == NULL && !is_role(m, "user"))) {
        t->list[t->n++] = *m;
        return;
    }
    if (m->tool_calls != NULL) {
        write_calls(add(t, "assistant"), m, f);
        return;
    }
    /* Results, and the question after them, are one message of the user. */
    const bool joins =
        t->n > 0 && is_role(&t->list[t->n - 1], "user") && t->texts[t->n - 1].size > 0;
    text *out = joins ? &t->texts[t->n - 1] : NULL;
    if (result)
        write_result(out != NULL ? out : add(t, "user"), m);
    else if (out != NULL)
        text_print(out, "\n%s", m->content);
    else
        t->list[t->n++] = *m;
}

/* Adds what the model is told to the message of the system, or to the first question. */
static void tell(untold_talk *t, const char *tools, const call_form *f, bool in_question) {
    size_t i = 0;
    while (in_question && i < t->n && !is_role(&t->list[i], "user"))
        i++;
    text whole = {0};
    const tern_chat_message *m = i < t->n ? &t->list[i] : NULL;
    const bool joins = m != NULL && is_role(m, in_question ? "user" : "system");
    const char *said = !joins ? "" : t->texts[i].size > 0 ? t->texts[i].bytes : m->content;
    if (!in_question && joins)
        text_print(&whole, "%s\n\n", said);
    write_tools(&whole, tools, f);
    if (in_question && joins)
        text_print(&whole, "\n\n%s", said);
    if (!joins) {
        i = 0;
        memmove(t->list + 1, t->list, t->n * sizeof *t->list);
        memmove(t->texts + 1, t->texts, t->n * sizeof *t->texts);
        memmove(t->from + 1, t->from, t->n * sizeof *t->from);
        t->list[0] = (tern_chat_message){.role = in_question ? "user" : "system"};
        t->n++;
    } else {
        text_free(&t->texts[i]);
    }
    t->texts[i] = whole;
}

bool untold_make(const tern_chat_message *messages, size_t n, const char *tools,
                 const call_form *form, bool in_question, untold_talk *out) {
    *out = (untold_talk){.list = calloc(n + 1, sizeof *out->list),
                         .texts = calloc(n + 1, sizeof *out->texts),
                         .from = calloc(n + 2, sizeof *out->from)};
    if (out->list == NULL || out->texts == NULL || out->from == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        add_message(out, &messages[i], i, form);
    if (tools != NULL && form->untold)
        tell(out, tools, form, in_question);
    bool sound = true;
    for (size_t i = 0; i < out->n; i++) {
        sound = sound && !out->texts[i].failed;
        if (out->texts[i].size > 0)
            out->list[i].content = out->texts[i].bytes;
    }
    return sound;
}

void untold_free(untold_talk *t) {
    for (size_t i = 0; i < t->n && t->texts != NULL; i++)
        text_free(&t->texts[i]);
    free(t->list);
    free(t->texts);
    free(t->from);
    *t = (untold_talk){0};
}

static bool has_calls(const tern_conversation *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->messages[i].tool_calls != NULL || is_role(&c->messages[i], "tool"))
            return true;
    return false;
}

/* One attempt; *seen: the model sees what it is told. */
static tern_status attempt(const tern_tokenizer *t, const tern_conversation *c,
                           const call_form *form, const tern_tokenize_limits *limits,
                           bool in_question, bool *seen, tern_rendering *out, tern_error *err) {
    untold_talk talk;
    tern_status status = TERN_ERR_NOMEM;
    *seen = true;
    if (!untold_make(c->messages, c->n, c->tools, form, in_question, &talk)) {
        (void)tern_fail(err, status, "no memory for the messages");
    } else {
        tern_conversation made = *c;
        made.messages = talk.list;
        made.n = talk.n;
        made.tools = form->unwritten ? NULL : c->tools;
        status = tern_conversation_render_within(t, &made, limits, out, err);
        if (status == TERN_OK) {
            *seen = out->unseen > 0 || talk.texts[0].size == 0;
            out->unseen = out->unseen < talk.n ? talk.from[out->unseen] : c->n;
        }
    }
    untold_free(&talk);
    return status;
}

tern_status untold_render(const tern_tokenizer *t, const tern_conversation *c,
                          const call_form *form, const tern_tokenize_limits *limits,
                          tern_rendering *out, tern_error *err) {
    const bool tells = c->tools != NULL && form->untold;
    bool seen = true;
    if (!tells && !(form->unwritten && has_calls(c)))
        return tern_conversation_render_within(t, c, limits, out, err);
    const tern_status status = attempt(t, c, form, limits, false, &seen, out, err);
    const bool refused = status == TERN_ERR_CHAT || status == TERN_ERR_TEMPLATE;
    if (!tells || !(refused || (status == TERN_OK && !seen)))
        return status;
    if (status == TERN_OK)
        tern_rendering_free(out);
    return attempt(t, c, form, limits, true, &seen, out, err);
}
