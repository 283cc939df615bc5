/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements after an answer, and what the speed of runs shows. */

#include "runtime/model/tune/pace.h"
#include "tern/tune.h"
#include "tests/model/tune_folder.h"

/* ---- paces of runs --------------------------------------------------------------------------- */

/* The least time of each kind of run counts. Returns true only if the record changes. */
static void test_pace(void **state) {
    tern_tune_pace p = {.threads = 2};
    (void)state;
    assert_true(tern_tune_pace_note(&p, false, 100000));
    assert_false(tern_tune_pace_note(&p, false, 200000)); /* a busy machine */
    assert_false(tern_tune_pace_note(&p, false, 99500));  /* no clear difference */
    assert_int_equal(p.table_ns, 100000);
    assert_true(tern_tune_pace_note(&p, false, 90000));
    assert_int_equal(p.table_ns, 90000);
    assert_int_equal(p.runs, 0);
    assert_true(tern_tune_pace_note(&p, true, 80000));
    assert_true(tern_tune_pace_note(&p, true, 85000)); /* the number of runs changes */
    assert_false(tern_tune_pace_note(&p, true, 85000));
    assert_int_equal(p.chosen_ns, 80000);
    assert_int_equal(p.runs, TERN_TUNE_PACE_RUNS);
    assert_false(tern_tune_pace_note(&p, true, 0));
    assert_false(tern_tune_pace_note(&p, true, (uint64_t)TERN_TUNE_PACE_LIMIT));
}

static bool disagrees(uint64_t table, uint64_t chosen, uint32_t runs, uint32_t noise) {
    const tern_tune_pace p = {.table_ns = table, .chosen_ns = chosen, .runs = runs};
    return tern_tune_pace_disagrees(&p, noise);
}

static void test_pace_disagrees(void **state) {
    (void)state;
    assert_true(disagrees(1000, 1100, 2, 10));
    assert_false(disagrees(1000, 1100, 1, 10)); /* one run is not enough */
    assert_false(disagrees(1000, 900, 2, 10));  /* faster, as expected */
    assert_false(disagrees(1000, 1030, 2, 10)); /* within the margin */
    assert_true(disagrees(1000, 1031, 2, 10));
    assert_false(disagrees(1000, 1100, 2, 100)); /* within the tuner's noise */
    assert_true(disagrees(1000, 1101, 2, 100));
    assert_false(disagrees(0, 1100, 2, 10)); /* no run with the table's kernels */
    assert_false(disagrees(1000, 0, 2, 10));
    tern_tune_pace p = {.table_ns = 1000, .chosen_ns = 2000, .runs = 2};
    for (p.rechecks = 0; p.rechecks < TERN_TUNE_RECHECKS; p.rechecks++)
        assert_true(tern_tune_pace_disagrees(&p, 10));
    assert_false(tern_tune_pace_disagrees(&p, 10)); /* not forever */
    p.rechecks = 0;
    tern_tune_pace_renew(&p);
    assert_false(tern_tune_pace_disagrees(&p, 10));
    assert_int_equal(p.table_ns, 1000);
}

static void test_paces(void **state) {
    tern_tune_paces paces = {.n = 0};
    (void)state;
    for (uint32_t i = 1; i <= TERN_TUNE_PACES + 1; i++) {
        const tern_tune_pace p = {.threads = i, .shape = 64, .table_ns = i};
        tern_tune_pace_keep(&paces, &p);
        tern_tune_pace_keep(&paces, &p);
    }
    assert_int_equal(paces.n, TERN_TUNE_PACES);
    assert_null(tern_tune_pace_find(&paces, 1, 64));
    assert_null(tern_tune_pace_find(&paces, 2, 65));
    assert_int_equal(tern_tune_pace_find(&paces, 2, 64)->table_ns, 2);
}

/* ---- after an answer ------------------------------------------------------------------------- */

static tern_model *open_later(const char *path) {
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    params.tune = params.tune_later = true;
    params.cache = folder_path;
    params.threads = 2;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    return model;
}

static bool stop_at_once(void *user) {
    (void)user;
    return true;
}

static tern_tune_news tune_it(const tern_model *model, tern_tune_stop *stop) {
    tern_tune_news news;
    assert_int_equal(tern_model_tune(model, stop, NULL, &news, NULL), TERN_OK);
    return news;
}

static tern_tuning kept(const tern_guard *guard) {
    tern_cache_folder *folder = NULL;
    tern_tuning all = {.n = 0};
    assert_int_equal(tern_cache_folder_open(folder_path, &folder, NULL), TERN_OK);
    tern_tune_load(folder, guard, &all);
    tern_cache_folder_close(&folder);
    return all;
}

/* Opening measures no kernels. Later measurements may be stopped, and serve the next model. */
static void test_later(void **state) {
    char *path = model_path("bitnet-tiny");
    const uint64_t expected = untuned_answer(path);
    (void)state;
    tern_model *model = open_later(path);
    tern_tune_key keys[TERN_TUNE_KEYS];
    const size_t n = tern_tune_keys(model, 2, keys);
    assert_string_equal(tern_model_choice(model), "table");
    assert_true(answer(model, 2) == expected);
    assert_int_equal(empty_folder(), 0);
    tern_tune_news news = tune_it(model, stop_at_once);
    assert_true(news.stopped);
    assert_int_equal(news.measured, 0);
    assert_int_equal(empty_folder(), 0);
    news = tune_it(model, NULL);
    assert_false(news.stopped);
    assert_true(news.measured >= 1);
    size_t measured = news.measured;
    for (int i = 0; measured < n && i < 20; i++) /* a busy machine may need several calls */
        measured += tune_it(model, NULL).measured;
    assert_int_equal(measured, n);
    assert_int_equal(tune_it(model, NULL).measured, 0);
    assert_string_equal(tern_model_choice(model), "table"); /* unchanged */
    tern_model_free(&model);
    model = open_later(path);
    assert_string_equal(tern_model_choice(model), "tuned");
    assert_int_equal(model->tuning.n, n);
    assert_true(answer(model, 2) == expected);
    tern_model_free(&model);
    assert_int_equal(tern_model_tune(NULL, NULL, NULL, &news, NULL), TERN_ERR_NULL);
    unlink(path);
    assert_int_equal(empty_folder(), 1);
}

/* Without tune_later, or without a folder, there is nothing to do. */
static void test_not_later(void **state) {
    char *path = model_path("bitnet-tiny");
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    (void)state;
    params.tune_later = true;
    params.cache = folder_path;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_int_equal(tune_it(model, NULL).measured, 0);
    tern_model_note_pace(model, 100, 100, 1e-3);
    tern_model_free(&model);
    params.tune = true;
    params.cache = NULL;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_string_equal(tern_model_choice(model), "table");
    assert_int_equal(tune_it(model, NULL).measured, 0);
    tern_model_free(&model);
    unlink(path);
    assert_int_equal(empty_folder(), 0);
}

/* The folder's only pace after a run of the model with these figures. */
static tern_tune_pace pace_after(const tern_model *model, size_t tokens, size_t end,
                                 double seconds) {
    tern_model_note_pace(model, tokens, end, seconds);
    tern_tuning all = kept(&model->guard);
    const tern_tune_pace pace =
        all.paces.n > 0 ? all.paces.list[0] : (tern_tune_pace){.threads = 0};
    assert_true(all.paces.n <= 1);
    tern_tuning_free(&all);
    return pace;
}

/* Runs with the table's kernels took 1 ms a token. The choices, which a file forces upon the model,
 * take 2, so they are measured again. They are not if both agree, or after enough repetitions. */
static void test_runs_disagree(void **state) {
    char *path = model_path("bitnet-tiny");
    const uint64_t expected = untuned_answer(path);
    tern_model *model = open_later(path);
    tern_tune_key keys[TERN_TUNE_KEYS];
    const size_t n = tern_tune_keys(model, 2, keys);
    const tern_guard guard = model->guard;
    const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
    (void)state;
    if (tern_tune_candidates(&guard, TERN_OP_GEMV, TERN_FORMAT_I2_S, kernels) < 2) {
        tern_model_free(&model);
        unlink(path);
        return; /* there is no choice */
    }
    assert_int_equal(pace_after(model, TERN_TUNE_PACE_TOKENS - 1, 100, 1e-3).threads, 0);
    assert_int_equal(pace_after(model, 100, TERN_TUNE_PACE_POSITIONS + 1, 1e-3).threads, 0);
    assert_int_equal(pace_after(model, 100, 100, 1e-3).table_ns, 1000000);
    tern_model_free(&model);
    assert_true(force(path, 2, 1));
    model = open_later(path);
    assert_string_equal(tern_model_choice(model), "tuned");
    assert_int_equal(pace_after(model, 100, 100, 0.9e-3).chosen_ns, 900000);
    assert_int_equal(pace_after(model, 100, 100, 0.9e-3).runs, 2);
    assert_int_equal(tune_it(model, NULL).again, 0);
    tern_model_free(&model);
    assert_true(force(path, 2, 2)); /* new choices: paces of the old ones are forgotten */
    model = open_later(path);
    tern_tune_pace pace = pace_after(model, 100, 100, 2e-3);
    assert_int_equal(pace.chosen_ns, 2000000);
    assert_int_equal(pace.runs, 1);
    assert_int_equal(tune_it(model, NULL).again, 0);
    for (uint32_t i = 1; i <= TERN_TUNE_RECHECKS; i++) {
        for (int r = 0; r < TERN_TUNE_PACE_RUNS; r++)
            (void)pace_after(model, 100, 100, 2e-3);
        assert_true(tune_it(model, stop_at_once).again == 0);
        const tern_tune_news news = tune_it(model, NULL);
        assert_true(news.again >= 1 && news.again <= n);
        tern_tuning all = kept(&guard);
        assert_int_equal(all.paces.list[0].rechecks, i);
        assert_int_equal(all.paces.list[0].chosen_ns, 0);
        assert_int_equal(all.paces.list[0].table_ns, 1000000);
        tern_tuning_free(&all);
        assert_int_equal(tune_it(model, NULL).again, 0);
    }
    for (int r = 0; r < TERN_TUNE_PACE_RUNS; r++)
        (void)pace_after(model, 100, 100, 2e-3);
    assert_int_equal(tune_it(model, NULL).again, 0);
    tern_model_free(&model);
    model = open_later(path);
    assert_true(answer(model, 2) == expected);
    tern_model_free(&model);
    unlink(path);
    assert_int_equal(empty_folder(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace),      cmocka_unit_test(test_pace_disagrees),
        cmocka_unit_test(test_paces),     cmocka_unit_test(test_later),
        cmocka_unit_test(test_not_later), cmocka_unit_test(test_runs_disagree),
    };
    return cmocka_run_group_tests_name("tuning after answers", tests, make_folder, remove_folder);
}
