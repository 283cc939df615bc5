/* SPDX-License-Identifier: Apache-2.0 */
/* Chats and completions as OpenAI's clients read them. */

#include <string.h>

#include "base/utf8.h"
#include "serve/form.h"

static bool is_chat(const job *j) {
    return j->ask.kind == ASK_CHAT;
}

static const char *finish_reason(tern_end end) {
    return end == TERN_END_LENGTH || end == TERN_END_CONTEXT ? "length" : "stop";
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
    const form_usage u = form_count(j);
    text_print(&j->out,
               ",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu,"
               "\"prompt_tokens_details\":{\"cached_tokens\":%zu}}",
               u.n_prompt, u.n_generated, u.n_prompt + u.n_generated, u.n_shared);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static size_t count_characters(const char *bytes, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < size; n++) {
        i += tern_utf8_next(bytes + i, size - i).size;
    }
    return n;
}

/* Of tokens with the same text the likeliest one counts: names in an object are different. */
static bool has_said(job *j, const tern_event *e, size_t i) {
    size_t size, other;
    const char *bytes = tern_token_bytes(j->place.tokenizer, e->likeliest[i].token, true, &size);
    for (size_t k = 0; k < i; k++) {
        const char *said =
            tern_token_bytes(j->place.tokenizer, e->likeliest[k].token, true, &other);
        if (other == size && memcmp(said, bytes, size) == 0) {
            return true;
        }
    }
    return false;
}

static void note_completion(job *j, size_t at, const tern_event *e) {
    choice *c = &j->choices[at];
    size_t size;
    const char *bytes = tern_token_bytes(j->place.tokenizer, e->token, true, &size);
    for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
        text_add(&c->logs[k], ",", c->logs[k].size > 0);
    }
    text_quote(&c->logs[0], bytes, size);
    text_float(&c->logs[1], (float)e->logprob);
    form_add(&c->logs[2], "{");
    for (size_t i = 0; i < e->n_likeliest; i++) {
        if (!has_said(j, e, i)) {
            size_t n;
            const char *name =
                tern_token_bytes(j->place.tokenizer, e->likeliest[i].token, true, &n);
            text_add(&c->logs[2], ",", i > 0);
            text_quote(&c->logs[2], name, n);
            form_add(&c->logs[2], ":");
            text_float(&c->logs[2], e->likeliest[i].logprob);
        }
    }
    form_add(&c->logs[2], "}");
    text_print(&c->logs[3], "%zu", c->offset);
    c->offset += count_characters(bytes, size);
}

static void write_logprobs(job *j, choice *c) {
    static const char *const parts[JOB_LOG_PARTS] = {"tokens", "token_logprobs", "top_logprobs",
                                                     "text_offset"};
    text *out = &j->out;
    if (!j->ask.logprobs) {
        form_add(out, ",\"logprobs\":null");
    } else if (is_chat(j)) {
        form_add(out, ",\"logprobs\":{\"content\":[");
        text_add(out, c->logs[0].bytes, c->logs[0].size);
        form_add(out, "],\"refusal\":null}");
    } else {
        form_add(out, ",\"logprobs\":{");
        for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
            text_name(out, parts[k]);
            form_add(out, "[");
            text_add(out, c->logs[k].bytes, c->logs[k].size);
            form_add(out, "]");
        }
        form_add(out, "}");
    }
    for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
        text_clear(&c->logs[k]);
    }
}

static void write_reason(job *j, const choice *c, bool ended) {
    if (ended) {
        text_print(&j->out, ",\"finish_reason\":\"%s\"", finish_reason(c->end));
    } else {
        form_add(&j->out, ",\"finish_reason\":null");
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static void open_choice(job *j, size_t i) {
    form_open_event(j, NULL);
    write_head(j);
    text_print(&j->out, ",\"choices\":[{\"index\":%zu,", i);
}

static void close_choice(job *j, bool final) {
    form_add(&j->out, "}]");
    if (j->ask.include_usage) {
        form_add(&j->out, ",\"usage\":null");
    } else if (final) {
        form_write_tern(j, 0, j->n_choices);
    }
    form_add(&j->out, "}");
    form_close_event(j);
}

static void write_piece(job *j, size_t i, const char *bytes, size_t size) {
    open_choice(j, i);
    form_add(&j->out, is_chat(j) ? "\"delta\":{\"content\":" : "\"text\":");
    text_quote(&j->out, bytes, size);
    form_add(&j->out, is_chat(j) ? "}" : "");
    write_logprobs(j, &j->choices[i]);
    write_reason(j, &j->choices[i], false);
    close_choice(j, false);
}

static void write_last(job *j, size_t i) {
    open_choice(j, i);
    form_add(&j->out, is_chat(j) ? "\"delta\":{}" : "\"text\":\"\"");
    write_logprobs(j, &j->choices[i]);
    write_reason(j, &j->choices[i], true);
    close_choice(j, j->n_left == 0);
}

/* The role of each answer. */
static void begin_chat(job *j) {
    for (size_t i = 0; i < j->n_choices; i++) {
        open_choice(j, i);
        form_add(&j->out, "\"delta\":{\"role\":\"assistant\",\"content\":null},"
                          "\"logprobs\":null,\"finish_reason\":null");
        close_choice(j, false);
    }
}

/* The prompts, where they are asked for. */
static void begin_completion(job *j) {
    for (size_t i = 0; i < j->n_choices && j->ask.echo; i++) {
        text prompt = {0};
        form_write_prompt(j, i, &prompt);
        write_piece(j, i, prompt.bytes, prompt.size);
        j->out.failed = j->out.failed || prompt.failed;
        text_free(&prompt);
    }
}

static void finish(job *j) {
    if (j->ask.include_usage) {
        form_open_event(j, NULL);
        write_head(j);
        form_add(&j->out, ",\"choices\":[]");
        write_usage(j);
        form_write_tern(j, 0, j->n_choices);
        form_add(&j->out, "}");
        form_close_event(j);
    }
    form_add(&j->out, "data: [DONE]\n\n");
}

static void fail(job *j, const refusal *r) {
    form_open_event(j, NULL);
    refusal_write(r, &j->out);
    form_close_event(j);
}

/* ---- whole replies --------------------------------------------------------------------------- */

static void write_message(job *j, size_t i) {
    choice *c = &j->choices[i];
    const bool chat = is_chat(j);
    form_add(&j->out, chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"text\":");
    if (j->ask.echo) {
        text whole = {0};
        form_write_prompt(j, i, &whole);
        text_add(&whole, c->content.bytes, c->content.size);
        text_quote(&j->out, whole.bytes, whole.size);
        j->out.failed = j->out.failed || whole.failed;
        text_free(&whole);
    } else {
        text_quote(&j->out, c->content.bytes, c->content.size);
    }
    form_add(&j->out, chat ? ",\"refusal\":null}" : "");
    j->out.failed = j->out.failed || c->content.failed;
}

static void write_whole(job *j) {
    write_head(j);
    form_add(&j->out, ",\"choices\":[");
    for (size_t i = 0; i < j->n_choices; i++) {
        text_print(&j->out, "%s{\"index\":%zu,", i > 0 ? "," : "", i);
        write_message(j, i);
        write_logprobs(j, &j->choices[i]);
        write_reason(j, &j->choices[i], true);
        form_add(&j->out, "}");
    }
    form_add(&j->out, "]");
    write_usage(j);
    form_write_tern(j, 0, j->n_choices);
    form_add(&j->out, "}");
}

const form form_chat = {.id = "chatcmpl-",
                        .trims = true,
                        .open = open_head,
                        .begin = begin_chat,
                        .piece = write_piece,
                        .last = write_last,
                        .finish = finish,
                        .fail = fail,
                        .whole = write_whole,
                        .note = form_note_token};
const form form_completion = {.id = "cmpl-",
                              .open = open_head,
                              .begin = begin_completion,
                              .piece = write_piece,
                              .last = write_last,
                              .finish = finish,
                              .fail = fail,
                              .whole = write_whole,
                              .note = note_completion};
