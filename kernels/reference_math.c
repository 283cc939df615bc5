/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle's functions of one number: exp, tanh, the activations, and the operations that are
 * nothing but one of them for each element (docs/numerics.md).
 */

#include "kernels/reference.h"

#include <math.h>

/* e^r - 1 for r = x - n ln 2. */
static float exp_rest(float x, float n) {
    static const float factorials[] = {720.0f, 120.0f, 24.0f, 6.0f, 2.0f};
    const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float q = 1.0f / 5040.0f;

    for (int i = 0; i < 5; i++)
        q = q * r + 1.0f / factorials[i];
    return q * (r * r) + r;
}

float tern_ref_exp(float x) {
    x = x > -104.0f ? x : -104.0f;
    x = x < 89.0f ? x : 89.0f;
    const float n = nearbyintf(x * 0x1.715476p+0f);
    const float p = exp_rest(x, n) + 1.0f;
    const float h = nearbyintf(n * 0.5f);
    return (p * ldexpf(1.0f, (int)h)) * ldexpf(1.0f, (int)(n - h));
}

float tern_ref_tanh(float x) {
    if (isnan(x))
        return x;
    const float doubled = -2.0f * fabsf(x);
    const float t = doubled > -20.0f ? doubled : -20.0f;
    const float n = nearbyintf(t * 0x1.715476p+0f);
    const float step = ldexpf(1.0f, (int)n);
    const float e = exp_rest(t, n) * step + (step - 1.0f);
    return copysignf(e / (e + 2.0f), x);
}

float tern_ref_activate(tern_ref_activation activation, float x) {
    const float positive = x > 0.0f ? x : 0.0f;

    switch (activation) {
    case TERN_REF_RELU:
        return positive;
    case TERN_REF_RELU2:
        return positive * positive;
    case TERN_REF_SILU:
        return x / (1.0f + tern_ref_exp(0.0f - x));
    case TERN_REF_GELU:
        return x / (1.0f + tern_ref_exp(0.0f - ((x * x) * 0x1.2444f2p-4f + 0x1.988454p+0f) * x));
    case TERN_REF_QUICK:
        return x / (1.0f + tern_ref_exp(0.0f - x * 0x1.b3b646p+0f));
    default:
        return tern_ref_tanh(x);
    }
}

tern_ref_activation tern_ref_activation_of(tern_op op) {
    switch (op) {
    case TERN_OP_BIAS_RELU:
        return TERN_REF_RELU;
    case TERN_OP_GATE_RELU2:
    case TERN_OP_BIAS_RELU2:
        return TERN_REF_RELU2;
    case TERN_OP_GATE_GELU:
    case TERN_OP_BIAS_GELU:
        return TERN_REF_GELU;
    case TERN_OP_GATE_QUICK:
        return TERN_REF_QUICK;
    case TERN_OP_BIAS_TANH:
        return TERN_REF_TANH;
    default:
        return TERN_REF_SILU;
    }
}

void tern_ref_gate(tern_ref_activation activation, const float *g, const float *u, size_t n,
                   float *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = tern_ref_activate(activation, g[i]) *
               (activation == TERN_REF_QUICK ? u[i] + 1.0f : u[i]);
}

void tern_ref_bias(tern_ref_activation activation, const float *x, const float *b, size_t n,
                   float *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = tern_ref_activate(activation, x[i] + b[i]);
}
