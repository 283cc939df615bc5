/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/own_cpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

enum { BRAND_WORDS = 12, PROCESSORS_MAX = 4096, CACHES_MAX = 8, LEVELS = 4 };

static char brand[BRAND_WORDS * sizeof(unsigned) + 1];

static void read_brand(void) {
#ifdef __x86_64__
    unsigned words[BRAND_WORDS] = {0};
    for (unsigned i = 0; i < BRAND_WORDS / 4; i++)
        if (!__get_cpuid(0x80000002U + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                         &words[4 * i + 3]))
            return;
    const char *text = (const char *)words;
    const size_t blank = strspn(text, " "); /* Intel's names begin with some */
    const size_t end = strnlen(text, sizeof words);
    if (blank < end)
        memcpy(brand, text + blank, end - blank);
#endif
}

const char *tern_cpu_own_name(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_brand);
    return brand[0] != '\0' ? brand : "unknown processor";
}

/* The first line of a cache's file, "" without one. */
static const char *read_line(const char *folder, unsigned processor, unsigned cache,
                             const char *name, char line[static 64]) {
    char path[512];
    const int n =
        snprintf(path, sizeof path, "%s/cpu%u/cache/index%u/%s", folder, processor, cache, name);
    line[0] = '\0';
    FILE *file = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL)
        return line;
    if (fgets(line, 64, file) == NULL)
        line[0] = '\0';
    fclose(file);
    return line;
}

/* Adds a cache to its level's bytes if this processor is the first that shares it. False: it has no
 * such cache. */
static bool add_cache(const char *folder, unsigned processor, unsigned cache,
                      uint64_t bytes[static LEVELS]) {
    char line[64];
    const unsigned long level =
        strtoul(read_line(folder, processor, cache, "level", line), NULL, 10);
    if (level == 0)
        return false;
    const unsigned long first =
        strtoul(read_line(folder, processor, cache, "shared_cpu_list", line), NULL, 10);
    if (level >= LEVELS || first != processor)
        return true;
    char *unit;
    const uint64_t size = strtoul(read_line(folder, processor, cache, "size", line), &unit, 10);
    bytes[level] += *unit == 'K' ? size << 10 : *unit == 'M' ? size << 20 : size;
    return true;
}

uint64_t tern_cpu_own_cache_bytes(const char *folder) {
    uint64_t bytes[LEVELS] = {0};
    for (unsigned processor = 0; processor < PROCESSORS_MAX; processor++) {
        unsigned cache = 0;
        while (cache < CACHES_MAX && add_cache(folder, processor, cache, bytes))
            cache++;
        if (cache == 0 && processor > 0)
            break; /* a processor that is off has none either: then the sum is too small */
    }
    return bytes[3] > 0 ? bytes[3] : bytes[2];
}
