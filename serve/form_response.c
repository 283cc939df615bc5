/* SPDX-License-Identifier: Apache-2.0 */
/* Responses, which nothing is kept of, as OpenAI's clients read them. */

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/form.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static bool is_cut(const choice *c) {
    return c->end == TERN_END_LENGTH || c->end == TERN_END_CONTEXT;
}

static const char *status_of(const choice *c) {
    return !c->ended ? "in_progress" : is_cut(c) ? "incomplete" : "completed";
}

/* A field as it was given, or what stands for none. */
static void write_given(job *j, const char *name, const char *none) {
    const json_t *value = json_object_get(j->ask.body, name);
    const bool given = value != NULL && !json_is_null(value);
    char *words = given ? json_dump(value, (json_style){0}) : NULL;
    text_name(&j->out, name);
    form_add(&j->out, words != NULL ? words : none);
    j->out.failed = j->out.failed || (given && words == NULL);
    free(words);
}

/* The id of the one item is that of the response with another beginning. */
static void write_item_id(job *j, const char *name) {
    text_print(&j->out, ",\"%s\":\"msg%s\"", name, strchr(j->id, '_'));
}

static void write_part(job *j, bool whole) {
    choice *c = &j->choices[0];
    form_add(&j->out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[");
    text_add(&j->out, c->logs[0].bytes, whole ? c->logs[0].size : 0);
    form_add(&j->out, "],\"text\":");
    text_quote(&j->out, c->content.bytes, whole ? c->content.size : 0);
    form_add(&j->out, "}");
    j->out.failed = j->out.failed || c->content.failed;
}

static void write_item(job *j, bool whole) {
    form_add(&j->out, "{\"type\":\"message\",\"role\":\"assistant\"");
    write_item_id(j, "id");
    text_string(&j->out, "status", status_of(&j->choices[0]));
    form_add(&j->out, ",\"content\":[");
    if (whole)
        write_part(j, true);
    form_add(&j->out, "]}");
}

static void write_usage(job *j) {
    const form_usage u = form_count(j);
    if (!j->choices[0].ended) {
        form_add(&j->out, ",\"usage\":null");
        return;
    }
    text_print(&j->out,
               ",\"usage\":{\"input_tokens\":%zu,\"input_tokens_details\":{\"cached_tokens\":%zu},"
               "\"output_tokens\":%zu,\"output_tokens_details\":{\"reasoning_tokens\":0},"
               "\"total_tokens\":%zu}",
               u.n_prompt, u.n_shared, u.n_generated, u.n_prompt + u.n_generated);
}

/* What a response says of the request. */
static void write_echo(job *j) {
    text *out = &j->out;
    write_given(j, "instructions", "null");
    write_given(j, "max_output_tokens", "null");
    write_given(j, "metadata", "{}");
    text_real(out, "temperature", j->ask.sampling.temperature);
    text_real(out, "top_p", j->ask.sampling.top_p);
    text_print(out, ",\"top_logprobs\":%u", j->ask.n_logprobs);
    form_add(out, ",\"parallel_tool_calls\":false,\"tool_choice\":\"none\",\"tools\":[],"
                  "\"previous_response_id\":null,\"store\":false,\"background\":false,"
                  "\"truncation\":\"disabled\",\"text\":{\"format\":{\"type\":\"text\"}}");
}

static void write_response(job *j) {
    const choice *c = &j->choices[0];
    text *out = &j->out;
    text_print(out, "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld", j->id,
               (long long)j->created);
    text_string(out, "status", status_of(c));
    form_add(out, ",\"error\":null,\"incomplete_details\":");
    form_add(out, c->ended && is_cut(c) ? "{\"reason\":\"max_output_tokens\"}" : "null");
    text_string(out, "model", j->place.model);
    form_add(out, ",\"output\":[");
    if (c->ended)
        write_item(j, true);
    form_add(out, "]");
    write_echo(j);
    write_usage(j);
    if (c->ended)
        form_write_tern(j, 0, 1);
    form_add(out, "}");
}

/* ---- streams --------------------------------------------------------------------------------- */

static void open_event(job *j, const char *name) {
    form_open_event(j, name);
    text_print(&j->out, "{\"type\":\"%s\",\"sequence_number\":%u", name, j->n_events++);
}

static void close_event(job *j) {
    form_add(&j->out, "}");
    form_close_event(j);
}

static void write_response_event(job *j, const char *name) {
    open_event(j, name);
    form_add(&j->out, ",\"response\":");
    write_response(j);
    close_event(j);
}

static void write_item_event(job *j, const char *name, bool whole) {
    open_event(j, name);
    form_add(&j->out, ",\"output_index\":0,\"item\":");
    write_item(j, whole);
    close_event(j);
}

/* An event about the one part of the one item; still open. */
static void open_part_event(job *j, const char *name) {
    open_event(j, name);
    write_item_id(j, "item_id");
    form_add(&j->out, ",\"output_index\":0,\"content_index\":0");
}

static void write_part_event(job *j, const char *name, bool whole) {
    open_part_event(j, name);
    form_add(&j->out, ",\"part\":");
    write_part(j, whole);
    close_event(j);
}

static void begin(job *j) {
    write_response_event(j, "response.created");
    write_response_event(j, "response.in_progress");
    write_item_event(j, "response.output_item.added", false);
    write_part_event(j, "response.content_part.added", false);
}

static void write_logprobs(job *j, size_t from) {
    const text *logs = &j->choices[0].logs[0];
    form_add(&j->out, ",\"logprobs\":[");
    from += from > 0 && from < logs->size; /* the comma */
    text_add(&j->out, logs->bytes != NULL ? logs->bytes + from : "", logs->size - from);
    form_add(&j->out, "]");
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    choice *c = &j->choices[i];
    open_part_event(j, "response.output_text.delta");
    form_add(&j->out, ",\"delta\":");
    text_quote(&j->out, bytes, size);
    write_logprobs(j, c->offset);
    c->offset = c->logs[0].size;
    close_event(j);
}

static void write_last(job *j, size_t i) {
    const choice *c = &j->choices[i];
    open_part_event(j, "response.output_text.done");
    form_add(&j->out, ",\"text\":");
    text_quote(&j->out, c->content.bytes, c->content.size);
    write_logprobs(j, 0);
    close_event(j);
    write_part_event(j, "response.content_part.done", true);
    write_item_event(j, "response.output_item.done", true);
    write_response_event(j, is_cut(c) ? "response.incomplete" : "response.completed");
}

static void finish(job *j) {
    (void)j;
}

/* Clients look for the members of the event, or for its "error". */
static void fail(job *j, const refusal *r) {
    open_event(j, "error");
    form_add(&j->out, ",");
    refusal_write_reason(r, &j->out);
    form_add(&j->out, ",");
    refusal_write_error(r, &j->out);
    close_event(j);
}

const form form_response = {.id = "resp_",
                            .trims = true,
                            .keeps_text = true,
                            .begin = begin,
                            .piece = write_piece,
                            .last = write_last,
                            .finish = finish,
                            .fail = fail,
                            .whole = write_response,
                            .note = form_note_token};
