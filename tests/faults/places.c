/* SPDX-License-Identifier: Apache-2.0 */
/* The places of events: stacks of calls, identified by module and offset. */
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "tests/faults/shim.h"

enum { PLACES = 1 << 13, FRAMES = 24, MODULES = 128 };

typedef struct module {
    uintptr_t begin, end, base;
    char name[64];
} module;

typedef struct place {
    uint64_t hash; /* 0: a free entry */
    shim_kind kind;
    const char *what;
    uint64_t first, last, count, hit;
    int n_frames;
    uintptr_t offsets[FRAMES]; /* relative to their modules */
    int modules[FRAMES];       /* -1: unknown */
} place;

static module modules[MODULES];
static int n_modules;
static place places[PLACES]; /* open addressing by hash */
static atomic_flag lock = ATOMIC_FLAG_INIT, modules_lock = ATOMIC_FLAG_INIT;

/* Adds a module. Known modules keep their numbers. */
static int add_module(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    (void)user;
    for (int i = 0; i < n_modules; i++)
        if (modules[i].base == info->dlpi_addr)
            return 0;
    if (n_modules == MODULES)
        return 1;
    module *m = &modules[n_modules];
    const char *slash = strrchr(info->dlpi_name, '/');
    snprintf(m->name, sizeof m->name, "%s", slash != NULL ? slash + 1 : info->dlpi_name);
    m->base = info->dlpi_addr;
    m->begin = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD)
            continue;
        m->begin = begin < m->begin ? begin : m->begin;
        m->end = begin + header->p_memsz > m->end ? begin + header->p_memsz : m->end;
    }
    n_modules++;
    return 0;
}

/* The program has no name in the list, so it is the module "". */
void shim_places_begin(void) {
    void *unused[2];
    (void)backtrace(unused, 2); /* loads the unwinder, which allocates, before counting starts */
    n_modules = 0;
    (void)dl_iterate_phdr(add_module, NULL);
}

static int known_module(uintptr_t address) {
    for (int i = 0; i < n_modules; i++)
        if (address >= modules[i].begin && address < modules[i].end)
            return i;
    return -1;
}

/* A library may have been loaded in the meantime. */
static int module_of(uintptr_t address) {
    int m = known_module(address);
    if (m < 0) {
        while (atomic_flag_test_and_set(&modules_lock)) {
        }
        (void)dl_iterate_phdr(add_module, NULL);
        atomic_flag_clear(&modules_lock);
        m = known_module(address);
    }
    return m;
}

static uint64_t mix(uint64_t hash, uint64_t x) {
    return (hash ^ x) * UINT64_C(0x100000001b3) ^ hash >> 29; /* FNV with a shift */
}

static uint64_t fill(place *p, shim_kind kind, const char *what) {
    void *stack[FRAMES + 8];
    const int n = backtrace(stack, FRAMES + 8);
    const int own = module_of((uintptr_t)shim_places_begin);
    uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), (uint64_t)kind);
    for (const char *c = what; *c != '\0'; c++)
        hash = mix(hash, (uint64_t)*c);
    p->kind = kind;
    p->what = what;
    for (int i = 0; i < n && p->n_frames < FRAMES; i++) {
        const uintptr_t address = (uintptr_t)stack[i];
        const int m = module_of(address);
        if (m == own)
            continue;
        p->modules[p->n_frames] = m;
        p->offsets[p->n_frames] = m >= 0 ? address - modules[m].base : 0;
        hash = mix(mix(hash, (uint64_t)m), p->offsets[p->n_frames]);
        p->n_frames++;
    }
    return hash != 0 ? hash : 1;
}

unsigned shim_place_here(shim_kind kind, const char *what, uint64_t event) {
    place here = {.first = event};
    here.hash = fill(&here, kind, what);
    while (atomic_flag_test_and_set(&lock)) {
    }
    unsigned i = (unsigned)(here.hash % PLACES);
    while (places[i].hash != 0 && places[i].hash != here.hash)
        i = (i + 1) % PLACES;
    if (places[i].hash == 0)
        places[i] = here;
    places[i].last = event;
    places[i].count++;
    atomic_flag_clear(&lock);
    return i + 1;
}

uint64_t shim_place_hash(unsigned id) {
    return places[id - 1].hash;
}

void shim_place_hit(unsigned id) {
    places[id - 1].hit++;
}

void shim_line(int fd, const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void)shim_call(SYS_write, fd, (long)line, n < (int)sizeof line ? n : (int)sizeof line - 1, 0,
                    0);
}

void shim_places_report(int fd) {
    for (unsigned i = 0; i < PLACES; i++) {
        const place *p = &places[i];
        if (p->hash == 0)
            continue;
        char frames[FRAMES * 48];
        size_t used = 0;
        frames[0] = '\0';
        for (int f = 0; f < p->n_frames && used < sizeof frames - 80; f++)
            used += (size_t)snprintf(frames + used, sizeof frames - used, " %s+%lx",
                                     p->modules[f] >= 0 ? modules[p->modules[f]].name : "?",
                                     (unsigned long)p->offsets[f]);
        shim_line(fd, "place %u %016lx %d %lu %lu %lu %lu %s%s\n", i + 1, (unsigned long)p->hash,
                  (int)p->kind, (unsigned long)p->first, (unsigned long)p->last,
                  (unsigned long)p->count, (unsigned long)p->hit, p->what, frames);
    }
}
