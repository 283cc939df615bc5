/* SPDX-License-Identifier: Apache-2.0 */
/* Chats and completions, in the dialect of OpenAI. */

#include <string.h>

#include "base/utf8.h"
#include "serve/work/dialect.h"

static bool is_chat(const job *j) {
    return j->ask.kind == ASK_CHAT;
}

static const char *finish_reason(const choice *c) {
    if (job_calls(c))
        return "tool_calls";
    return c->end == TERN_END_LENGTH || c->end == TERN_END_CONTEXT ? "length" : "stop";
}

static void open_head(job *j) {
    text_print(&j->head, "{\"id\":\"%s\",\"object\":\"%s%s\",\"created\":%lld", j->id,
               is_chat(j) ? "chat.completion" : "text_completion",
               is_chat(j) && j->ask.stream ? ".chunk" : "", (long long)j->created);
    text_string(&j->head, "model", j->place.model);
    text_string(&j->head, "system_fingerprint", j->place.fingerprint);
}

static void write_head(job *j) {
    text_add(&j->out, j->head.bytes, j->head.size);
    j->out.failed = j->out.failed || j->head.failed;
}

static void write_usage(job *j) {
    const dialect_usage u = dialect_count(j);
    text_print(&j->out,
               ",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu,"
               "\"prompt_tokens_details\":{\"cached_tokens\":%zu}",
               u.n_prompt, u.n_generated, u.n_prompt + u.n_generated, u.n_shared);
    if (is_chat(j))
        text_print(&j->out, ",\"completion_tokens_details\":{\"reasoning_tokens\":%zu}",
                   u.n_thought);
    dialect_add(&j->out, "}");
}

/* Writes what stands at the end of a reply beside its choices. Times are those of the first one. */
static void write_end(job *j) {
    if (j->ask.timings)
        dialect_write_timings(&j->out, &j->choices[0].figures);
    dialect_write_tern(j, 0, j->n_choices);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static size_t count_characters(const char *bytes, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < size; n++)
        i += tern_utf8_next(bytes + i, size - i).size;
    return n;
}

/* A name that was written into an object, including its quotes. */
typedef struct said_name {
    size_t at, size;
} said_name;

static bool has_said(const text *t, const said_name *said, size_t n, said_name name) {
    for (size_t i = 0; i < n && !t->failed; i++)
        if (said[i].size == name.size &&
            memcmp(t->bytes + said[i].at, t->bytes + name.at, name.size) == 0)
            return true;
    return false;
}

/* Writes the likeliest tokens as an object. Names in it must be different, so of tokens that are
 * written alike, because their texts are equal or not UTF-8, only the likeliest is written. */
static void write_likeliest(job *j, text *t, const tern_event *e) {
    said_name said[TERN_MOST_LOGPROBS];
    size_t n_said = 0;
    dialect_add(t, "{");
    for (size_t i = 0; i < e->n_likeliest; i++) {
        const size_t before = t->size;
        size_t n;
        const char *bytes = tern_token_bytes(j->place.tokenizer, e->likeliest[i].token, true, &n);
        text_add(t, ",", n_said > 0);
        said_name name = {.at = t->size};
        text_quote(t, bytes, n);
        name.size = t->size - name.at;
        if (has_said(t, said, n_said, name)) {
            t->size = before;
            continue;
        }
        said[n_said++] = name;
        dialect_add(t, ":");
        text_float(t, e->likeliest[i].logprob);
    }
    dialect_add(t, "}");
}

/* Adds a token to logs. `e` is NULL for the first token of a prompt. `shown`: its text is part of
 * the text in which offsets count. */
static void note_token(job *j, text *logs, size_t *offset, int32_t token, const tern_event *e,
                       bool shown) {
    size_t size;
    const char *bytes = tern_token_bytes(j->place.tokenizer, token, true, &size);
    for (size_t k = 0; k < JOB_LOG_PARTS; k++)
        text_add(&logs[k], ",", logs[k].size > 0);
    text_quote(&logs[0], bytes, size);
    if (e != NULL) {
        text_float(&logs[1], (float)e->logprob);
        write_likeliest(j, &logs[2], e);
    } else {
        dialect_add(&logs[1], "null");
        dialect_add(&logs[2], "null");
    }
    text_print(&logs[3], "%zu", *offset);
    *offset += shown ? count_characters(bytes, size) : 0;
}

/* True if a token's text is part of the prompt. Control tokens that the tokenizer added to a given
 * text are not; those that stand in the text are, from p->at on. */
static bool is_shown(const job *j, size_t i, int32_t token) {
    const char *given = j->ask.prompts[i].given;
    prompt_notes *p = &j->notes[i];
    size_t size = 1;
    if (given != NULL)
        (void)tern_token_bytes(j->place.tokenizer, token, false, &size);
    if (size > 0)
        return true;
    const char *bytes = tern_token_bytes(j->place.tokenizer, token, true, &size);
    const char *found = memmem(given + p->at, j->ask.prompts[i].given_size - p->at, bytes, size);
    if (found == NULL || size == 0)
        return false;
    p->at = (size_t)(found - given) + size;
    return true;
}

static void note_prompt(job *j, size_t i, const tern_event *e) {
    prompt_notes *p = &j->notes[i];
    note_token(j, p->logs, &p->offset, e->token, e, is_shown(j, i, e->token));
}

/* Writes the head, and notes the first token of each prompt, which the engine does not report. */
static void open_completion(job *j) {
    open_head(j);
    for (size_t i = 0; i < j->ask.n_prompts && j->notes != NULL; i++) {
        const int32_t first = j->ask.prompts[i].ids[0];
        note_token(j, j->notes[i].logs, &j->notes[i].offset, first, NULL, is_shown(j, i, first));
    }
}

/* Notes a token of the answer, or the token that ended it, which is not in the text. */
static void note_completion(job *j, size_t i, const tern_event *e) {
    choice *c = &j->choices[i];
    if (j->notes != NULL && !c->began) { /* offsets continue where the prompt ends */
        text prompt = {0};
        dialect_write_prompt(j, i, &prompt);
        c->offset = count_characters(prompt.bytes, prompt.size);
        text_free(&prompt);
    }
    c->began = true;
    note_token(j, c->logs, &c->offset, e->token, e, e->kind == TERN_EVENT_TOKEN);
}

/* True if a stream still has to repeat the prompt of a choice. */
static bool owes_prompt(const job *j, const choice *c) {
    return j->notes != NULL && j->ask.stream && !c->echoed;
}

/* Writes text of a choice; `prompt`: after its prompt. */
static void write_text(job *j, size_t i, const char *bytes, size_t size, bool prompt) {
    text whole = {0};
    if (prompt)
        dialect_write_prompt(j, i, &whole);
    text_add(&whole, bytes, size);
    text_quote(&j->out, whole.bytes, whole.size);
    j->out.failed = j->out.failed || whole.failed;
    text_free(&whole);
}

/* Writes a part of the logs of a choice, after those of its prompt unless they were written before.
 */
static void write_part(job *j, size_t i, size_t part) {
    const choice *c = &j->choices[i];
    const bool prompt = j->notes != NULL && !c->echoed;
    const text *before = prompt ? &j->notes[i / j->ask.n].logs[part] : NULL;
    if (prompt) {
        text_add(&j->out, before->bytes, before->size);
        text_add(&j->out, ",", before->size > 0 && c->logs[part].size > 0);
        j->out.failed = j->out.failed || before->failed;
    }
    text_add(&j->out, c->logs[part].bytes, c->logs[part].size);
}

static void write_logprobs(job *j, size_t i) {
    choice *c = &j->choices[i];
    static const char *const parts[JOB_LOG_PARTS] = {"tokens", "token_logprobs", "top_logprobs",
                                                     "text_offset"};
    text *out = &j->out;
    if (!j->ask.logprobs) {
        dialect_add(out, ",\"logprobs\":null");
    } else if (is_chat(j)) {
        dialect_add(out, ",\"logprobs\":{\"content\":[");
        text_add(out, c->logs[0].bytes, c->logs[0].size);
        dialect_add(out, "],\"refusal\":null}");
    } else {
        dialect_add(out, ",\"logprobs\":{");
        for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
            text_name(out, parts[k]);
            dialect_add(out, "[");
            write_part(j, i, k);
            dialect_add(out, "]");
        }
        dialect_add(out, "}");
    }
    for (size_t k = 0; k < JOB_LOG_PARTS; k++)
        text_clear(&c->logs[k]);
    c->echoed = true;
}

/* The text or token that ended an answer has the names that vLLM and SGLang give it. */
static void write_reason(job *j, const choice *c, bool ended) {
    if (ended)
        text_print(&j->out, ",\"finish_reason\":\"%s\"", finish_reason(c));
    else
        dialect_add(&j->out, ",\"finish_reason\":null");
    if (ended && c->end == TERN_END_STOP_TEXT) {
        text_string(&j->out, "stop_reason", j->ask.stops[c->stop]);
        text_string(&j->out, "matched_stop", j->ask.stops[c->stop]);
    }
    if (ended && c->end == TERN_END_STOP_TOKEN)
        text_print(&j->out, ",\"stop_reason\":%d,\"matched_stop\":%d", (int)c->end_token,
                   (int)c->end_token);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void open_choice(job *j, size_t i) {
    dialect_open_event(j, NULL);
    write_head(j);
    text_print(&j->out, ",\"choices\":[{\"index\":%zu,", i);
}

/* Writes how many tokens there are so far, in the form of vLLM. */
static void write_running_usage(job *j) {
    size_t n_prompt = 0, n = 0;
    for (size_t i = 0; i < j->ask.n_prompts; i++)
        n_prompt += j->ask.prompts[i].n;
    for (size_t i = 0; i < j->n_choices; i++)
        n += j->choices[i].ended ? j->choices[i].figures.n_generated : j->choices[i].n_tokens;
    text_print(&j->out,
               ",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,"
               "\"total_tokens\":%zu}",
               n_prompt, n, n_prompt + n);
}

static void close_choice(job *j, bool final) {
    dialect_add(&j->out, "}]");
    if (j->ask.include_usage && j->ask.running_usage)
        write_running_usage(j);
    else if (j->ask.include_usage)
        dialect_add(&j->out, ",\"usage\":null");
    else if (final)
        write_end(j);
    dialect_add(&j->out, "}");
    dialect_close_event(j);
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    open_choice(j, i);
    dialect_add(&j->out, is_chat(j) ? "\"delta\":{\"content\":" : "\"text\":");
    write_text(j, i, bytes, size, owes_prompt(j, &j->choices[i]));
    dialect_add(&j->out, is_chat(j) ? "}" : "");
    write_logprobs(j, i);
    write_reason(j, &j->choices[i], false);
    close_choice(j, false);
}

static void write_thought(job *j, size_t i, const char *bytes, size_t size) {
    open_choice(j, i);
    dialect_add(&j->out, "\"delta\":{\"reasoning_content\":");
    text_quote(&j->out, bytes, size);
    dialect_add(&j->out, "}");
    write_logprobs(j, i);
    write_reason(j, &j->choices[i], false);
    close_choice(j, false);
}

/* Writes {"index", ... of the latest call of a choice, in a delta, and leaves the object open. */
static void open_call(job *j, size_t i) {
    open_choice(j, i);
    text_print(&j->out, "\"delta\":{\"tool_calls\":[{\"index\":%zu", j->choices[i].n_calls - 1);
}

static void close_call(job *j, size_t i) {
    dialect_add(&j->out, "}}]}");
    write_logprobs(j, i);
    write_reason(j, &j->choices[i], false);
    close_choice(j, false);
}

static void begin_call(job *j, size_t i) {
    const choice *c = &j->choices[i];
    open_call(j, i);
    dialect_add(&j->out, ",\"id\":");
    dialect_write_call_id(j, &j->out, "call", i, c->n_calls - 1);
    dialect_add(&j->out, ",\"type\":\"function\",\"function\":{\"name\":");
    text_quote(&j->out, c->calls[c->n_calls - 1].name, strlen(c->calls[c->n_calls - 1].name));
    dialect_add(&j->out, ",\"arguments\":\"\"");
    close_call(j, i);
}

static void write_arguments(job *j, size_t i, const char *bytes, size_t size) {
    open_call(j, i);
    dialect_add(&j->out, ",\"function\":{\"arguments\":");
    text_quote(&j->out, bytes, size);
    close_call(j, i);
}

static void end_call(job *j, size_t i) {
    (void)j;
    (void)i;
}

static void write_last(job *j, size_t i) {
    open_choice(j, i);
    if (is_chat(j)) {
        dialect_add(&j->out, "\"delta\":{}");
    } else {
        dialect_add(&j->out, "\"text\":");
        write_text(j, i, "", 0, owes_prompt(j, &j->choices[i]));
    }
    write_logprobs(j, i);
    write_reason(j, &j->choices[i], true);
    close_choice(j, j->n_left == 0);
}

/* Writes the role of each answer. */
static void begin_chat(job *j) {
    for (size_t i = 0; i < j->n_choices; i++) {
        open_choice(j, i);
        dialect_add(&j->out, "\"delta\":{\"role\":\"assistant\",\"content\":null},"
                             "\"logprobs\":null,\"finish_reason\":null");
        close_choice(j, false);
    }
}

/* Writes the prompts if they are to be repeated. With logprobs they follow later, when these are
 * known. */
static void begin_completion(job *j) {
    for (size_t i = 0; i < j->n_choices && j->ask.echo && j->notes == NULL; i++) {
        open_choice(j, i);
        dialect_add(&j->out, "\"text\":");
        write_text(j, i, "", 0, true);
        write_logprobs(j, i);
        write_reason(j, &j->choices[i], false);
        close_choice(j, false);
    }
}

static void finish(job *j) {
    if (j->ask.include_usage) {
        dialect_open_event(j, NULL);
        write_head(j);
        dialect_add(&j->out, ",\"choices\":[]");
        write_usage(j);
        write_end(j);
        dialect_add(&j->out, "}");
        dialect_close_event(j);
    }
    dialect_add(&j->out, "data: [DONE]\n\n");
}

static void fail(job *j, const refusal *r) {
    dialect_open_event(j, NULL);
    refusal_write(r, &j->out);
    dialect_close_event(j);
}

/* ---- whole replies --------------------------------------------------------------------------- */

static void write_calls(job *j, size_t i) {
    const choice *c = &j->choices[i];
    for (size_t k = 0; k < c->n_calls; k++) {
        const text *arguments = &c->calls[k].arguments;
        dialect_add(&j->out, k > 0 ? ",{\"id\":" : ",\"tool_calls\":[{\"id\":");
        dialect_write_call_id(j, &j->out, "call", i, k);
        dialect_add(&j->out, ",\"type\":\"function\",\"function\":{\"name\":");
        text_quote(&j->out, c->calls[k].name, strlen(c->calls[k].name));
        dialect_add(&j->out, ",\"arguments\":");
        text_quote(&j->out, arguments->bytes, arguments->size);
        dialect_add(&j->out, k + 1 < c->n_calls ? "}}" : "}}]");
        j->out.failed = j->out.failed || arguments->failed;
    }
}

static void write_message(job *j, size_t i) {
    choice *c = &j->choices[i];
    const bool chat = is_chat(j);
    dialect_add(&j->out, chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"text\":");
    if (c->n_calls > 0 && c->content.size == 0)
        dialect_add(&j->out, "null");
    else
        write_text(j, i, c->content.bytes, c->content.size, j->ask.echo);
    if (c->thought.size > 0) {
        dialect_add(&j->out, ",\"reasoning_content\":");
        text_quote(&j->out, c->thought.bytes, c->thought.size);
    }
    dialect_add(&j->out, chat ? ",\"refusal\":null" : "");
    write_calls(j, i);
    dialect_add(&j->out, chat ? "}" : "");
    j->out.failed = j->out.failed || c->content.failed || c->thought.failed;
}

static void write_whole(job *j) {
    write_head(j);
    dialect_add(&j->out, ",\"choices\":[");
    for (size_t i = 0; i < j->n_choices; i++) {
        text_print(&j->out, "%s{\"index\":%zu,", i > 0 ? "," : "", i);
        write_message(j, i);
        write_logprobs(j, i);
        write_reason(j, &j->choices[i], true);
        dialect_add(&j->out, "}");
    }
    dialect_add(&j->out, "]");
    write_usage(j);
    write_end(j);
    dialect_add(&j->out, "}");
}

const dialect dialect_chat = {.id = "chatcmpl-",
                              .trims = true,
                              .open = open_head,
                              .begin = begin_chat,
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
const dialect dialect_completion = {.id = "cmpl-",
                                    .notes_end = true,
                                    .open = open_completion,
                                    .begin = begin_completion,
                                    .piece = write_piece,
                                    .last = write_last,
                                    .finish = finish,
                                    .fail = fail,
                                    .whole = write_whole,
                                    .note = note_completion,
                                    .note_prompt = note_prompt};
