/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, peak memory and the latency ring. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/metrics.h"

static void test_clock_goes_forward(void **state) {
    (void)state;
    struct timespec before, after;
    assert_true(fabs(tern_seconds_of(2500000000) - 2.5) < 1e-9);
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &before), 0);
    const double a = tern_clock_seconds();
    usleep(2000);
    const double b = tern_clock_seconds();
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &after), 0);
    const double around =
        (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    assert_true(b - a >= 0.002);
    assert_true(b - a < around + 1e-3);
}

static void test_peak_rss_grows_with_touched_memory(void **state) {
    (void)state;
    const double before = tern_peak_rss_mib();
    assert_true(before > 0.0);
    const size_t size = (size_t)64 << 20;
    volatile char *p = malloc(size);
    assert_non_null(p);
    for (size_t i = 0; i < size; i += 4096)
        p[i] = 1;
    free((void *)p);
    const double after = tern_peak_rss_mib();
    assert_true(after >= before + 48.0);
    assert_true(after < 1e6);
}

/* Writes text to a new file and stores its name in path. */
static void write_file(char path[32], const char *text) {
    snprintf(path, 32, "/tmp/tern-metrics-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static void test_use_of_memory_and_processors(void **state) {
    (void)state;
    const double mib = 1048576.0, before = tern_processor_seconds();
    const double resident = (double)tern_resident_bytes() / mib;
    assert_true(resident > 0.1);
    assert_true(resident <= tern_peak_rss_mib() + 0.001);
    volatile double sum = 0.0;
    while (tern_processor_seconds() < before + 0.001)
        sum = sum + 1.0;
    assert_true(tern_processor_seconds() < before + 60.0);
}

static double peak_of(const char *text) {
    char path[32];
    write_file(path, text);
    const double mib = tern_peak_rss_from(path);
    assert_int_equal(unlink(path), 0);
    return mib;
}

static void test_peak_rss_reads_the_status_file(void **state) {
    (void)state;
    assert_true(peak_of("Name:\tx\nVmPeak:\t  9999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 7 kB\n") ==
                2.0);
}

/* Without the line, or without the file, the peak comes from getrusage, which measures the same
 * memory. It may be higher, because it includes what the process used before exec. */
static void test_peak_rss_without_the_status_file(void **state) {
    struct rusage usage;
    (void)state;
    const double before = tern_peak_rss_mib();
    const double by_line = peak_of("Name:\tx\nVmRSS:\t 7 kB\n");
    const double by_file = tern_peak_rss_from("/nonexistent/status");
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    const double after = (double)usage.ru_maxrss * 1024.0 / 1048576.0;
    assert_true(by_line > 0.9 * before && by_line <= after);
    assert_true(by_file > 0.9 * before && by_file <= after);
}

/* The system counts resident memory in pages and the peak in KiB; both must come out in bytes. */
static void test_units_of_resident_memory(void **state) {
    unsigned long whole, pages;
    (void)state;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &whole, &pages), 2);
    fclose(f);
    const double bytes = (double)pages * (double)sysconf(_SC_PAGESIZE);
    const double resident = (double)tern_resident_bytes(), peak = tern_peak_rss_mib() * 1048576.0;
    assert_true(resident > 0.5 * bytes && resident < 2.0 * bytes);
    assert_true(peak > 0.9 * resident);
}

static tern_latencies *ring(void) {
    tern_latencies *l = calloc(1, sizeof *l);
    assert_non_null(l);
    return l;
}

static void test_available_memory(void **state) {
    char meminfo[32], limit[32], none[32];
    (void)state;
    write_file(meminfo, "MemTotal:  9 kB\nMemFree: 1 kB\nMemAvailable:   3000 kB\nBuffers: 5 kB\n");
    write_file(limit, "2000000\n");
    write_file(none, "max\n");
    const char *const unlimited[] = {none, "/nonexistent/limit", NULL};
    const char *const limited[] = {none, limit, NULL};
    assert_int_equal(tern_memory_available_from(meminfo, unlimited), 3000 * 1024);
    assert_int_equal(tern_memory_available_from(meminfo, limited), 2000000);
    assert_int_equal(tern_memory_available_from("/nonexistent/meminfo", limited), 2000000);
    assert_int_equal(tern_memory_available_from("/nonexistent/meminfo", unlimited), 0);
    assert_int_equal(tern_memory_available_from(limit, unlimited), 0);
    assert_true(tern_memory_available() > 0);
    unlink(meminfo);
    unlink(limit);
    unlink(none);
}

static void test_percentiles_by_nearest_rank(void **state) {
    (void)state;
    tern_latencies *l = ring();
    assert_true(tern_latencies_percentile(l, 0.5) == 0.0);
    for (int i = 0; i < 20; i++)
        tern_latencies_add(l, (double)((i * 7) % 20 + 1)); /* 1..20, shuffled */
    tern_latencies_sort(l);
    assert_true(tern_latencies_percentile(l, 0.50) == 10.0);
    assert_true(tern_latencies_percentile(l, 0.52) == 11.0); /* 10 does not reach rank 10.4 */
    assert_true(tern_latencies_percentile(l, 0.95) == 19.0);
    assert_true(tern_latencies_percentile(l, 1.00) == 20.0);
    assert_true(tern_latencies_percentile(l, 1e-9) == 1.0);
    free(l);
}

static void test_ring_keeps_the_newest(void **state) {
    (void)state;
    tern_latencies *l = ring();
    assert_int_equal(TERN_LATENCY_RING, 4096); /* as tern/ie_engine.h promises */
    for (size_t i = 0; i < TERN_LATENCY_RING + 1000; i++)
        tern_latencies_add(l, (double)i);
    tern_latencies_sort(l);
    assert_true(tern_latencies_percentile(l, 1e-9) == 1000.0);
    assert_true(tern_latencies_percentile(l, 1.0) == TERN_LATENCY_RING + 999.0);
    for (size_t i = 1; i < TERN_LATENCY_RING; i++)
        assert_true(l->seconds[i - 1] <= l->seconds[i]);
    free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_goes_forward),
        cmocka_unit_test(test_peak_rss_grows_with_touched_memory),
        cmocka_unit_test(test_peak_rss_reads_the_status_file),
        cmocka_unit_test(test_peak_rss_without_the_status_file),
        cmocka_unit_test(test_units_of_resident_memory),
        cmocka_unit_test(test_use_of_memory_and_processors),
        cmocka_unit_test(test_available_memory),
        cmocka_unit_test(test_percentiles_by_nearest_rank),
        cmocka_unit_test(test_ring_keeps_the_newest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
