/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_VMATH_H
#define TERN_ISA_VMATH_H

/*
 * Functions that every template needs besides the verbs. Include it after the isa header; it uses
 * verbs only, so each formula exists once for all instruction sets.
 */

#include "tern/kernels.h"

/* Lanes of the vector that starts `offset` elements into a tail of `rest`: 0 .. lanes. */
static inline size_t tail_lanes(size_t rest, size_t offset, size_t lanes) {
    const size_t left = rest > offset ? rest - offset : 0;
    return left < lanes ? left : lanes;
}

/*
 * Asks for weights that are read soon. Sets of sixteen lanes ask for them in the second-level
 * cache, which can wait for more lines at once than the first, and from which a load takes a dozen
 * cycles: on Intel one thread reads 5 to 20 % faster so.
 */
static inline void ask_ahead(const void *p) {
#ifdef TERN_ASK_SECOND_LEVEL
    __builtin_prefetch(p, 0, 2);
#else
    __builtin_prefetch(p);
#endif
}

/* a / b, rounded as IEEE says, for integers a below 2^24 and any b. A set may have a faster way. */
#ifndef TERN_OWN_QUOTIENT
static inline vf vf_quotient(vf a, float b) {
    return vf_div(a, vf_set1(b));
}
#endif

/* Nearest integer, ties to even, for |v| < 2^22. */
static inline vf vf_rne(vf v) {
    const vf magic = vf_set1(0x1.8p23f);
    return vf_sub(vf_add(v, magic), magic);
}

/*
 * p * 2^n, rounded once, for p of 0.5 .. 2 and integral n of -151 .. 129: the first of two steps is
 * exact. A set may have an instruction.
 */
#ifndef TERN_OWN_SCALE
static inline vf vf_scale(vf p, vf n) {
    const vf h = vf_rne(vf_mul(n, vf_set1(0.5f)));
    return vf_mul(vf_mul(p, vf_pow2(h)), vf_pow2(vf_sub(n, h)));
}
#endif

/*
 * The steps of exp, for code that takes them for several vectors in turn: there are about twenty,
 * and each waits for the one before it.
 */

/* Nearest multiple of ln 2, as its factor: n of docs/numerics.md. */
static inline vf vf_exp_steps(vf x) {
    return vf_rne(vf_mul(x, vf_set1(0x1.715476p+0f)));
}

/* r = x - n ln 2, |r| <= 0.3466. */
static inline vf vf_exp_remainder(vf x, vf n) {
    const vf r = vf_sub(x, vf_mul(n, vf_set1(0x1.62e4p-1f)));
    return vf_sub(r, vf_mul(n, vf_set1(0x1.7f7d1cp-20f)));
}

/* 1 / 7!, 1 / 6! .. 1 / 2!: the factors of the polynomial q. */
enum { TERN_EXP_FACTORS = 6 };
static inline vf vf_exp_factor(int k) {
    static const float factor[TERN_EXP_FACTORS] = {1.0f / 5040.0f, 1.0f / 720.0f, 1.0f / 120.0f,
                                                   1.0f / 24.0f,   1.0f / 6.0f,   0.5f};
    return vf_set1(factor[k]);
}

static inline vf vf_exp_next(vf q, vf r, int k) {
    return vf_add(vf_mul(q, r), vf_exp_factor(k));
}

/* e^r - 1 of r and q. */
static inline vf vf_exp_less1(vf q, vf r) {
    return vf_add(vf_mul(q, vf_mul(r, r)), r);
}

/* e^r - 1 for r = x - n ln 2. */
static inline vf vf_exp_rest(vf x, vf n) {
    const vf r = vf_exp_remainder(x, n);
    vf q = vf_exp_factor(0);
    q = vf_exp_next(q, r, 1);
    q = vf_exp_next(q, r, 2);
    q = vf_exp_next(q, r, 3);
    q = vf_exp_next(q, r, 4);
    q = vf_exp_next(q, r, 5);
    return vf_exp_less1(q, r);
}

/* exp as docs/numerics.md defines it. */
static inline vf vf_exp(vf x) {
    x = vf_min(vf_max(x, vf_set1(-104.0f)), vf_set1(89.0f));
    const vf n = vf_exp_steps(x);
    return vf_scale(vf_add(vf_exp_rest(x, n), vf_set1(1.0f)), n);
}

/*
 * tanh as docs/numerics.md defines it. vf_max gives its second operand for a NaN: t keeps it, n
 * must not, since no exponent can be made of it.
 */
static inline vf vf_tanh(vf x) {
    const vf t = vf_max(vf_set1(-20.0f), vf_mul(vf_abs(x), vf_set1(-2.0f)));
    const vf n = vf_max(vf_exp_steps(t), vf_set1(-29.0f));
    const vf step = vf_pow2(n);
    const vf e = vf_add(vf_mul(vf_exp_rest(t, n), step), vf_sub(step, vf_set1(1.0f)));
    return vf_copysign(vf_div(e, vf_add(e, vf_set1(2.0f))), x);
}

#endif
