/* SPDX-License-Identifier: Apache-2.0 */
/* vf_quotient of AVX-512, which multiplies by a reciprocal and corrects the result: the same bits
 * as a division. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "tests/isa/avx512.h"
#include "tests/kernels/table.h"
#include "tests/support/check.h"

enum { LANES = 16, LARGEST = (1 << 24) - 1 };

static void compare(const float a[LANES], float b) {
    float out[LANES];
    float want[LANES];
    for (int i = 0; i < LANES; i++)
        want[i] = a[i] / b;
    isa_quotient(a, b, out);
    for (int i = 0; i < LANES; i++) {
        if (isnan(want[i]) ? !isnan(out[i]) : memcmp(&want[i], &out[i], sizeof out[i]) != 0)
            fail_msg("%a / %a is %a, not %a", (double)a[i], (double)b, (double)want[i], (double)out[i]);
    }
}

/* Integers of every size and sign, divided by arbitrary significands. */
static void test_random(void **state) {
    check_rng rng = {24};
    float a[LANES];

    (void)state;
    for (int n = 0; n < 1000000; n++) {
        const float significand = 1.0f + (float)(check_random(&rng) >> 41) * 0x1p-23f;
        const float b = ldexpf(significand, (int)(check_random(&rng) % 60) - 30);
        for (int i = 0; i < LANES; i++) {
            const uint64_t r = check_random(&rng);
            const int size = (int)(r % 25);
            const int32_t value = (int32_t)((r >> 20) & (((uint64_t)1 << size) - 1));
            a[i] = (float)((r >> 60 & 1) != 0 ? -value : value);
        }
        compare(a, b);
    }
}

/*
 * All quotients A / B of 24-bit significands that lie next to the middle M between two floats. The
 * first quotient, A times the rounded reciprocal, has the error q*e + f, where e is that of the
 * reciprocal and f that of its own rounding. Before it is rounded, the corrected quotient has the
 * error q*e*e + f*e, at most 3 * 2^-25 units, and 1 / B more where the remainder needs 25 bits. So
 * the rounding can only be wrong next to a middle that is nearer than that. With M odd, of 25 bits,
 * and k = 24 or 25 (A above or below B), A * 2^k = M * B + c lies |c| / (2 * B) units from the
 * middle, so |c| is at most 5.
 */
static size_t next_to_middles(uint32_t divisor, float a[LANES]) {
    const int twos = __builtin_ctz(divisor);
    const uint32_t odd = divisor >> twos;
    uint32_t inverse = odd; /* modulo 2^32: right in the lowest three bits, and each step doubles them */
    size_t n = 0;
    for (int step = 0; step < 4; step++)
        inverse *= 2 - odd * inverse;
    for (int k = 24; k <= 25; k++) {
        const uint32_t period = UINT32_C(1) << (k - twos); /* period of M for one c */
        for (int c = -6; c <= 6; c++) {
            if (c == 0 || c % (1 << twos) != 0)
                continue;
            for (uint32_t m = -(uint32_t)(c / (1 << twos)) * inverse & (period - 1); m >> 25 == 0; m += period) {
                const uint64_t scaled = (uint64_t)m * divisor + (uint64_t)(int64_t)c;
                if (m >> 24 != 0 && m % 2 != 0 && scaled >> k < UINT64_C(1) << 24)
                    a[n++] = (float)(scaled >> k);
            }
        }
    }
    return n;
}

static void test_next_to_middles(void **state) {
    size_t cases = 0;

    (void)state;
    for (uint32_t divisor = UINT32_C(1) << 23; divisor < UINT32_C(1) << 24; divisor++) {
        float a[LANES] = {0};
        if (divisor % 8 == 0)
            continue; /* |c| would be at least 8 */
        cases += next_to_middles(divisor, a);
        compare(a, (float)divisor);
    }
    printf("%zu quotients\n", cases);
    assert_true(cases > 10000000);
}

/* Divisors next to a power of two, where a unit changes its size, with the smallest and largest
 * dividends. */
static void test_edges(void **state) {
    const float ends[LANES] = {0, 1, -1, 2, 3, -3, 127, 128, 8191, 65535, 65537, -8388607, 8388608, 8388609, LARGEST - 1, LARGEST};

    (void)state;
    for (int e = -62; e <= 62; e++) {
        const float power = ldexpf(1.0f, e);
        float b = power;
        for (int i = 0; i < 2000; i++, b = nextafterf(b, INFINITY))
            compare(ends, b);
        b = power;
        for (int i = 0; i < 2000; i++, b = nextafterf(b, 0.0f))
            compare(ends, b);
    }
}

/* The worst scales: 0 (of a row with an infinity), tiny, huge, and NaN. */
static void test_any_divisor(void **state) {
    const float a[LANES] = {0, 1, -1, 5, -5, 99, 1000, 12345, -65536, 100003, 1 << 20, -(1 << 22), 8388607, 9999999, -LARGEST, LARGEST};
    const float divisors[] = {0.0f,      0x1p-149f, 0x1p-126f, 3.7e-37f, 0x1p-61f, 0x1.fffffep-61f, 0x1p-60f, 0x1p60f,
                              0x1.000002p60f, 0x1p61f,  0x1p126f,  0x1.fffffep127f, INFINITY, NAN,  -1.0f,    -3.0f};

    (void)state;
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++)
        compare(a, divisors[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_next_to_middles),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_any_divisor),
    };
    const uint64_t needed = TERN_CPU_MASK(AVX512F) | TERN_CPU_MASK(AVX512BW) | TERN_CPU_MASK(AVX512VL) | TERN_CPU_MASK(AVX512DQ);
    if ((needed & ~tern_cpu_features()) != 0) {
        printf("skipped: this processor lacks AVX-512\n");
        return TABLE_SKIPPED;
    }
    return cmocka_run_group_tests_name("quotients", tests, NULL, NULL);
}
