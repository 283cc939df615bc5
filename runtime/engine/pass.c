/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a plan to tokens. Rows whose tokens were guessed are picked from in rounds: the first row of
 * every span, then the second one of those whose first pick was the guess, and so on. So a sampler
 * draws for a row only if the row's tokens are those of the sequence, and only positions of the
 * cache have to be taken back. Requested results of prompts are reported before that.
 */

#include "base/logprob.h"
#include "runtime/engine/internal.h"
#include "runtime/engine/sample/logit_source.h"
#include "runtime/engine/slot.h"

/* Hands the plan to the runner; returns the number of rows. */
static uint32_t line_up(tern_engine *e, size_t n) {
    uint32_t rows = 0;
    size_t first = 0;
    const bool kinds = e->model->config.n_types > 1; /* else the table has no row for kind 1 */
    for (size_t i = 0; i < n; i++) {
        const tern_plan_span *p = &e->plan[i];
        tern_branch *b = (tern_branch *)p->job;
        e->passing[i] = (tern_pass_span){.pages = b->job.pages,
                                         .window_pages = b->job.window.pages,
                                         .state = b->job.slot,
                                         .position = p->position,
                                         .tokens = b->tokens + p->position,
                                         .adapters = &b->adapters,
                                         .n = p->n,
                                         .wanted = p->wanted,
                                         .second = kinds ? b->second_from : 0};
        first += p->wanted;
        e->spans[i] =
            (tern_engine_span){.branch = b, .first = first - p->picks, .goes_on = p->picks > 0};
        b->figures.n_computed += p->n;
        b->figures.n_found += p->position;
        b->figures.n_guessed += p->picks > 0 ? p->picks - 1 : 0;
        rows += p->n;
    }
    return rows;
}

static void fail(tern_engine_span *s) {
    tern_branch_stop(s->branch, TERN_END_ERROR);
    s->goes_on = false;
}

/* Handles an overflow in a span. The numbers may be those of guesses, which the sequence never has;
 * then it goes on without guesses. */
static void fail_pass(tern_engine_span *s, const tern_plan_span *p) {
    if (p->picks <= 1) {
        fail(s);
        return;
    }
    s->branch->error = (tern_error){0};
    s->goes_on = false;
    tern_branch_guess_no_more(s->branch);
}

/* Reports a token, whose likeliest alternatives are the last noted entries. */
static tern_event *report_token(tern_engine *e, const tern_branch *b, tern_event_kind kind,
                                size_t position, double logprob, size_t n_likeliest) {
    tern_event *event = tern_engine_event(e, b, kind);
    event->token = b->tokens[position];
    event->position = position;
    event->logprob = logprob;
    event->likeliest = b->likeliest + b->n_likeliest - n_likeliest;
    event->n_likeliest = n_likeliest;
    return event;
}

static void add_to_digest(const tern_engine *e, tern_branch *b, size_t row) {
    if (b->digests)
        tern_sha256_add(&b->digest, tern_runner_hidden(e->runner, row),
                        e->model->config.n_embd * sizeof(float));
}

/* ---- prompts ------------------------------------------------------------------------------- */

/* Reports one row of the prompt. `sum` is set only when log-probabilities were requested. */
static void report_row(tern_engine *e, tern_branch *b, size_t row, size_t position,
                       const float *logits, double sum) {
    const size_t next = position + 1;
    add_to_digest(e, b, row);
    tern_branch_show(b, position, logits);
    b->job.wanted_from = (uint32_t)next;
    b->job.wants = next + 1 < b->n_prompt;
    if (!b->prompt_logprobs)
        return;
    const size_t n = tern_branch_likeliest(b, logits, e->frame.n_vocab, sum);
    const double logit = (double)logits[b->tokens[next]];
    (void)report_token(e, b, TERN_EVENT_PROMPT, next, logit - sum, n);
}

/* Reports the span's rows before those that pick, as many at once as fit. */
static void report_prompt(tern_engine *e, tern_engine_span *s, const tern_plan_span *p) {
    tern_branch *b = s->branch;
    size_t room, position = p->position + p->n - p->wanted;
    float *logits = tern_runner_buffers(e->runner, &room);
    for (size_t row = s->first + p->picks - p->wanted, n; row < s->first; row += n) {
        n = s->first - row < room ? s->first - row : room;
        if (tern_runner_logits(e->runner, row, n, logits, &b->error) != TERN_OK) {
            fail(s);
            return;
        }
        if (b->prompt_logprobs)
            tern_runner_log_sums(e->runner, logits, n, e->sums);
        for (size_t i = 0; i < n; i++)
            report_row(e, b, row + i, position++, logits + i * e->frame.n_vocab, e->sums[i]);
    }
}

/* Pools a row of a prompt, if its position counts. */
static void pool_row(const tern_engine *e, tern_branch *b, size_t row, uint32_t position) {
    if (!tern_pooled_takes(&b->pooled, position))
        return;
    add_to_digest(e, b, row);
    tern_pooled_add(&b->pooled, tern_runner_hidden(e->runner, row));
    b->job.wanted_from = position + 1;
    b->job.wants = position + 2 < b->n_prompt && tern_pooled_takes(&b->pooled, position + 1);
}

/* Pools the span's rows before the last one of the prompt. */
static void pool_prompt(const tern_engine *e, const tern_engine_span *s, const tern_plan_span *p) {
    uint32_t position = p->position + p->n - p->wanted;
    for (size_t row = s->first + p->picks - p->wanted; row < s->first; row++)
        pool_row(e, s->branch, row, position++);
}

static void end_pooled(const tern_engine *e, tern_engine_span *s) {
    tern_branch *b = s->branch;
    pool_row(e, b, s->first, b->n_prompt - 1);
    if (tern_pooled_finish(&b->pooled, &e->model->own.rank, &b->error) != TERN_OK) {
        fail(s);
        return;
    }
    tern_branch_stop(b, TERN_END_LENGTH);
    s->taken = 1;
    s->goes_on = false;
}

/* Ends a prompt that nothing follows, with the results of its last row. */
static void end_prompt(tern_engine *e, tern_engine_span *s) {
    tern_branch *b = s->branch;
    float *logits = tern_runner_buffer(e->runner);
    if (b->logits != NULL &&
        tern_runner_logits(e->runner, s->first, 1, logits, &b->error) != TERN_OK) {
        fail(s);
        return;
    }
    add_to_digest(e, b, s->first);
    tern_branch_show(b, b->n_prompt - 1, logits);
    tern_branch_stop(b, b->at_limit);
    s->taken = 1;
    s->goes_on = false;
}

static void report_prompts(tern_engine *e, size_t n) {
    for (size_t i = 0; i < n; i++) {
        tern_engine_span *s = &e->spans[i];
        if (s->branch->is_over)
            continue;
        const bool pools = s->branch->pooled.how != TERN_POOLING_NONE;
        if (pools)
            pool_prompt(e, s, &e->plan[i]);
        else
            report_prompt(e, s, &e->plan[i]);
        if (s->goes_on && pools)
            end_pooled(e, s);
        else if (s->goes_on && s->branch->prompt_only)
            end_prompt(e, s);
    }
}

/* ---- picks --------------------------------------------------------------------------------- */

static void report(tern_engine *e, tern_branch *b, double logprob, size_t n_likeliest,
                   tern_text_part part) {
    tern_event *event =
        report_token(e, b, TERN_EVENT_TOKEN, b->job.n_tokens - 1, logprob, n_likeliest);
    event->text = part.bytes;
    event->size = part.size;
    if (b->figures.n_generated == 1)
        b->figures.first_token_seconds = event->seconds;
    if (b->lent != NULL && b->lent->callback != NULL &&
        !b->lent->callback(event->token, event->seconds, b->lent->user)) {
        b->is_over = true;
        b->end = TERN_END_CANCELLED;
    }
}

/* Takes the token that was picked from the span's next row. */
static void take(tern_engine *e, tern_engine_span *s, const tern_plan_span *p, int32_t token,
                 double logprob, size_t n_likeliest) {
    tern_branch *b = s->branch;
    const bool guessed = s->taken + 1 < p->picks && token == b->tokens[b->job.n_tokens];
    tern_text_part part;
    add_to_digest(e, b, s->first + s->taken);
    if (e->session != NULL) /* callbacks may look at the session */
        tern_slot_stand(e, b->job.n_tokens, s->first + s->taken);
    s->taken++;
    const bool is_part = tern_branch_take(b, token, &part);
    if (is_part)
        report(e, b, logprob, n_likeliest, part);
    else
        b->last = (tern_last_pick){token, logprob, n_likeliest};
    b->figures.n_guessed_right += guessed;
    s->goes_on = guessed && !b->is_over;
    if (guessed && is_part && b->is_over && e->session != NULL) /* its row is the last token's */
        s->taken++;
}

/* Picks with log-probabilities, or shows the logits to the hook. */
static void pick_with_logits(tern_engine *e, tern_engine_span *s, const tern_plan_span *p) {
    tern_branch *b = s->branch;
    float *logits = tern_runner_buffer(e->runner);
    const size_t row = s->first + s->taken;
    int32_t token = 0;
    if (tern_runner_logits(e->runner, row, 1, logits, &b->error) != TERN_OK) {
        fail(s);
        return;
    }
    if (tern_branch_shows(b))
        tern_branch_show(b, b->job.n_tokens - 1, logits);
    const double sum = b->logprobs ? tern_log_sum_exp(logits, e->frame.n_vocab) : 0.0;
    const size_t n = tern_branch_likeliest(b, logits, e->frame.n_vocab, sum);
    if (tern_runner_pick(e->runner, row, b->sampler, &token, &b->error) != TERN_OK) {
        fail(s);
        return;
    }
    take(e, s, p, token, b->logprobs ? (double)logits[token] - sum : 0.0, n);
}

/* If guesses make several rows that are picked from in order, reads the head once for as many of
 * them as fit: for one sequence from its next row on. */
static void foresee(tern_engine *e, size_t rows) {
    const size_t first = e->n_spans == 1 ? e->spans[0].taken : 0;
    bool bounds = false;
    for (size_t i = 0; i < e->n_spans; i++)
        bounds |= tern_bounds_help(e->spans[i].branch->sampler);
    if (rows - first > e->n_spans)
        tern_runner_foresee(e->runner, first, rows - first, !bounds);
}

/* Picks from the next row of every span that goes on; false when there was none. */
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
        } else if (s->branch->logprobs || tern_branch_shows(s->branch)) {
            pick_with_logits(e, s, &e->plan[i]);
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
            take(e, s, &e->plan[s - e->spans], e->picks[i].token, 0.0, 0);
        else
            fail(s);
    }
    return any;
}

static bool all_decode(const tern_engine *e, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (e->plan[i].picks < e->plan[i].n)
            return false;
    return true;
}

/* Picks from all rows, as long as guesses are right; `rows` is their number. */
static void pick_all(tern_engine *e, size_t rows) {
    const bool decode = all_decode(e, e->n_spans);
    bool more = true;
    for (bool begins = true; more; begins = false) {
        if (decode && (begins || (e->n_spans == 1 && e->spans[0].goes_on)))
            foresee(e, rows);
        more = pick_round(e);
    }
}

/* The number of the span's rows that hold tokens of the sequence. */
static uint32_t kept_of(const tern_plan_span *p, const tern_engine_span *s) {
    return p->picks > 0 ? p->n - p->picks + s->taken : p->n;
}

/* Notes the time of prompts whose last row this pass computed. */
static void note_prompts(tern_engine *e, size_t n) {
    for (size_t i = 0; i < n; i++) {
        tern_branch *b = e->spans[i].branch;
        if (e->plan[i].picks > 0 && b->figures.n_generated == 0)
            b->figures.prompt_seconds = tern_engine_clock(e) - b->submitted;
    }
}

static void computed(tern_engine *e, const tern_plan_span *p, const tern_engine_span *s) {
    if (e->session != NULL)
        tern_slot_computed(e, p, kept_of(p, s), s);
    else
        tern_schedule_computed(e->schedule, p, kept_of(p, s));
}

/* Settles what guesses of a second model cost and saved. */
static void settle(tern_engine *e, size_t n, uint32_t rows) {
    size_t tokens = 0;
    for (size_t i = 0; i < n; i++)
        tokens += e->spans[i].taken;
    if (e->drafter != NULL && all_decode(e, n))
        tern_drafter_settle(e->drafter, &e->draft_costs, (uint32_t)n, rows, tokens);
}

void tern_engine_pass(tern_engine *e, size_t n) {
    const double start = tern_engine_clock(e);
    const uint32_t rows = line_up(e, n);
    e->n_spans = n;
    tern_runner_run(e->runner, e->pool, e->passing, n);
    note_prompts(e, n);
    if (all_decode(e, n))
        tern_draft_costs_add(&e->draft_costs, rows, tern_engine_clock(e) - start);
    for (size_t i = 0; i < n; i++)
        if (tern_runner_check(e->runner, i, &e->spans[i].branch->error) != TERN_OK)
            fail_pass(&e->spans[i], &e->plan[i]);
    report_prompts(e, n);
    pick_all(e, rows);
    settle(e, n, rows);
    for (size_t i = 0; i < n; i++)
        if (e->spans[i].branch->end != TERN_END_ERROR)
            computed(e, &e->plan[i], &e->spans[i]);
    tern_pass_costs_add(&e->costs, rows, tern_engine_clock(e) - start);
}
