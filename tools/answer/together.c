/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/together.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

/* An answer that is under way, or waits until those before it are told. */
typedef struct slot {
    uint64_t request; /* 0: the engine does not have it */
    bool is_over;
    int32_t *tokens;
    size_t n_tokens, tokens_capacity;
    char *text;
    size_t text_size, text_capacity, said;
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
    slot *slots;        /* [ahead] answer i in slot i % ahead */
    size_t first, next; /* answers that are not told yet: first .. next - 1 */
    size_t live;        /* of these the engine has */
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
    *s = (slot){.tokens = s->tokens,
                .tokens_capacity = s->tokens_capacity,
                .text = s->text,
                .text_capacity = s->text_capacity};
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

/* ---- what comes ------------------------------------------------------------------------------ */

/* Room for one more of n elements; false: no memory. */
static bool grow(void **array, size_t *capacity, size_t needed, size_t size) {
    if (needed <= *capacity)
        return true;
    const size_t more = 2 * needed + 64;
    void *grown = realloc(*array, more * size);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = more;
    return true;
}

static void take_text(together *t, slot *s, const tern_event *e) {
    void *text = s->text;
    if (!grow(&text, &s->text_capacity, s->text_size + e->size + 1, 1)) {
        fail(t);
        return;
    }
    s->text = text;
    memcpy(s->text + s->text_size, e->text, e->size);
    s->text_size += e->size;
}

static void take_token(together *t, slot *s, const tern_event *e) {
    void *tokens = s->tokens;
    if (!grow(&tokens, &s->tokens_capacity, s->n_tokens + 1, sizeof *s->tokens)) {
        fail(t);
        return;
    }
    s->tokens = tokens;
    if (s->n_tokens > 0)
        tern_latencies_add(&s->latencies, e->seconds - s->last);
    s->last = e->seconds;
    s->tokens[s->n_tokens++] = e->token;
    t->task->on_token(t->task->user);
}

static void take_end(together *t, slot *s, const tern_event *e) {
    s->request = 0;
    s->is_over = true;
    s->end = e->end;
    s->failed = e->end == TERN_END_ERROR;
    if (s->failed)
        s->error = *e->error;
    s->figures = e->figures;
    memcpy(s->digest, e->digest, sizeof s->digest);
    t->live--;
}

static void take(together *t, const tern_event *e) {
    slot *s = NULL;
    for (size_t i = t->first; i < t->next && s == NULL; i++)
        s = slot_of(t, i)->request == e->request ? slot_of(t, i) : NULL;
    if (s == NULL)
        return; /* not of this task */
    take_text(t, s, e);
    if (e->kind == TERN_EVENT_TOKEN)
        take_token(t, s, e);
    else if (e->kind == TERN_EVENT_END)
        take_end(t, s, e);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void tell(const together *t, size_t number, slot *s) {
    tern_latencies_sort(&s->latencies);
    const together_answer answer = {
        .number = number,
        .tokens = s->tokens,
        .n_tokens = s->n_tokens,
        .text = s->text != NULL ? s->text : "",
        .text_size = s->text_size,
        .end = s->end,
        .error = s->failed ? &s->error : NULL,
        .figures = s->figures,
        .p50_ms = 1e3 * tern_latencies_percentile(&s->latencies, 0.50),
        .p95_ms = 1e3 * tern_latencies_percentile(&s->latencies, 0.95),
        .digest = s->digest,
    };
    t->task->tell(t->task->user, &answer);
}

/* Text of the first answer, and all of those that are complete after it. */
static void tell_in_order(together *t) {
    for (bool more = true; more && t->first < t->next;) {
        slot *s = slot_of(t, t->first);
        const bool is_wanted = !t->cancelled || s->n_tokens > 0 || s->failed;
        if (is_wanted && s->text_size > s->said) {
            t->task->say(t->task->user, t->first, s->text + s->said, s->text_size - s->said);
            s->said = s->text_size;
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
    for (size_t i = 0; t->status == TERN_OK && i < n; i++)
        take(t, &events[i]);
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
        free(t.slots[i].tokens);
        free(t.slots[i].text);
    }
    free(t.slots);
    return t.status;
}
