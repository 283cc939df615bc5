/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/draft/worth.h"

#include <math.h>

/* The trust in guesses before any were seen, by the least margin of their kind, and how many
 * guesses this prior counts for. */
static const float least_margin[TERN_WORTH_KINDS] = {-INFINITY, 0.25F, 0.5F, 1.0F, 1.5F,
                                                     2.0F,      3.0F,  4.0F, 6.0F, 9.0F};
static const double first_share[TERN_WORTH_KINDS] = {0.4,  0.5,  0.55, 0.6,  0.7,
                                                     0.75, 0.85, 0.9,  0.95, 0.98};
static const double first_of_all = 0.7;
static const double first_weight = 6.0;
static const double memory_share =
    0.98;                            /* factor on the weight of older guesses for each new one */
static const double forgotten = 0.1; /* of what was seen, before a new sequence */
static const double share_of_payment = 0.01; /* of the time of passes, by which debts shrink */
static const double most_credit = 4.0;       /* plain passes */
static const double most_debt = 2.0;

static double share_of(tern_worth_trust t) {
    return t.right / t.all;
}

tern_worth tern_worth_begin(double share) {
    tern_worth w = {.share = share,
                    .all = {.right = first_of_all * first_weight, .all = first_weight}};
    for (size_t i = 0; i < TERN_WORTH_KINDS; i++)
        w.trust[0][i] = w.trust[1][i] =
            (tern_worth_trust){.right = first_share[i] * first_weight, .all = first_weight};
    return w;
}

size_t tern_worth_kind(float margin) {
    size_t kind = TERN_WORTH_KINDS - 1;
    while (kind > 0 && !(margin >= least_margin[kind]))
        kind--;
    return kind;
}

double tern_worth_chance(const tern_worth *w, bool sampled, size_t kind) {
    return share_of(w->trust[sampled][kind]);
}

static void see(tern_worth_trust *t, bool right) {
    t->right = memory_share * t->right + right;
    t->all = memory_share * t->all + 1.0;
}

void tern_worth_seen(tern_worth *w, bool sampled, size_t kind, bool right) {
    see(&w->trust[sampled][kind], right);
    see(&w->all, right);
}

static void forget(tern_worth_trust *t, double first) {
    t->right += forgotten * t->all * (first - share_of(*t));
}

void tern_worth_forget(tern_worth *w) {
    for (size_t i = 0; i < TERN_WORTH_KINDS; i++) {
        forget(&w->trust[0][i], first_share[i]);
        forget(&w->trust[1][i], first_share[i]);
    }
    if (share_of(w->all) < first_of_all) /* success needs no second chance */
        forget(&w->all, first_of_all);
}

double tern_worth_seconds(const tern_worth *w, const tern_draft_costs *passes, uint32_t rows) {
    const double known = tern_draft_costs_seconds(&w->costs, rows);
    return known > 0.0 ? known : w->share * tern_draft_costs_seconds(passes, rows);
}

tern_worth_plan tern_worth_choose(const tern_worth *w, const tern_draft_costs *passes,
                                  const tern_draft_pass *pass, size_t n, uint32_t most) {
    const double plain = tern_draft_costs_seconds(passes, pass->rows);
    const double one = tern_worth_seconds(w, passes, (uint32_t)n), a = share_of(w->all);
    tern_worth_plan best = {.gain = 1.0};
    double tokens = pass->tokens, chance = 1.0;
    if (!(plain > 0.0) || n == 0)
        return best;
    best.rate = tokens / plain;
    const double without = best.rate;
    for (uint32_t k = 1; k <= most && pass->rows + n * k <= TERN_DRAFT_ROWS; k++) {
        chance *= a;
        tokens += chance * (double)n;
        const double seconds = tern_draft_costs_seconds(passes, pass->rows + (uint32_t)n * k);
        const double rate = tokens / (seconds + k * one);
        if (rate > best.rate)
            best = (tern_worth_plan){.n = k, .rate = rate, .gain = rate / without};
    }
    return best;
}

bool tern_worth_reading(double gain, double seconds, uint32_t ahead, double plain) {
    return gain > 1.0 && seconds <= (double)ahead * plain * (1.0 - 1.0 / gain);
}

void tern_worth_settle(tern_worth *w, const tern_draft_costs *passes, uint32_t n, uint32_t rows,
                       size_t tokens, double seconds) {
    const double plain = tern_draft_costs_seconds(passes, n);
    const double longer =
        tern_draft_costs_seconds(passes, rows < TERN_DRAFT_ROWS ? rows : TERN_DRAFT_ROWS) - plain;
    const double saved = ((double)tokens / n - 1.0) * plain;
    w->debt += seconds + longer - saved - share_of_payment * plain;
    w->debt = fmax(w->debt, -most_credit * plain);
}

bool tern_worth_is_lost(const tern_worth *w, double plain) {
    return w->debt > most_debt * plain;
}

bool tern_worth_may_try(const tern_worth *w) {
    return w->debt <= 0.0;
}
