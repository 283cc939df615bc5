/* SPDX-License-Identifier: Apache-2.0 */
/* Chats, texts and embeddings, in the dialect of Ollama. A stream is one JSON document a line. */

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "serve/interfaces/ollama.h"
#include "serve/work/dialect.h"

static bool is_chat(const job *j) {
    return j->ask.ollama == OLLAMA_CHAT;
}

static const char *done_reason(const choice *c) {
    return !job_calls(c) && (c->end == TERN_END_LENGTH || c->end == TERN_END_CONTEXT) ? "length"
                                                                                      : "stop";
}

void dialect_write_time(text *t, const char *name, struct timespec when) {
    char day[32] = "";
    struct tm utc;
    if (gmtime_r(&when.tv_sec, &utc) != NULL)
        (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    text_name(t, name);
    text_print(t, "\"%s.%06ldZ\"", day, when.tv_nsec / 1000);
}

/* Writes {"model", "created_at": what all documents of a text begin with. The model has the name
 * by which it was asked for. */
static void open_document(job *j) {
    const char *asked = json_string_value(json_object_get(j->ask.body, "model"));
    dialect_add(&j->out, "{\"model\":");
    asked = asked != NULL ? asked : j->place.model;
    text_quote(&j->out, asked, strlen(asked));
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    dialect_write_time(&j->out, "created_at", now);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Writes JSON in one line. Line feeds stand only between its words, since texts have them escaped.
 */
static void write_in_line(text *out, const text *words) {
    for (size_t at = 0; at < words->size;) {
        const size_t n = strcspn(words->bytes + at, "\r\n");
        text_add(out, words->bytes + at, n);
        text_add(out, " ", at + n < words->size);
        at += n + 1;
    }
}

static void write_call(job *j, size_t i, size_t k) {
    const tool_call *call = &j->choices[i].calls[k];
    dialect_add(&j->out, "{\"id\":");
    dialect_write_call_id(j, &j->out, "call", i, k);
    text_print(&j->out, ",\"function\":{\"index\":%zu", k);
    text_string(&j->out, "name", call->name);
    dialect_add(&j->out, ",\"arguments\":");
    write_in_line(&j->out, &call->arguments);
    dialect_add(&j->out, "}}");
    j->out.failed = j->out.failed || call->arguments.failed;
}

/* Writes n calls from k on. One that did not end is left out, because its arguments are not an
 * object. */
static void write_calls(job *j, size_t i, size_t k, size_t n) {
    const choice *c = &j->choices[i];
    bool any = false;
    for (; n > 0; k++, n--) {
        if (!c->calls[k].ended)
            continue;
        dialect_add(&j->out, any ? "," : ",\"tool_calls\":[");
        write_call(j, i, k);
        any = true;
    }
    dialect_add(&j->out, any ? "]" : "");
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Parts of an answer that one document tells. */
typedef struct said {
    text content, thought; /* not owned */
    size_t k, n;           /* n calls from k on, if it is a chat */
} said;

static void write_said(job *j, size_t i, const said *s) {
    dialect_add(&j->out, is_chat(j) ? ",\"message\":{\"role\":\"assistant\",\"content\":"
                                    : ",\"response\":");
    text_quote(&j->out, s->content.bytes, s->content.size);
    if (s->thought.size > 0) {
        dialect_add(&j->out, ",\"thinking\":");
        text_quote(&j->out, s->thought.bytes, s->thought.size);
    }
    write_calls(j, i, s->k, s->n);
    dialect_add(&j->out, is_chat(j) ? "}" : "");
}

/* Writes the logprobs that were not told yet, if they were asked for. */
static void write_logprobs(job *j, choice *c) {
    const text *logs = &c->logs[0];
    size_t from = c->offset;
    if (!j->ask.logprobs)
        return;
    from += from > 0 && from < logs->size; /* the comma */
    dialect_add(&j->out, ",\"logprobs\":[");
    text_add(&j->out, logs->bytes + from, logs->size - from);
    dialect_add(&j->out, "]");
    c->offset = logs->size;
}

static uint64_t nanoseconds(double seconds) {
    return seconds > 0.0 ? (uint64_t)(1e9 * seconds) : 0;
}

/* Writes times and numbers of tokens. All tokens of the prompt count, also those that were found
 * in the cache. */
static void write_figures(job *j, const choice *c) {
    const tern_branch_figures *f = &c->figures;
    const double prompt = f->n_generated > 0 ? f->first_token_seconds : f->seconds;
    text_print(&j->out,
               ",\"total_duration\":%" PRIu64 ",\"load_duration\":0,\"prompt_eval_count\":%zu,"
               "\"prompt_eval_duration\":%" PRIu64 ",\"eval_count\":%zu,\"eval_duration\":%" PRIu64,
               nanoseconds(f->seconds), j->ask.prompts[0].n,
               nanoseconds(prompt - f->queued_seconds), f->n_generated,
               nanoseconds(f->seconds - prompt));
}

/* Writes the tokens of the prompt and of the answer, which a later request may continue. */
static void write_context(job *j, const choice *c) {
    const ask_prompt *p = &j->ask.prompts[0];
    dialect_add(&j->out, ",\"context\":[");
    for (size_t i = 0; i < p->n; i++)
        text_print(&j->out, "%s%d", i > 0 ? "," : "", (int)p->ids[i]);
    dialect_add(&j->out, c->ids.size > 0 ? "," : "");
    text_add(&j->out, c->ids.bytes, c->ids.size);
    if (c->end == TERN_END_OF_TEXT)
        text_print(&j->out, ",%d", (int)c->end_token);
    dialect_add(&j->out, "]");
}

/* Writes the rest of the last document. */
static void close_last(job *j, size_t i) {
    choice *c = &j->choices[i];
    write_logprobs(j, c);
    dialect_write_truth(&j->out, "done", true);
    text_string(&j->out, "done_reason", done_reason(c));
    if (j->ask.ollama == OLLAMA_GENERATE && j->ask.kind == ASK_CHAT)
        write_context(j, c);
    write_figures(j, c);
    dialect_write_tern(j, i, 1);
    dialect_add(&j->out, "}");
}

static void write_whole(job *j) {
    const choice *c = &j->choices[0];
    open_document(j);
    write_said(j, 0, &(said){c->content, c->thought, 0, c->n_calls});
    close_last(j, 0);
    j->out.failed = j->out.failed || c->content.failed || c->thought.failed;
}

/* ---- streams --------------------------------------------------------------------------------- */

static void begin(job *j) {
    (void)j;
}

static text borrow(const char *bytes, size_t size) {
    return (text){.bytes = (char *)(uintptr_t)bytes, .size = size};
}

static void write_part(job *j, size_t i, const said *s) {
    open_document(j);
    write_said(j, i, s);
    write_logprobs(j, &j->choices[i]);
    dialect_write_truth(&j->out, "done", false);
    dialect_add(&j->out, "}\n");
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    write_part(j, i, &(said){.content = borrow(bytes, size)});
}

static void write_thought(job *j, size_t i, const char *bytes, size_t size) {
    write_part(j, i, &(said){.thought = borrow(bytes, size)});
}

static void begin_call(job *j, size_t i) {
    (void)j;
    (void)i;
}

/* Waits: a call is told when it is complete. */
static void take_arguments(job *j, size_t i, const char *bytes, size_t size) {
    (void)j;
    (void)i;
    (void)bytes;
    (void)size;
}

static void end_call(job *j, size_t i) {
    write_part(j, i, &(said){.k = j->choices[i].n_calls - 1, .n = 1});
}

static void write_last(job *j, size_t i) {
    open_document(j);
    write_said(j, i, &(said){.n = 0});
    close_last(j, i);
    dialect_add(&j->out, "\n");
}

static void finish(job *j) {
    (void)j;
}

static void fail(job *j, const refusal *r) {
    refusal_write_ollama(r, &j->out);
    dialect_add(&j->out, "\n");
}

/* ---- embeddings ------------------------------------------------------------------------------ */

static void write_vectors(job *j) {
    const bool one = j->ask.ollama == OLLAMA_EMBEDDING;
    open_document(j);
    text_print(&j->out, ",\"%s\":", one ? "embedding" : "embeddings");
    for (size_t i = 0; i < j->n_choices; i++) {
        dialect_add(&j->out, one ? "" : i > 0 ? "," : "[");
        dialect_write_vector(j, i, !one);
    }
    text_print(&j->out,
               "%s,\"total_duration\":%" PRIu64 ",\"load_duration\":0,\"prompt_eval_count\":%zu",
               one ? "" : "]", nanoseconds(j->choices[j->n_choices - 1].figures.seconds),
               dialect_count(j).n_prompt);
    dialect_write_vector_tern(j);
    dialect_add(&j->out, "}");
}

#define MEMBERS                                                                                    \
    .id = "ollama-", .keeps_text = true, .has_ids = true, .stream_type = "application/x-ndjson",   \
    .begin = begin, .piece = write_piece, .call = begin_call, .arguments = take_arguments,         \
    .call_end = end_call, .last = write_last, .finish = finish, .fail = fail,                      \
    .whole = write_whole, .note = dialect_note_token

const dialect dialect_ollama = {.trims = true, .thought = write_thought, MEMBERS};
const dialect dialect_ollama_raw = {MEMBERS};
const dialect dialect_ollama_vectors = {.id = "ollama-", .whole = write_vectors};
