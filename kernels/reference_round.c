/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's precisions of activations: a value of a binary format is a multiple of the spacing
 * around it, found with frexp and rounded in double (docs/numerics.md).
 */

#include <float.h>
#include <math.h>

#include "kernels/reference.h"

/* A binary format: digits after the leading one, exponents of its smallest and largest normals. */
typedef struct binary {
    int fraction, least, largest;
} binary;

/* |x| rounded to nearest even as if exponents had no upper end; x is finite. */
static double nearest(const binary *b, double x) {
    int exponent;

    (void)frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent), 0 for 0 */
    exponent = x != 0.0 && exponent - 1 > b->least ? exponent - 1 : b->least;
    return ldexp(nearbyint(ldexp(fabs(x), b->fraction - exponent)), exponent - b->fraction);
}

/* IEEE: from 2^(largest + 1) on, after rounding, there is infinity. */
static float round_ieee(const binary *b, float x) {
    if (isnan(x) || isinf(x))
        return x;
    const double rounded = nearest(b, x);
    return copysignf(rounded < ldexp(1.0, b->largest + 1) ? (float)rounded : INFINITY, x);
}

/* The least power of two with which the row's largest magnitude is not beyond `top`. */
static double scale_of(const float *x, size_t n, double top) {
    double amax = 0x1p-100;
    int exponent = -140;

    for (size_t i = 0; i < n; i++)
        amax = fabs((double)x[i]) > amax ? fabs((double)x[i]) : amax;
    amax = amax < (double)FLT_MAX ? amax : (double)FLT_MAX;
    while (top * ldexp(1.0, exponent) < amax)
        exponent++;
    return ldexp(1.0, exponent);
}

static void round_scaled(const binary *b, double top, const float *x, size_t n, float *y) {
    const double s = scale_of(x, n, top);

    for (size_t i = 0; i < n; i++) {
        const double v = fabs((double)x[i]) / s;
        if (isnan(x[i]))
            y[i] = x[i];
        else
            y[i] = copysignf((float)(nearest(b, v < top ? v : top) * s), x[i]);
    }
}

static void round_int8(const float *x, size_t n, float *y) {
    int8_t q[TERN_Q_PAD];
    float d[2];
    int32_t sum[2];

    for (size_t first = 0; first < n; first += TERN_BLOCK) {
        const size_t count = n - first < TERN_BLOCK ? n - first : TERN_BLOCK;
        tern_ref_quantize_block(x + first, count, q, d, sum);
        for (size_t i = 0; i < count; i++)
            y[first + i] = (float)q[i] * d[0];
    }
}

void tern_ref_round(tern_op op, const float *x, size_t n, float *y) {
    static const binary fp16 = {10, -14, 15}, bf16 = {7, -126, 127};
    static const binary e4m3 = {3, -6, 8}, e5m2 = {2, -14, 15};

    if (op == TERN_OP_ROUND_INT8)
        round_int8(x, n, y);
    else if (op == TERN_OP_ROUND_FP8)
        round_scaled(&e4m3, 448.0, x, n, y);
    else if (op == TERN_OP_ROUND_FP8_E5M2)
        round_scaled(&e5m2, 57344.0, x, n, y);
    else
        for (size_t i = 0; i < n; i++)
            y[i] = round_ieee(op == TERN_OP_ROUND_FP16 ? &fp16 : &bf16, x[i]);
}
