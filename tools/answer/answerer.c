/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/answerer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/text.h"
#include "base/metrics.h"

/* An answer that is in progress, or waits until those before it are told. */
typedef struct answer_slot {
    uint64_t request; /* 0: the engine does not have it */
    bool is_over;
    text tokens; /* int32_t each */
    text words;  /* that are said */
    text pooled; /* floats */
    size_t said; /* bytes of `words` that were said */
    double last; /* seconds of the last token */
    tern_latencies latencies;
    tern_end end;
    tern_error error;
    bool failed;
    tern_branch_figures figures;
    char digest[65];
} slot;

/* A run in progress. */
typedef struct run {
    answerer *a;
    const answer_task *task;
    size_t first, next; /* answers that are not told yet: first .. next - 1 */
    size_t live;        /* of these, the number that the engine has */
    double touched;     /* seconds of work-touch before the last pass */
    bool cancelled;
    tern_status status;
    tern_error *err;
} run;

static slot *slot_of(const run *r, size_t number) {
    return &r->a->slots[number % r->task->ahead];
}

static void fail(run *r) {
    r->status = tern_fail(r->err, TERN_ERR_NOMEM, "no memory for %zu answers", r->task->ahead);
}

static double touch_seconds(const run *r) {
    return r->a->touch != NULL ? r->a->touch->seconds : 0.0;
}

const char *answer_end_name(tern_end end) {
    return end == TERN_END_CANCELLED ? "interrupted" : tern_end_name(end);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Empties a slot for its next answer; its memory stays. */
static void begin(slot *s) {
    *s = (slot){.tokens = s->tokens, .words = s->words, .pooled = s->pooled};
    text_clear(&s->tokens);
    text_clear(&s->words);
    text_clear(&s->pooled);
}

static size_t tokens_of(const slot *s) {
    return s->tokens.size / sizeof(int32_t);
}

static void ask(run *r) {
    tern_request request = {0};
    slot *s = slot_of(r, r->next);
    begin(s);
    if (r->task->ask != NULL)
        r->task->ask(r->task->user, r->next, &request);
    else
        request = *r->task->request;
    if (tern_engine_submit(r->a->engine, &request, &s->request, &s->error) == TERN_OK)
        r->live++;
    else
        s->failed = s->is_over = true;
    r->next++;
}

static void ask_all(run *r) {
    const answer_task *task = r->task;
    while (!r->cancelled && r->next < task->n && r->next - r->first < task->ahead &&
           r->live < task->live)
        ask(r);
}

static void cancel_all(run *r) {
    for (size_t i = r->first; i < r->next; i++) {
        const slot *s = slot_of(r, i);
        if (s->request != 0)
            (void)tern_engine_cancel(r->a->engine, s->request);
    }
    r->cancelled = true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take_text(run *r, slot *s, const tern_event *e) {
    char number[16];
    if (r->a->tokenizer != NULL || r->task->say == NULL)
        text_add(&s->words, e->text, e->size);
    else if (e->kind == TERN_EVENT_TOKEN)
        text_add(&s->words, number,
                 (size_t)snprintf(number, sizeof number, "%" PRId32 " ", e->token));
    if (s->words.failed)
        fail(r);
}

static void take_token(run *r, slot *s, const tern_event *e) {
    const bool first = s->tokens.size == 0;
    text_add(&s->tokens, (const char *)&e->token, sizeof e->token);
    if (s->tokens.failed) {
        fail(r);
        return;
    }
    const double since = first ? -1.0 : e->seconds - s->last;
    if (!first)
        tern_latencies_add(&s->latencies, since);
    s->last = e->seconds;
    if (r->a->touch != NULL)
        touch_token(r->a->touch);
    if (r->task->on_token != NULL)
        r->task->on_token(r->task->user, since);
}

static void take_end(run *r, slot *s, const tern_event *e) {
    s->request = 0;
    s->is_over = true;
    if (r->a->is_session && s->tokens.size > 0)
        tern_latencies_add(&s->latencies, e->seconds - s->last);
    s->end = e->end;
    s->failed = e->end == TERN_END_ERROR;
    if (s->failed)
        s->error = *e->error;
    s->figures = e->figures;
    if (r->a->is_session) /* its clock stops with the last pass, before the tokens are touched */
        s->figures.seconds += touch_seconds(r) - r->touched;
    memcpy(s->digest, e->digest, sizeof s->digest);
    if (e->pooled != NULL)
        text_add(&s->pooled, (const char *)e->pooled, r->a->width * sizeof *e->pooled);
    if (s->pooled.failed)
        fail(r);
    r->live--;
}

static void take(run *r, const tern_event *e) {
    slot *s = NULL;
    for (size_t i = r->first; i < r->next && s == NULL; i++)
        s = slot_of(r, i)->request == e->request ? slot_of(r, i) : NULL;
    if (s == NULL)
        return; /* another task's */
    take_text(r, s, e);
    if (e->kind == TERN_EVENT_TOKEN)
        take_token(r, s, e);
    else if (e->kind == TERN_EVENT_END)
        take_end(r, s, e);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void tell(const run *r, size_t number, slot *s) {
    const bool has_text = s->words.bytes != NULL && r->a->tokenizer != NULL;
    one_answer *answer = &r->a->latest;
    tern_latencies_sort(&s->latencies);
    *answer = (one_answer){
        .number = number,
        .tokens = (const int32_t *)(const void *)s->tokens.bytes,
        .n_tokens = tokens_of(s),
        .text = has_text ? s->words.bytes : "",
        .text_size = has_text ? s->words.size : 0,
        .end = s->end,
        .error = s->failed ? &s->error : NULL,
        .figures = s->figures,
        .p50_ms = 1e3 * tern_latencies_percentile(&s->latencies, 0.50),
        .p95_ms = 1e3 * tern_latencies_percentile(&s->latencies, 0.95),
        .pooled = (const float *)(const void *)s->pooled.bytes,
    };
    memcpy(answer->digest, s->digest, sizeof answer->digest);
    if (r->task->tell != NULL)
        r->task->tell(r->task->user, answer);
}

/* Tells the new text of the first answer, and each complete answer from there on. */
static void tell_in_order(run *r) {
    for (bool more = true; more && r->first < r->next;) {
        slot *s = slot_of(r, r->first);
        const bool is_wanted =
            !r->cancelled || s->tokens.size > 0 || s->pooled.size > 0 || s->failed;
        if (is_wanted && s->words.size > s->said && r->task->say != NULL) {
            r->task->say(r->task->user, r->first, s->words.bytes + s->said,
                         s->words.size - s->said);
            s->said = s->words.size;
        }
        more = s->is_over;
        if (more && is_wanted)
            tell(r, r->first, s);
        r->first += more;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static void step(run *r) {
    const tern_event *events;
    size_t n;
    r->touched = touch_seconds(r);
    r->status = tern_engine_step(r->a->engine, &events, &n, r->err);
    for (size_t i = 0; r->status == TERN_OK && i < n; i++) {
        take(r, &events[i]);
        tell_in_order(r);
    }
}

answerer answerer_of(tern_session *session, const tern_tokenizer *tokenizer) {
    return (answerer){.engine = tern_session_engine(session),
                      .is_session = true,
                      .tokenizer = tokenizer,
                      .latest.text = ""};
}

static void free_slots(answerer *a) {
    for (size_t i = 0; i < a->n_slots; i++) {
        text_free(&a->slots[i].tokens);
        text_free(&a->slots[i].words);
        text_free(&a->slots[i].pooled);
    }
    free(a->slots);
    a->slots = NULL;
    a->n_slots = 0;
}

void answerer_close(answerer *a) {
    free_slots(a);
    *a = (answerer){0};
}

static void answer_all(run *r) {
    const answer_task *task = r->task;
    while (r->status == TERN_OK && (r->first < r->next || (r->next < task->n && !r->cancelled))) {
        if (!r->cancelled && task->go_on != NULL && !task->go_on(task->user))
            cancel_all(r);
        ask_all(r);
        if (r->live > 0)
            step(r);
        tell_in_order(r);
    }
}

tern_status answerer_run(answerer *a, const answer_task *task, tern_error *err) {
    run r = {.a = a, .task = task, .status = TERN_OK, .err = err};
    const uint64_t before = tern_dequantize_calls();
    free_slots(a);
    a->latest = (one_answer){.text = "", .end = TERN_END_CANCELLED};
    a->slots = calloc(task->ahead, sizeof *a->slots);
    if (a->slots == NULL)
        fail(&r);
    else
        a->n_slots = task->ahead;
    answer_all(&r);
    a->dequantized = tern_dequantize_calls() - before;
    const tern_error *own = a->latest.error;
    return r.status == TERN_OK && task->request != NULL && own != NULL
               ? tern_fail(err, own->status, "%s", own->message)
               : r.status;
}
