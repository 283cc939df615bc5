/* SPDX-License-Identifier: Apache-2.0 */
/* The log's descriptors: each one that it opens is closed, even while its thread waits for a
 * reader. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/http/log.h"
#include "tests/support/check.h"

enum { TIMES = 100 };

static char folder[] = "/tmp/tern-log-XXXXXX", path[64];

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/log", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static size_t descriptors(void) {
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    assert_int_equal(closedir(d), 0);
    return n;
}

static void reopened(access_log *log) {
    tern_error err = {0};
    for (int i = 0; i < TIMES; i++)
        assert_int_equal(log_reopen(log, &err), TERN_OK);
}

static access_log *opened(void) {
    access_log *log = NULL;
    tern_error err = {0};
    assert_int_equal(log_open(&(log_config){.path = path}, &log, &err), TERN_OK);
    return log;
}

static void test_a_file(void **state) {
    const size_t before = descriptors();
    access_log *log = opened();

    (void)state;
    reopened(log);
    log_close(&log);
    assert_null(log);
    assert_int_equal(descriptors(), before);
    assert_int_equal(unlink(path), 0);
}

/* Nobody reads the pipe, so the thread cannot take what is opened: one descriptor waits for it, and
 * is closed with the log. */
static void test_a_pipe_that_is_full(void **state) {
    static const char bytes[4096];
    static const log_entry entry = {.method = "GET", .path = "/health", .status = 200};
    const size_t first = descriptors();

    (void)state;
    assert_int_equal(mkfifo(path, S_IRUSR | S_IWUSR), 0);
    const int reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    while (write(reader, bytes, sizeof bytes) > 0) {
    }
    const size_t before = descriptors();
    access_log *log = opened();
    log_add(log, &entry);
    reopened(log);
    assert_in_range(descriptors(), before + 1, before + 2);
    log_close(&log);
    assert_int_equal(descriptors(), before);
    assert_int_equal(close(reader), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(descriptors(), first);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_file),
                                       cmocka_unit_test(test_a_pipe_that_is_full)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
