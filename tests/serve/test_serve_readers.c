/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which requests are read: turns between owners, long bodies beside short ones, and
 * how many requests may wait. */
#include <pthread.h>
#include <string.h>

#include "serve/http/readers.h"
#include "tests/support/check.h"

/* Replaces the exchange of serve/http/http.c. The readers use three of its functions. */
struct http_exchange {
    size_t size; /* of the body */
    char name;
    int owners;
};

void http_keep(http_exchange *x) {
    x->owners++;
}

void http_release(http_exchange *x) {
    x->owners--;
}

const char *http_body(const http_exchange *x, size_t *size) {
    *size = x->size;
    return "";
}

enum { LONG = 1 << 20, MOST = 300 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held;          /* requests with capital names wait */
    char log[2 * MOST]; /* names in the order in which work began */
    size_t n, ended;
} f = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static http_exchange exchanges[MOST];

static void work(void *user, http_exchange *x) {
    (void)user;
    (void)pthread_mutex_lock(&f.lock);
    f.log[f.n++] = x->name;
    (void)pthread_cond_broadcast(&f.changed);
    while (f.held && x->name >= 'A' && x->name <= 'Z')
        (void)pthread_cond_wait(&f.changed, &f.lock);
    f.ended++;
    (void)pthread_cond_broadcast(&f.changed);
    (void)pthread_mutex_unlock(&f.lock);
}

static void hold(bool held) {
    (void)pthread_mutex_lock(&f.lock);
    f.held = held;
    (void)pthread_cond_broadcast(&f.changed);
    (void)pthread_mutex_unlock(&f.lock);
}

/* Waits until that much work has begun and has ended. */
static void wait_for(size_t began, size_t ended) {
    (void)pthread_mutex_lock(&f.lock);
    while (f.n < began || f.ended < ended)
        (void)pthread_cond_wait(&f.changed, &f.lock);
    (void)pthread_mutex_unlock(&f.lock);
}

static int reset(void **state) {
    (void)state;
    memset(exchanges, 0, sizeof exchanges);
    memset(f.log, 0, sizeof f.log);
    f.n = f.ended = 0;
    f.held = true;
    return 0;
}

static readers *open_readers(unsigned threads) {
    readers *d = NULL;
    assert_int_equal(readers_open(threads, &d, NULL), TERN_OK);
    return d;
}

static readers_answer put(readers *d, size_t i, char name, size_t size, const void *owner) {
    exchanges[i] = (http_exchange){.size = size, .name = name};
    return readers_put(d, work, NULL, &exchanges[i], owner);
}

static void test_turns(void **state) {
    (void)state;
    readers *d = open_readers(1);
    const char *names = "aaaaabc";
    assert_int_equal(put(d, 0, 'A', 1, "a"), READERS_TAKEN);
    wait_for(1, 0);
    for (size_t i = 0; names[i] != '\0'; i++)
        assert_int_equal(put(d, i + 1, names[i], 1, names[i] == 'a' ? "a" : &names[i]),
                         READERS_TAKEN);
    hold(false);
    wait_for(8, 8);
    assert_string_equal(f.log, "Abcaaaaa");
    readers_free(&d);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(exchanges[i].owners, 0);
}

/* Long bodies may use one of two threads. So a short body is read while long ones wait. */
static void test_long_ones_leave_a_thread(void **state) {
    (void)state;
    readers *d = open_readers(2);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(put(d, i, 'L', LONG, NULL), READERS_TAKEN);
    wait_for(1, 0);
    for (size_t i = 4; i < 9; i++)
        assert_int_equal(put(d, i, 's', 1, NULL), READERS_TAKEN);
    wait_for(6, 5);
    assert_string_equal(f.log, "Lsssss");
    hold(false);
    wait_for(9, 9);
    readers_free(&d);
}

static void test_how_many_may_wait(void **state) {
    (void)state;
    readers *d = open_readers(1);
    assert_int_equal(put(d, 0, 'A', 1, NULL), READERS_TAKEN);
    wait_for(1, 0);
    size_t n = 1;
    while (put(d, n, 'a', 1, "a") == READERS_TAKEN)
        n++;
    assert_int_equal(n, 1 + 128);
    assert_int_equal(put(d, n++, 'b', 1, "b"), READERS_TAKEN);
    while (put(d, n, 'n', 1, NULL) == READERS_TAKEN)
        n++;
    assert_int_equal(n, 1 + 256);
    assert_int_equal(put(d, n, 'c', 1, "c"), READERS_FULL);
    hold(false);
    readers_stop(d); /* finishes everything that was put */
    assert_int_equal(f.ended, n);
    assert_int_equal(put(d, n, 'a', 1, NULL), READERS_CLOSED);
    readers_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_turns, reset),
        cmocka_unit_test_setup(test_long_ones_leave_a_thread, reset),
        cmocka_unit_test_setup(test_how_many_may_wait, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
