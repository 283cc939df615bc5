/* SPDX-License-Identifier: Apache-2.0 */

#include "dispatch/proof.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "dispatch/cpu.h"
#include "dispatch/permission.h"

/* The place at which the trying thread continues after a fault; NULL in every other thread. */
static _Thread_local sigjmp_buf *landing;
static struct sigaction previous;

static void on_illegal_instruction(int signal_number) {
    (void)signal_number;
    if (landing != NULL)
        siglongjmp(*landing, 1);
    sigaction(SIGILL, &previous, NULL); /* not ours: the instruction faults again, as before */
}

static bool survives(bool (*proof)(void)) {
    sigjmp_buf here;
    volatile bool sound = false;

    if (sigsetjmp(here, 1) == 0) {
        landing = &here;
        sound = proof();
    }
    landing = NULL;
    return sound;
}

uint64_t tern_prove_features(uint64_t announced, const tern_isa_info *isas, size_t count) {
    struct sigaction guard = {.sa_handler = on_illegal_instruction};
    uint64_t proven = 0, features = announced;

    sigemptyset(&guard.sa_mask);
    if (sigaction(SIGILL, &guard, &previous) != 0)
        return 0; /* without a guard only scalar kernels are safe */
    for (size_t i = 0; i < count; i++) {
        if (!isas[i].built || (isas[i].needs & ~features) != 0)
            continue;
        if (survives(isas[i].proof))
            proven |= isas[i].needs;
        else
            features &= ~(isas[i].needs & ~proven);
    }
    sigaction(SIGILL, &previous, NULL);
    return features;
}

static uint64_t proven_features;

static void prove_once(void) {
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    proven_features = tern_prove_features(tern_cpu_announced(), isas, count);
}

uint64_t tern_cpu_features(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prove_once);
    return proven_features;
}

uint64_t tern_cpu_forbidden(void) {
    (void)tern_cpu_features();
    return tern_refused_features();
}

size_t tern_cpu_refused(const char **names, size_t capacity) {
    const uint64_t announced = tern_cpu_announced(), proven = tern_cpu_features();
    size_t count, found = 0;
    const tern_isa_info *isas = tern_isas(&count);

    for (size_t i = 0; i < count; i++) {
        if (!isas[i].built || (isas[i].needs & ~announced) != 0 || (isas[i].needs & ~proven) == 0)
            continue;
        if (found < capacity)
            names[found] = isas[i].name;
        found++;
    }
    return found;
}
