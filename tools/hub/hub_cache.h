/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_HUB_HUB_CACHE_H
#define TERN_TOOLS_HUB_HUB_CACHE_H

/*
 * Files of the Hugging Face Hub on this machine, where all its clients keep them, so that nothing
 * is fetched twice:
 *
 *     FOLDER/models--OWNER--NAME/blobs/ETAG              contents; ETAG.incomplete: a part of them
 *                                refs/REVISION           the commit that a branch or tag was
 *                                snapshots/COMMIT/FILE   a link to ../../blobs/ETAG
 *           /.locks/models--OWNER--NAME/ETAG.lock        held (flock) by who fetches it
 *
 * FOLDER is $HF_HUB_CACHE, else hub in $HF_HOME, else huggingface/hub in $XDG_CACHE_HOME, else in
 * ~/.cache.
 */

#include <limits.h>
#include <stdint.h>

#include "tern/status.h"
#include "tools/hub/hub_name.h"

/* A variable of the environment; NULL if it is not set or empty. */
const char *hub_variable(const char *name);

/* The cache folder, or the folder of one repository in it. TERN_ERR_IO: no variable says where it
 * is, or the path is too long. */
TERN_MUST_CHECK tern_status hub_cache_folder(char out[PATH_MAX], tern_error *err);
TERN_MUST_CHECK tern_status hub_cache_repository(const char *repo, char out[PATH_MAX],
                                                 tern_error *err);

/* One file of a snapshot. */
typedef struct hub_entry {
    char repo[HUB_REPO_BYTES];
    char commit[41];
    char file[HUB_FILE_BYTES];
    char path[PATH_MAX];
    uint64_t bytes;
} hub_entry;

typedef struct hub_list {
    hub_entry *entries; /* [n], sorted by repository, commit and file */
    size_t n;
} hub_list;

/* Lists all files of all snapshots, or of one repository (repo may be NULL). A missing folder has
 * none. TERN_ERR_NOMEM, TERN_ERR_IO. */
TERN_MUST_CHECK tern_status hub_cache_list(const char *repo, hub_list *out, tern_error *err);
void hub_list_free(hub_list *list);

/*
 * The path of the model that a name means in the snapshot of its revision. TERN_ERR_IO: it is
 * missing; TERN_ERR_NAME: the name means several, which the message lists.
 */
TERN_MUST_CHECK tern_status hub_cache_find(const hub_name *name, char path[PATH_MAX],
                                           tern_error *err);

/* The folder of a name's snapshot if it holds a model that `tern convert` reads (config.json and
 * weights in safetensors); false: it was not fetched. */
bool hub_cache_find_folder(const hub_name *name, char path[PATH_MAX]);

/* Makes snapshots/COMMIT/FILE, a link to the blob, and refs/REVISION. */
TERN_MUST_CHECK tern_status hub_cache_link(const char *repository, const char *commit,
                                           const char *file, const char *etag, tern_error *err);
TERN_MUST_CHECK tern_status hub_cache_refer(const char *repository, const char *revision,
                                            const char *commit, tern_error *err);

/* Removes a file of a snapshot, and its contents if no other file has them; or a whole repository.
 * *freed: bytes of contents that were removed. */
TERN_MUST_CHECK tern_status hub_cache_remove(const hub_entry *entry, uint64_t *freed,
                                             tern_error *err);
TERN_MUST_CHECK tern_status hub_cache_remove_repository(const char *repo, uint64_t *freed,
                                                        tern_error *err);

/* Makes a folder and its missing parents. */
TERN_MUST_CHECK tern_status hub_make_folder(const char *path, tern_error *err);

#endif
