/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/importance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/gguf_writer.h"
#include "base/grow.h"

/* ---- entries --------------------------------------------------------------------------------- */

tern_importance_entry *tern_importance_add(tern_importance *m, const char *name, size_t cols,
                                           size_t matrices) {
    tern_importance_entry *e;
    if (!tern_grow((void **)&m->entries, &m->capacity, m->n, sizeof *e, SIZE_MAX / sizeof *e))
        return NULL;
    e = &m->entries[m->n];
    *e = (tern_importance_entry){.cols = cols,
                                 .matrices = matrices,
                                 .squares = calloc(matrices, (cols + 1) * sizeof *e->squares)};
    if (e->squares == NULL)
        return NULL;
    e->rows = e->squares + matrices * cols;
    (void)snprintf(e->name, sizeof e->name, "%s", name);
    m->n++;
    return e;
}

const tern_importance_entry *tern_importance_find(const tern_importance *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->entries[i].name, name) == 0)
            return &m->entries[i];
    return NULL;
}

void tern_importance_free(tern_importance *m) {
    for (size_t i = 0; i < m->n; i++)
        free(m->entries[i].squares);
    free(m->entries);
    *m = (tern_importance){.n = 0};
}

/* ---- weights --------------------------------------------------------------------------------- */

bool tern_importance_fits(const tern_importance_entry *e, size_t cols, size_t matrices) {
    const bool one = e->matrices == 1;
    return e->cols == cols ? one || e->matrices == matrices : one && e->cols == cols * matrices;
}

/* The sum of squares of a column: of the given matrix, or of all matrices if it has no rows. */
static double square_of(const tern_importance_entry *e, size_t matrix, size_t column) {
    double sum = 0.0;
    if (e->rows[matrix] > 0.0)
        return e->squares[matrix * e->cols + column];
    for (size_t i = 0; i < e->matrices; i++)
        sum += e->squares[i * e->cols + column];
    return sum;
}

void tern_importance_weights(const tern_importance_entry *e, size_t cols, size_t matrix, float *w) {
    const size_t from = e->cols == cols ? 0 : matrix * cols; /* for the older form */
    const size_t which = e->matrices > 1 ? matrix : 0;
    double sum = 0.0;
    for (size_t i = 0; i < cols; i++)
        sum += square_of(e, which, from + i);
    const double mean = sum / (double)cols;
    for (size_t i = 0; i < cols; i++)
        w[i] = (float)((mean > 0.0 ? square_of(e, which, from + i) / mean : 1.0) + 0x1p-10);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void describe(const tern_importance_entry *e, tern_gguf_writer *w) {
    char name[TERN_IMPORTANCE_NAME_BYTES + sizeof ".in_sum2"];
    const uint64_t sums[2] = {e->cols, e->matrices}, counts[2] = {1, e->matrices};
    const uint32_t n_dims = e->matrices > 1 ? 2 : 1;
    (void)snprintf(name, sizeof name, "%s.in_sum2", e->name);
    tern_gguf_put_tensor(w, name, 0, n_dims, sums, sums[0] * sums[1] * sizeof(float));
    (void)snprintf(name, sizeof name, "%s.counts", e->name);
    tern_gguf_put_tensor(w, name, 0, n_dims, counts, counts[1] * sizeof(float));
}

static tern_status write_floats(const tern_importance_entry *e, const double *values, size_t n,
                                tern_gguf_writer *w, tern_error *err) {
    float *x = calloc(n, sizeof *x);
    for (size_t i = 0; x != NULL && i < n; i++)
        x[i] = (float)values[i];
    const tern_status status =
        x != NULL ? tern_gguf_writer_data(w, x, n * sizeof *x, err)
                  : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its importance", e->name);
    free(x);
    return status;
}

static tern_status put_entry(const tern_importance_entry *e, tern_gguf_writer *w, tern_error *err) {
    const tern_status status = write_floats(e, e->squares, e->matrices * e->cols, w, err);
    return status == TERN_OK ? write_floats(e, e->rows, e->matrices, w, err) : status;
}

static tern_status write_gguf(const tern_importance *m, const char *path, tern_out_mode mode,
                              tern_error *err) {
    const tern_span text = {m->text, strlen(m->text)};
    tern_gguf_writer *w = NULL;
    tern_status status = tern_gguf_writer_new(path, mode, &w, err);
    if (status != TERN_OK)
        return status;
    tern_gguf_put_string(w, "general.type", "imatrix");
    tern_gguf_put_strings(w, "imatrix.datasets", &text, 1);
    tern_gguf_put_u32(w, "imatrix.chunk_count", m->chunks);
    tern_gguf_put_u32(w, "imatrix.chunk_size", m->chunk_tokens);
    for (size_t i = 0; i < m->n; i++)
        describe(&m->entries[i], w);
    status = tern_gguf_writer_begin(w, err);
    for (size_t i = 0; status == TERN_OK && i < m->n; i++)
        status = put_entry(&m->entries[i], w, err);
    if (status == TERN_OK)
        return tern_gguf_writer_finish(&w, err);
    tern_gguf_writer_abort(&w);
    return status;
}

/* ---- the older form -------------------------------------------------------------------------- */

static tern_status put_number(tern_out_file *f, uint32_t number, tern_error *err) {
    const int32_t value = (int32_t)number;
    return tern_out_file_write(f, &value, sizeof value, err);
}

static tern_status put_text(tern_out_file *f, const char *text, tern_error *err) {
    const size_t size = strlen(text);
    const tern_status status = put_number(f, (uint32_t)size, err);
    return status == TERN_OK && size > 0 ? tern_out_file_write(f, text, size, err) : status;
}

/* The means of squares times the number of chunks, as floats for the file; NULL: no memory. An
 * expert that no row reached gets the means over all experts. */
static float *means_of(const tern_importance_entry *e, uint32_t chunks) {
    float *x = calloc(e->matrices, e->cols * sizeof *x);
    double all = 0.0;
    for (size_t i = 0; i < e->matrices; i++)
        all += e->rows[i];
    for (size_t i = 0; x != NULL && i < e->matrices * e->cols; i++) {
        const size_t matrix = i / e->cols;
        const double rows = e->rows[matrix] > 0.0 ? e->rows[matrix] : all;
        x[i] = (float)(square_of(e, matrix, i % e->cols) * ((double)chunks / rows));
    }
    return x;
}

static tern_status put_old_entry(const tern_importance_entry *e, uint32_t chunks, tern_out_file *f,
                                 tern_error *err) {
    const size_t n = e->matrices * e->cols;
    float *x = means_of(e, chunks);
    tern_status status =
        x != NULL ? put_text(f, e->name, err)
                  : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its importance", e->name);
    if (status == TERN_OK)
        status = put_number(f, chunks, err);
    if (status == TERN_OK)
        status = put_number(f, (uint32_t)n, err);
    if (status == TERN_OK)
        status = tern_out_file_write(f, x, n * sizeof *x, err);
    free(x);
    return status;
}

static tern_status write_old(const tern_importance *m, const char *path, tern_out_mode mode,
                             tern_error *err) {
    tern_out_file *f = NULL;
    const uint32_t chunks = m->chunks > 0 ? m->chunks : 1;
    tern_status status = tern_out_file_create(path, mode, &f, err);
    if (status == TERN_OK)
        status = put_number(f, (uint32_t)m->n, err);
    for (size_t i = 0; status == TERN_OK && i < m->n; i++)
        status = put_old_entry(&m->entries[i], chunks, f, err);
    if (status == TERN_OK)
        status = put_number(f, chunks, err);
    if (status == TERN_OK)
        status = put_text(f, m->text, err);
    if (status == TERN_OK)
        return tern_out_file_commit(&f, err);
    tern_out_file_discard(&f);
    return status;
}

tern_status tern_importance_write(const tern_importance *m, const char *path, tern_out_mode mode,
                                  tern_error *err) {
    static const char old[] = ".dat";
    const size_t size = strlen(path);
    const bool is_old = size >= sizeof old && strcmp(path + size - (sizeof old - 1), old) == 0;
    return is_old ? write_old(m, path, mode, err) : write_gguf(m, path, mode, err);
}
