/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/branch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *tern_end_name(tern_end end) {
    static const char *const names[] = {
        [TERN_END_OF_TEXT] = "end",       [TERN_END_STOP_TOKEN] = "stop",
        [TERN_END_STOP_TEXT] = "stop",    [TERN_END_LENGTH] = "length",
        [TERN_END_CONTEXT] = "context",   [TERN_END_CANCELLED] = "cancelled",
        [TERN_END_DEADLINE] = "deadline", [TERN_END_ERROR] = "error",
    };
    return names[end];
}

/* ---- life ---------------------------------------------------------------------------------- */

static tern_status check_tokens(const tern_request *r, uint32_t n_vocab, tern_error *err) {
    for (size_t i = 0; i < r->n_tokens; i++)
        if (r->tokens[i] < 0 || (uint32_t)r->tokens[i] >= n_vocab)
            return tern_fail(err, TERN_ERR_TOKEN_RANGE,
                             "token %d at index %zu is outside the vocabulary of %u", r->tokens[i],
                             i, n_vocab);
    return TERN_OK;
}

static void guess_nothing(tern_branch *b) {
    b->guess = NULL;
    b->draft_mode = TERN_DRAFT_NEVER;
}

static void set_limits(tern_branch *b, const tern_branch_frame *f, const tern_request *r) {
    const size_t room = f->n_ctx - r->n_tokens;
    const bool cut = r->within_context && r->max_tokens > room;
    const bool limited = r->max_tokens > 0 || r->prompt_only;
    const uint32_t most = (uint32_t)(cut ? room : r->max_tokens);
    b->n_prompt = b->job.n_tokens = (uint32_t)r->n_tokens;
    b->prompt_only = r->prompt_only || (cut && room == 0);
    b->at_limit = limited && !cut ? TERN_END_LENGTH : TERN_END_CONTEXT;
    b->job.most = limited ? b->n_prompt + most : f->n_ctx;
    b->job.ahead = limited ? most : f->n_ahead;
    if (b->prompt_only) /* nothing follows that could be guessed, nor has it room */
        guess_nothing(b);
}

/* The last position always has results. */
static void set_wishes(tern_branch *b, const tern_branch_frame *f, const tern_request *r) {
    const bool tells = b->index == 0 && (r->prompt_logprobs || r->logits != NULL);
    const bool pools = r->pooling != TERN_POOLING_NONE;
    b->n_logprobs = r->n_logprobs < f->n_vocab ? r->n_logprobs : f->n_vocab;
    b->logprobs = r->logprobs || b->n_logprobs > 0;
    b->prompt_logprobs = r->prompt_logprobs;
    b->logits = r->logits;
    b->logits_every = r->logits_every;
    b->job.wanted_from = pools ? tern_pooled_first(&b->pooled) : (uint32_t)r->prompt_from;
    b->job.wants = (tells || pools) && b->job.wanted_from + 1 < r->n_tokens;
}

/* The most rows of a pass whose results are reported. */
static size_t reported_rows(const tern_branch *b, const tern_branch_frame *f) {
    const size_t picks = 1 + TERN_MOST_GUESSES;
    const size_t prompt = b->n_prompt < f->n_batch ? b->n_prompt : f->n_batch;
    return b->prompt_logprobs ? picks + prompt : picks;
}

/* Copies everything that the request points to. */
static bool copy(tern_branch *b, const tern_branch_frame *f, const tern_request *r) {
    b->own_tokens = f->tokens == NULL;
    b->tokens = b->own_tokens ? calloc(b->job.most, sizeof *b->tokens) : f->tokens;
    b->stop_tokens = calloc(r->n_stop_tokens + 1, sizeof *b->stop_tokens);
    b->likeliest = calloc(reported_rows(b, f) * b->n_logprobs + 1, sizeof *b->likeliest);
    if (b->tokens == NULL || b->stop_tokens == NULL || b->likeliest == NULL)
        return false;
    memmove(b->tokens, r->tokens, r->n_tokens * sizeof *b->tokens); /* may be the session's own */
    if (r->n_stop_tokens > 0)
        memcpy(b->stop_tokens, r->stop_tokens, r->n_stop_tokens * sizeof *b->stop_tokens);
    return true;
}

/* Notes the adapters, and the name that keeps what is computed with them apart. */
static tern_status take_adapters(tern_branch *b, const tern_adapters *a, const tern_request *r,
                                 tern_error *err) {
    tern_status status = TERN_OK;
    b->adapters = a->usual;
    if (r->adapters != NULL)
        status = tern_adapter_set_make(a, r->adapters, r->n_adapters, &b->adapters, err);
    if (status == TERN_OK)
        b->own_uses = r->adapters != NULL ? b->adapters.uses : NULL;
    tern_adapter_set_space(a, &b->adapters, r->space, b->space);
    return status;
}

static tern_status open_sampler(tern_branch *b, const tern_request *r, uint32_t n_vocab,
                                tern_error *err) {
    tern_sampler_params sampling =
        r->sampling != NULL ? *r->sampling : tern_sampler_params_default();
    sampling.seed += b->index;
    const tern_status status = tern_sampler_new(&sampling, n_vocab, &b->sampler, err);
    for (size_t i = 0; i < r->n_tokens && status == TERN_OK; i++)
        tern_sampler_accept(b->sampler, r->tokens[i]);
    return status;
}

static tern_status open_text(tern_branch *b, const tern_branch_frame *f, const tern_request *r,
                             tern_error *err) {
    const tern_answer_text_params params = {.stops = r->stop_texts,
                                            .n_stops = r->n_stop_texts,
                                            .drop_space = r->drop_space,
                                            .most = 1 + TERN_MOST_GUESSES,
                                            .piece_bytes = f->piece_bytes};
    if (f->tokenizer != NULL)
        return tern_answer_text_new(f->tokenizer, &params, &b->text, err);
    return r->n_stop_texts == 0 ? TERN_OK
                                : tern_fail(err, TERN_ERR_TOKENIZER_MISSING,
                                            "stop texts of a model without a tokenizer");
}

static tern_end_of_text end_of_text(const tern_branch_frame *f, const tern_request *r,
                                    const int32_t *stop_tokens) {
    return (tern_end_of_text){.tokenizer = r->ignore_end ? NULL : f->tokenizer,
                              .stop_tokens = stop_tokens,
                              .n_stop_tokens = r->n_stop_tokens};
}

static tern_status fill(tern_branch *b, const tern_branch_frame *f, const tern_request *r,
                        tern_error *err) {
    tern_status status = check_tokens(r, f->n_vocab, err);
    if (status != TERN_OK)
        return status;
    status = tern_pooled_open(&b->pooled, r->pooling, f->n_embd, (uint32_t)r->n_tokens, err);
    b->second_from = (uint32_t)r->second_from;
    if (status != TERN_OK)
        return status;
    set_limits(b, f, r);
    set_wishes(b, f, r);
    if (!copy(b, f, r))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a request of %u positions",
                         b->job.most);
    b->job.tokens = b->tokens;
    b->job.space = b->space;
    b->end_of_text = end_of_text(f, r, b->stop_tokens);
    status = take_adapters(b, f->adapters, r, err);
    if (status == TERN_OK)
        status = open_text(b, f, r, err);
    if (status == TERN_OK && b->draft_mode != TERN_DRAFT_NEVER)
        status = tern_draft_new(b->job.most, &b->draft, err);
    return status == TERN_OK ? open_sampler(b, r, f->n_vocab, err) : status;
}

tern_status tern_branch_new(const tern_branch_frame *frame, const tern_request *request,
                            uint32_t index, tern_branch **out, tern_error *err) {
    tern_branch *b = calloc(1, sizeof *b);
    if (b == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a request");
    b->index = index;
    b->job.priority = request->priority;
    b->mask = request->mask;
    b->guess = request->guess;
    b->draft_mode = b->guess != NULL ? TERN_DRAFT_NEVER : request->draft;
    b->user = request->user;
    b->figures.n_prompt = request->n_tokens;
    b->digests = !request->no_digest;
    tern_sha256_start(&b->digest);
    if (frame->no_guesses)
        guess_nothing(b);
    const tern_status status = fill(b, frame, request, err);
    if (status != TERN_OK)
        tern_branch_free(&b);
    else
        *out = b;
    return status;
}

tern_status tern_branch_lend(const tern_branch_frame *frame, const tern_request *request,
                             const tern_lent *lent, tern_branch *b, tern_error *err) {
    *b = (tern_branch){.tokens = frame->tokens,
                       .lent = lent,
                       .sampler = lent->sampler,
                       .adapters = frame->adapters->usual,
                       .end_of_text = end_of_text(frame, request, request->stop_tokens),
                       .draft_mode = request->draft};
    if (frame->no_guesses)
        guess_nothing(b);
    set_limits(b, frame, request);
    b->job.tokens = b->tokens;
    b->job.space = b->space;
    b->figures.n_prompt = b->n_prompt - lent->n_held;
    for (size_t i = lent->n_held; i < b->n_prompt; i++)
        tern_sampler_accept(b->sampler, b->tokens[i]);
    return b->draft_mode == TERN_DRAFT_NEVER ? TERN_OK
                                             : tern_draft_new(b->job.most, &b->draft, err);
}

void tern_branch_free(tern_branch **branch) {
    tern_branch *b = *branch;
    *branch = NULL;
    if (b == NULL)
        return;
    tern_draft_free(&b->draft);
    if (b->lent != NULL)
        return;
    tern_sampler_free(&b->sampler);
    tern_answer_text_free(&b->text);
    tern_pooled_close(&b->pooled);
    if (b->own_tokens)
        free(b->tokens);
    free(b->stop_tokens);
    free(b->own_uses);
    free(b->likeliest);
    free(b);
}

/* ---- before a pass ------------------------------------------------------------------------- */

tern_progress tern_branch_progress(const tern_branch *b) {
    return (tern_progress){
        .branch = b->index, .tokens = b->tokens, .n = b->job.n_tokens, .n_prompt = b->n_prompt};
}

bool tern_branch_guesses(const tern_branch *b) {
    return b->guess != NULL || b->draft != NULL;
}

uint32_t tern_branch_most_guesses(const tern_branch *b) {
    const uint32_t room = b->job.most - b->job.n_tokens - 1;
    return room < TERN_MOST_GUESSES ? room : TERN_MOST_GUESSES;
}

/* Chooses how many of the branch's own n guesses are worth computing. */
static size_t choose(const tern_branch *b, const tern_draft_costs *costs, size_t n, bool pays,
                     tern_draft_pass *pass) {
    if (b->draft_mode == TERN_DRAFT_WHERE_IT_PAYS)
        return pays ? tern_draft_choose(b->draft, costs, n, pass) : 0;
    pass->rows += (uint32_t)n;
    return n;
}

void tern_branch_guess(tern_branch *b, uint32_t n_vocab, const tern_draft_costs *costs, bool pays,
                       tern_draft_pass *pass) {
    const tern_progress progress = tern_branch_progress(b);
    int32_t *guesses = b->tokens + b->job.n_tokens;
    const size_t most = tern_branch_most_guesses(b);
    const size_t told = b->draft != NULL ? tern_draft_guesses(b->draft, guesses, most)
                                         : b->guess(b->user, &progress, guesses, most);
    size_t n = 0;
    while (n < told && n < most && guesses[n] >= 0 && (uint32_t)guesses[n] < n_vocab)
        n++;
    b->job.n_guesses = (uint32_t)choose(b, costs, n, pays, pass);
}

void tern_branch_guess_no_more(tern_branch *b) {
    b->guess = NULL;
    tern_draft_free(&b->draft);
    if (b->place != NULL)
        tern_drafter_give_up(b->place);
}

/* ---- a pick -------------------------------------------------------------------------------- */

tern_status tern_branch_mask(tern_branch *b, uint64_t *allowed, size_t words) {
    if (b->mask == NULL)
        return TERN_OK;
    const tern_progress progress = tern_branch_progress(b);
    memset(allowed, 0xff, words * sizeof *allowed);
    if (!b->mask(b->user, &progress, allowed, words))
        return tern_fail(&b->error, TERN_ERR_ARG, "the mask allows nothing after token %zu",
                         progress.n);
    return tern_sampler_allow(b->sampler, allowed, &b->error);
}

size_t tern_branch_likeliest(tern_branch *b, const float *logits, size_t n_vocab, double sum) {
    tern_logprob *best = b->likeliest + b->n_likeliest;
    size_t n = 0;
    for (size_t i = 0; i < n_vocab && b->n_logprobs > 0; i++) {
        if (n == b->n_logprobs && !(logits[i] > best[n - 1].logprob))
            continue;
        n += n < b->n_logprobs;
        size_t at = n - 1;
        for (; at > 0 && best[at - 1].logprob < logits[i]; at--)
            best[at] = best[at - 1];
        best[at] = (tern_logprob){.token = (int32_t)i, .logprob = logits[i]};
    }
    for (size_t i = 0; i < n; i++)
        best[i].logprob = (float)((double)best[i].logprob - sum);
    b->n_likeliest += n;
    return n;
}

bool tern_branch_shows(const tern_branch *b) {
    return b->logits != NULL &&
           (b->logits_every == 0 || b->figures.n_generated % b->logits_every == 0);
}

void tern_branch_show(const tern_branch *b, size_t position, const float *logits) {
    const tern_progress progress = tern_branch_progress(b);
    if (b->logits != NULL)
        b->logits(b->user, &progress, position, logits);
}

void tern_branch_stop(tern_branch *b, tern_end end) {
    b->end = b->is_over ? b->end : end;
    b->is_over = true;
}

bool tern_branch_take(tern_branch *b, int32_t token, tern_text_part *part) {
    tern_end why;
    if (tern_ends_text(&b->end_of_text, token, &why)) {
        tern_branch_stop(b, why);
        return false;
    }
    b->tokens[b->job.n_tokens++] = token;
    b->figures.n_generated++;
    tern_sampler_accept(b->sampler, token);
    if (b->draft != NULL)
        tern_draft_picked(b->draft, b->tokens, b->job.n_tokens);
    if (b->place != NULL)
        tern_drafter_picked(b->place, b->tokens, b->job.n_tokens);
    *part = (tern_text_part){.bytes = ""};
    if (b->text != NULL)
        part->bytes = tern_answer_text_push(b->text, token, &part->size);
    if (b->text != NULL && tern_answer_text_stopped(b->text, NULL))
        tern_branch_stop(b, TERN_END_STOP_TEXT);
    else if (b->job.n_tokens == b->job.most)
        tern_branch_stop(b, b->at_limit);
    return true;
}
