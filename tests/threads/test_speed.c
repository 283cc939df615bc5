/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of kinds of cores: distinguished, measured by the test's clock and by the real one, and
 * kept. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"
#include "runtime/model/tune/cores.h"
#include "runtime/model/tune/file.h"
#include "tests/support/check.h"
#include "threads/placement.h"
#include "threads/speed.h"

enum { MAX_CORES = 12 };

/* Cores on one node with these announced speeds and the numbers os[n]. */
static tern_topology *machine(const uint32_t *speeds, const uint32_t *os, uint32_t n) {
    static const uint32_t node = 0;
    tern_processor list[MAX_CORES];
    tern_topology *t = NULL;
    assert_true(n <= MAX_CORES);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (tern_processor){.os = os != NULL ? os[i] : i, .core = i, .speed = speeds[i]};
    assert_int_equal(tern_topology_of(list, n, &node, 1, &t, NULL), TERN_OK);
    return t;
}

static void test_kinds(void **state) {
    static const uint32_t mixed[] = {491, 1024, 1024, 300, 491}, same[] = {1024, 1024};
    static const uint32_t many[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    (void)state;
    tern_topology *t = machine(mixed, NULL, 5);
    const tern_core_speeds s = tern_core_kinds(t);
    static const uint32_t falling[] = {1024, 491, 300};
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.announced, falling, sizeof falling);
    assert_memory_equal(s.measured, falling, sizeof falling);
    tern_topology_free(&t);
    t = machine(same, NULL, 2);
    assert_int_equal(tern_core_kinds(t).n, 0);
    tern_topology_free(&t);
    t = machine(many, NULL, 9);
    assert_int_equal(tern_core_kinds(t).n, 0);
    tern_topology_free(&t);
}

/* The test's clock for three kinds of cores. A disturbed call takes longer. */
typedef struct fake {
    double seconds[3];
    int disturbed; /* the call that takes three times as long; -1: none */
    int calls;
} fake;

static double fake_clock(void *user, const tern_topology *t, uint32_t announced) {
    fake *f = user;
    const tern_core_speeds s = tern_core_kinds(t);
    uint32_t kind = 0;
    while (s.announced[kind] != announced)
        kind++;
    return f->seconds[kind] * (f->calls++ == f->disturbed ? 3.0 : 1.0);
}

static void check_measured(fake f, const uint32_t expected[3]) {
    static const uint32_t speeds[] = {1024, 491, 300};
    tern_topology *t = machine(speeds, NULL, 3);
    for (f.disturbed = -1; f.disturbed < 9; f.disturbed++) {
        tern_core_speeds s = tern_core_kinds(t);
        f.calls = 0;
        assert_true(tern_core_measure(t, fake_clock, &f, &s));
        assert_memory_equal(s.announced, speeds, sizeof speeds);
        assert_memory_equal(s.measured, expected, 3 * sizeof *expected);
    }
    tern_topology_free(&t);
}

static void test_measure(void **state) {
    static const uint32_t speeds[] = {1024, 491, 300};
    (void)state;
    check_measured((fake){{1.0, 2.0, 4.0}, -1, 0}, (const uint32_t[]){1024, 512, 256});
    check_measured((fake){{1.0, 1.2, 1.5}, -1, 0}, (const uint32_t[]){1024, 1024, 683}); /* alike */
    check_measured((fake){{4.0, 2.0, 1e9}, -1, 0},
                   (const uint32_t[]){512, 1024, 1}); /* another order */
    tern_topology *t = machine(speeds, NULL, 3);
    const tern_core_speeds before = tern_core_kinds(t);
    static const double broken[] = {0.0, -1.0, (double)NAN};
    for (size_t i = 0; i < 3; i++) {
        fake f = {{1.0, broken[i], 1.0}, -1, 0};
        tern_core_speeds s = before;
        assert_false(tern_core_measure(t, fake_clock, &f, &s));
        assert_memory_equal(&s, &before, sizeof s);
    }
    tern_topology_free(&t);
}

/* The order of processors, classes and shares follow. Cores of an unknown kind keep their
 * speeds. */
static void test_set(void **state) {
    static const uint32_t speeds[] = {1024, 1024, 491, 491, 77};
    const tern_core_speeds s = {.n = 2, .announced = {1024, 491}, .measured = {600, 1024}};
    const tern_core_speeds alike = {.n = 2, .announced = {1024, 600}, .measured = {1024, 1024}};
    tern_place places[5];
    (void)state;
    tern_topology *t = machine(speeds, NULL, 5);
    tern_topology_set_speeds(t, &s);
    assert_int_equal(t->n_classes, 3);
    assert_int_equal(t->n_cores, 5);
    assert_int_equal(t->n_sockets, 1);
    static const uint32_t order[] = {2, 3, 0, 1, 4};
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(t->processors[i].os, order[i]);
    const tern_places compact = {.affinity = TERN_AFFINITY_COMPACT};
    if (tern_topology_supported()) {
        assert_int_equal(tern_place_threads(t, &compact, 5, places, NULL), TERN_OK);
        for (uint32_t i = 0; i < 5; i++)
            assert_int_equal(places[i].share, i < 2 ? 1024 : i < 4 ? 600 : 77);
    }
    tern_topology_set_speeds(t, &alike);
    assert_int_equal(t->n_classes, 2);
    tern_topology_free(&t);
}

/* ---- the real clock -------------------------------------------------------------------------- */

/* Speeds of the topology after tern_tune_cores. */
static tern_core_speeds tuned(const uint32_t *speeds, const uint32_t *os, const char *folder,
                              bool measure, bool foreign) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    tern_topology *t = machine(speeds, os, 2);
    t->foreign = foreign;
    tern_tune_cores(&guard, folder, measure, t);
    tern_core_speeds s = {.n = 2};
    for (uint32_t i = 0; i < 2; i++)
        s.measured[i] = t->processors[i].speed;
    tern_topology_free(&t);
    return s;
}

static tern_tuning kept(const char *path) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    tern_cache_folder *folder = NULL;
    tern_tuning tuning = {.n = 0};
    assert_int_equal(tern_cache_folder_open(path, &folder, NULL), TERN_OK);
    tern_tune_load(folder, &guard, &tuning);
    tern_cache_folder_close(&folder);
    return tuning;
}

/* The first core twice, as if of two kinds: they measure nearly equal, are kept, and are found
 * again. */
static void test_tuned(void **state) {
    static const uint32_t speeds[] = {1024, 2}, others[] = {1024, 3};
    static const uint32_t absent[] = {100001, 100002};
    char path[] = "/tmp/tern-speed-XXXXXX", command[64];
    uint32_t *os = NULL;
    uint32_t n = 0;
    (void)state;
    assert_non_null(mkdtemp(path));
    assert_int_equal(tern_allowed_processors(&os, &n, NULL), TERN_OK);
    const uint32_t twice[] = {os[0], os[0]};
    free(os);
    /* Not measured without permission, on another machine, or without binding: the speeds stay as
     * announced. */
    assert_int_equal(tuned(speeds, twice, path, false, false).measured[1], 2);
    assert_int_equal(tuned(speeds, twice, path, true, true).measured[1], 2);
    assert_int_equal(tuned(speeds, absent, path, true, false).measured[1], 2);
    assert_int_equal(kept(path).cores.n, 0);
    const tern_core_speeds s = tuned(speeds, twice, path, true, false);
    assert_true(s.measured[0] == 1024 && s.measured[1] > 100);
    tern_tuning file = kept(path);
    assert_int_equal(file.cores.n, 2);
    assert_int_equal(file.cores.announced[1], 2);
    /* Kept speeds are used, whether or not measuring is allowed. Other kinds are measured anew. */
    const tern_core_speeds again = tuned(speeds, twice, path, false, false);
    assert_memory_equal(again.measured, s.measured, sizeof s.measured);
    assert_int_equal(tuned(others, twice, path, false, false).measured[1], 3);
    assert_true(tuned(others, twice, path, true, false).measured[1] > 100);
    tern_tuning_free(&file);
    assert_true(tuned(speeds, twice, NULL, true, false).measured[1] > 100);
    (void)snprintf(command, sizeof command, "rm -r %s", path);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_tuned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
