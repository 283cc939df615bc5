/* SPDX-License-Identifier: Apache-2.0 */
#include "base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <mach-o/dyld.h>
#include <pthread/qos.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <unistd.h>

/* ---- memory: the system chooses the size of pages -------------------------------------------- */

void tern_os_use_huge_pages(void *first, size_t bytes) {
    (void)first, (void)bytes;
}

void tern_os_use_small_pages(void *first, size_t bytes) {
    (void)first, (void)bytes;
}

void tern_os_drop_pages(void *first, size_t bytes) {
    (void)madvise(first, bytes, MADV_DONTNEED);
}

/* A number of the system; 0: it has none of that name. */
static uint64_t number_of(const char *name) {
    uint64_t value = 0; /* numbers of four bytes leave the upper half */
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

/* The caches that all cores share are not told on Apple's processors: the second level stands for
 * them. */
size_t tern_os_last_cache_bytes(void) {
    const uint64_t third = number_of("hw.l3cachesize");
    return (size_t)(third > 0 ? third : number_of("hw.l2cachesize"));
}

/* ---- files ----------------------------------------------------------------------------------- */

struct timespec tern_os_read_time(const struct stat *info) {
    return info->st_atimespec;
}

struct timespec tern_os_write_time(const struct stat *info) {
    return info->st_mtimespec;
}

struct timespec tern_os_change_time(const struct stat *info) {
    return info->st_ctimespec;
}

int tern_os_open_nameless(const char *folder, mode_t permissions) {
    (void)folder, (void)permissions;
    errno = ENOTSUP;
    return -1;
}

bool tern_os_name_file(int file, const char *path) {
    (void)file, (void)path;
    errno = ENOTSUP;
    return false;
}

/* A file system without the call says ENOTSUP, Linux EINVAL. */
bool tern_os_rename_to_new(const char *from, const char *to) {
    if (renamex_np(from, to, RENAME_EXCL) == 0)
        return true;
    if (errno == ENOTSUP)
        errno = EINVAL;
    return false;
}

int tern_os_reserve(int file, size_t bytes) {
    fstore_t room = {
        .fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE, .fst_length = (off_t)bytes};
    return fcntl(file, F_PREALLOCATE, &room) != -1 && ftruncate(file, (off_t)bytes) == 0 ? 0
                                                                                         : errno;
}

/* A folder cannot be read as a file nor written. */
int tern_os_open_nothing(void) {
    return open("/", O_RDONLY);
}

static char program[PATH_MAX];

static void find_program(void) {
    uint32_t size = sizeof program;
    if (_NSGetExecutablePath(program, &size) != 0)
        program[0] = '\0'; /* too long: no file has that name */
}

const char *tern_os_program(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_program);
    return program;
}

void tern_os_discard(FILE *stream) {
    (void)fpurge(stream);
}

bool tern_os_random_bytes(void *bytes, size_t size) {
    enum { AT_ONCE = 256 }; /* getentropy gives no more */
    for (size_t at = 0; at < size; at += AT_ONCE)
        if (getentropy((char *)bytes + at, size - at < AT_ONCE ? size - at : AT_ONCE) != 0)
            return false;
    return true;
}

/* ---- sockets and pipes ---------------------------------------------------------------------- */

/* Flags come after opening, so a program that another thread starts in between may inherit one. */

static bool set_flags(int descriptor, bool waits) {
    const int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(descriptor, F_SETFL, waits ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

/* The descriptor with its flags; -1 if it has none, or they cannot be set. */
static int with_flags(int descriptor, bool waits) {
    if (descriptor < 0 || set_flags(descriptor, waits))
        return descriptor;
    const int why = errno;
    (void)close(descriptor);
    errno = why;
    return -1;
}

/* Both ends with their flags, or none. */
static bool both_with_flags(int ends[2], bool waits) {
    if (set_flags(ends[0], waits) && set_flags(ends[1], waits))
        return true;
    const int why = errno;
    (void)close(ends[0]);
    (void)close(ends[1]);
    errno = why;
    return false;
}

int tern_os_socket(int family, int type, bool waits) {
    return with_flags(socket(family, type, 0), waits);
}

int tern_os_accept(int listening) {
    return with_flags(accept(listening, NULL, NULL), false);
}

bool tern_os_socket_pair(int ends[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && both_with_flags(ends, true);
}

bool tern_os_pipe(int ends[2]) {
    return pipe(ends) == 0 && both_with_flags(ends, true);
}

bool tern_os_bell_open(tern_os_bell *bell) {
    int ends[2];
    const bool good = pipe(ends) == 0 && both_with_flags(ends, false);
    *bell = good ? (tern_os_bell){ends[0], ends[1]} : (tern_os_bell){-1, -1};
    return good;
}

/* A full pipe rings already. */
void tern_os_bell_ring(const tern_os_bell *bell) {
    const char byte = 0;
    const ssize_t written = write(bell->rings, &byte, 1);
    (void)written;
}

void tern_os_bell_hush(const tern_os_bell *bell) {
    char bytes[64];
    while (read(bell->hears, bytes, sizeof bytes) > 0)
        ;
}

void tern_os_bell_close(const tern_os_bell *bell) {
    (void)close(bell->hears);
    (void)close(bell->rings);
}

/* ---- threads and processes ------------------------------------------------------------------- */

/* Only a thread itself can change its class. */
void tern_os_run_idle(pthread_t thread, bool idle) {
    if (pthread_equal(thread, pthread_self()))
        (void)pthread_set_qos_class_self_np(idle ? QOS_CLASS_BACKGROUND : QOS_CLASS_DEFAULT, 0);
}

void tern_os_give_way(void) {
    (void)pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
}

void tern_os_end_with_parent(void) {}

/* ---- processors: the system places threads --------------------------------------------------- */

struct tern_os_set {
    uint32_t n;
};

bool tern_os_allowed_processors(uint32_t **list, uint32_t *n) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    *n = online > 0 ? (uint32_t)online : 1;
    *list = malloc(*n * sizeof **list);
    for (uint32_t i = 0; *list != NULL && i < *n; i++)
        (*list)[i] = i;
    return *list != NULL;
}

tern_os_set *tern_os_set_new(uint32_t most) {
    (void)most;
    return calloc(1, sizeof(tern_os_set));
}

void tern_os_set_add(tern_os_set *set, uint32_t processor) {
    (void)processor;
    set->n++;
}

void tern_os_set_free(tern_os_set *set) {
    free(set);
}

int tern_os_bind_thread(pthread_t thread, const tern_os_set *set) {
    (void)thread, (void)set;
    return ENOTSUP;
}

int tern_os_bind_self(const tern_os_set *set) {
    (void)set;
    return ENOTSUP;
}

int tern_os_own_set(tern_os_set *set) {
    (void)set;
    return ENOTSUP;
}

bool tern_os_allow_tiles(void) {
    errno = ENOTSUP;
    return false;
}

/* Bits of AT_HWCAP and AT_HWCAP2 on Linux (asm/hwcap.h of arm64). Every Apple processor of 64 bits
 * has ASIMD. */
void tern_os_arm_features(unsigned long words[2]) {
    enum { ASIMD = 1 << 1, ASIMDHP = 1 << 10, ASIMDDP = 1 << 20, I8MM = 1 << 13 };
    words[0] = ASIMD;
    words[0] |= number_of("hw.optional.arm.FEAT_FP16") != 0 ? ASIMDHP : 0;
    words[0] |= number_of("hw.optional.arm.FEAT_DotProd") != 0 ? ASIMDDP : 0;
    words[1] = number_of("hw.optional.arm.FEAT_I8MM") != 0 ? I8MM : 0;
}
