/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a plan to tokens. Rows whose tokens were guessed are picked from in rounds: the first row of
 * every span, then the second one of those whose first pick was the guess, and so on. So a sampler
 * draws for a row only when the row's tokens are those of the sequence, and nothing has to be taken
 * back but positions of the cache.
 */

#include "runtime/engine/internal.h"

/* Hands the plan to the runner; returns how many rows there are. */
static uint32_t line_up(tern_engine *e, size_t n) {
    uint32_t rows = 0;
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        const tern_plan_span *p = &e->plan[i];
        tern_branch *b = (tern_branch *)p->job;
        e->passing[i] = (tern_pass_span){.pages = b->job.pages,
                                         .position = p->position,
                                         .tokens = b->tokens + p->position,
                                         .n = p->n,
                                         .wanted = p->picks};
        e->spans[i] = (tern_engine_span){.branch = b, .first = first, .goes_on = p->picks > 0};
        b->figures.n_guessed += p->picks > 0 ? p->picks - 1 : 0;
        first += p->picks;
        rows += p->n;
    }
    return rows;
}

static void fail(tern_engine_span *s) {
    tern_branch_stop(s->branch, TERN_END_ERROR);
    s->goes_on = false;
}

static void report(tern_engine *e, tern_branch *b, int32_t token, float logprob, size_t n_likeliest,
                   tern_text_part part) {
    tern_event *event = tern_engine_event(e, b, TERN_EVENT_TOKEN);
    event->token = token;
    event->logprob = logprob;
    event->likeliest = b->likeliest + b->n_likeliest - n_likeliest;
    event->n_likeliest = n_likeliest;
    event->text = part.bytes;
    event->size = part.size;
    if (b->figures.n_generated == 1)
        b->figures.first_token_seconds = event->seconds;
}

/* What was picked from the span's next row. */
static void take(tern_engine *e, tern_engine_span *s, const tern_plan_span *p, int32_t token,
                 float logprob, size_t n_likeliest) {
    tern_branch *b = s->branch;
    const int32_t guess = b->tokens[b->job.n_tokens]; /* means something while rows follow */
    tern_text_part part;
    tern_sha256_add(&b->digest, tern_runner_hidden(e->runner, s->first + s->taken),
                    e->model->config.n_embd * sizeof(float));
    s->taken++;
    if (tern_branch_take(b, token, &part))
        report(e, b, token, logprob, n_likeliest, part);
    const bool right = s->taken < p->picks && token == guess;
    b->figures.n_guessed_right += right;
    s->goes_on = right && !b->is_over;
}

/* A pick that comes with logarithms of probabilities: it reads all logits. */
static void pick_with_logprobs(tern_engine *e, tern_engine_span *s, const tern_plan_span *p) {
    tern_branch *b = s->branch;
    float *logits = tern_runner_buffer(e->runner);
    const size_t row = s->first + s->taken, before = b->n_likeliest;
    int32_t token = 0;
    if (tern_runner_logits(e->runner, row, 1, logits, &b->error) != TERN_OK) {
        fail(s);
        return;
    }
    const double sum = tern_branch_likeliest(b, logits, e->frame.n_vocab);
    if (tern_runner_pick(e->runner, row, b->sampler, &token, &b->error) != TERN_OK) {
        fail(s);
        return;
    }
    take(e, s, p, token, (float)((double)logits[token] - sum), b->n_likeliest - before);
}

/* A token of the next row of every span that goes on; false when there was none. */
static bool pick_round(tern_engine *e) {
    size_t n = 0;
    bool any = false;
    for (size_t i = 0; i < e->n_spans; i++) {
        tern_engine_span *s = &e->spans[i];
        if (!s->goes_on)
            continue;
        any = true;
        if (tern_branch_mask(s->branch, e->allowed + i * e->words, e->words) != TERN_OK) {
            fail(s);
        } else if (s->branch->logprobs) {
            pick_with_logprobs(e, s, &e->plan[i]);
        } else {
            e->picking[n] = s;
            e->picks[n++] = (tern_pick){.row = s->first + s->taken, .sampler = s->branch->sampler};
        }
    }
    if (n > 0)
        tern_runner_picks(e->runner, e->picks, n);
    for (size_t i = 0; i < n; i++) {
        tern_engine_span *s = e->picking[i];
        s->branch->error = e->picks[i].err;
        if (e->picks[i].status == TERN_OK)
            take(e, s, &e->plan[s - e->spans], e->picks[i].token, 0.0F, 0);
        else
            fail(s);
    }
    return any;
}

/* Which of the span's rows hold what the sequence says. */
static uint32_t kept_of(const tern_plan_span *p, const tern_engine_span *s) {
    return p->picks > 0 ? p->n - p->picks + s->taken : p->n;
}

void tern_engine_pass(tern_engine *e, size_t n) {
    const double start = tern_engine_clock(e);
    const uint32_t rows = line_up(e, n);
    e->n_spans = n;
    tern_runner_run(e->runner, &e->pool, e->passing, n);
    for (size_t i = 0; i < n; i++)
        if (tern_runner_check(e->runner, i, &e->spans[i].branch->error) != TERN_OK)
            fail(&e->spans[i]);
    while (pick_round(e)) {
    }
    for (size_t i = 0; i < n; i++)
        if (e->spans[i].branch->end != TERN_END_ERROR)
            tern_schedule_computed(e->schedule, &e->plan[i], kept_of(&e->plan[i], &e->spans[i]));
    tern_pass_costs_add(&e->costs, rows, tern_engine_clock(e) - start);
}
