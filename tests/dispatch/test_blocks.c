/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse blocks that are made dense at load: the bytes of the dense matrix in every layout and in
 * any pieces, the share of stored blocks from which on it happens, and invalid values.
 */
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/sparse_limit.h"
#include "kernels/iebs.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/model/load/dense_blocks.h"

/* A matrix in which every block, or every third one, is stored. */
typedef struct made {
    float *weights;
    uint8_t *bytes;
    tern_gguf_tensor tensor;
    tern_iebs form;
} made;

static uint8_t *memory_of(size_t size) {
    uint8_t *memory = aligned_alloc(TERN_ALIGN, (size + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN);
    assert_non_null(memory);
    memset(memory, 0xa5, size);
    return memory;
}

static float weight_of(tern_format format, check_rng *rng) {
    const int number = (int)check_below(rng, 1001) - 500;
    return format == TERN_FORMAT_I2_S ? 0.375f * (float)((number > 100) - (number < -100))
                                      : (float)number * 0x1p-9f;
}

static made make(tern_format format, size_t rows, size_t cols, uint32_t h, uint32_t w,
                 size_t every) {
    made m = {.form = {.format = format,
                       .rows = (uint32_t)rows,
                       .cols = (uint32_t)cols,
                       .block_rows = h,
                       .block_cols = w,
                       .scale = format == TERN_FORMAT_I2_S ? 0.375f : 1.0f}};
    check_rng rng = {5};
    const size_t columns = tern_iebs_block_columns(&m.form);
    const size_t places = columns * tern_iebs_block_rows(&m.form);
    bool *stored = calloc(places, sizeof *stored);
    m.weights = calloc(rows * cols, sizeof *m.weights);
    assert_non_null(stored);
    assert_non_null(m.weights);
    for (size_t i = 0; i < places; i += every) {
        stored[i] = true;
        m.form.blocks++;
    }
    for (size_t i = 0; i < rows * cols; i++)
        if (stored[i / cols / h * columns + i % cols / w])
            m.weights[i] = weight_of(format, &rng);
    const size_t size = (size_t)tern_iebs_bytes(&m.form);
    m.bytes = memory_of(size);
    tern_iebs_write(&m.form, stored, m.weights, m.bytes);
    m.tensor = (tern_gguf_tensor){
        .type = TERN_GGUF_SPARSE_TYPE, .ne = {cols, rows, 1, 1}, .bytes = size, .data = m.bytes};
    free(stored);
    return m;
}

static void made_free(made *m) {
    free(m->weights);
    free(m->bytes);
}

/* ---- the same bytes -------------------------------------------------------------------------- */

/* Bytes of the dense matrix in a layout. The caller frees them. */
static uint8_t *dense_of(const made *m, tern_layout layout, size_t *size) {
    const size_t rows = m->form.rows, cols = m->form.cols;
    uint64_t bytes;
    assert_int_equal(tern_format_bytes(m->form.format, rows, cols, &bytes), TERN_OK);
    uint8_t *file = memory_of((size_t)bytes);
    assert_int_equal(
        tern_quantize_weights(m->form.format, m->weights, rows, cols, file, NULL, NULL), TERN_OK);
    *size = (size_t)bytes;
    if (layout == TERN_LAYOUT_ROWS)
        return file;
    *size = tern_packed_bytes(layout, rows, cols);
    uint8_t *packed = memory_of(*size);
    assert_int_equal(
        tern_pack_rows(m->form.format, file, rows, cols, layout, 0, rows, packed, NULL), TERN_OK);
    free(file);
    return packed;
}

static void check_layout(const made *m, tern_layout layout, size_t piece) {
    const tern_matrix matrix = {
        .format = m->form.format, .layout = layout, .rows = m->form.rows, .cols = m->form.cols};
    size_t size;
    check_case("%s in %s, %u x %u in pieces of %zu rows", tern_format_describe(matrix.format)->name,
               tern_layout_name(layout), m->form.rows, m->form.cols, piece);
    uint8_t *want = dense_of(m, layout, &size), *got = memory_of(size);
    for (size_t r = 0; r < matrix.rows; r += piece) {
        const size_t end = matrix.rows - r < piece ? matrix.rows : r + piece;
        assert_int_equal(tern_blocks_make_dense(&m->tensor, &matrix, r, end, got, NULL), TERN_OK);
    }
    assert_memory_equal(got, want, size);
    free(want);
    free(got);
}

static void test_same_bytes(void **state) {
    static const tern_layout ternary[] = {
#define LAYOUT(NAME, ...) TERN_LAYOUT_##NAME,
        TERN_TERNARY_LAYOUT_LIST(LAYOUT)
#undef LAYOUT
    };
    (void)state;
    for (size_t piece = 16; piece <= 48; piece += 16) {
        for (tern_format format = TERN_FORMAT_F32; format <= TERN_FORMAT_F16; format++) {
            made m = make(format, 53, 71, 5, 7, 3); /* blocks and strips end in different rows */
            check_layout(&m, TERN_LAYOUT_ROWS, piece);
            made_free(&m);
        }
        for (size_t i = 0; i < sizeof ternary / sizeof *ternary; i++) {
            made m = make(TERN_FORMAT_I2_S, 53, 384, 32, 64, 3);
            check_layout(&m, ternary[i], piece);
            made_free(&m);
        }
    }
}

/* ---- the limit ------------------------------------------------------------------------------- */

static void check_share(tern_format format, const char *isa, size_t cols, size_t every, bool want) {
    const tern_kernel_row kernel = {
        .isa = isa, .op = TERN_OP_GEMV, .layout = tern_format_sparse_layout(format)};
    made m = make(format, 32, cols, 16, 64, every);
    check_case("%s %s, %u blocks", isa, tern_format_describe(format)->name, m.form.blocks);
    assert_int_equal(tern_blocks_want_dense(&m.tensor, &kernel), want);
    made_free(&m);
}

static void test_share(void **state) {
    (void)state;
    check_share(TERN_FORMAT_F32, "avx2", 1024, 1, true); /* all blocks are stored */
    check_share(TERN_FORMAT_F32, "avx2", 1024, 2, false);
    check_share(TERN_FORMAT_I2_S, "avx2", 1024, 1, true);
    check_share(TERN_FORMAT_I2_S, "avx2", 1024, 2, false);
    check_share(TERN_FORMAT_I2_S, "avx2", 1024 + 64, 1, false); /* a row of it cannot be I2_S */
    check_share(TERN_FORMAT_F32, "a set that nobody measured", 1024, 1, false);
}

/* Every kernel has a limit, and some limits are below 100 %. */
static void test_limits(void **state) {
    size_t count, sparse = 0, below = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (kernels[i].op != TERN_OP_GEMV ||
            tern_layout_sparse_format(kernels[i].layout) == TERN_FORMAT_NONE)
            continue;
        check_case("%s", kernels[i].name);
        assert_in_range(tern_sparse_limit(&kernels[i]), 50, 100);
        sparse++;
        below += tern_sparse_limit(&kernels[i]) < 100;
    }
    assert_true(sparse > 10);
    assert_true(below > 2);
}

/* A writer keeps as many blocks sparse as pay on at least one instruction set, and no more. */
static void test_pay_somewhere(void **state) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    static const tern_format formats[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_I2_S};
    unsigned most[3] = {0};
    (void)state;
    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; i < count; i++) { /* ARM was not measured */
            const unsigned limit = tern_sparse_limit(&kernels[i]);
            if (kernels[i].op == TERN_OP_GEMV && strncmp(kernels[i].isa, "neon", 4) != 0 &&
                kernels[i].layout == tern_format_sparse_layout(formats[f]))
                most[f] = limit > most[f] ? limit : most[f];
        }
        check_case("%s", tern_format_describe(formats[f])->name);
        assert_int_equal(tern_sparse_limit_anywhere(formats[f]), most[f]);
        tern_iebs form = {.format = formats[f],
                          .rows = 160,
                          .cols = 640,
                          .block_rows = 16,
                          .block_cols = 64,
                          .blocks = most[f]};
        assert_true(tern_blocks_pay_somewhere(&form));
        form.blocks++;
        assert_false(tern_blocks_pay_somewhere(&form));
    }
    assert_true(most[2] < 100);
    assert_int_equal(tern_sparse_limit_anywhere(TERN_FORMAT_Q8_0), 100);
}

/* ---- invalid values -------------------------------------------------------------------------- */

/* An invalid value is noticed in the piece in which its block begins. */
static void test_values(void **state) {
    const uint32_t infinite = 0x7f800000;
    made m = make(TERN_FORMAT_F32, 48, 64, 16, 64, 1);
    const tern_matrix matrix = {
        .format = TERN_FORMAT_F32, .layout = TERN_LAYOUT_ROWS, .rows = 48, .cols = 64};
    uint8_t *got = memory_of(48 * 64 * sizeof(float));
    (void)state;
    memcpy(m.bytes + m.tensor.bytes - 4, &infinite, sizeof infinite);
    assert_int_equal(tern_blocks_make_dense(&m.tensor, &matrix, 0, 32, got, NULL), TERN_OK);
    assert_int_equal(tern_blocks_make_dense(&m.tensor, &matrix, 32, 48, got, NULL),
                     TERN_ERR_TENSOR_DATA);
    free(got);
    made_free(&m);
    m = make(TERN_FORMAT_I2_S, 48, 128, 16, 64, 1);
    m.bytes[m.tensor.bytes - 1] = 0xff; /* code 3 */
    got = memory_of(tern_packed_bytes(TERN_LAYOUT_T2R16, 48, 128));
    const tern_matrix ternary = {
        .format = TERN_FORMAT_I2_S, .layout = TERN_LAYOUT_T2R16, .rows = 48, .cols = 128};
    assert_int_equal(tern_blocks_make_dense(&m.tensor, &ternary, 32, 48, got, NULL),
                     TERN_ERR_TENSOR_DATA);
    free(got);
    made_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_share),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_pay_somewhere),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
