/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number of scales is tried. Each gives codes c, and codes give another scale, that of least
 * squares, which leaves an error of Σwxx - (Σwxc)^2 / Σwcc: the best one is where the last term is
 * largest. It is rounded to f16, and refined with the codes that it gives then.
 */

#include "kernels/quantize_search.h"

#include <math.h>
#include <stdbool.h>
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

/* ---- levels -------------------------------------------------------------------------------- */

tern_level_list tern_sort_levels(const int8_t levels[16]) {
    tern_level_list list;
    for (int code = 0; code < 16; code++) {
        int place = code;
        for (; place > 0 && list.level[place - 1] > levels[code]; place--) {
            list.level[place] = list.level[place - 1];
            list.code[place] = list.code[place - 1];
        }
        const bool again = place > 0 && list.level[place - 1] == levels[code];
        list.level[place] = levels[code];
        list.code[place] = again ? list.code[place - 1] : (uint8_t)code;
    }
    for (int i = 0; i < 15; i++)
        list.middle[i] = 0.5f * (float)(list.level[i] + list.level[i + 1]);
    return list;
}

size_t tern_nearest_level(const tern_level_list *list, float v) {
    size_t place = 0;
    for (int i = 0; i < 15; i++)
        place += v > list->middle[i];
    return place;
}

/* ---- search -------------------------------------------------------------------------------- */

/* The value of the next code, in scales. */
static double level_of(const tern_search_run *run, size_t j, double id, int zero) {
    if (run->list != NULL)
        return run->list->level[tern_nearest_level(run->list, (float)((double)run->x[j] * id))];
    const double code = (double)run->x[j] * id + zero + 0.5;
    const double most = run->levels - 1;
    return (code < 0.0 ? 0 : code > most ? most : (int)code) - zero;
}

static double weight_of(const tern_search_run *run, size_t j) {
    return run->w != NULL ? (double)run->w[j] : 1.0;
}

/* The scale of least squares for the codes that another one gives; 0 where they are all zero. */
static double refit(const tern_search_run *run, int zero, double scale, double *gain) {
    const double id = inverse(scale);
    double xc = 0.0, cc = 0.0;
    for (size_t j = 0; j < run->n; j++) {
        const double c = level_of(run, j, id, zero), wc = weight_of(run, j) * c;
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
        error += weight_of(run, j) * off * off;
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

static double farthest_of(const tern_search_run *run) {
    double farthest = 0.0;
    for (size_t j = 0; j < run->n; j++)
        if (fabs((double)run->x[j]) > fabs(farthest))
            farthest = (double)run->x[j];
    return farthest;
}

/* The scale that makes the farthest value the level `end`, and guesses around it. */
static void consider_end(const tern_search_run *run, int zero, int end, choice *best) {
    const double whole = farthest_of(run) / end;
    double narrowed = WIDEST;
    consider(run, zero, whole, best);
    for (int g = 0; g < GUESSES; g++, narrowed *= NARROWER)
        consider(run, zero, narrowed * whole, best);
}

float tern_search_scale(const tern_search_run *run, int zero, uint8_t half[2]) {
    choice best = {.gain = 0.0, .zero = zero};
    consider_end(run, zero, -zero, &best);
    return store(run, &best, half);
}

static choice search_levels(const tern_search_run *run) {
    const int least = run->list->level[0], greatest = run->list->level[15];
    choice best = {.gain = 0.0};
    consider_end(run, 0, least, &best);
    if (greatest != -least) /* then the other sign has other levels */
        consider_end(run, 0, greatest, &best);
    return best;
}

float tern_search_levels(const tern_search_run *run, uint8_t half[2]) {
    const choice best = search_levels(run);
    return store(run, &best, half);
}

double tern_search_step(const tern_search_run *run) {
    return search_levels(run).scale;
}

void tern_put_levels(const tern_level_list *list, const float *x, double id, uint8_t nibbles[16]) {
    for (int j = 0; j < 16; j++) {
        const size_t low = tern_nearest_level(list, (float)((double)x[j] * id));
        const size_t high = tern_nearest_level(list, (float)((double)x[j + 16] * id));
        nibbles[j] = (uint8_t)(list->code[low] | list->code[high] << 4);
    }
}

double tern_levels_error(const tern_search_run *run, double scale) {
    return error_of(run, 0, scale);
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
