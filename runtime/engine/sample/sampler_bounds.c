/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Picks a token when only bounds of the logits are known. First a floor is found below which no
 * logit can matter; the tokens whose upper bound reaches it are the candidates, and get exact
 * logits. Every decision must then be the same for all values that the other logits can have;
 * otherwise all logits are needed. Biases and penalties are monotonic, even with rounding, so
 * applied to a bound they give a bound.
 */

#include <math.h>

#include "runtime/engine/sample/candidates.h"
#include "runtime/engine/sample/logit_source.h"
#include "runtime/engine/sample/sampler.h"

/* Reading all rows in order costs no more than more candidates than 1 in MAX_SHARE. */
enum { MAX_SHARE = 16, MIN_CANDIDATES = 64 };

enum { LANES = 16 };

/* The largest of x[n], n >= 1: the value at tern_argmax, in a form that the compiler vectorises. */
static float largest(const float *x, size_t n) {
    float lanes[LANES];
    size_t i = 0;
    float m = x[0];
    for (size_t j = 0; j < LANES; j++)
        lanes[j] = m;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (size_t j = 0; j < LANES; j++)
        m = lanes[j] > m ? lanes[j] : m;
    for (; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* The k-th largest of x[n], 1 <= k <= n: the root of a heap of the k largest, smallest on top. */
static float kth_largest(float *heap, size_t k, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        if (i < k) { /* sift up */
            for (; at > 0 && heap[(at - 1) / 2] > x[i]; at = (at - 1) / 2)
                heap[at] = heap[(at - 1) / 2];
        } else if (x[i] > heap[0]) { /* replace the root and sift down */
            at = 0;
            for (size_t child = 1; child < k; child = 2 * at + 1) {
                child += child + 1 < k && heap[child + 1] < heap[child];
                if (heap[child] >= x[i])
                    break;
                heap[at] = heap[child];
                at = child;
            }
        } else {
            continue;
        }
        heap[at] = x[i];
    }
    return heap[0];
}

/* Makes the allowed tokens that reach the floor candidates; false when they are too many to pay
 * off. */
static bool choose(tern_bounded_pick *p, float floor) {
    const uint32_t n_vocab = p->sampler->n_vocab;
    const size_t most = n_vocab / MAX_SHARE + MIN_CANDIDATES;
    p->floor = floor;
    p->n = 0;
    for (uint32_t i = 0; i < n_vocab; i++) {
        if (p->upper[i] >= floor && p->upper[i] > -INFINITY) {
            if (p->n == most)
                return false;
            p->sampler->ids[p->n++] = i;
        }
    }
    return true;
}

/* The best candidate. It is the best token, since the floor is at most its lower bound. */
static uint32_t best_of(const tern_bounded_pick *p) {
    uint32_t best = p->sampler->ids[0];
    for (size_t i = 1; i < p->n; i++)
        if (p->sampler->exact[p->sampler->ids[i]] > p->sampler->exact[best])
            best = p->sampler->ids[i];
    return best;
}

/* ---- top-p and min-p over all tokens -------------------------------------------------------- */

/*
 * An upper bound of e^x for x <= 0, within 7 %: 2^(i + f) <= 2^i (1 + f) for 0 <= f < 1, and the
 * latter is the float with i in its exponent and f in its mantissa. The factor covers the rounding
 * of x times log2(e). Results below 2^-100 are raised to that.
 */
static float exp_above(float x) {
    float y = x * 1.44269504F;
    y = y > -100.0F ? y : -100.0F;
    const int32_t bits = (int32_t)((y + 127.0F) * 0x1p23F);
    float bound;
    memcpy(&bound, &bits, sizeof bound);
    return bound * 1.0001F;
}

/* An upper bound of the sum of e^((logit - max) / temperature) over all tokens but the
 * candidates. */
static double tail_above(const tern_bounded_pick *p, float max) {
    const float t = p->sampler->params.temperature;
    double sum = 0.0;
    for (uint32_t i = 0; i < p->sampler->n_vocab; i++)
        if (p->upper[i] < p->floor)
            sum += (double)exp_above((p->upper[i] - max) / t);
    return sum * 1.0001;
}

/*
 * Probabilities as shares of the candidates' sum. They differ from the canonical ones by a common
 * factor between `low` and `high`, and by a relative error of up to RATIO: two divisions round by
 * 2^-24 each.
 */
typedef struct shares {
    double low, high;
    double best; /* share of the best candidate */
} shares;

#define RATIO 0x1p-21

/* Sets s->p by token. Returns the limits of the candidates' sum divided by the canonical sum over
 * all tokens, which has 16 lanes of floats. */
static shares share_out(tern_bounded_pick *p, float max) {
    tern_sampler *s = p->sampler;
    float *packed = s->packed;
    for (size_t i = 0; i < p->n; i++)
        packed[i] = (s->exact[s->ids[i]] - max) / s->params.temperature;
    s->softmax(packed, p->n);
    float first = 0.0F;
    for (size_t i = 0; i < p->n; i++) {
        s->p[s->ids[i]] = packed[i];
        first = packed[i] > first ? packed[i] : first;
    }
    /* The best candidate's e^0 is 1, so `first` is 1 / sum. */
    const double tail = tail_above(p, max) * (double)first;
    const double rounding = 0x1p-23 * (s->n_vocab / TERN_LANES + 16.0);
    return (shares){
        .low = (1.0 - rounding) / (1.0 + tail), .high = 1.0 + rounding, .best = (double)first};
}

typedef enum verdict { NO, YES, OPEN } verdict;

/* Compares x < y, where x may be off by a share of `slack`. */
static verdict is_less(double x, double y, double slack) {
    return x * (1.0 + slack) < y ? YES : x * (1.0 - slack) >= y ? NO : OPEN;
}

/* Decides if top-p ends a run of candidates with this sum of shares. */
static verdict is_full(const tern_bounded_pick *p, shares f, double sum) {
    const double top_p = (double)p->sampler->params.top_p;
    if (p->sampler->params.top_p >= 1.0F || sum * f.high * (1.0 + RATIO) < top_p)
        return NO;
    return sum * f.low * (1.0 - RATIO) >= top_p ? YES : OPEN;
}

/*
 * The number of kept candidates, and the sum of their shares; 0: it is not certain. After the last
 * candidate, or one below the floor, another token may come next, whose share is below `deepest`.
 */
static size_t keep(tern_bounded_pick *p, shares f, double deepest, double *total) {
    tern_sampler *s = p->sampler;
    double sum = 0.0, least = 0.0;
    for (size_t kept = 0;; kept++) {
        const uint32_t id = kept < p->n ? tern_candidates_pop(s->heap, p->n - kept) : 0;
        const bool known = kept < p->n && s->exact[id] >= p->floor;
        const double q = known ? (double)s->p[id] : deepest;
        const verdict full = is_full(p, f, sum);
        const verdict small = kept > 0 ? is_less(q, least, RATIO) : NO;
        *total = sum;
        if (full == YES || small == YES)
            return kept;
        if (full == OPEN || small == OPEN || !known)
            return 0;
        if (kept == 0)
            least = (double)s->params.min_p * q;
        sum += q;
    }
}

/* Makes the draw of sampler.c, if its result is certain. */
static bool draw(const tern_bounded_pick *p, size_t kept, double r, uint32_t *id) {
    const uint64_t *last = p->sampler->heap + p->n - 1;
    double sum = 0.0;
    for (size_t j = 0; j + 1 < kept; j++) {
        sum += (double)p->sampler->p[tern_candidate_token(*(last - j))];
        const verdict below = is_less(r, sum, 2 * RATIO);
        if (below == OPEN)
            return false;
        if (below == YES) {
            *id = tern_candidate_token(*(last - j));
            return true;
        }
    }
    *id = tern_candidate_token(*(last - (kept - 1)));
    return true;
}

/* How far below the maximum candidates reach, in units of the temperature. */
static float reach_of(const tern_sampler_params *params) {
    /* Tokens deeper than this typically have less than a few thousandths of the probability. */
    const double deep = params->top_p < 1.0F ? 9.0 : 88.0;
    const double shallow = params->min_p > 0.0F ? 0.1 - log((double)params->min_p) : deep;
    return (float)(shallow < deep ? shallow : deep);
}

/* A share so small that as a float it would be denormal is left to the exact way. */
static const float least_min_p = 0x1p-64F;

static bool choose_nucleus(tern_bounded_pick *p) {
    const tern_sampler_params *params = &p->sampler->params;
    const float bound = largest(p->lower, p->sampler->n_vocab);
    return (params->min_p == 0.0F || params->min_p >= least_min_p) &&
           choose(p, bound - params->temperature * reach_of(params));
}

static bool decide_nucleus(tern_bounded_pick *p, uint32_t *id) {
    tern_sampler *s = p->sampler;
    double total;
    const float max = s->exact[best_of(p)];
    const shares f = share_out(p, max);
    const double deepest = (double)exp_above((p->floor - max) / s->params.temperature) * f.best;
    tern_candidates_build(s->heap, s->exact, s->ids, p->n);
    const size_t kept = keep(p, f, deepest, &total);
    return kept > 0 && draw(p, kept, tern_chacha_uniform(&s->random) * total, id);
}

/* ---- the pick -------------------------------------------------------------------------------- */

static bool is_top_k(const tern_sampler *s) {
    return s->params.top_k > 0 && s->params.top_k < s->n_vocab;
}

bool tern_bounds_help(const tern_sampler *s) {
    const tern_sampler_params *p = &s->params;
    return p->temperature == 0.0F || is_top_k(s) || p->top_p < 1.0F || p->min_p > 0.0F;
}

bool tern_bounds_choose(tern_bounded_pick *p) {
    tern_sampler *s = p->sampler;
    tern_penalties_change(&s->penalties, p->lower);
    tern_penalties_change(&s->penalties, p->upper);
    tern_sampler_forbid(s, p->lower);
    tern_sampler_forbid(s, p->upper);
    if (s->params.temperature == 0.0F)
        return choose(p, largest(p->lower, s->n_vocab));
    if (is_top_k(s))
        return choose(p, kth_largest(s->p, s->params.top_k, p->lower, s->n_vocab));
    return choose_nucleus(p);
}

const uint32_t *tern_bounds_candidates(const tern_bounded_pick *p) {
    return p->sampler->ids;
}

float *tern_bounds_exact(const tern_bounded_pick *p) {
    return p->sampler->exact;
}

static bool decide(tern_bounded_pick *p, uint32_t *id) {
    tern_sampler *s = p->sampler;
    tern_penalties_change(&s->penalties, s->exact); /* only candidates' values are valid */
    if (s->params.temperature > 0.0F && !is_top_k(s))
        return decide_nucleus(p, id);
    *id = best_of(p);
    if (s->params.temperature > 0.0F) {
        tern_candidates_build(s->heap, s->exact, s->ids, p->n);
        *id = tern_sampler_from_top_k(s, s->exact, p->n, s->exact[*id]);
    }
    return true;
}

bool tern_bounds_decide(tern_bounded_pick *p, int32_t *token) {
    const tern_chacha random = p->sampler->random;
    uint32_t id;
    const bool decided = decide(p, &id);
    if (decided)
        *token = (int32_t)id;
    else
        p->sampler->random = random; /* undo the draw, which was not used */
    return decided;
}

/* Picks a token if bounds are enough. */
static bool pick(tern_sampler *s, const tern_logit_source *source, int32_t *token) {
    tern_bounded_pick p = {.sampler = s};
    if (!tern_bounds_help(s) || !source->bounds(source->user, &p.lower, &p.upper) ||
        !tern_bounds_choose(&p))
        return false;
    source->rows(source->user, s->ids, p.n, s->exact);
    return tern_bounds_decide(&p, token);
}

tern_status tern_sampler_pick_from(tern_sampler *s, const tern_logit_source *source, int32_t *token,
                                   tern_error *err) {
    if (s == NULL || source == NULL || token == NULL)
        return tern_fail(err, TERN_ERR_NULL, "sampler: NULL argument");
    if (pick(s, source, token))
        return TERN_OK;
    const float *logits;
    const tern_status status = source->all(source->user, &logits, err);
    return status == TERN_OK ? tern_sampler_pick(s, logits, token, err) : status;
}
