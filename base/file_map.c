/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/os/os.h"
#include "base/sha256.h"
#include "tern/tern.h"

struct tern_file_map {
    char *path;
    int fd;
    uint8_t *bytes;
    size_t size;
    struct timespec changed; /* time of the last change of the contents */
};

/* ---- the list of maps ------------------------------------------------------------------------ */

enum { LISTED = 256 }; /* maps at once; the files of those beyond cannot be named */

/* Read by signal handlers, so it holds no lock. An entry counts while its path is set. */
static struct {
    atomic_bool taken;
    _Atomic(const char *) path;
    uintptr_t begin, end;
    dev_t device;
    ino_t inode;
} listed[LISTED];

static void list(const tern_file_map *m, const struct stat *info) {
    for (int i = 0; i < LISTED; i++) {
        if (atomic_exchange(&listed[i].taken, true))
            continue;
        listed[i].begin = (uintptr_t)m->bytes;
        listed[i].end = (uintptr_t)m->bytes + m->size;
        listed[i].device = info->st_dev;
        listed[i].inode = info->st_ino;
        atomic_store(&listed[i].path, m->path); /* orders what is above before it */
        return;
    }
}

static void unlist(const tern_file_map *m) {
    for (int i = 0; i < LISTED; i++) {
        if (atomic_load(&listed[i].path) == m->path) {
            atomic_store(&listed[i].path, NULL);
            atomic_store(&listed[i].taken, false);
            return;
        }
    }
}

const char *tern_mapped_file(const void *address) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < LISTED; i++) {
        const char *path = atomic_load(&listed[i].path);
        /* A map ends with a whole page. */
        if (path != NULL && (uintptr_t)address >= listed[i].begin &&
            (uintptr_t)address < (listed[i].end + page - 1) / page * page)
            return path;
    }
    return NULL;
}

bool tern_file_is_mapped(const struct stat *info) {
    for (int i = 0; i < LISTED; i++)
        if (atomic_load(&listed[i].path) != NULL && listed[i].device == info->st_dev &&
            listed[i].inode == info->st_ino)
            return true;
    return false;
}

/* ---- life ------------------------------------------------------------------------------------ */

static tern_status check_file(const char *path, const struct stat *info, tern_error *err) {
    if (S_ISDIR(info->st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: is a directory", path);
    if (!S_ISREG(info->st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: not a regular file, cannot be mapped", path);
    if (info->st_size <= 0)
        return tern_fail(err, TERN_ERR_TRUNCATED, "%s: file is empty", path);
    if ((uintmax_t)info->st_size > SIZE_MAX)
        return tern_fail(err, TERN_ERR_IO, "%s: file is too large for this machine", path);
    return TERN_OK;
}

/*
 * Maps a large file at a multiple of 2 MiB, with the hint that it may be read in pages of that
 * size: file systems that keep them so (ext4, xfs of Linux 6.16 and later, when a file was written
 * or read in large pieces) then give whole huge pages, and streams of weights meet no TLB misses.
 */
static void *map_bytes(int fd, size_t size) {
    const size_t huge = TERN_HUGE_PAGE_BYTES;
    if (size < 2 * huge)
        return mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    uint8_t *space = mmap(NULL, size + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED)
        return mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    uint8_t *wanted = space + (huge - (uintptr_t)space % huge) % huge;
    void *bytes = mmap(wanted, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
    if (bytes == MAP_FAILED) {
        munmap(space, size + huge);
        return bytes;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *end = wanted + (size + page - 1) / page * page;
    if (wanted > space)
        munmap(space, (size_t)(wanted - space));
    if (end < space + size + huge)
        munmap(end, (size_t)(space + size + huge - end));
    tern_os_use_huge_pages(bytes, size);
    return bytes;
}

void tern_file_map_drop(const void *data, uint64_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)data + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)data + bytes) / page * page;
    if (first < end)
        tern_os_drop_pages((void *)first, end - first);
}

static tern_status map_file(tern_file_map *m, tern_error *err) {
    struct stat info;
    /* O_NONBLOCK: opening a FIFO without a writer must not hang. */
    m->fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (m->fd < 0 || fstat(m->fd, &info) != 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", m->path, strerror(errno));
    const tern_status status = check_file(m->path, &info, err);
    if (status != TERN_OK)
        return status;
    void *bytes = map_bytes(m->fd, (size_t)info.st_size);
    if (bytes == MAP_FAILED)
        return tern_fail(err, TERN_ERR_IO, "%s: cannot be mapped: %s", m->path, strerror(errno));
    m->bytes = bytes;
    m->size = (size_t)info.st_size;
    m->changed = tern_os_write_time(&info);
    list(m, &info);
    return TERN_OK;
}

tern_status tern_file_map_open(const char *path, tern_file_map **out, tern_error *err) {
    tern_file_map *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to open it", path);
    m->fd = -1;
    m->path = strdup(path);
    const tern_status status =
        m->path != NULL ? map_file(m, err)
                        : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to open it", path);
    if (status != TERN_OK) {
        tern_file_map_close(&m);
        return status;
    }
    *out = m;
    return TERN_OK;
}

void tern_file_map_close(tern_file_map **map) {
    if (map == NULL || *map == NULL)
        return;
    tern_file_map *m = *map;
    if (m->bytes != NULL) {
        unlist(m);
        munmap(m->bytes, m->size);
    }
    if (m->fd >= 0)
        (void)close(m->fd); /* read only: nothing can be lost */
    free(m->path);
    free(m);
    *map = NULL;
}

const uint8_t *tern_file_map_bytes(const tern_file_map *m) {
    return m->bytes;
}

size_t tern_file_map_size(const tern_file_map *m) {
    return m->size;
}

int tern_file_map_descriptor(const tern_file_map *m) {
    return m->fd;
}

bool tern_file_map_stamp(const tern_file_map *m, tern_hash64 *hash, int64_t *newest) {
    struct stat now;
    if (fstat(m->fd, &now) != 0)
        return false;
    const struct timespec written = tern_os_write_time(&now), changed = tern_os_change_time(&now);
    const uint64_t stamp[] = {(uint64_t)now.st_dev,      (uint64_t)now.st_ino,
                              (uint64_t)now.st_size,     (uint64_t)written.tv_sec,
                              (uint64_t)written.tv_nsec, (uint64_t)changed.tv_sec,
                              (uint64_t)changed.tv_nsec};
    tern_hash64_add(hash, stamp, sizeof stamp);
    if (*newest < written.tv_sec)
        *newest = written.tv_sec;
    if (*newest < changed.tv_sec)
        *newest = changed.tv_sec;
    return true;
}

tern_status tern_file_map_sha256(const tern_file_map *m, char hex[65], tern_error *err) {
    uint8_t buffer[1 << 14];
    tern_sha256 hash;
    tern_sha256_start(&hash);
    for (size_t at = 0; at < m->size;) {
        const size_t wanted = m->size - at < sizeof buffer ? m->size - at : sizeof buffer;
        const ssize_t got = pread(m->fd, buffer, wanted, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tern_fail(err, TERN_ERR_IO, "%s: %s", m->path, strerror(errno));
        if (got == 0) /* it became shorter, and the times say so */
            break;
        tern_sha256_add(&hash, buffer, (size_t)got);
        at += (size_t)got;
    }
    tern_sha256_finish(&hash, hex);
    return tern_file_map_unchanged(m, err);
}

tern_status tern_file_map_unchanged(const tern_file_map *m, tern_error *err) {
    struct stat now;
    if (fstat(m->fd, &now) != 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", m->path, strerror(errno));
    if ((size_t)now.st_size != m->size)
        return tern_fail(err, TERN_ERR_CHANGED,
                         "%s: was changed while it was in use: %zu bytes became %jd", m->path,
                         m->size, (intmax_t)now.st_size);
    const struct timespec written = tern_os_write_time(&now);
    if (written.tv_sec != m->changed.tv_sec || written.tv_nsec != m->changed.tv_nsec)
        return tern_fail(err, TERN_ERR_CHANGED, "%s: was written to while it was in use", m->path);
    return TERN_OK;
}
