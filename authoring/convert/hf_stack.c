/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of experts that a Hugging Face folder holds in one tensor for all of a layer. */

#include "authoring/convert/hf_tensors.h"
#include "tern/kernels.h"

enum { BLOCK = 32, BLOCK_BYTES = 16, FILE_BYTES = 1 + BLOCK_BYTES };

/* The tensor's row for a row of the written one, if its rows are results. */
static size_t row_of(const hf_source *s, size_t row) {
    return (row / s->each * s->each + row % s->each) * s->step + s->turn;
}

/* A matrix lies with its inputs as rows. */
void hf_stack_row(const void *source, size_t row, float *out) {
    const hf_source *s = source;
    const size_t width = s->each * s->step, at = row % s->each * s->step + s->turn;
    const size_t first = row / s->each * s->cols;
    for (size_t k = 0; k < s->cols; k++)
        out[k] = hf_source_load(s->tensor, (first + k) * width + at);
}

void hf_stack_half_row(const void *source, size_t row, float *out) {
    const hf_source *s = source;
    const size_t from = (row / s->each * s->step + s->turn) * s->each + row % s->each;
    for (size_t k = 0; k < s->cols; k++)
        out[k] = hf_source_load(s->tensor, from * s->cols + k);
}

void hf_stack_bias_row(const void *source, size_t row, float *out) {
    const hf_source *s = source;
    for (size_t k = 0; k < s->cols; k++)
        out[k] = hf_source_load(s->tensor, (row * s->cols + k) * s->step + s->turn);
}

/* Byte j of a folder's block has codes 2j and 2j + 1, that of a file's has codes j and j + 16. */
static void pack_block(const uint8_t *pairs, uint8_t scale, uint8_t out[FILE_BYTES]) {
    out[0] = scale;
    for (size_t j = 0; j < BLOCK_BYTES; j++) {
        const unsigned odd = j % 2 * 4;
        const unsigned low = pairs[j / 2] >> odd & 15;
        const unsigned high = pairs[(j + BLOCK_BYTES) / 2] >> odd & 15;
        out[1 + j] = (uint8_t)(low | high << 4);
    }
}

void hf_stack_bytes(const void *source, size_t row, uint8_t *out) {
    const hf_source *s = source;
    const size_t blocks = s->cols / BLOCK, first = row_of(s, row) * blocks;
    for (size_t b = 0; b < blocks; b++)
        pack_block(s->tensor->data + (first + b) * BLOCK_BYTES, s->scale_tensor->data[first + b],
                   out + b * FILE_BYTES);
}

void hf_stack_block_row(const void *source, size_t row, float *out) {
    const hf_source *s = source;
    const size_t blocks = s->cols / BLOCK, first = row_of(s, row) * blocks;
    for (size_t b = 0; b < blocks; b++) {
        uint8_t block[FILE_BYTES];
        pack_block(s->tensor->data + (first + b) * BLOCK_BYTES, s->scale_tensor->data[first + b],
                   block);
        tern_dequantize_row(TERN_FORMAT_MXFP4, block, BLOCK, 0, 1.0f, out + b * BLOCK);
    }
}
