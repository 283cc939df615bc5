/* SPDX-License-Identifier: Apache-2.0 */
/*
 * R13 of docs/numerics.md and its purpose: a number of 13 bits times a half is exact, so that a sum
 * is the same with and without fused multiply-add, in all edge cases of both.
 */
#include <math.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "kernels/reference.h"
#include "tests/isa/exact_products.h"
#include "tests/support/check.h"

enum { BATCH = 4096 };

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- the definition ------------------------------------------------------------------------ */

typedef struct rounding {
    uint32_t x, want; /* bits */
} rounding;

static const rounding roundings[] = {
    {0x3f800000, 0x3f800000}, /* 1 */
    {0x3f8003ff, 0x3f800000}, /* below the middle */
    {0x3f800400, 0x3f800000}, /* the middle: down to the even neighbour */
    {0x3f800401, 0x3f800800}, /* above it */
    {0x3f800c00, 0x3f801000}, /* the next middle: up to the even neighbour */
    {0x3f800bff, 0x3f800800}, {0xbf800c00, 0xbf801000}, {0x3ffffbff, 0x3ffff800},
    {0x3ffffc00, 0x40000000},                           /* the carry reaches the exponent */
    {0xbfffffff, 0xc0000000}, {0x0d800000, 0x0d800000}, /* 2^-100 */
    {0x0d800400, 0x0d800000}, {0x0d7fffff, 0x00000000}, /* the float below it */
    {0x8d7fffff, 0x00000000}, {0x00000001, 0x00000000}, {0x80000000, 0x00000000},
    {0x717fffff, 0x71800000}, /* the float below 2^100 becomes 2^100, */
    {0x71800000, 0x7f800000}, /* which itself becomes infinite */
    {0xf1800000, 0xff800000}, {0x7f7fffff, 0x7f800000}, {0x7f800000, 0x7f800000},
    {0xff800000, 0xff800000}, {0x7f800001, 0x7fc00000}, /* any NaN */
    {0x7fffffff, 0x7fc00000}, {0xffffffff, 0x7fc00000},
};

static void test_definition(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++) {
        const float want = float_of(roundings[i].want);
        const float got = tern_ref_13_bits(float_of(roundings[i].x));
        check_case("R13 of %08x", roundings[i].x);
        check_floats("bits", &want, &got, 1);
    }
}

/* ---- operands ------------------------------------------------------------------------------ */

/* A float of any exponent, with a fraction near the middle or end of 13 bits, or with any. */
static float any_factor(check_rng *rng) {
    static const uint32_t fractions[] = {0,     1,     0x3ff,    0x400,    0x401,    0x7ff,
                                         0x800, 0xbff, 0x7ff800, 0x7ffbff, 0x7ffc00, 0x7fffff};
    const uint32_t high = (uint32_t)check_below(rng, 512) << 23;
    const uint32_t kind = (uint32_t)check_below(rng, 24);
    return float_of(high | (kind < 12 ? fractions[kind] : (uint32_t)check_random(rng) & 0x7fffff));
}

/* Any half, including denormals, infinities and NaNs. */
static float any_half(check_rng *rng) {
    const uint16_t half = (uint16_t)check_random(rng);
    float value;
    tern_ref_embed(TERN_FORMAT_F16, &half, 1, &value);
    return value;
}

/* +0, a number near the product so that most cancels, or any number. */
static float any_sum(check_rng *rng, float product) {
    switch (check_below(rng, 4)) {
    case 0:
        return 0.0f;
    case 1:
        return -product * (1.0f + 0x1p-23f * (float)check_below(rng, 64));
    case 2:
        return product * float_of(0x3f800000u + (uint32_t)check_below(rng, 1u << 23));
    default:
        return float_of((uint32_t)check_random(rng));
    }
}

/* Two roundings that the compiler must not fuse. */
static float unfused(float sum, float a, float b) {
    volatile float product = a * b;
    volatile float total = sum + product;
    return total;
}

typedef struct operands {
    float x[BATCH], half[BATCH], sum[BATCH], rounded[BATCH], want[BATCH];
} operands;

static void draw(operands *o, check_rng *rng) {
    for (int i = 0; i < BATCH; i++) {
        o->x[i] = any_factor(rng);
        o->half[i] = any_half(rng);
        o->rounded[i] = tern_ref_13_bits(o->x[i]);
        o->sum[i] = any_sum(rng, o->rounded[i] * o->half[i]);
        o->want[i] = unfused(o->sum[i], o->rounded[i], o->half[i]);
    }
}

/* ---- the same bits ------------------------------------------------------------------------- */

static void test_fused(void **state) {
    static operands o;
    static float fused[BATCH];
    check_rng rng = {13};

    (void)state;
    for (int batch = 0; batch < 256; batch++) {
        draw(&o, &rng);
        for (int i = 0; i < BATCH; i++)
            fused[i] = fmaf(o.rounded[i], o.half[i], o.sum[i]);
        check_case("batch %d", batch);
        check_floats("fused", o.want, fused, BATCH);
    }
}

/* Some of the same products are not exact with one more bit. */
static float one_bit_more(float x) {
    int exponent;
    (void)frexpf(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    return x + ldexpf(1.0f, exponent - 14);
}

static void test_one_bit_more(void **state) {
    static operands o;
    check_rng rng = {14};
    size_t differ = 0;

    (void)state;
    for (int batch = 0; batch < 16; batch++) {
        draw(&o, &rng);
        for (int i = 0; i < BATCH; i++) {
            const float x = one_bit_more(tern_ref_13_bits(o.x[i]));
            differ += isfinite(x) && isfinite(o.half[i]) &&
                      unfused(o.sum[i], x, o.half[i]) != fmaf(x, o.half[i], o.sum[i]);
        }
    }
    assert_true(differ > 0);
}

typedef struct set {
    const char *name;
    uint64_t needs;
    exact_products_fn *run;
} set;

static const set sets[] = {
    {"scalar", 0, exact_products_scalar},
#if TERN_HAVE_SSE41
    {"sse41", TERN_CPU_MASK(SSE41), exact_products_sse41},
#endif
#if TERN_HAVE_AVX2
    {"avx2", TERN_CPU_MASK(AVX2) | TERN_CPU_MASK(F16C) | TERN_CPU_MASK(FMA), exact_products_avx2},
#endif
#if TERN_HAVE_AVX512
    {"avx512",
     TERN_CPU_MASK(AVX512F) | TERN_CPU_MASK(AVX512BW) | TERN_CPU_MASK(AVX512VL) |
         TERN_CPU_MASK(AVX512DQ),
     exact_products_avx512},
#endif
#if TERN_HAVE_NEON
    {"neon", TERN_CPU_MASK(NEON), exact_products_neon},
#endif
};

static void test_verbs(void **state) {
    static operands o;
    static float rounded[BATCH], out[BATCH];

    (void)state;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        check_rng rng = {15};
        if ((sets[s].needs & ~tern_cpu_features()) != 0)
            continue;
        for (int batch = 0; batch < 32; batch++) {
            draw(&o, &rng);
            for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++)
                o.x[i] = float_of(roundings[i].x);
            for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++) {
                o.rounded[i] = tern_ref_13_bits(o.x[i]);
                o.want[i] = unfused(o.sum[i], o.rounded[i], o.half[i]);
            }
            check_case("%s, batch %d", sets[s].name, batch);
            sets[s].run(o.x, o.half, o.sum, BATCH, rounded, out);
            check_floats("rounded", o.rounded, rounded, BATCH);
            check_floats("sums", o.want, out, BATCH);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_fused),
        cmocka_unit_test(test_one_bit_more),
        cmocka_unit_test(test_verbs),
    };
    return cmocka_run_group_tests_name("exact products", tests, NULL, NULL);
}
