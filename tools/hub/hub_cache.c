/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/hub/hub_cache.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/grow.h"
#include "base/in_file.h"
#include "base/out_file.h"
#include "base/word_list.h"

enum { DEEPEST = 8 /* nested folders of a file in a repository */ };

/* ---- the folder ------------------------------------------------------------------------------ */

static tern_status join(char out[PATH_MAX], const char *folder, const char *rest, tern_error *err) {
    const int n = snprintf(out, PATH_MAX, "%s/%s", folder, rest);
    if (n > 0 && n < PATH_MAX)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_IO, "%.100s: a path that is too long", folder);
}

const char *hub_variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

tern_status hub_cache_folder(char out[PATH_MAX], tern_error *err) {
    static const struct {
        const char *variable, *rest;
    } places[] = {{"HF_HUB_CACHE", "."},
                  {"HF_HOME", "hub"},
                  {"XDG_CACHE_HOME", "huggingface/hub"},
                  {"HOME", ".cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *folder = hub_variable(places[i].variable);
        if (folder != NULL)
            return join(out, folder, places[i].rest, err);
    }
    return tern_fail(err, TERN_ERR_IO,
                     "HF_HOME and HOME are not set: files of the Hub have no "
                     "place");
}

tern_status hub_cache_repository(const char *repo, char out[PATH_MAX], tern_error *err) {
    char folder[PATH_MAX], name[HUB_REPO_BYTES + 16];
    const char *slash = strchr(repo, '/');
    (void)snprintf(name, sizeof name, "models--%.*s--%s", (int)(slash - repo), repo, slash + 1);
    const tern_status status = hub_cache_folder(folder, err);
    return status == TERN_OK ? join(out, folder, name, err) : status;
}

tern_status hub_make_folder(const char *path, tern_error *err) {
    char copy[PATH_MAX];
    const tern_status status = join(copy, path, "", err); /* its parents are the whole path */
    if (status != TERN_OK)
        return status;
    return tern_make_parents(copy) ? TERN_OK
                                   : tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A listing: entries are copies of `at`, each with a file. */
typedef struct listing {
    hub_list *list;
    size_t capacity;
    hub_entry at;
} listing;

static tern_status add(listing *l, const struct stat *info, tern_error *err) {
    hub_list *list = l->list;
    if (!tern_grow((void **)&list->entries, &l->capacity, list->n, sizeof l->at,
                   SIZE_MAX / sizeof l->at))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a list of models");
    list->entries[list->n] = l->at;
    list->entries[list->n++].bytes = (uint64_t)info->st_size;
    return TERN_OK;
}

/* Called for each name in the folder that does not begin with a dot. A missing folder has none. */
typedef tern_status enter_hook(listing *l, const char *folder, const char *name, unsigned depth,
                               tern_error *err);

static tern_status each(listing *l, const char *folder, unsigned depth, enter_hook *enter,
                        tern_error *err) {
    DIR *names = opendir(folder);
    if (names == NULL && (errno == ENOENT || errno == ENOTDIR))
        return TERN_OK;
    if (names == NULL)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", folder, strerror(errno));
    tern_status status = TERN_OK;
    for (struct dirent *entry; status == TERN_OK && (entry = readdir(names)) != NULL;)
        if (entry->d_name[0] != '.')
            status = enter(l, folder, entry->d_name, depth, err);
    (void)closedir(names); /* was only read */
    return status;
}

/* Adds a file of a snapshot, or the files of a folder in it. Skips anything else, including
 * dangling links. */
static tern_status enter_file(listing *l, const char *folder, const char *name, unsigned depth,
                              tern_error *err) {
    char path[PATH_MAX];
    struct stat info;
    const size_t before = strlen(l->at.file);
    if (join(path, folder, name, NULL) != TERN_OK || stat(path, &info) != 0 ||
        before + strlen(name) + 2 > sizeof l->at.file)
        return TERN_OK;
    (void)snprintf(l->at.file + before, sizeof l->at.file - before, "%s%s", before > 0 ? "/" : "",
                   name);
    tern_status status = TERN_OK;
    if (S_ISDIR(info.st_mode) && depth < DEEPEST) {
        status = each(l, path, depth + 1, enter_file, err);
    } else if (S_ISREG(info.st_mode)) {
        (void)snprintf(l->at.path, sizeof l->at.path, "%s", path);
        status = add(l, &info, err);
    }
    l->at.file[before] = '\0';
    return status;
}

static tern_status enter_commit(listing *l, const char *folder, const char *name, unsigned depth,
                                tern_error *err) {
    char path[PATH_MAX];
    (void)depth;
    if (!hub_is_commit(name) || join(path, folder, name, NULL) != TERN_OK)
        return TERN_OK;
    (void)snprintf(l->at.commit, sizeof l->at.commit, "%s", name);
    return each(l, path, 1, enter_file, err);
}

/* models--OWNER--NAME; owner and name contain no two consecutive dashes. */
static tern_status enter_repository(listing *l, const char *folder, const char *name,
                                    unsigned depth, tern_error *err) {
    char path[PATH_MAX], joined[PATH_MAX], repo[PATH_MAX];
    hub_name sound;
    (void)depth;
    const char *owner = strncmp(name, "models--", 8) == 0 ? name + 8 : "";
    const char *dashes = strstr(owner, "--");
    if (dashes == NULL || join(joined, folder, name, NULL) != TERN_OK ||
        join(path, joined, "snapshots", NULL) != TERN_OK)
        return TERN_OK;
    (void)snprintf(repo, sizeof repo, "%.*s/%s", (int)(dashes - owner), owner, dashes + 2);
    if (!hub_name_read(repo, &sound))
        return TERN_OK;
    (void)snprintf(l->at.repo, sizeof l->at.repo, "%s", sound.repo);
    return each(l, path, 0, enter_commit, err);
}

static int by_name(const void *a_, const void *b_) {
    const hub_entry *a = a_, *b = b_;
    const int repo = strcmp(a->repo, b->repo), commit = strcmp(a->commit, b->commit);
    return repo != 0 ? repo : commit != 0 ? commit : strcmp(a->file, b->file);
}

tern_status hub_cache_list(const char *repo, hub_list *out, tern_error *err) {
    char folder[PATH_MAX], one[PATH_MAX];
    listing l = {.list = out};
    *out = (hub_list){0};
    tern_status status = hub_cache_folder(folder, err);
    if (status == TERN_OK && repo == NULL) {
        status = each(&l, folder, 0, enter_repository, err);
    } else if (status == TERN_OK) {
        status = hub_cache_repository(repo, one, err);
        if (status == TERN_OK)
            status = enter_repository(&l, folder, strrchr(one, '/') + 1, 0, err);
    }
    if (status == TERN_OK && out->n > 1)
        qsort(out->entries, out->n, sizeof *out->entries, by_name);
    if (status != TERN_OK)
        hub_list_free(out);
    return status;
}

void hub_list_free(hub_list *list) {
    free(list->entries);
    *list = (hub_list){0};
}

/* ---- one model ------------------------------------------------------------------------------- */

/* The commit that a revision means on this machine; false: there is none. */
static bool find_commit(const hub_name *name, char commit[41]) {
    char repository[PATH_MAX], path[PATH_MAX], said[64] = "";
    if (hub_is_commit(name->revision)) {
        memcpy(commit, name->revision, 41);
        return true;
    }
    if (hub_cache_repository(name->repo, repository, NULL) != TERN_OK)
        return false;
    const int n = snprintf(path, sizeof path, "%s/refs/%s", repository, name->revision);
    FILE *file;
    if (n <= 0 || n >= PATH_MAX || tern_in_file_open(path, TERN_IN_FILE, &file, NULL) != TERN_OK)
        return false;
    const bool read = fgets(said, sizeof said, file) != NULL;
    (void)fclose(file); /* was only read */
    said[strcspn(said, "\r\n")] = '\0';
    (void)snprintf(commit, 41, "%.40s", said);
    return read && hub_is_commit(said);
}

static void tell_several(const char *const *files, size_t n, const hub_name *name,
                         tern_error *err) {
    char shown[300] = "";
    for (size_t i = 0; i < n; i++) {
        const size_t size = strlen(shown);
        size_t one;
        if (hub_choose(&files[i], 1, name->file, &one) == 1)
            (void)snprintf(shown + size, sizeof shown - size, "%s%s", size > 0 ? ", " : "",
                           files[i]);
    }
    (void)tern_fail(err, TERN_ERR_NAME, "%s: which of its models? %s:FILE with one of %s",
                    name->repo, name->repo, shown);
}

tern_status hub_cache_find(const hub_name *name, char path[PATH_MAX], tern_error *err) {
    char commit[41];
    hub_list list;
    size_t n = 0, found = 0;
    if (!find_commit(name, commit))
        return tern_fail(err, TERN_ERR_IO, "%s: it was not fetched", name->repo);
    const tern_status status = hub_cache_list(name->repo, &list, err);
    if (status != TERN_OK)
        return status;
    const char **files = calloc(list.n + 1, sizeof *files);
    const hub_entry **entries = calloc(list.n + 1, sizeof *entries);
    for (size_t i = 0; files != NULL && entries != NULL && i < list.n; i++) {
        if (strcmp(list.entries[i].commit, commit) != 0)
            continue;
        entries[n] = &list.entries[i];
        files[n++] = list.entries[i].file;
    }
    const size_t meant =
        files != NULL && entries != NULL ? hub_choose(files, n, name->file, &found) : 0;
    if (meant == 1)
        (void)snprintf(path, PATH_MAX, "%s", entries[found]->path);
    else if (meant > 1)
        tell_several(files, n, name, err);
    free(files);
    free(entries);
    hub_list_free(&list);
    if (meant > 1)
        return TERN_ERR_NAME;
    return meant == 1 ? TERN_OK
                      : tern_fail(err, TERN_ERR_IO, "%s: no such model was fetched", name->repo);
}

bool hub_cache_find_folder(const hub_name *name, char path[PATH_MAX]) {
    char commit[41];
    hub_list list = {0};
    bool described = false, weights = false;
    if (!find_commit(name, commit) || hub_cache_list(name->repo, &list, NULL) != TERN_OK)
        return false;
    for (size_t i = 0; i < list.n; i++) {
        const hub_entry *e = &list.entries[i];
        if (strcmp(e->commit, commit) != 0 || strchr(e->file, '/') != NULL)
            continue;
        weights = weights || text_ends_with(e->file, ".safetensors");
        if (strcmp(e->file, "config.json") != 0)
            continue;
        described = true;
        (void)snprintf(path, PATH_MAX, "%.*s", (int)(strrchr(e->path, '/') - e->path), e->path);
    }
    hub_list_free(&list);
    return described && weights;
}

/* ---- changes --------------------------------------------------------------------------------- */

tern_status hub_cache_link(const char *repository, const char *commit, const char *file,
                           const char *etag, tern_error *err) {
    char path[PATH_MAX], target[PATH_MAX] = "../../", held[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/snapshots/%s/%s", repository, commit, file);
    if (n <= 0 || n >= PATH_MAX)
        return tern_fail(err, TERN_ERR_IO, "%.100s: a path that is too long", repository);
    for (const char *c = file; *c != '\0'; c++)
        if (*c == '/')
            (void)strncat(target, "../", sizeof target - strlen(target) - 1);
    const size_t size = strlen(target);
    (void)snprintf(target + size, sizeof target - size, "blobs/%s", etag);
    const ssize_t before = readlink(path, held, sizeof held - 1);
    if (before >= 0 && (size_t)before == strlen(target) &&
        memcmp(held, target, (size_t)before) == 0)
        return TERN_OK;
    if (!tern_make_parents(path) || (unlink(path) != 0 && errno != ENOENT) ||
        (symlink(target, path) != 0 && errno != EEXIST))
        return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    return TERN_OK;
}

tern_status hub_cache_refer(const char *repository, const char *revision, const char *commit,
                            tern_error *err) {
    char path[PATH_MAX];
    if (hub_is_commit(revision))
        return TERN_OK;
    const int n = snprintf(path, sizeof path, "%s/refs/%s", repository, revision);
    if (n <= 0 || n >= PATH_MAX || !tern_make_parents(path))
        return tern_fail(err, TERN_ERR_IO, "%.100s/refs: no place for %s", repository, revision);
    tern_out_file *file;
    tern_status status = tern_out_file_create(path, TERN_OUT_REPLACE, &file, err);
    if (status != TERN_OK)
        return status;
    status = tern_out_file_write(file, commit, strlen(commit), err);
    if (status == TERN_OK)
        return tern_out_file_commit(&file, err);
    tern_out_file_discard(&file);
    return status;
}

/* Removes the file or folder at a path, recursively; *freed counts bytes of files. Links are not
 * followed. */
static bool remove_tree(const char *path, unsigned depth, uint64_t *freed) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return errno == ENOENT;
    if (!S_ISDIR(info.st_mode)) {
        if (unlink(path) != 0)
            return false;
        *freed += S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
        return true;
    }
    DIR *names = depth < 2 * DEEPEST ? opendir(path) : NULL;
    bool sound = names != NULL;
    for (struct dirent *entry; sound && (entry = readdir(names)) != NULL;) {
        char inside[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        sound = join(inside, path, entry->d_name, NULL) == TERN_OK &&
                remove_tree(inside, depth + 1, freed);
    }
    if (names != NULL)
        (void)closedir(names);
    return sound && rmdir(path) == 0;
}

tern_status hub_cache_remove_repository(const char *repo, uint64_t *freed, tern_error *err) {
    char repository[PATH_MAX];
    const tern_status status = hub_cache_repository(repo, repository, err);
    *freed = 0;
    if (status != TERN_OK || remove_tree(repository, 0, freed))
        return status;
    return tern_fail(err, TERN_ERR_IO, "%s: %s", repository, strerror(errno));
}

/* True if another file of the repository has the contents at `blob`. */
static bool is_shared(const hub_list *list, const hub_entry *entry, const char *blob) {
    for (size_t i = 0; i < list->n; i++) {
        char other[PATH_MAX];
        if (strcmp(list->entries[i].path, entry->path) != 0 &&
            realpath(list->entries[i].path, other) != NULL && strcmp(other, blob) == 0)
            return true;
    }
    return false;
}

tern_status hub_cache_remove(const hub_entry *entry, uint64_t *freed, tern_error *err) {
    char blob[PATH_MAX];
    hub_list list;
    *freed = 0;
    const tern_status status = hub_cache_list(entry->repo, &list, err);
    if (status != TERN_OK)
        return status;
    const bool known = realpath(entry->path, blob) != NULL;
    const bool shared = known && is_shared(&list, entry, blob);
    hub_list_free(&list);
    const bool removed = known && unlink(entry->path) == 0 &&
                         (shared || strcmp(blob, entry->path) == 0 || unlink(blob) == 0);
    if (!removed)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", entry->path, strerror(errno));
    *freed = shared ? 0 : entry->bytes;
    return TERN_OK;
}
