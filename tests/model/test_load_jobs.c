/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of every job is made once, for any number of threads. The first of several errors is
 * reported. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/load/jobs.h"
#include "tern/kernels.h"

enum { JOBS = 5, MAX_ROWS = 70000, WIDE = 200000 /* bytes of a row: a piece has 16 rows */ };

static const size_t job_rows[JOBS] = {1, 16, MAX_ROWS, 333, 50};
static const size_t job_row_bytes[JOBS] = {10, WIDE, 100, WIDE, 1};

/* Counts how often each row was made. */
static atomic_uchar made[JOBS][MAX_ROWS];

/* Rows that are to fail, with their jobs. */
static struct { size_t job, row; } bad[3];
static size_t n_bad;

static tern_status make(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                        tern_error *err) {
    tern_status status = TERN_OK;
    (void)worker;
    assert_true(r0 < r1 && r1 <= job->rows);
    assert_true(r0 % TERN_ROW_GROUP == 0 && (r1 % TERN_ROW_GROUP == 0 || r1 == job->rows));
    for (size_t r = r1; r-- > r0;) {
        atomic_fetch_add(&made[job->number][r], 1);
        for (size_t i = 0; i < n_bad; i++)
            if (bad[i].job == job->number && bad[i].row == r)
                status = tern_fail(err, TERN_ERR_TENSOR_DATA, "job %zu, row %zu", job->number, r);
    }
    return status;
}

static void note_all(tern_load_jobs *jobs) {
    memset(made, 0, sizeof made);
    for (size_t i = 0; i < JOBS; i++) {
        tern_load_job *job = calloc(1, sizeof *job);
        assert_non_null(job);
        job->make = make;
        job->rows = job_rows[i];
        job->row_bytes = job_row_bytes[i];
        job->memory = malloc(1);
        tern_load_jobs_add(jobs, job);
    }
}

static tern_status run_all(uint32_t threads, tern_error *err) {
    tern_load_jobs jobs = {.first = NULL};
    tern_team *team = NULL;
    assert_int_equal(tern_team_new(threads, &team, NULL), TERN_OK);
    note_all(&jobs);
    const tern_status status = tern_load_jobs_run(&jobs, team, err);
    assert_null(jobs.first);
    assert_int_equal(tern_load_jobs_run(&jobs, team, NULL), TERN_OK); /* no job is left */
    tern_team_free(&team);
    return status;
}

static void test_every_row_once(void **state) {
    (void)state;
    n_bad = 0;
    for (uint32_t threads = 1; threads <= 7; threads += 2) {
        assert_int_equal(run_all(threads, NULL), TERN_OK);
        for (size_t i = 0; i < JOBS; i++)
            for (size_t r = 0; r < MAX_ROWS; r++)
                assert_int_equal(atomic_load(&made[i][r]), r < job_rows[i]);
    }
}

/* Rows in three parts of the work fail. The lowest row of the first such job is reported. */
static void test_first_error(void **state) {
    (void)state;
    bad[0].job = 3, bad[0].row = 320;
    bad[1].job = 2, bad[1].row = 69999;
    bad[2].job = 2, bad[2].row = 30011;
    n_bad = 3;
    for (uint32_t i = 0; i < 20; i++) {
        tern_error err = {.status = TERN_OK};
        assert_int_equal(run_all(1 + i % 4, &err), TERN_ERR_TENSOR_DATA);
        assert_string_equal(err.message, "job 2, row 30011");
    }
}

static void test_forget(void **state) {
    tern_load_jobs jobs = {.first = NULL};
    (void)state;
    note_all(&jobs);
    assert_int_equal(jobs.last->number, JOBS - 1);
    tern_load_jobs_free(&jobs);
    assert_null(jobs.first);
    assert_null(jobs.last);
    tern_load_jobs_free(&jobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_once),
        cmocka_unit_test(test_first_error),
        cmocka_unit_test(test_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
