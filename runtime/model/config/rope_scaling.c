/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/config/rope_scaling.h"

#include <math.h>

#include "runtime/model/config/rope.h"

static const double two_pi = 6.28318530717958647692;

/* The index, with a fraction, of the pair that turns `turns` times in the original context. */
static double pair_of(const tern_rope_yarn *yarn, double turns, double base, size_t n_rot) {
    const double angle = (double)yarn->original / (turns * two_pi);
    return (double)n_rot * tern_log(angle) / (2.0 * tern_log(base));
}

void tern_rope_yarn_stretch(const tern_rope_yarn *yarn, double base, size_t n_rot,
                            double *frequency) {
    const double fast = pair_of(yarn, (double)yarn->beta_fast, base, n_rot);
    const double slow = pair_of(yarn, (double)yarn->beta_slow, base, n_rot);
    const double low = fmax(0.0, yarn->between ? fast : floor(fast));
    const double high = fmin((double)n_rot - 1.0, yarn->between ? slow : ceil(slow));
    const double width = fmax(0.001, high - low);
    for (size_t i = 0; i < n_rot / 2; i++) {
        const double interpolated = frequency[i] / (double)yarn->factor;
        const double along = fmin(1.0, fmax(0.0, ((double)i - low) / width));
        const double kept = (1.0 - along) * (double)yarn->mix;
        frequency[i] = interpolated * (1.0 - kept) + frequency[i] * kept;
    }
}

double tern_rope_yarn_gain(const tern_rope_yarn *yarn, double times) {
    return 1.0 + 0.1 * times * tern_log((double)yarn->factor);
}

void tern_rope_llama3_factors(const tern_rope_llama3 *scaling, const double *frequency,
                              size_t n_rot, float *factors) {
    for (size_t i = 0; i < n_rot / 2; i++) {
        const double turns = scaling->original_context * frequency[i] / two_pi;
        const double smooth = (turns - scaling->low) / (scaling->high - scaling->low);
        const double inside = 1.0 / ((1.0 - smooth) / scaling->factor + smooth);
        factors[i] = (float)(turns > scaling->high  ? 1.0
                             : turns < scaling->low ? scaling->factor
                                                    : inside);
    }
}
