/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_Q4_MAP_H
#define TERN_AUTHORING_CONVERT_Q4_MAP_H

/* q4_manifest.json: which matrices become INT4, and how (docs/converting.md). */

#include <stdbool.h>
#include <stddef.h>

#include "tern/gguf.h"

typedef struct convert_q4_entry {
    char *name; /* of GGUF or of Hugging Face; '*' stands for the number of any block; owned */
    tern_int4_rows form; /* group SIZE_MAX: a whole row */
    bool used;
} convert_q4_entry;

typedef struct convert_q4_map {
    char *path;                /* for messages; owned */
    convert_q4_entry *entries; /* [n] owned */
    size_t n;
} convert_q4_map;

/* Reads a file of at most 16 MiB. TERN_ERR_IO, TERN_ERR_JSON, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status convert_q4_map_read(const char *path, convert_q4_map *out,
                                                tern_error *err);
void convert_q4_map_free(convert_q4_map *map); /* zero-initialised or read */

/* The entry of the tensor that GGUF calls `name`, or NULL. Marks it as used. map may be NULL. */
const convert_q4_entry *convert_q4_map_find(convert_q4_map *map, const char *name);

/* TERN_ERR_TENSOR_MISSING: an entry matched no tensor. map may be NULL. */
TERN_MUST_CHECK tern_status convert_q4_map_check(const convert_q4_map *map, tern_error *err);

#endif
