/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

uint64_t tern_clock_nanoseconds(void) {
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return 0;
    return UINT64_C(1000000000) * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

double tern_clock_seconds(void) {
    return tern_seconds_of(tern_clock_nanoseconds());
}

/* The number after key in a file of lines such as "VmHWM:  123 kB"; 0 when there is none. */
static unsigned long long read_kib(const char *path, const char *key) {
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return 0;
    char line[256];
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    (void)fclose(f); /* read only: nothing can be lost */
    return kib;
}

double tern_peak_rss_from(const char *status_path) {
    const unsigned long long kib = read_kib(status_path, "VmHWM:");
    if (kib > 0)
        return (double)kib / 1024.0;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0.0;
    return (double)usage.ru_maxrss / 1024.0; /* Linux counts KiB */
}

double tern_peak_rss_mib(void) {
    return tern_peak_rss_from("/proc/self/status");
}

uint64_t tern_resident_bytes(void) {
    return 1024 * (uint64_t)read_kib("/proc/self/status", "VmRSS:");
}

double tern_processor_seconds(void) {
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        return 0.0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A limit in bytes; 0 for "max" and for files that are not there. */
static uint64_t read_limit(const char *path) {
    FILE *f = fopen(path, "re");
    unsigned long long bytes = 0;
    if (f == NULL)
        return 0;
    if (fscanf(f, "%llu", &bytes) != 1)
        bytes = 0;
    (void)fclose(f); /* read only: nothing can be lost */
    return bytes;
}

uint64_t tern_memory_available_from(const char *meminfo, const char *const *limits) {
    uint64_t available = 1024 * (uint64_t)read_kib(meminfo, "MemAvailable:");
    for (; *limits != NULL; limits++) {
        const uint64_t limit = read_limit(*limits);
        if (limit > 0 && (available == 0 || limit < available))
            available = limit;
    }
    return available;
}

uint64_t tern_memory_available(void) {
    /* Control groups of version 2, then of version 1, as a container sees its own. */
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes", NULL};
    return tern_memory_available_from("/proc/meminfo", limits);
}

static size_t held(const tern_latencies *l) {
    return l->added < TERN_LATENCY_RING ? l->added : TERN_LATENCY_RING;
}

void tern_latencies_add(tern_latencies *l, double seconds) {
    l->seconds[l->added % TERN_LATENCY_RING] = seconds;
    l->added++;
}

/* Shell sort with the gaps (4^k - 1) / 3 or so: qsort of the C library may allocate. */
void tern_latencies_sort(tern_latencies *l) {
    const size_t n = held(l);
    for (size_t gap = 1365; gap > 0; gap /= 4) {
        for (size_t i = gap; i < n; i++) {
            const double x = l->seconds[i];
            size_t j = i;
            for (; j >= gap && l->seconds[j - gap] > x; j -= gap)
                l->seconds[j] = l->seconds[j - gap];
            l->seconds[j] = x;
        }
    }
}

double tern_latencies_percentile(const tern_latencies *l, double p) {
    const size_t n = held(l);
    if (n == 0)
        return 0.0;
    size_t rank = (size_t)(p * (double)n);
    if ((double)rank < p * (double)n)
        rank++;
    rank = rank < 1 ? 1 : rank > n ? n : rank;
    return l->seconds[rank - 1];
}
