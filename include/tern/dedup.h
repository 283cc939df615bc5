/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEDUP_H
#define TERN_DEDUP_H

/*
 * Models that share bytes. An IEBIN folder can hold some of its tensors as parts of other bytes
 * (defaults), a mask of the bytes that differ, and the bytes that stand in their place
 * (exceptions). Opening the folder makes the same bytes of them again: no result depends on it.
 * docs/dedup.md has the files.
 */

#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

/* Which tensors are made of shared bytes. */
typedef enum tern_dedup_use {
    TERN_DEDUP_AUTO, /* those that the folder holds in no other way */
    TERN_DEDUP_ON,   /* all that model.dedup.json names; where that cannot be, and the folder holds
                        them as they are, too, these are used and the reason is kept */
    TERN_DEDUP_STRICT, /* the same, but all that is missing or malformed is an error, and so are
                          tensors without a checksum */
    TERN_DEDUP_OFF     /* none; a folder that needs them is refused */
} tern_dedup_use;

typedef struct tern_dedup_params {
    tern_dedup_use use;
    uint64_t cache_bytes; /* memory for tensors that differ from their defaults; what is beyond it
                             goes to a file without a name in TMPDIR, or /var/tmp. 0: 1 GiB; 1: all
                             goes to the file */
} tern_dedup_params;

/* The outcome. Zeros and NULL: no tensor is made of shared bytes. */
typedef struct tern_dedup_info {
    uint64_t tensors, bytes;     /* made of shared bytes */
    uint64_t in_place;           /* of these bytes, those that are read where the defaults lie */
    uint64_t in_memory, in_file; /* those that were copied, because some of them differ */
    uint64_t exceptions;         /* bytes that differ from their defaults */
    const char *problem; /* why model.dedup.json is not used; NULL: it is, or there is none */
} tern_dedup_info;

TERN_API_END

#endif
