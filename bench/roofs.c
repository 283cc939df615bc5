/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/roofs.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/os/os.h"
#include "dispatch/cpu.h"
#include "tern/kernels.h"

enum {
    READ_FLOATS = 128, /* most floats that a read function takes at once */
    AHEAD_FLOATS = 1024,
    PAGE = 4096,
    TIMED_BYTES = 4 << 20, /* read again and again until the time can be measured */
    NEAR_READS = 40,
    FAR_READS = 3
};

static struct {
    float *floats; /* [count] of 1.0 */
    size_t count;
    uint8_t *room;                 /* the same size in bytes */
    atomic_uint arrived, meetings; /* of the threads that read together */
    double rate[TERN_ROOF_THREADS];
} roofs;

const char *tern_level_name(tern_level level) {
    static const char *const names[] = {
#define TERN_LEVEL_TEXT(name, text) text,
        TERN_LEVEL_LIST(TERN_LEVEL_TEXT)
#undef TERN_LEVEL_TEXT
    };
    return names[level];
}

size_t tern_memory_bytes(void) {
    const size_t least = (size_t)128 << 20, most = (size_t)2 << 30;
    const size_t wanted = 5 * tern_os_last_cache_bytes();
    return wanted < least ? least : wanted > most ? most : wanted;
}

bool tern_roofs_open(size_t bytes) {
    const size_t rounded = (bytes / PAGE + 1) * PAGE;
    roofs.count = bytes / sizeof *roofs.floats;
    roofs.floats = aligned_alloc(PAGE, rounded);
    roofs.room = aligned_alloc(PAGE, rounded);
    if (roofs.floats == NULL || roofs.room == NULL)
        return false;
    for (size_t i = 0; i < roofs.count; i++)
        roofs.floats[i] = 1.0f;
    return true;
}

void tern_roofs_close(void) {
    free(roofs.floats);
    free(roofs.room);
}

void *tern_roofs_room(int thread, int threads) {
    const size_t share = roofs.count * sizeof *roofs.floats / (size_t)threads;
    return roofs.room + (size_t)thread * (share / TERN_ALIGN * TERN_ALIGN);
}

/* The probe of the strongest instruction set that runs here. */
static const tern_probe *strongest(void) {
    size_t count = 0;
    const tern_probe *const *all = tern_probes(&count);
    const uint64_t features = tern_cpu_features();
    const tern_probe *found = all[0];
    for (size_t i = 0; i < count; i++)
        if ((all[i]->needs & ~features) == 0)
            found = all[i];
    return found;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Bytes a second of the fastest of several reads of p[0, n); 0 when a sum is wrong. */
static double best_read(tern_probe_read_fn *read, const float *p, size_t n, int reads) {
    const size_t passes = TIMED_BYTES / (n * sizeof *p) + 1;
    const double bytes = (double)(passes * n * sizeof *p);
    double best = 0.0;
    for (int i = 0; i < reads; i++) {
        const double begin = tern_thread_seconds();
        const double sum = read(p, n, passes, AHEAD_FLOATS);
        const double seconds = tern_thread_seconds() - begin;
        if (sum != (double)(passes * n))
            return 0.0;
        best = seconds > 0.0 ? larger(best, bytes / seconds) : best;
    }
    return best;
}

/* Returns when all threads have come. */
static void meet(void) {
    const unsigned meeting = atomic_load(&roofs.meetings);
    if (atomic_fetch_add(&roofs.arrived, 1) + 1 == TERN_ROOF_THREADS) {
        atomic_store(&roofs.arrived, 0);
        atomic_fetch_add(&roofs.meetings, 1);
        return;
    }
    while (atomic_load(&roofs.meetings) == meeting)
        (void)sched_yield();
}

double tern_roof_read(tern_level level, int thread, int threads) {
    const tern_probe *probe = strongest();
    const size_t share = roofs.count / (size_t)threads / READ_FLOATS * READ_FLOATS;
    const float *mine = roofs.floats + (size_t)thread * share;
    if (level != TERN_LEVEL_MEMORY) {
        const size_t n = (level == TERN_LEVEL_L1 ? TERN_L1_BYTES : TERN_CACHE_BYTES) / sizeof *mine;
        return best_read(probe->read, mine, n, NEAR_READS);
    }
    if (threads == 1)
        return larger(best_read(probe->read, mine, share, FAR_READS),
                      best_read(probe->read_ahead, mine, share, FAR_READS));
    meet();
    roofs.rate[thread] = best_read(probe->read_ahead, mine, share, FAR_READS);
    meet();
    double sum = 0.0;
    for (int i = 0; i < threads; i++)
        sum += roofs.rate[i];
    return sum;
}
