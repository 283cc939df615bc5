/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_OUT_FILE_H
#define TERN_BASE_OUT_FILE_H

/*
 * A file that is there complete or not at all. Bytes go to a file without a name in the target's
 * folder, or to PATH.tmp-PID where the file system has none; commit brings them to the disk (fsync)
 * and gives them their name in one step. So an old file stays until the new one is whole, also when
 * the disk fills up or the machine stops. A file without a name is gone with its process, however
 * that ends; a temporary name is listed while it exists, so that a program that dies by a signal
 * can remove it (tern_temporary_files_remove in tern/tern.h).
 */

#include <stddef.h>

#include "tern/status.h"

typedef enum tern_out_mode {
    TERN_OUT_NEW,     /* TERN_ERR_EXISTS when the name exists, even if only at commit */
    TERN_OUT_SECRET,  /* the same, and only its owner may read it */
    TERN_OUT_REPLACE, /* replaces a regular file, if it is none that this process has mapped */
    TERN_OUT_CACHE /* replaces a regular file, and commit does not wait for the disk: for contents
                      that are checked when they are read, and can be made again */
} tern_out_mode;

typedef struct tern_out_file tern_out_file;

/* Fails where tern_out_file_create would, because of what is there; changes nothing. */
TERN_MUST_CHECK tern_status tern_out_file_check(const char *path, tern_out_mode mode,
                                                tern_error *err);

/* Refuses a path that exists and is not a regular file: rename would replace a device. */
TERN_MUST_CHECK tern_status tern_out_file_create(const char *path, tern_out_mode mode,
                                                 tern_out_file **out, tern_error *err);

/* Unbuffered: give it blocks. After an error only discard makes sense. */
TERN_MUST_CHECK tern_status tern_out_file_write(tern_out_file *file, const void *bytes, size_t size,
                                                tern_error *err);

/* Gives the file its name. Frees *file in any case; on failure nothing is left of it. */
TERN_MUST_CHECK tern_status tern_out_file_commit(tern_out_file **file, tern_error *err);

/* Other files that a program which dies by a signal removes: from here on, and no more. The path
 * must be the same pointer, and outlive it. */
void tern_temporary_list(const char *path);
void tern_temporary_unlist(const char *path);

/* Removes what was written and frees *file. NULL and *NULL are fine. */
void tern_out_file_discard(tern_out_file **file);

#endif
