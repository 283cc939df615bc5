/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_CACHE_FOLDER_H
#define TERN_BASE_CACHE_FOLDER_H

/*
 * The folder of files that can be made again: packed images of weights, choices of the tuner. An
 * error of it costs time and never a run: callers treat each one as "it is not there". Names of
 * files are flat (no '/'), begin with a word for their kind ("image-...") and their contents carry
 * a checksum of their own, because a file is published without waiting for the disk: after a power
 * cut it may be there with other bytes.
 *
 * Several processes may use one folder at once: a file appears whole, by rename; one that is
 * removed while another process has it mapped stays readable there.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/file_map.h"
#include "base/out_file.h"
#include "tern/status.h"

typedef struct tern_cache_folder tern_cache_folder;

/*
 * Opens the folder; creates it, and parents that are missing, with mode 0700. A folder that cannot
 * be written to is fine: what lies in it can be used. TERN_ERR_IO: it cannot be created, is no
 * folder, or another user could have put files there (its owner is neither this user nor root, or
 * everybody may write).
 */
TERN_MUST_CHECK tern_status tern_cache_folder_open(const char *path, tern_cache_folder **out,
                                                   tern_error *err);

/* Frees and sets to NULL. NULL and *NULL are fine. */
void tern_cache_folder_close(tern_cache_folder **folder);

const char *tern_cache_folder_path(const tern_cache_folder *folder);

/*
 * Maps the file `name` for reading and marks it as used now, for tern_cache_folder_trim. The same
 * ownership is asked of it as of the folder. TERN_ERR_IO: there is none, or it is another user's;
 * TERN_ERR_TRUNCATED: it is empty.
 */
TERN_MUST_CHECK tern_status tern_cache_folder_map(const tern_cache_folder *folder, const char *name,
                                                  tern_file_map **out, tern_error *err);

/* True if there is a file whose name begins with `kind`. */
bool tern_cache_folder_holds(const tern_cache_folder *folder, const char *kind);

/* Begins the file `name`; tern_out_file_commit publishes it, without fsync. */
TERN_MUST_CHECK tern_status tern_cache_folder_create(const tern_cache_folder *folder,
                                                     const char *name, tern_out_file **out,
                                                     tern_error *err);

/* Removes the file `name`, if it is there and may be removed. */
void tern_cache_folder_remove(const tern_cache_folder *folder, const char *name);

/*
 * Removes files whose names begin with `kind`, least recently used first, until all of them
 * together have at most `limit` bytes, and what killed writers have left half-written for an hour.
 * Returns the bytes that are left.
 */
uint64_t tern_cache_folder_trim(const tern_cache_folder *folder, const char *kind, uint64_t limit);

#endif
