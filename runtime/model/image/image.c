/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/image/image.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/hash64.h"

typedef struct header {
    uint64_t magic;
    uint32_t packing, piece_bytes;
    char version[32]; /* of the library, padded with zeros */
    tern_image_key key;
} header;

/* "tern img" in this machine's byte order. */
static const uint64_t MAGIC = UINT64_C(0x676d69206e726574);

static uint64_t piece_count(const tern_image_key *key) {
    return key->bytes / TERN_IMAGE_PIECE_BYTES + (key->bytes % TERN_IMAGE_PIECE_BYTES != 0);
}

static size_t piece_size(const tern_image_key *key, uint64_t index) {
    const uint64_t left = key->bytes - index * TERN_IMAGE_PIECE_BYTES;
    return (size_t)(left < TERN_IMAGE_PIECE_BYTES ? left : TERN_IMAGE_PIECE_BYTES);
}

/* Bytes of the whole file; false if their number overflows. */
static bool file_bytes(const tern_image_key *key, uint64_t *bytes) {
    return !__builtin_add_overflow(key->bytes, TERN_IMAGE_HEADER_BYTES, bytes) &&
           !__builtin_add_overflow(*bytes, (piece_count(key) + 1) * sizeof(uint64_t), bytes);
}

static header make_header(const tern_image_key *key) {
    header h;
    memset(&h, 0, sizeof h); /* padding between fields is hashed, too */
    h.magic = MAGIC;
    h.packing = TERN_IMAGE_PACKING;
    h.piece_bytes = TERN_IMAGE_PIECE_BYTES;
    snprintf(h.version, sizeof h.version, "%s", tern_version());
    h.key = *key;
    return h;
}

/* The hash of the header and the hashes of all pieces, which need no alignment here. */
static uint64_t hash_of_hashes(const header *h, const uint8_t *hashes, uint64_t pieces) {
    tern_hash64 hash;
    tern_hash64_start(&hash);
    tern_hash64_add(&hash, h, sizeof *h);
    tern_hash64_add(&hash, hashes, (size_t)pieces * sizeof(uint64_t));
    return tern_hash64_value(&hash);
}

static uint64_t load64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

bool tern_image_is_planned(const tern_cache_folder *folder, uint64_t plan) {
    char kind[TERN_IMAGE_NAME_BYTES];
    snprintf(kind, sizeof kind, "image-%016llx", (unsigned long long)plan);
    return tern_cache_folder_holds(folder, kind);
}

void tern_image_name(const tern_image_key *key, char name[TERN_IMAGE_NAME_BYTES]) {
    snprintf(name, TERN_IMAGE_NAME_BYTES, "image-%016llx%016llx", (unsigned long long)key->plan,
             (unsigned long long)key->content);
}

/* ---- reading --------------------------------------------------------------------------------- */

static tern_status damaged(const char *name, const char *what, tern_error *err) {
    return tern_fail(err, TERN_ERR_IMAGE, "%s: %s", name, what);
}

static bool is_zero(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

tern_status tern_image_check(const uint8_t *file, size_t size, const tern_image_key *key,
                             const char *name, tern_error *err) {
    const header expected = make_header(key);
    header found;
    uint64_t bytes;
    if (size < TERN_IMAGE_HEADER_BYTES)
        return tern_fail(err, TERN_ERR_IMAGE, "%s: is too short for a packed image: %zu bytes",
                         name, size);
    memcpy(&found, file, sizeof found);
    if (found.magic != MAGIC)
        return damaged(name, "is not a packed image of this machine", err);
    if (found.packing != expected.packing || found.piece_bytes != expected.piece_bytes ||
        memcmp(found.version, expected.version, sizeof found.version) != 0)
        return damaged(name, "is a packed image of another version of tern", err);
    if (memcmp(&found, &expected, sizeof found) != 0)
        return damaged(name, "is a packed image of other weights", err);
    if (key->bytes == 0 || !file_bytes(key, &bytes) || bytes != size)
        return tern_fail(err, TERN_ERR_IMAGE, "%s: packed image has %zu bytes, not what it says",
                         name, size);
    const uint8_t *hashes = file + TERN_IMAGE_HEADER_BYTES + key->bytes;
    const uint64_t pieces = piece_count(key);
    if (hash_of_hashes(&found, hashes, pieces) != load64(hashes + pieces * sizeof(uint64_t)) ||
        !is_zero(file + sizeof found, TERN_IMAGE_HEADER_BYTES - sizeof found))
        return damaged(name, "packed image is damaged (header)", err);
    return TERN_OK;
}

typedef struct verification {
    const uint8_t *arena, *hashes;
    const tern_image_key *key;
    _Atomic uint64_t next; /* the first piece that no thread has taken */
    _Atomic uint64_t bad;  /* the first piece with another hash; UINT64_MAX: none */
} verification;

static void verify_part(tern_worker worker, void *argument) {
    verification *v = argument;
    const uint64_t pieces = piece_count(v->key);
    (void)worker;
    for (uint64_t i; (i = atomic_fetch_add(&v->next, 1)) < pieces;) {
        const uint64_t hash =
            tern_hash64_of(v->arena + i * TERN_IMAGE_PIECE_BYTES, piece_size(v->key, i));
        uint64_t first = atomic_load(&v->bad);
        if (hash != load64(v->hashes + i * sizeof(uint64_t)))
            while (i < first && !atomic_compare_exchange_weak(&v->bad, &first, i))
                continue;
    }
}

tern_status tern_image_verify(const uint8_t *file, const tern_image_key *key, tern_team *team,
                              const char *name, tern_error *err) {
    verification v = {.arena = file + TERN_IMAGE_HEADER_BYTES, .key = key, .bad = UINT64_MAX};
    v.hashes = v.arena + key->bytes;
    tern_team_run(team, verify_part, &v);
    const uint64_t bad = atomic_load(&v.bad);
    if (bad == UINT64_MAX)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_IMAGE, "%s: packed image is damaged (piece %llu of %llu)", name,
                     (unsigned long long)bad, (unsigned long long)piece_count(key));
}

tern_status tern_image_map(const tern_cache_folder *folder, const tern_image_key *key,
                           tern_team *team, tern_file_map **out, tern_error *err) {
    char name[TERN_IMAGE_NAME_BYTES];
    tern_file_map *map;
    tern_image_name(key, name);
    tern_status status = tern_cache_folder_map(folder, name, &map, err);
    if (status != TERN_OK)
        return status;
    const uint8_t *file = tern_file_map_bytes(map);
    status = tern_image_check(file, tern_file_map_size(map), key, name, err);
    if (status == TERN_OK)
        status = tern_image_verify(file, key, team, name, err);
    if (status != TERN_OK) {
        tern_file_map_close(&map);
        tern_cache_folder_remove(folder, name);
        return status;
    }
    *out = map;
    return TERN_OK;
}

const uint8_t *tern_image_arena(const tern_file_map *image) {
    return tern_file_map_bytes(image) + TERN_IMAGE_HEADER_BYTES;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes everything up to the arena. */
static tern_status write_header(tern_out_file *out, const header *h, tern_error *err) {
    uint8_t *bytes = calloc(1, TERN_IMAGE_HEADER_BYTES);
    if (bytes == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the header of a packed image");
    memcpy(bytes, h, sizeof *h);
    const tern_status status = tern_out_file_write(out, bytes, TERN_IMAGE_HEADER_BYTES, err);
    free(bytes);
    return status;
}

/* Writes the arena and the hashes after it; hashes[pieces + 1] is scratch. */
static tern_status write_pieces(tern_out_file *out, const header *h, const uint8_t *arena,
                                uint64_t *hashes, tern_error *err) {
    const uint64_t pieces = piece_count(&h->key);
    tern_status status = TERN_OK;
    for (uint64_t i = 0; i < pieces && status == TERN_OK; i++) {
        const uint8_t *piece = arena + i * TERN_IMAGE_PIECE_BYTES;
        hashes[i] = tern_hash64_of(piece, piece_size(&h->key, i));
        /* Pieces are written whole, so that the file system can keep them in huge pages. */
        status = tern_out_file_write(out, piece, piece_size(&h->key, i), err);
    }
    hashes[pieces] = hash_of_hashes(h, (const uint8_t *)hashes, pieces);
    return status == TERN_OK
               ? tern_out_file_write(out, hashes, (size_t)(pieces + 1) * sizeof *hashes, err)
               : status;
}

static tern_status write_all(tern_out_file *out, const tern_image_key *key, const uint8_t *arena,
                             tern_error *err) {
    const header h = make_header(key);
    uint64_t *hashes = malloc((size_t)(piece_count(key) + 1) * sizeof *hashes);
    if (hashes == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the hashes of a packed image");
    tern_status status = write_header(out, &h, err);
    if (status == TERN_OK)
        status = write_pieces(out, &h, arena, hashes, err);
    free(hashes);
    return status;
}

/* True if the image takes less than half of the disk's free space: the rest stays for others. */
static bool has_room(const tern_cache_folder *folder, uint64_t bytes) {
    struct statvfs disk;
    return statvfs(tern_cache_folder_path(folder), &disk) == 0 &&
           bytes / disk.f_frsize < disk.f_bavail / 2;
}

tern_status tern_image_write(const tern_cache_folder *folder, const tern_image_key *key,
                             const uint8_t *arena, uint64_t limit, tern_error *err) {
    char name[TERN_IMAGE_NAME_BYTES];
    tern_out_file *out;
    uint64_t bytes;
    tern_image_name(key, name);
    if (!file_bytes(key, &bytes) || bytes > limit)
        return tern_fail(err, TERN_ERR_IO, "%s: would exceed the limit of %llu bytes", name,
                         (unsigned long long)limit);
    if (!has_room(folder, bytes))
        return tern_fail(err, TERN_ERR_IO, "%s: %llu bytes are too much for its disk", name,
                         (unsigned long long)bytes);
    (void)tern_cache_folder_trim(folder, "image-", limit - bytes);
    tern_status status = tern_cache_folder_create(folder, name, &out, err);
    if (status != TERN_OK)
        return status;
    status = write_all(out, key, arena, err);
    if (status == TERN_OK)
        status = tern_out_file_commit(&out, err);
    else
        tern_out_file_discard(&out);
    return status;
}
