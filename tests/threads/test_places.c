/* SPDX-License-Identifier: Apache-2.0 */
/* Topologies as hwloc reports them, of this machine and of others, and the places of threads. */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/check.h"
#include "threads/placement.h"
#include "threads/quota.h"

enum { MAX_THREADS = 64 };

#define TWO_SOCKETS "pack:2 [numa] core:8 pu:2"
#define FOUR_NODES "pack:2 die:2 [numa] core:3 pu:1"
#define HYBRID TERN_SOURCE_DIR "/tests/topologies/hybrid.xml"

/* ---- machines -------------------------------------------------------------------------------- */

static tern_topology *topology_new(void) {
    tern_topology *t = NULL;
    tern_error err = {0};
    if (tern_topology_new(&t, &err) != TERN_OK)
        check_fail("%s", err.message);
    return t;
}

/* The machine that a variable of hwloc describes. */
static tern_topology *machine(const char *variable, const char *value) {
    assert_int_equal(setenv(variable, value, 1), 0);
    tern_topology *t = topology_new();
    assert_int_equal(unsetenv(variable), 0);
    assert_true(t->foreign);
    return t;
}

static void need_hwloc(void) {
    if (!tern_topology_supported())
        check_skip("built without hwloc");
}

static void test_two_sockets(void **state) {
    (void)state;
    need_hwloc();
    tern_topology *t = machine("HWLOC_SYNTHETIC", TWO_SOCKETS);
    assert_int_equal(tern_topology_processors(t), 32);
    assert_int_equal(tern_topology_cores(t), 16);
    assert_int_equal(tern_topology_sockets(t), 2);
    assert_int_equal(tern_topology_nodes(t), 2);
    assert_int_equal(tern_topology_first_cpu(t, 0), 0);
    assert_int_equal(tern_topology_first_cpu(t, 1), 16);
    assert_int_equal(tern_topology_first_cpu(t, 2), -1);
    assert_int_equal(t->n_classes, 2);
    t->quota = 0;
    assert_int_equal(tern_topology_threads(t), 16); /* not the 32 processors */
    t->quota = 5;
    assert_int_equal(tern_topology_threads(t), 5);
    t->quota = 500;
    assert_int_equal(tern_topology_threads(t), 16);
    check_freed(tern_topology_free, t);
    assert_null(t);
}

static void test_four_nodes(void **state) {
    (void)state;
    need_hwloc();
    tern_topology *t = machine("HWLOC_SYNTHETIC", FOUR_NODES);
    assert_int_equal(tern_topology_cores(t), 12);
    assert_int_equal(tern_topology_sockets(t), 2);
    assert_int_equal(tern_topology_nodes(t), 4);
    for (uint32_t i = 0; i < t->n; i++) {
        assert_int_equal(t->processors[i].node, i / 3);
        assert_int_equal(t->processors[i].socket, i / 6);
    }
    tern_topology_free(&t);
}

static void test_hybrid(void **state) {
    (void)state;
    need_hwloc();
    tern_topology *t = machine("HWLOC_XMLFILE", HYBRID);
    assert_int_equal(tern_topology_processors(t), 8);
    assert_int_equal(tern_topology_cores(t), 6);
    assert_int_equal(t->n_classes, 2);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(t->processors[i].os, i);
        assert_int_equal(t->processors[i].speed, TERN_FULL_SPEED);
        assert_int_equal(t->processors[4 + i].os, 4 + i);
        /* 60 % of 4000 MHz beside 5000 MHz */
        assert_int_equal(t->processors[4 + i].speed, 2400 * TERN_FULL_SPEED / 5000);
    }
    tern_topology_free(&t);
}

/* Nonsense in hwloc's variables gives this machine, never a crash. */
static void test_bad_descriptions(void **state) {
    static const char *const texts[] = {"", "core", "pack:0", "core:4 core:4", "pu:x", "]["};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(setenv("HWLOC_SYNTHETIC", texts[i], 1), 0);
        tern_topology *t = topology_new();
        assert_true(tern_topology_processors(t) >= 1);
        tern_topology_free(&t);
    }
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
}

static void test_this_machine(void **state) {
    uint32_t *os = NULL;
    uint32_t n = 0;
    (void)state;
    assert_int_equal(tern_allowed_processors(&os, &n, NULL), TERN_OK);
    tern_topology *t = topology_new();
    assert_false(t->foreign);
    assert_int_equal(tern_topology_processors(t), n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n && t->processors[k].os != os[i])
            k++;
        assert_true(k < n);
    }
    assert_true(tern_topology_cores(t) >= 1 && tern_topology_cores(t) <= n);
    assert_true(tern_topology_threads(t) >= 1 && tern_topology_threads(t) <= n);
    assert_true(tern_topology_first_cpu(t, 0) >= 0);
    char online[TERN_NODES_ONLINE_BYTES];
    tern_read_line("/sys/devices/system/node/online", online, sizeof online);
    assert_string_equal(tern_topology_nodes_online(t), online);
    free(os);
    tern_topology_free(&t);
    tern_topology_free(NULL);
    assert_int_equal(tern_topology_new(NULL, NULL), TERN_ERR_NULL);
}

/* ---- plain machines -------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A file below root, with the folders it needs. */
static void put(const char *root, const char *name, const char *text) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    write_text(path, text);
}

static void remove_all(const char *root) {
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void test_plain(void **state) {
    static const uint32_t os[] = {0, 3};
    static const char *const files[][2] = {
        {"/system/node/online", "0\n"},
        {"/system/cpu/smt/active", "0\n"},
        {"/system/cpu/cpu0/topology/physical_package_id", "0\n"},
        {"/system/cpu/cpu3/topology/physical_package_id", "0\n"},
        {"/system/cpu/cpu0/cpu_capacity", "1024\n"},
        {"/system/cpu/cpu3/cpu_capacity", "1024\n"},
        {"/system/cpu/cpu1/topology/physical_package_id", "1\n"}, /* not allowed */
    };
    /* Each of these alone makes it a machine with a choice. */
    static const char *const changes[][2] = {
        {"/system/node/online", "0-1\n"},
        {"/system/node/online", "0,2\n"},
        {"/system/node/online", ""},
        {"/system/cpu/smt/active", "1\n"},
        {"/system/cpu/smt/active", ""},
        {"/system/cpu/cpu3/topology/physical_package_id", "1\n"},
        {"/system/cpu/cpu0/topology/physical_package_id", ""},
        {"/system/cpu/cpu3/cpu_capacity", "512\n"},
        {"/cpu_atom/type", "10\n"},
    };
    (void)state;
    for (size_t c = 0; c <= sizeof changes / sizeof *changes; c++) {
        char root[] = "/tmp/tern-plain-XXXXXX";
        assert_non_null(mkdtemp(root));
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            put(root, files[i][0], files[i][1]);
        check_case("change %zu", c);
        if (c < sizeof changes / sizeof *changes) {
            put(root, changes[c][0], changes[c][1]);
            assert_false(tern_machine_is_plain(root, os, 2));
        } else {
            assert_true(tern_machine_is_plain(root, os, 2));
        }
        remove_all(root);
    }
    assert_false(tern_machine_is_plain("/nonexistent", os, 2));
}

/* ---- placement ------------------------------------------------------------------------------- */

/* nodes x cores x siblings processors. The last `slow` cores of each node have the given speed. */
static tern_topology *made(uint32_t nodes, uint32_t cores, uint32_t siblings, uint32_t slow,
                           uint32_t speed) {
    tern_processor list[256];
    uint32_t os[8];
    uint32_t n = 0;
    tern_topology *t = NULL;
    for (uint32_t node = 0; node < nodes; node++) {
        os[node] = node * 10;
        for (uint32_t c = 0; c < cores; c++)
            for (uint32_t s = 0; s < siblings; s++)
                list[n++] = (tern_processor){.os = s * nodes * cores + node * cores + c,
                                             .node = node,
                                             .socket = node,
                                             .core = node * cores + c,
                                             .sibling = s,
                                             .speed = c + slow >= cores ? speed : TERN_FULL_SPEED};
    }
    assert_int_equal(tern_topology_of(list, n, os, nodes, &t, NULL), TERN_OK);
    return t;
}

static void place(const tern_topology *t, tern_places wish, uint32_t threads, tern_place *places) {
    check_case("affinity %s, %u threads", tern_affinity_name(wish.affinity), threads);
    memset(places, 0xee, threads * sizeof *places);
    assert_int_equal(tern_place_threads(t, &wish, threads, places, NULL), TERN_OK);
}

static bool is_bound(tern_place p) {
    return p.first < p.end;
}

/* Checks the invariants for every machine, wish and number of threads. */
static void check_places(const tern_topology *t, tern_places wish, uint32_t threads) {
    tern_place places[MAX_THREADS];
    uint32_t users[256] = {0};
    place(t, wish, threads, places);
    for (uint32_t i = 0; i < threads; i++) {
        const tern_place *p = &places[i];
        assert_true(p->end <= t->n && p->share >= 1 && p->share <= TERN_FULL_SPEED);
        assert_true(i == 0 || p->first >= places[i - 1].first);
        if (wish.affinity == TERN_AFFINITY_NONE)
            assert_false(is_bound(*p));
        if (wish.affinity >= TERN_AFFINITY_COMPACT)
            assert_true(is_bound(*p));
        for (uint32_t k = p->first; k < p->end; k++) {
            users[t->processors[k].core]++;
            assert_int_equal(t->processors[k].node, p->node);
            assert_int_equal(t->processors[k].socket, p->socket);
            if (wish.numa == TERN_NUMA_NODE)
                assert_int_equal(t->node_os[p->node], wish.node);
        }
    }
    /* No core gets a second thread before all have one. */
    if (wish.affinity >= TERN_AFFINITY_COMPACT && wish.numa != TERN_NUMA_NODE &&
        threads <= t->n_cores)
        for (uint32_t i = 0; i < threads; i++)
            for (uint32_t k = 0; k < i; k++)
                assert_true(places[i].first != places[k].first);
}

static void test_invariants(void **state) {
    (void)state;
    for (uint32_t nodes = 1; nodes <= 4; nodes++)
        for (uint32_t cores = 1; cores <= 6; cores++)
            for (uint32_t siblings = 1; siblings <= 2; siblings++)
                for (uint32_t slow = 0; slow < cores; slow += 2) {
                    tern_topology *t = made(nodes, cores, siblings, slow, 512);
                    for (uint32_t threads = 1; threads <= MAX_THREADS; threads++)
                        for (int a = TERN_AFFINITY_AUTO; a <= TERN_AFFINITY_SCATTER; a++) {
                            check_places(t, (tern_places){.affinity = (tern_affinity)a}, threads);
                            check_places(t,
                                         (tern_places){.affinity = (tern_affinity)a,
                                                       .numa = TERN_NUMA_NODE,
                                                       .node = (nodes - 1) * 10},
                                         threads);
                        }
                    tern_topology_free(&t);
                }
}

/* Counts the threads on each node. */
static void count_nodes(const tern_place *places, uint32_t threads, uint32_t *counts) {
    memset(counts, 0, 4 * sizeof *counts);
    for (uint32_t i = 0; i < threads; i++)
        counts[places[i].node]++;
}

static void test_compact_and_scatter(void **state) {
    tern_topology *t = made(2, 8, 2, 0, 0);
    tern_place places[MAX_THREADS];
    uint32_t counts[4];
    (void)state;
    place(t, (tern_places){.affinity = TERN_AFFINITY_COMPACT}, 6, places);
    for (uint32_t i = 0; i < 6; i++) { /* whole cores, with both siblings */
        assert_int_equal(places[i].first, 2 * i);
        assert_int_equal(places[i].end, 2 * i + 2);
        assert_int_equal(places[i].share, TERN_FULL_SPEED);
    }
    place(t, (tern_places){.affinity = TERN_AFFINITY_COMPACT}, 10, places);
    count_nodes(places, 10, counts);
    assert_int_equal(counts[0], 8);
    assert_int_equal(counts[1], 2);
    place(t, (tern_places){.affinity = TERN_AFFINITY_SCATTER}, 6, places);
    count_nodes(places, 6, counts);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[1], 3);
    /* More threads than cores: they get single processors, and two threads on a core get half
     * each. */
    place(t, (tern_places){.affinity = TERN_AFFINITY_SCATTER}, 18, places);
    count_nodes(places, 18, counts);
    assert_int_equal(counts[0], 9);
    assert_int_equal(places[0].end, 1);
    assert_int_equal(places[0].share, TERN_FULL_SPEED / 2);
    assert_int_equal(places[1].share, TERN_FULL_SPEED / 2);
    assert_int_equal(places[2].share, TERN_FULL_SPEED);
    tern_topology_free(&t);
}

static void test_auto(void **state) {
    tern_place places[MAX_THREADS];
    uint32_t counts[4];
    (void)state;
    tern_topology *plain = made(1, 4, 2, 0, 0); /* no choice, so nothing is bound */
    place(plain, (tern_places){.affinity = TERN_AFFINITY_AUTO}, 4, places);
    for (uint32_t i = 0; i < 4; i++) {
        assert_false(is_bound(places[i]));
        assert_int_equal(places[i].share, TERN_FULL_SPEED);
    }
    tern_topology_free(&plain);
    tern_topology *nodes = made(2, 4, 2, 0, 0); /* on any processor of its node */
    place(nodes, (tern_places){.affinity = TERN_AFFINITY_AUTO}, 4, places);
    count_nodes(places, 4, counts);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 2);
    assert_int_equal(places[0].first, 0);
    assert_int_equal(places[0].end, 8);
    assert_int_equal(places[3].first, 8);
    assert_int_equal(places[3].end, 16);
    place(nodes, (tern_places){.numa = TERN_NUMA_NODE, .node = 10}, 4, places);
    assert_int_equal(places[0].first, 8);
    assert_int_equal(places[3].end, 16);
    tern_topology_free(&nodes);
}

static void test_slow_cores(void **state) {
    tern_topology *t = made(1, 6, 1, 4, 512);
    tern_place places[MAX_THREADS];
    (void)state;
    place(t, (tern_places){.affinity = TERN_AFFINITY_AUTO}, 2, places); /* fast ones first */
    assert_int_equal(places[0].end, 2);
    assert_int_equal(places[1].end, 2);
    place(t, (tern_places){.affinity = TERN_AFFINITY_AUTO}, 6, places);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(places[i].first, i < 2 ? 0 : 2);
        assert_int_equal(places[i].end, i < 2 ? 2 : 6);
        assert_int_equal(places[i].share, i < 2 ? TERN_FULL_SPEED : 512);
    }
    tern_topology_free(&t);
}

static void test_check(void **state) {
    tern_topology *t = made(2, 2, 1, 0, 0);
    tern_error err = {0};
    char text[32];
    (void)state;
    const tern_places none = {.affinity = TERN_AFFINITY_NONE};
    const tern_places node = {.numa = TERN_NUMA_NODE, .node = 10};
    const tern_places missing = {.numa = TERN_NUMA_NODE, .node = 1};
    const tern_places nonsense = {.affinity = (tern_affinity)7};
    assert_int_equal(tern_places_check(t, &none, &err), TERN_OK);
    assert_int_equal(tern_places_check(t, &nonsense, &err), TERN_ERR_ARG);
    assert_int_equal(tern_places_check(t, &missing, &err), TERN_ERR_PLACES);
    tern_numa_name(&missing, text, sizeof text);
    assert_string_equal(text, "node:1");
    const tern_places compact = {.affinity = TERN_AFFINITY_COMPACT};
    const tern_status wanted = tern_topology_supported() ? TERN_OK : TERN_ERR_PLACES;
    assert_int_equal(tern_places_check(t, &node, &err), wanted);
    assert_int_equal(tern_places_check(t, &compact, &err), wanted);
    if (wanted != TERN_OK)
        assert_non_null(strstr(err.message, "built without hwloc"));
    tern_topology_free(&t);
}

/* ---- processor time -------------------------------------------------------------------------- */

static void test_quota_texts(void **state) {
    (void)state;
    assert_int_equal(tern_quota_parse("max 100000"), 0);
    assert_int_equal(tern_quota_parse("200000 100000"), 2);
    assert_int_equal(tern_quota_parse("250000 100000"), 2);
    assert_int_equal(tern_quota_parse("50000 100000"), 1);
    assert_int_equal(tern_quota_parse(""), 0);
    assert_int_equal(tern_quota_parse("100000"), 0);
    assert_int_equal(tern_quota_parse("100000 0"), 0);
    assert_int_equal(tern_quota_parse("99999999999999999999999 1"), 0);
}

static void test_quota_of_groups(void **state) {
    char root[] = "/tmp/tern-quota-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(root));
    put(root, "/a/cpu.max", "300000 100000\n");
    put(root, "/a/b/cpu.max", "max 100000\n");
    put(root, "/cpu/cpu.cfs_quota_us", "-1\n");
    put(root, "/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(tern_quota_find(root, "0::/a/b\n"), 3); /* limited by the group above */
    assert_int_equal(tern_quota_find(root, "3:cpu:/\n0::/a\n"), 3);
    assert_int_equal(tern_quota_find(root, "0::/elsewhere\n"), 0);
    assert_int_equal(tern_quota_find(root, ""), 0);
    put(root, "/cpu/cpu.cfs_quota_us", "200000\n");
    assert_int_equal(tern_quota_find(root, ""), 2);
    assert_int_equal(tern_quota_find(root, "0::/a\n"), 2); /* the tighter limit counts */
    remove_all(root);
}

/* The folder where files of this process's group and its limit are looked for; NULL: where they are. */
static const char *elsewhere;

/* Tests have no groups of their own to make, so the names are turned to files that are made here. */
int open(const char *path, int flags, ...) {
    char other[PATH_MAX];
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (elsewhere != NULL && (strncmp(path, "/proc/self/", 11) == 0 || strncmp(path, "/sys/fs/", 8) == 0)) {
        (void)snprintf(other, sizeof other, "%s%s", elsewhere, path);
        path = other;
    }
    return openat(AT_FDCWD, path, flags, mode);
}

static void test_quota_of_this_process(void **state) {
    char root[] = "/tmp/tern-quota-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(root));
    elsewhere = root;
    assert_int_equal(tern_processor_quota(), 0); /* no system of groups */
    put(root, "/proc/self/cgroup", "3:cpu:/a\n0::/b\n");
    put(root, "/sys/fs/cgroup/b/cpu.max", "400000 100000\n");
    assert_int_equal(tern_processor_quota(), 4);
    put(root, "/sys/fs/cgroup/cpu.max", "300000 100000\n");
    assert_int_equal(tern_processor_quota(), 3);
    elsewhere = NULL;
    remove_all(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_sockets),
        cmocka_unit_test(test_four_nodes),
        cmocka_unit_test(test_hybrid),
        cmocka_unit_test(test_bad_descriptions),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_invariants),
        cmocka_unit_test(test_compact_and_scatter),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_slow_cores),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_quota_texts),
        cmocka_unit_test(test_quota_of_groups),
        cmocka_unit_test(test_quota_of_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
