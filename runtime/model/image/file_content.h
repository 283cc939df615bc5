/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_IMAGE_FILE_CONTENT_H
#define TERN_RUNTIME_MODEL_IMAGE_FILE_CONTENT_H

/*
 * One number for all weights of a file: it covers their names, types, shapes and every byte of the
 * tensors. Reading a whole file takes time at each start, so the number is kept in the cache
 * folder, in a file "source-..." that is named after what the system tells of the model's file
 * (device, inode, length, times of change). Beside it stands a hash of a few bytes of each tensor,
 * which must still match. A file that was changed less than two seconds before it was read is not
 * remembered: a second change could have the same time.
 */

#include "base/cache_folder.h"
#include "runtime/files/gguf/gguf.h"
#include "threads/team.h"

/* Adds a few bytes of a tensor, from its beginning to its end. */
void tern_content_sample(tern_hash64 *hash, const tern_gguf_tensor *tensor);

/*
 * Computes the number, in parallel at the speed of memory. Pages are given back as they are read.
 */
uint64_t tern_content_read(const tern_gguf *file, tern_team *team);

/* Finds the remembered number of this file. False: there is none, or the file was changed. */
bool tern_content_recall(const tern_cache_folder *folder, const tern_gguf *file, uint64_t *content);

/* Remembers the number, unless the file may have changed. Old records of other files are removed
 * when there are many. */
void tern_content_remember(const tern_cache_folder *folder, const tern_gguf *file,
                           uint64_t content);

#endif
