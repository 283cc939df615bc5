/* SPDX-License-Identifier: Apache-2.0 */
/* Responses, in the dialect of OpenAI. */

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/work/dialect.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static bool is_cut(const choice *c) {
    return c->end == TERN_END_LENGTH || c->end == TERN_END_CONTEXT;
}

static const char *status_of(const choice *c) {
    return !c->ended ? "in_progress" : is_cut(c) ? "incomplete" : "completed";
}

/* Writes a field of the request as it was given; `none`: the JSON to write if it was not. */
static void write_given(job *j, const char *name, const char *none) {
    const json_t *value = json_object_get(j->ask.body, name);
    const bool given = value != NULL && !json_is_null(value);
    char *words = given ? json_dump(value, (json_style){0}) : NULL;
    text_name(&j->out, name);
    dialect_add(&j->out, words != NULL ? words : none);
    j->out.failed = j->out.failed || (given && words == NULL);
    free(words);
}

/* Writes the id of an item, made of the response's id and the item's number. */
static void write_item_id(job *j, const char *name, const dialect_part *part, size_t number) {
    text_print(&j->out, ",\"%s\":\"%s%s", name,
               part->call != NULL ? "fc"
               : part->thought    ? "rs"
                                  : "msg",
               strchr(j->id, '_'));
    if (number > 0 || part->call != NULL)
        text_print(&j->out, "%02zx", number);
    dialect_add(&j->out, "\"");
}

/* True for the number of the item that has the logprobs: the first, or that after the thinking. */
static bool has_logs(const choice *c, size_t number) {
    return number == (c->thought.size > 0 ? 1 : 0);
}

/* Writes a part with text, or with thinking. */
static void write_part(job *j, const dialect_part *part, size_t number, bool whole) {
    const choice *c = &j->choices[0];
    if (part->thought) {
        dialect_add(&j->out, "{\"type\":\"reasoning_text\",\"text\":");
    } else {
        dialect_add(&j->out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[");
        text_add(&j->out, c->logs[0].bytes, whole && has_logs(c, number) ? c->logs[0].size : 0);
        dialect_add(&j->out, "],\"text\":");
    }
    text_quote(&j->out, part->bytes, whole ? part->size : 0);
    dialect_add(&j->out, "}");
    j->out.failed = j->out.failed || c->content.failed || c->thought.failed;
}

/* Returns the status of an item. The last item of an answer that was cut off is incomplete. */
static const char *status_of_item(const choice *c, const dialect_part *part, bool whole) {
    if (!whole)
        return "in_progress";
    /* An empty text is the only part, and its bytes may be elsewhere. */
    const bool last = part->call != NULL ? !part->call->ended
                      : part->thought    ? c->content.size == 0 && c->n_calls == 0
                                         : part->size == 0 || part->bytes + part->size ==
                                                               c->content.bytes + c->content.size;
    return c->ended && is_cut(c) && last ? "incomplete" : "completed";
}

static void write_call_item(job *j, const dialect_part *part, bool whole) {
    dialect_add(&j->out, ",\"call_id\":");
    dialect_write_call_id(j, &j->out, "call", 0, part->k);
    text_string(&j->out, "name", part->call->name);
    dialect_add(&j->out, ",\"arguments\":");
    text_quote(&j->out, part->bytes, whole ? part->size : 0);
    dialect_add(&j->out, "}");
    j->out.failed = j->out.failed || part->call->arguments.failed;
}

static void write_item(job *j, const dialect_part *part, size_t number, bool whole) {
    const bool call = part->call != NULL;
    dialect_add(&j->out, call            ? "{\"type\":\"function_call\""
                         : part->thought ? "{\"type\":\"reasoning\",\"summary\":[]"
                                         : "{\"type\":\"message\",\"role\":\"assistant\"");
    write_item_id(j, "id", part, number);
    text_string(&j->out, "status", status_of_item(&j->choices[0], part, whole));
    if (call) {
        write_call_item(j, part, whole);
        return;
    }
    dialect_add(&j->out, ",\"content\":[");
    if (whole)
        write_part(j, part, number, true);
    dialect_add(&j->out, "]}");
}

static void write_usage(job *j) {
    const dialect_usage u = dialect_count(j);
    if (!j->choices[0].ended) {
        dialect_add(&j->out, ",\"usage\":null");
        return;
    }
    text_print(&j->out,
               ",\"usage\":{\"input_tokens\":%zu,\"input_tokens_details\":{\"cached_tokens\":%zu},"
               "\"output_tokens\":%zu,\"output_tokens_details\":{\"reasoning_tokens\":%zu},"
               "\"total_tokens\":%zu}",
               u.n_prompt, u.n_shared, u.n_generated, u.n_thought, u.n_prompt + u.n_generated);
}

/* Writes the members that repeat the request. */
static void write_echo(job *j) {
    text *out = &j->out;
    write_given(j, "instructions", "null");
    write_given(j, "max_output_tokens", "null");
    write_given(j, "metadata", "{}");
    text_real(out, "temperature", j->ask.sampling.temperature);
    text_real(out, "top_p", j->ask.sampling.top_p);
    text_print(out, ",\"top_logprobs\":%u", j->ask.n_logprobs);
    dialect_write_truth(out, "parallel_tool_calls", !j->ask.tools.single && j->ask.tools.n > 0);
    write_given(j, "tool_choice", j->ask.tools.n > 0 ? "\"auto\"" : "\"none\"");
    write_given(j, "tools", "[]");
    write_given(j, "previous_response_id", "null");
    dialect_write_truth(out, "store", j->ask.kept != NULL);
    dialect_add(out, ",\"background\":false");
    write_given(j, "truncation", "\"disabled\"");
    write_given(j, "text", "{\"format\":{\"type\":\"text\"}}");
}

/* Keeps a response with its conversation. output[size] are its items, an array like the input, and
 * its document goes from there to the end of what is written. */
static void keep(const job *j, size_t from, const char *output, size_t size) {
    const key *k = j->account->key;
    const tern_span document = {j->out.bytes + from, j->out.size - from};
    char *input = json_dump(json_object_get(j->ask.body, "input"), (json_style){0});
    text items = {0};
    if (input != NULL && input[0] == '[') {
        text_add(&items, input, strlen(input) - 1);
        text_add(&items, ",", items.size > 1 && size > 2);
        text_add(&items, output + 1, size - 1);
        if (!items.failed)
            kept_add(j->ask.kept, j->id, k != NULL ? k->digest : NULL,
                     (tern_span){items.bytes, items.size}, document);
    }
    text_free(&items);
    free(input);
}

static void write_response(job *j) {
    const choice *c = &j->choices[0];
    text *out = &j->out;
    const size_t begin = out->size;
    text_print(out, "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld", j->id,
               (long long)j->created);
    text_string(out, "status", status_of(c));
    dialect_add(out, ",\"error\":null,\"incomplete_details\":");
    dialect_add(out, c->ended && is_cut(c) ? "{\"reason\":\"max_output_tokens\"}" : "null");
    text_string(out, "model", j->place.model);
    dialect_add(out, ",\"output\":");
    const size_t from = out->size;
    dialect_part part;
    dialect_add(out, "[");
    for (size_t n = 0; c->ended && dialect_part_at(c, n, &part); n++) {
        dialect_add(out, n > 0 ? "," : "");
        write_item(j, &part, n, true);
    }
    dialect_add(out, "]");
    const size_t size = out->size - from;
    write_echo(j);
    write_usage(j);
    if (c->ended && j->ask.timings)
        dialect_write_timings(out, &c->figures);
    if (c->ended)
        dialect_write_tern(j, 0, 1);
    dialect_add(out, "}");
    if (c->ended && j->ask.kept != NULL && !out->failed)
        keep(j, begin, out->bytes + from, size);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void open_event(job *j, const char *name) {
    dialect_open_event(j, name);
    text_print(&j->out, "{\"type\":\"%s\",\"sequence_number\":%u", name, j->n_events++);
}

static void close_event(job *j) {
    dialect_add(&j->out, "}");
    dialect_close_event(j);
}

static void write_response_event(job *j, const char *name) {
    open_event(j, name);
    dialect_add(&j->out, ",\"response\":");
    write_response(j);
    close_event(j);
}

static void write_item_event(job *j, const char *name, const dialect_part *part, bool whole) {
    const size_t number = j->choices[0].n_parts;
    open_event(j, name);
    text_print(&j->out, ",\"output_index\":%zu,\"item\":", number);
    write_item(j, part, number, whole);
    close_event(j);
}

/* Writes an event about the current item, and leaves the object open. */
static void open_item_event(job *j, const char *name, const dialect_part *part) {
    const size_t number = j->choices[0].n_parts;
    open_event(j, name);
    write_item_id(j, "item_id", part, number);
    text_print(&j->out, ",\"output_index\":%zu", number);
}

static void write_part_event(job *j, const char *name, const dialect_part *part, bool whole) {
    open_item_event(j, name, part);
    dialect_add(&j->out, ",\"content_index\":0,\"part\":");
    write_part(j, part, j->choices[0].n_parts, whole);
    close_event(j);
}

/* Returns the current text, so far. */
static dialect_part text_part(const choice *c) {
    const char *bytes = c->content.bytes != NULL ? c->content.bytes : "";
    return (dialect_part){.bytes = bytes + c->from, .size = c->content.size - c->from};
}

static dialect_part call_part(const choice *c) {
    const tool_call *call = &c->calls[c->n_calls - 1];
    return (dialect_part){.call = call,
                          .k = c->n_calls - 1,
                          .bytes = call->arguments.bytes,
                          .size = call->arguments.size};
}

static dialect_part thought_part(const choice *c) {
    return (dialect_part){.thought = true, .bytes = c->thought.bytes, .size = c->thought.size};
}

/* Begins a text of which `size` bytes are in the content already. */
static void begin_text(job *j, size_t size) {
    choice *c = &j->choices[0];
    c->in_text = true;
    c->from = c->content.size - size;
    const dialect_part part = text_part(c);
    write_item_event(j, "response.output_item.added", &part, false);
    write_part_event(j, "response.content_part.added", &part, false);
}

/* Writes the first events. If calls or thinking may come, a text item begins only when there is
 * text. */
static void begin(job *j) {
    write_response_event(j, "response.created");
    write_response_event(j, "response.in_progress");
    if (j->ask.tools.form == NULL && j->choices[0].thinking.marks == NULL)
        begin_text(j, 0);
}

static void write_logprobs(job *j, size_t from) {
    const text *logs = &j->choices[0].logs[0];
    dialect_add(&j->out, ",\"logprobs\":[");
    from += from > 0 && from < logs->size; /* skip the comma */
    text_add(&j->out, logs->bytes != NULL ? logs->bytes + from : "", logs->size - from);
    dialect_add(&j->out, "]");
}

static void write_thought(job *j, size_t i, const char *bytes, size_t size) {
    choice *c = &j->choices[i];
    const dialect_part part = thought_part(c);
    if (!c->in_thought) {
        c->in_thought = true;
        write_item_event(j, "response.output_item.added", &part, false);
        write_part_event(j, "response.content_part.added", &part, false);
    }
    open_item_event(j, "response.reasoning_text.delta", &part);
    dialect_add(&j->out, ",\"content_index\":0,\"delta\":");
    text_quote(&j->out, bytes, size);
    close_event(j);
}

/* Ends the thinking, if there was some. */
static void end_thought(job *j) {
    choice *c = &j->choices[0];
    const dialect_part part = thought_part(c);
    if (!c->in_thought)
        return;
    open_item_event(j, "response.reasoning_text.done", &part);
    dialect_add(&j->out, ",\"content_index\":0,\"text\":");
    text_quote(&j->out, part.bytes, part.size);
    close_event(j);
    write_part_event(j, "response.content_part.done", &part, true);
    write_item_event(j, "response.output_item.done", &part, true);
    c->in_thought = false;
    c->n_parts++;
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    choice *c = &j->choices[i];
    if (!c->in_text && size == 0)
        return;
    end_thought(j);
    if (!c->in_text)
        begin_text(j, size);
    const dialect_part part = text_part(c);
    open_item_event(j, "response.output_text.delta", &part);
    dialect_add(&j->out, ",\"content_index\":0,\"delta\":");
    text_quote(&j->out, bytes, size);
    write_logprobs(j, c->offset);
    c->offset = c->logs[0].size;
    close_event(j);
}

static void end_text(job *j) {
    choice *c = &j->choices[0];
    const dialect_part part = text_part(c);
    open_item_event(j, "response.output_text.done", &part);
    dialect_add(&j->out, ",\"content_index\":0,\"text\":");
    text_quote(&j->out, part.bytes, part.size);
    write_logprobs(j, has_logs(c, c->n_parts) ? 0 : c->logs[0].size);
    close_event(j);
    write_part_event(j, "response.content_part.done", &part, true);
    write_item_event(j, "response.output_item.done", &part, true);
    c->in_text = false;
    c->n_parts++;
}

static void begin_call(job *j, size_t i) {
    end_thought(j);
    if (j->choices[i].in_text)
        end_text(j);
    const dialect_part part = call_part(&j->choices[i]);
    write_item_event(j, "response.output_item.added", &part, false);
}

static void write_arguments(job *j, size_t i, const char *bytes, size_t size) {
    const dialect_part part = call_part(&j->choices[i]);
    open_item_event(j, "response.function_call_arguments.delta", &part);
    dialect_add(&j->out, ",\"delta\":");
    text_quote(&j->out, bytes, size);
    close_event(j);
}

static void end_call(job *j, size_t i) {
    choice *c = &j->choices[i];
    const dialect_part part = call_part(c);
    open_item_event(j, "response.function_call_arguments.done", &part);
    text_string(&j->out, "name", part.call->name);
    dialect_add(&j->out, ",\"arguments\":");
    text_quote(&j->out, part.bytes, part.size);
    close_event(j);
    write_item_event(j, "response.output_item.done", &part, true);
    c->n_parts++;
}

static void write_last(job *j, size_t i) {
    const choice *c = &j->choices[i];
    end_thought(j);
    if (c->n_parts == 0 && c->n_calls == 0 && !c->in_text)
        begin_text(j, 0);
    if (c->in_text)
        end_text(j);
    if (c->n_calls > 0 && !c->calls[c->n_calls - 1].ended)
        end_call(j, i);
    write_response_event(j, is_cut(c) ? "response.incomplete" : "response.completed");
}

static void finish(job *j) {
    (void)j;
}

/* Writes an error. Some clients look for its members in the event, others in "error". */
static void fail(job *j, const refusal *r) {
    open_event(j, "error");
    dialect_add(&j->out, ",");
    refusal_write_reason(r, &j->out);
    dialect_add(&j->out, ",");
    refusal_write_error(r, &j->out);
    close_event(j);
}

const dialect dialect_response = {.id = "resp_",
                                  .trims = true,
                                  .keeps_text = true,
                                  .begin = begin,
                                  .piece = write_piece,
                                  .thought = write_thought,
                                  .call = begin_call,
                                  .arguments = write_arguments,
                                  .call_end = end_call,
                                  .last = write_last,
                                  .finish = finish,
                                  .fail = fail,
                                  .whole = write_response,
                                  .note = dialect_note_token};
