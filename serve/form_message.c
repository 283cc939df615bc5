/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as Anthropic's clients read them. */

#include <string.h>

#include "serve/form.h"

static const char *stop_reason(tern_end end) {
    switch (end) {
    case TERN_END_LENGTH:
    case TERN_END_CONTEXT:
        return "max_tokens";
    case TERN_END_STOP_TEXT:
        return "stop_sequence";
    default:
        return "end_turn";
    }
}

/* Tokens of the prompt that were found in the cache are counted apart. */
static void write_usage(job *j) {
    const form_usage u = form_count(j);
    text_print(&j->out,
               ",\"usage\":{\"input_tokens\":%zu,\"cache_creation_input_tokens\":0,"
               "\"cache_read_input_tokens\":%zu,\"output_tokens\":%zu}",
               u.n_prompt - u.n_shared, u.n_shared, u.n_generated);
}

static void write_stop(job *j, const choice *c) {
    text *out = &j->out;
    text_name(out, "stop_reason");
    if (c->ended)
        text_print(out, "\"%s\"", stop_reason(c->end));
    else
        form_add(out, "null");
    text_name(out, "stop_sequence");
    if (c->ended && c->end == TERN_END_STOP_TEXT)
        text_quote(out, j->ask.stops[c->stop], strlen(j->ask.stops[c->stop]));
    else
        form_add(out, "null");
}

/* A message with or without its text; still open. */
static void open_message(job *j, bool whole) {
    const choice *c = &j->choices[0];
    text_print(&j->out, "{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\"", j->id);
    text_string(&j->out, "model", j->place.model);
    form_add(&j->out, ",\"content\":[");
    if (whole) {
        form_add(&j->out, "{\"type\":\"text\",\"text\":");
        text_quote(&j->out, c->content.bytes, c->content.size);
        form_add(&j->out, "}");
        j->out.failed = j->out.failed || c->content.failed;
    }
    form_add(&j->out, "]");
    write_stop(j, c);
    write_usage(j);
}

static void write_whole(job *j) {
    open_message(j, true);
    form_write_tern(j, 0, 1);
    form_add(&j->out, "}");
}

/* ---- streams --------------------------------------------------------------------------------- */

static void begin(job *j) {
    form_open_event(j, "message_start");
    form_add(&j->out, "{\"type\":\"message_start\",\"message\":");
    open_message(j, false);
    form_add(&j->out, "}}");
    form_close_event(j);
    form_open_event(j, "content_block_start");
    form_add(&j->out, "{\"type\":\"content_block_start\",\"index\":0,"
                      "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}");
    form_close_event(j);
    form_open_event(j, "ping");
    form_add(&j->out, "{\"type\":\"ping\"}");
    form_close_event(j);
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    (void)i;
    form_open_event(j, "content_block_delta");
    form_add(&j->out, "{\"type\":\"content_block_delta\",\"index\":0,"
                      "\"delta\":{\"type\":\"text_delta\",\"text\":");
    text_quote(&j->out, bytes, size);
    form_add(&j->out, "}}");
    form_close_event(j);
}

static void write_last(job *j, size_t i) {
    form_open_event(j, "content_block_stop");
    form_add(&j->out, "{\"type\":\"content_block_stop\",\"index\":0}");
    form_close_event(j);
    form_open_event(j, "message_delta");
    form_add(&j->out, "{\"type\":\"message_delta\",\"delta\":{");
    write_stop(j, &j->choices[i]);
    form_add(&j->out, "}");
    write_usage(j);
    form_write_tern(j, 0, 1);
    form_add(&j->out, "}");
    form_close_event(j);
}

static void finish(job *j) {
    form_open_event(j, "message_stop");
    form_add(&j->out, "{\"type\":\"message_stop\"}");
    form_close_event(j);
}

static void fail(job *j, const refusal *r) {
    form_open_event(j, "error");
    refusal_write_message(r, &j->out);
    form_close_event(j);
}

const form form_message = {.id = "msg_",
                           .trims = true,
                           .begin = begin,
                           .piece = write_piece,
                           .last = write_last,
                           .finish = finish,
                           .fail = fail,
                           .whole = write_whole,
                           .note = form_note_token};
