/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that are copies of one process: what exchanges bring, and what is said of a rank that is
 * lost. Copies cannot use the test library, so each ends with a status, and the first rank checks
 * what they say in a last exchange.
 */
#include "ranks/ranks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"

enum { SIZE = 3 };

static void must(tern_status status, const tern_error *err) {
    if (status != TERN_OK)
        check_fail("%s", err->message);
}

typedef int body(tern_ranks *ranks, uint32_t rank); /* 0: all is as it should be */

/* Runs a body on SIZE ranks; the sum of what they return must be 0. */
static void on_ranks(body *run) {
    int wrong[SIZE] = {0};
    tern_ranks *ranks = NULL;
    tern_error err = {0};
    must(tern_ranks_open("3", 20.0, &ranks, &err), &err);
    const uint32_t rank = tern_ranks_rank(ranks);
    wrong[rank] = run(ranks, rank);
    const tern_status met = tern_ranks_collect(ranks, wrong, sizeof *wrong, &err);
    if (rank > 0)
        _exit(0);
    tern_ranks_free(&ranks);
    must(met, &err);
    for (uint32_t i = 0; i < SIZE; i++) {
        check_case("rank %u", i);
        assert_int_equal(wrong[i], 0);
    }
}

static uint8_t value(size_t row, size_t column) {
    return (uint8_t)(row * 31 + column * 7 + 1);
}

/* Gathers rows of which this rank has filled its columns; others start as 0. */
static int gather_rows(tern_ranks *ranks, uint32_t rank, size_t rows, const size_t *bounds,
                       size_t stride, int to) {
    uint8_t *data = calloc(rows, stride);
    int wrong = data == NULL;
    for (size_t i = 0; !wrong && i < rows; i++)
        for (size_t c = bounds[rank]; c < bounds[rank + 1]; c++)
            data[i * stride + c] = value(i, c);
    const tern_ranks_rows all = {.data = data, .rows = rows, .stride = stride, .bounds = bounds};
    wrong += tern_ranks_gather(ranks, &all, to, NULL) != TERN_OK;
    const bool reads = to == TERN_RANKS_TO_ALL || (uint32_t)to == rank;
    for (size_t i = 0; data != NULL && i < rows; i++)
        for (size_t c = 0; c < stride; c++) {
            const bool own = c >= bounds[rank] && c < bounds[rank + 1];
            const bool there = c < bounds[SIZE] && (reads || own);
            wrong += data[i * stride + c] != (there ? value(i, c) : 0);
        }
    free(data);
    return wrong;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static int gather_all(tern_ranks *ranks, uint32_t rank) {
    static const size_t even[] = {0, 10, 20, 30}, none[] = {0, 0, 13, 13}, few[] = {0, 1, 1, 2};
    return gather_rows(ranks, rank, 1, even, 30, TERN_RANKS_TO_ALL) +
           gather_rows(ranks, rank, 5, none, 16, TERN_RANKS_TO_ALL) +
           gather_rows(ranks, rank, 4, few, 5, TERN_RANKS_TO_ALL);
}

static void test_gather(void **state) {
    (void)state;
    on_ranks(gather_all);
}

/* More than an area holds, so that areas take turns; and again, since an area may still be read. */
static int gather_large(tern_ranks *ranks, uint32_t rank) {
    static const size_t bounds[] = {0, 1000, 70000, 90000};
    int wrong = 0;
    for (int i = 0; i < 2; i++)
        wrong += gather_rows(ranks, rank, 150, bounds, 90000, TERN_RANKS_TO_ALL);
    return wrong;
}

static void test_large(void **state) {
    (void)state;
    on_ranks(gather_large);
}

static int gather_to_one(tern_ranks *ranks, uint32_t rank) {
    static const size_t bounds[] = {0, 4, 8, 12};
    int wrong = 0;
    for (int to = 0; to < SIZE; to++)
        wrong += gather_rows(ranks, rank, 3, bounds, 12, to);
    return wrong;
}

static void test_to_one(void **state) {
    (void)state;
    on_ranks(gather_to_one);
}

static int broadcast(tern_ranks *ranks, uint32_t rank) {
    const size_t n = 9 << 20;
    uint8_t *data = calloc(n, 1);
    int wrong = data == NULL;
    for (size_t i = 0; rank == 0 && i < n; i++)
        data[i] = value(i, 0);
    wrong += tern_ranks_broadcast(ranks, data, n, true, NULL) != TERN_OK;
    for (size_t i = 0; data != NULL && i < n; i++)
        wrong += data[i] != value(i, 0);
    free(data);
    return wrong;
}

static void test_broadcast(void **state) {
    (void)state;
    on_ranks(broadcast);
}

/* ---- failures -------------------------------------------------------------------------------- */

static int agree(tern_ranks *ranks, uint32_t rank) {
    tern_error err = {0};
    int wrong = tern_ranks_agree(ranks, TERN_OK, &err) != TERN_OK;
    tern_status status = TERN_OK;
    if (rank == 1)
        status = tern_fail(&err, TERN_ERR_IO, "no file");
    wrong += tern_ranks_agree(ranks, status, &err) != TERN_ERR_IO;
    return wrong + (strcmp(err.message, rank == 1 ? "no file" : "rank 1: no file") != 0);
}

static void test_agree(void **state) {
    (void)state;
    on_ranks(agree);
}

/* Rank 2 ends as `end` says; rank 0 must name it, then and at every later exchange. */
static void lose(void (*end)(void), double limit, const char *words) {
    int all[SIZE] = {0};
    tern_ranks *ranks = NULL;
    tern_error err = {0}, again = {0};
    must(tern_ranks_open("3", limit, &ranks, &err), &err);
    if (tern_ranks_rank(ranks) == 2)
        end();
    const tern_status status = tern_ranks_collect(ranks, all, sizeof *all, &err);
    if (tern_ranks_rank(ranks) > 0) {
        pause(); /* rank 0 ends it */
        _exit(1);
    }
    assert_int_equal(status, TERN_ERR_RANKS);
    assert_string_equal(err.message, words);
    assert_int_equal(tern_ranks_broadcast(ranks, all, sizeof all, true, &again), TERN_ERR_RANKS);
    assert_string_equal(again.message, err.message);
    tern_ranks_free(&ranks);
}

static void be_killed(void) {
    (void)raise(SIGKILL);
}

static void leave(void) {
    _exit(3);
}

static void be_stopped(void) {
    (void)raise(SIGSTOP);
}

static void test_lost(void **state) {
    (void)state;
    lose(be_killed, 60.0, "rank 2 was ended by signal 9");
    lose(leave, 60.0, "rank 2 ended with exit status 3");
    lose(be_stopped, 0.2, "rank 2 does not answer; seconds waited: 0");
}

static void test_open(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "0", "65", "2x", "mpirun"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tern_ranks *ranks = NULL;
        check_case("\"%s\"", wrong[i]);
        assert_int_equal(tern_ranks_open(wrong[i], 1.0, &ranks, NULL), TERN_ERR_ARG);
        assert_null(ranks);
    }
    assert_int_equal(unsetenv("OMPI_COMM_WORLD_SIZE") | unsetenv("PMI_SIZE"), 0);
    assert_false(tern_ranks_are_started());
    assert_int_equal(setenv("PMI_SIZE", "1", 1), 0);
    assert_false(tern_ranks_are_started());
    assert_int_equal(setenv("OMPI_COMM_WORLD_SIZE", "2", 1), 0);
    assert_true(tern_ranks_are_started());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather), cmocka_unit_test(test_large),
        cmocka_unit_test(test_to_one), cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_agree),  cmocka_unit_test(test_lost),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
