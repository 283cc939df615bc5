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
#include "kernels/half.h"
#include "tern/kernels.h"

enum {
    SUBS = TERN_SUPER / TERN_BLOCK,
    RUN = 16,    /* columns that share a scale in Q6_K */
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

/* How much the error of column j counts. */
static double weight_of(const float *w, int j) {
    return w != NULL ? (double)w[j] : 1.0;
}

/* Those from column `first` on. */
static const float *weights_from(const float *w, int first) {
    return w != NULL ? w + first : NULL;
}

/* ---- Q4_K and Q5_K: step * code - min ------------------------------------------------------- */

typedef struct line {
    double step, min; /* neither is negative */
} line;

/* The best codes 0..top of a sub-block under a line, and their squared error. */
static double encode_line(const float *x, const float *w, line at, int top,
                          uint8_t codes[TERN_BLOCK]) {
    const double id = inverse(at.step);
    double error = 0.0;

    for (int j = 0; j < TERN_BLOCK; j++) {
        const int code = nearest(((double)x[j] + at.min) * id, 0, top);
        const double off = at.step * code - at.min - (double)x[j];
        codes[j] = (uint8_t)code;
        error += weight_of(w, j) * off * off;
    }
    return error;
}

/* The line of least squares through given codes; its minimum is 0 where it would be negative. */
static line fit_line(const float *x, const float *w, const uint8_t codes[TERN_BLOCK]) {
    double n = 0.0, c1 = 0.0, c2 = 0.0, x1 = 0.0, xc = 0.0;
    line fit = {0.0, 0.0};

    for (int j = 0; j < TERN_BLOCK; j++) {
        const double weight = weight_of(w, j);
        n += weight;
        c1 += weight * codes[j];
        c2 += weight * (codes[j] * codes[j]);
        x1 += weight * (double)x[j];
        xc += weight * (double)x[j] * codes[j];
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

/* The line of a sub-block alone: for each guess of the step codes, the line through them. */
static line search_line(const float *x, const float *w, int top) {
    uint8_t codes[TERN_BLOCK];
    double least = 0.0; /* a minimum cannot lift weights: 0 has a code always */
    double greatest = (double)x[0];

    for (int j = 0; j < TERN_BLOCK; j++) {
        least = (double)x[j] < least ? (double)x[j] : least;
        greatest = (double)x[j] > greatest ? (double)x[j] : greatest;
    }
    line best = {(greatest - least) / top, -least};
    double best_error = encode_line(x, w, best, top, codes);
    for (int g = 0; g < GUESSES && best_error > 0.0; g++) {
        const line guess = {(greatest - least) / (top - 1 + g / 8.0), -least};
        encode_line(x, w, guess, top, codes);
        const line fit = fit_line(x, w, codes);
        const double error = encode_line(x, w, fit, top, codes);
        if (error < best_error) {
            best_error = error;
            best = fit;
        }
    }
    return best;
}

/* Integers for a line under the stored d and dmin: of the nine next to it those with least error.
 */
static void round_line(const float *x, const float *w, line at, line unit, int top, uint8_t *scale,
                       uint8_t *min) {
    const double steps = at.step * inverse(unit.step);
    const double mins = at.min * inverse(unit.min);
    uint8_t codes[TERN_BLOCK];
    double best = INFINITY;

    *scale = *min = 0;
    for (int i = 0; i < 9; i++) {
        const int s = nearest(steps + i / 3 - 1, 0, 63);
        const int m = nearest(mins + i % 3 - 1, 0, 63);
        const line rounded = {unit.step * s, unit.min * m};
        const double error = encode_line(x, w, rounded, top, codes);
        if (error < best) {
            best = error;
            *scale = (uint8_t)s;
            *min = (uint8_t)m;
        }
    }
}

/* d, dmin and the packed scales of a super-block; lines[] are the sub-blocks' as stored. */
static void put_lines(const float *x, const float *w, int top, uint8_t *block, line lines[SUBS]) {
    line largest = {0.0, 0.0};
    uint8_t scale[SUBS], min[SUBS];

    for (int s = 0; s < SUBS; s++) {
        lines[s] = search_line(x + s * TERN_BLOCK, weights_from(w, s * TERN_BLOCK), top);
        largest.step = fmax(largest.step, lines[s].step);
        largest.min = fmax(largest.min, lines[s].min);
    }
    const line unit = {put_half(largest.step / 63, block), put_half(largest.min / 63, block + 2)};
    for (int s = 0; s < SUBS; s++) {
        round_line(x + s * TERN_BLOCK, weights_from(w, s * TERN_BLOCK), lines[s], unit, top,
                   scale + s, min + s);
        lines[s] = (line){unit.step * scale[s], unit.min * min[s]};
    }
    tern_k_put_scales(scale, min, block + TERN_K_SCALES);
}

static void put_nibbles(const uint8_t codes[TERN_BLOCK], int shift, uint8_t *out) {
    for (int l = 0; l < TERN_BLOCK; l++)
        out[l] = (uint8_t)(out[l] | (codes[l] & 15) << shift);
}

void tern_encode_q4_k(const float *x, const float *w, uint8_t *block) {
    uint8_t codes[TERN_BLOCK];
    line lines[SUBS];

    memset(block, 0, 144);
    put_lines(x, w, 15, block, lines);
    for (int s = 0; s < SUBS; s++) {
        encode_line(x + s * TERN_BLOCK, NULL, lines[s], 15, codes);
        put_nibbles(codes, 4 * (s % 2), block + TERN_Q4_K_NIBBLES + s / 2 * 32);
    }
}

void tern_encode_q5_k(const float *x, const float *w, uint8_t *block) {
    uint8_t codes[TERN_BLOCK];
    uint8_t *high = block + TERN_Q5_K_HIGH;
    line lines[SUBS];

    memset(block, 0, 176);
    put_lines(x, w, 31, block, lines);
    for (int s = 0; s < SUBS; s++) {
        encode_line(x + s * TERN_BLOCK, NULL, lines[s], 31, codes);
        put_nibbles(codes, 4 * (s % 2), block + TERN_Q5_K_NIBBLES + s / 2 * 32);
        for (int l = 0; l < TERN_BLOCK; l++)
            high[l] = (uint8_t)(high[l] | codes[l] >> 4 << s);
    }
}

/* ---- Q6_K: step * code, code -32..31 --------------------------------------------------------- */

/* The best codes of a run of 16 under a step of either sign, as code + 32, and their error. */
static double encode_run(const float *x, const float *w, double step, uint8_t codes[RUN]) {
    const double id = inverse(step);
    double error = 0.0;

    for (int j = 0; j < RUN; j++) {
        const int code = nearest((double)x[j] * id, -32, 31);
        const double off = step * code - (double)x[j];
        codes[j] = (uint8_t)(code + 32);
        error += weight_of(w, j) * off * off;
    }
    return error;
}

/*
 * The step of a run alone. With the step of least squares, Σxc / Σcc, codes c leave an error of
 * Σxx - (Σxc)^2 / Σcc: the last term is to be large.
 */
static double search_run(const float *x, const float *w) {
    uint8_t codes[RUN];
    double best_gain = 0.0;
    double best = 0.0;
    double largest = 0.0;

    for (int j = 0; j < RUN; j++)
        if (fabs((double)x[j]) > fabs(largest))
            largest = (double)x[j];
    for (int g = 0; g < GUESSES; g++) {
        double xc = 0.0, c2 = 0.0;
        encode_run(x, w, largest / -(31 + g / 8.0), codes);
        for (int j = 0; j < RUN; j++) {
            const int code = codes[j] - 32;
            xc += weight_of(w, j) * (double)x[j] * code;
            c2 += weight_of(w, j) * (code * code);
        }
        if (xc * xc > best_gain * c2) {
            best_gain = xc * xc / c2;
            best = xc / c2;
        }
    }
    return best;
}

/* The integer scale of a run under the stored d: of the three next to its step the best. */
static int round_run(const float *x, const float *w, double step, double d) {
    uint8_t codes[RUN];
    double best = INFINITY;
    int scale = 0;

    for (int i = -1; i <= 1; i++) {
        const int s = nearest(step * inverse(d) + i, -128, 127);
        const double error = encode_run(x, w, d * s, codes);
        if (error < best) {
            best = error;
            scale = s;
        }
    }
    return scale;
}

/* The codes of a run, half of sub-block s. */
static void put_run(const uint8_t codes[RUN], int s, int half, uint8_t *block) {
    uint8_t *low = block + s / 4 * 64 + s % 2 * 32 + half * RUN;
    uint8_t *high = block + TERN_Q6_K_HIGH + s / 4 * 32 + half * RUN;

    for (int l = 0; l < RUN; l++) {
        low[l] = (uint8_t)(low[l] | (codes[l] & 15) << s / 2 % 2 * 4);
        high[l] = (uint8_t)(high[l] | codes[l] >> 4 << s % 4 * 2);
    }
}

void tern_encode_q6_k(const float *x, const float *w, uint8_t *block) {
    double steps[2 * SUBS];
    double largest = 0.0;
    uint8_t codes[RUN];

    memset(block, 0, 210);
    for (int r = 0; r < 2 * SUBS; r++) {
        steps[r] = search_run(x + r * RUN, weights_from(w, r * RUN));
        if (fabs(steps[r]) > fabs(largest))
            largest = steps[r];
    }
    const double d = put_half(largest / -128, block + TERN_Q6_K_D); /* int8 reaches -128 */
    for (int r = 0; r < 2 * SUBS; r++) {
        const int scale = round_run(x + r * RUN, weights_from(w, r * RUN), steps[r], d);
        block[TERN_Q6_K_SCALES + r] = (uint8_t)scale;
        encode_run(x + r * RUN, NULL, d * scale, codes);
        put_run(codes, r / 2, r % 2, block);
    }
}
