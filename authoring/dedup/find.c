/* SPDX-License-Identifier: Apache-2.0 */
/* Finds parts that are equal, or nearly so, by content. */

#include <stdlib.h>
#include <string.h>

#include "authoring/dedup/dedup.h"
#include "base/hash64.h"
#include "runtime/files/gguf/internal.h"

enum {
    WINDOWS = 8,       /* positions in a block that are hashed */
    WINDOW_BYTES = 32, /* bytes that are hashed at each */
    NAMING_BYTES = 256 /* the largest size of an entry of the index */
};

/* A block that others may be like: in the base, or a literal part. */
typedef struct candidate {
    const uint8_t *data;
    uint64_t bytes;
    size_t part; /* DEDUP_NONE: a block of the base */
} candidate;

/* A hash table of blocks by the contents of their windows; it keeps the first block of each key. */
typedef struct table {
    uint64_t *keys; /* 0: free */
    candidate *blocks;
    size_t mask;
} table;

typedef struct search {
    dedup_plan *plan;
    const tern_gguf *base;
    table known;
    uint64_t *hashes; /* [tensors] of all bytes */
    size_t *twins;    /* [tensors] the first equal tensor, or itself */
    bool *has_twin;   /* [tensors] a later one is equal to it */
    size_t *whole;    /* [tensors] the part that is all of it, or DEDUP_NONE */
    tern_error *err;
} search;

/* ---- comparing ------------------------------------------------------------------------------- */

static uint64_t count_differing(const uint8_t *a, const uint8_t *b, uint64_t bytes) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes; i++)
        n += a[i] != b[i];
    return n;
}

/* True if a mask, so many exceptions and an entry of the index take at most three quarters of the
 * bytes. */
static bool pays(uint64_t bytes, uint64_t differing) {
    const uint64_t mask = differing > 0 ? bytes / 8 + 1 : 0;
    return mask + differing + NAMING_BYTES <= bytes / 4 * 3;
}

static const uint8_t *tensor_data(const tern_gguf *file, size_t i) {
    return tern_gguf_tensor_at(file, i)->data;
}

static uint64_t tensor_bytes(const tern_gguf *file, size_t i) {
    return tern_gguf_tensor_at(file, i)->bytes;
}

/* True if the bytes lie in the file of the base that is used. */
static bool in_base(const dedup_plan *plan, const uint8_t *data, uint64_t bytes) {
    const uintptr_t at = (uintptr_t)data, begin = (uintptr_t)plan->base;
    return plan->base != NULL && at >= begin && at - begin <= plan->base_bytes &&
           bytes <= plan->base_bytes - (at - begin);
}

/* ---- known blocks ---------------------------------------------------------------------------- */

/* The key of a window of a block. Blocks of different sizes have different keys; a block has at
 * least DEDUP_LEAST_BYTES. */
static uint64_t window_key(const uint8_t *block, uint64_t bytes, uint64_t window) {
    const uint64_t place[2] = {window, bytes};
    tern_hash64 h;
    tern_hash64_start(&h);
    tern_hash64_add(&h, place, sizeof place);
    tern_hash64_add(&h, block + window * (bytes - WINDOW_BYTES) / (WINDOWS - 1), WINDOW_BYTES);
    const uint64_t key = tern_hash64_value(&h);
    return key != 0 ? key : 1;
}

static size_t find_slot(const table *t, uint64_t key) {
    size_t slot = (size_t)key & t->mask;
    while (t->keys[slot] != 0 && t->keys[slot] != key)
        slot = (slot + 1) & t->mask;
    return slot;
}

static void remember(table *t, candidate block) {
    for (uint64_t w = 0; block.bytes >= DEDUP_LEAST_BYTES && w < WINDOWS; w++) {
        const uint64_t key = window_key(block.data, block.bytes, w);
        const size_t slot = find_slot(t, key);
        if (t->keys[slot] == 0) {
            t->keys[slot] = key;
            t->blocks[slot] = block;
        }
    }
}

/* The size of the block that begins at `at`. */
static uint64_t block_bytes(uint64_t bytes, uint64_t at) {
    return bytes - at < DEDUP_BLOCK_BYTES ? bytes - at : DEDUP_BLOCK_BYTES;
}

static uint64_t count_blocks(const tern_gguf *file) {
    uint64_t n = 0;
    for (size_t i = 0; file != NULL && i < tern_gguf_tensor_count(file); i++)
        n += tensor_bytes(file, i) / DEDUP_BLOCK_BYTES + 1;
    return n;
}

/* Makes a table in which at least half of the slots stay free. */
static bool table_new(table *t, uint64_t blocks) {
    size_t slots = 64;
    while (slots < 2 * WINDOWS * blocks)
        slots *= 2;
    *t = (table){.keys = calloc(slots, sizeof *t->keys),
                 .blocks = calloc(slots, sizeof *t->blocks),
                 .mask = slots - 1};
    return t->keys != NULL && t->blocks != NULL;
}

static void remember_base(search *s) {
    for (size_t i = 0; s->base != NULL && i < tern_gguf_tensor_count(s->base); i++) {
        const uint8_t *data = tensor_data(s->base, i);
        const uint64_t bytes = tensor_bytes(s->base, i);
        if (!in_base(s->plan, data, bytes))
            continue;
        for (uint64_t at = 0; at < bytes; at += DEDUP_BLOCK_BYTES)
            remember(&s->known, (candidate){data + at, block_bytes(bytes, at), DEDUP_NONE});
    }
}

/* ---- one tensor ------------------------------------------------------------------------------ */

/* The tensor of the base with that name and size, or NULL. */
static const uint8_t *same_in_base(const search *s, const tern_gguf_tensor *t) {
    char name[TERN_GGUF_MAX_NAME_BYTES + 1];
    if (s->base == NULL || t->name.size > TERN_GGUF_MAX_NAME_BYTES)
        return NULL;
    memcpy(name, t->name.data, t->name.size);
    name[t->name.size] = '\0';
    const tern_gguf_tensor *other = tern_gguf_find_tensor(s->base, name);
    const bool fits = other != NULL && other->bytes == t->bytes;
    return fits && in_base(s->plan, other->data, t->bytes) ? other->data : NULL;
}

/* Keeps the candidate that differs least. */
static void consider(const uint8_t *block, uint64_t bytes, candidate c, candidate *best,
                     uint64_t *differing) {
    if (*differing == 0 || c.data == best->data)
        return;
    const uint64_t n = count_differing(block, c.data, bytes);
    if (n < *differing) {
        *best = c;
        *differing = n;
    }
}

/* True if a block continues the part before it: both are like adjacent bytes of the base. */
static bool continues(const dedup_plan *plan, const dedup_part *before, size_t tensor,
                      const uint8_t *base, uint64_t differing) {
    return plan->n > 0 && before->tensor == tensor && before->base != NULL &&
           before->base + before->bytes == base && (before->differing == 0) == (differing == 0);
}

static bool add_block(search *s, size_t tensor, uint64_t offset, uint64_t bytes,
                      const uint8_t *same) {
    dedup_plan *plan = s->plan;
    const uint8_t *data = tensor_data(plan->model, tensor) + offset;
    candidate best = {NULL, 0, DEDUP_NONE};
    uint64_t differing = bytes + 1;
    if (same != NULL)
        consider(data, bytes, (candidate){same + offset, bytes, DEDUP_NONE}, &best, &differing);
    for (uint64_t w = 0; bytes >= DEDUP_LEAST_BYTES && w < WINDOWS; w++) {
        const size_t slot = find_slot(&s->known, window_key(data, bytes, w));
        if (s->known.keys[slot] != 0 && s->known.blocks[slot].bytes == bytes)
            consider(data, bytes, s->known.blocks[slot], &best, &differing);
    }
    const bool shared = best.data != NULL && pays(bytes, differing);
    const uint8_t *base = shared && best.part == DEDUP_NONE ? best.data : NULL;
    dedup_part *before = plan->n > 0 ? &plan->parts[plan->n - 1] : NULL;
    if (base != NULL && continues(plan, before, tensor, base, differing)) {
        before->bytes += bytes;
        before->differing += differing;
        return true;
    }
    dedup_part *part = dedup_add(plan, tensor, offset, bytes);
    if (part == NULL)
        return false;
    part->base = base;
    part->differing = shared ? differing : 0;
    if (shared && base == NULL)
        dedup_make_like(plan, plan->n - 1, best.part);
    else if (!shared)
        remember(&s->known, (candidate){data, bytes, plan->n - 1});
    return true;
}

/* Describes the tensor as one part if it equals a tensor of the base or an earlier tensor, or if a
 * later tensor equals it. False: none of these. */
static bool is_whole(const search *s, size_t tensor, const uint8_t *same, dedup_part *out) {
    const dedup_plan *plan = s->plan;
    const uint64_t bytes = tensor_bytes(plan->model, tensor);
    const size_t twin = s->twins[tensor], part = s->whole[twin];
    *out = (dedup_part){.like = DEDUP_NONE};
    if (same != NULL && memcmp(same, tensor_data(plan->model, tensor), bytes) == 0)
        out->base = same;
    else if (twin != tensor && part != DEDUP_NONE && plan->parts[part].base != NULL)
        out->base = plan->parts[part].base;
    else if (twin != tensor && part != DEDUP_NONE)
        out->like = part;
    return out->base != NULL || out->like != DEDUP_NONE || s->has_twin[tensor];
}

static bool add_tensor(search *s, size_t tensor) {
    dedup_plan *plan = s->plan;
    const tern_gguf_tensor *t = tern_gguf_tensor_at(plan->model, tensor);
    const uint8_t *same = same_in_base(s, t);
    dedup_part whole;
    if (t->bytes < DEDUP_LEAST_BYTES || t->type == TERN_GGUF_SPARSE_TYPE)
        return true;
    if (is_whole(s, tensor, same, &whole)) {
        dedup_part *part = dedup_add(plan, tensor, 0, t->bytes);
        if (part == NULL)
            return false;
        part->base = whole.base;
        s->whole[tensor] = plan->n - 1;
        if (whole.like != DEDUP_NONE)
            dedup_make_like(plan, plan->n - 1, whole.like);
        else if (whole.base == NULL && t->bytes <= DEDUP_BLOCK_BYTES)
            remember(&s->known, (candidate){t->data, t->bytes, plan->n - 1});
        return true;
    }
    for (uint64_t at = 0; at < t->bytes; at += DEDUP_BLOCK_BYTES)
        if (!add_block(s, tensor, at, block_bytes(t->bytes, at), same))
            return false;
    return true;
}

/* ---- all tensors ----------------------------------------------------------------------------- */

/* Finds tensors that equal an earlier one: compares the hashes, then the bytes. */
static void find_twins(search *s) {
    const tern_gguf *model = s->plan->model;
    const size_t n = tern_gguf_tensor_count(model);
    for (size_t i = 0; i < n; i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(model, i);
        s->hashes[i] = tern_hash64_of(t->data, (size_t)t->bytes);
        s->twins[i] = i;
        s->whole[i] = DEDUP_NONE;
        for (size_t k = 0; k < i && s->twins[i] == i; k++) {
            const bool equal = s->twins[k] == k && s->hashes[k] == s->hashes[i] &&
                               tensor_bytes(model, k) == t->bytes &&
                               memcmp(tensor_data(model, k), t->data, (size_t)t->bytes) == 0;
            if (equal) {
                s->twins[i] = k;
                s->has_twin[k] = true;
            }
        }
    }
}

/* Chooses the largest file of the base. */
static void choose_base(dedup_plan *plan, const tern_gguf *base) {
    const tern_gguf *largest = base;
    for (size_t i = 0; i < base->n_others; i++)
        if (base->others[i]->size > largest->size)
            largest = base->others[i];
    plan->base = largest->bytes;
    plan->base_bytes = largest->size;
    plan->base_path = largest->name;
}

static void search_free(search *s) {
    free(s->known.keys);
    free(s->known.blocks);
    free(s->hashes);
    free(s->twins);
    free(s->has_twin);
    free(s->whole);
}

tern_status dedup_find(const tern_gguf *model, const tern_gguf *base, dedup_plan *plan,
                       tern_error *err) {
    const size_t n = tern_gguf_tensor_count(model);
    search s = {.plan = plan,
                .base = base,
                .hashes = calloc(n + 1, sizeof *s.hashes), /* + 1: never 0 bytes */
                .twins = calloc(n + 1, sizeof *s.twins),
                .has_twin = calloc(n + 1, sizeof *s.has_twin),
                .whole = calloc(n + 1, sizeof *s.whole),
                .err = err};
    plan->model = model;
    if (base != NULL)
        choose_base(plan, base);
    bool memory = table_new(&s.known, count_blocks(model) + count_blocks(base)) &&
                  s.hashes != NULL && s.twins != NULL && s.has_twin != NULL && s.whole != NULL;
    if (memory) {
        remember_base(&s);
        find_twins(&s);
    }
    for (size_t i = 0; memory && i < n; i++)
        memory = add_tensor(&s, i);
    search_free(&s);
    return memory ? dedup_finish(plan, err)
                  : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to compare its tensors",
                              tern_gguf_name(model));
}
