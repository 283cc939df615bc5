/* SPDX-License-Identifier: Apache-2.0 */
/* Completions, in the dialect of llama.cpp's own interface. */

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/json_tree/write.h"
#include "serve/work/dialect.h"

static const char *stop_type(tern_end end) {
    switch (end) {
    case TERN_END_OF_TEXT:
    case TERN_END_STOP_TOKEN:
        return "eos";
    case TERN_END_STOP_TEXT:
        return "word";
    default:
        return "limit";
    }
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void write_settings(job *j) {
    text *out = &j->out;
    dialect_add(out, ",\"generation_settings\":");
    ask_write_native(&j->ask, out);
}

/* Writes the logprobs noted since the last event, if they were asked for. */
static void write_probabilities(job *j, choice *c) {
    if (j->ask.logprobs) {
        dialect_add(&j->out, ",\"completion_probabilities\":[");
        text_add(&j->out, c->logs[0].bytes, c->logs[0].size);
        dialect_add(&j->out, "]");
        text_clear(&c->logs[0]);
    }
}

/* Writes {"index", "content", "tokens", ...: the members that all documents have. Leaves the object
 * open. */
static void open_document(job *j, size_t i, const char *bytes, size_t size, bool stop) {
    choice *c = &j->choices[i];
    const bool ids = j->ask.stream || j->ask.return_tokens;
    text_print(&j->out, "{\"index\":%zu,\"content\":", i);
    text_quote(&j->out, bytes, size);
    dialect_add(&j->out, ",\"tokens\":[");
    text_add(&j->out, c->ids.bytes, ids ? c->ids.size : 0);
    text_clear(&c->ids);
    text_print(&j->out, "],\"id_slot\":-1,\"stop\":%s,\"tokens_predicted\":%zu",
               stop ? "true" : "false", c->n_tokens);
    text_print(&j->out, ",\"tokens_evaluated\":%zu", j->ask.prompts[i / j->ask.n].n);
    write_probabilities(j, c);
}

static void close_last(job *j, size_t i) {
    choice *c = &j->choices[i];
    text prompt = {0};
    text *out = &j->out;
    dialect_write_prompt(j, i, &prompt);
    text_string(out, "model", j->place.model);
    dialect_add(out, ",\"prompt\":");
    text_quote(out, prompt.bytes, prompt.size);
    out->failed = out->failed || prompt.failed;
    text_free(&prompt);
    write_settings(j);
    dialect_write_truth(out, "has_new_line", c->new_line);
    dialect_write_truth(out, "truncated", c->end == TERN_END_CONTEXT);
    text_string(out, "stop_type", stop_type(c->end));
    text_string(out, "stopping_word", c->end == TERN_END_STOP_TEXT ? j->ask.stops[c->stop] : "");
    text_print(out, ",\"tokens_cached\":%zu", c->figures.n_shared);
    dialect_write_timings(out, &c->figures);
    dialect_write_tern(j, i, 1);
    dialect_add(out, "}");
}

/* Replaces the document that begins at `begin` of the job's text by the members that the request
 * asks for, each under the path that it gave, such as "timings/prompt_n". Paths that lead nowhere,
 * or to the document itself, are left out. */
static void keep_members(job *j, size_t begin) {
    text *out = &j->out;
    if (j->ask.members == NULL || out->failed)
        return;
    json_t *all = json_read_body(out->bytes + begin, out->size - begin, "reply", NULL);
    json_t *some = json_object();
    for (size_t i = 0; i < json_array_size(j->ask.members); i++) {
        const char *path = json_string_value(json_array_get(j->ask.members, i));
        json_t *value = json_object_follow(all, path, '/');
        if (value != NULL && value != all)
            (void)json_object_set(some, path, value);
    }
    char *words = all != NULL ? json_dump(some, (json_style){0}) : NULL;
    out->size = begin;
    if (words != NULL)
        dialect_add(out, words);
    out->failed = out->failed || words == NULL;
    free(words);
    json_decref(some);
    json_decref(all);
}

/* ---- streams and whole replies ------------------------------------------------------------------
 */

static void begin(job *j) {
    (void)j;
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    dialect_open_event(j, NULL);
    open_document(j, i, bytes, size, false);
    dialect_add(&j->out, "}");
    dialect_close_event(j);
}

static void write_last(job *j, size_t i) {
    dialect_open_event(j, NULL);
    const size_t from = j->out.size;
    open_document(j, i, "", 0, true);
    close_last(j, i);
    keep_members(j, from);
    dialect_close_event(j);
}

static void finish(job *j) {
    (void)j;
}

static void fail(job *j, const refusal *r) {
    dialect_open_event(j, NULL);
    refusal_write(r, &j->out);
    dialect_close_event(j);
}

static void write_whole(job *j) {
    dialect_add(&j->out, j->n_choices > 1 ? "[" : "");
    for (size_t i = 0; i < j->n_choices; i++) {
        const text *content = &j->choices[i].content;
        dialect_add(&j->out, i > 0 ? "," : "");
        const size_t from = j->out.size;
        open_document(j, i, content->bytes, content->size, true);
        close_last(j, i);
        keep_members(j, from);
        j->out.failed = j->out.failed || content->failed;
    }
    dialect_add(&j->out, j->n_choices > 1 ? "]" : "");
}

const dialect dialect_native = {.id = "cmpl-",
                                .has_ids = true,
                                .begin = begin,
                                .piece = write_piece,
                                .last = write_last,
                                .finish = finish,
                                .fail = fail,
                                .whole = write_whole,
                                .note = dialect_note_token};
