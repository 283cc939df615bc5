/* SPDX-License-Identifier: Apache-2.0 */
/* Which processors the system allows: masks of any size, and a system that does not tell. Its call
 * is replaced in this file. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "threads/topology.h"

enum { NEAR = 3, FAR = 2000 }; /* processors that are allowed; a cpu_set_t ends before the second */

static size_t least;   /* bytes of a mask that fits */
static int fails_with; /* an errno; 0: the call succeeds */

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid;
    errno = fails_with != 0 ? fails_with : EINVAL;
    if (fails_with != 0 || size < least)
        return -1;
    CPU_ZERO_S(size, set);
    CPU_SET_S(NEAR, size, set);
    CPU_SET_S(FAR, size, set);
    return 0;
}

#ifdef TERN_HAVE_HWLOC
static bool refused; /* the list for hwloc */

tern_status __real_tern_allowed_processors(uint32_t **out, uint32_t *n, tern_error *err);

tern_status __wrap_tern_allowed_processors(uint32_t **out, uint32_t *n, tern_error *err);
tern_status __wrap_tern_allowed_processors(uint32_t **out, uint32_t *n, tern_error *err) {
    return refused ? tern_fail(err, TERN_ERR_IO, "the system does not tell")
                   : __real_tern_allowed_processors(out, n, err);
}

static void test_hwloc_is_not_asked_further(void **state) {
    (void)state;
    tern_error err = {0};
    tern_topology *t = NULL;
    refused = true;
    assert_int_equal(tern_topology_by_hwloc(&t, &err), TERN_ERR_IO);
    assert_string_equal(err.message, "the system does not tell");
    assert_null(t);
    refused = false;
}
#endif

static int with_a_small_mask(void **state) {
    (void)state;
    least = CPU_ALLOC_SIZE(4096);
    fails_with = 0;
    return 0;
}

static void test_the_mask_grows(void **state) {
    (void)state;
    uint32_t *os = NULL;
    uint32_t n = 0;
    assert_int_equal(tern_allowed_processors(&os, &n, NULL), TERN_OK);
    assert_int_equal(n, 2);
    assert_int_equal(os[0], NEAR);
    assert_int_equal(os[1], FAR);
    free(os);
}

static void test_no_mask_fits(void **state) {
    (void)state;
    uint32_t *os = NULL;
    uint32_t n = 0;
    tern_error err = {0};
    least = SIZE_MAX;
    assert_int_equal(tern_allowed_processors(&os, &n, &err), TERN_ERR_NOMEM);
    assert_string_equal(err.message, "no memory for the list of processors");
}

static void test_a_system_that_does_not_tell(void **state) {
    (void)state;
    uint32_t *os = NULL;
    uint32_t n = 0;
    tern_error err = {0};
    fails_with = EPERM;
    assert_int_equal(tern_allowed_processors(&os, &n, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, strerror(EPERM)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifdef TERN_HAVE_HWLOC
        cmocka_unit_test(
            test_hwloc_is_not_asked_further), /* first: hwloc counts processors itself */
#endif
        cmocka_unit_test_setup(test_the_mask_grows, with_a_small_mask),
        cmocka_unit_test_setup(test_no_mask_fits, with_a_small_mask),
        cmocka_unit_test_setup(test_a_system_that_does_not_tell, with_a_small_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
