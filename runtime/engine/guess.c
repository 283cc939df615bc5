/* SPDX-License-Identifier: Apache-2.0 */

/* Guesses for the sequences of a pass: from their own texts, or by a second model where that is
 * expected to give more tokens a second. */

#include <stdlib.h>

#include "runtime/engine/internal.h"

enum { LEAST_AHEAD = 128 }; /* tokens that an answer is expected to get, however short it is yet */

/* ---- the second model ------------------------------------------------------------------------ */

/* Sequences that are followed at once: as many as the pool has room for whole contexts. */
static uint32_t places_of(const tern_engine *e) {
    const uint32_t each = tern_pages_of(e->params.n_ctx);
    const uint32_t fit = e->session == NULL ? e->size.pages / each : 1;
    const uint32_t most = e->params.n_sequences;
    return fit == 0 ? 1 : fit < most ? fit : most;
}

tern_status tern_engine_open_drafter(tern_engine *e, const tern_model *model, tern_error *err) {
    if (model == NULL)
        return TERN_OK;
    const tern_drafter_params params = {.model = model,
                                        .target = e->model,
                                        .n_ctx = e->params.n_ctx,
                                        .n_places = places_of(e),
                                        .n_batch = e->params.n_batch,
                                        .kv = e->params.kv,
                                        .beside = e->runner,
                                        .clock = e->params.clock,
                                        .clock_user = e->params.clock_user};
    e->drafting = calloc(e->params.n_sequences, sizeof *e->drafting);
    e->drafted = calloc(e->params.n_sequences, sizeof(tern_branch *));
    if (e->drafting == NULL || e->drafted == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to guess for %u sequences",
                         e->params.n_sequences);
    return tern_drafter_new(&params, &e->drafter, err);
}

void tern_engine_close_drafter(tern_engine *e) {
    tern_drafter_free(&e->drafter);
    free(e->drafting);
    free((void *)e->drafted);
    e->drafting = NULL;
    e->drafted = NULL;
}

/* Tokens that the answer is expected to get: as many as it has, within its limit. */
static uint32_t ahead_of(const tern_branch *b) {
    const uint32_t rest = b->job.most - b->job.n_tokens;
    const uint32_t so_far = b->job.n_tokens - b->n_prompt;
    const uint32_t expected = so_far > LEAST_AHEAD ? so_far : LEAST_AHEAD;
    return expected < rest ? expected : rest;
}

/* Tokens a second of a plan, relative to those of another one. */
static double gain_of(const tern_draft_costs *c, const tern_draft_pass *before,
                      const tern_draft_pass *after) {
    const double was = tern_draft_costs_seconds(c, before->rows) / before->tokens;
    const double is = tern_draft_costs_seconds(c, after->rows) / after->tokens;
    return is > 0.0 ? was / is : 1.0;
}

/* True if the second model is to guess for the branch; `text`: the plan with guesses from its
 * text. */
static bool wants_model(tern_engine *e, tern_branch *b, bool pays, const tern_draft_pass *before,
                        const tern_draft_pass *text) {
    const bool always = b->draft_mode == TERN_DRAFT_ALWAYS;
    if (e->drafter == NULL || b->draft_mode == TERN_DRAFT_NEVER || (!pays && !always))
        return false;
    if (!b->was_placed)
        b->place = tern_drafter_enter(e->drafter, b->tokens, b->job.n_tokens, always);
    b->was_placed = true;
    if (b->place == NULL)
        return false;
    if (b->job.n_guesses == 0 || always)
        return true;
    return tern_drafter_gain(e->drafter, &e->draft_costs, before) >
           gain_of(&e->draft_costs, before, text);
}

static void guess_by_model(tern_engine *e, size_t n, tern_draft_pass *pass) {
    for (size_t i = 0; i < n; i++) {
        tern_branch *b = e->drafted[i];
        e->drafting[i] = (tern_drafting){.place = b->place,
                                         .tokens = b->tokens,
                                         .n_tokens = b->job.n_tokens,
                                         .ahead = ahead_of(b),
                                         .sampler = b->sampler,
                                         .guesses = b->tokens + b->job.n_tokens,
                                         .most = tern_branch_most_guesses(b)};
    }
    tern_drafter_guess(e->drafter, &e->draft_costs, e->drafting, n, pass);
    for (size_t i = 0; i < n; i++)
        e->drafted[i]->job.n_guesses = e->drafting[i].n;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* While prompts are read, the rest of the pass is theirs. */
void tern_engine_guess(tern_engine *e) {
    uint32_t running = 0, decoding = 0;
    for (size_t i = 0; i < e->n_now; i++) {
        const tern_job *job = &e->now[i]->job;
        running += job->is_running;
        decoding += job->is_running && tern_job_decodes(job);
    }
    tern_draft_pass pass = {.rows = decoding, .tokens = decoding};
    const bool pays = decoding == running;
    size_t n = 0;
    for (size_t i = 0; i < e->n_now; i++) {
        tern_branch *b = e->now[i];
        const tern_draft_pass before = pass;
        if (!b->job.is_running || !tern_job_decodes(&b->job))
            continue;
        if (tern_branch_guesses(b))
            tern_branch_guess(b, e->frame.n_vocab, &e->draft_costs, pays, &pass);
        if (!wants_model(e, b, pays, &before, &pass))
            continue;
        pass = before;
        b->job.n_guesses = 0;
        e->drafted[n++] = b;
    }
    if (n > 0)
        guess_by_model(e, n, &pass);
}
