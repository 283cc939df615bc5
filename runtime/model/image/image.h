/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_IMAGE_IMAGE_H
#define TERN_RUNTIME_MODEL_IMAGE_IMAGE_H

/*
 * An image: the arena of a model's weights as a file, with what loading would make of the model's
 * file again.
 *
 *   0        header: magic, versions, key, sizes (TERN_IMAGE_HEADER_BYTES, zero to its end)
 *   2 MiB    the arena, byte for byte
 *   after    a hash for each TERN_IMAGE_PIECE_BYTES of the arena, and one of header and hashes
 *
 * The arena begins at a multiple of 2 MiB, so that it can be mapped in huge pages. Numbers are in
 * the machine's byte order; an image of the other order has another magic. All hashes are XXH64:
 * all threads hash every byte of an image before it is used, so damage is noticed. Intent is not:
 * an image is trusted because no other user may write to the folder (cache_folder.h).
 */

#include "base/cache_folder.h"
#include "threads/team.h"

enum { TERN_IMAGE_HEADER_BYTES = 2 << 20, TERN_IMAGE_PIECE_BYTES = 4 << 20 };

/*
 * Add 1 whenever the same file and the same plan give other bytes in the arena than before, or are
 * refused: an image is written after the whole file has been checked, so a process that maps it
 * need not check those contents again. 2: weights that are not finite are refused.
 */
enum { TERN_IMAGE_PACKING = 2 };

/* The key of an image: two models with the same key have the same arena. */
typedef struct tern_image_key {
    uint64_t plan;    /* hash of all pieces of the arena: names, sizes, formats, layouts */
    uint64_t content; /* tern_content_read of the file that they are made from */
    uint64_t bytes;   /* of the arena, above 0 */
} tern_image_key;

/* Name of the file in the folder: "image-", 32 hexadecimal digits. */
enum { TERN_IMAGE_NAME_BYTES = 40 };
void tern_image_name(const tern_image_key *key, char name[TERN_IMAGE_NAME_BYTES]);

/* Checks all of an image in memory but its arena; its bytes may be anything. TERN_ERR_IMAGE tells
 * the first thing that is wrong; `name` is the file's name in the message. */
TERN_MUST_CHECK tern_status tern_image_check(const uint8_t *file, size_t size,
                                             const tern_image_key *key, const char *name,
                                             tern_error *err);

/* Checks the arena of an image that tern_image_check accepted. */
TERN_MUST_CHECK tern_status tern_image_verify(const uint8_t *file, const tern_image_key *key,
                                              tern_team *team, const char *name, tern_error *err);

/* True if there may be an image with this plan, whatever its content. */
bool tern_image_is_planned(const tern_cache_folder *folder, uint64_t plan);

/* Maps the image for *key after checking and verifying it. TERN_ERR_IO: there is none.
 * TERN_ERR_IMAGE: it was damaged and has been removed. */
TERN_MUST_CHECK tern_status tern_image_map(const tern_cache_folder *folder,
                                           const tern_image_key *key, tern_team *team,
                                           tern_file_map **out, tern_error *err);

/* The arena in a mapped image: key->bytes bytes. */
const uint8_t *tern_image_arena(const tern_file_map *image);

/*
 * Writes the image of an arena. Before that it removes other images until all together take at most
 * `limit` bytes. TERN_ERR_IO: the image is larger than `limit` by itself, or than half of the
 * disk's free space, and is not written. A caller may drop the status: an image only saves time.
 */
tern_status tern_image_write(const tern_cache_folder *folder, const tern_image_key *key,
                             const uint8_t *arena, uint64_t limit, tern_error *err);

#endif
