/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TQ1_0 and TQ2_0 in layout Q4_0R16, for matrices whose scales differ within a row: a block of 256
 * codes is eight blocks of Q4_0 with its scale, (code' - 8) * d with code' = weight + 8. They are
 * made 256 columns of 16 rows at a time and packed as such.
 */

#include <string.h>

#include "kernels/half.h"
#include "kernels/pack.h"
#include "kernels/ternary.h"

enum {
    Q4_BYTES = 18,
    Q4_BLOCKS = TERN_TQ_BLOCK / TERN_BLOCK,
    Q4_ROW = Q4_BLOCKS * Q4_BYTES, /* bytes of 256 columns */
    CODE_OFFSET = 7                /* code' of weight -1, whose code is 0 */
};

static void to_q4_0(const uint8_t *codes, const uint8_t *scale, uint8_t *q4) {
    for (size_t b = 0; b < Q4_BLOCKS; b++, codes += TERN_BLOCK, q4 += Q4_BYTES) {
        memcpy(q4, scale, 2);
        for (size_t j = 0; j < 16; j++)
            q4[2 + j] = (uint8_t)((codes[j] + CODE_OFFSET) | (codes[j + 16] + CODE_OFFSET) << 4);
    }
}

static void from_q4_0(const uint8_t *q4, uint8_t *codes, uint8_t *scale) {
    memcpy(scale, q4, 2);
    for (size_t b = 0; b < Q4_BLOCKS; b++, codes += TERN_BLOCK, q4 += Q4_BYTES)
        for (size_t j = 0; j < 16; j++) {
            codes[j] = (uint8_t)((q4[2 + j] & 15) - CODE_OFFSET);
            codes[j + 16] = (uint8_t)((q4[2 + j] >> 4) - CODE_OFFSET);
        }
}

void tern_unpack_scales(const tern_pack_job *job, size_t row, uint8_t *file) {
    const float scale = job->row_scale != NULL ? job->row_scale[row] : job->scale;
    const uint16_t half = tern_f32_to_f16(scale);

    if (job->format == TERN_FORMAT_I2_S)
        return;
    for (size_t k = 0; k < job->cols; k += TERN_TQ_BLOCK)
        memcpy(file + tern_ternary_scale_at(job->format, row * job->cols + k), &half, sizeof half);
}

/* The job of packing 256 columns of n rows that are Q4_0 now; the caller says where they are. */
static tern_pack_job part_of(const tern_pack_job *job, size_t n) {
    tern_pack_job part = *job;

    part.format = TERN_FORMAT_Q4_0;
    part.file = NULL;
    part.rows = n;
    part.cols = TERN_TQ_BLOCK;
    part.group_bytes = job->packer->group_bytes(TERN_TQ_BLOCK);
    return part;
}

tern_status tern_pack_tq(const tern_pack_job *job, size_t row0, uint8_t *group, tern_error *err) {
    const size_t n = tern_pack_group_rows(job, row0);
    uint8_t q4[TERN_ROW_GROUP * Q4_ROW];
    tern_pack_job part = part_of(job, n);
    tern_status status = TERN_OK;

    part.file = q4;
    for (size_t k = 0; k < job->cols && status == TERN_OK; k += TERN_TQ_BLOCK) {
        for (size_t r = 0; r < n; r++) {
            const size_t first = (row0 + r) * job->cols + k;
            uint8_t codes[TERN_TQ_BLOCK];
            tern_ternary_read(job->format, job->file, first, TERN_TQ_BLOCK, codes);
            if (tern_ternary_invalid(codes, TERN_TQ_BLOCK))
                return tern_ternary_fail(job->format, job->file, job->cols, row0, err);
            to_q4_0(codes, job->file + tern_ternary_scale_at(job->format, first), q4 + r * Q4_ROW);
        }
        status = job->packer->pack(&part, 0, group, err);
        group += part.group_bytes;
    }
    return status;
}

void tern_unpack_tq(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    uint8_t q4[TERN_ROW_GROUP * Q4_ROW];

    for (size_t row0 = 0; row0 < job->rows; row0 += TERN_ROW_GROUP) {
        const size_t n = tern_pack_group_rows(job, row0);
        const tern_pack_job part = part_of(job, n);
        for (size_t k = 0; k < job->cols; k += TERN_TQ_BLOCK, packed += part.group_bytes) {
            job->packer->unpack(&part, packed, q4);
            for (size_t r = 0; r < n; r++) {
                const size_t first = (row0 + r) * job->cols + k;
                uint8_t codes[TERN_TQ_BLOCK];
                from_q4_0(q4 + r * Q4_ROW, codes, file + tern_ternary_scale_at(job->format, first));
                tern_ternary_write(job->format, codes, first, TERN_TQ_BLOCK, file);
            }
        }
    }
}
