/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random_bytes.h"
#include "serve/work/dialect.h"
#include "serve/work/job_text.h"

enum { MOST_REPLY_BYTES = 16 << 20 }; /* for a reply that is not a stream */

/* ---- life ------------------------------------------------------------------------------------ */

static const dialect *form_of(const ask *a) {
    if (a->rerank.wanted)
        return &dialect_rerank;
    if (a->ollama != 0)
        return (a->kind & ASK_VECTORS) != 0 ? &dialect_ollama_vectors
               : a->kind == ASK_CHAT        ? &dialect_ollama
                                            : &dialect_ollama_raw;
    switch (a->kind) {
    case ASK_COMPLETION:
        return &dialect_completion;
    case ASK_RESPONSE:
        return &dialect_response;
    case ASK_MESSAGE:
        return &dialect_message;
    case ASK_NATIVE:
        return &dialect_native;
    case ASK_EMBEDDING:
        return &dialect_embedding;
    case ASK_NATIVE_EMBEDDING:
        return &dialect_native_embedding;
    default:
        return &dialect_chat;
    }
}

static void name_it(job *j) {
    uint64_t random[2] = {0};
    tern_random_bytes(random, sizeof random);
    tern_random_bytes(j->private_name, sizeof j->private_name);
    (void)snprintf(j->id, sizeof j->id, "%s%016" PRIx64 "%08" PRIx32, j->dialect->id, random[0],
                   (uint32_t)random[1]);
    j->created = time(NULL);
    if (j->dialect->open != NULL)
        j->dialect->open(j);
}

static void free_states(job *j) {
    for (size_t i = 0; i < j->n_requests && j->states != NULL; i++)
        tern_grammar_state_free(&j->states[i]);
    free(j->states);
}

/* Opens the state of the answers' grammar for each request, if there is one. False: no memory. */
static bool open_states(job *j, const ask *a) {
    if (a->grammar == NULL)
        return true;
    j->states = calloc(j->n_requests, sizeof *j->states);
    for (size_t i = 0; i < j->n_requests && j->states != NULL; i++) {
        tern_error err;
        if (tern_grammar_state_new(a->grammar, a->n, &j->states[i], &err) != TERN_OK)
            return false;
    }
    return j->states != NULL;
}

/* Prepares a choice to find thinking and calls in its text. An answer in a form has neither. */
static void open_readers(choice *c, const ask *a, const dialect *d) {
    const bool apart = d->thought != NULL && !a->mixed && a->form.field == NULL;
    c->reader = (call_reader){.form = a->tools.form, .types = {&a->tools, tools_value}};
    c->thinking = (thinking_reader){
        .marks = apart ? a->thinking : NULL, .inside = a->thinks, .blank = a->thinks};
}

job *job_new(const job_place *place, http_exchange *x, account *v, ask *a) {
    job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    j->n_choices = a->n * a->n_prompts;
    j->n_left = j->n_choices + a->receipt;
    j->n_requests = a->n_prompts + a->receipt;
    j->choices = calloc(j->n_choices, sizeof *j->choices);
    j->ids = calloc(j->n_requests, sizeof *j->ids);
    const bool noted = a->echo && a->logprobs;
    j->notes = noted ? calloc(a->n_prompts, sizeof *j->notes) : NULL;
    j->place = *place;
    if (j->choices == NULL || j->ids == NULL || (noted && j->notes == NULL) || !open_states(j, a)) {
        free(j->choices);
        free(j->ids);
        free(j->notes);
        free_states(j);
        free(j);
        return NULL;
    }
    j->ask = *a;
    *a = (ask){0};
    j->account = v;
    account_keep(v);
    place->lease.keep(place->lease.of);
    j->x = x;
    http_keep(x);
    j->dialect = form_of(&j->ask);
    for (size_t i = 0; i < j->n_choices; i++)
        open_readers(&j->choices[i], &j->ask, j->dialect);
    name_it(j);
    return j;
}

static void free_choice(choice *c) {
    text_free(&c->content);
    text_free(&c->thought);
    thinking_free(&c->thinking);
    text_free(&c->vector);
    text_free(&c->ids);
    text_free(&c->tokens);
    for (size_t k = 0; k < JOB_LOG_PARTS; k++)
        text_free(&c->logs[k]);
    for (size_t k = 0; k < c->n_calls; k++)
        text_free(&c->calls[k].arguments);
    free(c->calls);
    call_reader_free(&c->reader);
}

void job_free(job *j) {
    for (size_t i = 0; i < j->n_choices; i++)
        free_choice(&j->choices[i]);
    free_states(j);
    for (size_t i = 0; i < j->ask.n_prompts && j->notes != NULL; i++)
        for (size_t k = 0; k < JOB_LOG_PARTS; k++)
            text_free(&j->notes[i].logs[k]);
    free(j->choices);
    free(j->ids);
    free(j->notes);
    text_free(&j->replay.replayed);
    free(j->replay.receipt);
    text_free(&j->head);
    text_free(&j->out);
    ask_free(&j->ask);
    http_release(j->x);
    account_release(j->account);
    const job_lease lease = j->place.lease;
    free(j);
    lease.give_back(lease.of); /* nothing of the model is used from now on */
}

tern_request job_request(const job *j, size_t i) {
    const ask *a = &j->ask;
    tern_grammar_state *state = j->states != NULL ? j->states[i] : NULL;
    const bool replay = i == a->n_prompts; /* shares no pages and has the lowest priority */
    i = replay ? 0 : i;
    const size_t room =
        j->place.n_ctx - a->prompts[i].n; /* at least 1 if tokens are wanted: ask_read checks it */
    const size_t wanted = a->max_tokens < room ? a->max_tokens : room;
    return (tern_request){.tokens = a->prompts[i].ids,
                          .n_tokens = a->prompts[i].n,
                          .sampling = &a->sampling,
                          .branches = a->n,
                          .max_tokens = a->prompt_only ? 0 : wanted,
                          .ignore_end = a->ignore_end,
                          .draft = replay ? TERN_DRAFT_NEVER : j->place.draft,
                          .stop_tokens = a->stop_tokens,
                          .n_stop_tokens = a->n_stop_tokens,
                          .stop_texts = a->stops,
                          .n_stop_texts = a->n_stops,
                          .drop_space = j->dialect->trims && !a->continues,
                          .logprobs = a->logprobs,
                          .n_logprobs = a->n_logprobs,
                          .prompt_logprobs = j->notes != NULL,
                          .prompt_only = a->prompt_only,
                          .pooling =
                              (a->kind & ASK_VECTORS) != 0 ? j->place.pooling : TERN_POOLING_NONE,
                          .second_from = a->prompts[i].second,
                          .priority = replay ? -1 : 0,
                          .mask = state != NULL ? tern_grammar_mask : NULL,
                          .user = state,
                          .adapters = a->adapters.said ? a->adapters.list : NULL,
                          .n_adapters = a->adapters.n,
                          .space = a->alone || replay        ? j->private_name
                                   : j->account->key != NULL ? j->account->key->digest
                                                             : NULL};
}

size_t job_unasked(const job *j) {
    return j->n_requests - j->n_asked;
}

/* A request that the engine was not asked for has one choice. */
size_t job_under_way(const job *j) {
    return j->n_left - job_unasked(j);
}

bool job_is_done(const job *j) {
    return job_under_way(j) == 0 && (j->over || job_unasked(j) == 0);
}

/* ---- what is told ---------------------------------------------------------------------------- */

void job_refuse(job *j, const refusal *r) {
    if (!j->over && j->ask.stream && http_status(j->x) != 0) {
        j->dialect->fail(j, r);
        (void)job_send(j);
        http_stream_end(j->x);
    } else if (!j->over) {
        refusal_reply(r, j->x);
    }
    j->over = true;
}

void job_begin(job *j) {
    if (j->ask.stream) {
        http_stream_open(j->x, j->dialect->stream_type);
        j->dialect->begin(j);
        (void)job_send(j);
    }
}

/* Sends the last events of a stream, or the whole reply. */
static void finish(job *j) {
    if (j->over)
        return;
    j->over = true;
    if (j->ask.stream) {
        j->dialect->finish(j);
        (void)job_send(j);
        http_stream_end(j->x);
        return;
    }
    size_t size;
    if (j->n_choices == 1)
        http_reply_header(j->x, "X-Tern-Digest", j->choices[0].digest);
    j->dialect->whole(j);
    char *bytes = text_take(&j->out, &size);
    http_reply(j->x, 200, "application/json", bytes, size);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static size_t held_bytes(const job *j) {
    size_t n = 0;
    for (size_t i = 0; i < j->n_choices; i++) {
        n += j->choices[i].content.size + j->choices[i].thought.size;
        for (size_t k = 0; k < j->choices[i].n_calls; k++)
            n += sizeof(tool_call) + j->choices[i].calls[k].arguments.size;
        for (size_t k = 0; k < JOB_LOG_PARTS; k++) {
            n += j->choices[i].logs[k].size;
            n += j->notes != NULL ? j->notes[i / j->ask.n].logs[k].size : 0;
        }
    }
    return n;
}

/* Returns why a choice failed. The grammar's error, if there is one, says more than the engine's.
 */
static const tern_error *error_of(const job *j, size_t i, const tern_event *e) {
    const tern_error *why =
        j->states != NULL ? tern_grammar_state_error(j->states[i / j->ask.n]) : NULL;
    return why != NULL ? why : e->error;
}

/* True, after a refusal, if a choice failed, was cancelled or took too long: then the whole reply
 * ends. */
static bool fails(job *j, size_t i, const tern_event *e) {
    refusal r = {0};
    if (e->end == TERN_END_ERROR)
        (void)refuse_error(&r, NULL, error_of(j, i, e));
    else if (e->end == TERN_END_CANCELLED)
        (void)refuse(&r, 503, NULL, "the server is ending, and the answer with it");
    else if (e->end == TERN_END_DEADLINE)
        (void)refuse(&r, 503, NULL, "the answer was not ready in time");
    else
        return false;
    j->cut = true;
    job_refuse(j, &r);
    return true;
}

/* ---- receipts -------------------------------------------------------------------------------- */

bool job_differs(const job *j) {
    const job_replay *p = &j->replay;
    const text *answered = &j->choices[0].tokens;
    return j->ask.receipt && j->n_left == 0 &&
           (strcmp(p->digest, j->choices[0].digest) != 0 || answered->size != p->replayed.size ||
            (answered->size > 0 &&
             memcmp(answered->bytes, p->replayed.bytes, answered->size) != 0));
}

static void keep_token(text *t, const tern_event *e) {
    text_add(t, (const char *)&e->token, sizeof e->token);
}

/* True if answers are written to a recording. */
static bool is_recorded(const job *j) {
    return j->place.receipts != NULL && j->place.receipts->record != NULL;
}

receipt_answer job_answer(const job *j, size_t i) {
    const choice *c = &j->choices[i];
    const text *tokens = &c->tokens;
    const tern_request request = job_request(j, i / j->ask.n);
    return (receipt_answer){.fingerprint = j->place.fingerprint,
                            .n_ctx = j->place.n_ctx,
                            .threads = j->place.threads,
                            .prompt = request.tokens,
                            .n_prompt = request.n_tokens,
                            .tokens = (const int32_t *)(const void *)tokens->bytes,
                            .n_tokens = tokens->size / sizeof(int32_t),
                            .sampling = &j->ask.sampling,
                            .seed = j->ask.sampling.seed + i % j->ask.n,
                            .max_tokens = request.max_tokens > 0
                                              ? request.max_tokens
                                              : j->place.n_ctx - request.n_tokens,
                            .ignore_end = request.ignore_end,
                            .stops = j->ask.stops,
                            .n_stops = j->ask.n_stops,
                            .grammar = j->ask.grammar,
                            .form = j->ask.form_record,
                            .drop_space = request.drop_space,
                            .end = c->end,
                            .digest = c->digest};
}

/* Excludes jobs with logprobs of the prompt, since their digest covers more positions. */
bool job_is_whole(const job *j, size_t i) {
    return !j->cut && j->choices[i].ended && !j->ask.prompt_only && j->notes == NULL &&
           !j->choices[i].tokens.failed;
}

static void record(const job *j, size_t i) {
    if (is_recorded(j) && job_is_whole(j, i)) {
        const receipt_answer answer = job_answer(j, i);
        j->place.receipts->record(j->place.receipts->user, &answer);
    }
}

/* Makes the receipt. False after a refusal: without a valid receipt the reply is not what was asked
 * for. */
static bool make_receipt(job *j) {
    job_replay *p = &j->replay;
    const receipt_answer answer = job_answer(j, 0);
    refusal r;
    if (job_differs(j))
        (void)refuse(&r, 500, "receipt", "the answer was repeated and is another one");
    else if (j->choices[0].tokens.failed || p->replayed.failed ||
             (p->receipt = j->place.receipts->make(j->place.receipts->user, &answer)) == NULL)
        (void)refuse(&r, 503, "receipt", "the receipt could not be made");
    if (p->receipt == NULL)
        job_refuse(j, &r);
    return p->receipt != NULL;
}

/* ---- the end of an answer -------------------------------------------------------------------- */

static bool tell_end(job *j, size_t i) {
    if (j->ask.stream) {
        j->dialect->last(j, i);
        return job_send(j);
    }
    return true;
}

/* Everything has ended: makes the receipt, if one is wanted, and finishes the reply. */
static bool conclude(job *j) {
    if (j->ask.receipt && (!make_receipt(j) || !tell_end(j, 0)))
        return false;
    finish(j);
    return true;
}

static void note_logs(job *j, size_t i, const tern_event *e) {
    j->dialect->note(j, i, e);
    for (size_t k = 0; k < JOB_LOG_PARTS; k++)
        j->out.failed = j->out.failed || j->choices[i].logs[k].failed;
}

static bool end(job *j, size_t i, const tern_event *e) {
    choice *c = &j->choices[i];
    c->ended = true;
    c->end = e->end;
    c->stop = e->stop_text;
    c->end_token = e->token;
    c->figures = e->figures;
    memcpy(c->digest, e->digest, sizeof c->digest);
    if (e->pooled != NULL)
        text_add(&c->vector, (const char *)e->pooled, j->ask.dimensions * sizeof *e->pooled);
    account_note(j->account, e);
    j->n_left--;
    if (j->n_left == 0 && !j->ask.receipt)
        account_leave(j->account);
    if (fails(j, i, e))
        return false;
    record(j, i);
    if (j->over)
        return false;
    if (j->ask.logprobs && j->dialect->notes_end &&
        (e->end == TERN_END_OF_TEXT || e->end == TERN_END_STOP_TOKEN))
        note_logs(j, i, e);
    const bool wanted = job_give(j, i, e->text, e->size) && job_give(j, i, NULL, 0) &&
                        (j->ask.receipt || tell_end(j, i));
    return wanted && (j->n_left > 0 || conclude(j));
}

/* Takes an event of the replay. */
static bool take_replay(job *j, const tern_event *e) {
    if (e->kind == TERN_EVENT_TOKEN) {
        keep_token(&j->replay.replayed, e);
        return !j->over;
    }
    memcpy(j->replay.digest, e->digest, sizeof j->replay.digest);
    j->n_left--;
    if (j->n_left == 0)
        account_leave(j->account);
    if (fails(j, 0, e) || j->over)
        return false;
    return j->n_left > 0 || conclude(j);
}

static void note(job *j, size_t i, const tern_event *e) {
    choice *c = &j->choices[i];
    c->n_tokens++;
    if (((j->ask.receipt || j->place.audits || j->place.slots) && i == 0) || is_recorded(j))
        keep_token(&c->tokens, e);
    if (j->dialect->has_ids)
        text_print(&c->ids, "%s%d", c->ids.size > 0 ? "," : "", (int)e->token);
    if (j->ask.logprobs)
        note_logs(j, i, e);
    j->out.failed = j->out.failed || c->ids.failed;
}

bool job_take(job *j, size_t i, const tern_event *e) {
    const size_t at = i * j->ask.n + e->branch;
    if (i == j->ask.n_prompts)
        return take_replay(j, e);
    if (e->kind == TERN_EVENT_END)
        return end(j, at, e);
    if (j->over)
        return false;
    if (e->kind == TERN_EVENT_PROMPT) {
        j->dialect->note_prompt(j, i, e);
        return true;
    }
    note(j, at, e);
    if (!job_give(j, at, e->text, e->size))
        return false;
    if (!j->ask.stream && j->ask.logprobs && held_bytes(j) > MOST_REPLY_BYTES) {
        refusal r;
        (void)refuse(&r, 400, "stream", "the reply is longer than %d bytes: ask for a stream",
                     MOST_REPLY_BYTES);
        job_refuse(j, &r);
        return false;
    }
    return true;
}
