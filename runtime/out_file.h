/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_OUT_FILE_H
#define TERN_RUNTIME_OUT_FILE_H

/*
 * A file that is there complete or not at all. Bytes go to PATH.tmp-PID beside the target; commit
 * brings them to the disk (fsync) and renames, so an old file stays until the new one is whole,
 * also when the disk fills up or the machine stops. What is being written is listed, so that a
 * program that dies by a signal can remove it (tern_temporary_files_remove in tern/tern.h).
 */

#include <stddef.h>

#include "tern/status.h"

typedef struct tern_out_file tern_out_file;

/* Refuses a path that exists and is not a regular file: rename would replace a device. */
TERN_MUST_CHECK tern_status tern_out_file_create(const char *path, tern_out_file **out,
                                                 tern_error *err);

/* Unbuffered: give it blocks. After an error only discard makes sense. */
TERN_MUST_CHECK tern_status tern_out_file_write(tern_out_file *file, const void *bytes, size_t size,
                                                tern_error *err);

/* Commit will not wait for the disk: for contents that are checked when they are read, and can be
 * made again. */
void tern_out_file_lazy(tern_out_file *file);

/* Gives the file its name. Frees *file in any case; on failure nothing is left of it. */
TERN_MUST_CHECK tern_status tern_out_file_commit(tern_out_file **file, tern_error *err);

/* Removes the temporary file and frees *file. NULL and *NULL are fine. */
void tern_out_file_discard(tern_out_file **file);

#endif
