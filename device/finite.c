/* SPDX-License-Identifier: Apache-2.0 */

#include "device/finite.h"

#include <stdint.h>
#include <string.h>

#include "kernels/half.h"

/* Vectors that any compiler knows. */
enum { LANES = 4 };
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

static words load(const float *x) {
    words bits;
    memcpy(&bits, x, sizeof bits);
    return bits;
}

/*
 * Magnitudes order as their bits do, infinities and NaNs after all numbers. So bits without the
 * sign, plus what the limit lacks to 2^31, have bit 31 where a magnitude reaches the limit.
 */
bool tern_all_below(const float *x, size_t n, float limit) {
    const uint32_t rest = UINT32_C(0x7fffffff);
    const uint32_t lack = UINT32_C(0x80000000) - tern_f32_to_bits(limit);
    words a = {0}, b = {0}, c = {0}, d = {0};
    uint32_t bits = 0;
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a |= (load(x + i) & rest) + lack;
        b |= (load(x + i + LANES) & rest) + lack;
        c |= (load(x + i + 2 * LANES) & rest) + lack;
        d |= (load(x + i + 3 * LANES) & rest) + lack;
    }
    for (; i < n; i++)
        bits |= (tern_f32_to_bits(x[i]) & rest) + lack;
    a |= b | c | d;
    for (size_t j = 0; j < LANES; j++)
        bits |= a[j];
    return !(bits & ~rest);
}

bool tern_squares_fit(const float *x, size_t n) {
    double sum = 0.0;
    if (tern_all_below(x, n, TERN_SQUARES_LIMIT))
        return true;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum <
           0x1.ffp127; /* false for NaN; a float sum of that rounds by far less than is left */
}
