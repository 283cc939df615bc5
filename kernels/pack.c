/* SPDX-License-Identifier: Apache-2.0 */
/* File layouts to packed layouts and back: checks, and the walk over row groups. */

#include "kernels/pack.h"

#include <string.h>

#include "kernels/grids.h"

static const tern_packer *const packers[] = {
#define TERN_PACKED(layout) &tern_packer_##layout,
#include "gen/packers.inc"
#undef TERN_PACKED
};

static const tern_packer *packer_of(tern_layout layout) {
    for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
        if (packers[i]->layout == layout)
            return packers[i];
    return NULL;
}

/* Formats whose products decode weights in place, for activations that are floats. */
static bool is_decoded(tern_format format) {
    const tern_layout own = tern_format_layout(format);
    return own != TERN_LAYOUT_NONE && tern_layout_input(own) == TERN_INPUT_BLOCK &&
           tern_grid_of(format) == NULL && format != TERN_FORMAT_INT8;
}

bool tern_layout_holds(tern_layout layout, tern_format format) {
    const tern_packer *packer = packer_of(layout);

    if (packer == NULL)
        return layout == TERN_LAYOUT_ROWS &&
               (tern_format_layout(format) == TERN_LAYOUT_ROWS || is_decoded(format));
    return packer->holds(format);
}

static size_t groups_of(size_t rows) {
    return rows / TERN_ROW_GROUP + (rows % TERN_ROW_GROUP != 0);
}

size_t tern_packed_bytes(tern_layout layout, size_t rows, size_t cols) {
    const tern_packer *packer = packer_of(layout);
    size_t bytes;

    if (packer == NULL || cols == 0 ||
        __builtin_mul_overflow(groups_of(rows), packer->group_bytes(cols), &bytes))
        return 0;
    return bytes;
}

/* ---- layouts of blocks ------------------------------------------------------------------------
 */

size_t tern_blocks_bytes(tern_format format, size_t packed_bytes, size_t cols) {
    size_t bytes;

    return __builtin_mul_overflow(cols / tern_format_describe(format)->block_elements, packed_bytes,
                                  &bytes)
               ? 0
               : bytes;
}

void tern_pack_blocks(const tern_pack_job *job, tern_pack_row_fn *pack, size_t packed_bytes,
                      size_t row0, uint8_t *group) {
    const tern_format_info *info = tern_format_describe(job->format);
    const size_t blocks = job->cols / info->block_elements, n = tern_pack_group_rows(job, row0);
    const uint8_t *file = job->file + row0 * blocks * info->block_bytes;

    if (n < TERN_ROW_GROUP)
        memset(group, 0, job->group_bytes);
    for (size_t b = 0; b < blocks; b++, group += packed_bytes)
        for (size_t r = 0; r < n; r++)
            pack(job->format, file + (r * blocks + b) * info->block_bytes, r, group);
}

void tern_unpack_blocks(const tern_pack_job *job, tern_pack_row_fn *unpack, size_t packed_bytes,
                        const uint8_t *packed, uint8_t *file) {
    const tern_format_info *info = tern_format_describe(job->format);
    const size_t blocks = job->cols / info->block_elements;

    for (size_t row = 0; row < job->rows; row++) {
        const uint8_t *group = packed + row / TERN_ROW_GROUP * job->group_bytes;
        for (size_t b = 0; b < blocks; b++, file += info->block_bytes)
            unpack(job->format, group + b * packed_bytes, row % TERN_ROW_GROUP, file);
    }
}

/* ---- matrices ---------------------------------------------------------------------------------
 */

/* Checks that the matrix can have this layout and describes the work. */
static tern_status job_init(tern_pack_job *job, tern_format format, tern_layout layout, size_t rows,
                            size_t cols, tern_error *err) {
    const char *name = tern_layout_name(layout);
    const tern_packer *packer = packer_of(layout);
    uint64_t file_bytes;

    if (packer == NULL || !packer->holds(format))
        return tern_fail(err, TERN_ERR_ARG, "format %d has no packed layout %s", (int)format,
                         name != NULL ? name : "(out of range)");
    if (tern_format_bytes(format, rows, cols, &file_bytes) != TERN_OK ||
        tern_packed_bytes(layout, rows, cols) == 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "a matrix of %zu x %zu cannot be packed as %s",
                         rows, cols, name);
    *job = (tern_pack_job){.format = format,
                           .rows = rows,
                           .cols = cols,
                           .group_bytes = packer->group_bytes(cols),
                           .packer = packer};
    return TERN_OK;
}

/* Rows [r0, r1), to the place of the first group. */
static tern_status pack_groups(const tern_pack_job *job, size_t r0, size_t r1, uint8_t *out,
                               tern_error *err) {
    tern_status status = TERN_OK;

    for (size_t row = r0; row < r1 && status == TERN_OK; row += TERN_ROW_GROUP) {
        status = job->packer->pack(job, row, out, err);
        out += job->group_bytes;
    }
    return status;
}

tern_status tern_pack_rows(tern_format format, const void *file, size_t rows, size_t cols,
                           tern_layout layout, size_t r0, size_t r1, void *out, tern_error *err) {
    tern_pack_job job;
    tern_status status = job_init(&job, format, layout, rows, cols, err);

    if (status != TERN_OK)
        return status;
    if (file == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no matrix to pack, or no place to pack it to");
    if (r0 % TERN_ROW_GROUP != 0 || r0 > r1 || r1 > rows ||
        (r1 % TERN_ROW_GROUP != 0 && r1 != rows))
        return tern_fail(err, TERN_ERR_ARG, "rows [%zu, %zu) of %zu are not whole row groups", r0,
                         r1, rows);
    if ((uintptr_t)out % TERN_ALIGN != 0)
        return tern_fail(err, TERN_ERR_UNALIGNED, "packed matrix is not aligned to %d bytes",
                         (int)TERN_ALIGN);
    job.file = file;
    return pack_groups(&job, r0, r1, (uint8_t *)out + r0 / TERN_ROW_GROUP * job.group_bytes, err);
}

tern_status tern_pack_strip(const uint8_t *strip, size_t cols, tern_layout layout, size_t rows,
                            uint8_t *out, tern_error *err) {
    tern_pack_job job;
    const tern_status status = job_init(&job, TERN_FORMAT_I2_S, layout, TERN_STRIP_ROWS, cols, err);

    if (status != TERN_OK)
        return status;
    job.file = strip;
    return pack_groups(&job, 0, rows, out, err);
}

tern_status tern_unpack(const tern_matrix *packed, void *file, tern_error *err) {
    tern_pack_job job;
    const tern_status status =
        job_init(&job, packed->format, packed->layout, packed->rows, packed->cols, err);

    if (status != TERN_OK)
        return status;
    if (packed->data == NULL || file == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no matrix to unpack, or no place to unpack it to");
    job.scale = packed->scale;
    job.row_scale = packed->row_scale;
    job.packer->unpack(&job, packed->data, file);
    return TERN_OK;
}
