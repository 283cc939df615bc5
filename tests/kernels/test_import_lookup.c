/* SPDX-License-Identifier: Apache-2.0 */
/* TL1 and TL2 files: published vectors, round trips in every shape, and refusals. */

#include <string.h>

#include "kernels/reference_fill.h"
#include "tern/kernels.h"
#include "tests/support/check.h"

enum { BYTES_MAX = 64 * 512 };

/* ---- vectors ------------------------------------------------------------------------------- */

static uint32_t lcg(uint32_t *state) {
    *state = (*state * 1103515245u + 12345u) & 0x7fffffffu;
    return *state >> 16;
}

/* The vectors' weights as a stream of I2_S codes: 0, 1 or 2 at element e. */
static void vector_stream(size_t elements, uint8_t *stream) {
    const float scale = 0.75f;
    uint32_t state = 12345;

    memset(stream, 0, elements / 4 + 32);
    for (size_t e = 0; e < elements; e++) {
        uint8_t *byte = stream + e / 128 * 32 + e % 32;
        *byte = (uint8_t)(*byte | lcg(&state) % 3 << (6 - 2 * (e % 128 / 32)));
    }
    memcpy(stream + elements / 4, &scale, sizeof scale);
}

static const struct {
    tern_tl_kind kind;
    size_t rows, cols;
    tern_tl_tiles tiles;
    size_t bytes; /* without the scale */
    uint8_t first[8];
    const char *hash;
} vectors[] = {
    {TERN_TL1,
     64,
     128,
     {64, 64, 32},
     2048,
     {0x13, 0x45, 0x73, 0x80, 0x71, 0x81, 0x43, 0x43},
     "a242474e594f160f"},
    {TERN_TL1,
     64,
     256,
     {64, 128, 64},
     4096,
     {0x13, 0x73, 0x71, 0x43, 0x04, 0x48, 0x53, 0x63},
     "03086890a5b2f794"},
    {TERN_TL2,
     64,
     512,
     {32, 96, 32},
     7509,
     {0x99, 0x81, 0xc2, 0x38, 0x90, 0x7a, 0x72, 0x6c},
     "ff8199b2030e1690"},
    {TERN_TL2,
     64,
     512,
     {64, 192, 32},
     7509,
     {0x99, 0x81, 0xc2, 0x38, 0x90, 0x7a, 0x72, 0x6c},
     "644e0852b3aa4313"},
};

static void test_vectors(void **state) {
    uint8_t stream[BYTES_MAX], file[BYTES_MAX], back[BYTES_MAX];
    tern_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const size_t rows = vectors[i].rows, cols = vectors[i].cols;
        size_t bytes;
        float scale;

        check_case("vector %zu", i);
        vector_stream(rows * cols, stream);
        assert_int_equal(
            tern_tl_bytes(vectors[i].kind, rows, cols, &vectors[i].tiles, &bytes, &err), TERN_OK);
        assert_int_equal(bytes, (vectors[i].bytes + 31) / 32 * 32 + 32);
        assert_int_equal(
            tern_tl_export(vectors[i].kind, stream, rows, cols, &vectors[i].tiles, file, &err),
            TERN_OK);
        assert_memory_equal(file, vectors[i].first, 8);
        assert_string_equal(check_hash(file, vectors[i].bytes), vectors[i].hash);
        memcpy(&scale, file + bytes - 32, sizeof scale);
        assert_true(scale == 0.75f);
        assert_int_equal(
            tern_tl_import(vectors[i].kind, file, rows, cols, &vectors[i].tiles, back, &err),
            TERN_OK);
        check_bytes("imported", stream, back, rows * cols / 4 + 4);
    }
}

/* ---- shapes -------------------------------------------------------------------------------- */

static void round_trip(tern_tl_kind kind, size_t rows, size_t cols, tern_tl_tiles tiles) {
    const size_t stream_bytes = rows * cols / 4 + 32;
    uint64_t random = rows + cols;
    size_t bytes;

    check_case("TL%d, %zu x %zu, tiles %u x %u x %u", (int)kind, rows, cols, tiles.rows, tiles.cols,
               tiles.block_rows);
    assert_int_equal(tern_tl_bytes(kind, rows, cols, &tiles, &bytes, NULL), TERN_OK);
    check_buffer stream = check_buffer_new(stream_bytes, 1, CHECK_END);
    check_buffer file = check_buffer_new(bytes, 1, CHECK_END);
    check_buffer back = check_buffer_new(stream_bytes, 1, CHECK_START);
    tern_ref_fill_weights(TERN_FORMAT_I2_S, TERN_REF_FILL_RANDOM, rows, cols, 0.5f, &random,
                          stream.data);
    assert_int_equal(tern_tl_export(kind, stream.data, rows, cols, &tiles, file.data, NULL),
                     TERN_OK);
    assert_int_equal(tern_tl_import(kind, file.data, rows, cols, &tiles, back.data, NULL), TERN_OK);
    check_bytes("codes and scale", stream.data, back.data, rows * cols / 4 + 4);
    check_buffer_free(&stream);
    check_buffer_free(&file);
    check_buffer_free(&back);
}

static void test_shapes(void **state) {
    (void)state;
    round_trip(TERN_TL1, 64, 16, (tern_tl_tiles){32, 16, 32});
    round_trip(TERN_TL1, 320, 640, (tern_tl_tiles){160, 64, 32});
    round_trip(TERN_TL1, 256, 384, (tern_tl_tiles){128, 128, 64});
    round_trip(TERN_TL2, 32, 288, (tern_tl_tiles){32, 24, 32}); /* no pairs */
    round_trip(TERN_TL2, 96, 384, (tern_tl_tiles){32, 192, 32});
    round_trip(TERN_TL2, 320, 1024, (tern_tl_tiles){160, 96, 32});
}

/*
 * The sizes with which microsoft/BitNet generates its kernels for each published model, and so
 * writes files (utils/codegen_tl1.py and codegen_tl2.py, as called by setup_env.py). The lists are
 * as they stand there, with an entry for each shape. bm of TL2 is always 32.
 */
typedef struct published {
    const char *model;
    size_t n, shapes[4][2];
    uint32_t tl1_rows[4], tl1_cols[4], tl1_block_rows[4];
    uint32_t tl2_rows[4], tl2_cols[4];
} published;

static const published published_models[] = {
    {.model = "bitnet_b1_58-large",
     .n = 3,
     .shapes = {{1536, 4096}, {1536, 1536}, {4096, 1536}},
     .tl1_rows = {256, 128, 256},
     .tl1_cols = {128, 64, 128},
     .tl1_block_rows = {32, 64, 32},
     .tl2_rows = {256, 128, 256},
     .tl2_cols = {96, 192, 96}},
    {.model = "bitnet_b1_58-3B",
     .n = 3,
     .shapes = {{3200, 8640}, {3200, 3200}, {8640, 3200}},
     .tl1_rows = {160, 320, 320},
     .tl1_cols = {64, 128, 64},
     .tl1_block_rows = {32, 64, 32},
     .tl2_rows = {160, 320, 320},
     .tl2_cols = {96, 96, 96}},
    {.model = "Llama3-8B-1.58",
     .n = 4,
     .shapes = {{14336, 4096}, {4096, 14336}, {1024, 4096}, {4096, 4096}},
     .tl1_rows = {256, 128, 256, 128},
     .tl1_cols = {128, 64, 128, 64},
     .tl1_block_rows = {32, 64, 32, 64},
     .tl2_rows = {256, 128, 256, 128},
     .tl2_cols = {96, 96, 96, 96}},
};

static void check_known(tern_tl_kind kind, const size_t shape[2], tern_tl_tiles want) {
    tern_error err = {0};
    tern_tl_tiles tiles = {0, 0, 0};
    size_t bytes;

    assert_true(tern_tl_tiles_known(kind, shape[0], shape[1], &tiles));
    assert_int_equal(tiles.rows, want.rows);
    assert_int_equal(tiles.cols, want.cols);
    assert_int_equal(tiles.block_rows, want.block_rows);
    if (tern_tl_bytes(kind, shape[0], shape[1], &tiles, &bytes, &err) != TERN_OK)
        check_fail("%s", err.message);
}

static void test_known_tiles(void **state) {
    tern_tl_tiles tiles;

    (void)state;
    for (size_t m = 0; m < sizeof published_models / sizeof *published_models; m++)
        for (size_t i = 0; i < published_models[m].n; i++) {
            const published *p = &published_models[m];
            check_case("%s, %zu x %zu", p->model, p->shapes[i][0], p->shapes[i][1]);
            check_known(TERN_TL1, p->shapes[i],
                        (tern_tl_tiles){p->tl1_rows[i], p->tl1_cols[i], p->tl1_block_rows[i]});
            check_known(TERN_TL2, p->shapes[i],
                        (tern_tl_tiles){p->tl2_rows[i], p->tl2_cols[i], 32});
        }
    assert_false(tern_tl_tiles_known(TERN_TL1, 2560, 6912, &tiles));
    assert_false(tern_tl_tiles_known(TERN_TL2, 4096, 1024, &tiles)); /* not transposed */
}

static void expect_shape_error(tern_tl_kind kind, size_t rows, size_t cols, tern_tl_tiles tiles) {
    size_t bytes = 7;
    tern_error err = {0};

    check_case("%zu x %zu", rows, cols);
    assert_int_equal(tern_tl_bytes(kind, rows, cols, &tiles, &bytes, &err), TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(bytes, 7);
    assert_non_null(strstr(err.message, "tiles"));
}

static void test_refused_shapes(void **state) {
    size_t bytes;
    const tern_tl_tiles good = {64, 64, 32};

    (void)state;
    expect_shape_error(TERN_TL1, 64, 128, (tern_tl_tiles){64, 64, 16});
    expect_shape_error(TERN_TL1, 64, 128, (tern_tl_tiles){48, 64, 32});
    expect_shape_error(TERN_TL1, 64, 128, (tern_tl_tiles){0, 64, 32});
    expect_shape_error(TERN_TL1, 64, 128, (tern_tl_tiles){64, 0, 32});
    expect_shape_error(TERN_TL1, 96, 128, (tern_tl_tiles){64, 64, 32});
    expect_shape_error(TERN_TL1, 64, 192, (tern_tl_tiles){64, 128, 32});
    expect_shape_error(TERN_TL2, 64, 512, (tern_tl_tiles){32, 100, 32});
    expect_shape_error(TERN_TL2, 64, 128, (tern_tl_tiles){32, 96, 32});
    expect_shape_error(TERN_TL2, 64, 272, (tern_tl_tiles){32, 96, 32});
    expect_shape_error(TERN_TL2, 48, 512, (tern_tl_tiles){32, 96, 32});
    expect_shape_error(TERN_TL1, 64, SIZE_MAX / 2, good);
    assert_int_equal(tern_tl_bytes(TERN_TL1, 64, 128, NULL, &bytes, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_tl_bytes((tern_tl_kind)3, 64, 128, &good, &bytes, NULL), TERN_ERR_ARG);
}

static void test_refused_data(void **state) {
    const tern_tl_tiles tiles = {64, 64, 32};
    uint8_t stream[64 * 128 / 4 + 32], file[64 * 128 / 4 + 32];
    const float bad = -1.0f;
    tern_error err = {0};

    (void)state;
    vector_stream(64 * 128, stream);
    assert_int_equal(tern_tl_export(TERN_TL1, stream, 64, 128, &tiles, file, NULL), TERN_OK);
    file[3] = 0x9f; /* row 3, columns 0 and 2 */
    assert_int_equal(tern_tl_import(TERN_TL1, file, 64, 128, &tiles, stream, &err),
                     TERN_ERR_TENSOR_DATA);
    assert_non_null(strstr(err.message, "row 3, column 0"));
    memcpy(file + 2048, &bad, sizeof bad);
    assert_int_equal(tern_tl_import(TERN_TL1, file, 64, 128, &tiles, stream, &err),
                     TERN_ERR_TENSOR_DATA);
    assert_non_null(strstr(err.message, "scale -1"));
    stream[0] = 0xff;
    assert_int_equal(tern_tl_export(TERN_TL1, stream, 64, 128, &tiles, file, &err),
                     TERN_ERR_TENSOR_DATA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),      cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_known_tiles),  cmocka_unit_test(test_refused_shapes),
        cmocka_unit_test(test_refused_data),
    };
    return cmocka_run_group_tests_name("TL1 and TL2 files", tests, NULL, NULL);
}
