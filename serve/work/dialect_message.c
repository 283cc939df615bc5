/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, in the dialect of Anthropic. */

#include <string.h>

#include "serve/work/dialect.h"

static const char *stop_reason(const choice *c) {
    if (job_calls(c))
        return "tool_use";
    switch (c->end) {
    case TERN_END_LENGTH:
    case TERN_END_CONTEXT:
        return "max_tokens";
    case TERN_END_STOP_TEXT:
        return "stop_sequence";
    default:
        return "end_turn";
    }
}

/* Writes the usage. Tokens of the prompt that were found in the cache are counted separately. */
static void write_usage(job *j) {
    const dialect_usage u = dialect_count(j);
    text_print(&j->out,
               ",\"usage\":{\"input_tokens\":%zu,\"cache_creation_input_tokens\":0,"
               "\"cache_read_input_tokens\":%zu,\"output_tokens\":%zu}",
               u.n_prompt - u.n_shared, u.n_shared, u.n_generated);
}

static void write_stop(job *j, const choice *c) {
    text *out = &j->out;
    text_name(out, "stop_reason");
    if (c->ended)
        text_print(out, "\"%s\"", stop_reason(c));
    else
        dialect_add(out, "null");
    text_name(out, "stop_sequence");
    if (c->ended && c->end == TERN_END_STOP_TEXT && !job_calls(c))
        text_quote(out, j->ask.stops[c->stop], strlen(j->ask.stops[c->stop]));
    else
        dialect_add(out, "null");
}

static void open_use(job *j, size_t k, const char *name) {
    dialect_add(&j->out, "{\"type\":\"tool_use\",\"id\":");
    dialect_write_call_id(j, &j->out, "toolu", 0, k);
    dialect_add(&j->out, ",\"name\":");
    text_quote(&j->out, name, strlen(name));
    dialect_add(&j->out, ",\"input\":");
}

#define THOUGHT "{\"type\":\"thinking\",\"thinking\":"

/* Writes thinking, texts and calls. The signature of thinking only has to be there: the message's
 * id stands for it. A call that did not end is left out, because its arguments are not an
 * object. */
static void write_parts(job *j) {
    const choice *c = &j->choices[0];
    dialect_part part;
    bool any = false;
    for (size_t n = 0; dialect_part_at(c, n, &part); n++) {
        if (part.call != NULL && !part.call->ended)
            continue;
        dialect_add(&j->out, any ? "," : "");
        any = true;
        if (part.call != NULL) {
            open_use(j, part.k, part.call->name);
            text_add(&j->out, part.bytes, part.size);
            j->out.failed = j->out.failed || part.call->arguments.failed;
        } else {
            dialect_add(&j->out, part.thought ? THOUGHT : "{\"type\":\"text\",\"text\":");
            text_quote(&j->out, part.bytes, part.size);
            if (part.thought)
                text_string(&j->out, "signature", j->id);
        }
        dialect_add(&j->out, "}");
    }
    j->out.failed = j->out.failed || c->content.failed || c->thought.failed;
}

/* Writes a message with or without its content, and leaves the object open. */
static void open_message(job *j, bool whole) {
    const choice *c = &j->choices[0];
    text_print(&j->out, "{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\"", j->id);
    text_string(&j->out, "model", j->place.model);
    dialect_add(&j->out, ",\"content\":[");
    if (whole)
        write_parts(j);
    dialect_add(&j->out, "]");
    write_stop(j, c);
    write_usage(j);
}

static void write_whole(job *j) {
    open_message(j, true);
    dialect_write_tern(j, 0, 1);
    dialect_add(&j->out, "}");
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Begins the first event of a part, up to the part itself. */
static void open_start(job *j) {
    dialect_open_event(j, "content_block_start");
    text_print(&j->out,
               "{\"type\":\"content_block_start\",\"index\":%zu,"
               "\"content_block\":",
               j->choices[0].n_parts);
}

static void begin_text(job *j) {
    open_start(j);
    dialect_add(&j->out, "{\"type\":\"text\",\"text\":\"\"}}");
    dialect_close_event(j);
    j->choices[0].in_text = true;
}

static void open_delta(job *j) {
    dialect_open_event(j, "content_block_delta");
    text_print(&j->out,
               "{\"type\":\"content_block_delta\",\"index\":%zu,\"delta\":", j->choices[0].n_parts);
}

static void close_delta(job *j, const char *bytes, size_t size) {
    text_quote(&j->out, bytes, size);
    dialect_add(&j->out, "}}");
    dialect_close_event(j);
}

/* Ends the part that has begun: a text, thinking or a call. */
static void end_part(job *j) {
    choice *c = &j->choices[0];
    if (c->in_thought) {
        open_delta(j);
        dialect_add(&j->out, "{\"type\":\"signature_delta\",\"signature\":");
        close_delta(j, j->id, strlen(j->id));
    }
    dialect_open_event(j, "content_block_stop");
    text_print(&j->out, "{\"type\":\"content_block_stop\",\"index\":%zu}", c->n_parts++);
    dialect_close_event(j);
    c->in_text = c->in_thought = false;
}

/* Writes the first events. If calls or thinking may come, a text part begins only when there is
 * text. */
static void begin(job *j) {
    dialect_open_event(j, "message_start");
    dialect_add(&j->out, "{\"type\":\"message_start\",\"message\":");
    open_message(j, false);
    dialect_add(&j->out, "}}");
    dialect_close_event(j);
    if (j->ask.tools.form == NULL && j->choices[0].thinking.marks == NULL)
        begin_text(j);
    dialect_open_event(j, "ping");
    dialect_add(&j->out, "{\"type\":\"ping\"}");
    dialect_close_event(j);
}

static void write_thought(job *j, size_t i, const char *bytes, size_t size) {
    choice *c = &j->choices[i];
    if (!c->in_thought) {
        open_start(j);
        dialect_add(&j->out, THOUGHT "\"\",\"signature\":\"\"}}");
        dialect_close_event(j);
        c->in_thought = true;
    }
    open_delta(j);
    dialect_add(&j->out, "{\"type\":\"thinking_delta\",\"thinking\":");
    close_delta(j, bytes, size);
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    if (j->choices[i].in_thought)
        end_part(j);
    if (!j->choices[i].in_text)
        begin_text(j);
    open_delta(j);
    dialect_add(&j->out, "{\"type\":\"text_delta\",\"text\":");
    close_delta(j, bytes, size);
}

static void begin_call(job *j, size_t i) {
    const choice *c = &j->choices[i];
    if (c->in_text || c->in_thought)
        end_part(j);
    open_start(j);
    open_use(j, c->n_calls - 1, c->calls[c->n_calls - 1].name);
    dialect_add(&j->out, "{}}}");
    dialect_close_event(j);
}

static void write_arguments(job *j, size_t i, const char *bytes, size_t size) {
    (void)i;
    open_delta(j);
    dialect_add(&j->out, "{\"type\":\"input_json_delta\",\"partial_json\":");
    close_delta(j, bytes, size);
}

static void end_call(job *j, size_t i) {
    (void)i;
    end_part(j);
}

static void write_last(job *j, size_t i) {
    const choice *c = &j->choices[i];
    if (c->n_parts == 0 && c->n_calls == 0 && !c->in_text && !c->in_thought)
        begin_text(j);
    if (c->in_text || c->in_thought || (c->n_calls > 0 && !c->calls[c->n_calls - 1].ended))
        end_part(j);
    dialect_open_event(j, "message_delta");
    dialect_add(&j->out, "{\"type\":\"message_delta\",\"delta\":{");
    write_stop(j, &j->choices[i]);
    dialect_add(&j->out, "}");
    write_usage(j);
    dialect_write_tern(j, 0, 1);
    dialect_add(&j->out, "}");
    dialect_close_event(j);
}

static void finish(job *j) {
    dialect_open_event(j, "message_stop");
    dialect_add(&j->out, "{\"type\":\"message_stop\"}");
    dialect_close_event(j);
}

static void fail(job *j, const refusal *r) {
    dialect_open_event(j, "error");
    refusal_write_message(r, &j->out);
    dialect_close_event(j);
}

const dialect dialect_message = {.id = "msg_",
                                 .trims = true,
                                 .begin = begin,
                                 .piece = write_piece,
                                 .thought = write_thought,
                                 .call = begin_call,
                                 .arguments = write_arguments,
                                 .call_end = end_call,
                                 .last = write_last,
                                 .finish = finish,
                                 .fail = fail,
                                 .whole = write_whole,
                                 .note = dialect_note_token};
