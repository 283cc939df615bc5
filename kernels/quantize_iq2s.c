/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Halves of 16 columns share a scale. First each half alone gets the scale of least error, whatever
 * a block can store; then the block's d follows from the largest one, and the odd factors next to
 * the scales are tried with the d that is stored.
 */

#include "kernels/quantize_iq2s.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"

enum { RUN = 8, HALF = 16, GUESSES = 15, FACTORS = 16, REFINED = 2 };

static const uint8_t LEVELS[3] = {8, 25, 43};

/* ---- the grid ------------------------------------------------------------------------------ */

static void levels_of(unsigned code, uint8_t levels[RUN]) {
    for (int j = 0; j < RUN; j++, code /= 3)
        levels[j] = LEVELS[code % 3];
}

static int distance(const uint8_t a[RUN], const uint8_t b[RUN]) {
    int sum = 0;
    for (int j = 0; j < RUN; j++)
        sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sum;
}

/* The entries next to a code, the nearest first, of equally near ones the first. */
static void find_near(tern_iq2s_search *s, unsigned code) {
    int far[TERN_IQ2S_NEAR];
    uint8_t levels[RUN];
    size_t n = 0;
    levels_of(code, levels);
    for (int e = 0; e < TERN_IQ2S_ENTRIES; e++) {
        const int d = distance(levels, s->levels[e]);
        if (n == TERN_IQ2S_NEAR && d >= far[n - 1])
            continue;
        size_t at = n < TERN_IQ2S_NEAR ? n++ : n - 1;
        for (; at > 0 && far[at - 1] > d; at--) {
            far[at] = far[at - 1];
            s->near[code][at] = s->near[code][at - 1];
        }
        far[at] = d;
        s->near[code][at] = (int16_t)e;
    }
}

void tern_iq2s_search_init(tern_iq2s_search *s) {
    uint16_t grid[TERN_IQ2S_ENTRIES];
    tern_iq2s_grid(grid);
    memset(s->entry, 0xff, sizeof s->entry);
    for (int e = 0; e < TERN_IQ2S_ENTRIES; e++) {
        levels_of(grid[e], s->levels[e]);
        s->entry[grid[e]] = (int16_t)e;
    }
    for (unsigned code = 0; code < TERN_IQ2S_CODES; code++)
        if (s->entry[code] < 0)
            find_near(s, code);
}

/* ---- runs and halves ----------------------------------------------------------------------- */

static double error_of(const float *x, const float *w, double step, const uint8_t levels[RUN]) {
    double error = 0.0;
    for (int j = 0; j < RUN; j++) {
        const double off = step * levels[j] - fabs((double)x[j]);
        error += (double)w[j] * off * off;
    }
    return error;
}

/* The entry for a run under a step: the level next to each weight, if the grid has them together,
 * else the best of the entries next to these. */
static int find_entry(const tern_iq2s_search *s, const float *x, const float *w, double step) {
    const double id = step > 0.0 ? 1.0 / step : 0.0;
    unsigned code = 0, power = 1;
    for (int j = 0; j < RUN; j++, power *= 3) {
        const double level = fabs((double)x[j]) * id;
        code += power * (level < 16.5 ? 0 : level < 34.0 ? 1 : 2);
    }
    if (s->entry[code] >= 0)
        return s->entry[code];
    int best = s->near[code][0];
    double least = INFINITY;
    for (int i = 0; i < TERN_IQ2S_NEAR; i++) {
        const int e = s->near[code][i];
        const double error = error_of(x, w, step, s->levels[e]);
        if (error < least) {
            least = error;
            best = e;
        }
    }
    return best;
}

/* The entries of a half under a step, and their error. */
static double encode_half(const tern_iq2s_search *s, const float *x, const float *w, double step,
                          int entries[2]) {
    double error = 0.0;
    for (int r = 0; r < 2; r++) {
        entries[r] = find_entry(s, x + r * RUN, w + r * RUN, step);
        error += error_of(x + r * RUN, w + r * RUN, step, s->levels[entries[r]]);
    }
    return error;
}

/* Sums over the levels v of a half, for least squares: of w x v and of w v v. */
static void add_squares(const tern_iq2s_search *s, const float *x, const float *w,
                        const int entries[2], double factor, double *xv, double *vv) {
    for (int j = 0; j < HALF; j++) {
        const double v = factor * s->levels[entries[j / RUN]][j % RUN];
        *xv += (double)w[j] * fabs((double)x[j]) * v;
        *vv += (double)w[j] * v * v;
    }
}

/* The step of a half alone: with that of least squares, levels v leave an error of
 * Σwxx - (Σwxv)^2 / Σwvv, so the last term is to be large. */
static double search_half(const tern_iq2s_search *s, const float *x, const float *w) {
    double largest = 0.0, best = 0.0, best_gain = 0.0;
    int entries[2];
    for (int j = 0; j < HALF; j++) {
        const double size = fabs((double)x[j]);
        largest = size > largest ? size : largest; /* fmax crashes gcc 12 for aarch64 */
    }
    for (int g = 0; g < GUESSES && largest > 0.0; g++) {
        double xv = 0.0, vv = 0.0;
        (void)encode_half(s, x, w, largest / (22 + 4 * g), entries);
        add_squares(s, x, w, entries, 1.0, &xv, &vv);
        if (xv * xv > best_gain * vv) {
            best_gain = xv * xv / vv;
            best = xv / vv;
        }
    }
    return best;
}

/* The nibble of a half under the stored d: of the three next to its step the best. */
static int round_half(const tern_iq2s_search *s, const float *x, const float *w, double step,
                      double d) {
    const double middle = d > 0.0 ? (step * 8 / d - 1) / 2 : 0.0;
    const int next = (int)floor(fmin(middle, FACTORS - 1) + 0.5);
    double least = INFINITY;
    int best = 0, entries[2];
    for (int n = next > 0 ? next - 1 : 0; n <= next + 1 && n < FACTORS; n++) {
        const double error = encode_half(s, x, w, d * (2 * n + 1) / 8, entries);
        if (error < least) {
            least = error;
            best = n;
        }
    }
    return best;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static double put_d(double d, uint8_t *block) {
    tern_f16_store(block, (float)d);
    return (double)tern_f16_load(block);
}

static void put_run(int entry, const float *x, size_t run, uint8_t *block) {
    uint8_t *high = &block[TERN_IQ2S_HIGH_AT + run / 4];
    unsigned signs = 0;
    for (int j = 0; j < RUN; j++)
        signs |= (x[j] < 0.0f ? 1u : 0u) << j;
    block[TERN_IQ2S_LOW_AT + run] = (uint8_t)(entry & 255);
    *high = (uint8_t)(*high | entry >> 8 << 2 * (run % 4));
    block[TERN_IQ2S_SIGNS_AT + run] = (uint8_t)signs;
}

/* The d of least squares for the entries that another d gives. */
static double refit(const tern_iq2s_search *s, const float *x, const float *w, double d,
                    const int nibbles[TERN_IQ2S_HALVES]) {
    double xv = 0.0, vv = 0.0;
    int entries[2];
    for (int h = 0; h < TERN_IQ2S_HALVES; h++) {
        const double factor = (2 * nibbles[h] + 1) / 8.0;
        (void)encode_half(s, x + h * HALF, w + h * HALF, d * factor, entries);
        add_squares(s, x + h * HALF, w + h * HALF, entries, factor, &xv, &vv);
    }
    return vv > 0.0 ? xv / vv : 0.0;
}

bool tern_encode_iq2_s(const tern_iq2s_search *s, const float *x, const float *w, uint8_t *block) {
    double steps[TERN_IQ2S_HALVES], largest = 0.0;
    int nibbles[TERN_IQ2S_HALVES] = {0}, entries[2];
    memset(block, 0, TERN_IQ2S_BYTES);
    for (int h = 0; h < TERN_IQ2S_HALVES; h++) {
        steps[h] = search_half(s, x + h * HALF, w + h * HALF);
        largest = fmax(largest, steps[h]);
    }
    double d = put_d(largest * 8 / (2 * FACTORS - 1), block);
    const bool fits = isfinite(d);
    for (int i = 0; i < REFINED && fits; i++) {
        for (int h = 0; h < TERN_IQ2S_HALVES; h++)
            nibbles[h] = round_half(s, x + h * HALF, w + h * HALF, steps[h], d);
        d = put_d(refit(s, x, w, d, nibbles), block);
    }
    for (int h = 0; h < TERN_IQ2S_HALVES; h++) {
        const int n = nibbles[h];
        uint8_t *scales = &block[TERN_IQ2S_SCALES_AT + h / 2];
        (void)encode_half(s, x + h * HALF, w + h * HALF, d * (2 * n + 1) / 8, entries);
        *scales = (uint8_t)(*scales | n << 4 * (h % 2));
        put_run(entries[0], x + h * HALF, 2 * (size_t)h, block);
        put_run(entries[1], x + h * HALF + RUN, 2 * (size_t)h + 1, block);
    }
    return fits && isfinite(d);
}
