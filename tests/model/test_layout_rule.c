/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of ternary matrices: the estimate from a probe's rounds, the rule, and what is
 * measured for it. */

#include <math.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "kernels/facts.h"
#include "runtime/model/tune/measure.h"
#include "tests/support/check.h"

/* The rule's layout for these figures of a probe. */
static tern_layout rule(uint32_t ratio, uint32_t noise) {
    const tern_layout_probe probe = {
        .threads = 2, .stream = 64, .dense = TERN_LAYOUT_T5R16, .ratio = ratio, .noise = noise};
    return tern_layout_rule(&probe, 1);
}

static void test_layout_rule(void **state) {
    (void)state;
    assert_int_equal(rule(800, 10), TERN_LAYOUT_T5R16); /* the bus bounds both */
    assert_int_equal(rule(949, 10), TERN_LAYOUT_T5R16);
    assert_int_equal(rule(950, 10), TERN_LAYOUT_T2R16); /* the margin */
    assert_int_equal(rule(1000, 1), TERN_LAYOUT_T2R16); /* a fast bus, or slow arithmetic */
    assert_int_equal(rule(1400, 1), TERN_LAYOUT_T2R16);
    assert_int_equal(rule(800, 200), TERN_LAYOUT_T2R16); /* within the noise */
    assert_int_equal(rule(800, 199), TERN_LAYOUT_T5R16);
    assert_int_equal(tern_layout_rule(&(tern_layout_probe){.ratio = 1}, 1), TERN_LAYOUT_T2R16);
}

/* The sign test's interval of 16 rounds leaves out four on each side. */
static void test_estimate(void **state) {
    double seconds[2 * TERN_ESTIMATE_ROUNDS], again[TERN_ESTIMATE_ROUNDS];
    (void)state;
    for (size_t r = 0; r < TERN_ESTIMATE_ROUNDS; r++) {
        seconds[2 * r] = 8;
        again[r] = 12; /* a drift; 10 in the middle */
        seconds[2 * r + 1] = 8;
    }
    tern_estimate e = tern_estimate_of(seconds, again, 16);
    assert_true(fabs(e.ratio - 0.8) < 1e-12 && e.within < 1e-12);
    for (size_t r = 0; r < 4; r++) { /* outliers in both directions, however large */
        seconds[2 * r + 1] = 1000;
        seconds[2 * (8 + r) + 1] = 0.01;
    }
    e = tern_estimate_of(seconds, again, 16);
    assert_true(fabs(e.ratio - 0.8) < 1e-12 && e.within < 1e-12);
    assert_true(tern_estimate_decides(&e, 0.95));
    seconds[2 * 4 + 1] = 9; /* one outlier too many */
    e = tern_estimate_of(seconds, again, 16);
    assert_true(fabs(e.ratio - 0.8) < 1e-12 && fabs(e.within - 0.1) < 1e-12);
    assert_true(tern_estimate_decides(&e, 0.95) && tern_estimate_decides(&e, 0.65));
    assert_false(tern_estimate_decides(&e, 0.85));
    assert_false(tern_estimate_decides(&e, 0.75));
    e = tern_estimate_of(seconds, again, 9); /* too few for an interval: all of them */
    assert_true(e.within > 90);
    again[3] = 0;
    e = tern_estimate_of(seconds, again, 16);
    assert_true(e.ratio == 1.0 && e.within == 1.0);
    e = tern_estimate_of(seconds, again, 0);
    assert_true(e.ratio == 1.0 && e.within == 1.0);
}

static void test_layout_probe(void **state) {
    const tern_estimate slow_bus = {0.8, 0.0}, busy = {0.8, 1.0}, slower = {1.3, 0.01};
    char text[TERN_LAYOUT_REASON_BYTES];
    (void)state;
    tern_layout_probe p = tern_layout_probe_of(2, 64, TERN_LAYOUT_T5R16, &slow_bus);
    assert_int_equal(p.ratio, 800);
    assert_int_equal(p.noise, 1);
    tern_layout_reason(&p, 1, text);
    assert_non_null(strstr(text, "20.0 % less time than in t2r16"));
    p = tern_layout_probe_of(2, 64, TERN_LAYOUT_T5R16, &busy);
    assert_int_equal(p.noise, 1000);
    assert_int_equal(tern_layout_rule(&p, 1), TERN_LAYOUT_T2R16);
    p = tern_layout_probe_of(2, 64, TERN_LAYOUT_T5R16, &slower);
    assert_int_equal(p.ratio, 1300);
    tern_layout_reason(&p, 1, text);
    assert_non_null(strstr(text, "t5r16 does not save enough time"));
    assert_true(fabs(tern_layout_limit(true) - 0.95) < 1e-12); /* the rule's margin */
    p.ratio = 960;
    p.noise = 50;
    assert_true(tern_layout_is_sure(&p));
    p.noise = 51;
    assert_false(tern_layout_is_sure(&p));
    p.ratio = 1002;
    assert_true(tern_layout_is_sure(&p));
    p.ratio = 899;
    assert_false(tern_layout_is_sure(&p)); /* the margin is just within the noise */
    p.ratio = 898;
    assert_true(tern_layout_is_sure(&p));
    assert_true(tern_layout_limit(false) == 1.0);
}

/* A probe with this ratio for a single token, and these for passes of 8 and 16 tokens. */
static tern_layout_probe of_passes(uint32_t ratio, uint32_t eight, uint32_t sixteen) {
    return (tern_layout_probe){.threads = 2,
                               .stream = 64,
                               .dense = TERN_LAYOUT_T5R16,
                               .ratio = ratio,
                               .noise = 10,
                               .passes = {eight, sixteen}};
}

static void check_together(tern_layout_probe p, uint32_t together, tern_layout layout,
                           bool enough) {
    assert_int_equal(tern_layout_rule(&p, together), layout);
    assert_int_equal(tern_layout_is_enough(&p, together), enough);
}

/* Passes count up to the expected number of sequences. None of them may be slower. */
static void test_layout_together(void **state) {
    const tern_layout two = TERN_LAYOUT_T2R16, five = TERN_LAYOUT_T5R16;
    char text[TERN_LAYOUT_REASON_BYTES];
    (void)state;
    check_together(of_passes(800, 1290, 1380), 7, five, true);
    check_together(of_passes(800, 1290, 1380), 8, two, true);
    check_together(of_passes(800, 1290, 1380), UINT32_MAX, two, true);
    check_together(of_passes(800, 900, 1001), 15, five, true); /* 16 at once cannot happen */
    check_together(of_passes(800, 900, 1001), 16, two, true);
    check_together(of_passes(800, 900, 1000), 16, five, true);
    check_together(of_passes(800, 1290, 0), 16, two, true); /* 8 are slower already */
    check_together(of_passes(800, 0, 0), 1, five, true);
    check_together(of_passes(800, 0, 0), 8, two, false); /* not measured */
    check_together(of_passes(800, 900, 0), 8, five, true);
    check_together(of_passes(800, 900, 0), 16, two, false);
    check_together(of_passes(990, 0, 0), 16, two, true); /* a token saves too little anyway */
    const tern_layout_probe slower = of_passes(800, 900, 1380), unknown = of_passes(800, 900, 0);
    tern_layout_reason(&slower, 16, text);
    assert_non_null(
        strstr(text, "a pass of 16 tokens, one for each sequence, takes 38.0 % longer"));
    tern_layout_reason(&unknown, 16, text);
    assert_non_null(strstr(text, "no pass of 16 tokens"));
}

/* A pass's ratio may exceed 1. The larger noise counts. */
static void test_layout_pass(void **state) {
    const tern_estimate slow = {1.3, 0.0}, busy = {1.0, 0.2};
    tern_layout_probe p = of_passes(800, 0, 0);
    (void)state;
    tern_layout_add_pass(&p, 0, &slow);
    assert_int_equal(p.passes[0], 1300);
    assert_int_equal(p.noise, 10);
    tern_layout_add_pass(&p, 1, &busy);
    assert_int_equal(p.passes[1], 1000);
    assert_int_equal(p.noise, 200);
}

/* True if this machine has a kernel for the layout besides the one in plain C. */
static bool has_own_kernel(int layout) {
    const tern_kernel_row *kernel = tern_kernel_select_layout(
        tern_cpu_features(), TERN_OP_GEMV, TERN_FORMAT_I2_S, (tern_layout)layout);
    return kernel != NULL && kernel->needs != 0;
}

/* The later of two dense layouts is measured if both have kernels. The passes that are measured
 * depend on the possible number of sequences. */
static void test_compare(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    tern_team *team = NULL;
    tern_tuner *tuner = NULL;
    tern_layout_probe alone = {.threads = 0}, many = alone;
    (void)state;
    assert_int_equal(tern_team_new(2, &team, NULL), TERN_OK);
    assert_int_equal(tern_tuner_new(&guard, team, 1 << 22, &tern_tune_quick, &tuner, NULL),
                     TERN_OK);
    if (tern_tuner_compare(tuner, 256, 512, 1, &alone)) { /* else no dense layout has kernels */
        assert_int_equal(alone.threads, 2);
        assert_true(alone.ratio > 0);
        assert_true(tern_layout_facts_of(alone.dense)->dense);
        for (int l = (int)alone.dense + 1; l < TERN_LAYOUT_COUNT; l++)
            assert_false(tern_layout_facts_of((tern_layout)l)->dense && has_own_kernel(l));
        assert_int_equal(alone.passes[0] + alone.passes[1], 0);
        assert_true(tern_tuner_compare(tuner, 256, 512, 16, &many));
        assert_true(tern_layout_is_enough(&many, 16));
    }
    check_freed(tern_tuner_free, tuner);
    tern_team_free(&team);
}

/* Keeps the newest probe for each number of threads and stream. */
static void test_layout_probes(void **state) {
    tern_layout_probes probes = {.n = 0};
    (void)state;
    for (uint32_t i = 1; i <= TERN_LAYOUT_PROBES + 1; i++) {
        const tern_layout_probe p = {.threads = i, .stream = 64, .ratio = 900, .noise = i};
        tern_layout_keep(&probes, &p);
        tern_layout_keep(&probes, &p);
    }
    assert_int_equal(probes.n, TERN_LAYOUT_PROBES);
    assert_null(tern_layout_find(&probes, 1, 64));
    assert_null(tern_layout_find(&probes, 2, 65));
    assert_int_equal(tern_layout_find(&probes, 2, 64)->noise, 2);
    assert_int_equal(tern_layout_find(&probes, TERN_LAYOUT_PROBES + 1, 64)->noise,
                     TERN_LAYOUT_PROBES + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate),      cmocka_unit_test(test_layout_rule),
        cmocka_unit_test(test_layout_probe),  cmocka_unit_test(test_layout_together),
        cmocka_unit_test(test_layout_pass),   cmocka_unit_test(test_compare),
        cmocka_unit_test(test_layout_probes),
    };
    return cmocka_run_group_tests_name("layout rule", tests, NULL, NULL);
}
