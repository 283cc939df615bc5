/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/job_text.h"

#include <stdlib.h>
#include <string.h>

#include "serve/work/dialect.h"

bool job_send(job *j) {
    const bool sent = !j->out.failed && http_stream_write(j->x, j->out.bytes, j->out.size);
    if (j->out.failed)
        http_stream_cut(j->x);
    text_clear(&j->out);
    return sent;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A choice of a job, as the user pointer of call_sink. */
typedef struct spot {
    job *j;
    size_t i;
} spot;

static void tell_text(job *j, size_t i, const char *bytes, size_t size);

static void take_text(void *user, const char *bytes, size_t size) {
    const spot *at = user;
    tell_text(at->j, at->i, bytes, size);
}

/* True if texts are kept: for the reply, or for a check of the whole answer. */
static bool keeps_text(const job *j) {
    return !j->ask.stream || j->dialect->keeps_text || j->ask.schema_notes.size > 0;
}

static void begin_call(void *user, const char *name) {
    const spot *at = user;
    choice *c = &at->j->choices[at->i];
    tool_call *grown = realloc(c->calls, (c->n_calls + 1) * sizeof *grown);
    at->j->out.failed = at->j->out.failed || grown == NULL;
    if (grown == NULL)
        return;
    c->calls = grown;
    tool_call *call = &c->calls[c->n_calls++];
    *call = (tool_call){.at = c->content.size};
    memcpy(call->name, name, strlen(name) + 1);
    if (at->j->ask.stream)
        at->j->dialect->call(at->j, at->i);
}

static void take_arguments(void *user, const char *bytes, size_t size) {
    const spot *at = user;
    job *j = at->j;
    choice *c = &j->choices[at->i];
    if (j->out.failed)
        return;
    if (keeps_text(j))
        text_add(&c->calls[c->n_calls - 1].arguments, bytes, size);
    if (j->ask.stream)
        j->dialect->arguments(j, at->i, bytes, size);
}

static void end_call(void *user) {
    const spot *at = user;
    choice *c = &at->j->choices[at->i];
    if (at->j->out.failed)
        return;
    c->calls[c->n_calls - 1].ended = true;
    if (at->j->ask.stream)
        at->j->dialect->call_end(at->j, at->i);
}

bool job_calls(const choice *c) {
    return c->n_calls > 0 && c->calls[c->n_calls - 1].ended && c->end != TERN_END_LENGTH &&
           c->end != TERN_END_CONTEXT;
}

/* Reads more text of a choice that may have calls; bytes NULL: there is no more. */
static void read_text(spot *at, const char *bytes, size_t size) {
    const call_sink sink = {at, take_text, begin_call, take_arguments, end_call};
    call_reader *r = &at->j->choices[at->i].reader;
    if (bytes != NULL)
        call_reader_take(r, &sink, bytes, size);
    else
        call_reader_finish(r, &sink);
    at->j->out.failed = at->j->out.failed || r->held.failed;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Adds text of an answer that belongs to no call. */
static void tell_text(job *j, size_t i, const char *bytes, size_t size) {
    if (keeps_text(j))
        text_add(&j->choices[i].content, bytes, size);
    if (j->ask.stream && size > 0)
        j->dialect->piece(j, i, bytes, size);
}

/* Sends the events that were written, and one for logprobs of tokens that had no text. */
static bool pass_on(job *j, size_t i) {
    const choice *c = &j->choices[i];
    const size_t told = j->dialect->keeps_text ? c->offset : 0;
    if (!j->ask.stream)
        return true;
    if (c->logs[0].size != told)
        j->dialect->piece(j, i, "", 0);
    return (j->out.size == 0 && !j->out.failed) || job_send(j);
}

/* ---- thinking -------------------------------------------------------------------------------- */

/* Passes text that is not thinking on; bytes NULL: there is no more. */
static void pass_text(spot *at, const char *bytes, size_t size) {
    if (at->j->choices[at->i].reader.form != NULL)
        read_text(at, bytes, size);
    else if (bytes != NULL)
        tell_text(at->j, at->i, bytes, size);
}

static void take_thought(void *user, const char *bytes, size_t size) {
    const spot *at = user;
    job *j = at->j;
    if (!j->ask.tells)
        return;
    if (keeps_text(j))
        text_add(&j->choices[at->i].thought, bytes, size);
    if (j->ask.stream)
        j->dialect->thought(j, at->i, bytes, size);
}

static void take_rest(void *user, const char *bytes, size_t size) {
    pass_text(user, bytes, size);
}

/* Reads more text of a choice that may begin with thinking; bytes NULL: there is no more. */
static void read_thinking(spot *at, const char *bytes, size_t size) {
    const thinking_sink sink = {at, take_thought, take_rest};
    choice *c = &at->j->choices[at->i];
    thinking_reader *r = &c->thinking;
    const bool thought = r->inside;
    if (bytes != NULL) {
        thinking_take(r, &sink, bytes, size);
    } else {
        thinking_finish(r, &sink);
        pass_text(at, NULL, 0);
    }
    if (thought || r->inside)
        c->n_thought = c->n_tokens;
    at->j->out.failed = at->j->out.failed || r->held.failed;
}

bool job_give(job *j, size_t i, const char *bytes, size_t size) {
    choice *c = &j->choices[i];
    spot at = {j, i};
    c->new_line = c->new_line || (size > 0 && memchr(bytes, '\n', size) != NULL);
    if (c->thinking.marks != NULL)
        read_thinking(&at, bytes, size);
    else
        pass_text(&at, bytes, size);
    return pass_on(j, i);
}
