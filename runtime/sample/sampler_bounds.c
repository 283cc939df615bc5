/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Picking a token when logits are known by bounds only. A floor is found below which no logit can
 * matter; the tokens whose upper bound reaches it are the candidates, and get exact logits. Every
 * decision then has to come out the same for all values that the rest can have, or all logits are
 * asked for. Biases and penalties are monotonic, also as they are rounded, so applied to a bound
 * they give a bound.
 */

#include <math.h>

#include "runtime/sample/candidates.h"
#include "runtime/sample/logit_source.h"
#include "runtime/sample/sampler.h"

/* With more candidates than a share of 1 in MAX_SHARE, reading all rows in order costs no more. */
enum { MAX_SHARE = 16, MIN_CANDIDATES = 64 };

typedef struct picking {
    tern_sampler *s;
    const tern_logit_source *source;
    float *lower, *upper;
    size_t n;    /* candidates in s->ids, with logits in s->exact */
    float floor; /* every other token's logit is less */
} picking;

enum { LANES = 16 };

/* The largest of x[n], n >= 1. As tern_argmax, but the compiler can make vectors of it. */
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

/* The k-th largest of x[n], 1 <= k <= n: the root of a heap of the k largest, least on top. */
static float kth_largest(float *heap, size_t k, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        if (i < k) { /* up to its place */
            for (; at > 0 && heap[(at - 1) / 2] > x[i]; at = (at - 1) / 2)
                heap[at] = heap[(at - 1) / 2];
        } else if (x[i] > heap[0]) { /* down from the root, which leaves */
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

/* Makes the allowed tokens that reach the floor candidates; false when there are too many to be
 * worth it. */
static bool choose(picking *p, float floor) {
    const uint32_t n_vocab = p->s->n_vocab;
    const size_t most = n_vocab / MAX_SHARE + MIN_CANDIDATES;
    p->floor = floor;
    p->n = 0;
    for (uint32_t i = 0; i < n_vocab; i++) {
        if (p->upper[i] >= floor && p->upper[i] > -INFINITY) {
            if (p->n == most)
                return false;
            p->s->ids[p->n++] = i;
        }
    }
    return true;
}

/* Exact logits of the candidates, with biases and penalties; s->exact holds nothing else. */
static void evaluate(picking *p) {
    p->source->rows(p->source->user, p->s->ids, p->n, p->s->exact);
    tern_penalties_change(&p->s->penalties, p->s->exact);
}

/* The best candidate: it is the best token, since the floor is at most its lower bound. */
static uint32_t best_of(const picking *p) {
    uint32_t best = p->s->ids[0];
    for (size_t i = 1; i < p->n; i++)
        if (p->s->exact[p->s->ids[i]] > p->s->exact[best])
            best = p->s->ids[i];
    return best;
}

/* ---- top-p and min-p over all tokens -------------------------------------------------------- */

/*
 * An upper bound of e^x for x <= 0, to 7 %: 2^(i + f) <= 2^i (1 + f) for 0 <= f < 1, and the latter
 * is the float with i in its exponent and f in its mantissa. The factor covers the rounding of x
 * times log2(e); what is below 2^-100 counts as that.
 */
static float exp_above(float x) {
    float y = x * 1.44269504F;
    y = y > -100.0F ? y : -100.0F;
    const int32_t bits = (int32_t)((y + 127.0F) * 0x1p23F);
    float bound;
    memcpy(&bound, &bits, sizeof bound);
    return bound * 1.0001F;
}

/* At least the sum of e^((logit - max) / temperature) over the tokens that are no candidates. */
static double tail_above(const picking *p, float max) {
    const float t = p->s->params.temperature;
    double sum = 0.0;
    for (uint32_t i = 0; i < p->s->n_vocab; i++)
        if (p->upper[i] < p->floor)
            sum += (double)exp_above((p->upper[i] - max) / t);
    return sum * 1.0001;
}

/*
 * Probabilities as shares of the candidates' sum, which differ from the canonical ones by a common
 * factor between `low` and `high`, and by RATIO from it: two divisions round by 2^-24 each.
 */
typedef struct shares {
    double low, high;
    double best; /* share of the best candidate */
} shares;

#define RATIO 0x1p-21

/* s->p by token; what the canonical sum over all tokens, 16 lanes of floats, may be beside theirs.
 */
static shares share_out(picking *p, float max) {
    tern_sampler *s = p->s;
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

/* Whether x < y, where x may be off by a share of `slack`. */
static verdict is_less(double x, double y, double slack) {
    return x * (1.0 + slack) < y ? YES : x * (1.0 - slack) >= y ? NO : OPEN;
}

/* Whether top-p ends a run of candidates with this sum of shares. */
static verdict is_full(const picking *p, shares f, double sum) {
    const double top_p = (double)p->s->params.top_p;
    if (p->s->params.top_p >= 1.0F || sum * f.high * (1.0 + RATIO) < top_p)
        return NO;
    return sum * f.low * (1.0 - RATIO) >= top_p ? YES : OPEN;
}

/*
 * How many candidates are kept, and the sum of their shares; 0: it is not certain. Where candidates
 * end, or one lies below the floor, another token may come next, whose share is below `deepest`.
 */
static size_t keep(picking *p, shares f, double deepest, double *total) {
    tern_sampler *s = p->s;
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

/* The draw of sampler.c, if it is certain. */
static bool draw(const picking *p, size_t kept, double r, uint32_t *id) {
    const uint64_t *last = p->s->heap + p->n - 1;
    double sum = 0.0;
    for (size_t j = 0; j + 1 < kept; j++) {
        sum += (double)p->s->p[tern_candidate_token(*(last - j))];
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

/* How far below the maximum, in units of the temperature, candidates reach. */
static float reach_of(const tern_sampler_params *params) {
    /* What lies deeper than this has less than a few thousandths of the probability, typically. */
    const double deep = params->top_p < 1.0F ? 9.0 : 88.0;
    const double shallow = params->min_p > 0.0F ? 0.1 - log((double)params->min_p) : deep;
    return (float)(shallow < deep ? shallow : deep);
}

/* Shares so small that a float could hold them as denormals only are left to the exact way. */
static const float least_min_p = 0x1p-64F;

static bool pick_nucleus(picking *p, uint32_t *id) {
    tern_sampler *s = p->s;
    const float bound = largest(p->lower, s->n_vocab);
    if ((s->params.min_p > 0.0F && s->params.min_p < least_min_p) ||
        !choose(p, bound - s->params.temperature * reach_of(&s->params)))
        return false;
    evaluate(p);
    double total;
    const float max = s->exact[best_of(p)];
    const shares f = share_out(p, max);
    const double deepest = (double)exp_above((p->floor - max) / s->params.temperature) * f.best;
    tern_candidates_build(s->heap, s->exact, s->ids, p->n);
    const size_t kept = keep(p, f, deepest, &total);
    return kept > 0 && draw(p, kept, tern_chacha_uniform(&s->random) * total, id);
}

/* ---- the pick -------------------------------------------------------------------------------- */

static bool pick_greedy(picking *p, uint32_t *id) {
    if (!choose(p, largest(p->lower, p->s->n_vocab)))
        return false;
    evaluate(p);
    *id = best_of(p);
    return true;
}

static bool pick_top_k(picking *p, uint32_t *id) {
    tern_sampler *s = p->s;
    if (!choose(p, kth_largest(s->p, s->params.top_k, p->lower, s->n_vocab)))
        return false;
    evaluate(p);
    const float max = s->exact[best_of(p)];
    tern_candidates_build(s->heap, s->exact, s->ids, p->n);
    *id = tern_sampler_from_top_k(s, s->exact, p->n, max);
    return true;
}

/* Whether the parameters leave out any token, so that bounds may be enough. */
static bool is_selective(const tern_sampler *s) {
    const tern_sampler_params *p = &s->params;
    return p->temperature == 0.0F || (p->top_k > 0 && p->top_k < s->n_vocab) || p->top_p < 1.0F ||
           p->min_p > 0.0F;
}

static bool pick(picking *p, uint32_t *id) {
    tern_sampler *s = p->s;
    if (!is_selective(s) || !p->source->bounds(p->source->user, &p->lower, &p->upper))
        return false;
    tern_penalties_change(&s->penalties, p->lower);
    tern_penalties_change(&s->penalties, p->upper);
    tern_sampler_forbid(s, p->lower);
    tern_sampler_forbid(s, p->upper);
    if (s->params.temperature == 0.0F)
        return pick_greedy(p, id);
    if (s->params.top_k > 0 && s->params.top_k < s->n_vocab)
        return pick_top_k(p, id);
    return pick_nucleus(p, id);
}

tern_status tern_sampler_pick_from(tern_sampler *s, const tern_logit_source *source, int32_t *token,
                                   tern_error *err) {
    if (s == NULL || source == NULL || token == NULL)
        return tern_fail(err, TERN_ERR_NULL, "sampler: NULL argument");
    picking p = {.s = s, .source = source};
    const tern_chacha random = s->random;
    uint32_t id;
    if (pick(&p, &id)) {
        *token = (int32_t)id;
        return TERN_OK;
    }
    s->random = random; /* a number that was drawn in vain */
    const float *logits;
    const tern_status status = source->all(source->user, &logits, err);
    return status == TERN_OK ? tern_sampler_pick(s, logits, token, err) : status;
}
