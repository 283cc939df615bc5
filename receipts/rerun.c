/* SPDX-License-Identifier: Apache-2.0 */
#include "receipts/rerun.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A rerun in progress. */
typedef struct rerun {
    tern_session *session;
    const rerun_plan *plan;
    rerun_result *out;
    size_t n; /* tokens so far */
    bool over;
    tern_end end;
    char digest[RECEIPT_HEX];
    tern_error error; /* the error that ended it */
} rerun;

/* Compares logits with those recorded after `after` tokens, if there are any. */
static void compare(rerun *r, uint64_t after, const float *logits) {
    for (size_t i = 0; i < r->plan->n_points && r->out->part == RERUN_SAME; i++) {
        if (r->plan->points[i].after != after)
            continue;
        receipt_hash_row(r->session, logits, r->out->digest);
        if (strcmp(r->out->digest, r->plan->points[i].sha256) != 0) {
            r->out->part = RERUN_LOGITS;
            r->out->position = after;
        }
    }
}

static void see_logits(void *user, const tern_progress *progress, size_t position,
                       const float *logits) {
    rerun *r = user;
    (void)position;
    compare(r, progress->n - progress->n_prompt, logits);
}

static bool mask(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    const rerun *r = user;
    return r->plan->ask.mask(r->plan->ask.user, progress, allowed, words);
}

static void note_token(rerun *r, int32_t expected, int32_t got) {
    *r->out =
        (rerun_result){.part = RERUN_TOKEN, .position = r->n, .expected = expected, .got = got};
}

static void take_token(rerun *r, int32_t token) {
    const rerun_plan *p = r->plan;
    const int32_t expected = r->n < p->n_tokens ? p->tokens[r->n] : -1;
    if (r->out->part == RERUN_SAME && token != expected)
        note_token(r, expected, token);
    r->n++;
}

static void take_end(rerun *r, const tern_event *e) {
    const rerun_plan *p = r->plan;
    r->over = true;
    if (e->end == TERN_END_ERROR)
        r->error = *e->error;
    else if (r->out->part == RERUN_SAME && r->n < p->n_tokens)
        note_token(r, p->tokens[r->n], -1);
    r->end = e->end;
    memcpy(r->digest, e->digest, sizeof r->digest);
}

/* Compares what is known when the answer is over. */
static void compare_end(const rerun *r) {
    const rerun_plan *p = r->plan;
    rerun_result *out = r->out;
    if (out->part != RERUN_SAME)
        return;
    if (p->end != NULL && strcmp(p->end, tern_end_name(r->end)) != 0)
        *out = (rerun_result){.part = RERUN_END, .position = r->n, .end = r->end};
    else if (p->digest != NULL && strcmp(p->digest, r->digest) != 0)
        out->part = RERUN_HIDDEN;
    if (out->part == RERUN_HIDDEN)
        memcpy(out->digest, r->digest, sizeof out->digest);
}

static tern_status step_to_end(rerun *r, tern_engine *engine, uint64_t id, tern_error *err) {
    while (!r->over) {
        const tern_event *events;
        size_t n;
        const tern_status status = tern_engine_step(engine, &events, &n, err);
        if (status != TERN_OK)
            return status;
        for (size_t i = 0; i < n; i++)
            if (events[i].kind == TERN_EVENT_END)
                take_end(r, &events[i]);
            else
                take_token(r, events[i].token);
        if (r->out->part != RERUN_SAME)
            (void)tern_engine_cancel(engine, id);
    }
    return r->error.status == TERN_OK ? TERN_OK
                                      : tern_fail(err, r->error.status, "%s", r->error.message);
}

/* If no token was picked from the last logits, compares those that the session has. */
static tern_status compare_last(rerun *r, tern_error *err) {
    const float *logits;
    if (r->out->part != RERUN_SAME || r->plan->n_points == 0)
        return TERN_OK;
    const tern_status status = tern_session_last_logits(r->session, &logits, err);
    if (status == TERN_OK)
        compare(r, r->plan->n_tokens, logits);
    return status;
}

tern_status receipt_rerun(tern_session *session, const rerun_plan *plan, rerun_result *out,
                          tern_error *err) {
    rerun r = {.session = session, .plan = plan, .out = out};
    tern_engine *engine = tern_session_engine(session);
    tern_request request = plan->ask;
    uint64_t id;
    *out = (rerun_result){.part = RERUN_SAME};
    request.within_context = true;
    request.mask = plan->ask.mask != NULL ? mask : NULL;
    request.user = &r;
    if (plan->n_points > 0) {
        request.logits = see_logits;
        request.prompt_from = request.n_tokens - 1;
    }
    tern_status status = tern_engine_submit(engine, &request, &id, err);
    if (status == TERN_OK)
        status = step_to_end(&r, engine, id, err);
    if (status == TERN_OK)
        status = compare_last(&r, err);
    compare_end(&r);
    return status;
}

uint32_t receipt_other_threads(uint32_t threads) {
    return threads == 1 ? 2 : 1;
}

uint32_t receipt_other_batch(uint32_t batch, uint64_t n) {
    enum { OTHER = 7 };                                     /* divides no usual prompt */
    const uint32_t first = batch < n ? batch : (uint32_t)n; /* rows of the first pass */
    if (n > OTHER && first != OTHER)
        return OTHER;
    return first > 2 ? first / 2 + 1 : first == 2 ? 1 : 2;
}

static void describe_token(const rerun_plan *plan, const rerun_result *r, char *text, size_t size) {
    if (r->expected < 0)
        (void)snprintf(text, size, "output.ids: %zu were recorded, this run picks %d after them",
                       plan->n_tokens, r->got);
    else if (r->got < 0)
        (void)snprintf(text, size, "output.ids: %zu were recorded, this run picks %" PRIu64,
                       plan->n_tokens, r->position);
    else
        (void)snprintf(text, size, "output.ids[%" PRIu64 "]: recorded %d, this run picks %d",
                       r->position, r->expected, r->got);
}

void rerun_describe(const rerun_plan *plan, const rerun_result *r, char *text, size_t size) {
    if (r->part == RERUN_TOKEN)
        describe_token(plan, r, text, size);
    else if (r->part == RERUN_LOGITS)
        (void)snprintf(text, size,
                       "output.logits: the logits after %" PRIu64
                       " generated tokens have another digest in this run, %.16s...",
                       r->position, r->digest);
    else if (r->part == RERUN_END)
        (void)snprintf(text, size, "output.stop: recorded \"%s\", this run ends by \"%s\"",
                       plan->end, tern_end_name(r->end));
    else
        (void)snprintf(text, size, "output.hidden_sha256: this run's hidden states have %.16s...",
                       r->digest);
}
