/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_FILE_MAP_H
#define TERN_BASE_FILE_MAP_H

/*
 * A regular file, mapped read-only. It stays open, so that a later call can tell whether it was
 * changed. The map is listed, so that a handler of SIGBUS can name the file (tern_mapped_file in
 * tern/tern.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/hash64.h"
#include "tern/status.h"

typedef struct tern_file_map tern_file_map;

/* Refuses folders, devices, pipes and empty files, each in a line of its own. */
TERN_MUST_CHECK tern_status tern_file_map_open(const char *path, tern_file_map **out,
                                               tern_error *err);

/* Unmaps, closes, frees and sets to NULL. NULL and *NULL are fine. */
void tern_file_map_close(tern_file_map **map);

const uint8_t *tern_file_map_bytes(const tern_file_map *map);
size_t tern_file_map_size(const tern_file_map *map);
int tern_file_map_descriptor(const tern_file_map *map); /* open for reading, of the map */

/*
 * Adds to *hash what distinguishes this file from others, and from itself after a change: device,
 * inode, length, times of the last change of contents and of attributes (the latter cannot be set
 * back). *newest becomes the later of it and of those times, in seconds. False: it cannot be asked.
 */
bool tern_file_map_stamp(const tern_file_map *map, tern_hash64 *hash, int64_t *newest);

/* Whole pages of mapped bytes need not count as this process's memory: they are read again when
 * they are asked for. Advice, which may come to nothing. */
void tern_file_map_drop(const void *data, uint64_t bytes);

/* True if a map of this process reads the file that stat told about, by whatever name. */
bool tern_file_is_mapped(const struct stat *info);

/* SHA-256 of the file, read again by the descriptor of the map: whatever has its name now.
 * TERN_ERR_CHANGED, TERN_ERR_IO. */
TERN_MUST_CHECK tern_status tern_file_map_sha256(const tern_file_map *map, char hex[65],
                                                 tern_error *err);

/* TERN_ERR_CHANGED when length or time of the last change are not what they were at opening. */
TERN_MUST_CHECK tern_status tern_file_map_unchanged(const tern_file_map *map, tern_error *err);

#endif
