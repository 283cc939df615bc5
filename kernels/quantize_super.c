/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights from floats to K-quants. Scales and minima are found in two steps, each of which keeps
 * what has the least sum of squared errors: free ones for each sub-block alone, then, once the
 * super-block's f16 fields are known, the integers next to them.
 *
 * Sums are doubles: squares of any float are finite.
 */

#include "kernels/quantize_super.h"

#include <math.h>
#include <string.h>

#include "kernels/codes.h"
#include "kernels/facts.h"
#include "kernels/half.h"
#include "kernels/quantize_search.h"
#include "tern/kernels.h"

enum {
    SUBS = TERN_SUPER / TERN_BLOCK,
    RUNS = 2 * SUBS, /* of 16 columns that share a scale in Q6_K, Q3_K and Q2_K */
    RUN = 16,
    GUESSES = 17 /* steps that are tried: the range in levels - 1 to levels + 1, by eighths */
};

/* The integer of [least, most] that is next to v; halves go up, a NaN becomes `most`. */
static int nearest(double v, int least, int most) {
    const double up = floor(v + 0.5);

    return up < most ? (up > least ? (int)up : least) : most;
}

/* 1/step, or 0 when there is no step: then all codes are 0. */
static double inverse(double step) {
    return step != 0.0 ? 1.0 / step : 0.0;
}

/* An f16 field; returns what will be read from it. */
static double put_half(double value, uint8_t *out) {
    tern_f16_store(out, (float)value);
    return (double)tern_f16_load(out);
}

/* Columns that share a scale. */
typedef struct span {
    const float *x;
    const float *w; /* how much the error of each counts, or NULL */
    int n;
    int least, top; /* codes */
} span;

/* How much the error of column j counts. */
static double weight_of(const span *at, int j) {
    return at->w != NULL ? (double)at->w[j] : 1.0;
}

/* Span i of a super-block that has `like`'s. */
static span span_of(const float *x, const float *w, span like, int i) {
    like.x = x + i * like.n;
    like.w = w != NULL ? w + i * like.n : NULL;
    return like;
}

/* ---- Q4_K, Q5_K and Q2_K: step * code - min ------------------------------------------------- */

typedef struct line {
    double step, min; /* neither is negative */
} line;

/* The best codes of a span under a line, and their squared error. */
static double encode_line(const span *s, line at, uint8_t *codes) {
    const double id = inverse(at.step);
    double error = 0.0;

    for (int j = 0; j < s->n; j++) {
        const int code = nearest(((double)s->x[j] + at.min) * id, 0, s->top);
        const double off = at.step * code - at.min - (double)s->x[j];
        codes[j] = (uint8_t)code;
        error += weight_of(s, j) * off * off;
    }
    return error;
}

/* The line of least squares through given codes; its minimum is 0 where it would be negative. */
static line fit_line(const span *s, const uint8_t *codes) {
    double n = 0.0, c1 = 0.0, c2 = 0.0, x1 = 0.0, xc = 0.0;
    line fit = {0.0, 0.0};

    for (int j = 0; j < s->n; j++) {
        const double weight = weight_of(s, j);
        n += weight;
        c1 += weight * codes[j];
        c2 += weight * (codes[j] * codes[j]);
        x1 += weight * (double)s->x[j];
        xc += weight * (double)s->x[j] * codes[j];
    }
    /* 0 when all codes are equal; with weights nearly so, and then the line's error tells */
    const double spread = n * c2 - c1 * c1;
    if (spread > 0.0)
        fit.step = (n * xc - x1 * c1) / spread;
    fit.min = (fit.step * c1 - x1) / n;
    if (fit.min < 0.0)
        fit = (line){c2 > 0.0 ? xc / c2 : 0.0, 0.0};
    fit.step = fit.step > 0.0 ? fit.step : 0.0;
    return fit;
}

/* The line of a span alone: for each guess of the step codes, the line through them. */
static line search_line(const span *s) {
    uint8_t codes[TERN_BLOCK];
    double least = 0.0; /* a minimum cannot lift weights: 0 has a code always */
    double greatest = (double)s->x[0];

    for (int j = 0; j < s->n; j++) {
        least = (double)s->x[j] < least ? (double)s->x[j] : least;
        greatest = (double)s->x[j] > greatest ? (double)s->x[j] : greatest;
    }
    line best = {(greatest - least) / s->top, -least};
    double best_error = encode_line(s, best, codes);
    for (int g = 0; g < GUESSES && best_error > 0.0; g++) {
        const line guess = {(greatest - least) / (s->top - 1 + g / 8.0), -least};
        encode_line(s, guess, codes);
        const line fit = fit_line(s, codes);
        const double error = encode_line(s, fit, codes);
        if (error < best_error) {
            best_error = error;
            best = fit;
        }
    }
    return best;
}

/* Integers of a line under the stored d and dmin. */
typedef struct rounded {
    uint8_t scale, min;
} rounded;

/* The pair with least error of the nine next to it, up to `most`. */
static rounded round_line(const span *s, line at, line unit, int most) {
    const double steps = at.step * inverse(unit.step);
    const double mins = at.min * inverse(unit.min);
    uint8_t codes[TERN_BLOCK];
    rounded best = {0, 0};
    double least = INFINITY;

    for (int i = 0; i < 9; i++) {
        const int scale = nearest(steps + i / 3 - 1, 0, most);
        const int min = nearest(mins + i % 3 - 1, 0, most);
        const double error = encode_line(s, (line){unit.step * scale, unit.min * min}, codes);
        if (error < least) {
            least = error;
            best = (rounded){(uint8_t)scale, (uint8_t)min};
        }
    }
    return best;
}

/* The lines of `count` spans alone, and the largest step and minimum of them. */
static line search_lines(const float *x, const float *w, span like, int count, line *lines) {
    line largest = {0.0, 0.0};

    for (int i = 0; i < count; i++) {
        const span s = span_of(x, w, like, i);
        lines[i] = search_line(&s);
        largest.step = fmax(largest.step, lines[i].step);
        largest.min = fmax(largest.min, lines[i].min);
    }
    return largest;
}

/* d, dmin and the packed scales of a super-block; lines[] are the sub-blocks' as stored. */
static void put_lines(const float *x, const float *w, span like, uint8_t *block, line lines[SUBS]) {
    const line largest = search_lines(x, w, like, SUBS, lines);
    uint8_t scale[SUBS], min[SUBS];

    const line unit = {put_half(largest.step / 63, block), put_half(largest.min / 63, block + 2)};
    for (int i = 0; i < SUBS; i++) {
        const span s = span_of(x, w, like, i);
        const rounded to = round_line(&s, lines[i], unit, 63);
        scale[i] = to.scale;
        min[i] = to.min;
        lines[i] = (line){unit.step * to.scale, unit.min * to.min};
    }
    tern_k_put_scales(scale, min, block + TERN_K_SCALES);
}

static void put_nibbles(const uint8_t codes[TERN_BLOCK], int shift, uint8_t *out) {
    for (int l = 0; l < TERN_BLOCK; l++)
        out[l] = (uint8_t)(out[l] | (codes[l] & 15) << shift);
}

void tern_encode_q4_k(const float *x, const float *w, uint8_t *block) {
    const span like = {.n = TERN_BLOCK, .top = 15};
    uint8_t codes[TERN_BLOCK];
    line lines[SUBS];

    memset(block, 0, 144);
    put_lines(x, w, like, block, lines);
    for (int i = 0; i < SUBS; i++) {
        const span s = span_of(x, NULL, like, i);
        encode_line(&s, lines[i], codes);
        put_nibbles(codes, 4 * (i % 2), block + TERN_Q4_K_NIBBLES + i / 2 * 32);
    }
}

void tern_encode_q5_k(const float *x, const float *w, uint8_t *block) {
    const span like = {.n = TERN_BLOCK, .top = 31};
    uint8_t codes[TERN_BLOCK];
    uint8_t *high = block + TERN_Q5_K_HIGH;
    line lines[SUBS];

    memset(block, 0, 176);
    put_lines(x, w, like, block, lines);
    for (int i = 0; i < SUBS; i++) {
        const span s = span_of(x, NULL, like, i);
        encode_line(&s, lines[i], codes);
        put_nibbles(codes, 4 * (i % 2), block + TERN_Q5_K_NIBBLES + i / 2 * 32);
        for (int l = 0; l < TERN_BLOCK; l++)
            high[l] = (uint8_t)(high[l] | codes[l] >> 4 << i);
    }
}

/* ---- Q2_K ------------------------------------------------------------------------------------ */

/* Two bits of a run of 16 in their place of 64 bytes; r counts runs. */
static void put_twos(const uint8_t codes[RUN], int r, uint8_t *twos) {
    uint8_t *at = twos + r / 8 * 32 + r % 2 * RUN;

    for (int l = 0; l < RUN; l++)
        at[l] = (uint8_t)(at[l] | (codes[l] & 3) << r / 2 % 4 * 2);
}

void tern_encode_q2_k(const float *x, const float *w, uint8_t *block) {
    const span like = {.n = RUN, .top = 3};
    line lines[RUNS];
    uint8_t codes[TERN_BLOCK];

    memset(block, 0, 84);
    const line largest = search_lines(x, w, like, RUNS, lines);
    const line unit = {put_half(largest.step / 15, block + TERN_Q2_K_D),
                       put_half(largest.min / 15, block + TERN_Q2_K_D + 2)};
    for (int r = 0; r < RUNS; r++) {
        const span weighed = span_of(x, w, like, r), alike = span_of(x, NULL, like, r);
        const rounded to = round_line(&weighed, lines[r], unit, 15);
        block[r] = (uint8_t)(to.scale | to.min << 4);
        encode_line(&alike, (line){unit.step * to.scale, unit.min * to.min}, codes);
        put_twos(codes, r, block + TERN_Q2_K_TWOS);
    }
}

/* ---- Q6_K and Q3_K: step * code, codes of either sign ---------------------------------------- */

/* The best codes of a run under a step of either sign, less the least, and their error. */
static double encode_run(const span *s, double step, uint8_t codes[RUN]) {
    const double id = inverse(step);
    double error = 0.0;

    for (int j = 0; j < s->n; j++) {
        const int code = nearest((double)s->x[j] * id, s->least, s->top);
        const double off = step * code - (double)s->x[j];
        codes[j] = (uint8_t)(code - s->least);
        error += weight_of(s, j) * off * off;
    }
    return error;
}

static double largest_of(const span *s) {
    double largest = 0.0;

    for (int j = 0; j < s->n; j++)
        if (fabs((double)s->x[j]) > fabs(largest))
            largest = (double)s->x[j];
    return largest;
}

/*
 * The step of a run alone. With the step of least squares, Σxc / Σcc, codes c leave an error of
 * Σxx - (Σxc)^2 / Σcc: the last term is to be large.
 */
static double search_run(const span *s) {
    const double largest = largest_of(s);
    uint8_t codes[RUN];
    double best_gain = 0.0;
    double best = 0.0;

    for (int g = 0; g < GUESSES; g++) {
        double xc = 0.0, c2 = 0.0;
        encode_run(s, largest / (s->least + 1 - g / 8.0), codes);
        for (int j = 0; j < RUN; j++) {
            const int code = codes[j] + s->least;
            xc += weight_of(s, j) * (double)s->x[j] * code;
            c2 += weight_of(s, j) * (code * code);
        }
        if (xc * xc > best_gain * c2) {
            best_gain = xc * xc / c2;
            best = xc / c2;
        }
    }
    return best;
}

/* The integer scale of a run under the stored d, from -limit on: of the three next to its step the
 * best. */
static int round_run(const span *s, double step, double d, int limit) {
    uint8_t codes[RUN];
    double best = INFINITY;
    int scale = 0;

    for (int i = -1; i <= 1; i++) {
        const int next = nearest(step * inverse(d) + i, -limit, limit - 1);
        const double error = encode_run(s, d * next, codes);
        if (error < best) {
            best = error;
            scale = next;
        }
    }
    return scale;
}

/* Steps of all runs alone; the largest becomes -limit. Returns the d that is stored at `half`. */
static double search_runs(const float *x, const float *w, span like, int limit, uint8_t *half,
                          double steps[RUNS]) {
    double largest = 0.0;

    for (int r = 0; r < RUNS; r++) {
        const span s = span_of(x, w, like, r);
        steps[r] = search_run(&s);
        if (fabs(steps[r]) > fabs(largest))
            largest = steps[r];
    }
    return put_half(largest / -limit, half);
}

/* A format of runs with signed scales: its codes, and where its fields are. */
typedef struct runs_form {
    span like;
    int limit; /* scales are -limit .. limit - 1 */
    size_t bytes, half_at;
    void (*put)(int scale, const uint8_t codes[RUN], int r, uint8_t *block);
} runs_form;

static void put_q6_k(int scale, const uint8_t codes[RUN], int r, uint8_t *block) {
    const int s = r / 2;
    uint8_t *low = block + s / 4 * 64 + s % 2 * 32 + r % 2 * RUN;
    uint8_t *high = block + TERN_Q6_K_HIGH + s / 4 * 32 + r % 2 * RUN;

    block[TERN_Q6_K_SCALES + r] = (uint8_t)scale;
    for (int l = 0; l < RUN; l++) {
        low[l] = (uint8_t)(low[l] | (codes[l] & 15) << s / 2 % 2 * 4);
        high[l] = (uint8_t)(high[l] | codes[l] >> 4 << s % 4 * 2);
    }
}

static void put_q3_k(int scale, const uint8_t codes[RUN], int r, uint8_t *block) {
    uint8_t *high = block + TERN_Q3_K_HIGH + r % 2 * RUN;

    tern_q3_k_put_scale(block, (size_t)r, scale);
    put_twos(codes, r, block + TERN_Q3_K_TWOS);
    for (int l = 0; l < RUN; l++)
        high[l] = (uint8_t)(high[l] | codes[l] >> 2 << r / 2);
}

static void encode_runs(const runs_form *form, const float *x, const float *w, uint8_t *block) {
    double steps[RUNS];
    uint8_t codes[RUN];

    memset(block, 0, form->bytes);
    const double d = search_runs(x, w, form->like, form->limit, block + form->half_at, steps);
    for (int r = 0; r < RUNS; r++) {
        const span weighed = span_of(x, w, form->like, r), alike = span_of(x, NULL, form->like, r);
        const int scale = round_run(&weighed, steps[r], d, form->limit);
        encode_run(&alike, d * scale, codes);
        form->put(scale, codes, r, block);
    }
}

void tern_encode_q6_k(const float *x, const float *w, uint8_t *block) {
    static const runs_form q6_k = {
        {.n = RUN, .least = -32, .top = 31}, 128, 210, TERN_Q6_K_D, put_q6_k};
    encode_runs(&q6_k, x, w, block);
}

void tern_encode_q3_k(const float *x, const float *w, uint8_t *block) {
    static const runs_form q3_k = {
        {.n = RUN, .least = -4, .top = 3}, 32, 110, TERN_Q3_K_D, put_q3_k};
    encode_runs(&q3_k, x, w, block);
}

/* ---- IQ4_XS: step * level -------------------------------------------------------------------- */

/* The integer scale of a sub-block under the stored d: of the three next to its step the best. */
static int round_levels(const tern_search_run *run, double step, double d) {
    double best = INFINITY;
    int scale = 0;

    for (int i = -1; i <= 1; i++) {
        const int next = nearest(step * inverse(d) + i, -32, 31);
        const double error = tern_levels_error(run, d * next);
        if (error < best) {
            best = error;
            scale = next;
        }
    }
    return scale;
}

void tern_encode_iq4_xs(const float *x, const float *w, uint8_t *block) {
    const tern_level_list list = tern_sort_levels(tern_format_facts_of(TERN_FORMAT_IQ4_XS)->levels);
    tern_search_run run = {.n = TERN_BLOCK, .list = &list};
    double steps[SUBS], largest = 0.0;

    memset(block, 0, 136);
    for (int s = 0; s < SUBS; s++) {
        run.x = x + s * TERN_BLOCK;
        run.w = w != NULL ? w + s * TERN_BLOCK : NULL;
        steps[s] = tern_search_step(&run);
        if (fabs(steps[s]) > fabs(largest))
            largest = steps[s];
    }
    const double d = put_half(largest / -32, block);
    for (int s = 0; s < SUBS; s++) {
        run.x = x + s * TERN_BLOCK;
        run.w = w != NULL ? w + s * TERN_BLOCK : NULL;
        const int scale = round_levels(&run, steps[s], d);
        tern_iq4_xs_put_scale(block, (size_t)s, scale);
        tern_put_levels(&list, run.x, inverse(d * scale),
                        block + TERN_IQ4_XS_NIBBLES + s * TERN_BLOCK / 2);
    }
}
