/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/draft/draft.h"

#include <math.h>
#include <stdlib.h>

/* The trust in guesses before any were seen: the share of right ones by kind, and how many tokens
 * this prior counts for. Answers that were not meant to copy anything (the free texts of
 * tests/load/drafts) had 0.10, 0.38, 0.85, 0.47, 0.68, 0.77, 0.67, 0.92, 1.0 and 1.0; edits and
 * quotations had more. */
static const double first_share[TERN_DRAFT_KINDS] = {0.1, 0.3,  0.4,  0.5, 0.6,
                                                     0.7, 0.75, 0.85, 0.9, 0.95};
static const double first_weight = 8.0;
static const double memory_share = 0.97; /* factor on the weight of older tokens for each new one */
static const double least_gain = 1.06;   /* a smaller gain is not worth a larger pass */
static const double unknown_share =
    0.25; /* of a pass, for each further row while only one size is measured */
static const double least_slope =
    1.0 / 16; /* of the smallest pass, for each further row of larger passes */
static const double share_of_new = 0.25;  /* weight of a measurement */
static const double outlier = 2.0;        /* longer times count as this multiple of the known */
static const double retried = 1.0 / 2048; /* how much cheaper an untried size becomes each time */
static const double unproven = 1.0 / 512; /* the same for a size with few measurements */
static const uint32_t few = 3;

/* ---- what passes cost ---------------------------------------------------------------------- */

void tern_draft_costs_add(tern_draft_costs *c, uint32_t rows, double seconds) {
    if (rows > TERN_DRAFT_ROWS || !(seconds > 0.0))
        return;
    double *known = &c->seconds[rows];
    const double most = outlier * *known;
    if (c->n[rows] < few)
        *known = c->least[rows] =
            c->n[rows] == 0 || seconds < c->least[rows] ? seconds : c->least[rows];
    else
        *known += share_of_new * ((seconds < most ? seconds : most) - *known);
    c->n[rows]++;
    for (uint32_t i = rows + 1; i <= TERN_DRAFT_ROWS; i++) {
        c->seconds[i] *= 1.0 - (c->n[i] < few ? unproven : retried);
        if (c->n[i] > 0 && c->seconds[i] < *known)
            c->seconds[i] = *known;
    }
}

/* Expected time of a pass with more rows than any measured one. Each further row costs as much as
 * rows beyond the smallest pass have cost on average. A fixed share would keep larger passes from
 * ever being tried. */
static double beyond(const tern_draft_costs *c, uint32_t largest, uint32_t rows) {
    const double base = c->seconds[largest];
    uint32_t smallest = 1;
    while (c->n[smallest] == 0)
        smallest++;
    const double one = c->seconds[smallest];
    double slope = unknown_share * base;
    if (smallest < largest)
        slope = fmax((base - one) / (double)(largest - smallest), least_slope * one);
    return base + slope * (double)(rows - largest);
}

double tern_draft_costs_seconds(const tern_draft_costs *c, uint32_t rows) {
    uint32_t below = rows, above = rows;
    while (below > 0 && c->n[below] == 0)
        below--;
    while (above <= TERN_DRAFT_ROWS && c->n[above] == 0)
        above++;
    if (below == 0)
        return above <= TERN_DRAFT_ROWS ? c->seconds[above] : 0.0;
    if (above > TERN_DRAFT_ROWS)
        return beyond(c, below, rows);
    const double base = c->seconds[below];
    const double share = above > below ? (double)(rows - below) / (double)(above - below) : 0.0;
    return base + share * (c->seconds[above] - base);
}

/* ---- a draft ------------------------------------------------------------------------------- */

/* Recent guesses of a kind. */
typedef struct trust {
    double right, all;
} trust;

struct tern_draft {
    tern_recall *recall; /* the sequence so far */
    tern_recall_place place;
    trust trust[TERN_DRAFT_KINDS];
};

tern_status tern_draft_new(uint32_t positions, tern_draft **out, tern_error *err) {
    tern_draft *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the guesses of a sequence");
    const tern_status status = tern_recall_new(positions, &d->recall, err);
    for (size_t i = 0; i < TERN_DRAFT_KINDS; i++)
        d->trust[i] = (trust){.right = first_share[i] * first_weight, .all = first_weight};
    if (status != TERN_OK)
        tern_draft_free(&d);
    *out = d;
    return status;
}

void tern_draft_free(tern_draft **draft) {
    if (*draft == NULL)
        return;
    tern_recall_free(&(*draft)->recall);
    free(*draft);
    *draft = NULL;
}

static size_t kind_of(uint32_t length) {
    static const uint32_t first[TERN_DRAFT_KINDS] = {0, 1, 2, 3, 4, 5, 7, 10, 16, 32};
    size_t kind = TERN_DRAFT_KINDS - 1;
    while (first[kind] > length)
        kind--;
    return kind;
}

/* Moves the place on past tokens[n - 1], then adds that token to the memory. */
static void follow(tern_draft *d, const int32_t *tokens, size_t n) {
    tern_recall_follow(d->recall, tokens, n, &d->place);
    tern_recall_add(d->recall, tokens[n - 1]);
}

void tern_draft_given(tern_draft *d, const int32_t *tokens, size_t n) {
    const size_t known = (size_t)tern_recall_count(d->recall);
    for (size_t i = known; i + 1 < n; i++)
        tern_recall_add(d->recall, tokens[i]);
    d->place = (tern_recall_place){0};
    if (n > known)
        follow(d, tokens, n);
}

void tern_draft_picked(tern_draft *d, const int32_t *tokens, size_t n) {
    int32_t guess;
    if (tern_draft_guesses(d, &guess, 1) == 1) {
        trust *t = &d->trust[kind_of(d->place.length)];
        t->right = memory_share * t->right + (guess == tokens[n - 1]);
        t->all = memory_share * t->all + 1.0;
    }
    follow(d, tokens, n);
}

size_t tern_draft_guesses(const tern_draft *d, int32_t *guesses, size_t most) {
    return tern_recall_read(d->recall, &d->place, guesses,
                            most < TERN_DRAFT_LONGEST ? most : TERN_DRAFT_LONGEST);
}

size_t tern_draft_choose(const tern_draft *d, const tern_draft_costs *c, size_t n,
                         tern_draft_pass *pass) {
    const double plain = tern_draft_costs_seconds(c, pass->rows);
    double best = plain > 0.0 ? least_gain * pass->tokens / plain : 0.0;
    double expected = pass->tokens, chance = 1.0, tokens = expected;
    size_t chosen = 0;
    for (size_t i = 0; plain > 0.0 && i < n && pass->rows + i < TERN_DRAFT_ROWS; i++) {
        const trust *t = &d->trust[kind_of(d->place.length + (uint32_t)i)];
        chance *= t->right / t->all;
        expected += chance;
        const double rate = expected / tern_draft_costs_seconds(c, pass->rows + 1 + (uint32_t)i);
        if (rate > best) {
            best = rate;
            chosen = i + 1;
            tokens = expected;
        }
    }
    pass->rows += (uint32_t)chosen;
    pass->tokens = tokens;
    return chosen;
}
