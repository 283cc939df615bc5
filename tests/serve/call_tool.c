/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests/serve/test_call_forms.py: finds the form of calls in chat templates, and reads calls in
 * texts. Usage: call_tool TOKENIZER. Each line of standard input is {"template": PATH, "tools":
 * [...], "calls": [...], "text": T, "split": N, "choice": ...}; `calls` are those of a message that
 * the template writes. The answer is one line: {"form": {...}} with `written`, `text`, `calls` that
 * were found in it (or in `text`), and whether the grammar allows it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/write.h"
#include "serve/interfaces/call_grammar.h"
#include "serve/interfaces/call_probe.h"
#include "serve/interfaces/thinking.h"
#include "tern/tern.h"

static void add_text(void *user, const char *bytes, size_t size) {
    json_t *found = user;
    json_t *said = json_object_get(found, "text");
    text whole = {0};
    text_add(&whole, json_string_value(said), json_string_length(said));
    text_add(&whole, bytes, size);
    (void)json_object_set_new(found, "text", json_text(whole.bytes, whole.size));
    text_free(&whole);
}

static json_t *latest(json_t *found) {
    json_t *calls = json_object_get(found, "calls");
    return json_array_get(calls, json_array_size(calls) - 1);
}

static void add_call(void *user, const char *name) {
    json_t *found = user;
    json_t *call = json_pack("{s:s, s:s, s:b}", "name", name, "arguments", "", "ended", false);
    (void)json_array_append_new(json_object_get(found, "calls"), call);
}

static void add_arguments(void *user, const char *bytes, size_t size) {
    json_t *call = latest(user);
    const json_t *before = json_object_get(call, "arguments");
    text whole = {0};
    text_add(&whole, json_string_value(before), json_string_length(before));
    text_add(&whole, bytes, size);
    (void)json_object_set_new(call, "arguments", json_text(whole.bytes, whole.size));
    text_free(&whole);
}

static void end_call(void *user) {
    (void)json_object_set_new(latest(user), "ended", json_boolean(true));
}

/* A reader of calls, and what hears of them. */
typedef struct listener {
    call_reader r;
    call_sink sink;
} listener;

static void skip(void *user, const char *bytes, size_t size) {
    (void)user;
    (void)bytes;
    (void)size;
}

static void hear(void *user, const char *bytes, size_t size) {
    listener *l = user;
    call_reader_take(&l->r, &l->sink, bytes, size);
}

/* Reads a text in parts, of messages in channels where the marks are those. */
static void read_calls(const toolset *set, const thinking_marks *marks, const char *written,
                       size_t split, json_t *found) {
    listener l = {{.form = set->form, .types = {set, tools_value}},
                  {found, add_text, add_call, add_arguments, end_call}};
    const bool channels = marks != NULL && marks->channels;
    const thinking_sink sink = {&l, skip, hear};
    thinking_reader messages = {.marks = channels ? marks : NULL};
    const size_t size = strlen(written);
    for (size_t at = 0, n; at < size; at += n) {
        n = split < size - at ? split : size - at;
        while (at + n < size && ((unsigned char)written[at + n] & 0xc0) == 0x80)
            n++;
        if (channels)
            thinking_take(&messages, &sink, written + at, n);
        else
            hear(&l, written + at, n);
    }
    thinking_finish(&messages, &sink);
    thinking_free(&messages);
    call_reader_finish(&l.r, &l.sink);
    call_reader_free(&l.r);
}

/* The text that the template writes of a message with these calls, after the question. */
static char *write_calls(const tern_tokenizer *t, const char *tools, const json_t *calls) {
    static const char asked[] = "Quokkas?";
    char *list = json_dump(calls, (json_style){0});
    const tern_chat_message messages[] = {{.role = "user", .content = asked},
                                          {.role = "assistant", .tool_calls = list}};
    const tern_conversation talk = {
        .messages = messages, .n = 2, .tools = tools, .no_answer = true};
    tern_rendering seen = {0};
    tern_error err = {0};
    char *written = NULL;
    if (tern_conversation_render(t, &talk, &seen, &err) == TERN_OK) {
        const char *at = memmem(seen.text, seen.size, asked, sizeof asked - 1);
        const size_t from = at != NULL ? (size_t)(at - seen.text) + sizeof asked - 1 : 0;
        written = strndup(seen.text + from, seen.size - from);
    } else {
        fprintf(stderr, "%s\n", err.message);
    }
    tern_rendering_free(&seen);
    free(list);
    return written;
}

static json_t *form_json(const call_form *f) {
    return json_pack(
        "{s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:s, s:s, s:s, s:s, "
        "s:s, s:s, s:s, s:s}",
        "writing", (int)f->writing, "ids", (int)f->ids, "section_open", f->section_open,
        "section_close", f->section_close, "open", f->open, "middle", f->middle, "close", f->close,
        "separator", f->separator, "single", f->single, "at_start", f->at_start, "untold",
        f->untold, "unwritten", f->unwritten, "python", f->python, "quote", f->quote, "assign",
        f->assign, "key_open", f->key_open, "text_open", f->text_open, "text_close", f->text_close,
        "json_open", f->json_open, "json_close", f->json_close, "comma", f->comma);
}

/* Sets whether the grammar of the tools allows the text from the first call on. */
static void check_grammar(const toolset *set, grammars *g, const char *written, json_t *found) {
    char trigger[CALL_TRIGGER_BYTES + 1];
    tern_grammar *grammar = NULL;
    refusal r = {0};
    bool failed = false, begins = false, whole = false;
    tern_error err = {0};
    (void)call_form_trigger(set->form, trigger);
    const char *from = strstr(written, trigger);
    if (!call_grammar(set, &(call_beside){0}, g, &grammar, NULL, &failed, &r)) {
        (void)json_object_set_new(found, "refused", json_string(r.message));
        return;
    }
    if (from != NULL &&
        tern_grammar_check(grammar, from, strlen(from), &begins, &whole, &err) == TERN_OK) {
        (void)json_object_set_new(found, "begins", json_boolean(begins));
        (void)json_object_set_new(found, "whole", json_boolean(whole));
    }
    tern_grammar_free(&grammar);
}

static void run(tern_tokenizer *t, grammars *g, const json_t *job) {
    call_form form = {0};
    toolset set = {0};
    refusal r = {0};
    tern_error err = {0};
    json_t *found = json_pack("{s:s, s:o}", "text", "", "calls", json_array());
    if (tern_tokenizer_set_chat_format(t, json_string_value(json_object_get(job, "template")),
                                       &err) != TERN_OK)
        (void)json_object_set_new(found, "error", json_string(err.message));
    call_find(t, &form);
    (void)json_object_set_new(found, "form", form_json(&form));
    const json_t *calls = json_object_get(job, "calls");
    const json_t *given = json_object_get(job, "text");
    if (tools_read(&set, TOOLS_OF_CHATS, job, &form, &r) && set.form != NULL &&
        (calls != NULL || given != NULL)) {
        char *written =
            given != NULL ? strdup(json_string_value(given)) : write_calls(t, set.told, calls);
        const size_t split = (size_t)json_integer_value(json_object_get(job, "split"));
        if (written != NULL) {
            (void)json_object_set_new(found, "written", json_string(written));
            const char *from = form.at_start && given == NULL ? strchr(written, '[') : written;
            read_calls(&set, thinking_find(t), from != NULL ? from : written, split > 0 ? split : 1,
                       found);
            check_grammar(&set, g, written, found);
        }
        free(written);
    }
    if (r.status != 0)
        (void)json_object_set_new(found, "refused", json_string(r.message));
    tools_free(&set);
    char *line = json_dump(found, (json_style){0});
    printf("%s\n", line != NULL ? line : "{}");
    fflush(stdout);
    free(line);
    json_decref(found);
}

int main(int argc, char **argv) {
    tern_error err = {0};
    tern_tokenizer *t = NULL;
    grammars *g = NULL;
    char *line = NULL;
    size_t room = 0;
    if (argc != 2 || tern_tokenizer_open(argv[1], NULL, &t, &err) != TERN_OK ||
        grammars_open(t, tern_tokenizer_size(t), &g, &err) != TERN_OK) {
        fprintf(stderr, "call_tool: %s\n", err.message);
        return 1;
    }
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        json_t *job = json_read_any(line, (size_t)n, "standard input", &err);
        if (job == NULL) {
            fprintf(stderr, "%s\n", err.message);
            return 2;
        }
        run(t, g, job);
        json_decref(job);
    }
    free(line);
    grammars_free(&g);
    tern_tokenizer_free(&t);
    return 0;
}
