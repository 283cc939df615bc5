/* SPDX-License-Identifier: Apache-2.0 */

/* Decides where each entry of the list is read, and where its pieces lie. */

#include <stdlib.h>
#include <string.h>

#include "runtime/model/load/list.h"

/* ---- pieces -------------------------------------------------------------------------------- */

/* True if the entry's rows have scales in the arena. */
static bool has_row_scales(const tern_load_entry *e) {
    return e->kind == TERN_LOAD_MATRIX && e->differ && tern_load_has_own_scale(e);
}

static bool is_in_arena(const tern_load_entry *e) {
    return e->place == TERN_LOAD_COPY || e->place == TERN_LOAD_MADE;
}

static size_t image_pieces(const tern_load_entry *e, tern_load_piece *out) {
    const tern_matrix *m = &e->to.image->scan.matrix;
    if (!is_in_arena(e))
        return 0;
    out[0] = (tern_load_piece){"head codes", tern_packed_bytes(m->layout, m->rows, m->cols), 1};
    for (size_t k = 1; k < TERN_LOAD_PIECES; k++)
        out[k] = (tern_load_piece){"head norms", m->rows, sizeof(float)};
    return TERN_LOAD_PIECES;
}

size_t tern_load_copied(const tern_load_entry *e) {
    return e->kind == TERN_LOAD_MATRIX && !tern_load_is_whole(e)
               ? (e->part.end - e->part.begin) * tern_load_row_bytes(e)
               : (size_t)e->tensor->bytes;
}

size_t tern_load_pieces(const tern_load_entry *e, tern_load_piece *out) {
    size_t n = 0;
    if (e->kind == TERN_LOAD_IMAGE)
        return image_pieces(e, out);
    if (has_row_scales(e))
        out[n++] = (tern_load_piece){NULL, e->rows, sizeof(float)};
    if (e->kind == TERN_LOAD_VECTOR)
        out[n++] = (tern_load_piece){NULL, e->cols, sizeof(float)};
    else if (e->place == TERN_LOAD_COPY)
        out[n++] = (tern_load_piece){NULL, tern_load_copied(e), 1};
    else if (e->place == TERN_LOAD_MADE)
        out[n++] = (tern_load_piece){NULL, (size_t)tern_linear_bytes(e->to.linear), 1};
    return n;
}

const uint8_t *tern_load_piece_at(const tern_load_entry *e, const uint8_t *base, size_t k) {
    tern_load_piece pieces[TERN_LOAD_PIECES];
    size_t at = e->offset;
    (void)tern_load_pieces(e, pieces);
    for (size_t i = 0; i < k; i++)
        (void)tern_arena_reserve(&at, pieces[i].count, pieces[i].size); /* arranged: it fits */
    return base + at;
}

/*
 * Hashes what a piece is made of. The hash must follow from the file alone, not from the
 * instruction set or the number of threads: images are kept on disk and used by other processes
 * (runtime/model/image/image.h).
 */
static void hash_piece(tern_hash64 *h, const tern_load_entry *e, const tern_load_piece *p) {
    const uint64_t shape[2] = {p->count, p->size};
    const tern_span name =
        p->name != NULL ? (tern_span){p->name, strlen(p->name)} : e->tensor->name;
    if (e->divisor != 1.0f) /* from the file's keys: tensors alone do not tell what is packed */
        tern_hash64_add(h, &e->divisor, sizeof e->divisor);
    if (e->kind == TERN_LOAD_MATRIX && p->size == 1 && e->place == TERN_LOAD_MADE) {
        const int kinds[2] = {(int)e->format, (int)e->to.linear->matrix.layout};
        tern_hash64_add(h, kinds, sizeof kinds);
    }
    if (e->kind == TERN_LOAD_MATRIX && !tern_load_is_whole(e))
        tern_hash64_add(h, &e->part, sizeof e->part);
    tern_hash64_add(h, name.data, name.size);
    tern_hash64_add(h, "", 1);
    tern_hash64_add(h, shape, sizeof shape);
}

static tern_status reserve(tern_load_list *l, tern_load_entry *e, tern_error *err) {
    tern_load_piece pieces[TERN_LOAD_PIECES];
    const size_t n = tern_load_pieces(e, pieces);
    e->offset = l->bytes;
    for (size_t k = 0; k < n; k++) {
        hash_piece(&l->plan, e, &pieces[k]);
        if (!tern_arena_reserve(&l->bytes, pieces[k].count, pieces[k].size))
            return tern_fail(err, TERN_ERR_NOMEM, "%s: weights need more than %zu bytes of memory",
                             tern_gguf_name(l->file), SIZE_MAX);
    }
    e->bytes = l->bytes - e->offset;
    return TERN_OK;
}

/* ---- places -------------------------------------------------------------------------------- */

tern_matrix tern_load_form(const tern_load_entry *e) {
    return e->kind == TERN_LOAD_MATRIX ? e->to.linear->matrix
                                       : (tern_matrix){.format = e->format,
                                                       .layout = TERN_LAYOUT_ROWS,
                                                       .rows = e->rows,
                                                       .cols = e->cols};
}

static bool is_sparse(const tern_load_entry *e) {
    return tern_layout_sparse_format(tern_load_form(e).layout) != TERN_FORMAT_NONE;
}

/* True if the entry can be read in place. Floats must be aligned to their size; blocks are read
 * byte by byte. */
static bool is_aligned(const tern_load_entry *e) {
    const tern_format_info *info = tern_format_describe(e->format);
    return info->block_elements > 1 || (uintptr_t)e->tensor->data % info->block_bytes == 0;
}

/* The place of an entry that has no equal. */
static tern_load_place own_place(const tern_load_entry *e) {
    if (e->kind == TERN_LOAD_MATRIX && is_sparse(e))
        return TERN_LOAD_FILE;
    if (e->kind == TERN_LOAD_MATRIX && !tern_linear_is_in_file(e->to.linear))
        return TERN_LOAD_MADE;
    return is_aligned(e) ? TERN_LOAD_FILE : TERN_LOAD_COPY;
}

/* The first entry with the bytes of each tensor, indexed by the number of the first such tensor.
 * NULL: equality was not asked for. */
typedef struct firsts {
    const tern_equal *equal;
    const tern_load_entry **entries;
} firsts;

/*
 * Places a matrix or embedding: with its equal if both are read in the same form, else by itself.
 */
static void place_rows(const firsts *f, tern_load_entry *e) {
    const tern_matrix form = tern_load_form(e);
    const tern_load_entry **first =
        f->entries != NULL ? &f->entries[tern_equal_first(f->equal, e->tensor)] : NULL;
    if (f->equal != NULL)
        e->sample = tern_equal_sample(f->equal, e->tensor);
    if (first != NULL && *first != NULL) {
        const tern_matrix before = tern_load_form(*first);
        if (tern_equal_is_alike(&before, &form)) {
            e->place = TERN_LOAD_EARLIER;
            e->earlier = *first;
            return;
        }
    } else if (first != NULL) {
        *first = e;
    }
    e->holder = tern_equal_in_other(f->equal, e->tensor, &form);
    if (e->holder != NULL) {
        e->place = TERN_LOAD_OTHER;
        return;
    }
    e->place = own_place(e);
}

/* True if the bytes are checked already, as a matrix of another model or an earlier one. An
 * embedding does not count, because it is not checked if the head has the same bytes. */
static bool is_checked(const tern_load_entry *e) {
    return (e->place == TERN_LOAD_OTHER && e->holder->kind == TERN_LOAD_MATRIX) ||
           (e->place == TERN_LOAD_EARLIER && e->earlier->kind == TERN_LOAD_MATRIX);
}

/* True if the entry is read where its tensor's own bytes lie. */
static bool is_at_home(const tern_load_entry *e) {
    return e->place == TERN_LOAD_FILE ||
           (e->place == TERN_LOAD_EARLIER && e->earlier->place == TERN_LOAD_FILE &&
            e->earlier->tensor->data == e->tensor->data);
}

static tern_load_check check_of(const tern_load_entry *e) {
    if (e->place == TERN_LOAD_FILE && is_sparse(e))
        return TERN_CHECK_BLOCKS;
    if (!tern_linear_is_in_file(e->to.linear) || is_checked(e))
        return TERN_CHECK_NONE;
    return is_at_home(e) ? TERN_CHECK_KEEP : TERN_CHECK_DROP;
}

static void place_matrix(tern_load_list *l, const firsts *f, tern_load_entry *e) {
    place_rows(f, e);
    e->check = check_of(e);
    if (is_checked(e) || e->place == TERN_LOAD_OTHER ||
        (e->place == TERN_LOAD_EARLIER && !is_at_home(e)))
        l->saved += tern_linear_bytes(e->to.linear);
}

/* The rows of a head that another model holds; NULL: none does. */
static const void *rows_elsewhere(const tern_load_entry *head) {
    const tern_load_entry *e = head->place == TERN_LOAD_EARLIER ? head->earlier : head;
    return e->place == TERN_LOAD_OTHER ? tern_load_rows_of(e->holder) : NULL;
}

/* Places the image. Making it checks the head, the entry before it. */
static void place_image(const firsts *f, tern_load_entry *head, tern_load_entry *e) {
    e->place = TERN_LOAD_NOWHERE;
    if (!tern_head_is_imaged(e->to.image))
        return;
    head->check = TERN_CHECK_NONE;
    e->holder = tern_equal_image(f->equal, rows_elsewhere(head), &e->to.image->scan.matrix);
    e->place = e->holder != NULL ? TERN_LOAD_OTHER : TERN_LOAD_MADE;
}

static void place(tern_load_list *l, const firsts *f, tern_load_entry *e) {
    switch (e->kind) {
    case TERN_LOAD_VECTOR:
        e->place = TERN_LOAD_MADE;
        break;
    case TERN_LOAD_MATRIX:
        place_matrix(l, f, e);
        break;
    case TERN_LOAD_EMBEDDING:
        place_rows(f, e);
        break;
    case TERN_LOAD_IMAGE:
        place_image(f, e - 1, e);
    }
}

tern_status tern_load_list_arrange(tern_load_list *l, const tern_equal *equal, tern_error *err) {
    firsts f = {.equal = equal};
    if (equal != NULL) {
        f.entries = calloc(tern_gguf_tensor_count(l->file) + 1, sizeof *f.entries);
        if (f.entries == NULL)
            return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to compare tensors",
                             tern_gguf_name(l->file));
    }
    l->bytes = 0;
    l->saved = 0;
    tern_hash64_start(&l->plan);
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < l->n; i++) {
        place(l, &f, &l->entries[i]);
        status = reserve(l, &l->entries[i], err);
    }
    free(f.entries);
    if (status == TERN_OK)
        tern_load_list_bind(l, NULL);
    return status;
}
