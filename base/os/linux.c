/* SPDX-License-Identifier: Apache-2.0 */
#include "base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- memory ---------------------------------------------------------------------------------- */

void tern_os_use_huge_pages(void *first, size_t bytes) {
    (void)madvise(first, bytes, MADV_HUGEPAGE);
}

void tern_os_use_small_pages(void *first, size_t bytes) {
    (void)madvise(first, bytes, MADV_NOHUGEPAGE);
}

void tern_os_drop_pages(void *first, size_t bytes) {
    (void)madvise(first, bytes, MADV_DONTNEED);
}

/* glibc may tell the caches of a whole socket of AMD's: 256 MiB where sysfs has 32. */
size_t tern_os_last_cache_bytes(void) {
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    unsigned long kib = 0;
    if (file == NULL)
        return 0;
    if (fscanf(file, "%luK", &kib) != 1)
        kib = 0;
    (void)fclose(file); /* read only: nothing can be lost */
    return (size_t)kib * 1024;
}

/* ---- files ----------------------------------------------------------------------------------- */

struct timespec tern_os_read_time(const struct stat *info) {
    return info->st_atim;
}

struct timespec tern_os_write_time(const struct stat *info) {
    return info->st_mtim;
}

struct timespec tern_os_change_time(const struct stat *info) {
    return info->st_ctim;
}

int tern_os_open_nameless(const char *folder, mode_t permissions) {
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, permissions);
}

bool tern_os_name_file(int file, const char *path) {
    char self[64];
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* The system call, because musl has no function for it. */
bool tern_os_rename_to_new(const char *from, const char *to) {
    enum { NO_REPLACE = 1 }; /* RENAME_NOREPLACE */
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NO_REPLACE) == 0;
}

int tern_os_reserve(int file, size_t bytes) {
    return posix_fallocate(file, 0, (off_t)bytes);
}

int tern_os_open_nothing(void) {
    return open("/", O_PATH); /* / exists even without /dev */
}

const char *tern_os_program(void) {
    return "/proc/self/exe";
}

void tern_os_discard(FILE *stream) {
    __fpurge(stream);
}

static bool read_random_file(void *bytes, size_t size) {
    const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool whole = file >= 0 && read(file, bytes, size) == (ssize_t)size;
    if (file >= 0)
        (void)close(file);
    return whole;
}

/* The system call and not getrandom(), which C libraries before glibc 2.25 do not have. */
bool tern_os_random_bytes(void *bytes, size_t size) {
    long n;
    do
        n = syscall(SYS_getrandom, bytes, size, 0);
    while (n < 0 && errno == EINTR);
    return n == (long)size || read_random_file(bytes, size);
}

/* ---- sockets and pipes ----------------------------------------------------------------------- */

int tern_os_socket(int family, int type, bool waits) {
    return socket(family, type | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);
}

int tern_os_accept(int listening) {
    return accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

bool tern_os_socket_pair(int ends[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
}

bool tern_os_pipe(int ends[2]) {
    return pipe2(ends, O_CLOEXEC) == 0;
}

bool tern_os_bell_open(tern_os_bell *bell) {
    bell->hears = bell->rings = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return bell->hears >= 0;
}

void tern_os_bell_ring(const tern_os_bell *bell) {
    (void)eventfd_write(bell->rings, 1);
}

void tern_os_bell_hush(const tern_os_bell *bell) {
    eventfd_t times;
    (void)eventfd_read(bell->hears, &times);
}

void tern_os_bell_close(const tern_os_bell *bell) {
    (void)close(bell->hears);
}

/* ---- threads and processes ------------------------------------------------------------------- */

void tern_os_run_idle(pthread_t thread, bool idle) {
    const struct sched_param none = {.sched_priority = 0};
    (void)pthread_setschedparam(thread, idle ? SCHED_IDLE : SCHED_OTHER, &none);
}

/* Here a priority is of one thread, elsewhere of the process. */
void tern_os_give_way(void) {
    enum { NICER = 10 };
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
}

void tern_os_end_with_parent(void) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- processors ------------------------------------------------------------------------------ */

/* Bits of a mask: a system may have more processors than a cpu_set_t has. */
enum { MOST_BITS = 1 << 20 };

struct tern_os_set {
    cpu_set_t *mask;
    size_t bytes;
};

/* The numbers in a mask. errno is ENOMEM on NULL. */
static uint32_t *numbers_in(const cpu_set_t *mask, size_t bytes, uint32_t *n) {
    uint32_t *list = malloc((size_t)CPU_COUNT_S(bytes, mask) * sizeof *list);
    *n = 0;
    for (size_t i = 0; list != NULL && i < bytes * 8; i++)
        if (CPU_ISSET_S(i, bytes, mask))
            list[(*n)++] = (uint32_t)i;
    if (list == NULL)
        errno = ENOMEM;
    return list;
}

bool tern_os_allowed_processors(uint32_t **list, uint32_t *n) {
    for (int bits = CPU_SETSIZE; bits <= MOST_BITS; bits *= 2) {
        cpu_set_t *mask = CPU_ALLOC((size_t)bits);
        const size_t bytes = CPU_ALLOC_SIZE((size_t)bits);
        if (mask == NULL)
            break;
        const int failed = sched_getaffinity(0, bytes, mask) != 0 ? errno : 0;
        if (failed == 0)
            *list = numbers_in(mask, bytes, n);
        CPU_FREE(mask);
        if (failed == 0)
            return *list != NULL;
        errno = failed;
        if (failed != EINVAL)
            return false;
    }
    errno = ENOMEM;
    return false;
}

/* Bytes of the smallest mask that the system takes and that has a bit for that processor. */
static size_t mask_bytes(uint32_t most) {
    int bits = CPU_SETSIZE;
    while (most >= (uint32_t)bits && bits < MOST_BITS)
        bits *= 2;
    for (; bits < MOST_BITS; bits *= 2) {
        cpu_set_t *mask = CPU_ALLOC((size_t)bits);
        const bool fits =
            mask != NULL && sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)bits), mask) == 0;
        CPU_FREE(mask);
        if (fits)
            break;
    }
    return CPU_ALLOC_SIZE((size_t)bits);
}

tern_os_set *tern_os_set_new(uint32_t most) {
    tern_os_set *set = malloc(sizeof *set);
    if (set == NULL)
        return NULL;
    set->bytes = mask_bytes(most);
    set->mask = CPU_ALLOC(set->bytes * 8);
    if (set->mask == NULL) {
        free(set);
        return NULL;
    }
    CPU_ZERO_S(set->bytes, set->mask);
    return set;
}

void tern_os_set_add(tern_os_set *set, uint32_t processor) {
    CPU_SET_S((size_t)processor, set->bytes, set->mask);
}

void tern_os_set_free(tern_os_set *set) {
    if (set != NULL)
        CPU_FREE(set->mask);
    free(set);
}

int tern_os_bind_thread(pthread_t thread, const tern_os_set *set) {
    return pthread_setaffinity_np(thread, set->bytes, set->mask);
}

int tern_os_bind_self(const tern_os_set *set) {
    return sched_setaffinity(0, set->bytes, set->mask) == 0 ? 0 : errno;
}

int tern_os_own_set(tern_os_set *set) {
    return sched_getaffinity(0, set->bytes, set->mask) == 0 ? 0 : errno;
}

#ifdef __x86_64__
/* Linux 5.16 and later; asm/prctl.h of older systems does not have them. */
bool tern_os_allow_tiles(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
bool tern_os_allow_tiles(void) {
    errno = ENOSYS;
    return false;
}
#endif

void tern_os_arm_features(unsigned long words[2]) {
    words[0] = getauxval(AT_HWCAP);
    words[1] = getauxval(AT_HWCAP2);
}
