/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 16 or 32 columns that share a factor are a span here. First each span alone gets the step of
 * least error, whatever a block can store; then the block's d follows from the largest one, and the
 * odd factors next to the steps are tried with the d that is stored.
 */

#include "kernels/quantize_grids.h"

#include <math.h>
#include <string.h>

#include "kernels/facts.h"
#include "kernels/half.h"

enum { RUN = 8 /* weights of the longest run */, GUESSES = 15, REFINED = 2 };

/* ---- tables ---------------------------------------------------------------------------------- */

static void split(const tern_grid *g, unsigned number, uint8_t digits[RUN]) {
    for (int j = 0; j < g->run; j++, number /= g->base)
        digits[j] = (uint8_t)(number % g->base);
}

static int distance(const tern_grid *g, const uint8_t *a, const uint8_t *b) {
    int sum = 0;
    for (int j = 0; j < g->run; j++)
        sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sum;
}

/* The entries next to digits that are none, the nearest first, of equally near ones the first. */
static void find_near(tern_grid_search *s, const tern_grid *g, unsigned number) {
    int far[TERN_GRID_NEAR];
    uint8_t digits[RUN];
    size_t n = 0;
    split(g, number, digits);
    for (int e = 0; e < g->count; e++) {
        const int d = distance(g, digits, s->digits[e]);
        if (n == TERN_GRID_NEAR && d >= far[n - 1])
            continue;
        size_t at = n < TERN_GRID_NEAR ? n++ : n - 1;
        for (; at > 0 && far[at - 1] > d; at--) {
            far[at] = far[at - 1];
            s->near[number][at] = s->near[number][at - 1];
        }
        far[at] = d;
        s->near[number][at] = (int16_t)e;
    }
}

void tern_grid_search_init(tern_grid_search *s, tern_format format) {
    const tern_grid *g = tern_grid_of(format);
    unsigned all = 1;
    s->format = format;
    memset(s->is_entry, 0, sizeof s->is_entry);
    for (int j = 0; j < g->run; j++)
        all *= g->base;
    for (int e = 0; e < g->count; e++) {
        split(g, g->entries[e], s->digits[e]);
        s->is_entry[g->entries[e]] = true;
        s->near[g->entries[e]][0] = (int16_t)e;
    }
    for (unsigned number = 0; number < all; number++)
        if (!s->is_entry[number])
            find_near(s, g, number);
}

/* ---- what is searched ------------------------------------------------------------------------ */

/*
 * A block on its way. Where a column has a sign of its own, `size` is x without it, and may be
 * below 0 where the sign is not free to be that of x. Where eight columns are moved together, there
 * are two lists of levels: moved down, and up.
 */
typedef struct work {
    const tern_grid_search *s;
    const tern_grid *g;
    const int8_t *levels; /* of codes */
    const float *x, *w;
    double size[TERN_GRID_BLOCK];
    bool negative[TERN_GRID_BLOCK];
    int lists;
    double list[2][8];              /* levels of digits */
    uint8_t codes[TERN_GRID_BLOCK]; /* found last */
} work;

/* Seven signs are stored of eight, and an even number is negative: the weight that counts least
 * gets the wrong sign if it must be. */
static void choose_signs(work *k, size_t eight) {
    const float *x = k->x + 8 * eight, *w = k->w + 8 * eight;
    double least = INFINITY;
    size_t at = 0;
    bool odd = false;
    for (size_t j = 0; j < 8; j++) {
        const double cost = (double)w[j] * x[j] * x[j];
        k->negative[8 * eight + j] = x[j] < 0.0f;
        k->size[8 * eight + j] = fabs((double)x[j]);
        odd = odd != (x[j] < 0.0f);
        if (cost < least) {
            least = cost;
            at = j;
        }
    }
    if (odd && k->g->signs.bits == 7) {
        k->negative[8 * eight + at] = !k->negative[8 * eight + at];
        k->size[8 * eight + at] = -k->size[8 * eight + at];
    }
}

static void begin(work *k, const tern_grid_search *s, const float *x, const float *w) {
    const tern_grid *g = tern_grid_of(s->format);
    k->s = s;
    k->g = g;
    k->levels = tern_format_facts_of(s->format)->levels;
    k->x = x;
    k->w = w;
    k->lists = g->signs.bits == 1 ? 2 : 1;
    for (int list = 0; list < k->lists; list++)
        for (int digit = 0; digit < g->base; digit++)
            k->list[list][digit] = k->levels[k->lists == 2 ? 2 * digit + list : g->base + digit];
    for (size_t i = 0; i < TERN_GRID_BLOCK && k->lists == 2; i++)
        k->size[i] = (double)x[i];
    for (size_t eight = 0; eight < TERN_GRID_BLOCK / 8 && k->lists == 1; eight++)
        choose_signs(k, eight);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static unsigned nearest_digit(const work *k, const double *list, double level) {
    unsigned digit = 0;
    while (digit + 1u < k->g->base && level > (list[digit] + list[digit + 1]) / 2)
        digit++;
    return digit;
}

static double error_of(const work *k, size_t first, const double *list, double step,
                       const uint8_t *digits) {
    double error = 0.0;
    for (size_t j = 0; j < k->g->run; j++) {
        const double off = step * list[digits[j]] - k->size[first + j];
        error += (double)k->w[first + j] * off * off;
    }
    return error;
}

/* The best entry for the run from column `first` under a step: that of the digits next to each
 * weight if they are one, else one of those next to them. Returns its error. */
static double find_entry(const work *k, size_t first, const double *list, double step, int *best) {
    const double id = step > 0.0 ? 1.0 / step : 0.0;
    unsigned number = 0, power = 1;
    for (size_t j = 0; j < k->g->run; j++, power *= k->g->base)
        number += power * nearest_digit(k, list, k->size[first + j] * id);
    const int n = k->s->is_entry[number] ? 1 : TERN_GRID_NEAR;
    double least = INFINITY;
    for (int i = 0; i < n; i++) {
        const int e = k->s->near[number][i];
        const double error = error_of(k, first, list, step, k->s->digits[e]);
        if (error < least) {
            least = error;
            *best = e;
        }
    }
    return least;
}

/* Encodes `n` columns, whole runs, with one list of levels. */
static double encode_list(work *k, size_t first, size_t n, int list, double step, uint8_t *codes) {
    double error = 0.0;
    for (size_t at = 0; at < n; at += k->g->run) {
        int e = 0;
        error += find_entry(k, first + at, k->list[list], step, &e);
        for (size_t j = 0; j < k->g->run; j++) {
            const uint8_t digit = k->s->digits[e][j];
            codes[at + j] = (uint8_t)(k->lists == 2                 ? 2 * digit + list
                                      : k->negative[first + at + j] ? k->g->base - 1 - digit
                                                                    : k->g->base + digit);
        }
    }
    return error;
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* The codes of a span under a step, in k->codes, and their error. */
static double encode_span(work *k, size_t first, double step) {
    const size_t part = k->lists == 2 ? k->g->sign_span : k->g->scale_span;
    double error = 0.0;
    for (size_t at = first; at < first + k->g->scale_span; at += part) {
        uint8_t other[32];
        double least = encode_list(k, at, part, 0, step, k->codes + at);
        if (k->lists == 2) {
            const double up = encode_list(k, at, part, 1, step, other);
            if (up < least)
                memcpy(k->codes + at, other, part);
            least = fmin(up, least);
        }
        error += least;
    }
    return error;
}

/* Sums over the levels v of a span, for least squares: of w x v and of w v v. */
static void add_squares(const work *k, size_t first, double factor, double *xv, double *vv) {
    for (size_t j = first; j < first + k->g->scale_span; j++) {
        const double v = factor * k->levels[k->codes[j]];
        *xv += (double)k->w[j] * (double)k->x[j] * v;
        *vv += (double)k->w[j] * v * v;
    }
}

/* The step of a span alone: with that of least squares, levels v leave an error of
 * Σwxx - (Σwxv)^2 / Σwvv, so the last term is to be large. */
static double search_span(work *k, size_t first) {
    const double highest = k->list[k->lists - 1][k->g->base - 1];
    double largest = 0.0, best = 0.0, best_gain = 0.0;
    for (size_t j = first; j < first + k->g->scale_span; j++)
        largest = fabs((double)k->x[j]) > largest ? fabs((double)k->x[j]) : largest;
    for (int guess = 0; guess < GUESSES && largest > 0.0; guess++) {
        const double reach = k->lists == 2 ? 0.7 + 0.2 * guess : 0.5 + 0.09 * guess;
        double xv = 0.0, vv = 0.0;
        (void)encode_span(k, first, largest / (reach * highest));
        add_squares(k, first, 1.0, &xv, &vv);
        if (xv > 0.0 && xv * xv > best_gain * vv) {
            best_gain = xv * xv / vv;
            best = xv / vv;
        }
    }
    return best;
}

/* The number that stands for the factor of a span, `unit` being d * unit as stored: of the three
 * next to its step the best. */
static unsigned round_span(work *k, size_t first, double step, double unit) {
    const int factors = 1 << k->g->scales.bits;
    const double middle = unit > 0.0 ? (step / unit - 1) / 2 : 0.0;
    const int next = (int)floor(fmin(middle, factors - 1) + 0.5);
    double least = INFINITY;
    int best = 0;
    for (int n = next > 0 ? next - 1 : 0; n <= next + 1 && n < factors; n++) {
        const double error = encode_span(k, first, unit * (2 * n + 1));
        if (error < least) {
            least = error;
            best = n;
        }
    }
    return (unsigned)best;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* d as it is stored. */
static double put_d(const work *k, double d, uint8_t *block) {
    const uint16_t half = tern_f32_to_f16((float)d);
    tern_grid_put_d(k->s->format, half, block);
    return (double)tern_f16_to_f32(half);
}

/* The codes of all spans under d * unit, and the d of least squares for them. */
static double refit(work *k, double d, double unit, const uint8_t *factors) {
    const size_t span = k->g->scale_span;
    double xv = 0.0, vv = 0.0;
    for (size_t first = 0; first < TERN_GRID_BLOCK; first += span) {
        const double factor = factors[first / 16] * unit;
        (void)encode_span(k, first, d * factor);
        add_squares(k, first, factor, &xv, &vv);
    }
    return vv > 0.0 && xv > 0.0 ? xv / vv : 0.0;
}

bool tern_encode_grid(const tern_grid_search *s, const float *x, const float *w, uint8_t *block) {
    const double unit = (double)tern_format_facts_of(s->format)->unit;
    double steps[TERN_GRID_HALVES], largest = 0.0;
    uint8_t factors[TERN_GRID_HALVES] = {0};
    work k;
    begin(&k, s, x, w);
    const size_t span = k.g->scale_span;
    memset(block, 0, tern_format_describe(s->format)->block_bytes);
    for (size_t i = 0; i < TERN_GRID_BLOCK / span; i++) {
        steps[i] = search_span(&k, i * span);
        largest = fmax(largest, steps[i]);
    }
    double d = put_d(&k, largest / (unit * (2 * (1 << k.g->scales.bits) - 1)), block);
    const bool fits = isfinite(d);
    for (int i = 0; i < REFINED && fits; i++) {
        for (size_t at = 0; at < TERN_GRID_BLOCK; at += 16) {
            const unsigned n = at % span > 0 ? 0 : round_span(&k, at, steps[at / span], d * unit);
            factors[at / 16] = (uint8_t)(at % span > 0 ? factors[at / 16 - 1] : 2 * n + 1);
        }
        d = put_d(&k, refit(&k, d, unit, factors), block);
    }
    if (!fits || !isfinite(d))
        return false;
    (void)refit(&k, d, unit, factors);
    tern_grid_write(k.g, factors, k.codes, block);
    return true;
}
