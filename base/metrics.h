/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_METRICS_H
#define TERN_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

/* A clock that never goes back; only differences mean something. */
uint64_t tern_clock_nanoseconds(void);
double tern_clock_seconds(void);

static inline double tern_seconds_of(uint64_t nanoseconds) {
    return 1e-9 * (double)nanoseconds;
}

/*
 * Largest resident memory of this process so far, in MiB: VmHWM of /proc/self/status, or where
 * that file is missing getrusage's ru_maxrss. 0 when neither is known.
 */
double tern_peak_rss_mib(void);

/* The same with another file in the place of /proc/self/status, for tests. */
double tern_peak_rss_from(const char *status_path);

/* Bytes of memory that this process holds now (VmRSS), and seconds of processors that it has used;
 * 0 when that is not known. */
uint64_t tern_resident_bytes(void);
double tern_processor_seconds(void);

/*
 * Bytes of memory that are still free for this process: MemAvailable of /proc/meminfo, or the limit
 * of the control group (container) where that is less. 0 when neither is known.
 */
uint64_t tern_memory_available(void);

/* The same from a file in the format of /proc/meminfo and files that hold a limit ("max" or a
 * number of bytes), NULL after the last one; what is missing is ignored. */
uint64_t tern_memory_available_from(const char *meminfo, const char *const *limits);

enum { TERN_LATENCY_RING = 4096 };

/* The last TERN_LATENCY_RING durations. Zero-initialise it. */
typedef struct tern_latencies {
    double seconds[TERN_LATENCY_RING];
    size_t added; /* ever; the ring holds the last min(added, TERN_LATENCY_RING) */
} tern_latencies;

void tern_latencies_add(tern_latencies *l, double seconds);

/*
 * Sorts what the ring holds, so that percentiles can be read. Later additions replace arbitrary
 * old ones: sort once, at the end. Allocates nothing.
 */
void tern_latencies_sort(tern_latencies *l);

/*
 * Percentile p in (0, 1] of a sorted ring by nearest rank: the smallest value that at least a
 * share p of the values does not exceed. 0 when the ring is empty.
 */
double tern_latencies_percentile(const tern_latencies *l, double p);

#endif
