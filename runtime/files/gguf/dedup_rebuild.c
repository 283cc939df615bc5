/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tensors of defaults, masks and exceptions. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash64.h"
#include "base/os/os.h"
#include "runtime/files/gguf/dedup.h"

enum { ALIGNMENT = 64, PATH_BYTES = 4096 };

/* The place where a tensor's bytes will be. */
typedef enum place_kind { IN_PLACE, IN_MEMORY, IN_FILE } place_kind;

typedef struct placed {
    const tern_dedup_range *first; /* the tensor's first range */
    size_t n;
    place_kind kind;
    uint64_t at; /* place in memory, or in the file */
} placed;

typedef struct rebuilding {
    const tern_dedup_index *index;
    tern_gguf *list;
    tern_dedup_store *store;
    placed *tensors; /* [n] */
    size_t n;
    int descriptor; /* the file without a name; -1: none */
    uint8_t *piece; /* [TERN_DEDUP_PIECE] */
    tern_error *err;
} rebuilding;

void tern_dedup_store_free(tern_dedup_store *store) {
    if (store->memory != NULL)
        munmap(store->memory, store->memory_bytes);
    if (store->mapped != NULL)
        munmap(store->mapped, store->mapped_bytes);
    free(store->problem);
    *store = (tern_dedup_store){.memory = NULL};
}

/* ---- planning -------------------------------------------------------------------------------- */

/* True if the ranges of a tensor are bytes of a file without a gap, and nothing differs. */
static bool is_in_place(const placed *p) {
    for (size_t i = 0; i < p->n; i++)
        if (p->first[i].mask != NULL ||
            (i > 0 && p->first[i].defaults != p->first[i - 1].defaults + p->first[i - 1].bytes))
            return false;
    return true;
}

static uint64_t round_up(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Plans in the order of the list: as long as tensors fit, they go to memory. */
static tern_status plan(rebuilding *b, uint64_t cache_bytes) {
    const tern_dedup_index *index = b->index;
    tern_dedup_info *info = &b->store->info;
    uint64_t memory = 0, file = 0;
    b->tensors = calloc(index->n_ranges + 1, sizeof *b->tensors); /* + 1: never of size 0 */
    if (b->tensors == NULL)
        return tern_fail(b->err, TERN_ERR_NOMEM, "%s: no memory for %zu ranges", index->file->name,
                         index->n_ranges);
    for (size_t i = 0; i < index->n_ranges; b->n++) {
        placed *p = &b->tensors[b->n];
        const uint64_t bytes = b->list->tensors[index->ranges[i].tensor].bytes;
        p->first = &index->ranges[i];
        for (; i < index->n_ranges && index->ranges[i].tensor == p->first->tensor; i++, p->n++)
            info->exceptions += index->ranges[i].n_exceptions;
        const bool fits = memory + bytes <= cache_bytes; /* both are far below 2^63: sizes of real
                                                            files */
        p->kind = is_in_place(p) ? IN_PLACE : fits ? IN_MEMORY : IN_FILE;
        info->tensors++;
        info->bytes += bytes;
        uint64_t *sum = p->kind == IN_PLACE    ? &info->in_place
                        : p->kind == IN_MEMORY ? &info->in_memory
                                               : &info->in_file;
        *sum += bytes;
        uint64_t *at = p->kind == IN_MEMORY ? &memory : &file;
        p->at = p->kind == IN_PLACE ? 0 : *at;
        *at += p->kind == IN_PLACE ? 0 : round_up(bytes);
    }
    b->store->memory_bytes = (size_t)memory;
    b->store->mapped_bytes = (size_t)file;
    return TERN_OK;
}

static tern_status reserve_memory(rebuilding *b) {
    tern_dedup_store *store = b->store;
    if (store->memory_bytes == 0)
        return TERN_OK;
    void *memory =
        mmap(NULL, store->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return tern_fail(b->err, TERN_ERR_NOMEM, "%s: no memory for %zu bytes of its tensors",
                         b->list->name, store->memory_bytes);
    store->memory = memory;
    return TERN_OK;
}

/* Makes a file that is gone with its last map. */
static tern_status reserve_file(rebuilding *b) {
    const size_t size = b->store->mapped_bytes;
    const char *folder = getenv("TMPDIR");
    char path[PATH_BYTES];
    if (size == 0)
        return TERN_OK;
    if (folder == NULL || folder[0] == '\0')
        folder = access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
    if (snprintf(path, sizeof path, "%s/tern-dedup-XXXXXX", folder) >= (int)sizeof path)
        return tern_fail(b->err, TERN_ERR_IO, "%.64s...: the path is too long", folder);
    b->descriptor = mkostemp(path, O_CLOEXEC);
    if (b->descriptor < 0)
        return tern_fail(b->err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    (void)unlink(path);
    const int error = tern_os_reserve(b->descriptor, size);
    if (error != 0)
        return tern_fail(b->err, TERN_ERR_IO, "%s: no room for %zu bytes of %s: %s", folder, size,
                         b->list->name, strerror(error));
    void *mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, b->descriptor, 0);
    if (mapped == MAP_FAILED)
        return tern_fail(b->err, TERN_ERR_NOMEM, "%s: cannot be mapped: %s", folder,
                         strerror(errno));
    b->store->mapped = mapped;
    return TERN_OK;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Puts exceptions where the mask of a piece has bits; returns the first one that is left. */
static const uint8_t *patch(uint8_t *piece, const uint8_t *mask, uint64_t bytes,
                            const uint8_t *exceptions) {
    for (uint64_t i = 0; i < bytes; i += 8)
        for (unsigned bits = mask[i / 8]; bits != 0; bits &= bits - 1)
            piece[i + (unsigned)__builtin_ctz(bits)] = *exceptions++;
    return exceptions;
}

static tern_status keep(const rebuilding *b, const placed *p, uint64_t offset, uint64_t bytes) {
    if (p->kind == IN_MEMORY)
        memcpy(b->store->memory + p->at + offset, b->piece, bytes);
    for (uint64_t done = 0; p->kind == IN_FILE && done < bytes;) {
        const ssize_t n =
            pwrite(b->descriptor, b->piece + done, bytes - done, (off_t)(p->at + offset + done));
        if (n < 0 && errno != EINTR)
            return tern_fail(b->err, TERN_ERR_IO, "%s: its tensors cannot be written: %s",
                             b->list->name, strerror(errno));
        done += n > 0 ? (uint64_t)n : 0;
    }
    return TERN_OK;
}

static tern_status make_range(const rebuilding *b, const placed *p, const tern_dedup_range *range,
                              tern_hash64 *hash) {
    const uint8_t *exceptions = range->exceptions;
    tern_status status = TERN_OK;
    for (uint64_t at = 0; status == TERN_OK && at < range->bytes; at += TERN_DEDUP_PIECE) {
        const uint64_t left = range->bytes - at;
        const uint64_t bytes = left < TERN_DEDUP_PIECE ? left : TERN_DEDUP_PIECE;
        const uint8_t *made = range->defaults + at;
        if (p->kind != IN_PLACE) {
            memcpy(b->piece, made, bytes);
            if (range->mask != NULL)
                exceptions = patch(b->piece, range->mask + at / 8, bytes, exceptions);
            status = keep(b, p, range->offset + at, bytes);
            made = b->piece;
        }
        tern_hash64_add(hash, made, bytes);
    }
    return status;
}

static tern_status make_tensor(const rebuilding *b, const placed *p) {
    const tern_dedup_index *index = b->index;
    const size_t number = p->first->tensor;
    const tern_gguf_tensor *t = &b->list->tensors[number];
    tern_hash64 hash;
    tern_status status = TERN_OK;
    if (p->kind == IN_PLACE && !index->has_sum[number])
        return TERN_OK;
    tern_hash64_start(&hash);
    for (size_t i = 0; status == TERN_OK && i < p->n; i++)
        status = make_range(b, p, &p->first[i], &hash);
    const uint64_t sum = tern_hash64_value(&hash);
    if (status == TERN_OK && index->has_sum[number] && sum != index->sums[number])
        return tern_fail(b->err, TERN_ERR_TENSOR_DATA,
                         "%s: tensor '%.*s': its parts give checksum %016" PRIx64
                         ", not %016" PRIx64 ": one of the files is damaged, or of another model",
                         index->file->name, TERN_SPAN_ARG(t->name), sum, index->sums[number]);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void use_tensors(const rebuilding *b) {
    for (size_t i = 0; i < b->n; i++) {
        const placed *p = &b->tensors[i];
        tern_gguf_tensor *t = &b->list->tensors[p->first->tensor];
        if (t->data == NULL)
            b->index->file->n_own++; /* no other file counts it */
        t->data = p->kind == IN_PLACE    ? p->first->defaults
                  : p->kind == IN_MEMORY ? b->store->memory + p->at
                                         : b->store->mapped + p->at;
        t->extent = t->bytes;
    }
    if (b->store->memory != NULL)
        (void)mprotect(b->store->memory, b->store->memory_bytes, PROT_READ);
}

tern_status tern_dedup_rebuild(const tern_dedup_index *index, tern_gguf *list, uint64_t cache_bytes,
                               tern_dedup_store *store, tern_error *err) {
    rebuilding b = {.index = index,
                    .list = list,
                    .store = store,
                    .descriptor = -1,
                    .piece = malloc(TERN_DEDUP_PIECE),
                    .err = err};
    tern_status status = TERN_OK;
    if (b.piece == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to make its tensors", list->name);
    if (status == TERN_OK)
        status = plan(&b, cache_bytes);
    if (status == TERN_OK)
        status = reserve_memory(&b);
    if (status == TERN_OK)
        status = reserve_file(&b);
    for (size_t i = 0; status == TERN_OK && i < b.n; i++)
        status = make_tensor(&b, &b.tensors[i]);
    if (status == TERN_OK)
        use_tensors(&b);
    else
        tern_dedup_store_free(store);
    if (b.descriptor >= 0)
        (void)close(b.descriptor);
    free(b.piece);
    free(b.tensors);
    return status;
}
