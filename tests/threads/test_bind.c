/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the system on a machine of two nodes, which hwloc takes this one for. The calls that
 * bind threads and memory are replaced in this file; they record, and bind nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/forward/runner.h"
#include "runtime/engine/session.h"
#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "threads/bind.h"
#include "threads/team.h"

#ifdef TERN_HAVE_HWLOC
#include <hwloc.h>

/* Nodes 3 and 7 by the system's numbers, with two cores each. Their processors do not exist
 * here. */
#define MACHINE "pack:2 [numa(indexes=3,7)] core:2 pu:1(indexes=2001,2002,2003,2004)"

enum { MOST = 64, WORKERS = 4, FIRST = 2001, BY_NODE = HWLOC_MEMBIND_BYNODESET };

static const unsigned long node_bits[] = {1ul << 3, 1ul << 7};

/* ---- the system ------------------------------------------------------------------------------ */

typedef struct area {
    const void *memory;
    size_t size;
    unsigned long nodes; /* one bit per node */
    hwloc_membind_policy_t policy;
    int flags;
} area;

/* A request about a thread's own memory or its processors. */
typedef struct wish {
    pthread_t thread;
    unsigned long nodes;
    hwloc_membind_policy_t policy;
    int flags;
    int processor; /* first of the mask; -1: not one of the list */
} wish;

static struct {
    pthread_mutex_t mutex;
    area areas[MOST];
    wish memory[MOST], threads[MOST];
    size_t n_areas, n_memory, n_threads;
    int fails_with; /* an errno; 0: binding succeeds */
} asked = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int answer(void) {
    errno = asked.fails_with;
    return asked.fails_with != 0 ? -1 : 0;
}

int hwloc_set_area_membind(hwloc_topology_t t, const void *memory, size_t size,
                           hwloc_const_bitmap_t set, hwloc_membind_policy_t policy, int flags) {
    (void)t;
    assert_true(asked.n_areas < MOST);
    asked.areas[asked.n_areas++] = (area){memory, size, hwloc_bitmap_to_ulong(set), policy, flags};
    return answer();
}

int hwloc_set_membind(hwloc_topology_t t, hwloc_const_bitmap_t set, hwloc_membind_policy_t policy,
                      int flags) {
    (void)t;
    pthread_mutex_lock(&asked.mutex);
    if (asked.n_memory < MOST)
        asked.memory[asked.n_memory++] =
            (wish){pthread_self(), hwloc_bitmap_to_ulong(set), policy, flags, -1};
    pthread_mutex_unlock(&asked.mutex);
    return answer();
}

/* The caller's previous policy: its memory comes from both nodes in turn. */
int hwloc_get_membind(hwloc_topology_t t, hwloc_bitmap_t set, hwloc_membind_policy_t *policy,
                      int flags) {
    (void)t;
    assert_int_equal(flags, HWLOC_MEMBIND_THREAD | BY_NODE);
    hwloc_bitmap_from_ulong(set, node_bits[0] | node_bits[1]);
    *policy = HWLOC_MEMBIND_INTERLEAVE;
    return answer();
}

static int note_thread(pthread_t thread, size_t bytes, const cpu_set_t *set) {
    int first = -1;
    for (int i = FIRST; i < FIRST + WORKERS && first < 0; i++)
        if (CPU_ISSET_S((size_t)i, bytes, set))
            first = i;
    if (asked.n_threads < MOST)
        asked.threads[asked.n_threads++] = (wish){.thread = thread, .processor = first};
    return asked.fails_with;
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set) {
    return note_thread(thread, bytes, set);
}

int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set) {
    assert_int_equal(pid, 0);
    (void)note_thread(pthread_self(), bytes, set);
    return answer();
}

static void forget(void) {
    asked.n_areas = asked.n_memory = asked.n_threads = 0;
    asked.fails_with = 0;
}

static void as_two_nodes(bool on) {
    if (on) {
        assert_int_equal(setenv("HWLOC_SYNTHETIC", MACHINE, 1), 0);
        assert_int_equal(setenv("HWLOC_THISSYSTEM", "1", 1), 0);
    } else {
        assert_int_equal(unsetenv("HWLOC_SYNTHETIC") + unsetenv("HWLOC_THISSYSTEM"), 0);
    }
}

static tern_topology *machine(void) {
    tern_topology *t = NULL;
    as_two_nodes(true);
    assert_int_equal(tern_topology_new(&t, NULL), TERN_OK);
    as_two_nodes(false);
    assert_false(t->foreign);
    assert_int_equal(t->n_nodes, 2);
    assert_int_equal(t->n, WORKERS);
    forget();
    return t;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static char memory[64];

/* Checks that a single area was requested, with these arguments. */
static void check_area(unsigned long nodes, hwloc_membind_policy_t policy, int flags) {
    assert_int_equal(asked.n_areas, 1);
    const area *a = &asked.areas[0];
    assert_ptr_equal(a->memory, memory);
    assert_int_equal(a->size, sizeof memory);
    assert_int_equal(a->nodes, nodes);
    assert_int_equal(a->policy, policy);
    assert_int_equal(a->flags, flags);
    forget();
}

static int place(const tern_topology *t, tern_numa numa, uint32_t node) {
    const tern_places wanted = {.numa = numa, .node = node};
    return tern_place_memory(t, &wanted, memory, sizeof memory);
}

static void test_policies(void **state) {
    tern_topology *t = machine();
    const tern_places none = {.numa = TERN_NUMA_NONE}, strict = {.numa = TERN_NUMA_STRICT};
    (void)state;
    assert_int_equal(place(t, TERN_NUMA_NONE, 0), 0);
    assert_int_equal(place(t, TERN_NUMA_STRICT, 0), 0); /* workers bind their own memory */
    assert_int_equal(asked.n_areas, 0);
    assert_int_equal(place(t, TERN_NUMA_INTERLEAVE, 0), 0);
    check_area(node_bits[0] | node_bits[1], HWLOC_MEMBIND_INTERLEAVE, BY_NODE);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(place(t, TERN_NUMA_NODE, i == 0 ? 3 : 7), 0);
        check_area(node_bits[i], HWLOC_MEMBIND_BIND, BY_NODE);
        assert_int_equal(tern_bind_area(t, &none, i, memory, sizeof memory), 0);
        check_area(node_bits[i], HWLOC_MEMBIND_BIND, BY_NODE);
        assert_int_equal(tern_bind_area(t, &strict, i, memory, sizeof memory), 0);
        check_area(node_bits[i], HWLOC_MEMBIND_BIND, BY_NODE | HWLOC_MEMBIND_STRICT);
    }
    asked.fails_with = EPERM;
    assert_int_equal(place(t, TERN_NUMA_INTERLEAVE, 0), EPERM);
    assert_int_equal(place(t, TERN_NUMA_NODE, 3), EPERM);
    tern_topology_free(&t);
}

/* If there is no choice, nothing is requested. */
static void test_no_choice(void **state) {
    tern_topology *t = machine();
    const tern_places all = {.numa = TERN_NUMA_INTERLEAVE};
    (void)state;
    assert_int_equal(tern_place_memory(t, &all, memory, 0), 0);
    t->foreign = true;
    assert_int_equal(place(t, TERN_NUMA_INTERLEAVE, 0) + place(t, TERN_NUMA_NODE, 3), 0);
    t->foreign = false;
    t->n_nodes = 1;
    assert_int_equal(place(t, TERN_NUMA_INTERLEAVE, 0) + place(t, TERN_NUMA_NODE, 3), 0);
    t->n_nodes = 2;
    assert_int_equal(asked.n_areas, 0);
    tern_topology_free(&t);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Number of equal requests in a list. */
static size_t count(const wish *list, size_t n, wish like) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += list[i].nodes == like.nodes && list[i].policy == like.policy &&
                 list[i].flags == like.flags && list[i].processor == like.processor;
    return found;
}

static size_t count_threads(int processor) {
    return count(asked.threads, asked.n_threads, (wish){.processor = processor});
}

static size_t count_memory(unsigned long nodes, hwloc_membind_policy_t policy, int flags) {
    const wish like = {.nodes = nodes, .policy = policy, .flags = flags, .processor = -1};
    return count(asked.memory, asked.n_memory, like);
}

static tern_team *team_of(const tern_topology *t, tern_affinity affinity, tern_numa numa) {
    const tern_places wanted = {.affinity = affinity, .numa = numa};
    tern_team *team = NULL;
    assert_int_equal(tern_team_new_placed(WORKERS, t, &wanted, &team, NULL), TERN_OK);
    return team;
}

static void nothing(tern_worker worker, void *argument) {
    (void)worker, (void)argument;
}

/* Each worker is bound to its core. The caller is bound there while it works, and then goes back to
 * its previous processors, which are not part of that machine. */
static void test_threads(void **state) {
    tern_topology *t = machine();
    (void)state;
    tern_team *team = team_of(t, TERN_AFFINITY_NONE, TERN_NUMA_NONE);
    assert_int_equal(asked.n_threads + asked.n_memory, 0);
    tern_team_free(&team);
    team = team_of(t, TERN_AFFINITY_COMPACT, TERN_NUMA_NONE);
    const size_t tries = count_threads(FIRST);
    assert_true(tries > 0);
    assert_int_equal(count_threads(-1), tries);
    for (int i = 1; i < WORKERS; i++)
        assert_int_equal(count_threads(FIRST + i), 1);
    assert_int_equal(asked.n_memory, 0); /* memory of bound threads is near by itself */
    tern_team_run(team, nothing, NULL);
    assert_int_equal(count_threads(FIRST), tries + 1);
    assert_int_equal(count_threads(-1), tries + 1);
    assert_int_equal(asked.threads[asked.n_threads - 1].processor, -1);
    tern_team_free(&team);
    tern_topology_free(&t);
}

/* Strictly: each worker's memory comes from its node alone. The caller gets its policy back. */
static void test_strict_memory(void **state) {
    enum { OWN = HWLOC_MEMBIND_THREAD | BY_NODE };
    tern_topology *t = machine();
    (void)state;
    tern_team *team = team_of(t, TERN_AFFINITY_COMPACT, TERN_NUMA_STRICT);
    const int strictly = OWN | HWLOC_MEMBIND_STRICT;
    const size_t back = count_memory(node_bits[0] | node_bits[1], HWLOC_MEMBIND_INTERLEAVE, OWN);
    assert_true(back > 0);
    assert_int_equal(count_memory(node_bits[0], HWLOC_MEMBIND_BIND, strictly), 1 + back);
    assert_int_equal(count_memory(node_bits[1], HWLOC_MEMBIND_BIND, strictly), 2);
    assert_int_equal(asked.n_memory, 3 + 2 * back);
    assert_int_equal(tern_team_refused(team), 0);
    tern_team_free(&team);
    forget();
    team = team_of(t, TERN_AFFINITY_NONE, TERN_NUMA_STRICT); /* not bound, so not on a node */
    assert_int_equal(asked.n_memory, 0);
    tern_team_free(&team);
    tern_topology_free(&t);
}

static void test_refusals(void **state) {
    tern_topology *t = machine();
    (void)state;
    asked.fails_with = EACCES;
    tern_team *team = team_of(t, TERN_AFFINITY_COMPACT, TERN_NUMA_STRICT);
    assert_int_equal(tern_team_refused(team), EACCES);
    tern_team_free(&team);
    tern_topology_free(&t);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Number of times that the whole arena was placed on these nodes. */
static size_t placed(const tern_arena *arena, unsigned long nodes, hwloc_membind_policy_t policy) {
    size_t n = 0;
    for (size_t i = 0; i < asked.n_areas; i++) {
        const area *a = &asked.areas[i];
        n += a->memory == arena->base && a->size == arena->size && a->nodes == nodes &&
             a->policy == policy;
    }
    return n;
}

/* Weights, cache, lists and scratch are four areas, each placed once. */
static void check_model(tern_numa numa, uint32_t node, unsigned long nodes,
                        hwloc_membind_policy_t policy) {
    const bool any = numa != TERN_NUMA_NONE;
    const tern_places wanted = {.affinity = TERN_AFFINITY_NONE, .numa = numa, .node = node};
    check_case("policy %d", (int)numa);
    forget();
    as_two_nodes(true);
    tern_model *m =
        tiny_open_with("bitnet-tiny", (tern_model_params){.threads = 2, .places = wanted});
    as_two_nodes(false);
    assert_int_equal(asked.n_areas, any ? 1 : 0);
    assert_int_equal(placed(&m->weights, nodes, policy), any ? 1 : 0);
    tern_session *s = tiny_session(m, (tern_session_params){.n_ctx = 64, .threads = 2});
    assert_int_equal(placed(&s->pool.arena, nodes, policy), any ? 1 : 0);
    assert_int_equal(placed(&s->arena, nodes, policy), any ? 1 : 0);
    assert_int_equal(asked.n_areas, any ? 4 : 0);
    tern_session_free(&s);
    tern_model_free(&m);
}

static void test_models(void **state) {
    (void)state;
    check_model(TERN_NUMA_NONE, 0, 0, HWLOC_MEMBIND_BIND);
    check_model(TERN_NUMA_INTERLEAVE, 0, node_bits[0] | node_bits[1], HWLOC_MEMBIND_INTERLEAVE);
    check_model(TERN_NUMA_NODE, 7, node_bits[1], HWLOC_MEMBIND_BIND);
}

/* Copies of hot weights lie on their node. */
static void test_replicas(void **state) {
    (void)state;
    forget();
    as_two_nodes(true);
    tern_model *m =
        tiny_open_with("llama-tiny-f16", (tern_model_params){.threads = 4, .replicate = true});
    as_two_nodes(false);
    assert_int_equal(m->replicas.n, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(placed(&m->replicas.copies.arenas[i], node_bits[i], HWLOC_MEMBIND_BIND),
                         1);
    tern_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies), cmocka_unit_test(test_no_choice),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_strict_memory),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_models),
        cmocka_unit_test(test_replicas),
    };
    return cmocka_run_group_tests_name("binding", tests, NULL, NULL);
}

#else

int main(void) {
    return 77; /* skipped: built without hwloc */
}

#endif
