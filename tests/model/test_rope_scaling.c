/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalings of RoPE against the formulas of transformers 5.23 (modeling_rope_utils.py), evaluated
 * once in double precision for these configurations.
 */
#include <math.h>
#include <string.h>

#include "runtime/model/config/rope.h"
#include "runtime/model/config/rope_scaling.h"
#include "tests/support/check.h"

enum { KNOWN = 12, MOST = 64 };

/* The frequency of a pair. */
typedef struct known {
    size_t pair;
    double frequency;
} known;

static void check_near(const char *what, double at, long double expected, double got,
                       long double bound) {
    if (!(fabsl((long double)got - expected) <= bound))
        check_fail("%s at %g is %.17g, not %.17Lg", what, at, got, expected);
}

static void check_known(const known *expected, const double *frequency) {
    for (size_t i = 0; i < KNOWN; i++)
        check_near("frequency", (double)expected[i].pair, (long double)expected[i].frequency,
                   frequency[expected[i].pair], (long double)expected[i].frequency * 1e-12L);
}

static void check_yarn(const char *name, const tern_rope_yarn *yarn, double base, size_t n_rot,
                       double gain, const known *expected) {
    double frequency[MOST];
    check_case("%s", name);
    tern_rope_frequencies(base, 1.0, NULL, n_rot, frequency);
    tern_rope_yarn_stretch(yarn, base, n_rot, frequency);
    check_known(expected, frequency);
    check_near("gain", 0.0, (long double)gain, tern_rope_yarn_gain(yarn, 1.0), 1e-14L);
}

/* Pairs that are kept, partly stretched, and interpolated, with the default and with other
 * turns. */
static void test_yarn(void **state) {
    static const known long_context[KNOWN] = {{0, 1},
                                              {6, 0.27384196342643613},
                                              {11, 0.0930572040929699},
                                              {17, 0.025482967479793464},
                                              {23, 0.006054706545107663},
                                              {29, 0.0011521922349086481},
                                              {34, 0.00024829297677913961},
                                              {40, 4.4456985250973067e-05},
                                              {46, 1.2174188129146578e-05},
                                              {52, 3.3338035804083101e-06},
                                              {57, 1.1328959094002045e-06},
                                              {63, 3.1023444018792988e-07}};
    static const known narrow[KNOWN] = {{0, 1},
                                        {3, 0.42169650342858228},
                                        {6, 0.14078045329474806},
                                        {8, 0.058333333333333334},
                                        {11, 0.011420946967857434},
                                        {14, 0.0011114246312743268},
                                        {17, 0.00046868388083278492},
                                        {20, 0.00019764235376052374},
                                        {23, 8.3345089510207754e-05},
                                        {25, 4.6868388083278484e-05},
                                        {28, 1.9764235376052371e-05},
                                        {31, 8.3345089510207747e-06}};
    (void)state;
    check_yarn("factor 4 of 16384 positions",
               &(tern_rope_yarn){
                   .factor = 4, .original = 16384, .beta_fast = 32, .beta_slow = 1, .mix = 1},
               1e6, 128, 1.138629436111989, long_context);
    check_yarn(
        "factor 16 of 512, 24 to 2 turns",
        &(tern_rope_yarn){.factor = 16, .original = 512, .beta_fast = 24, .beta_slow = 2, .mix = 1},
        10000.0, 64, 1.2772588722239782, narrow);
}

/* Without a mix, all pairs are interpolated. A factor of 1 changes nothing. */
static void test_ends(void **state) {
    tern_rope_yarn yarn = {.factor = 8, .original = 2048, .beta_fast = 32, .beta_slow = 1};
    double plain[MOST], stretched[MOST];
    (void)state;
    check_case("no mix");
    tern_rope_frequencies(10000.0, 1.0, NULL, 2 * MOST, plain);
    memcpy(stretched, plain, sizeof plain);
    tern_rope_yarn_stretch(&yarn, 10000.0, 2 * MOST, stretched);
    for (size_t i = 0; i < MOST; i++)
        assert_true(stretched[i] == plain[i] / 8.0);
    yarn.mix = yarn.factor = 1;
    memcpy(stretched, plain, sizeof plain);
    tern_rope_yarn_stretch(&yarn, 10000.0, 2 * MOST, stretched);
    for (size_t i = 0; i < MOST; i++)
        check_near("frequency", (double)i, (long double)plain[i], stretched[i],
                   (long double)plain[i] * 0x1p-52L);
    assert_true(tern_rope_yarn_gain(&yarn, 1.0) == 1.0);
}

static void test_llama3(void **state) {
    static const known llama31[KNOWN] = {{0, 1},
                                         {6, 0.29222782257301516},
                                         {11, 0.10483095217796996},
                                         {17, 0.030634520893224042},
                                         {23, 0.0089522593361943993},
                                         {29, 0.0021665707635033591},
                                         {34, 0.00017850781276799638},
                                         {40, 3.4281021959525912e-05},
                                         {46, 1.0017868402809974e-05},
                                         {52, 2.9274998701761677e-06},
                                         {57, 1.0501826834601687e-06},
                                         {63, 3.0689259889145111e-07}};
    static const tern_rope_llama3 scaling = {
        .factor = 8, .low = 1, .high = 4, .original_context = 8192};
    double frequency[MOST];
    float factors[MOST];
    (void)state;
    check_case("Llama 3.1");
    tern_rope_frequencies(500000.0, 1.0, NULL, 2 * MOST, frequency);
    tern_rope_llama3_factors(&scaling, frequency, 2 * MOST, factors);
    for (size_t i = 0; i < KNOWN; i++) /* files store factors as floats */
        check_near("frequency", (double)llama31[i].pair, (long double)llama31[i].frequency,
                   frequency[llama31[i].pair] / (double)factors[llama31[i].pair],
                   (long double)llama31[i].frequency * 0x1p-24L);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_yarn), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_llama3)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
