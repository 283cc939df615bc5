/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number of scales is tried. Each gives codes c, and codes give another scale, that of least
 * squares, which leaves an error of Σwxx - (Σwxc)^2 / Σwcc: the best one is where the last term is
 * largest. It is rounded to f16, and refined with the codes that it gives then.
 */

#include "kernels/quantize_search.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"

enum { GUESSES = 32, REFINED = 2 };

/* Guesses go from a range a tenth too wide to one of a quarter, where few columns are cut. */
static const double WIDEST = 1.1, NARROWER = 0.955;

/* The best scale so far. */
typedef struct choice {
    double gain, scale; /* before it is rounded */
    int zero;
} choice;

static double inverse(double scale) {
    return scale != 0.0 ? 1.0 / scale : 0.0;
}

/* The value of the next code, in scales. */
static double level_of(const tern_search_run *run, size_t j, double id, int zero) {
    const double code = (double)run->x[j] * id + zero + 0.5;
    const double most = run->levels - 1;
    return (code < 0.0 ? 0 : code > most ? most : (int)code) - zero;
}

/* The scale of least squares for the codes that another one gives; 0 where they are all zero. */
static double refit(const tern_search_run *run, int zero, double scale, double *gain) {
    const double id = inverse(scale);
    double xc = 0.0, cc = 0.0;
    for (size_t j = 0; j < run->n; j++) {
        const double c = level_of(run, j, id, zero), wc = (double)run->w[j] * c;
        xc += (double)run->x[j] * wc;
        cc += c * wc;
    }
    *gain = cc > 0.0 ? xc * xc / cc : 0.0;
    return cc > 0.0 ? xc / cc : 0.0;
}

static void consider(const tern_search_run *run, int zero, double guess, choice *best) {
    double gain;
    const double scale = refit(run, zero, guess, &gain);
    if (gain > best->gain)
        *best = (choice){.gain = gain, .scale = scale, .zero = zero};
}

static double error_of(const tern_search_run *run, int zero, double scale) {
    const double id = inverse(scale);
    double error = 0.0;
    for (size_t j = 0; j < run->n; j++) {
        const double off = scale * level_of(run, j, id, zero) - (double)run->x[j];
        error += (double)run->w[j] * off * off;
    }
    return error;
}

/* The f16 of the best scale, or of one that codes from it ask for, whichever has less error; that
 * of a scale that is too large is infinite. */
static float store(const tern_search_run *run, const choice *best, uint8_t half[2]) {
    double least = INFINITY, scale = best->scale, gain;
    tern_f16_store(half, (float)scale);
    for (int i = 0; i <= REFINED && isfinite(tern_f16_load(half)); i++) {
        uint8_t stored[2];
        tern_f16_store(stored, (float)scale);
        scale = (double)tern_f16_load(stored);
        const double error = error_of(run, best->zero, scale);
        if (error < least) {
            least = error;
            memcpy(half, stored, sizeof stored);
        }
        scale = refit(run, best->zero, scale, &gain);
    }
    return tern_f16_load(half);
}

float tern_search_scale(const tern_search_run *run, int zero, uint8_t half[2]) {
    choice best = {.gain = 0.0, .zero = zero};
    double farthest = 0.0, narrowed = WIDEST;
    for (size_t j = 0; j < run->n; j++)
        if (fabs((double)run->x[j]) > fabs(farthest))
            farthest = (double)run->x[j];
    consider(run, zero, farthest / -zero, &best);
    for (int g = 0; g < GUESSES; g++, narrowed *= NARROWER)
        consider(run, zero, narrowed * farthest / -zero, &best);
    return store(run, &best, half);
}

float tern_search_affine(const tern_search_run *run, int *zero, uint8_t half[2]) {
    choice best = {.gain = 0.0, .zero = 0};
    double least = 0.0, most = 0.0, narrowed = WIDEST;
    const int top = run->levels - 1;
    for (size_t j = 0; j < run->n; j++) {
        least = (double)run->x[j] < least ? (double)run->x[j] : least;
        most = (double)run->x[j] > most ? (double)run->x[j] : most;
    }
    const int at = (int)(0.5 - least * inverse((most - least) / top)); /* 0 .. top */
    consider(run, at, (most - least) / top, &best);
    for (int g = 0; g < GUESSES; g++, narrowed *= NARROWER)
        for (int z = at > 0 ? at - 1 : 0; z <= at + 1 && z <= top; z++)
            consider(run, z, narrowed * (most - least) / top, &best);
    *zero = best.zero;
    return store(run, &best, half);
}
