/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/dedup/dedup.h"
#include "base/hash64.h"
#include "base/json_tree/text.h"
#include "runtime/files/gguf/dedup.h"

enum { PATH_BYTES = 4096, INDEX = TERN_DEDUP_BASE + 1, TARGETS };

static const char *const endings[TARGETS] = {".defaults.bin", ".masks.bin", ".exceptions.bin",
                                             ".base.bin", ".dedup.json"};

/* The state while the files are written, or only measured. */
typedef struct writing {
    const dedup_plan *plan;
    char *paths[TARGETS];
    tern_out_file *files[TARGETS]; /* NULL: only counted; the base is a link */
    uint64_t sizes[TERN_DEDUP_FILES];
    dedup_sizes *totals;
    bool uses_base;
    uint8_t *scratch; /* mask and exceptions of a block */
    text index;
    tern_status status;
    tern_error *err;
} writing;

static void put(writing *w, tern_dedup_file which, const void *bytes, uint64_t size) {
    w->sizes[which] += size;
    if (w->status == TERN_OK && w->files[which] != NULL && size > 0)
        w->status = tern_out_file_write(w->files[which], bytes, (size_t)size, w->err);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static const uint8_t *part_data(const dedup_plan *plan, const dedup_part *p) {
    return tern_gguf_tensor_at(plan->model, p->tensor)->data + p->offset;
}

/* Writes mask and exceptions for some bytes of a part; their number is a multiple of 8 except at
 * the part's end. */
static void put_differing(writing *w, const uint8_t *data, const uint8_t *defaults,
                          uint64_t bytes) {
    uint8_t *mask = w->scratch, *exceptions = mask + DEDUP_BLOCK_BYTES / 8;
    uint64_t n = 0;
    memset(mask, 0, DEDUP_BLOCK_BYTES / 8);
    for (uint64_t i = 0; i < bytes; i++)
        if (data[i] != defaults[i]) {
            mask[i / 8] |= (uint8_t)(1u << i % 8);
            exceptions[n++] = data[i];
        }
    put(w, TERN_DEDUP_MASKS, mask, bytes / 8 + (bytes % 8 != 0));
    put(w, TERN_DEDUP_EXCEPTIONS, exceptions, n);
}

static void put_place(writing *w, const dedup_part *p, uint64_t bytes) {
    text_print(&w->index, "\"tensor_index\":%zu,", p->tensor);
    if (p->offset > 0)
        text_print(&w->index, "\"tensor_off\":%" PRIu64 ",", p->offset);
    text_print(&w->index, "\"nbytes\":%" PRIu64, bytes);
}

static void put_target(writing *w, const dedup_part *p, const uint8_t *defaults) {
    const uint64_t mask_at = w->sizes[TERN_DEDUP_MASKS], at = w->sizes[TERN_DEDUP_EXCEPTIONS];
    const uint8_t *data = part_data(w->plan, p);
    text_print(&w->index, "{");
    put_place(w, p, p->bytes);
    for (uint64_t i = 0; p->differing > 0 && i < p->bytes; i += DEDUP_BLOCK_BYTES) {
        const uint64_t left = p->bytes - i;
        put_differing(w, data + i, defaults + i,
                      left < DEDUP_BLOCK_BYTES ? left : DEDUP_BLOCK_BYTES);
    }
    if (p->differing > 0)
        text_print(&w->index,
                   ",\"mask_off\":%" PRIu64 ",\"mask_nbytes\":%" PRIu64 ",\"exc_off\":%" PRIu64
                   ",\"exc_nbytes\":%" PRIu64 ",\"exc_popcount\":%" PRIu64,
                   mask_at, w->sizes[TERN_DEDUP_MASKS] - mask_at, at, p->differing, p->differing);
    text_print(&w->index, "}");
    *(p->differing > 0 ? &w->totals->near : &w->totals->equal) += p->bytes;
}

/* Writes a literal part and all parts like it. */
static void put_literal(writing *w, const dedup_part *p, uint64_t bytes) {
    const uint8_t *data = part_data(w->plan, p);
    text_print(&w->index, "{\"default\":{");
    put_place(w, p, bytes);
    text_print(&w->index, ",\"default_off\":%" PRIu64 "},\"targets\":[",
               w->sizes[TERN_DEDUP_DEFAULTS]);
    put(w, TERN_DEDUP_DEFAULTS, data, bytes);
    for (size_t i = p->first_user; i != DEDUP_NONE; i = w->plan->parts[i].next_user) {
        text_print(&w->index, "%s", i != p->first_user ? "," : "");
        put_target(w, &w->plan->parts[i], data);
    }
    text_print(&w->index, "]}");
}

static void put_based(writing *w, const dedup_part *p) {
    text_print(&w->index,
               "{\"default\":{\"file\":\"base\",\"nbytes\":%" PRIu64 ",\"default_off\":%" PRIu64
               "},\"targets\":[",
               p->bytes, (uint64_t)(p->base - w->plan->base));
    put_target(w, p, p->base);
    text_print(&w->index, "]}");
    w->uses_base = true;
}

/* Joins consecutive literal parts of a tensor that no other part is like; returns their bytes. */
static uint64_t literal_bytes(const dedup_plan *plan, size_t *i) {
    const dedup_part *first = &plan->parts[*i];
    uint64_t bytes = first->bytes;
    while (first->first_user == DEDUP_NONE && *i + 1 < plan->n) {
        const dedup_part *p = &plan->parts[*i + 1];
        if (p->tensor != first->tensor || p->like != DEDUP_NONE || p->base != NULL ||
            p->first_user != DEDUP_NONE)
            break;
        bytes += p->bytes;
        ++*i;
    }
    return bytes;
}

static void put_groups(writing *w) {
    const dedup_plan *plan = w->plan;
    bool first = true;
    text_print(&w->index, "\"groups\":[");
    for (size_t i = 0; i < plan->n && w->status == TERN_OK; i++) {
        const dedup_part *p = &plan->parts[i];
        if (p->like != DEDUP_NONE)
            continue; /* written with its default */
        text_print(&w->index, "%s\n", first ? "" : ",");
        first = false;
        if (p->base != NULL)
            put_based(w, p);
        else
            put_literal(w, p, literal_bytes(plan, &i));
    }
    text_print(&w->index, "],\n");
}

/* ---- the rest of the index ------------------------------------------------------------------- */

static void put_tensors(writing *w) {
    const tern_gguf *model = w->plan->model;
    bool first = true;
    text_print(&w->index, "\"tensors\":[");
    for (size_t i = 0; i < tern_gguf_tensor_count(model); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(model, i);
        w->totals->before += t->bytes;
        w->totals->tensors++;
        if (!w->plan->shared[i]) {
            w->totals->after += t->bytes;
            continue;
        }
        text_print(&w->index, "%s\n{\"tensor_index\":%zu,\"name\":", first ? "" : ",", i);
        text_quote(&w->index, t->name.data, t->name.size);
        text_print(&w->index, ",\"nbytes\":%" PRIu64 ",\"xxh64\":\"%016" PRIx64 "\"}", t->bytes,
                   tern_hash64_of(t->data, (size_t)t->bytes));
        first = false;
        w->totals->shared += t->bytes;
        w->totals->shared_tensors++;
    }
    text_print(&w->index, "],\n");
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void put_end(writing *w) {
    const int files = w->uses_base ? TERN_DEDUP_FILES : TERN_DEDUP_BASE;
    w->sizes[TERN_DEDUP_BASE] = w->plan->base_bytes;
    text_print(&w->index, "\"files\":{");
    for (int i = 0; i < files; i++) {
        const char *name = w->paths[i] != NULL ? base_name(w->paths[i]) : tern_dedup_names[i];
        text_print(&w->index, "%s\"%s\":", i > 0 ? "," : "", tern_dedup_fields[i]);
        text_quote(&w->index, name, strlen(name));
    }
    text_print(&w->index, "},\"totals\":{");
    for (int i = 0; i < files; i++)
        text_print(&w->index, "%s\"%s_size\":%" PRIu64, i > 0 ? "," : "", tern_dedup_fields[i],
                   w->sizes[i]);
    text_print(&w->index, "}}\n");
}

static void make_index(writing *w) {
    dedup_sizes *s = w->totals;
    text_print(&w->index, "{\"magic\":\"DUDP\",\"version\":1,\n");
    put_tensors(w);
    put_groups(w);
    put_end(w);
    if (w->index.failed && w->status == TERN_OK)
        w->status = tern_fail(w->err, TERN_ERR_NOMEM, "no memory for an index of shared bytes");
    if (w->status == TERN_OK && w->files[INDEX] != NULL)
        w->status = tern_out_file_write(w->files[INDEX], w->index.bytes, w->index.size, w->err);
    s->defaults = w->sizes[TERN_DEDUP_DEFAULTS];
    s->masks = w->sizes[TERN_DEDUP_MASKS];
    s->exceptions = w->sizes[TERN_DEDUP_EXCEPTIONS];
    s->index = w->index.size;
    s->after += s->defaults + s->masks + s->exceptions + s->index;
}

/* ---- the files ------------------------------------------------------------------------------- */

static void open_files(writing *w, const char *prefix, tern_out_mode mode) {
    for (int i = 0; w->status == TERN_OK && prefix != NULL && i < TARGETS; i++) {
        if (asprintf(&w->paths[i], "%s%s", prefix, endings[i]) < 0) {
            w->paths[i] = NULL;
            w->status = tern_fail(w->err, TERN_ERR_NOMEM, "%s: no memory to write it", prefix);
        } else if (i != TERN_DEDUP_BASE) {
            w->status = tern_out_file_create(w->paths[i], mode, &w->files[i], w->err);
        }
    }
}

/* Makes a link with an absolute path, which still holds when the folder is moved; replaces an older
 * one. */
static tern_status link_base(writing *w, tern_out_mode mode) {
    const char *path = w->paths[TERN_DEDUP_BASE];
    char *whole = realpath(w->plan->base_path, NULL);
    tern_status status = TERN_OK;
    if (whole == NULL)
        return tern_fail(w->err, TERN_ERR_IO, "%s: %s", w->plan->base_path, strerror(errno));
    if (mode == TERN_OUT_REPLACE && unlink(path) != 0 && errno != ENOENT)
        status = tern_fail(w->err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (status == TERN_OK && symlink(whole, path) != 0)
        status = tern_fail(w->err, errno == EEXIST ? TERN_ERR_EXISTS : TERN_ERR_IO, "%s: %s", path,
                           strerror(errno));
    free(whole);
    return status;
}

/* Gives all files their names, the index last. On failure none keeps its name. */
static void commit_files(writing *w, tern_out_mode mode) {
    int done = 0;
    if (w->status == TERN_OK && mode == TERN_OUT_REPLACE && unlink(w->paths[INDEX]) != 0 &&
        errno != ENOENT)
        w->status = tern_fail(w->err, TERN_ERR_IO, "%s: cannot be replaced: %s", w->paths[INDEX],
                              strerror(errno));
    for (; done < TARGETS && w->status == TERN_OK; done++) {
        if (done != TERN_DEDUP_BASE)
            w->status = tern_out_file_commit(&w->files[done], w->err);
        else if (w->uses_base)
            w->status = link_base(w, mode);
    }
    if (w->status == TERN_OK)
        return;
    for (int i = 0; i + 1 < done; i++)
        (void)unlink(w->paths[i]); /* nothing half-written stays */
}

void dedup_remove(const char *prefix) {
    for (int i = 0; i < TARGETS; i++) {
        char path[PATH_BYTES];
        if (snprintf(path, sizeof path, "%s%s", prefix, endings[i]) < (int)sizeof path)
            (void)unlink(path);
    }
}

tern_status dedup_write(const dedup_plan *plan, const char *prefix, tern_out_mode mode,
                        dedup_sizes *sizes, tern_error *err) {
    writing w = {.plan = plan,
                 .totals = sizes,
                 .scratch = malloc(DEDUP_BLOCK_BYTES + DEDUP_BLOCK_BYTES / 8),
                 .status = TERN_OK,
                 .err = err};
    *sizes = (dedup_sizes){.tensors = 0};
    if (w.scratch == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to write shared bytes");
    open_files(&w, prefix, mode);
    if (w.status == TERN_OK)
        make_index(&w);
    if (prefix != NULL)
        commit_files(&w, mode);
    for (int i = 0; i < TARGETS; i++) {
        tern_out_file_discard(&w.files[i]);
        free(w.paths[i]);
    }
    text_free(&w.index);
    free(w.scratch);
    return w.status;
}
