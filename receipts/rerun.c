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
    tern_error error; /* the error that ended it */
} rerun;

/* Compares logits with those recorded after `after` tokens, if there are any. */
static void compare(rerun *r, uint64_t after, const float *logits) {
    for (size_t i = 0; i < r->plan->n_points && r->out->part == RERUN_SAME; i++) {
        if (r->plan->points[i].after != after)
            continue;
        receipt_hash_row(r->session, logits, r->out->logits);
        if (strcmp(r->out->logits, r->plan->points[i].sha256) != 0) {
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
    return r->plan->mask(r->plan->mask_user, progress, allowed, words);
}

static void take(rerun *r, const tern_event *e) {
    if (e->kind == TERN_EVENT_END) {
        r->over = true;
        if (e->end == TERN_END_ERROR)
            r->error = *e->error;
        return;
    }
    const size_t i = r->n++;
    if (i == r->plan->n_tokens)
        r->out->next = e->token;
    else if (r->out->part == RERUN_SAME && r->plan->tokens[i] != e->token)
        *r->out = (rerun_result){
            .part = RERUN_TOKEN, .position = i, .expected = r->plan->tokens[i], .got = e->token};
}

static tern_status step_to_end(rerun *r, tern_engine *engine, uint64_t id, tern_error *err) {
    while (!r->over) {
        const tern_event *events;
        size_t n;
        const tern_status status = tern_engine_step(engine, &events, &n, err);
        if (status != TERN_OK)
            return status;
        for (size_t i = 0; i < n; i++)
            take(r, &events[i]);
        if (r->out->part != RERUN_SAME)
            (void)tern_engine_cancel(engine, id);
    }
    return r->error.status == TERN_OK ? TERN_OK
                                      : tern_fail(err, r->error.status, "%s", r->error.message);
}

/* If no token was picked from the last logits, compares those that the session has. */
static tern_status compare_last(rerun *r, tern_error *err) {
    const float *logits;
    if (r->out->part != RERUN_SAME || r->n > r->plan->n_tokens)
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
    const tern_request request = {.tokens = plan->prompt,
                                  .n_tokens = plan->n_prompt,
                                  .sampling = &plan->sampling,
                                  .max_tokens = plan->n_tokens + 1,
                                  .within_context = true,
                                  .ignore_end = true,
                                  .prompt_from = plan->n_prompt - 1,
                                  .mask = plan->mask != NULL ? mask : NULL,
                                  .logits = see_logits,
                                  .user = &r};
    uint64_t id;
    *out = (rerun_result){.part = RERUN_SAME, .next = -1};
    tern_status status = tern_engine_submit(engine, &request, &id, err);
    if (status == TERN_OK)
        status = step_to_end(&r, engine, id, err);
    return status == TERN_OK ? compare_last(&r, err) : status;
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

void rerun_describe(const rerun_result *r, char *text, size_t size) {
    if (r->part == RERUN_TOKEN) {
        (void)snprintf(text, size, "output.ids[%" PRIu64 "]: recorded %d, this run picks %d",
                       r->position, r->expected, r->got);
    } else if (r->part == RERUN_LOGITS) {
        (void)snprintf(text, size,
                       "output.logits: the logits after %" PRIu64
                       " generated tokens have another digest in this run, %.16s...",
                       r->position, r->logits);
    } else {
        (void)snprintf(text, size, "the same");
    }
}
