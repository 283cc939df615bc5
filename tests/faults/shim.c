/* SPDX-License-Identifier: Apache-2.0 */
/* Events and the actions at them, and the functions that hand out memory and threads. */
#include "tests/faults/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own allocator under the names that are not replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_munmap)(void *, size_t);
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static bool armed; /* true while the program's own code runs */
static bool counted[SHIM_KINDS];
static uint64_t at;     /* the event to act on; 0: none */
static uint64_t place;  /* the place whose first event becomes `at`; 0: none */
static bool and_behind; /* also act on later events of its kind */
static shim_kind first_kind;
static const char *act = "fail";
static atomic_ulong events;
static _Thread_local bool own __attribute__((tls_model("initial-exec")));
static _Thread_local unsigned last_place __attribute__((tls_model("initial-exec")));

/* ---- events ---------------------------------------------------------------------------------- */

static bool perform(void) {
    const char *value = strchr(act, '=');
    if (value == NULL)
        return true;
    value++;
    if (strncmp(act, "signal=", 7) == 0) {
        (void)shim_call(SYS_tgkill, getpid(), gettid(), atoi(value), 0, 0);
    } else if (strncmp(act, "truncate=", 9) == 0) {
        (void)shim_call(SYS_truncate, (long)value, 4096, 0, 0, 0);
    } else if (strncmp(act, "touch=", 6) == 0) {
        const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        (void)shim_call(SYS_utimensat, AT_FDCWD, (long)value, (long)times, 0, 0);
    }
    return false;
}

bool shim_own(bool value) {
    const bool before = own;
    own = value;
    return before;
}

bool shim_event(shim_kind kind, const char *what) {
    if (!armed || own || !counted[kind])
        return false;
    own = true;
    const int code = errno;
    const uint64_t event = atomic_fetch_add(&events, 1) + 1;
    last_place = shim_place_here(kind, what, event);
    bool fails = false;
    if (place != 0 && at == 0 && shim_place_hash(last_place) == place)
        at = event;
    if (event == at)
        first_kind = kind;
    if (at != 0 && (event == at || (and_behind && event > at && kind == first_kind))) {
        shim_place_hit(last_place);
        own = false; /* the handler of a signal belongs to the program */
        fails = perform();
        own = true;
    }
    errno = code;
    own = false;
    return fails;
}

/* ---- memory in use --------------------------------------------------------------------------- */

typedef struct block {
    const void *address; /* NULL: free; GIVEN_BACK: was in use */
    size_t bytes;
    unsigned place;
} block;

enum { BLOCKS = 1 << 18 };
static const char given_back;
static block blocks[BLOCKS]; /* open addressing by address */
static atomic_flag blocks_lock = ATOMIC_FLAG_INIT;

static size_t start_of(const void *address) {
    return (size_t)(((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40) % BLOCKS;
}

void shim_gave(const void *address, size_t bytes) {
    if (!armed || own || address == NULL)
        return;
    while (atomic_flag_test_and_set(&blocks_lock)) {
    }
    size_t i = start_of(address);
    while (blocks[i].address != NULL && blocks[i].address != &given_back)
        i = (i + 1) % BLOCKS;
    blocks[i] = (block){address, bytes, last_place};
    atomic_flag_clear(&blocks_lock);
}

void shim_took(const void *address) {
    if (!armed || address == NULL)
        return;
    while (atomic_flag_test_and_set(&blocks_lock)) {
    }
    for (size_t i = start_of(address); blocks[i].address != NULL; i = (i + 1) % BLOCKS)
        if (blocks[i].address == address) {
            blocks[i].address = &given_back;
            break;
        }
    atomic_flag_clear(&blocks_lock);
}

static void report(void) {
    const char *path = getenv("TERN_FAULTS_LOG");
    if (!armed || path == NULL)
        return;
    own = true;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    const int fd = (int)shim_call(SYS_openat, AT_FDCWD, (long)path, flags, 0666, 0);
    shim_places_report(fd);
    for (size_t i = 0; i < BLOCKS; i++)
        if (blocks[i].address != NULL && blocks[i].address != &given_back && blocks[i].place != 0)
            shim_line(fd, "live %u %zu\n", blocks[i].place, blocks[i].bytes);
    for (int other = 3; other < 64; other++)
        if (other != fd && fcntl(other, F_GETFD) >= 0)
            shim_line(fd, "open %d\n", other);
    own = false;
}

/* ---- memory and threads ------------------------------------------------------------------------
 */

static void *none(void) {
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size) {
    if (shim_event(SHIM_ALLOC, "malloc"))
        return none();
    void *memory = __libc_malloc(size);
    shim_gave(memory, size);
    return memory;
}

void *calloc(size_t count, size_t size) {
    if (shim_event(SHIM_ALLOC, "calloc"))
        return none();
    void *memory = __libc_calloc(count, size);
    shim_gave(memory, count * size);
    return memory;
}

void *realloc(void *old, size_t size) {
    if (shim_event(SHIM_ALLOC, "realloc"))
        return none();
    void *memory = __libc_realloc(old, size);
    if (memory != NULL) {
        shim_took(old);
        shim_gave(memory, size);
    }
    return memory;
}

void *aligned_alloc(size_t alignment, size_t size) {
    if (shim_event(SHIM_ALLOC, "aligned_alloc"))
        return none();
    void *memory = __libc_memalign(alignment, size);
    shim_gave(memory, size);
    return memory;
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (shim_event(SHIM_ALLOC, "posix_memalign"))
        return ENOMEM;
    void *given = __libc_memalign(alignment, size);
    if (given == NULL)
        return ENOMEM;
    shim_gave(given, size);
    *memory = given;
    return 0;
}

void free(void *memory) {
    shim_took(memory);
    __libc_free(memory);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (shim_event(SHIM_ALLOC, "mmap")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *memory = real_mmap(address, size, protection, flags, fd, offset);
    if (memory != MAP_FAILED)
        shim_gave(memory, size);
    return memory;
}

int munmap(void *address, size_t size) {
    shim_took(address);
    return real_munmap(address, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
    if (shim_event(SHIM_ALLOC, "pthread_create"))
        return EAGAIN;
    return real_pthread_create(thread, attributes, start, argument);
}

/* ---- life --------------------------------------------------------------------------------------
 */

static void read_plan(void) {
    const char *kinds = getenv("TERN_FAULTS_KINDS");
    const char *when = getenv("TERN_FAULTS_AT");
    const char *what = getenv("TERN_FAULTS_ACT");
    counted[SHIM_ALLOC] = kinds != NULL && strstr(kinds, "alloc") != NULL;
    counted[SHIM_SYSTEM] = kinds != NULL && strstr(kinds, "system") != NULL;
    if (when != NULL && strncmp(when, "place=", 6) == 0) {
        place = strtoull(when + 6, NULL, 16);
    } else if (when != NULL) {
        char *end;
        at = strtoull(when, &end, 10);
        and_behind = *end == '+';
    }
    act = what != NULL && what[0] != '\0' ? what : act;
}

__attribute__((constructor)) static void begin(void) {
    *(void **)&real_mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&real_munmap = dlsym(RTLD_NEXT, "munmap");
    *(void **)&real_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
    shim_places_begin();
    read_plan();
    const char *hidden = getenv("TERN_FAULTS_HIDE");
    if ((counted[SHIM_SYSTEM] || hidden != NULL) && !shim_trap_system(hidden)) {
        shim_line(STDERR_FILENO, "shim: system calls cannot be trapped here\n");
        _exit(77);
    }
    armed = true;
}

__attribute__((destructor)) static void end(void) {
    report();
}
