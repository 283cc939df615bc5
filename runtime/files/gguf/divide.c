/* SPDX-License-Identifier: Apache-2.0 */

/* Divides matrices that files keep as one into the several that they are. */

#include <stdlib.h>

#include "runtime/files/gguf/internal.h"

static tern_gguf_tensor piece_of(const tern_gguf_rows *p) {
    const uint64_t row_bytes = p->of->bytes / p->of->ne[1];
    tern_gguf_tensor t = *p->of;
    t.name = p->name;
    t.ne[1] = p->n;
    t.data += p->first * row_bytes;
    t.bytes = t.extent = p->n * row_bytes;
    return t;
}

/* Lists the tensors of the file in their order, some as their pieces. */
static size_t fill(const tern_gguf *file, const tern_gguf_rows *pieces, size_t n,
                   tern_gguf_tensor *out) {
    size_t count = 0, next = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const tern_gguf_tensor *t = &file->tensors[i];
        if (next == n || pieces[next].of != t)
            out[count++] = *t;
        for (; next < n && pieces[next].of == t; next++)
            out[count++] = piece_of(&pieces[next]);
    }
    return count;
}

tern_status tern_gguf_divide(tern_gguf *file, const tern_gguf_rows *pieces, size_t n, char *names,
                             tern_error *err) {
    const size_t most = file->n_tensors + n;
    tern_gguf_tensor *tensors = calloc(most, sizeof *tensors);
    const tern_gguf_tensor **by_name = calloc(most, sizeof *by_name);
    free(file->pieces);
    file->pieces = names;
    if (tensors == NULL || by_name == NULL) {
        free(tensors);
        free(by_name);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu tensors", file->name, most);
    }
    file->n_tensors = fill(file, pieces, n, tensors);
    free(file->tensors);
    free(file->by_name);
    file->tensors = tensors;
    file->by_name = by_name;
    const tern_gguf_tensor *twice = tern_gguf_sort_names(file);
    return twice == NULL ? TERN_OK
                         : tern_fail(err, TERN_ERR_TENSOR_DUPLICATE,
                                     "%s: tensor '%.*s' is there alone and within another",
                                     file->name, TERN_SPAN_ARG(twice->name));
}
