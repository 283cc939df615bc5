/* SPDX-License-Identifier: Apache-2.0 */
/* The server's resident memory over a whole run. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/load/load.h"

static const double LOOK_SECONDS = 0.1;

double resident_mib(long pid) {
    char path[64], line[256];
    double mib = 0.0;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *f = pid > 0 ? fopen(path, "r") : NULL;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            mib = strtod(line + 6, NULL) / 1024.0;
    if (f != NULL)
        (void)fclose(f);
    return mib;
}

void memory_look(memory *m, double now) {
    if (m->pid <= 0 || now < m->next)
        return;
    m->next = now + LOOK_SECONDS;
    const double mib = resident_mib(m->pid);
    m->most = mib > m->most ? mib : m->most;
    samples_add(&m->looks, mib);
}

/* The median of the quarter that begins at a fraction of the run. */
static double median_from(const memory *m, double share) {
    samples part = {0};
    const size_t begin = (size_t)(share * (double)m->looks.n);
    for (size_t i = begin; i < begin + m->looks.n / 4; i++)
        samples_add(&part, m->looks.values[i]);
    const double median = samples_at(&part, 0.5);
    samples_free(&part);
    return median;
}

/* The first quarter is left out, because buffers for all clients and requests are allocated in
 * it. */
double memory_early(const memory *m) {
    return median_from(m, 0.25);
}

double memory_late(const memory *m) {
    return median_from(m, 0.75);
}

bool memory_is_flat(const memory *m) {
    return memory_late(m) - memory_early(m) <= LOAD_FLAT_MIB;
}
