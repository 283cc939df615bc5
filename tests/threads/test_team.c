/* SPDX-License-Identifier: Apache-2.0 */
/* The thread team: which threads run, what the barrier guarantees, and how work is divided. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "threads/team.h"

enum { MAX_TEAM = 16 };

static tern_team *team_new(uint32_t threads) {
    tern_team *team = NULL;
    assert_int_equal(tern_team_new(threads, &team, NULL), TERN_OK);
    assert_int_equal(tern_team_size(team), threads);
    return team;
}

/* ---- split ----------------------------------------------------------------------------------- */

static void check_split(size_t count, size_t unit, uint32_t threads) {
    size_t end = 0;
    size_t smallest = SIZE_MAX;
    size_t largest = 0;
    check_case("%zu items in units of %zu for %u workers", count, unit, threads);
    for (uint32_t i = 0; i < threads; i++) {
        const tern_worker worker = {.team = NULL, .index = i, .count = threads};
        const tern_part part = tern_team_split(worker, count, unit);
        assert_int_equal(part.begin, end); /* no overlap, no gap */
        assert_true(part.end >= part.begin && part.end <= count);
        assert_true(part.begin % unit == 0 || part.begin == count);
        assert_true(part.end % unit == 0 || part.end == count);
        const size_t units = (part.end - part.begin + unit - 1) / unit;
        smallest = units < smallest ? units : smallest;
        largest = units > largest ? units : largest;
        end = part.end;
    }
    assert_int_equal(end, count);
    assert_true(largest - smallest <= 1);
}

static void test_split(void **state) {
    static const size_t units[] = {1, 2, 16, 64};
    static const size_t large[] = {1000, 4095, 6912, 128256, (size_t)1 << 40};
    (void)state;
    for (uint32_t threads = 1; threads <= MAX_TEAM; threads++)
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            for (size_t count = 0; count < 200; count++)
                check_split(count, units[u], threads);
            for (size_t i = 0; i < sizeof large / sizeof *large; i++)
                check_split(large[i], units[u], threads);
        }
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Plain memory on purpose: the thread sanitizer then checks that run and barrier synchronise it. */
typedef struct runs {
    uint32_t threads;
    uint32_t calls[MAX_TEAM]; /* [worker] */
    uint32_t steps[MAX_TEAM]; /* [worker] */
    bool caller[MAX_TEAM];    /* [worker] ran on the thread that called tern_team_run */
    uint32_t wrong[MAX_TEAM]; /* [worker] times it missed what others had done before a barrier */
    pthread_t main_thread;
} runs;

static void count_call(tern_worker worker, void *argument) {
    runs *r = argument;
    r->calls[worker.index]++;
    r->caller[worker.index] = pthread_equal(pthread_self(), r->main_thread) != 0;
    if (worker.count != r->threads)
        r->wrong[worker.index]++;
}

static void check_runs(uint32_t threads, uint32_t times) {
    runs r = {.threads = threads, .main_thread = pthread_self()};
    tern_team *team = team_new(threads);
    for (uint32_t n = 1; n <= times; n++) {
        check_case("run %u of a team of %u", n, threads);
        tern_team_run(team, count_call, &r);
        for (uint32_t i = 0; i < threads; i++) {
            assert_int_equal(r.calls[i], n);
            assert_int_equal(r.wrong[i], 0);
            assert_int_equal(r.caller[i], i == 0);
        }
    }
    tern_team_free(&team);
    assert_null(team);
}

static void test_run(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++)
        check_runs(threads, 500);
    check_runs(MAX_TEAM, 20);
}

enum { STEPS = 40 };

/* After each barrier, every worker sees that all have made the step. */
static void step_together(tern_worker worker, void *argument) {
    runs *r = argument;
    for (uint32_t step = 1; step <= STEPS; step++) {
        r->steps[worker.index]++;
        tern_team_barrier(worker);
        for (uint32_t i = 0; i < worker.count; i++)
            if (r->steps[i] % STEPS != step % STEPS)
                r->wrong[worker.index]++;
        tern_team_barrier(worker);
    }
}

static void check_barriers(uint32_t threads, uint32_t times) {
    runs r = {.threads = threads};
    tern_team *team = team_new(threads);
    for (uint32_t n = 1; n <= times; n++) {
        check_case("barriers of run %u of a team of %u", n, threads);
        tern_team_run(team, step_together, &r);
        for (uint32_t i = 0; i < threads; i++) {
            assert_int_equal(r.steps[i], n * STEPS);
            assert_int_equal(r.wrong[i], 0);
        }
    }
    tern_team_free(&team);
}

static void test_barrier(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++)
        check_barriers(threads, 20);
}

/* More threads than processors. Waiting threads must sleep, or this would take minutes. */
static void test_oversubscribed(void **state) {
    (void)state;
    check_barriers(8, 10);
    check_barriers(MAX_TEAM, 2);
}

/* The last worker arrives long after the others have gone to sleep. */
static void one_is_late(tern_worker worker, void *argument) {
    atomic_uint *arrived = argument;
    if (worker.index + 1 == worker.count)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    atomic_fetch_add(arrived, 1);
    tern_team_barrier(worker);
}

static void test_late_worker(void **state) {
    tern_team *team = team_new(4);
    (void)state;
    for (unsigned n = 1; n <= 5; n++) {
        atomic_uint arrived = 0;
        tern_team_run(team, one_is_late, &arrived);
        assert_int_equal(arrived, 4);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* idle workers sleep, too */
    }
    tern_team_free(&team);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* One node with these processors, one per core. The speeds fall. */
static tern_topology *topology_new(const uint32_t *os, const uint32_t *speeds, uint32_t n) {
    static const uint32_t node = 0;
    tern_processor list[MAX_TEAM];
    tern_topology *t = NULL;
    for (uint32_t i = 0; i < n; i++)
        list[i] = (tern_processor){.os = os[i], .core = i, .speed = speeds[i]};
    assert_int_equal(tern_topology_of(list, n, &node, 1, &t, NULL), TERN_OK);
    return t;
}

static tern_team *team_new_placed(uint32_t threads, const tern_topology *t, tern_affinity a) {
    tern_team *team = NULL;
    const tern_places wish = {.affinity = a};
    assert_int_equal(tern_team_new_placed(threads, t, &wish, &team, NULL), TERN_OK);
    assert_int_equal(tern_team_size(team), threads);
    return team;
}

/* The number of rows grows with the share. No row is lost or assigned twice. */
static void check_shares(tern_team *team, const uint32_t *shares, uint32_t threads, size_t count,
                         size_t unit) {
    size_t end = 0;
    double sum = 0.0;
    for (uint32_t i = 0; i < threads; i++)
        sum += shares[i];
    for (uint32_t i = 0; i < threads; i++) {
        const tern_worker worker = {.team = team, .index = i, .count = threads};
        const tern_part part = tern_team_split(worker, count, unit);
        const double exact = (double)count * shares[i] / sum;
        check_case("%zu in units of %zu, worker %u", count, unit, i);
        assert_int_equal(part.begin, end);
        assert_true(part.end >= part.begin && part.end <= count);
        assert_true(part.end % unit == 0 || part.end == count);
        assert_true((double)(part.end - part.begin) <= exact + (double)(2 * unit));
        assert_true((double)(part.end - part.begin) >= exact - (double)(2 * unit));
        end = part.end;
    }
    assert_int_equal(end, count);
}

static void test_shares(void **state) {
    static const uint32_t os[] = {0, 1, 2, 3};
    static const uint32_t speeds[] = {1024, 1024, 512, 100};
    (void)state;
    tern_topology *t = topology_new(os, speeds, 4);
    tern_team *team = team_new_placed(4, t, TERN_AFFINITY_AUTO);
    for (size_t count = 0; count < 300; count++)
        check_shares(team, speeds, 4, count, 16);
    check_shares(team, speeds, 4, 128256, 16);
    check_shares(team, speeds, 4, (size_t)1 << 40, 64);
    /* The fastest worker gets what cannot be divided. */
    const tern_part one = tern_team_split((tern_worker){team, 0, 4}, 1, 1);
    assert_int_equal(one.begin, 0);
    assert_int_equal(one.end, 1);
    tern_team_free(&team);
    tern_topology_free(&t);
}

typedef struct sightings {
    int cpu[MAX_TEAM];
    cpu_set_t caller;
} sightings;

static void see(tern_worker worker, void *argument) {
    sightings *s = argument;
    cpu_set_t set;
    s->cpu[worker.index] = sched_getcpu();
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(CPU_COUNT(&set), 1); /* only its own processor */
    assert_true(CPU_ISSET((size_t)s->cpu[worker.index], &set));
}

/* Every worker runs on its processor. Afterwards the caller is free again. */
static void test_bound(void **state) {
    static const uint32_t speeds[MAX_TEAM] = {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024};
    uint32_t *os = NULL;
    uint32_t n = 0;
    cpu_set_t before;
    cpu_set_t after;
    sightings s;
    (void)state;
    assert_int_equal(tern_allowed_processors(&os, &n, NULL), TERN_OK);
    n = n > 8 ? 8 : n;
    tern_topology *t = topology_new(os, speeds, n);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    tern_team *team = team_new_placed(n, t, TERN_AFFINITY_COMPACT);
    assert_int_equal(tern_team_refused(team), 0);
    for (int i = 0; i < 3; i++) {
        tern_team_run(team, see, &s);
        for (uint32_t w = 0; w < n; w++) {
            assert_int_equal(s.cpu[w], os[w]);
            assert_int_equal(tern_team_place(team, w).first, w);
        }
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
    tern_team_free(&team);
    tern_topology_free(&t);
    free(os);
}

/* Processors that do not exist: the team reports that and still works. */
static void test_unbindable(void **state) {
    static const uint32_t os[] = {100001, 100002, 100003};
    static const uint32_t speeds[] = {1024, 1024, 1024};
    runs r = {.threads = 3, .main_thread = pthread_self()};
    (void)state;
    tern_topology *t = topology_new(os, speeds, 3);
    tern_team *team = team_new_placed(3, t, TERN_AFFINITY_SCATTER);
    assert_int_equal(tern_team_refused(team), EINVAL);
    tern_team_run(team, count_call, &r);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(r.calls[i], 1);
    tern_team_free(&team);
    team = team_new_placed(1, t, TERN_AFFINITY_SCATTER); /* the caller alone */
    assert_int_equal(tern_team_refused(team), EINVAL);
    tern_team_free(&team);
    t->foreign = true; /* another machine's processors are not tried */
    team = team_new_placed(3, t, TERN_AFFINITY_SCATTER);
    assert_int_equal(tern_team_refused(team), 0);
    tern_team_free(&team);
    tern_topology_free(&t);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

enum { MOST_UNITS = 700, WORKS = TERN_TEAM_SHARED + 2, ROUNDS = 4 };

/* Works between barriers, and who did each unit. */
typedef struct taking {
    size_t count[WORKS], unit;
    uint32_t late; /* a worker that begins long after the others; MAX_TEAM: none */
    atomic_uint done[ROUNDS][WORKS][MOST_UNITS];
    atomic_uint by[MAX_TEAM]; /* number of units of the shared works */
    atomic_uint wrong;
} taking;

static void take_pieces(tern_worker worker, void *argument) {
    taking *t = argument;
    for (size_t round = 0; round < ROUNDS; round++) {
        if (worker.index == t->late)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        for (size_t w = 0; w < WORKS; w++) {
            tern_pieces pieces = tern_team_pieces(worker, t->count[w], t->unit);
            for (tern_part part; tern_pieces_next(&pieces, &part);) {
                t->wrong += part.begin >= part.end || part.begin % t->unit != 0 ||
                            (part.end % t->unit != 0 && part.end != t->count[w]);
                for (size_t i = part.begin; i < part.end; i += t->unit) {
                    atomic_fetch_add(&t->done[round][w][i / t->unit], 1);
                    if (w < TERN_TEAM_SHARED)
                        atomic_fetch_add(&t->by[worker.index], 1);
                }
            }
        }
        tern_team_barrier(worker);
    }
}

static void check_taking(tern_team *team, taking *t) {
    memset(t->done, 0, sizeof t->done);
    memset(t->by, 0, sizeof t->by);
    t->wrong = 0;
    tern_team_run(team, take_pieces, t);
    assert_int_equal(t->wrong, 0);
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t w = 0; w < WORKS; w++)
            for (size_t i = 0; i < MOST_UNITS; i++) {
                check_case("round %zu, work %zu, unit %zu", round, w, i);
                assert_int_equal(t->done[round][w][i], i * t->unit < t->count[w]);
            }
}

/* Every unit is done exactly once, by any worker, in several runs. */
static void test_pieces(void **state) {
    static taking t = {.late = MAX_TEAM};
    static const size_t sizes[] = {0, 1, 15, 16, 17, 250, 699};
    (void)state;
    for (uint32_t threads = 1; threads <= MAX_TEAM;
         threads = threads < 4 ? threads + 1 : threads * 2) {
        tern_team *team = team_new(threads);
        for (size_t i = 0; i < 7; i++) {
            t.unit = i % 2 ? 16 : 1;
            for (size_t w = 0; w < WORKS; w++)
                t.count[w] =
                    sizes[(i + w) % 7] * t.unit - (sizes[(i + w) % 7] > 1 ? t.unit / 3 : 0);
            check_taking(team, &t);
        }
        tern_team_free(&team);
    }
}

/* Notes if works may be divided as one: not if their rows lie on several nodes. */
static void note_node(tern_worker worker, void *argument) {
    bool *one = argument;
    one[worker.index] = tern_team_is_on_one_node(worker);
}

static void check_one_node(tern_team *team, bool want) {
    bool one[MAX_TEAM];
    tern_team_run(team, note_node, one);
    for (uint32_t i = 0; i < tern_team_size(team); i++)
        assert_int_equal(one[i], want);
}

/* The others do most of a late worker's units. */
static void test_pieces_of_a_late_worker(void **state) {
    static taking t = {.unit = 1, .late = 1};
    tern_team *team = team_new(2);
    (void)state;
    for (size_t w = 0; w < WORKS; w++)
        t.count[w] = MOST_UNITS;
    check_taking(team, &t);
    assert_int_equal(t.by[0] + t.by[1], ROUNDS * TERN_TEAM_SHARED * MOST_UNITS);
    assert_true(t.by[0] > t.by[1]);
    check_one_node(team, true); /* no node is known */
    tern_team_free(&team);
}

/* Workers only help within their node, because packed rows lie on the node of their workers. */
static void test_pieces_of_a_node(void **state) {
    static taking t = {.unit = 1};
    static const uint32_t nodes[] = {0, 1};
    tern_processor list[4];
    tern_topology *topology = NULL;
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        list[i] = (tern_processor){
            .os = i, .node = i / 2, .socket = i / 2, .core = i, .speed = TERN_FULL_SPEED};
    assert_int_equal(tern_topology_of(list, 4, nodes, 2, &topology, NULL), TERN_OK);
    topology->foreign = true;
    tern_team *team = team_new_placed(4, topology, TERN_AFFINITY_SCATTER);
    check_one_node(team, false);
    for (size_t w = 0; w < WORKS; w++)
        t.count[w] = MOST_UNITS;
    for (t.late = 0; t.late < 4; t.late++) {
        const uint32_t helper = t.late ^ 1;
        const uint32_t half = ROUNDS * TERN_TEAM_SHARED * MOST_UNITS / 2;
        check_taking(team, &t);
        check_case("worker %u is late", t.late);
        assert_int_equal(t.by[t.late] + t.by[helper], half);
        assert_true(t.by[helper] > t.by[t.late]);
    }
    tern_team_free(&team);
    tern_topology_free(&topology);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void test_free_without_run(void **state) {
    tern_team *none = NULL;
    (void)state;
    for (uint32_t threads = 1; threads <= MAX_TEAM; threads++) {
        tern_team *team = team_new(threads);
        tern_team_free(&team);
        assert_null(team);
    }
    tern_team_free(&none);
    tern_team_free(NULL);
}

static void test_many_teams(void **state) {
    runs r = {.threads = 3, .main_thread = pthread_self()};
    tern_team *teams[6];
    (void)state;
    for (size_t i = 0; i < 6; i++)
        teams[i] = team_new(3);
    for (size_t i = 0; i < 6; i++)
        tern_team_run(teams[i], count_call, &r);
    for (size_t i = 0; i < 6; i++)
        tern_team_free(&teams[i]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(r.calls[i], 6);
}

/* ---- patience -------------------------------------------------------------------------------- */

/* Few polls up to the try after them, which makes many. */
static void check_doubt(tern_patience *p) {
    for (int i = 1; i < TERN_DOUBTFUL_TRIES; i++) {
        assert_int_equal(tern_patience_polls(p, TERN_MANY_POLLS), TERN_FEW_POLLS);
        tern_patience_learn(p, false);
    }
    assert_int_equal(tern_patience_polls(p, TERN_MANY_POLLS), TERN_MANY_POLLS);
}

static void test_patience(void **state) {
    tern_patience p = {0};
    (void)state;
    for (int i = 0; i < TERN_DOUBTFUL / TERN_DOUBT_OF_A_MISS; i++) {
        assert_int_equal(tern_patience_polls(&p, TERN_MANY_POLLS), TERN_MANY_POLLS);
        tern_patience_learn(&p, false);
    }
    check_doubt(&p);
    tern_patience_learn(&p, false);
    check_doubt(&p);
    tern_patience_learn(&p, true); /* one success is enough */
    assert_int_equal(tern_patience_polls(&p, TERN_MANY_POLLS), TERN_MANY_POLLS);
    tern_patience_learn(&p, false);
    assert_int_equal(tern_patience_polls(&p, TERN_MANY_POLLS), TERN_FEW_POLLS);
    tern_patience_learn(&p, true); /* even of few polls */
    assert_int_equal(tern_patience_polls(&p, TERN_MANY_POLLS), TERN_MANY_POLLS);
}

/* How many of `waits` make many polls, where every n-th of them fails, and few polls never help. */
static uint32_t many_of(uint32_t waits, uint32_t nth_fails) {
    tern_patience p = {0};
    uint32_t many = 0;
    for (uint32_t i = 1; i <= waits; i++) {
        const int polls = tern_patience_polls(&p, TERN_MANY_POLLS);
        many += polls == TERN_MANY_POLLS;
        tern_patience_learn(&p, polls == TERN_MANY_POLLS && i % nth_fails != 0);
    }
    return many;
}

static void test_patience_pays(void **state) {
    (void)state;
    assert_int_equal(many_of(4000, 5), 4000);
    assert_true(many_of(4000, 4) < 1000);
    tern_patience p = {.doubt = TERN_DOUBTFUL};
    assert_int_equal(tern_patience_polls(&p, 7), 7); /* a gate's own number, if it is less */
}

enum { MEETINGS = 2000 };

/* All workers on the first processor that the process may use. */
static void meet_on_one(tern_worker worker, void *argument) {
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), argument), 0);
    for (uint32_t i = 0; i < MEETINGS; i++)
        tern_team_barrier(worker);
}

/* Workers that got one processor, although there are enough, soon make few polls. */
static void test_one_processor(void **state) {
    cpu_set_t before, one;
    size_t first = 0;
    (void)state;
    if (tern_processor_count() < 2)
        return; /* few polls from the beginning */
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    tern_team *team = team_new(2);
    assert_int_equal(team->gate.polls, TERN_MANY_POLLS);
    tern_team_run(team, meet_on_one, &one);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    const uint32_t few = team->tickets[0].patience.waits + team->tickets[1].patience.waits;
    tern_team_free(&team);
    assert_true(few > MEETINGS / 4);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void test_refused(void **state) {
    tern_error err = {0};
    tern_team *team = NULL;
    (void)state;
    assert_int_equal(tern_team_new(0, &team, &err), TERN_ERR_ARG);
    assert_non_null(strstr(err.message, "at least one"));
    assert_null(team);
}

static void test_processor_count(void **state) {
    (void)state;
    assert_true(tern_processor_count() >= 1);
    assert_int_equal(tern_processor_count(), tern_processor_count());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_oversubscribed),
        cmocka_unit_test(test_late_worker),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_pieces_of_a_late_worker),
        cmocka_unit_test(test_pieces_of_a_node),
        cmocka_unit_test(test_free_without_run),
        cmocka_unit_test(test_many_teams),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_patience_pays),
        cmocka_unit_test(test_one_processor),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_processor_count),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_unbindable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
