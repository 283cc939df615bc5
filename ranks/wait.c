/* SPDX-License-Identifier: Apache-2.0 */

/* How a thread waits for another process. */

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/pause.h"
#include "ranks/ranks.h"

/* A rank answers within microseconds unless it lost its processor, for which it needs a few
 * milliseconds. Beyond these nothing is lost by sleeping. */
enum { POLLS = 2000, LOOKS_EVERY = 64 };
static const double yields = 0.004;                         /* seconds before it sleeps */
static const struct timespec nap = {.tv_nsec = 100 * 1000}; /* what a sleep costs in precision */

uint32_t tern_ranks_polls(uint32_t size) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 && size <= (uint32_t)processors ? POLLS : 0;
}

bool tern_ranks_pass_time(tern_ranks_wait *wait, double *seconds) {
    wait->n++;
    if (wait->n <= wait->polls) {
        tern_pause();
        return false;
    }
    const double now = tern_clock_seconds();
    if (wait->begin <= 0.0)
        wait->begin = now;
    *seconds = now - wait->begin;
    if (*seconds < yields)
        (void)sched_yield();
    else
        (void)nanosleep(&nap, NULL);
    return wait->n % LOOKS_EVERY == 0 || *seconds >= yields;
}
