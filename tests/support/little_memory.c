/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/little_memory.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/check.h"

tern_status opened_within(const tern_model *model, const tern_session_params *params, uint64_t more,
                          tern_error *err) {
    struct rlimit before;
    unsigned long pages = 0;
    tern_session *s = NULL;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit limit = before;
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    const tern_status status = tern_session_new(model, params, &s, err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true((s != NULL) == (status == TERN_OK));
    check_freed(tern_session_free, s);
    return status;
}
