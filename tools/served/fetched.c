/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/served/fetched.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_tree/read.h"
#include "base/json_tree/value.h"
#include "tools/hub/hub_cache.h"
#include "tools/served/child.h"

enum { ENCODED_BYTES = 3 * MODEL_FETCHED_BYTES };

/* ---- names ----------------------------------------------------------------------------------- */

/* Writes a name as that of a file: '/', '%' and a dot at its beginning as %XX. */
static void encode(const char *name, char out[ENCODED_BYTES]) {
    size_t at = 0;
    for (const char *c = name; *c != '\0' && at + 4 < ENCODED_BYTES; c++) {
        const bool plain = *c != '/' && *c != '%' && (*c != '.' || c != name);
        at += (size_t)snprintf(out + at, ENCODED_BYTES - at, plain ? "%c" : "%%%02X",
                               (unsigned char)*c);
    }
}

static bool decode(const char *file, char name[MODEL_FETCHED_BYTES]) {
    size_t at = 0;
    for (const char *c = file; *c != '\0'; c++) {
        unsigned value = (unsigned char)*c;
        if (at + 1 >= MODEL_FETCHED_BYTES || (*c == '%' && sscanf(c + 1, "%2X", &value) != 1))
            return false;
        c += *c == '%' ? 2 : 0;
        name[at++] = (char)value;
    }
    name[at] = '\0';
    return at > 0;
}

static tern_status path_of(const char *folder, const char *rest, char out[PATH_MAX],
                           tern_error *err) {
    const int n = snprintf(out, PATH_MAX, "%s/names/%s", folder, rest);
    if (n > 0 && n < PATH_MAX)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_IO, "%.100s: a path that is too long", folder);
}

tern_status fetched_list(const char *folder,
                         bool (*add)(void *user, const char *name, const char *path), void *user,
                         tern_error *err) {
    char names[PATH_MAX];
    tern_status status = path_of(folder, "", names, err);
    if (status == TERN_OK)
        status = hub_make_folder(names, err);
    DIR *all = status == TERN_OK ? opendir(names) : NULL;
    if (all == NULL)
        return status != TERN_OK ? status
                                 : tern_fail(err, TERN_ERR_IO, "%s: %s", names, strerror(errno));
    for (struct dirent *entry; (entry = readdir(all)) != NULL && status == TERN_OK;) {
        char name[MODEL_FETCHED_BYTES], link[PATH_MAX], target[PATH_MAX];
        if (entry->d_name[0] == '.' || !decode(entry->d_name, name) ||
            path_of(folder, entry->d_name, link, NULL) != TERN_OK)
            continue;
        const ssize_t n = readlink(link, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        if (access(target, R_OK) == 0 && !add(user, name, target))
            status = tern_fail(err, TERN_ERR_NOMEM, "no memory for the list of models");
    }
    (void)closedir(all); /* was only read */
    return status;
}

/* Makes the name lead to the path, whatever it was before. */
static tern_status link_name(const char *folder, const char *name, const char *path,
                             tern_error *err) {
    char file[ENCODED_BYTES], link[PATH_MAX], fresh[PATH_MAX], rest[ENCODED_BYTES + 2];
    encode(name, file);
    (void)snprintf(rest, sizeof rest, ".%s", file);
    tern_status status = path_of(folder, file, link, err);
    if (status == TERN_OK)
        status = path_of(folder, rest, fresh, err);
    if (status == TERN_OK && ((unlink(fresh) != 0 && errno != ENOENT) ||
                              symlink(path, fresh) != 0 || rename(fresh, link) != 0))
        status = tern_fail(err, TERN_ERR_IO, "%s: %s", link, strerror(errno));
    return status;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* Statuses of `tern pull`, and the path at its end. */
typedef struct telling {
    bool (*tell)(void *to, const char *line);
    void *to;
    char path[PATH_MAX]; /* of the model, at the end; "": not yet */
} telling;

/* Passes statuses on. The last one has the path, which clients are not told. */
static bool take(void *user, const char *line) {
    telling *t = user;
    if (line == NULL || strstr(line, "\"path\"") == NULL)
        return t->tell(t->to, line);
    json_t *last = json_read(line, strlen(line), "tern pull", NULL);
    const char *path = json_string_value(json_object_get(last, "path"));
    (void)snprintf(t->path, sizeof t->path, "%s", path != NULL ? path : "");
    json_decref(last);
    return true;
}

/* Writes what `tern pull` is asked for: of a repository only GGUF files are models here. */
static tern_status wanted(const char *name, char out[HUB_WHOLE_BYTES], tern_error *err) {
    hub_name hub;
    if (name[0] == '-')
        return tern_fail(err, TERN_ERR_NAME, "'%.100s' is not the name of a model", name);
    (void)snprintf(out, HUB_WHOLE_BYTES, "%s", name);
    if (!hub_name_read(name, &hub))
        return TERN_OK; /* a short name, or tern pull says what it wants */
    if (hub.file[0] == '\0')
        (void)snprintf(hub.file, sizeof hub.file, ".gguf");
    hub_name_write(&hub, out);
    return TERN_OK;
}

static tern_status fetch(void *user, const char *name, bool (*tell)(void *to, const char *line),
                         void *to, char path[PATH_MAX], tern_error *err) {
    const char *folder = user;
    char hub[HUB_WHOLE_BYTES];
    telling t = {.tell = tell, .to = to};
    tern_status status = wanted(name, hub, err);
    const char *const words[] = {"pull", "--json", hub, NULL};
    if (status == TERN_OK)
        status = child_run(words, folder, take, &t, err);
    if (status == TERN_OK && t.path[0] == '\0')
        status = tern_fail(err, TERN_ERR_IO, "%s: tern pull does not say where it is", name);
    if (status == TERN_OK)
        status = link_name(folder, name, t.path, err);
    (void)snprintf(path, PATH_MAX, "%s", t.path);
    return status;
}

/* ---- removing -------------------------------------------------------------------------------- */

static bool go_on(void *user, const char *line) {
    (void)user, (void)line;
    return true;
}

/* True if another name leads to the same model. */
static bool is_other(void *user, const char *name, const char *path) {
    (void)name;
    return strcmp(user, path) != 0;
}

/* Reads OWNER/NAME:FILE out of FOLDER/models--OWNER--NAME/snapshots/COMMIT/FILE. */
static bool read_path(const char *path, char out[HUB_WHOLE_BYTES]) {
    const char *begin = strstr(path, "/models--"), *file = strstr(path, "/snapshots/");
    const char *dashes = begin != NULL ? strstr(begin + 9, "--") : NULL;
    const char *slash = file != NULL ? strchr(file + 11, '/') : NULL;
    if (dashes == NULL || slash == NULL || dashes > file)
        return false;
    const int n = snprintf(out, HUB_WHOLE_BYTES, "%.*s/%.*s:%s", (int)(dashes - begin - 9),
                           begin + 9, (int)(file - dashes - 2), dashes + 2, slash + 1);
    return n > 0 && n < HUB_WHOLE_BYTES;
}

static tern_status forget(void *user, const char *name, const char *path, tern_error *err) {
    const char *folder = user;
    char file[ENCODED_BYTES], link[PATH_MAX], hub[HUB_WHOLE_BYTES];
    encode(name, file);
    tern_status status = path_of(folder, file, link, err);
    if (status == TERN_OK && unlink(link) != 0 && errno != ENOENT)
        status = tern_fail(err, TERN_ERR_IO, "%s: %s", link, strerror(errno));
    if (status != TERN_OK ||
        fetched_list(folder, is_other, (void *)(uintptr_t)path, NULL) != TERN_OK)
        return status; /* another name stands for the same model */
    if (!read_path(path, hub))
        return tern_fail(err, TERN_ERR_IO, "%s: not a file of %s", path, folder);
    const char *const words[] = {"rm", hub, NULL};
    return child_run(words, folder, go_on, NULL, err);
}

model_fetcher fetched_fetcher(const char *folder) {
    return (model_fetcher){(void *)(uintptr_t)folder, fetch, forget};
}
