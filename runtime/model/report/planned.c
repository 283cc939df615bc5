/* SPDX-License-Identifier: Apache-2.0 */

/* The list by which a model is loaded, for inspection. */

#include "runtime/model/model.h"
#include "tern/inspect.h"

static const char *what_of(tern_load_kind kind) {
    static const char *const names[] = {[TERN_LOAD_VECTOR] = "vector",
                                        [TERN_LOAD_MATRIX] = "matrix",
                                        [TERN_LOAD_EMBEDDING] = "embedding",
                                        [TERN_LOAD_IMAGE] = "image"};
    return names[kind];
}

static const char *place_of(tern_load_place place) {
    static const char *const names[] = {
        [TERN_LOAD_NOWHERE] = "none", [TERN_LOAD_FILE] = "file",     [TERN_LOAD_COPY] = "memory",
        [TERN_LOAD_MADE] = "memory",  [TERN_LOAD_EARLIER] = "equal", [TERN_LOAD_OTHER] = "shared"};
    return names[place];
}

/*
 * True if the tensor's bytes stay in use in the file. Those of an embedding in blocks do not: its
 * rows are hardly ever read. Of equal tensors the first counts, unless it is such an embedding and
 * the other one is a matrix.
 */
static bool stays_in_file(const tern_load_entry *e) {
    const bool rare = e->kind == TERN_LOAD_EMBEDDING && e->format > TERN_FORMAT_BF16;
    if (e->place == TERN_LOAD_EARLIER)
        return e->kind == TERN_LOAD_MATRIX && e->earlier->kind == TERN_LOAD_EMBEDDING &&
               e->earlier->place == TERN_LOAD_FILE && e->earlier->format > TERN_FORMAT_BF16;
    return e->place == TERN_LOAD_FILE && !rare;
}

static void describe_linear(const tern_linear *linear, tern_planned_tensor *out) {
    out->layout = linear->matrix.layout;
    out->gemv = linear->gemv;
    out->gemm = linear->gemm;
}

bool tern_model_planned(const tern_model *m, size_t i, tern_planned_tensor *out) {
    if (i >= m->list.n)
        return false;
    const tern_load_entry *e = &m->list.entries[i];
    if (e->place == TERN_LOAD_NOWHERE) /* the head's, which stands last */
        return false;
    *out = (tern_planned_tensor){.tensor = e->tensor->name,
                                 .type = tern_gguf_tensor_type(e->tensor),
                                 .what = what_of(e->kind),
                                 .place = place_of(e->place),
                                 .layout = TERN_LAYOUT_NONE,
                                 .rows = e->rows,
                                 .cols = e->cols,
                                 .file_bytes = stays_in_file(e) ? e->tensor->bytes : 0,
                                 .offset = e->offset,
                                 .bytes = e->bytes};
    if (e->kind == TERN_LOAD_MATRIX)
        describe_linear(e->to.linear, out);
    else if (e->kind == TERN_LOAD_IMAGE)
        describe_linear(&e->to.image->scan, out);
    else if (e->kind == TERN_LOAD_EMBEDDING)
        out->layout = TERN_LAYOUT_ROWS;
    return true;
}
