/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An invalid block scale, minimum or float is refused wherever it stands in a model. The message
 * has the file, tensor, row, block and value. Values that are only unusual (zero, a sign) are
 * accepted.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/model/load/weight_check.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* The bytes and columns of a block, and its f16 fields or its power, as in docs/formats.md. */
typedef struct block {
    tern_format format;
    size_t cols, bytes, n, at[2];
} block;

static const block blocks[] = {
#define TERN_PLAIN(NAME, name, bytes, fields, chunks, fifth, power)                                \
    {TERN_FORMAT_##NAME, 32, bytes, fields + power, {0, 2}},
#include "gen/plain.inc"
#undef TERN_PLAIN
    {TERN_FORMAT_Q2_K, 256, 84, 2, {80, 82}},
    {TERN_FORMAT_Q3_K, 256, 110, 1, {108}},
    {TERN_FORMAT_IQ4_XS, 256, 136, 1, {0}},
    {TERN_FORMAT_Q4_K, 256, 144, 2, {0, 2}},
    {TERN_FORMAT_Q5_K, 256, 176, 2, {0, 2}},
    {TERN_FORMAT_Q6_K, 256, 210, 1, {208}},
    {TERN_FORMAT_IQ1_S, 256, 50, 1, {0}},
    {TERN_FORMAT_IQ1_M, 256, 56, 1, {48}},
    {TERN_FORMAT_IQ2_XXS, 256, 66, 1, {0}},
    {TERN_FORMAT_IQ2_XS, 256, 74, 1, {0}},
    {TERN_FORMAT_IQ2_S, 256, 82, 1, {0}},
    {TERN_FORMAT_IQ3_XXS, 256, 98, 1, {0}},
    {TERN_FORMAT_IQ3_S, 256, 110, 1, {0}},
    {TERN_FORMAT_Q1_0, 128, 18, 1, {0}},
    {TERN_FORMAT_Q2_0, 64, 18, 1, {0}},
    {TERN_FORMAT_PQ2_0, 128, 34, 1, {0}},
    {TERN_FORMAT_PTQ1_0, 128, 28, 1, {26}},
    {TERN_FORMAT_STQ1_0, 256, 42, 1, {40}},
    {TERN_FORMAT_TQ1_0, 256, 54, 1, {52}},
    {TERN_FORMAT_TQ2_0, 256, 66, 1, {64}},
    {TERN_FORMAT_F16, 1, 2, 1, {0}},
    {TERN_FORMAT_BF16, 1, 2, 1, {0}},
    {TERN_FORMAT_F32, 1, 4, 1, {2 /* the high half */}},
};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

static bool is_ternary(const block *b) {
    return b->format == TERN_FORMAT_TQ1_0 || b->format == TERN_FORMAT_TQ2_0;
}

static bool is_power(const block *b) {
    return b->format == TERN_FORMAT_MXFP4;
}

/* The upper 16 bits of a NaN and of infinities. f16 has other patterns than bf16 and f32. With a
 * power in the lower byte weights would be infinite. */
static uint16_t impossible(const block *b, size_t i) {
    static const uint16_t powers[] = {0x00fd, 0x00fe, 0x00ff, 0xfffd};
    static const uint16_t f16[] = {0x7c00, 0xfc00, 0x7e01, 0xfe00};
    static const uint16_t upper[] = {0x7f80, 0xff80, 0x7fc1, 0xffc0};
    const bool wide = b->format == TERN_FORMAT_BF16 || b->format == TERN_FORMAT_F32;
    return is_power(b) ? powers[i % 4] : wide ? upper[i % 4] : f16[i % 4];
}

static void put(const block *b, uint8_t *at, uint16_t bits) {
    for (unsigned i = 0; i < 4 && b->format == TERN_FORMAT_IQ1_M;
         i++) /* upper bits of four words */
        at[2 * i + 1] = (uint8_t)((bits >> 4 * i & 15) << 4);
    if (b->format != TERN_FORMAT_IQ1_M)
        memcpy(at, &bits, sizeof bits);
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { ROWS = 5, COLS = 512 };

/* Every field of every block is checked, in every requested row and in no other. */
static void test_every_field(void **state) {
    static uint8_t data[ROWS * COLS * 4];
    (void)state;
    for (size_t i = 0; i < BLOCKS; i++) {
        const block *b = &blocks[i];
        const size_t n = COLS / b->cols;
        for (size_t at = 0; at < ROWS * n * b->n; at++) {
            const size_t row = at / b->n / n, k = at / b->n % n;
            char place[64];
            tern_error err = {0};
            memset(data, 0, sizeof data);
            put(b, data + (row * n + k) * b->bytes + b->at[at % b->n], impossible(b, at));
            const char *unit = b->cols == 1 ? "column" : "block";
            snprintf(place, sizeof place, "row %zu, %s %zu", row, unit, k);
            check_case("%s, %s", tern_format_describe(b->format)->name, place);
            assert_int_equal(tern_weight_check(b->format, data, COLS, 0, ROWS, &err),
                             TERN_ERR_TENSOR_DATA);
            if (strncmp(err.message, place, strlen(place)) != 0)
                check_fail("message is: %s", err.message);
            assert_int_equal(tern_weight_check(b->format, data, COLS, 0, row, &err), TERN_OK);
            assert_int_equal(tern_weight_check(b->format, data, COLS, row + 1, ROWS, &err),
                             TERN_OK);
        }
    }
}

/* Zeros of both signs, the largest and the smallest numbers are valid. So is a sign, except in
 * ternary scales. */
static void test_unusual(void **state) {
    static const uint16_t fine[] = {0x0000, 0x8000, 0x7bff, 0x0001};
    static uint8_t data[COLS * 4];
    tern_error err = {0};
    (void)state;
    for (size_t i = 0; i < BLOCKS; i++) {
        const block *b = &blocks[i];
        if (is_power(b)) /* see test_powers */
            continue;
        check_case("%s", tern_format_describe(b->format)->name);
        for (size_t j = 0; j < 4; j++) {
            memset(data, 0xff, sizeof data); /* codes and spare bits do not matter here */
            for (size_t k = 0; k < COLS / b->cols; k++)
                for (size_t f = 0; f < b->n; f++)
                    put(b, data + k * b->bytes + b->at[f], fine[j]);
            assert_int_equal(tern_weight_check(b->format, data, COLS, 0, 1, &err), TERN_OK);
        }
        put(b, data + b->at[0], 0xb800);
        assert_int_equal(tern_weight_check(b->format, data, COLS, 0, 1, &err),
                         is_ternary(b) ? TERN_ERR_TENSOR_DATA : TERN_OK);
    }
    assert_int_equal(tern_weight_check(TERN_FORMAT_TQ2_0, data, COLS, 0, 0, &err), TERN_OK);
    assert_non_null(strstr(err.message, "the scale is -0.5, must be finite and not negative"));
}

/* A power of two is refused from where the largest level is not a finite float. */
static void test_powers(void **state) {
    static uint8_t data[ROWS * COLS / 32 * 17];
    const size_t n = COLS / 32;
    (void)state;
    for (unsigned e = 0; e < 256; e++)
        for (size_t at = 0; at < ROWS * n; at += 7) {
            tern_error err = {0};
            char wanted[96];
            memset(data, 0, sizeof data);
            data[at * 17] = (uint8_t)e;
            const bool fine = isfinite(ldexpf(12.0f, (int)e - 128));
            assert_int_equal(tern_weight_check(TERN_FORMAT_MXFP4, data, COLS, 0, ROWS, &err),
                             fine ? TERN_OK : TERN_ERR_TENSOR_DATA);
            assert_int_equal(tern_weight_check(TERN_FORMAT_MXFP4, data, COLS, 0, at / n, &err),
                             TERN_OK);
            if (fine)
                continue;
            snprintf(wanted, sizeof wanted,
                     "row %zu, block %zu: the scale is 2^%u, must be at most 2^124", at / n, at % n,
                     e - 128);
            assert_string_equal(err.message, wanted);
        }
}

/* ---- models ---------------------------------------------------------------------------------- */

static const block *block_of(const tiny_tensor *t) {
    for (size_t i = 0; i < BLOCKS; i++)
        if (tern_format_describe(blocks[i].format)->gguf_type == t->type)
            return &blocks[i];
    return NULL;
}

/* Opens the file after writing these bits into a field of a block of a row. */
static tern_status open_with(tiny_file *file, const char *name, size_t row, size_t k, size_t field,
                             uint16_t bits, bool exact_head, tern_error *err) {
    const tern_model_params params = {.threads = 2, .exact_head = exact_head};
    const tiny_tensor *t = tiny_find(file, name);
    const block *b = block_of(t);
    uint8_t *at = t->data + (row * (t->ne[0] / b->cols) + k) * b->bytes + b->at[field];
    char path[TINY_PATH_BYTES];
    tern_model *model = NULL;
    const size_t bytes = b->format == TERN_FORMAT_IQ1_M ? 8 : 2;
    uint8_t before[8];
    memcpy(before, at, bytes);
    put(b, at, bits);
    tiny_path(path);
    tiny_write(file, path);
    const tern_status status = tern_model_open(path, &params, &model, err);
    unlink(path);
    memcpy(at, before, bytes);
    if (status != TERN_OK)
        assert_non_null(strstr(err->message, path));
    tern_model_free(&model);
    return status;
}

/* The last block of a matrix, and one in the middle. */
static void check_matrix(tiny_file *file, const char *preset, const tiny_tensor *t, size_t i) {
    const block *b = block_of(t);
    const size_t n = t->ne[0] / b->cols;
    for (size_t j = 0; j < 2; j++) {
        const size_t row = j ? t->ne[1] - 1 : t->ne[1] / 2, k = j ? n - 1 : n / 2;
        char place[128];
        tern_error err = {0};
        snprintf(place, sizeof place, "tensor %s: row %zu, %s %zu", t->name, row,
                 b->cols == 1 ? "column" : "block", k);
        check_case("%s, %s", preset, place);
        const tern_status status =
            open_with(file, t->name, row, k, (i + j) % b->n, impossible(b, i + j), i % 2, &err);
        if (status != TERN_ERR_TENSOR_DATA || strstr(err.message, place) == NULL)
            check_fail("status %d: %s", (int)status, err.message);
    }
}

/* Embedding, head and matrices in blocks; packed or read in place, tied or not. */
static void test_every_matrix(void **state) {
    static const char *const names[] = {"token_embd.weight", "output.weight", "blk.0.attn_q.weight",
                                        "blk.1.ffn_down.weight"};
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        tiny_file file = tiny_read(tiny_presets()[i]);
        for (size_t t = 0; t < file.n; t++)
            for (size_t j = 0; j < sizeof names / sizeof *names; j++)
                if (strcmp(file.tensors[t].name, names[j]) == 0 &&
                    block_of(&file.tensors[t]) != NULL)
                    check_matrix(&file, tiny_presets()[i], &file.tensors[t], i + j);
        tiny_file_free(&file);
    }
}

/* Signs and zeros that quantizers write. */
static void test_legitimate(void **state) {
    static const char *const presets[] = {"llama-tiny-q4_0", "llama-tiny-q8_0", "llama-tiny-q6_k"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tiny_file file = tiny_read(presets[i]);
        tern_error err = {0};
        check_case("%s", presets[i]);
        assert_int_equal(open_with(&file, "blk.0.attn_q.weight", 1, 0, 0, 0xa800, false, &err),
                         TERN_OK);
        assert_int_equal(open_with(&file, "blk.0.attn_q.weight", 1, 0, 0, 0x0000, false, &err),
                         TERN_OK);
        tiny_file_free(&file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field), cmocka_unit_test(test_unusual),
        cmocka_unit_test(test_powers),      cmocka_unit_test(test_every_matrix),
        cmocka_unit_test(test_legitimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
