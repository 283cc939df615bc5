/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of two engines: who computes next, by the time that each has had. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve/work/turns.h"
#include "tests/support/check.h"

enum { MOST = 64 };

/* The clock advances only while one who has the turn computes, so the order is always the same. */
static struct {
    turns *turns;
    _Atomic double now;
    char order[MOST];
    size_t n;
} f;

static double read_clock(void) {
    return f.now;
}

static void compute(char name, double seconds) {
    f.order[f.n++] = name;
    f.now = f.now + seconds;
}

static void wait_for_wish(void) {
    while (!turns_wanted(f.turns))
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void *compute_briefly(void *user) {
    turn mine = {0};
    const int passes = *(const int *)user;
    turns_take(f.turns, &mine);
    for (int i = 0; i < passes; i++) {
        compute('b', 0.25);
        turns_offer(f.turns, &mine);
    }
    turns_leave(f.turns, &mine);
    return NULL;
}

static int set_up(void **state) {
    (void)state;
    memset(f.order, 0, sizeof f.order);
    f.n = 0;
    f.now = 1000.0;
    f.turns = turns_new(read_clock);
    return f.turns != NULL ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    turns_free(&f.turns);
    return 0;
}

/* Long passes of one and short ones of the other get the same time. */
static void test_time_is_shared(void **state) {
    turn mine = {0};
    pthread_t other;
    int passes = 12;
    (void)state;
    turns_take(f.turns, &mine);
    assert_int_equal(pthread_create(&other, NULL, compute_briefly, &passes), 0);
    wait_for_wish();
    for (int i = 0; i < 3; i++) {
        compute('A', 1.0);
        turns_offer(f.turns, &mine);
    }
    turns_leave(f.turns, &mine);
    (void)pthread_join(other, NULL);
    /* at the same time as the other, who has the turn keeps it */
    assert_string_equal(f.order, "AbbbbbAbbbbAbbb");
}

/* One that has computed alone for long owes nothing to one that comes later. */
static void test_who_comes_later_has_no_claim(void **state) {
    turn mine = {0};
    pthread_t other;
    int passes = 4;
    (void)state;
    turns_take(f.turns, &mine);
    for (int i = 0; i < 20; i++)
        turns_offer(f.turns, &mine);
    f.now = f.now + 100.0;
    assert_int_equal(pthread_create(&other, NULL, compute_briefly, &passes), 0);
    wait_for_wish();
    for (int i = 0; i < 3; i++) {
        compute('A', 0.5);
        turns_offer(f.turns, &mine);
    }
    turns_leave(f.turns, &mine);
    (void)pthread_join(other, NULL);
    assert_string_equal(f.order, "AbbbAbA");
}

/* Passes that are shorter than a moment do not change turns each time. */
static void test_short_passes_stay_together(void **state) {
    turn mine = {0};
    pthread_t other;
    int passes = 1;
    (void)state;
    turns_take(f.turns, &mine);
    assert_int_equal(pthread_create(&other, NULL, compute_briefly, &passes), 0);
    wait_for_wish();
    for (int i = 0; i < 6; i++) {
        compute('A', 1.0 / 2048.0);
        turns_offer(f.turns, &mine);
    }
    turns_leave(f.turns, &mine);
    (void)pthread_join(other, NULL);
    assert_string_equal(f.order, "AAAAAbA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_time_is_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_comes_later_has_no_claim, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_short_passes_stay_together, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("serve_turns", tests, NULL, NULL);
}
