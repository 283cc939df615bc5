/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_fp4.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "authoring/convert/hf_tensors.h"
#include "base/word_list.h"

/* A run of columns has a scale; a block of the file has four runs. */
enum { RUN = 16, RUNS = 4, BLOCK = RUN * RUNS, RUN_BYTES = RUN / 2, FILE_BYTES = RUNS + BLOCK / 2 };

/* ---- what lies beside ------------------------------------------------------------------------ */

static const char packed_end[] = ".weight_packed";

/* The tensor beside "...weight" or "...weight_packed" that ends so; NULL: none. */
static const safetensors_tensor *beside(hf_files *files, const char *weight, const char *end) {
    char name[CONVERT_NAME_BYTES];
    const char *dot = strrchr(weight, '.');
    if (dot == NULL)
        return NULL;
    (void)snprintf(name, sizeof name, "%.*s.%s", (int)(dot - weight < 200 ? dot - weight : 200),
                   weight, end);
    return hf_files_find(files, name);
}

bool hf_fp4_is(hf_files *files, const safetensors_tensor *t) {
    return t->type == SAFETENSORS_U8 &&
           (text_ends_with(t->name, packed_end) ||
            (text_ends_with(t->name, ".weight") && beside(files, t->name, "weight_scale_2")));
}

const safetensors_tensor *hf_fp4_find(hf_files *files, const char *name) {
    const safetensors_tensor *t = hf_files_find(files, name);
    return t != NULL || !text_ends_with(name, ".weight") ? t : beside(files, name, packed_end + 1);
}

bool hf_fp4_is_of_cache(const char *name) {
    return text_ends_with(name, ".k_scale") || text_ends_with(name, ".v_scale");
}

static tern_status check_sides(const safetensors_tensor *t, safetensors_type type, size_t rows,
                               size_t cols, tern_error *err) {
    if (t->type != type)
        return tern_fail(err, TERN_ERR_TENSOR_TYPE, "%s: tensor %s has type %s, must be %s",
                         t->file, t->name, safetensors_type_name(t->type),
                         safetensors_type_name(type));
    return t->n_dims == 2 && t->shape[0] == rows && t->shape[1] == cols
               ? TERN_OK
               : tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                           "%s: tensor %s has %" PRIu32 " dimensions, %" PRIu64 " x %" PRIu64
                           ", must be %zu x %zu",
                           t->file, t->name, t->n_dims, t->n_dims > 0 ? t->shape[0] : 1,
                           t->n_dims > 1 ? t->shape[1] : 1, rows, cols);
}

/* Reads one number, or one over it. */
static tern_status read_number(const safetensors_tensor *t, bool over, float *out,
                               tern_error *err) {
    const bool one = t->n_dims == 0 || (t->n_dims == 1 && t->shape[0] == 1);
    if (t->type != SAFETENSORS_F32 || !one)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "%s: tensor %s is not one F32", t->file,
                         t->name);
    const float value = hf_source_load(t, 0);
    *out = over ? 1.0f / value : value;
    return isfinite(value) && isfinite(*out) && *out > 0.0f
               ? TERN_OK
               : tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: tensor %s is %g", t->file, t->name,
                           (double)value);
}

/* Bit 7 of a scale counts for nothing in files, and 0x7f is not a number. */
static tern_status check_scales(const safetensors_tensor *t, tern_error *err) {
    for (uint64_t i = 0; i < t->bytes; i++)
        if (t->data[i] > 0x80 || t->data[i] == 0x7f)
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "%s: tensor %s: scale 0x%02x in byte %" PRIu64
                             " is negative or not a number",
                             t->file, t->name, t->data[i], i);
    return TERN_OK;
}

tern_status hf_fp4_read(hf_files *files, const safetensors_tensor *codes, size_t rows, size_t cols,
                        hf_fp4 *out, tern_error *err) {
    const bool over = text_ends_with(codes->name, packed_end);
    const safetensors_tensor *scales = beside(files, codes->name, "weight_scale");
    const safetensors_tensor *number =
        beside(files, codes->name, over ? "weight_global_scale" : "weight_scale_2");
    const safetensors_tensor *input =
        beside(files, codes->name, over ? "input_global_scale" : "input_scale");
    *out = (hf_fp4){.codes = codes, .scales = scales};
    if (scales == NULL || number == NULL)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING, "%s: tensor %s has no scales beside it",
                         codes->file, codes->name);
    if (cols % BLOCK != 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %s: %zu columns cannot be cut into blocks of %d", codes->file,
                         codes->name, cols, (int)BLOCK);
    tern_status status = check_sides(codes, SAFETENSORS_U8, rows, cols / 2, err);
    if (status == TERN_OK)
        status = check_sides(scales, SAFETENSORS_F8_E4M3, rows, cols / RUN, err);
    if (status == TERN_OK)
        status = check_scales(scales, err);
    if (status == TERN_OK)
        status = read_number(number, over, &out->factor, err);
    return status == TERN_OK && input != NULL ? read_number(input, over, &out->input, err) : status;
}

bool hf_fp4_factors(const hf_fp4 *m, size_t n, bool inputs, float *out) {
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        out[i] = inputs ? m[i].input : m[i].factor;
        all = all && out[i] > 0.0f;
    }
    return all;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Byte j of a folder's run has codes 2j and 2j + 1, that of a file's has codes j and j + 8. */
static void pack_run(const uint8_t *pairs, uint8_t out[RUN_BYTES]) {
    for (size_t j = 0; j < RUN_BYTES; j++) {
        const unsigned odd = j % 2 * 4;
        const unsigned low = pairs[j / 2] >> odd & 15;
        const unsigned high = pairs[(j + RUN_BYTES) / 2] >> odd & 15;
        out[j] = (uint8_t)(low | high << 4);
    }
}

/* Block b of a row, as a file has it. */
static void make_block(const hf_fp4 *m, size_t row, size_t cols, size_t b,
                       uint8_t out[FILE_BYTES]) {
    const uint8_t *scales = m->scales->data + row * (cols / RUN) + b * RUNS;
    const uint8_t *codes = m->codes->data + row * (cols / 2) + b * (BLOCK / 2);
    memcpy(out, scales, RUNS);
    for (size_t r = 0; r < RUNS; r++)
        pack_run(codes + r * RUN_BYTES, out + RUNS + r * RUN_BYTES);
}

void hf_fp4_row_bytes(const hf_fp4 *m, size_t row, size_t cols, uint8_t *out) {
    for (size_t b = 0; b < cols / BLOCK; b++)
        make_block(m, row, cols, b, out + b * FILE_BYTES);
}

void hf_fp4_row_floats(const hf_fp4 *m, size_t row, size_t cols, float *out) {
    uint8_t block[FILE_BYTES];
    for (size_t b = 0; b < cols / BLOCK; b++) {
        make_block(m, row, cols, b, block);
        tern_dequantize_row(TERN_FORMAT_NVFP4, block, BLOCK, 0, 1.0f, out + b * BLOCK);
    }
}
