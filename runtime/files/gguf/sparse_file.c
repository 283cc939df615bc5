/* SPDX-License-Identifier: Apache-2.0 */
#include "tern/sparse_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "base/out_file.h"
#include "kernels/iebs.h"

/* Sets *out for bytes that are a whole file, or will be one. Takes them over. */
static void use_memory(void *memory, tern_sparse_matrix *out) {
    const tern_iebs m = tern_iebs_view(memory);
    *out = (tern_sparse_matrix){.memory = memory};
    out->matrix = (tern_block_sparse){.rows = m.rows,
                                      .cols = m.cols,
                                      .start = m.start,
                                      .column = m.column,
                                      .blocks = (const float *)(const void *)m.values,
                                      .block_rows = m.block_rows,
                                      .block_cols = m.block_cols};
}

static tern_status check(const char *path, const void *bytes, size_t size, tern_error *err) {
    tern_error why = {.status = TERN_OK};
    tern_iebs m;
    tern_status status = tern_iebs_check(bytes, size, &m, &why);
    if (status == TERN_OK && m.format != TERN_FORMAT_F32)
        status = tern_fail(&why, TERN_ERR_TENSOR_TYPE, "sparse blocks: values are not f32");
    if (status == TERN_OK)
        status = tern_iebs_values(&m, 0, tern_iebs_block_rows(&m), &why);
    return status == TERN_OK ? TERN_OK : tern_fail(err, status, "%s: %s", path, why.message);
}

tern_status tern_sparse_load(const char *path, tern_sparse_matrix *out, tern_error *err) {
    tern_file_map *map = NULL;
    if (out != NULL)
        *out = (tern_sparse_matrix){.memory = NULL};
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_sparse_load: NULL argument");
    tern_status status = tern_file_map_open(path, &map, err);
    if (status != TERN_OK)
        return status;
    const size_t size = tern_file_map_size(map);
    status = check(path, tern_file_map_bytes(map), size, err);
    void *memory = status == TERN_OK ? malloc(size) : NULL;
    if (status == TERN_OK && memory == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu bytes", path, size);
    if (status == TERN_OK) {
        memcpy(memory, tern_file_map_bytes(map), size);
        status = check(path, memory, size, err); /* a file may change while it is read */
    }
    tern_file_map_close(&map);
    if (status == TERN_OK)
        use_memory(memory, out);
    else
        free(memory);
    return status;
}

tern_status tern_sparse_new(size_t rows, size_t cols, uint32_t block_rows, uint32_t block_cols,
                            uint32_t blocks, tern_sparse_matrix *out, tern_error *err) {
    if (out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_sparse_new: NULL argument");
    *out = (tern_sparse_matrix){.memory = NULL};
    const tern_iebs m = {.format = TERN_FORMAT_F32,
                         .rows = (uint32_t)rows,
                         .cols = (uint32_t)cols,
                         .block_rows = block_rows,
                         .block_cols = block_cols,
                         .blocks = blocks};
    const uint64_t bytes = tern_iebs_bytes(&m);
    if (bytes == 0 || rows != m.rows || cols != m.cols)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%u blocks of %u x %u in %zu x %zu weights cannot be", blocks, block_rows,
                         block_cols, rows, cols);
    void *memory = calloc(1, (size_t)bytes);
    if (memory == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %u blocks of %u x %u", blocks,
                         block_rows, block_cols);
    tern_iebs_write_header(&m, memory);
    use_memory(memory, out);
    return TERN_OK;
}

/* Turns a pointer of a view of the matrix into one that the owner of the memory may write to. */
static void *writable(const tern_sparse_matrix *m, const void *at) {
    return (char *)m->memory + ((const char *)at - (const char *)m->memory);
}

uint32_t *tern_sparse_start(const tern_sparse_matrix *m) {
    return writable(m, m->matrix.start);
}

uint32_t *tern_sparse_column(const tern_sparse_matrix *m) {
    return writable(m, m->matrix.column);
}

float *tern_sparse_blocks(const tern_sparse_matrix *m) {
    return writable(m, m->matrix.blocks);
}

void tern_sparse_free(tern_sparse_matrix *m) {
    if (m == NULL)
        return;
    free(m->memory);
    *m = (tern_sparse_matrix){.memory = NULL};
}

tern_status tern_sparse_save(const tern_sparse_matrix *m, const char *path, bool replace,
                             tern_error *err) {
    tern_out_file *file = NULL;
    if (m == NULL || m->memory == NULL || path == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_sparse_save: NULL argument");
    const tern_iebs view = tern_iebs_view(m->memory);
    const size_t bytes = (size_t)tern_iebs_bytes(&view);
    tern_status status = check(path, m->memory, bytes, err);
    if (status == TERN_OK)
        status = tern_out_file_create(path, replace ? TERN_OUT_REPLACE : TERN_OUT_NEW, &file, err);
    if (status == TERN_OK)
        status = tern_out_file_write(file, m->memory, bytes, err);
    if (status == TERN_OK)
        return tern_out_file_commit(&file, err);
    tern_out_file_discard(&file);
    return status;
}
