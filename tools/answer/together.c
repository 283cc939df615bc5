/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/together.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/text.h"
#include "base/metrics.h"

/* An answer that is in progress, or waits until those before it are told. */
typedef struct slot {
    uint64_t request; /* 0: the engine does not have it */
    bool is_over;
    text tokens; /* int32_t each */
    text words;
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

typedef struct together {
    tern_engine *engine;
    const together_task *task;
    slot *slots;        /* [ahead] answer i is in slot i % ahead */
    size_t first, next; /* answers that are not told yet: first .. next - 1 */
    size_t live;        /* of these, the number that the engine has */
    bool cancelled;
    tern_status status;
    tern_error *err;
} together;

static slot *slot_of(const together *t, size_t number) {
    return &t->slots[number % t->task->ahead];
}

static void fail(together *t) {
    t->status = tern_fail(t->err, TERN_ERR_NOMEM, "no memory for %zu answers", t->task->ahead);
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

static void ask(together *t) {
    tern_request request = {0};
    slot *s = slot_of(t, t->next);
    begin(s);
    t->task->ask(t->task->user, t->next, &request);
    if (tern_engine_submit(t->engine, &request, &s->request, &s->error) == TERN_OK)
        t->live++;
    else
        s->failed = s->is_over = true;
    t->next++;
}

static void ask_all(together *t) {
    const together_task *task = t->task;
    while (!t->cancelled && t->next < task->n && t->next - t->first < task->ahead &&
           t->live < task->live)
        ask(t);
}

static void cancel_all(together *t) {
    for (size_t i = t->first; i < t->next; i++) {
        const slot *s = slot_of(t, i);
        if (s->request != 0)
            (void)tern_engine_cancel(t->engine, s->request);
    }
    t->cancelled = true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take_text(together *t, slot *s, const tern_event *e) {
    text_add(&s->words, e->text, e->size);
    if (s->words.failed)
        fail(t);
}

static void take_token(together *t, slot *s, const tern_event *e) {
    const bool first = s->tokens.size == 0;
    text_add(&s->tokens, (const char *)&e->token, sizeof e->token);
    if (s->tokens.failed) {
        fail(t);
        return;
    }
    const double since = first ? -1.0 : e->seconds - s->last;
    if (!first)
        tern_latencies_add(&s->latencies, since);
    s->last = e->seconds;
    t->task->on_token(t->task->user, e->token, since);
}

static void take_end(together *t, slot *s, const tern_event *e) {
    s->request = 0;
    s->is_over = true;
    if (t->task->evaluates_last && s->tokens.size > 0)
        tern_latencies_add(&s->latencies, e->seconds - s->last);
    s->end = e->end;
    s->failed = e->end == TERN_END_ERROR;
    if (s->failed)
        s->error = *e->error;
    s->figures = e->figures;
    memcpy(s->digest, e->digest, sizeof s->digest);
    if (e->pooled != NULL)
        text_add(&s->pooled, (const char *)e->pooled, t->task->width * sizeof *e->pooled);
    if (s->pooled.failed)
        fail(t);
    t->live--;
}

static void take(together *t, const tern_event *e) {
    slot *s = NULL;
    for (size_t i = t->first; i < t->next && s == NULL; i++)
        s = slot_of(t, i)->request == e->request ? slot_of(t, i) : NULL;
    if (s == NULL)
        return; /* another task's */
    take_text(t, s, e);
    if (e->kind == TERN_EVENT_TOKEN)
        take_token(t, s, e);
    else if (e->kind == TERN_EVENT_END)
        take_end(t, s, e);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void tell(const together *t, size_t number, slot *s) {
    tern_latencies_sort(&s->latencies);
    together_answer answer = {
        .number = number,
        .tokens = (const int32_t *)(const void *)s->tokens.bytes,
        .n_tokens = tokens_of(s),
        .text = s->words.bytes != NULL ? s->words.bytes : "",
        .text_size = s->words.size,
        .end = s->end,
        .error = s->failed ? &s->error : NULL,
        .figures = s->figures,
        .p50_ms = 1e3 * tern_latencies_percentile(&s->latencies, 0.50),
        .p95_ms = 1e3 * tern_latencies_percentile(&s->latencies, 0.95),
        .pooled = (const float *)(const void *)s->pooled.bytes,
    };
    memcpy(answer.digest, s->digest, sizeof answer.digest);
    t->task->tell(t->task->user, &answer);
}

/* Tells the new text of the first answer, and each complete answer from there on. */
static void tell_in_order(together *t) {
    for (bool more = true; more && t->first < t->next;) {
        slot *s = slot_of(t, t->first);
        const bool is_wanted =
            !t->cancelled || s->tokens.size > 0 || s->pooled.size > 0 || s->failed;
        if (is_wanted && s->words.size > s->said) {
            t->task->say(t->task->user, t->first, s->words.bytes + s->said,
                         s->words.size - s->said);
            s->said = s->words.size;
        }
        more = s->is_over;
        if (more && is_wanted)
            tell(t, t->first, s);
        t->first += more;
    }
}

static void step(together *t) {
    const tern_event *events;
    size_t n;
    t->status = tern_engine_step(t->engine, &events, &n, t->err);
    for (size_t i = 0; t->status == TERN_OK && i < n; i++) {
        take(t, &events[i]);
        tell_in_order(t);
    }
}

tern_status together_run(tern_engine *engine, const together_task *task, tern_error *err) {
    together t = {.engine = engine, .task = task, .status = TERN_OK, .err = err};
    t.slots = calloc(task->ahead, sizeof *t.slots);
    if (t.slots == NULL)
        fail(&t);
    while (t.status == TERN_OK && (t.first < t.next || (t.next < task->n && !t.cancelled))) {
        if (!t.cancelled && !task->go_on(task->user))
            cancel_all(&t);
        ask_all(&t);
        if (t.live > 0)
            step(&t);
        tell_in_order(&t);
    }
    for (size_t i = 0; t.slots != NULL && i < task->ahead; i++) {
        text_free(&t.slots[i].tokens);
        text_free(&t.slots[i].words);
        text_free(&t.slots[i].pooled);
    }
    free(t.slots);
    return t.status;
}
