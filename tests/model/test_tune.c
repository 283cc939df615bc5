/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing kernels by measurement: decisions on invented times, and real measurements. */

#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "runtime/model/tune/measure.h"
#include "tests/support/check.h"

/* ---- picking --------------------------------------------------------------------------------- */

enum { FIVE = 5 };

/* Two alternatives: number 0 takes 1, number 1 takes `times[round]`. */
static size_t pick(const double times[FIVE]) {
    double seconds[FIVE * 2];
    for (size_t r = 0; r < FIVE; r++) {
        seconds[2 * r] = 1.0;
        seconds[2 * r + 1] = times[r];
    }
    return tern_tune_pick(seconds, 2, FIVE, 0.03);
}

static void test_pick(void **state) {
    (void)state;
    assert_int_equal(pick((double[]){1, 1, 1, 1, 1}), 0);
    assert_int_equal(pick((double[]){2, 2, 2, 2, 2}), 0);
    assert_int_equal(pick((double[]){0.98, 0.98, 0.98, 0.98, 0.98}), 0); /* within the margin */
    assert_int_equal(pick((double[]){0.96, 0.96, 0.96, 0.96, 0.96}), 1);
    assert_int_equal(pick((double[]){0.9, 9.0, 0.9, 0.9, 0.9}), 1); /* one disturbance */
    assert_int_equal(pick((double[]){0.9, 0.9, 9.0, 0.9, 0.9}), 1);
    assert_int_equal(pick((double[]){0.9, 1.1, 0.9, 1.1, 0.9}), 0); /* three rounds of five */
    assert_int_equal(pick((double[]){0.1, 0.99, 0.99, 0.99, 0.99}), 0);
    /* The table's kernel was disturbed in all rounds but one. That round shows its real speed. */
    const double busy[] = {3, 2, 1, 2, 3, 2, 1, 0.99, 3, 2};
    assert_int_equal(tern_tune_pick(busy, 2, FIVE, 0.03), 0);
}

/* A disturbance of a whole round affects all alternatives, so it says nothing. */
static void test_pick_in_noise(void **state) {
    double seconds[FIVE * 3];
    (void)state;
    for (size_t r = 0; r < FIVE; r++) {
        const double busy = r % 2 ? 7.0 : 1.0;
        seconds[3 * r] = 1.0 * busy;
        seconds[3 * r + 1] = 0.9 * busy;
        seconds[3 * r + 2] = 0.8 * busy;
    }
    assert_int_equal(tern_tune_pick(seconds, 3, FIVE, 0.03), 2);
    seconds[2] = 0.0; /* not measured */
    assert_int_equal(tern_tune_pick(seconds, 3, FIVE, 0.03), 1);
    assert_int_equal(tern_tune_pick(seconds, 1, FIVE, 0.03), 0);
    assert_int_equal(tern_tune_pick(seconds, 3, 0, 0.03), 0);
}

/* More rounds than the decision considers. */
static void test_pick_of_many_rounds(void **state) {
    double seconds[400];
    (void)state;
    for (size_t r = 0; r < 200; r++) {
        seconds[2 * r] = 1.0;
        seconds[2 * r + 1] = 0.5;
    }
    assert_int_equal(tern_tune_pick(seconds, 2, 200, 0.03), 1);
}

/* An alternative is lost only if no further round could help it. */
static void test_lost(void **state) {
    double seconds[16 * 2];
    (void)state;
    for (size_t lost = 0; lost <= 16; lost++) {
        for (size_t r = 0; r < 16; r++) {
            seconds[2 * r] = 1.0;
            seconds[2 * r + 1] = r < lost ? 1.1 : 0.5; /* loses first, then leads by far */
        }
        for (size_t done = 0; done <= 16; done++) {
            const bool is_lost = tern_tune_has_lost(seconds, 2, done, 16, 1, 0);
            check_case("%zu lost, %zu done", lost, done);
            assert_int_equal(is_lost, (done < lost ? done : lost) > 4);
            if (is_lost) /* all rounds would decide the same */
                assert_int_equal(tern_tune_pick(seconds, 2, 16, 0.03), 0);
        }
        assert_int_equal(tern_tune_pick(seconds, 2, 16, 0.03), lost <= 4);
    }
    assert_true(tern_tune_has_lost((double[]){1, 1}, 2, 1, 3, 1, 0)); /* a draw is not a lead */
}

static void test_noise(void **state) {
    const double seconds[] = {1, 9, 1, 9, 2, 9, 1, 9, 4, 9};
    (void)state;
    assert_true(tern_tune_noise(seconds, 2, NULL, FIVE) == 0.0);
    assert_true(tern_tune_noise(seconds, 2, (double[]){1, 1, 2, 1, 4}, FIVE) == 0.0);
    /* The differences are 0.25, 0.5, 0, 1 and 0.25. One wild round must not matter. */
    assert_true(tern_tune_noise(seconds, 2, (double[]){1.25, 0.5, 2, 2, 3}, FIVE) == 0.25);
    assert_true(tern_tune_noise(seconds, 2, seconds, 0) == 0.0);
}

/* ---- deciding -------------------------------------------------------------------------------- */

static const tern_kernel_row usual = {.name = "usual", .layout = TERN_LAYOUT_T2R16},
                             other = {.name = "other", .layout = TERN_LAYOUT_T2R16},
                             dense = {.name = "dense", .layout = TERN_LAYOUT_T5R16},
                             usual_m = {.name = "usual gemm", .layout = TERN_LAYOUT_T2R16},
                             dense_m = {.name = "dense gemm", .layout = TERN_LAYOUT_T5R16};

/* The decision if every round gives the same seconds: three kernels for gemv, two for gemm. */
static tern_tune_choice decide(const double gemv[3], const double gemm[2]) {
    double v[FIVE * 3], m[FIVE * 2];
    for (size_t i = 0; i < FIVE * 3; i++)
        v[i] = gemv[i % 3];
    for (size_t i = 0; i < FIVE * 2; i++)
        m[i] = gemm[i % 2];
    const tern_tune_times times = {.gemv = {&usual, &other, &dense},
                                   .gemm = {&usual_m, &dense_m},
                                   .n_gemv = 3,
                                   .n_gemm = 2,
                                   .rounds = FIVE,
                                   .gemv_seconds = v,
                                   .gemm_seconds = m};
    tern_tune_choice choice = {.key = {.rows = 7}};
    tern_tune_decide(&times, 0.03, &choice);
    assert_int_equal(choice.key.rows, 7);
    assert_int_equal(choice.gemv->layout, choice.layout);
    assert_int_equal(choice.gemm->layout, choice.layout);
    return choice;
}

/*
 * Two kernels for each operation. The second one is faster by `lead`. A second measurement of the
 * first one differs by `noise`, alternately up and down.
 */
static tern_tune_choice decide_in_noise(double gemv_lead, double gemv_noise, double gemm_lead,
                                        double gemm_noise) {
    static const tern_kernel_row other_m = {.name = "other gemm", .layout = TERN_LAYOUT_T2R16};
    double v[FIVE * 2], m[FIVE * 2], v_again[FIVE], m_again[FIVE];
    for (size_t r = 0; r < FIVE; r++) {
        const double sign = r % 2 ? -1.0 : 1.0;
        v[2 * r] = 4.0;
        v[2 * r + 1] = 4.0 * (1.0 - gemv_lead);
        v_again[r] = 4.0 * (1.0 + sign * gemv_noise);
        m[2 * r] = 1.0;
        m[2 * r + 1] = 1.0 - gemm_lead;
        m_again[r] = 1.0 + sign * gemm_noise;
    }
    const tern_tune_times times = {.gemv = {&usual, &other},
                                   .gemm = {&usual_m, &other_m},
                                   .n_gemv = 2,
                                   .n_gemm = 2,
                                   .rounds = FIVE,
                                   .gemv_seconds = v,
                                   .gemm_seconds = m,
                                   .gemv_again = v_again,
                                   .gemm_again = m_again};
    tern_tune_choice choice = {.key = {.rows = 7}};
    tern_tune_decide(&times, 0.03, &choice);
    return choice;
}

/* A lead must exceed the difference between measurements of one kernel, for the same operation. */
static void test_decide_in_noise(void **state) {
    (void)state;
    assert_ptr_equal(decide_in_noise(0.10, 0.0, 0.10, 0.0).gemv, &other);
    assert_ptr_equal(decide_in_noise(0.10, 0.08, 0.10, 0.0).gemv, &other);
    assert_ptr_equal(decide_in_noise(0.10, 0.12, 0.10, 0.0).gemv, &usual);
    assert_ptr_not_equal(decide_in_noise(0.10, 0.12, 0.10, 0.0).gemm, &usual_m);
    assert_ptr_equal(decide_in_noise(0.10, 0.0, 0.10, 0.12).gemm, &usual_m);
    assert_ptr_equal(decide_in_noise(0.10, 0.0, 0.10, 0.12).gemv, &other);
    assert_ptr_equal(decide_in_noise(0.02, 0.0, 0.10, 0.0).gemv, &usual);   /* within the margin */
    assert_ptr_equal(decide_in_noise(-0.10, 0.0, -0.10, 0.0).gemv, &usual); /* slower */
    assert_int_equal(decide_in_noise(0.10, 0.08, 0.10, 0.0).noise, 80); /* stored with the choice */
}

/* Layouts are compared by the cost of both operations, and so is the noise. */
static void test_layouts_in_noise(void **state) {
    double v[FIVE * 2], m[FIVE * 2], quiet_v[FIVE], busy_v[FIVE], quiet_m[FIVE], busy_m[FIVE];
    (void)state;
    for (size_t r = 0; r < FIVE; r++) {
        v[2 * r] = quiet_v[r] = 4.0;
        v[2 * r + 1] = 3.2;
        m[2 * r] = m[2 * r + 1] = quiet_m[r] = 1.0;
        busy_v[r] = 4.0 * 1.3;
        busy_m[r] = 1.0 * 1.3;
    }
    tern_tune_times times = {.gemv = {&usual, &dense},
                             .gemm = {&usual_m, &dense_m},
                             .n_gemv = 2,
                             .n_gemm = 2,
                             .rounds = FIVE,
                             .gemv_seconds = v,
                             .gemm_seconds = m,
                             .gemv_again = quiet_v,
                             .gemm_again = busy_m}; /* 0.06 of both together */
    tern_tune_choice choice = {.key = {.rows = 7}};
    tern_tune_decide(&times, 0.03, &choice);
    assert_ptr_equal(choice.gemv, &dense);
    times.gemv_again = busy_v;
    times.gemm_again = quiet_m;
    tern_tune_decide(&times, 0.03, &choice);
    assert_ptr_equal(choice.gemv, &usual);
}

static void test_decide(void **state) {
    (void)state;
    assert_ptr_equal(decide((double[]){4, 4, 4}, (double[]){1, 1}).gemv, &usual);
    assert_ptr_equal(decide((double[]){4, 3, 4}, (double[]){1, 1}).gemv, &other);
    assert_ptr_equal(decide((double[]){4, 5, 3}, (double[]){1, 1}).gemv, &dense);
    assert_ptr_equal(decide((double[]){4, 5, 3}, (double[]){1, 1}).gemm, &dense_m);
    /* Prompts lose as much as decoding gains. */
    assert_ptr_equal(decide((double[]){4, 5, 3}, (double[]){1, 2}).gemv, &usual);
    assert_ptr_equal(decide((double[]){4, 5, 3}, (double[]){1, 1.5}).gemv, &dense);
    /* The other layout must beat the best kernel of the usual one, not just its first. */
    assert_ptr_equal(decide((double[]){4, 2, 3}, (double[]){1, 1}).gemv, &other);
    assert_ptr_equal(decide((double[]){4, 2, 1}, (double[]){1, 1}).gemv, &dense);
    /* A layout that is ruled out for one operation is ruled out. */
    assert_ptr_equal(decide((double[]){4, 5, 0}, (double[]){1, 1}).gemv, &usual);
    assert_ptr_equal(decide((double[]){4, 5, 1}, (double[]){1, 0}).gemv, &usual);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void test_keys(void **state) {
    (void)state;
    assert_int_equal(tern_tune_format(TERN_FORMAT_TQ1_0, TERN_LAYOUT_T2R16), TERN_FORMAT_I2_S);
    assert_int_equal(tern_tune_format(TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16), TERN_FORMAT_I2_S);
    assert_int_equal(tern_tune_format(TERN_FORMAT_TQ2_0, TERN_LAYOUT_Q4_0R16), TERN_FORMAT_Q4_0);
    assert_int_equal(tern_tune_format(TERN_FORMAT_F16, TERN_LAYOUT_ROWS), TERN_FORMAT_F16);
    const uint64_t mib = 1 << 20;
    assert_int_equal(tern_tune_stream(3 * mib, 32 * mib), 4 * mib); /* fits into the cache */
    assert_int_equal(tern_tune_stream(1000 * mib, 32 * mib), 64 * mib);
    assert_int_equal(tern_tune_stream(1000 * mib, 0), 128 * mib);
    assert_int_equal(tern_tune_stream(1000 * mib, 4000 * mib), 128 * mib);
    assert_int_equal(tern_tune_stream(1000 * mib, mib), 8 * mib);
    assert_int_equal(tern_tune_stream(0, mib), 1);
    assert_int_equal(tern_tune_stream(UINT64_MAX, UINT64_MAX / 2), 128 * mib);
}

static void test_set_of_choices(void **state) {
    tern_tuning t = {.n = 0};
    tern_tune_choice choice = {.key = {.format = TERN_FORMAT_F16, .rows = 1, .cols = 2}};
    (void)state;
    assert_null(tern_tuning_find(NULL, &choice.key));
    assert_null(tern_tuning_find(&t, &choice.key));
    for (size_t i = 0; i < 100; i++) {
        choice.key.rows = i;
        assert_int_equal(tern_tuning_set(&t, &choice, NULL), TERN_OK);
    }
    choice.layout = TERN_LAYOUT_ROWS; /* replaces the last one */
    assert_int_equal(tern_tuning_set(&t, &choice, NULL), TERN_OK);
    assert_int_equal(t.n, 100);
    assert_int_equal(tern_tuning_find(&t, &choice.key)->layout, TERN_LAYOUT_ROWS);
    choice.key.threads = 1;
    assert_null(tern_tuning_find(&t, &choice.key));
    choice.key.threads = 0;
    choice.key.stream = 1;
    assert_null(tern_tuning_find(&t, &choice.key));
    tern_tuning_free(&t);
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* Checks the candidates of every format, for guards of every instruction set. */
static void check_candidates(const tern_guard *guard, tern_op op, tern_format format) {
    const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
    const size_t n = tern_tune_candidates(guard, op, format, kernels);
    const tern_layout own = tern_format_layout(format);
    if (own == TERN_LAYOUT_NONE) {
        assert_int_equal(n, 0);
        return;
    }
    assert_true(n >= 1);
    assert_ptr_equal(kernels[0], tern_guard_select(guard, (tern_kernel_use){op, format, own}));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(kernels[i]->op, op);
        assert_true(tern_layout_holds(kernels[i]->layout, format));
        assert_int_equal(tern_layout_input(kernels[i]->layout), tern_layout_input(own));
        assert_int_equal(kernels[i]->needs & ~guard->mask, 0);
        assert_true(n == 1 || kernels[i]->needs != 0);
        for (size_t k = 0; k < i; k++) {
            assert_ptr_not_equal(kernels[i], kernels[k]);
            if (kernels[k]->layout == kernels[i]->layout &&
                op != TERN_OP_GEMM) /* in the table's order */
                assert_true(kernels[k] < kernels[i]);
        }
    }
}

static void test_candidates(void **state) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    (void)state;
    for (size_t i = 0; i < count; i++)
        for (int f = 0; f < TERN_FORMAT_COUNT && isas[i].built; f++) {
            const tern_guard guard = tern_guard_new(isas[i].needs);
            check_case("%s, format %d", isas[i].name, f);
            check_candidates(&guard, TERN_OP_GEMV, (tern_format)f);
            check_candidates(&guard, TERN_OP_GEMM, (tern_format)f);
        }
    const tern_guard guard = tern_guard_new(0);
    const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
    assert_int_equal(tern_tune_candidates(&guard, TERN_OP_GEMV, TERN_FORMAT_I2_S, kernels), 1);
    assert_int_equal(tern_tune_candidates(&guard, TERN_OP_GEMV, TERN_FORMAT_NONE, kernels), 0);
}

/* A row that was found wrong is not a candidate, and cannot be chosen. */
static void test_refused_row(void **state) {
    const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
    tern_guard guard = tern_guard_new(tern_cpu_features());
    tern_tune_choice choice = {.key = {.format = TERN_FORMAT_Q8_0}};
    (void)state;
    const size_t n = tern_tune_candidates(&guard, TERN_OP_GEMV, TERN_FORMAT_Q8_0, kernels);
    choice.gemv = kernels[0];
    choice.layout = kernels[0]->layout;
    choice.gemm = tern_kernel_select(guard.mask, TERN_OP_GEMM, TERN_FORMAT_Q8_0);
    assert_true(tern_tune_is_possible(&guard, &choice));
    if (n < 2)
        return; /* nothing could replace it */
    guard.refused[guard.n_refused++].row = kernels[0];
    assert_int_equal(tern_tune_candidates(&guard, TERN_OP_GEMV, TERN_FORMAT_Q8_0, kernels), n - 1);
    assert_ptr_not_equal(kernels[0], choice.gemv);
    assert_false(tern_tune_is_possible(&guard, &choice));
    choice.gemv = kernels[0];
    assert_true(tern_tune_is_possible(&guard, &choice));
    choice.layout = TERN_LAYOUT_Q4_0R16;
    assert_false(tern_tune_is_possible(&guard, &choice));
}

/* ---- measuring ------------------------------------------------------------------------------- */

static tern_tuner *new_tuner(const tern_guard *guard, tern_team *team, uint64_t stream,
                             double budget) {
    const tern_tune_effort effort = {.rounds = 3, .sample_seconds = 1e-5, .budget_seconds = budget};
    tern_tuner *tuner = NULL;
    assert_int_equal(tern_tuner_new(guard, team, stream, &effort, &tuner, NULL), TERN_OK);
    return tuner;
}

/* Every format, odd shapes, several threads: the table's kernel has figures, and candidates are
 * listed. */
static void test_measure(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        tern_team *team = NULL;
        assert_int_equal(tern_team_new(threads, &team, NULL), TERN_OK);
        tern_tuner *tuner = new_tuner(&guard, team, 1 << 20, threads == 2 ? 1e9 : 0.0);
        for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
            const tern_format format = (tern_format)f;
            tern_tune_times t;
            tern_tune_choice choice = {.key = {.format = format}};
            if (tern_format_layout(format) == TERN_LAYOUT_NONE ||
                tern_tune_format(format, tern_format_layout(format)) != format)
                continue;
            check_case("format %d, %u threads", f, threads);
            assert_true(tern_tuner_measure(tuner, format, 72, 256, &t));
            assert_int_equal(t.rounds, 3);
            assert_true(t.gemv_seconds[0] > 0.0 && t.gemm_seconds[0] > 0.0);
            tern_tune_decide(&t, TERN_TUNE_MARGIN, &choice);
            assert_true(tern_tune_is_possible(&guard, &choice));
        }
        tern_tuner_free(&tuner);
        tern_team_free(&team);
    }
}

/* A part is measured of a matrix that is larger than all memory that the tuner walks through. */
static void test_large_matrix(void **state) {
    enum { ROWS = 1 << 16, COLS = 256, STREAM = 1 << 20 };
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    const tern_format format = TERN_FORMAT_Q8_0;
    tern_team *team = NULL;
    tern_tune_times t;
    (void)state;
    assert_int_equal(tern_team_new(2, &team, NULL), TERN_OK);
    tern_tuner *tuner = new_tuner(&guard, team, STREAM, 0.0);
    assert_true(tern_tuner_measure(tuner, tern_tune_format(format, tern_format_layout(format)), ROWS, COLS, &t));
    tern_tuner_free(&tuner);
    tern_team_free(&team);
}

static bool stop_now(void *user) {
    size_t *asked = user;
    return ++*asked > 1;
}

/* Measuring may be stopped between two rounds. Then nothing more is measured. */
static void test_stopped(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    tern_team *team = NULL;
    tern_tune_times t;
    size_t asked = 0;
    (void)state;
    assert_int_equal(tern_team_new(1, &team, NULL), TERN_OK);
    tern_tuner *tuner = new_tuner(&guard, team, 1 << 16, 0.0);
    tern_tuner_stop(tuner, stop_now, &asked);
    assert_false(tern_tuner_measure(tuner, TERN_FORMAT_F32, 16, 32, &t));
    assert_int_equal(asked, 2); /* the first round was measured */
    assert_false(tern_tuner_measure(tuner, TERN_FORMAT_F32, 16, 32, &t));
    assert_int_equal(asked, 2);
    tern_tuner_free(&tuner);
    tern_team_free(&team);
}

/* For every choice, measures only the table's first kernel and the chosen one. */
static void test_pair(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    const tern_kernel_row *gemv[TERN_TUNE_CANDIDATES], *gemm[TERN_TUNE_CANDIDATES];
    tern_team *team = NULL;
    (void)state;
    assert_int_equal(tern_team_new(1, &team, NULL), TERN_OK);
    tern_tuner *tuner = new_tuner(&guard, team, 1 << 20, 0.0);
    const size_t n_gemv = tern_tune_candidates(&guard, TERN_OP_GEMV, TERN_FORMAT_I2_S, gemv);
    const size_t n_gemm = tern_tune_candidates(&guard, TERN_OP_GEMM, TERN_FORMAT_I2_S, gemm);
    for (size_t i = 0; i < n_gemv; i++)
        for (size_t k = 0; k < n_gemm; k++) {
            const tern_tune_choice choice = {
                .key = {.format = TERN_FORMAT_I2_S, .rows = 72, .cols = 256},
                .layout = gemv[i]->layout,
                .gemv = gemv[i],
                .gemm = gemm[k]};
            tern_tune_choice decided = choice;
            tern_tune_times t;
            if (gemm[k]->layout != gemv[i]->layout)
                continue;
            assert_true(tern_tuner_measure_pair(tuner, &choice, &t));
            assert_int_equal(t.n_gemv, i > 0 ? 2 : 1);
            assert_int_equal(t.n_gemm, k > 0 ? 2 : 1);
            assert_ptr_equal(t.gemv[0], gemv[0]);
            assert_ptr_equal(t.gemm[0], gemm[0]);
            assert_ptr_equal(t.gemv[t.n_gemv - 1], gemv[i]);
            assert_ptr_equal(t.gemm[t.n_gemm - 1], gemm[k]);
            tern_tune_decide(&t, TERN_TUNE_MARGIN, &decided);
            assert_true(decided.gemv == gemv[0] || decided.gemv == gemv[i]);
            assert_true(tern_tune_is_possible(&guard, &decided));
        }
    tern_tune_times all; /* afterwards all are measured again */
    assert_true(tern_tuner_measure(tuner, TERN_FORMAT_I2_S, 72, 256, &all));
    assert_int_equal(all.n_gemv, n_gemv);
    tern_tuner_free(&tuner);
    tern_team_free(&team);
}

/* A matrix that does not fit into the stream, and a budget that is spent. */
static void test_nothing_measured(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    tern_team *team = NULL;
    tern_tune_times t;
    (void)state;
    assert_int_equal(tern_team_new(1, &team, NULL), TERN_OK);
    tern_tuner *tuner = new_tuner(&guard, team, 4096, 0.0);
    assert_false(tern_tuner_measure(tuner, TERN_FORMAT_F32, 64, 4096, &t));
    assert_false(tern_tuner_measure(tuner, TERN_FORMAT_NONE, 64, 64, &t));
    assert_true(tern_tuner_measure(tuner, TERN_FORMAT_F32, 16, 32, &t));
    tern_tuner_free(&tuner);
    tuner = new_tuner(&guard, team, 1 << 16, 1e-9);
    (void)tern_tuner_measure(tuner, TERN_FORMAT_F32, 16, 32, &t); /* takes longer than that */
    assert_false(tern_tuner_measure(tuner, TERN_FORMAT_F32, 16, 32, &t));
    tern_tuner_free(&tuner);
    tern_team_free(&team);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_pick_in_noise),
        cmocka_unit_test(test_pick_of_many_rounds),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_decide),
        cmocka_unit_test(test_decide_in_noise),
        cmocka_unit_test(test_layouts_in_noise),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_set_of_choices),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_refused_row),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_nothing_measured),
        cmocka_unit_test(test_large_matrix),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_pair),
    };
    return cmocka_run_group_tests_name("tuner", tests, NULL, NULL);
}
