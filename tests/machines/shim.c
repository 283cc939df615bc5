/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for LD_PRELOAD that pretends to a program that it runs on another machine
 * (TERN_PROCESSOR does so for the processor's features). The environment says which:
 *
 *   PRETEND_CPUINFO  0: cpuinfo cannot start, as without /proc and /sys
 *   PRETEND_CORES    N: the process may run on processors 0 to N - 1, and asking to run on
 *                         some of them succeeds without any effect
 *   PRETEND_CACHE    N: bytes of the last cache; 0: the last cache is unknown
 */
#include <cpuinfo.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The number in a variable, or `otherwise` if it is not set. */
static long told(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text != NULL && text[0] != '\0' ? strtol(text, NULL, 10) : otherwise;
}

static void *real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

/* ---- cpuinfo --------------------------------------------------------------------------------- */

bool cpuinfo_initialize(void) {
    bool (*initialize)(void);
    *(void **)&initialize = real("cpuinfo_initialize");
    return told("PRETEND_CPUINFO", 1) != 0 && initialize != NULL && initialize();
}

static uint32_t count_caches(const char *name, bool told_one) {
    uint32_t (*count)(void);
    if (told("PRETEND_CACHE", -1) >= 0)
        return told_one && told("PRETEND_CACHE", 0) > 0 ? 1 : 0;
    *(void **)&count = real(name);
    return count();
}

static const struct cpuinfo_cache *cache(const char *name, uint32_t i) {
    static struct cpuinfo_cache only;
    const struct cpuinfo_cache *(*get)(uint32_t);
    const long bytes = told("PRETEND_CACHE", -1);
    if (bytes >= 0) {
        only.size = (uint32_t)bytes;
        return &only;
    }
    *(void **)&get = real(name);
    return get(i);
}

uint32_t cpuinfo_get_l3_caches_count(void) {
    return count_caches("cpuinfo_get_l3_caches_count", true);
}

uint32_t cpuinfo_get_l2_caches_count(void) {
    return count_caches("cpuinfo_get_l2_caches_count", false);
}

const struct cpuinfo_cache *cpuinfo_get_l3_cache(uint32_t i) {
    return cache("cpuinfo_get_l3_cache", i);
}

const struct cpuinfo_cache *cpuinfo_get_l2_cache(uint32_t i) {
    return cache("cpuinfo_get_l2_cache", i);
}

/* ---- processors ------------------------------------------------------------------------------ */

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    int (*get)(pid_t, size_t, cpu_set_t *);
    const long cores = told("PRETEND_CORES", 0);
    if (cores <= 0) {
        *(void **)&get = real("sched_getaffinity");
        return get(process, size, set);
    }
    CPU_ZERO_S(size, set);
    for (long i = 0; i < cores; i++)
        CPU_SET_S((size_t)i, size, set);
    return 0;
}

int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set) {
    int (*change)(pid_t, size_t, const cpu_set_t *);
    if (told("PRETEND_CORES", 0) > 0)
        return 0;
    *(void **)&change = real("sched_setaffinity");
    return change(process, size, set);
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set) {
    int (*change)(pthread_t, size_t, const cpu_set_t *);
    if (told("PRETEND_CORES", 0) > 0)
        return 0;
    *(void **)&change = real("pthread_setaffinity_np");
    return change(thread, size, set);
}
