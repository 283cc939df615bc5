/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sets the pointers of a model to what its list says: into the file, the arena or an equal matrix.
 */

#include "runtime/model/load/list.h"

static const uint8_t *rows_in_file(const tern_load_entry *e) {
    return e->kind == TERN_LOAD_MATRIX ? tern_load_own_rows(e) : e->tensor->data;
}

/*
 * The last piece of an entry in the arena; before there is an arena, the bytes that will be copied.
 */
static const uint8_t *in_arena(const tern_load_entry *e, const uint8_t *base) {
    tern_load_piece pieces[TERN_LOAD_PIECES];
    if (base == NULL)
        return e->place == TERN_LOAD_COPY ? rows_in_file(e) : NULL;
    return tern_load_piece_at(e, base, tern_load_pieces(e, pieces) - 1);
}

const void *tern_load_rows_of(const tern_load_entry *e) {
    return e->kind == TERN_LOAD_MATRIX ? e->to.linear->matrix.data : e->to.embedding->data;
}

/* The rows of a matrix or an embedding. */
static const void *rows_of(const tern_load_entry *e, const uint8_t *base) {
    switch (e->place) {
    case TERN_LOAD_FILE:
        return rows_in_file(e);
    case TERN_LOAD_EARLIER:
        return rows_of(e->earlier, base);
    case TERN_LOAD_OTHER:
        return tern_load_rows_of(e->holder);
    default:
        return in_arena(e, base);
    }
}

static void bind_matrix(const tern_load_entry *e, const uint8_t *base) {
    tern_matrix *m = &e->to.linear->matrix;
    m->data = rows_of(e, base);
    e->to.linear->in_file = m->data == rows_in_file(e);
    if (e->differ && tern_load_has_own_scale(e) && base != NULL)
        m->row_scale = (const float *)(const void *)tern_load_piece_at(e, base, 0) + e->part.begin;
}

static void bind_image(const tern_load_entry *e, const uint8_t *base) {
    tern_head_image *image = e->to.image;
    const float *norms[TERN_LOAD_PIECES];
    if (e->place == TERN_LOAD_OTHER) {
        const tern_head_image *other = e->holder->to.image;
        image->scan.matrix.data = other->scan.matrix.data;
        image->scan.matrix.row_scale = other->scan.matrix.row_scale;
        image->error = other->error;
        image->norm = other->norm;
    }
    if (e->place != TERN_LOAD_MADE || base == NULL)
        return;
    for (size_t k = 1; k < TERN_LOAD_PIECES; k++)
        norms[k] = (const float *)(const void *)tern_load_piece_at(e, base, k);
    image->scan.matrix.data = tern_load_piece_at(e, base, 0);
    image->scan.matrix.row_scale = norms[1];
    image->error = norms[2];
    image->norm = norms[3];
}

void tern_load_list_bind(tern_load_list *l, const uint8_t *base) {
    for (size_t i = 0; i < l->n; i++) {
        const tern_load_entry *e = &l->entries[i];
        switch (e->kind) {
        case TERN_LOAD_VECTOR:
            *e->to.vector = (const float *)(const void *)in_arena(e, base);
            break;
        case TERN_LOAD_MATRIX:
            bind_matrix(e, base);
            break;
        case TERN_LOAD_EMBEDDING:
            e->to.embedding->data = rows_of(e, base);
            break;
        case TERN_LOAD_IMAGE:
            bind_image(e, base);
        }
    }
}

/* ---- what is hot --------------------------------------------------------------------------- */

static bool is_packed(const tern_load_entry *e) {
    const tern_linear *linear = e->to.linear;
    return !tern_linear_is_in_file(linear) &&
           tern_layout_sparse_format(linear->matrix.layout) == TERN_FORMAT_NONE;
}

/* Describes the data of an entry, and who reads how much of it. False: it is packed. */
static bool describe(const tern_load_entry *e, bool imaged, tern_hot_piece *out) {
    const void *data = NULL;
    *out = (tern_hot_piece){.bytes = (size_t)e->tensor->bytes, .heat = TERN_HEAT_SOME};
    if (e->kind == TERN_LOAD_IMAGE || (e->kind == TERN_LOAD_MATRIX && is_packed(e)))
        return false;
    if (e->kind == TERN_LOAD_VECTOR) {
        data = *e->to.vector;
        out->bytes = e->cols * sizeof(float);
        out->heat = TERN_HEAT_EVERYBODY;
    } else if (e->kind == TERN_LOAD_MATRIX) {
        data = e->to.linear->matrix.data;
        out->heat = imaged ? TERN_HEAT_SOME : TERN_HEAT_ONCE;
    } else {
        data = e->to.embedding->data;
    }
    out->data = data;
    out->in_file = data == e->tensor->data;
    return true;
}

tern_status tern_load_list_hot(const tern_load_list *l, tern_hot_list *hot, tern_error *err) {
    tern_status status = TERN_OK;
    tern_hot_clear(hot);
    for (size_t i = 0; status == TERN_OK && i < l->n; i++) {
        const tern_load_entry *next = i + 1 < l->n ? &l->entries[i + 1] : NULL;
        const bool imaged =
            next != NULL && next->kind == TERN_LOAD_IMAGE && tern_head_is_imaged(next->to.image);
        tern_hot_piece piece;
        if (describe(&l->entries[i], imaged, &piece))
            status = tern_hot_add(hot, piece, err);
    }
    return status;
}
