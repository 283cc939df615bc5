/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/draft/drafter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "runtime/engine/sample/sampler.h"

enum {
    MOST_AHEAD = 8,   /* guesses for one pass */
    ALWAYS_AHEAD = 4, /* for tests */
    LONG_PASS = 16,   /* rows from which on a pass of the second model is one of reading */
    MOST_PICKS = 8    /* rows whose logits are computed together */
};

struct tern_drafter_place {
    tern_drafter *drafter;
    int32_t *tokens; /* [n_ctx]; keys and values of the first n_held are stored */
    uint32_t *pages;
    uint32_t n_held;
    uint32_t n_same; /* of these, how many are known to be the sequence's */
    bool is_taken, is_off, always;
    uint64_t used; /* the larger, the later it was entered */

    /* the latest guesses, of the tokens from `base` on */
    int32_t guesses[MOST_AHEAD];
    uint8_t kinds[MOST_AHEAD];
    uint32_t base, n_guesses;
    bool is_sampled;
};

/* A sequence in the rounds of one call. */
typedef struct going {
    tern_drafting *wish;
    tern_chacha random;         /* the sampler's, before */
    const uint64_t *allowed;    /* the same */
    double chances[MOST_AHEAD]; /* that this guess and all before it are right */
    bool goes_on;
} going;

struct tern_drafter {
    tern_runner *runner;
    tern_pool pool;
    uint32_t n_ctx, n_batch, n_places;
    tern_drafter_place *places;
    going *going;          /* [n_places] */
    tern_pass_span *spans; /* the same */
    going **owners;        /* of the spans */
    tern_worth worth;
    uint64_t entered;
    double spent; /* seconds of guessing since the last pass was settled */
    bool guessed; /* since then */
    double (*clock)(void *user);
    void *clock_user;
};

static double now(const tern_drafter *d) {
    return d->clock != NULL ? d->clock(d->clock_user) : tern_clock_seconds();
}

/* ---- life ---------------------------------------------------------------------------------- */

static bool same_pieces(const tern_tokenizer *a, const tern_tokenizer *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t n_a = 0, n_b = 0;
        const char *x = tern_token_bytes(a, (int32_t)i, true, &n_a);
        const char *y = tern_token_bytes(b, (int32_t)i, true, &n_b);
        if (n_a != n_b || (n_a > 0 && memcmp(x, y, n_a) != 0))
            return false;
    }
    return true;
}

tern_status tern_model_may_draft(const tern_model *model, const tern_model *target,
                                 tern_error *err) {
    const tern_tokenizer *a = NULL, *b = NULL;
    if (model == NULL || target == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_model_may_draft needs two models");
    if (!tern_model_continues(model))
        return tern_fail(err, TERN_ERR_ARCH, "%s cannot guess: architecture %s continues no text",
                         tern_gguf_name(model->file), model->config.arch->name);
    const uint32_t n = target->config.n_vocab;
    if (tern_model_tokenizer(model, &a, NULL) != TERN_OK)
        a = NULL;
    if (tern_model_tokenizer(target, &b, NULL) != TERN_OK)
        b = NULL;
    if (model->config.n_vocab != n)
        return tern_fail(
            err, TERN_ERR_ARG, "%s cannot guess for %s: it has %u tokens, the other model %u",
            tern_gguf_name(model->file), tern_gguf_name(target->file), model->config.n_vocab, n);
    if (a == NULL || b == NULL) /* ids are all there is */
        return TERN_OK;
    const size_t known = tern_tokenizer_size(b);
    if (tern_tokenizer_size(a) == known && same_pieces(a, b, known))
        return TERN_OK;
    return tern_fail(err, TERN_ERR_ARG, "%s cannot guess for %s: its tokens are others",
                     tern_gguf_name(model->file), tern_gguf_name(target->file));
}

static tern_status check(const tern_drafter_params *p, tern_error *err) {
    if (!p->model->runnable)
        return tern_fail(err, TERN_ERR_STATE, "the model that guesses was opened without weights");
    return tern_model_may_draft(p->model, p->target, err);
}

static bool reserve(tern_drafter *d) {
    const size_t n = d->n_places;
    const uint32_t pages = tern_pages_of(d->n_ctx);
    d->places = calloc(n, sizeof *d->places);
    d->going = calloc(n, sizeof *d->going);
    d->spans = calloc(n, sizeof *d->spans);
    d->owners = calloc(n, sizeof(going *));
    if (d->places == NULL || d->going == NULL || d->spans == NULL || d->owners == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        tern_drafter_place *p = &d->places[i];
        p->drafter = d;
        p->tokens = calloc(d->n_ctx, sizeof *p->tokens);
        p->pages = calloc(pages, sizeof *p->pages);
        if (p->tokens == NULL || p->pages == NULL)
            return false;
        for (uint32_t k = 0; k < pages; k++)
            p->pages[k] = (uint32_t)i * pages + k;
    }
    return true;
}

/* The bytes that a pass of the second model reads, of those of the target. */
static double share_of(const tern_model *model, const tern_model *target) {
    tern_model_info own, other;
    tern_model_describe(model, &own);
    tern_model_describe(target, &other);
    return other.weight_bytes > 0 ? (double)own.weight_bytes / (double)other.weight_bytes : 1.0;
}

static tern_status open_parts(tern_drafter *d, const tern_drafter_params *p, tern_error *err) {
    const tern_runner_params runner = {.threads = tern_runner_threads(p->beside),
                                       .n_batch = d->n_batch,
                                       .n_ctx = d->n_ctx,
                                       .n_picks =
                                           d->n_places < MOST_PICKS ? d->n_places : MOST_PICKS,
                                       .beside = p->beside};
    const tern_pool_size size = {.pages = tern_pages_of(d->n_ctx) * d->n_places};
    int refused = 0;
    if (!reserve(d))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to guess for %u sequences", d->n_places);
    tern_status status = tern_pool_open(p->model, p->kv, size, &d->pool, &refused, err);
    if (status == TERN_OK)
        status = tern_runner_new(p->model, &runner, &d->runner, err);
    return status == TERN_OK ? tern_runner_hold(d->runner, &d->pool, err) : status;
}

tern_status tern_drafter_new(const tern_drafter_params *params, tern_drafter **out,
                             tern_error *err) {
    tern_status status = check(params, err);
    if (status != TERN_OK)
        return status;
    tern_drafter *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a model that guesses");
    const uint32_t most = params->model->config.n_ctx;
    d->n_ctx = params->n_ctx < most ? params->n_ctx : most;
    d->n_places = params->n_places;
    d->n_batch = params->n_batch > LONG_PASS ? params->n_batch : LONG_PASS;
    d->clock = params->clock;
    d->clock_user = params->clock_user;
    d->worth = tern_worth_begin(share_of(params->model, params->target));
    status = open_parts(d, params, err);
    if (status != TERN_OK)
        tern_drafter_free(&d);
    *out = d;
    return status;
}

void tern_drafter_free(tern_drafter **drafter) {
    tern_drafter *d = *drafter;
    *drafter = NULL;
    if (d == NULL)
        return;
    for (size_t i = 0; d->places != NULL && i < d->n_places; i++) {
        free(d->places[i].tokens);
        free(d->places[i].pages);
    }
    tern_runner_free(&d->runner);
    tern_pool_close(&d->pool);
    free(d->places);
    free(d->going);
    free(d->spans);
    free((void *)d->owners);
    free(d);
}

/* ---- places -------------------------------------------------------------------------------- */

static uint32_t common(const tern_drafter_place *p, const int32_t *tokens, size_t n) {
    uint32_t same = 0;
    while (same < p->n_held && same < n && p->tokens[same] == tokens[same])
        same++;
    return same;
}

tern_drafter_place *tern_drafter_enter(tern_drafter *d, const int32_t *tokens, size_t n,
                                       bool always) {
    tern_drafter_place *best = NULL;
    uint32_t most = 0;
    if (!always && !tern_worth_may_try(&d->worth))
        return NULL;
    for (size_t i = 0; i < d->n_places; i++) {
        tern_drafter_place *p = &d->places[i];
        const uint32_t same = p->is_taken ? 0 : common(p, tokens, n);
        const bool better = best == NULL || same > most || (same == most && p->used < best->used);
        if (p->is_taken || !better)
            continue;
        best = p;
        most = same;
    }
    if (best == NULL)
        return NULL;
    best->is_taken = true;
    best->is_off = false;
    best->always = always;
    best->n_guesses = 0;
    best->n_same = 0;
    best->used = ++d->entered;
    tern_worth_forget(&d->worth);
    return best;
}

void tern_drafter_leave(tern_drafter_place **place) {
    if (*place != NULL)
        (*place)->is_taken = false;
    *place = NULL;
}

void tern_drafter_give_up(tern_drafter_place *place) {
    place->is_off = true;
    place->n_guesses = 0;
}

void tern_drafter_picked(tern_drafter_place *place, const int32_t *tokens, size_t n) {
    const size_t i = n - 1 - place->base;
    if (n <= place->base || i >= place->n_guesses)
        return;
    const bool right = place->guesses[i] == tokens[n - 1];
    tern_worth_seen(&place->drafter->worth, place->is_sampled, place->kinds[i], right);
    if (!right) /* what was guessed after it says nothing */
        place->n_guesses = 0;
}

/* Goes back to the tokens that are the sequence's; a token of it is always left to compute. */
static void go_back(tern_drafter_place *p, const tern_drafting *wish) {
    uint32_t same = p->n_same;
    while (same < p->n_held && same + 1 < wish->n_tokens && p->tokens[same] == wish->tokens[same])
        same++;
    p->n_held = p->n_same = same;
}

/* ---- guessing ------------------------------------------------------------------------------ */

/* Adds a span with the sequence's next tokens, `most` of them at most. */
static void add_span(tern_drafter *d, size_t *n_spans, going *g, const int32_t *tokens, uint32_t n,
                     bool wanted) {
    tern_drafter_place *p = g->wish->place;
    memcpy(p->tokens + p->n_held, tokens, n * sizeof *tokens);
    d->spans[*n_spans] = (tern_pass_span){.pages = p->pages,
                                          .window_pages = p->pages,
                                          .position = p->n_held,
                                          .tokens = p->tokens + p->n_held,
                                          .n = n,
                                          .wanted = wanted};
    p->n_held += n;
    d->owners[(*n_spans)++] = g;
}

/* The logit of a token less the largest other one. */
static float margin_of(const float *logits, size_t n, int32_t token) {
    float other = -INFINITY;
    for (size_t i = 0; i < n; i++)
        other = logits[i] > other && i != (size_t)token ? logits[i] : other;
    return logits[token] - other;
}

/* Takes a guess from logits. */
static void guess(tern_drafter *d, going *g, const float *logits, size_t n_vocab) {
    tern_drafting *w = g->wish;
    tern_drafter_place *p = w->place;
    int32_t token;
    if (tern_sampler_pick(w->sampler, logits, &token, NULL) != TERN_OK) {
        g->goes_on = false;
        return;
    }
    const size_t kind = tern_worth_kind(margin_of(logits, n_vocab, token));
    const double before = w->n > 0 ? g->chances[w->n - 1] : 1.0;
    g->chances[w->n] = before * tern_worth_chance(&d->worth, p->is_sampled, kind);
    p->guesses[w->n] = w->guesses[w->n] = token;
    p->kinds[w->n] = (uint8_t)kind;
    w->n++;
}

/* Computes the spans and takes a guess from each; returns the number of rows. */
static size_t run_round(tern_drafter *d, size_t n_spans) {
    size_t room, rows = 0;
    const size_t n_vocab = d->pool.config->n_vocab;
    tern_runner_run(d->runner, &d->pool, d->spans, n_spans);
    float *logits = tern_runner_buffers(d->runner, &room);
    for (size_t first = 0, n; first < n_spans; first += n) {
        n = n_spans - first < room ? n_spans - first : room;
        const bool fine = tern_runner_logits(d->runner, first, n, logits, NULL) == TERN_OK;
        for (size_t i = first; i < first + n; i++) {
            rows += d->spans[i].n;
            if (fine && tern_runner_check(d->runner, i, NULL) == TERN_OK)
                guess(d, d->owners[i], logits + (i - first) * n_vocab, n_vocab);
            else
                d->owners[i]->goes_on = false;
        }
    }
    return rows;
}

/* One pass of reading for sequences that have too much to read to be guessed for yet. */
static void read_on(tern_drafter *d, const tern_draft_costs *passes, tern_drafting *list, size_t n,
                    const tern_draft_pass *pass, double gain) {
    const double plain = tern_draft_costs_seconds(passes, pass->rows) / pass->tokens;
    size_t n_spans = 0;
    uint32_t rows = 0;
    const double start = now(d);
    for (size_t i = 0; i < n && rows < d->n_batch; i++) {
        tern_drafting *w = &list[i];
        const uint32_t rest = w->n_tokens - 1 - w->place->n_held;
        const double each = d->worth.reading > 0.0 ? d->worth.reading
                                                   : tern_worth_seconds(&d->worth, passes, 1) / 3.0;
        if (rest < LONG_PASS || w->place->is_off || w->n_tokens > d->n_ctx)
            continue;
        if (!w->place->always && !tern_worth_reading(gain, rest * each, w->ahead, plain))
            continue;
        const uint32_t some = rest < d->n_batch - rows ? rest : d->n_batch - rows;
        d->going[i] = (going){.wish = w};
        add_span(d, &n_spans, &d->going[i], w->tokens + w->place->n_held, some, false);
        w->place->n_same = w->place->n_held;
        rows += some;
    }
    if (n_spans == 0)
        return;
    tern_runner_run(d->runner, &d->pool, d->spans, n_spans);
    for (size_t i = 0; i < n_spans; i++)
        if (tern_runner_check(d->runner, i, NULL) != TERN_OK)
            tern_drafter_give_up(d->owners[i]->wish->place);
    if (rows >= LONG_PASS)
        d->worth.reading = (now(d) - start) / rows;
}

/* The sequence has room for guesses, and little to read before them. */
static bool is_ready(const tern_drafter *d, const tern_drafting *w) {
    return !w->place->is_off && w->most > 0 && w->n_tokens + MOST_AHEAD <= d->n_ctx &&
           w->n_tokens - w->place->n_held <= LONG_PASS;
}

static size_t begin(tern_drafter *d, tern_drafting *list, size_t n) {
    size_t ready = 0;
    uint32_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        tern_drafting *w = &list[i];
        const uint32_t rest = w->n_tokens - w->place->n_held;
        if (!is_ready(d, w) || rest > d->n_batch - rows)
            continue;
        rows += rest;
        d->going[ready++] = (going){.wish = w,
                                    .random = w->sampler->random,
                                    .allowed = w->sampler->allowed,
                                    .goes_on = true};
        w->sampler->allowed = NULL;
        w->place->is_sampled = w->sampler->params.temperature > 0.0F;
        w->place->base = w->n_tokens;
        w->place->n_guesses = 0;
    }
    return ready;
}

/* The seconds that a further row takes in a pass of so many. */
static double row_seconds(const tern_draft_costs *passes, uint32_t rows) {
    return rows < TERN_DRAFT_ROWS
               ? tern_draft_costs_seconds(passes, rows + 1) - tern_draft_costs_seconds(passes, rows)
               : INFINITY;
}

/* Guesses in rounds, a token of each sequence that goes on. */
static void go_on(tern_drafter *d, const tern_draft_costs *passes, size_t ready, uint32_t rows,
                  const tern_worth_plan *plan) {
    for (uint32_t k = 0; k < plan->n; k++) {
        size_t n_spans = 0;
        const double one = tern_worth_seconds(&d->worth, passes, (uint32_t)ready) / (double)ready;
        const double start = now(d);
        for (size_t i = 0; i < ready; i++) {
            going *g = &d->going[i];
            tern_drafting *w = g->wish;
            const double chance = k > 0 ? g->chances[k - 1] : 1.0;
            const double cost = row_seconds(passes, rows + (uint32_t)ready * k) + one;
            g->goes_on &= k < w->most && (w->place->always || k == 0 || chance > plan->rate * cost);
            if (!g->goes_on)
                continue;
            if (k == 0)
                add_span(d, &n_spans, g, w->tokens + w->place->n_held,
                         w->n_tokens - w->place->n_held, true);
            else
                add_span(d, &n_spans, g, &w->guesses[k - 1], 1, true);
        }
        if (n_spans == 0)
            return;
        const size_t computed = run_round(d, n_spans);
        tern_draft_costs_add(&d->worth.costs, (uint32_t)computed, now(d) - start);
    }
}

/* Leaves out the last guesses that are not worth their rows. */
static void cut(const tern_draft_costs *passes, const going *g, double rate,
                tern_draft_pass *pass) {
    tern_drafting *w = g->wish;
    uint32_t n = 0;
    while (n < w->n &&
           (w->place->always || g->chances[n] > rate * row_seconds(passes, pass->rows + n)))
        n++;
    w->place->n_guesses = w->n;
    w->n = n;
    for (uint32_t i = 0; i < n; i++)
        pass->tokens += g->chances[i];
    pass->rows += n;
}

double tern_drafter_gain(const tern_drafter *d, const tern_draft_costs *passes,
                         const tern_draft_pass *pass) {
    return tern_worth_choose(&d->worth, passes, pass, 1, MOST_AHEAD).gain;
}

void tern_drafter_guess(tern_drafter *d, const tern_draft_costs *passes, tern_drafting *list,
                        size_t n, tern_draft_pass *pass) {
    bool always = false;
    for (size_t i = 0; i < n; i++) {
        list[i].n = 0;
        go_back(list[i].place, &list[i]);
        always |= list[i].place->always;
    }
    tern_worth_plan plan = tern_worth_choose(&d->worth, passes, pass, n, MOST_AHEAD);
    read_on(d, passes, list, n, pass, plan.gain);
    const double start = now(d);
    const size_t ready = begin(d, list, n);
    if (plan.n == 0) /* one guess, to learn what it is worth, until the debt forbids it */
        plan.n = 1;
    if (always)
        plan.n = ALWAYS_AHEAD;
    if (ready == 0)
        return;
    go_on(d, passes, ready, pass->rows, &plan);
    for (size_t i = 0; i < ready; i++) {
        going *g = &d->going[i];
        g->wish->sampler->random = g->random;
        g->wish->sampler->allowed = g->allowed;
        cut(passes, g, plan.rate, pass);
    }
    d->spent += now(d) - start;
    d->guessed = true;
}

void tern_drafter_settle(tern_drafter *d, const tern_draft_costs *passes, uint32_t n, uint32_t rows,
                         size_t tokens) {
    const double spent = d->spent, plain = tern_draft_costs_seconds(passes, n);
    d->spent = 0.0;
    tern_worth_settle(&d->worth, passes, n, rows, tokens, spent);
    const bool lost = d->guessed && tern_worth_is_lost(&d->worth, plain);
    for (size_t i = 0; lost && i < d->n_places; i++)
        if (d->places[i].is_taken && !d->places[i].always)
            tern_drafter_give_up(&d->places[i]);
    d->guessed = false;
}
