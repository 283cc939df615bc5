/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/image/file_content.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hash64.h"
#include "runtime/files/gguf/int4.h"

enum {
    PIECE_BYTES = 4 << 20, /* read by one thread at a time */
    SAMPLES = 4,           /* places of a tensor that are compared again */
    SAMPLE_BYTES = 64,
    SETTLED_SECONDS = 2,  /* longer than the clock tick of any file system (FAT: two seconds) */
    SOURCES_BYTES = 65536 /* of all records together */
};

/* ---- reading --------------------------------------------------------------------------------- */

static void add_description(tern_hash64 *h, const tern_gguf_tensor *t) {
    const uint64_t size = t->name.size;
    tern_hash64_add(h, &size, sizeof size);
    tern_hash64_add(h, t->name.data, t->name.size);
    tern_hash64_add(h, &t->type, sizeof t->type);
    tern_hash64_add(h, t->ne, sizeof t->ne);
    tern_hash64_add(h, &t->bytes, sizeof t->bytes);
    tern_int4_hash(h, &t->int4);
}

/* Hashes piece `index` of a tensor. The index is part of the hash, so the sum of all hashes needs
 * no order. The pages are given back, so that a whole file is never resident at once. */
static uint64_t hash_piece(const tern_gguf *file, const tern_gguf_tensor *t, uint64_t index) {
    const uint64_t begin = index * PIECE_BYTES;
    const uint64_t left = t->bytes - begin;
    const uint64_t bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
    tern_hash64 h;
    tern_hash64_start(&h);
    add_description(&h, t);
    tern_hash64_add(&h, &index, sizeof index);
    tern_hash64_add(&h, t->data + begin, (size_t)bytes);
    tern_gguf_drop_range(file, t->data + begin, bytes);
    return tern_hash64_value(&h);
}

typedef struct reading {
    const tern_gguf *file;
    _Atomic uint64_t sum;
} reading;

/*
 * Deals out the pieces of all tensors in turn, so that no thread waits for another's large tensor.
 */
static void read_part(tern_worker worker, void *argument) {
    reading *r = argument;
    uint64_t number = 0, sum = 0;
    for (size_t i = 0; i < tern_gguf_tensor_count(r->file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(r->file, i);
        const uint64_t pieces = t->bytes / PIECE_BYTES + 1;
        for (uint64_t p = 0; p < pieces; p++)
            if (number++ % worker.count == worker.index)
                sum += hash_piece(r->file, t, p);
    }
    atomic_fetch_add(&r->sum, sum);
}

uint64_t tern_content_read(const tern_gguf *file, tern_team *team) {
    reading r = {.file = file};
    tern_team_run(team, read_part, &r);
    return atomic_load(&r.sum);
}

/* ---- remembering ----------------------------------------------------------------------------- */

typedef struct record {
    char magic[8];
    uint64_t stamp, sample, content;
    uint64_t check; /* hash of the fields above */
} record;

static const char magic[8] = {'t', 'e', 'r', 'n', 's', 'r', 'c', '1'};

static uint64_t check_of(const record *r) {
    return tern_hash64_of(r, offsetof(record, check));
}

void tern_content_sample(tern_hash64 *h, const tern_gguf_tensor *t) {
    const size_t size = t->bytes < SAMPLE_BYTES ? (size_t)t->bytes : SAMPLE_BYTES;
    for (uint64_t s = 0; s < SAMPLES; s++)
        tern_hash64_add(h, t->data + (t->bytes - size) / (SAMPLES - 1) * s, size);
}

static uint64_t take_sample(const tern_gguf *file) {
    tern_hash64 h;
    tern_hash64_start(&h);
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        add_description(&h, t);
        tern_content_sample(&h, t);
        tern_gguf_drop_pages(file, t); /* a few bytes map many pages */
    }
    return tern_hash64_value(&h);
}

/* Sets magic and stamp, and the record's name. False: the file does not lie on a disk. */
static bool describe(const tern_gguf *file, record *r, char name[32], int64_t *newest) {
    tern_hash64 h;
    tern_hash64_start(&h);
    *newest = INT64_MIN;
    if (!tern_gguf_stamp(file, &h, newest))
        return false;
    memcpy(r->magic, magic, sizeof magic);
    r->stamp = tern_hash64_value(&h);
    snprintf(name, 32, "source-%016llx", (unsigned long long)r->stamp);
    return true;
}

bool tern_content_recall(const tern_cache_folder *folder, const tern_gguf *file,
                         uint64_t *content) {
    record expected, found;
    char name[32];
    int64_t newest;
    tern_file_map *map;
    if (!describe(file, &expected, name, &newest) ||
        tern_cache_folder_map(folder, name, &map, NULL) != TERN_OK)
        return false;
    const bool whole = tern_file_map_size(map) == sizeof found;
    if (whole)
        memcpy(&found, tern_file_map_bytes(map), sizeof found);
    tern_file_map_close(&map);
    if (!whole || memcmp(found.magic, magic, sizeof magic) != 0 ||
        found.check != check_of(&found) || found.stamp != expected.stamp ||
        found.sample != take_sample(file))
        return false;
    *content = found.content;
    return true;
}

void tern_content_remember(const tern_cache_folder *folder, const tern_gguf *file,
                           uint64_t content) {
    record r;
    char name[32];
    int64_t newest;
    tern_out_file *out;
    /* The file must be unchanged since it was opened: then the stamp is that of the bytes that were
     * read. */
    if (!describe(file, &r, name, &newest) || tern_gguf_unchanged(file, NULL) != TERN_OK ||
        time(NULL) - newest <= SETTLED_SECONDS ||
        tern_cache_folder_create(folder, name, &out, NULL) != TERN_OK)
        return;
    r.sample = take_sample(file);
    r.content = content;
    r.check = check_of(&r);
    if (tern_out_file_write(out, &r, sizeof r, NULL) != TERN_OK ||
        tern_out_file_commit(&out, NULL) != TERN_OK)
        tern_out_file_discard(&out);
    (void)tern_cache_folder_trim(folder, "source-", SOURCES_BYTES);
}
