/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/dialect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"

void dialect_add(text *t, const char *words) {
    text_add(t, words, strlen(words));
}

void dialect_open_event(job *j, const char *name) {
    if (name != NULL)
        text_print(&j->out, "event: %s\n", name);
    dialect_add(&j->out, "data: ");
}

void dialect_close_event(job *j) {
    dialect_add(&j->out, "\n\n");
}

dialect_usage dialect_count(const job *j) {
    dialect_usage u = {0};
    for (size_t i = 0; i < j->n_choices; i++) {
        const tern_branch_figures *f = &j->choices[i].figures;
        u.n_generated += f->n_generated;
        u.n_thought += j->choices[i].n_thought;
        if (i % j->ask.n == 0) {
            u.n_prompt += j->ask.prompts[i / j->ask.n].n;
            u.n_shared += f->n_shared;
        }
    }
    return u;
}

/* ---- what the schemas say and a mask cannot enforce ------------------------------------------ */

/* Checks a whole value, and adds a text to `failed` if the schema does not allow it. */
static void check_value(const char *schema, size_t i, const text *value, text *failed) {
    tern_error why = {0};
    bool valid = true;
    char words[TERN_ERROR_MESSAGE_BYTES + 32];
    if (schema == NULL || value->bytes == NULL ||
        tern_schema_validate(schema, strlen(schema), value->bytes, value->size, &valid, &why) !=
            TERN_OK ||
        valid)
        return;
    (void)snprintf(words, sizeof words, "choice %zu: %s", i, why.message);
    text_add(failed, ",", failed->size > 0);
    text_quote(failed, words, strlen(words));
}

static void check_call(const job *j, size_t i, const tool_call *call, text *failed) {
    const toolset *set = &j->ask.tools;
    for (size_t k = 0; k < set->n && call->ended; k++) {
        if (strcmp(set->list[k].name, call->name) != 0 || set->list[k].schema == NULL)
            continue;
        char *schema = json_dump(set->list[k].schema, (json_style){0});
        check_value(schema, i, &call->arguments, failed);
        free(schema);
    }
}

static void check_choice(const job *j, size_t i, text *failed) {
    const choice *c = &j->choices[i];
    for (size_t k = 0; k < c->n_calls; k++)
        check_call(j, i, &c->calls[k], failed);
    if (c->n_calls == 0 && c->end == TERN_END_OF_TEXT)
        check_value(j->ask.schema_words, i, &c->content, failed);
}

static void write_schema_notes(job *j, size_t first, size_t n) {
    text failed = {0};
    if (j->ask.schema_notes.size == 0)
        return;
    dialect_add(&j->out, ",\"schema_notes\":[");
    text_add(&j->out, j->ask.schema_notes.bytes, j->ask.schema_notes.size);
    dialect_add(&j->out, "]");
    for (size_t i = first; i < first + n; i++)
        check_choice(j, i, &failed);
    if (failed.size > 0) {
        dialect_add(&j->out, ",\"schema_failed\":[");
        text_add(&j->out, failed.bytes, failed.size);
        dialect_add(&j->out, "]");
    }
    j->out.failed = j->out.failed || failed.failed;
    text_free(&failed);
}

void dialect_write_tern(job *j, size_t first, size_t n) {
    dialect_add(&j->out, ",\"tern\":{");
    text_string(&j->out, "system_fingerprint", j->place.fingerprint);
    dialect_add(&j->out, ",\"digest\":[");
    for (size_t i = first; i < first + n; i++)
        text_print(&j->out, "%s\"%s\"", i > first ? "," : "", j->choices[i].digest);
    dialect_add(&j->out, "],\"effective\":");
    ask_write_effective(&j->ask, &j->out);
    dialect_add(&j->out, ",\"ignored\":[");
    text_add(&j->out, j->ask.ignored.bytes, j->ask.ignored.size);
    dialect_add(&j->out, "]");
    write_schema_notes(j, first, n);
    if (j->ask.prompts[0].unseen[0] != '\0')
        text_string(&j->out, "unseen", j->ask.prompts[0].unseen);
    if (j->replay.receipt != NULL) {
        dialect_add(&j->out, ",\"receipt\":");
        dialect_add(&j->out, j->replay.receipt);
    }
    dialect_add(&j->out, "}");
}

/* Writes {"token": ..., "logprob": ..., "bytes": [...], and leaves the object open. */
static void open_token(const job *j, text *t, int32_t token, float logprob, bool trimmed) {
    size_t size;
    const char *bytes = tern_token_bytes(j->place.tokenizer, token, true, &size);
    const size_t dropped = trimmed && size > 0 && bytes[0] == ' ';
    bytes += dropped;
    size -= dropped;
    dialect_add(t, "{\"token\":");
    text_quote(t, bytes, size);
    text_print(t, ",\"id\":%d", (int)token);
    text_real(t, "logprob", logprob);
    dialect_add(t, ",\"bytes\":[");
    for (size_t i = 0; i < size; i++)
        text_print(t, "%s%u", i > 0 ? "," : "", (unsigned)(unsigned char)bytes[i]);
    dialect_add(t, "]");
}

void dialect_note_token(job *j, size_t i, const tern_event *e) {
    choice *c = &j->choices[i];
    text *t = &c->logs[0];
    size_t shown;
    const bool trimmed = j->dialect->trims && !c->began;
    text_add(t, ",", t->size > 0);
    open_token(j, t, e->token, (float)e->logprob, trimmed);
    dialect_add(t, ",\"top_logprobs\":[");
    for (size_t k = 0; k < e->n_likeliest; k++) {
        text_add(t, ",", k > 0);
        open_token(j, t, e->likeliest[k].token, e->likeliest[k].logprob, trimmed);
        dialect_add(t, "}");
    }
    dialect_add(t, "]}");
    (void)tern_token_bytes(j->place.tokenizer, e->token, false, &shown);
    c->began = c->began || shown > 0;
}

void dialect_write_call_id(const job *j, text *t, const char *words, size_t i, size_t k) {
    const char *unique = j->id + strcspn(j->id, "_-") + 1;
    const call_ids kind = j->ask.tools.form->ids;
    if (kind == CALL_IDS_FUNCTION)
        text_print(t, "\"functions.%s:%zu\"", j->choices[i].calls[k].name, k);
    else if (kind == CALL_IDS_NINE)
        text_print(t, "\"%s%02zx%02zx\"", unique + strlen(unique) - 5, i, k);
    else
        text_print(t, "\"%s_%s%02zx%02zx\"", words, unique, i, k);
}

bool dialect_part_at(const choice *c, size_t n, dialect_part *part) {
    const char *bytes = c->content.bytes != NULL ? c->content.bytes : "";
    const bool alone = c->n_calls == 0 && c->thought.size == 0;
    size_t at = 0, passed = 0;
    if (c->thought.size > 0 && passed++ == n) {
        *part = (dialect_part){.thought = true, .bytes = c->thought.bytes, .size = c->thought.size};
        return true;
    }
    for (size_t k = 0; k <= c->n_calls; k++) {
        const size_t end = k < c->n_calls ? c->calls[k].at : c->content.size;
        if ((end > at || alone) && passed++ == n) {
            *part = (dialect_part){.bytes = bytes + at, .size = end - at};
            return true;
        }
        at = end;
        if (k < c->n_calls && passed++ == n) {
            const text *arguments = &c->calls[k].arguments;
            *part = (dialect_part){&c->calls[k], k, arguments->bytes, arguments->size, false};
            return true;
        }
    }
    return false;
}

void dialect_write_prompt(const job *j, size_t i, text *t) {
    const ask_prompt *p = &j->ask.prompts[i / j->ask.n];
    if (p->given != NULL) {
        text_add(t, p->given, p->given_size);
        return;
    }
    for (size_t k = 0; k < p->n; k++) {
        size_t size;
        const char *bytes = tern_token_bytes(j->place.tokenizer, p->ids[k], true, &size);
        text_add(t, bytes, size);
    }
}

static double per_second(size_t n, double ms) {
    return ms > 0.0 ? (double)n * 1e3 / ms : 0.0;
}

/* Writes a number of tokens, the milliseconds that `steps` of them took, the milliseconds per
 * token, and the tokens per second. */
static void write_pace(text *out, const char *what, size_t n, size_t steps, double ms) {
    text_print(out, "\"%s_n\":%zu,\"%s_ms\":%.3f,\"%s_per_token_ms\":%.3f,\"%s_per_second\":%.3f",
               what, n, what, ms, what, steps > 0 ? ms / (double)steps : 0.0, what,
               per_second(steps, ms));
}

void dialect_write_timings(text *out, const tern_branch_figures *f) {
    const double prompt = f->n_generated > 0 ? f->first_token_seconds : f->seconds;
    text_print(out, ",\"timings\":{\"cache_n\":%zu,", f->n_shared);
    const size_t read = f->n_prompt - f->n_shared;
    const size_t n = f->n_generated; /* the first of which the pass of the prompt gave */
    write_pace(out, "prompt", read, read, 1e3 * (prompt - f->queued_seconds));
    dialect_add(out, ",");
    write_pace(out, "predicted", n, n > 0 ? n - 1 : 0, 1e3 * (f->seconds - prompt));
    if (f->n_guessed > 0)
        text_print(out, ",\"draft_n\":%" PRIu64 ",\"draft_n_accepted\":%" PRIu64, f->n_guessed,
                   f->n_guessed_right);
    dialect_add(out, "}");
}

void dialect_write_truth(text *t, const char *name, bool value) {
    text_name(t, name);
    dialect_add(t, value ? "true" : "false");
}
