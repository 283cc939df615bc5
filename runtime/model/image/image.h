/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_IMAGE_IMAGE_H
#define TERN_RUNTIME_MODEL_IMAGE_IMAGE_H

/*
 * The arena of a model's weights as a file: what loading would make of the model's file again.
 *
 *   0        header: magic, versions, key, sizes (TERN_IMAGE_HEADER_BYTES, zero to its end)
 *   2 MiB    the arena, byte for byte
 *   after    a hash for each TERN_IMAGE_PIECE_BYTES of the arena, and one of header and hashes
 *
 * The arena begins at a multiple of 2 MiB, so that it can be mapped in huge pages. Numbers are in
 * the machine's order of bytes; an image of the other order has another magic. All hashes are
 * XXH64: every byte of an image is hashed before it is used, by all threads, so damage is noticed.
 * Intent is not: an image is believed because no other user may write to the folder
 * (cache_folder.h).
 */

#include "base/cache_folder.h"
#include "threads/team.h"

enum { TERN_IMAGE_HEADER_BYTES = 2 << 20, TERN_IMAGE_PIECE_BYTES = 4 << 20 };

/*
 * Add 1 whenever the same file and the same plan give other bytes in the arena than before, or are
 * refused: an image is written when the whole file has been checked, so who maps it need not check
 * those contents again. 2: weights that are not finite.
 */
enum { TERN_IMAGE_PACKING = 2 };

/* Which image: two models with the same key have the same arena. */
typedef struct tern_image_key {
    uint64_t plan;    /* hash of all pieces of the arena: names, sizes, formats, layouts */
    uint64_t content; /* tern_content_read: what they are made from */
    uint64_t bytes;   /* of the arena, above 0 */
} tern_image_key;

/* Name of the file in the folder: "image-", 32 hexadecimal digits. */
enum { TERN_IMAGE_NAME_BYTES = 40 };
void tern_image_name(const tern_image_key *key, char name[TERN_IMAGE_NAME_BYTES]);

/*
 * Checks everything but the arena itself of an image in memory, any bytes: TERN_ERR_IMAGE with the
 * first thing that is wrong, where `name` stands for the file.
 */
TERN_MUST_CHECK tern_status tern_image_check(const uint8_t *file, size_t size,
                                             const tern_image_key *key, const char *name,
                                             tern_error *err);

/* Checks the arena of an image that tern_image_check accepted. */
TERN_MUST_CHECK tern_status tern_image_verify(const uint8_t *file, const tern_image_key *key,
                                              tern_team *team, const char *name, tern_error *err);

/* Whether there may be an image with this plan, whatever its content. */
bool tern_image_is_planned(const tern_cache_folder *folder, uint64_t plan);

/*
 * Maps the image for *key, checked and verified. TERN_ERR_IO: there is none. One that is damaged is
 * removed: TERN_ERR_IMAGE.
 */
TERN_MUST_CHECK tern_status tern_image_map(const tern_cache_folder *folder,
                                           const tern_image_key *key, tern_team *team,
                                           tern_file_map **out, tern_error *err);

/* The arena in a mapped image: key->bytes. */
const uint8_t *tern_image_arena(const tern_file_map *image);

/*
 * Writes the image of an arena, and before it removes others until all have `limit` bytes at most.
 * One that is larger than that by itself, or than half of what the disk has left, is not written:
 * TERN_ERR_IO.
 */
TERN_MUST_CHECK tern_status tern_image_write(const tern_cache_folder *folder,
                                             const tern_image_key *key, const uint8_t *arena,
                                             uint64_t limit, tern_error *err);

#endif
