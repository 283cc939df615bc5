/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/model_folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/word_list.h"
#include "tools/cli/output.h"
#include "tools/hub/hub_cache.h"
#include "tools/hub/short_names.h"

static char path[PATH_MAX];

/* Writes folder/name and the suffix to path; false if that is too long. */
static bool join(const char *folder, const char *name, const char *suffix) {
    const int n = snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    return n > 0 && (size_t)n < sizeof path;
}

/*
 * True for a GGUF file (of a split one, "-00002-of-00003.gguf", the first part) and for the list of
 * an IEBIN folder. The folder's own GGUF file (".ie.gguf") is not a model: it holds only the keys.
 */
static bool is_model(const char *name) {
    const size_t n = strlen(name);
    if (text_ends_with(name, ".ie.json"))
        return true;
    if (n < 6 || !text_ends_with(name, ".gguf") || text_ends_with(name, ".ie.gguf"))
        return false;
    unsigned part = 1;
    unsigned parts = 1;
    const char *tail = n > 20 ? name + n - 20 : "";
    return sscanf(tail, "-%5u-of-%5u.gguf", &part, &parts) != 2 || part == 1;
}

static const char *only_model(const char *folder) {
    DIR *listing = opendir(folder);
    if (listing == NULL) {
        complain("%s: %s", folder, strerror(errno));
        return NULL;
    }
    unsigned found = 0;
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        if (is_model(entry->d_name) && join(folder, entry->d_name, ""))
            found++;
    (void)closedir(listing); /* was only read */
    if (found != 1) {
        complain("%s: it holds %u models (*.gguf, *.ie.json): use -m NAME", folder, found);
        return NULL;
    }
    return path;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_path(char ***paths, size_t *n) {
    char **grown = realloc(*paths, (*n + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    *paths = grown;
    grown[*n] = strdup(path);
    if (grown[*n] == NULL)
        return false;
    (*n)++;
    return true;
}

bool models_in_folder(const char *folder, char ***paths, size_t *n) {
    bool sound = true;
    *paths = NULL;
    *n = 0;
    if (join(folder, "model.ie.json", "") && access(path, F_OK) == 0)
        return true;
    DIR *listing = opendir(folder);
    if (listing == NULL)
        return errno == ENOTDIR || errno == ENOENT;
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        if (is_model(entry->d_name) && join(folder, entry->d_name, ""))
            sound = sound && add_path(paths, n);
    (void)closedir(listing); /* was only read */
    if (*n > 0)
        qsort(*paths, *n, sizeof **paths, by_name);
    if (!sound)
        complain("%s: no memory for the list of its models", folder);
    return sound;
}

const char *model_in_folder(const char *folder, const char *name) {
    if (name == NULL)
        return only_model(folder);
    if (strchr(name, '/') != NULL)
        return name;
    static const char *const endings[] = {".gguf", ".ie.json"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (join(folder, name, endings[i]) && access(path, R_OK) == 0)
            return path;
    if (!join(folder, name, "")) {
        complain("%.100s: a path that is too long", folder);
        return NULL;
    }
    return access(path, F_OK) != 0 && access(name, F_OK) == 0 ? name : path;
}

const char *model_or_hub_name(const char *name) {
    hub_name hub;
    short_name known;
    tern_error err = {0};
    if (access(name, F_OK) == 0)
        return name;
    if (short_name_find(name, &known))
        return short_name_path(&known, path) ? path : name;
    if (!hub_name_read(name, &hub))
        return name;
    const tern_status status = hub_cache_find(&hub, path, &err);
    if (status == TERN_OK)
        return path;
    if (status != TERN_ERR_NAME)
        return name; /* opening it fails with a message that says how to fetch it */
    complain("%s", err.message);
    return NULL;
}
