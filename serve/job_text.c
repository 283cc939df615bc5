/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/job_text.h"

#include <string.h>

#include "base/utf8.h"

static void add(text *t, const char *words) {
    text_add(t, words, strlen(words));
}

static const char *finish_reason(tern_end end) {
    return end == TERN_END_LENGTH || end == TERN_END_CONTEXT ? "length" : "stop";
}

/* ---- what comes with every answer ------------------------------------------------------------ */

static void write_usage(job *j) {
    size_t n_prompt = 0, n_shared = 0, n_generated = 0;
    for (size_t i = 0; i < j->n_choices; i++) {
        const tern_branch_figures *f = &j->choices[i].figures;
        n_generated += f->n_generated;
        if (i % j->ask.n == 0) {
            n_prompt += j->ask.prompts[i / j->ask.n].n;
            n_shared += f->n_shared;
        }
    }
    text_print(&j->out,
               ",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu,"
               "\"prompt_tokens_details\":{\"cached_tokens\":%zu}}",
               n_prompt, n_generated, n_prompt + n_generated, n_shared);
}

static void write_tern(job *j) {
    add(&j->out, ",\"tern\":{\"digest\":[");
    for (size_t i = 0; i < j->n_choices; i++) {
        text_print(&j->out, "%s\"%s\"", i > 0 ? "," : "", j->choices[i].digest);
    }
    add(&j->out, "],\"effective\":");
    ask_write_effective(&j->ask, &j->out);
    add(&j->out, ",\"ignored\":[");
    text_add(&j->out, j->ask.ignored.bytes, j->ask.ignored.size);
    add(&j->out, "]}");
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static size_t count_characters(const char *bytes, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < size; n++) {
        i += tern_utf8_next(bytes + i, size - i).size;
    }
    return n;
}

/* {"token": ..., "logprob": ..., "bytes": [...], and is still open. */
static void open_entry(job *j, text *t, int32_t token, float logprob) {
    size_t size;
    const char *bytes = tern_token_bytes(j->place.tokenizer, token, true, &size);
    add(t, "{\"token\":");
    text_quote(t, bytes, size);
    text_print(t, ",\"id\":%d", (int)token);
    text_real(t, "logprob", logprob);
    add(t, ",\"bytes\":[");
    for (size_t i = 0; i < size; i++) {
        text_print(t, "%s%u", i > 0 ? "," : "", (unsigned)(unsigned char)bytes[i]);
    }
    add(t, "]");
}

static void note_chat(job *j, choice *c, const tern_event *e) {
    text *t = &c->logs[0];
    text_add(t, ",", t->size > 0);
    open_entry(j, t, e->token, (float)e->logprob);
    add(t, ",\"top_logprobs\":[");
    for (size_t i = 0; i < e->n_likeliest; i++) {
        text_add(t, ",", i > 0);
        open_entry(j, t, e->likeliest[i].token, e->likeliest[i].logprob);
        add(t, "}");
    }
    add(t, "]}");
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

static void note_completion(job *j, choice *c, const tern_event *e) {
    size_t size;
    const char *bytes = tern_token_bytes(j->place.tokenizer, e->token, true, &size);
    for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
        text_add(&c->logs[k], ",", c->logs[k].size > 0);
    }
    text_quote(&c->logs[0], bytes, size);
    text_float(&c->logs[1], (float)e->logprob);
    add(&c->logs[2], "{");
    for (size_t i = 0; i < e->n_likeliest; i++) {
        if (!has_said(j, e, i)) {
            size_t n;
            const char *name =
                tern_token_bytes(j->place.tokenizer, e->likeliest[i].token, true, &n);
            text_add(&c->logs[2], ",", i > 0);
            text_quote(&c->logs[2], name, n);
            add(&c->logs[2], ":");
            text_float(&c->logs[2], e->likeliest[i].logprob);
        }
    }
    add(&c->logs[2], "}");
    text_print(&c->logs[3], "%zu", c->offset);
    c->offset += count_characters(bytes, size);
}

void job_note_token(job *j, size_t i, const tern_event *e) {
    choice *c = &j->choices[i];
    if (j->ask.kind == ASK_CHAT) {
        note_chat(j, c, e);
    } else {
        note_completion(j, c, e);
    }
    for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
        j->out.failed = j->out.failed || c->logs[k].failed;
    }
}

static void write_logprobs(job *j, choice *c) {
    static const char *const parts[JOB_LOG_PARTS] = {"tokens", "token_logprobs", "top_logprobs",
                                                     "text_offset"};
    text *out = &j->out;
    if (!j->ask.logprobs) {
        add(out, ",\"logprobs\":null");
    } else if (j->ask.kind == ASK_CHAT) {
        add(out, ",\"logprobs\":{\"content\":[");
        text_add(out, c->logs[0].bytes, c->logs[0].size);
        add(out, "],\"refusal\":null}");
    } else {
        add(out, ",\"logprobs\":{");
        for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
            text_name(out, parts[k]);
            add(out, "[");
            text_add(out, c->logs[k].bytes, c->logs[k].size);
            add(out, "]");
        }
        add(out, "}");
    }
    for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
        text_clear(&c->logs[k]);
    }
}

static void write_reason(job *j, const choice *c, bool ended) {
    if (ended) {
        text_print(&j->out, ",\"finish_reason\":\"%s\"", finish_reason(c->end));
    } else {
        add(&j->out, ",\"finish_reason\":null");
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static void open_choice(job *j, size_t i) {
    text_add(&j->out, j->head.bytes, j->head.size);
    j->out.failed = j->out.failed || j->head.failed;
    text_print(&j->out, ",\"choices\":[{\"index\":%zu,", i);
}

static void close_choice(job *j, bool final) {
    add(&j->out, "}]");
    if (j->ask.include_usage) {
        add(&j->out, ",\"usage\":null");
    } else if (final) {
        write_tern(j);
    }
    add(&j->out, "}");
}

/* What an echoed prompt is: the text that was given, or that of the ids. */
static void write_prompt(job *j, size_t i, text *t) {
    const ask_prompt *p = &j->ask.prompts[i / j->ask.n];
    if (p->given != NULL) {
        add(t, p->given);
        return;
    }
    for (size_t k = 0; k < p->n; k++) {
        size_t size;
        const char *bytes = tern_token_bytes(j->place.tokenizer, p->ids[k], true, &size);
        text_add(t, bytes, size);
    }
}

static void echo(job *j, size_t i) {
    if (j->ask.echo) {
        text prompt = {0};
        write_prompt(j, i, &prompt);
        job_write_chunk(j, i, prompt.bytes, prompt.size, false);
        j->out.failed = j->out.failed || prompt.failed;
        text_free(&prompt);
    }
}

bool job_write_first(job *j, size_t i) {
    if (j->ask.kind == ASK_COMPLETION) {
        echo(j, i);
        return j->ask.echo;
    }
    open_choice(j, i);
    add(&j->out, "\"delta\":{\"role\":\"assistant\",\"content\":null},\"logprobs\":null,"
                 "\"finish_reason\":null");
    close_choice(j, false);
    return true;
}

void job_write_chunk(job *j, size_t i, const char *bytes, size_t size, bool last) {
    choice *c = &j->choices[i];
    open_choice(j, i);
    if (j->ask.kind == ASK_CHAT && last) {
        add(&j->out, "\"delta\":{}");
    } else {
        add(&j->out, j->ask.kind == ASK_CHAT ? "\"delta\":{\"content\":" : "\"text\":");
        text_quote(&j->out, bytes, size);
        add(&j->out, j->ask.kind == ASK_CHAT ? "}" : "");
    }
    write_logprobs(j, c);
    write_reason(j, c, last);
    close_choice(j, last && j->n_left == 0);
}

void job_write_usage_chunk(job *j) {
    text_add(&j->out, j->head.bytes, j->head.size);
    add(&j->out, ",\"choices\":[]");
    write_usage(j);
    write_tern(j);
    add(&j->out, "}");
}

/* ---- whole replies --------------------------------------------------------------------------- */

static void write_message(job *j, size_t i) {
    choice *c = &j->choices[i];
    const bool chat = j->ask.kind == ASK_CHAT;
    add(&j->out, chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"text\":");
    if (j->ask.echo) {
        text whole = {0};
        write_prompt(j, i, &whole);
        text_add(&whole, c->content.bytes, c->content.size);
        text_quote(&j->out, whole.bytes, whole.size);
        j->out.failed = j->out.failed || whole.failed;
        text_free(&whole);
    } else {
        text_quote(&j->out, c->content.bytes, c->content.size);
    }
    add(&j->out, chat ? ",\"refusal\":null}" : "");
    j->out.failed = j->out.failed || c->content.failed;
}

void job_write_whole(job *j) {
    text_add(&j->out, j->head.bytes, j->head.size);
    j->out.failed = j->out.failed || j->head.failed;
    add(&j->out, ",\"choices\":[");
    for (size_t i = 0; i < j->n_choices; i++) {
        text_print(&j->out, "%s{\"index\":%zu,", i > 0 ? "," : "", i);
        write_message(j, i);
        write_logprobs(j, &j->choices[i]);
        write_reason(j, &j->choices[i], true);
        add(&j->out, "}");
    }
    add(&j->out, "]");
    write_usage(j);
    write_tern(j);
    add(&j->out, "}");
}
