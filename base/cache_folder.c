/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/grow.h"
#include "base/os/os.h"
#include "tern/tern.h"

enum { STALE_SECONDS = 3600 }; /* no file takes that long to write */

struct tern_cache_folder {
    char *path;
};

/* ---- places ---------------------------------------------------------------------------------- */

/* "a/b" in memory for the caller to free; NULL: no memory. */
static char *join(const char *a, const char *b) {
    const size_t size = strlen(a) + strlen(b) + 2;
    char *path = malloc(size);
    if (path != NULL)
        snprintf(path, size, "%s/%s", a, b);
    return path;
}

size_t tern_cache_default(char *path, size_t size) {
    const char *base = getenv("XDG_CACHE_HOME");
    const char *rest = "/tern";
    if (base == NULL || base[0] != '/') { /* the XDG specification: relative paths do not count */
        base = getenv("HOME");
        rest = "/.cache/tern";
    }
    if (base == NULL || base[0] != '/')
        return 0;
    const int n = snprintf(path, size, "%s%s", base, rest);
    return n > 0 ? (size_t)n : 0;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool is_own(const struct stat *info) {
    return (info->st_uid == geteuid() || info->st_uid == 0) && (info->st_mode & S_IWOTH) == 0;
}

static bool make_folder(char *path) {
    return tern_make_parents(path) && (mkdir(path, 0700) == 0 || errno == EEXIST);
}

static tern_status check_folder(char *path, tern_error *err) {
    struct stat info;
    if (stat(path, &info) != 0 && (errno != ENOENT || !make_folder(path)))
        return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (stat(path, &info) != 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: is not a folder", path);
    if (!is_own(&info))
        return tern_fail(err, TERN_ERR_IO, "%s: others could have written what is in this folder",
                         path);
    return TERN_OK;
}

tern_status tern_cache_folder_open(const char *path, tern_cache_folder **out, tern_error *err) {
    if (path == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_cache_folder_open: NULL argument");
    if (path[0] == '\0')
        return tern_fail(err, TERN_ERR_ARG, "a cache folder needs a name");
    tern_cache_folder *f = malloc(sizeof *f);
    char *copy = strdup(path);
    const tern_status status = f != NULL && copy != NULL
                                   ? check_folder(copy, err)
                                   : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to open", path);
    if (status != TERN_OK) {
        free(copy);
        free(f);
        return status;
    }
    f->path = copy;
    *out = f;
    return TERN_OK;
}

void tern_cache_folder_close(tern_cache_folder **folder) {
    if (folder == NULL || *folder == NULL)
        return;
    free((*folder)->path);
    free(*folder);
    *folder = NULL;
}

const char *tern_cache_folder_path(const tern_cache_folder *folder) {
    return folder->path;
}

/* ---- files ----------------------------------------------------------------------------------- */

static tern_status file_path(const tern_cache_folder *folder, const char *name, char **out,
                             tern_error *err) {
    *out = join(folder->path, name);
    return *out != NULL ? TERN_OK
                        : tern_fail(err, TERN_ERR_NOMEM, "%s/%s: no memory for its name",
                                    folder->path, name);
}

/* The time of use is that of access, set by hand: the time of change says that bytes changed. */
static void mark_used(const char *path) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)utimensat(AT_FDCWD, path, times, 0); /* not in a folder of root: then age decides */
}

static tern_status map_own(const char *path, tern_file_map **out, tern_error *err) {
    struct stat info;
    tern_file_map *map;
    const tern_status status = tern_file_map_open(path, &map, err);
    if (status != TERN_OK)
        return status;
    if (fstat(tern_file_map_descriptor(map), &info) != 0 || !is_own(&info)) {
        tern_file_map_close(&map);
        return tern_fail(err, TERN_ERR_IO, "%s: others could have written it", path);
    }
    mark_used(path);
    *out = map;
    return TERN_OK;
}

tern_status tern_cache_folder_map(const tern_cache_folder *folder, const char *name,
                                  tern_file_map **out, tern_error *err) {
    char *path;
    tern_status status = file_path(folder, name, &path, err);
    if (status == TERN_OK)
        status = map_own(path, out, err);
    free(path);
    return status;
}

tern_status tern_cache_folder_create(const tern_cache_folder *folder, const char *name,
                                     tern_out_file **out, tern_error *err) {
    char *path;
    tern_status status = file_path(folder, name, &path, err);
    if (status == TERN_OK)
        status = tern_out_file_create(path, TERN_OUT_CACHE, out, err);
    free(path);
    return status;
}

void tern_cache_folder_remove(const tern_cache_folder *folder, const char *name) {
    char *path = join(folder->path, name);
    if (path != NULL)
        (void)unlink(path); /* nothing else could be done about it */
    free(path);
}

/* True for a complete entry of this kind. */
static bool is_kind(const char *name, const char *kind) {
    return strncmp(name, kind, strlen(kind)) == 0 && strstr(name, ".tmp-") == NULL;
}

bool tern_cache_folder_holds(const tern_cache_folder *folder, const char *kind) {
    const struct dirent *item;
    bool found = false;
    DIR *open = opendir(folder->path);
    while (open != NULL && !found && (item = readdir(open)) != NULL)
        found = is_kind(item->d_name, kind);
    if (open != NULL)
        closedir(open);
    return found;
}

/* ---- the limit ------------------------------------------------------------------------------- */

typedef struct entry {
    char name[256];
    struct timespec used;
    uint64_t bytes;
} entry;

typedef struct entries {
    entry *list;
    size_t n, capacity;
} entries;

static bool add_entry(entries *all, const char *name, const struct stat *info) {
    entry *e;
    if (!tern_grow((void **)&all->list, &all->capacity, all->n, sizeof *e, SIZE_MAX / sizeof *e))
        return false;
    e = &all->list[all->n++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->used = tern_os_read_time(info);
    e->bytes = (uint64_t)info->st_size;
    return true;
}

/* Half-written files are left alone while another process may be writing them. */
static bool is_stale(const char *name, const struct stat *info) {
    return strstr(name, ".tmp-") != NULL && time(NULL) - info->st_mtime > STALE_SECONDS;
}

/* The files of a kind; those of killed writers are removed. */
static void list_entries(const tern_cache_folder *folder, DIR *open, const char *kind,
                         entries *all) {
    const struct dirent *item;
    while ((item = readdir(open)) != NULL) {
        struct stat info;
        if (strncmp(item->d_name, kind, strlen(kind)) != 0 ||
            fstatat(dirfd(open), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (is_stale(item->d_name, &info))
            tern_cache_folder_remove(folder, item->d_name);
        else if (is_kind(item->d_name, kind) && !add_entry(all, item->d_name, &info))
            return; /* no memory: fewer are considered */
    }
}

static int by_use(const void *a, const void *b) {
    const struct timespec x = ((const entry *)a)->used, y = ((const entry *)b)->used;
    if (x.tv_sec != y.tv_sec)
        return x.tv_sec < y.tv_sec ? -1 : 1;
    return (x.tv_nsec > y.tv_nsec) - (x.tv_nsec < y.tv_nsec);
}

uint64_t tern_cache_folder_trim(const tern_cache_folder *folder, const char *kind, uint64_t limit) {
    entries all = {.list = NULL};
    uint64_t total = 0;
    DIR *open = opendir(folder->path);
    if (open == NULL)
        return 0;
    list_entries(folder, open, kind, &all);
    closedir(open);
    for (size_t i = 0; i < all.n; i++)
        total += all.list[i].bytes;
    if (all.n > 0)
        qsort(all.list, all.n, sizeof *all.list, by_use);
    for (size_t i = 0; i < all.n && total > limit; i++) {
        tern_cache_folder_remove(folder, all.list[i].name);
        total -= all.list[i].bytes;
    }
    free(all.list);
    return total;
}
