/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of sparse blocks: bytes worked out by hand, round trips with blocks of several sizes, every
 * field of the header wrong, every length, and what happens when any single allocation fails.
 */
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/iebs.h"
#include "tern/sparse_file.h"
#include "tests/support/failing_malloc.h"

static char root[] = "/tmp/tern-sparse-file-XXXXXX";

static int make_root(void **state) {
    (void)state;
    return mkdtemp(root) == NULL || chdir(root) != 0;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return chdir("/") + system(command);
}

/* ---- worked by hand -------------------------------------------------------------------------- */

/*
 * 4 x 4 in blocks of 2 x 2: block (0, 1) is [1 2; 3 4], block (1, 0) is [5 0; 0 6]. It is written
 * in version 1 and in the newest version, which states the number of block rows and the bytes of
 * the three parts.
 */
enum {
    WORKED_WORDS = 24,
    WORKED_BYTES = 4 * WORKED_WORDS,
    SIZED_WORDS = 29,
    SIZED_BYTES = 4 * SIZED_WORDS
};

static const float worked_values[] = {1, 2, 3, 4, 5, 0, 0, 6};

static void worked(uint32_t words[WORKED_WORDS]) {
    static const uint32_t head[] = {0x53424549, 1, 4, 4, 2, 2, 2, 0, 0, 0, 0, 0, 1, 2, 1, 0};
    memcpy(words, head, sizeof head);
    memcpy(words + 16, worked_values, sizeof worked_values);
}

static void sized(uint32_t words[SIZED_WORDS]) {
    static const uint32_t head[] = {0x53424549, 3, 4, 4, 2,  2, 2, 0, 0, 2, /* block rows */
                                    12,         0, 8, 0, 32, 0,             /* bytes of parts */
                                    0,          1, 2, 1, 0};
    memcpy(words, head, sizeof head);
    memcpy(words + 21, worked_values, sizeof worked_values);
}

static void put(const char *name, const void *bytes, size_t size) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static void check_file(const char *name, const void *bytes, size_t size) {
    uint8_t found[SIZED_BYTES + 1];
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    assert_int_equal(fread(found, 1, sizeof found, f), size);
    fclose(f);
    assert_memory_equal(found, bytes, size);
}

/* Multiplies all rows by x, with every kernel that this machine runs. */
static void check_product(const tern_block_sparse *w, const float *x, const float *want) {
    size_t count, tried = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    uint64_t mask;
    float y[64];

    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, NULL), TERN_OK);
    for (size_t i = 0; i < count; i++) {
        if (kernels[i].op != TERN_OP_GEMV_SPARSE || kernels[i].fn.any == NULL ||
            kernels[i].needs & ~mask)
            continue;
        check_case("%s", kernels[i].name);
        kernels[i].fn.gemv_sparse(w, x, 0, w->rows, y);
        check_floats("y", want, y, w->rows);
        tried++;
    }
    assert_true(tried > 0);
}

/* The bytes are read, and written again unchanged. */
static void check_worked(const void *bytes, size_t size) {
    static const float x[4] = {1, 1, 1, 1}, y[4] = {3, 7, 5, 6};
    tern_sparse_matrix m;
    put("worked", bytes, size);
    assert_int_equal(tern_sparse_load("worked", &m, NULL), TERN_OK);
    assert_int_equal(m.matrix.rows, 4);
    assert_int_equal(m.matrix.block_cols, 2);
    assert_null(m.matrix.bias);
    check_product(&m.matrix, x, y);
    assert_int_equal(tern_sparse_save(&m, "again", true, NULL), TERN_OK);
    tern_sparse_free(&m);
    assert_null(m.memory);
    check_file("again", bytes, size);
    assert_int_equal(ie_block_sparse_load("again", &m), IE_SPARSE_OK);
    ie_block_sparse_free(&m);
}

static void test_worked(void **state) {
    uint32_t words[WORKED_WORDS], newest[SIZED_WORDS];

    (void)state;
    worked(words);
    sized(newest);
    check_worked(words, sizeof words);
    check_worked(newest, sizeof newest);
}

/* All writers use the newest header. */
static void test_written(void **state) {
    static const bool stored[] = {false, true, true, false};
    static const float dense[] = {0, 0, 1, 2, 0, 0, 3, 4, 5, 0, 0, 0, 0, 6, 0, 0};
    const tern_iebs floats = {.format = TERN_FORMAT_F32,
                              .rows = 4,
                              .cols = 4,
                              .block_rows = 2,
                              .block_cols = 2,
                              .blocks = 2};
    uint32_t words[SIZED_WORDS], out[SIZED_WORDS];
    tern_sparse_matrix m;

    (void)state;
    sized(words);
    assert_int_equal(tern_sparse_new(4, 4, 2, 2, 2, &m, NULL), TERN_OK);
    memcpy(tern_sparse_start(&m), words + 16, 12);
    memcpy(tern_sparse_column(&m), words + 19, 8);
    memcpy(tern_sparse_blocks(&m), worked_values, sizeof worked_values);
    assert_int_equal(tern_sparse_save(&m, "made", true, NULL), TERN_OK);
    tern_sparse_free(&m);
    check_file("made", words, sizeof words);
    assert_int_equal(tern_iebs_bytes(&floats), sizeof words);
    tern_iebs_write(&floats, stored, dense, out);
    assert_memory_equal(out, words, sizeof words);
}

/* ---- round trips ----------------------------------------------------------------------------- */

/* A matrix of 21 x 70 with every other block of each row. */
static tern_sparse_matrix made(uint32_t h, uint32_t w, check_rng *rng) {
    const uint32_t block_rows = (21 + h - 1) / h, columns = (70 + w - 1) / w;
    tern_sparse_matrix m;
    uint32_t n = 0, blocks = 0;
    for (uint32_t i = 0; i < block_rows; i++)
        blocks += (columns + i % 2) / 2;
    assert_int_equal(tern_sparse_new(21, 70, h, w, blocks, &m, NULL), TERN_OK);
    for (uint32_t i = 0; i < block_rows; i++) {
        for (uint32_t j = 1 - i % 2; j < columns; j += 2)
            tern_sparse_column(&m)[n++] = j;
        tern_sparse_start(&m)[i + 1] = n;
    }
    assert_int_equal(n, blocks);
    for (size_t e = 0; e < (size_t)n * h * w; e++)
        tern_sparse_blocks(&m)[e] = check_normal(rng);
    return m;
}

static void test_round_trips(void **state) {
    static const uint32_t sizes[][2] = {{4, 4}, {8, 8}, {16, 64}, {3, 5}, {1, 1}, {64, 128}};
    check_rng rng = {3};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t h = sizes[i][0], w = sizes[i][1];
        tern_sparse_matrix m = made(h, w, &rng), back;
        const size_t blocks = m.matrix.start[(21 + h - 1) / h];
        check_case("blocks of %u x %u", h, w);
        assert_int_equal(tern_sparse_save(&m, "trip", true, NULL), TERN_OK);
        assert_int_equal(tern_sparse_load("trip", &back, NULL), TERN_OK);
        assert_int_equal(back.matrix.block_rows, h);
        assert_memory_equal(back.matrix.start, m.matrix.start, 4 * ((21 + h - 1) / h + 1));
        assert_memory_equal(back.matrix.column, m.matrix.column, 4 * blocks);
        assert_memory_equal(back.matrix.blocks, m.matrix.blocks, 4 * blocks * h * w);
        tern_sparse_free(&m);
        tern_sparse_free(&back);
    }
}

static void test_names(void **state) {
    uint32_t words[WORKED_WORDS];
    tern_sparse_matrix m;
    tern_error err = {0};

    (void)state;
    worked(words);
    put("there", words, sizeof words);
    assert_int_equal(tern_sparse_load("there", &m, NULL), TERN_OK);
    assert_int_equal(tern_sparse_save(&m, "there", false, &err), TERN_ERR_EXISTS);
    tern_sparse_blocks(&m)[0] = 9.0f;
    assert_int_equal(tern_sparse_save(&m, "there", true, NULL), TERN_OK);
    tern_sparse_column(&m)[0] = 2; /* a file that no reader takes is not written */
    assert_int_equal(tern_sparse_save(&m, "there", true, &err), TERN_ERR_TENSOR_DATA);
    assert_int_equal(tern_sparse_save(&m, "none/there", true, &err), TERN_ERR_TENSOR_DATA);
    tern_sparse_column(&m)[0] = 1;
    assert_int_equal(tern_sparse_save(&m, "none/there", true, &err), TERN_ERR_IO);
    tern_sparse_free(&m);
    assert_int_equal(tern_sparse_load("there", &m, NULL), TERN_OK);
    assert_true(m.matrix.blocks[0] == 9.0f);
    tern_sparse_free(&m);
    assert_int_equal(ie_block_sparse_load("missing", &m), IE_SPARSE_ERR_IO);
    assert_int_equal(ie_block_sparse_load(".", &m), IE_SPARSE_ERR_IO);
    assert_int_equal(tern_sparse_load(NULL, &m, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_sparse_new(4, 4, 0, 4, 0, &m, NULL), TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_sparse_new(4, 4, 2, 2, 5, &m, NULL), TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_sparse_new((size_t)1 << 32, 4, 2, 2, 1, &m, NULL), TERN_ERR_TENSOR_SHAPE);
}

/* ---- wrong files ----------------------------------------------------------------------------- */

static void refuse(const void *bytes, size_t size, tern_status want) {
    static const tern_sparse_matrix nothing;
    tern_sparse_matrix m;
    tern_error err = {0};

    put("wrong", bytes, size);
    memset(&m, 0xff, sizeof m);
    if (tern_sparse_load("wrong", &m, &err) != want)
        check_fail("status %d, must be %d: %s", (int)err.status, (int)want, err.message);
    assert_memory_equal(&m, &nothing, sizeof m);
    assert_non_null(strstr(err.message, "wrong: "));
    assert_int_equal(ie_block_sparse_load("wrong", &m), IE_SPARSE_ERR_FORMAT);
}

static void test_fields(void **state) {
    static const struct {
        size_t word;
        uint32_t value;
        tern_status status;
    } wrong[] = {
        {0, 0x53424548, TERN_ERR_TENSOR_DATA},  {1, 0, TERN_ERR_TENSOR_DATA},
        {1, 4, TERN_ERR_TENSOR_DATA},           {1, 2, TERN_ERR_TENSOR_DATA},
        {1, 3, TERN_ERR_TENSOR_RANGE},          {2, 0, TERN_ERR_TENSOR_SHAPE},
        {3, 0, TERN_ERR_TENSOR_SHAPE},          {4, 0, TERN_ERR_TENSOR_SHAPE},
        {5, 0, TERN_ERR_TENSOR_SHAPE},          {2, 5, TERN_ERR_TENSOR_RANGE},
        {2, UINT32_MAX, TERN_ERR_TENSOR_RANGE}, {4, UINT32_MAX, TERN_ERR_TENSOR_RANGE},
        {5, 3, TERN_ERR_TENSOR_RANGE},          {6, 1, TERN_ERR_TENSOR_RANGE},
        {6, 5, TERN_ERR_TENSOR_SHAPE},          {7, 1, TERN_ERR_TENSOR_DATA},
        {7, UINT32_MAX, TERN_ERR_TENSOR_DATA},  {8, 0x3f800000, TERN_ERR_TENSOR_DATA},
        {9, 1, TERN_ERR_TENSOR_DATA},           {10, 1, TERN_ERR_TENSOR_DATA},
        {11, 1, TERN_ERR_TENSOR_DATA},          {12, 3, TERN_ERR_TENSOR_DATA},
        {12, UINT32_MAX, TERN_ERR_TENSOR_DATA}, {13, 1, TERN_ERR_TENSOR_DATA},
        {13, 3, TERN_ERR_TENSOR_DATA},          {14, 2, TERN_ERR_TENSOR_DATA},
        {15, UINT32_MAX, TERN_ERR_TENSOR_DATA}, {16, 0x7f800000, TERN_ERR_TENSOR_DATA},
        {23, 0x7fc00000, TERN_ERR_TENSOR_DATA},
    };
    uint32_t words[WORKED_WORDS];

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_case("word %zu is %u", wrong[i].word, wrong[i].value);
        worked(words);
        words[wrong[i].word] = wrong[i].value;
        refuse(words, sizeof words, wrong[i].status);
    }
}

/* The newest header's sizes, each in both words, and its kinds. */
static void test_sizes(void **state) {
    static const struct {
        size_t word;
        uint32_t value;
        tern_status status;
    } wrong[] = {
        {1, 1, TERN_ERR_TENSOR_DATA},   {1, 2, TERN_ERR_TENSOR_DATA},
        {2, 0, TERN_ERR_TENSOR_SHAPE},  {4, 1, TERN_ERR_TENSOR_RANGE},
        {6, 1, TERN_ERR_TENSOR_RANGE},  {7, 3, TERN_ERR_TENSOR_DATA},
        {7, 1, TERN_ERR_TENSOR_RANGE},  {7, 2, TERN_ERR_TENSOR_SHAPE},
        {8, 1, TERN_ERR_TENSOR_DATA},   {9, 1, TERN_ERR_TENSOR_RANGE},
        {9, 0, TERN_ERR_TENSOR_RANGE},  {10, 8, TERN_ERR_TENSOR_RANGE},
        {11, 1, TERN_ERR_TENSOR_RANGE}, {12, 12, TERN_ERR_TENSOR_RANGE},
        {13, 1, TERN_ERR_TENSOR_RANGE}, {14, 0, TERN_ERR_TENSOR_RANGE},
        {15, 1, TERN_ERR_TENSOR_RANGE}, {16, 1, TERN_ERR_TENSOR_DATA},
    };
    uint32_t words[SIZED_WORDS];

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_case("word %zu is %u", wrong[i].word, wrong[i].value);
        sized(words);
        words[wrong[i].word] = wrong[i].value;
        refuse(words, sizeof words, wrong[i].status);
    }
    sized(words);
    for (size_t n = 1; n < SIZED_BYTES; n++) {
        check_case("%zu bytes", n);
        refuse(words, n, n < TERN_IEBS_HEADER ? TERN_ERR_TRUNCATED : TERN_ERR_TENSOR_RANGE);
    }
}

/* A block row that ends before it starts, columns that do not ascend, and a column that comes
 * twice. */
static void test_order(void **state) {
    uint32_t words[WORKED_WORDS];
    tern_error err = {0};
    tern_iebs view;

    (void)state;
    worked(words);
    words[12] = 3;
    assert_int_equal(tern_iebs_check(words, sizeof words, &view, &err), TERN_ERR_TENSOR_DATA);
    assert_non_null(strstr(err.message, "block row 1 ends"));
    words[12] = 2; /* both blocks in block row 0 */
    refuse(words, sizeof words, TERN_ERR_TENSOR_DATA);
    words[15] = 1;
    refuse(words, sizeof words, TERN_ERR_TENSOR_DATA);
    words[14] = 0;
    put("right", words, sizeof words);
    tern_sparse_matrix m;
    assert_int_equal(tern_sparse_load("right", &m, NULL), TERN_OK);
    tern_sparse_free(&m);
}

static void test_lengths(void **state) {
    uint8_t bytes[WORKED_BYTES + 1] = {0};
    uint32_t words[WORKED_WORDS];

    (void)state;
    worked(words);
    memcpy(bytes, words, sizeof words);
    for (size_t n = 1; n < WORKED_BYTES; n++) {
        check_case("%zu bytes", n);
        refuse(bytes, n, n < TERN_IEBS_OLDER_HEADER ? TERN_ERR_TRUNCATED : TERN_ERR_TENSOR_RANGE);
    }
    refuse(bytes, sizeof bytes, TERN_ERR_TENSOR_RANGE);
}

/* ---- other values ---------------------------------------------------------------------------- */

/* A matrix of 5 x 6 in one block of 8 x 8, of ternary codes and of halves. */
static void test_other_values(void **state) {
    uint32_t words[64] = {0x53424549, 2, 5, 6, 8, 8, 1, 2, 0x40000000, 0, 0, 0, 1, 0};
    uint8_t *const codes = (uint8_t *)words + 64;
    tern_sparse_matrix none;
    tern_iebs m;
    float row[6];

    (void)state;
    memset(codes, 0x55, 16);
    codes[2 * 1 + 0] = 0x58; /* row 1: columns 0, 2, 4, 6 are -1, 1, 0, 0 */
    codes[2 * 1 + 1] = 0x61; /* columns 1, 3, 5, 7 are 0, -1, 1, 0 */
    assert_int_equal(tern_iebs_check(words, 80, &m, NULL), TERN_OK);
    assert_int_equal(tern_iebs_values(&m, 0, 1, NULL), TERN_OK);
    tern_iebs_row(&m, 1, row);
    check_floats("ternary", (const float[]){-2, 0, 2, -2, 0, 2}, row, 6);
    tern_iebs_row(&m, 0, row);
    check_floats("ternary", (const float[]){0, 0, 0, 0, 0, 0}, row, 6);
    put("ternary", words, 80);
    assert_int_equal(tern_sparse_load("ternary", &none, NULL), TERN_ERR_TENSOR_TYPE);
    codes[15] = 0xd5;
    assert_int_equal(tern_iebs_values(&m, 0, 1, NULL), TERN_ERR_TENSOR_DATA);
    ((uint8_t *)words)[60] = 1; /* in the gap before the values */
    assert_int_equal(tern_iebs_check(words, 80, &m, NULL), TERN_ERR_TENSOR_DATA);
    words[15] = 0;
    static const uint32_t scales[] = {0xbf800000, 0x7f800000, 0x7fc00000}; /* -1, infinite, NaN */
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        words[8] = scales[i];
        assert_int_equal(tern_iebs_check(words, 80, &m, NULL), TERN_ERR_TENSOR_DATA);
    }
    words[8] = 0x40000000;
    words[4] = 6; /* not a valid side of ternary blocks */
    assert_int_equal(tern_iebs_check(words, 80, &m, NULL), TERN_ERR_TENSOR_SHAPE);
    words[4] = 8;
    words[7] = 1; /* halves: 64 of them */
    words[8] = 0;
    memset(codes, 0, 16);
    codes[2 * 8] = 0x00; /* row 1, column 0 is 1 */
    codes[2 * 8 + 1] = 0x3c;
    assert_int_equal(tern_iebs_check(words, 192, &m, NULL), TERN_OK);
    tern_iebs_row(&m, 1, row);
    check_floats("halves", (const float[]){1, 0, 0, 0, 0, 0}, row, 6);
}

/*
 * Values of halves and codes begin at the next multiple of 64 bytes, those of floats right after
 * the lists. Every byte of the gap is checked. The matrix has `strips` block rows of one block
 * each.
 */
static void check_begin(tern_format format, uint32_t kind, uint32_t strips) {
    enum { SIDE = 4, MOST = 1 << 12 };
    static _Alignas(64) uint8_t bytes[MOST];
    uint32_t *words = (uint32_t *)(void *)bytes;
    const size_t lists = 44 + 4 * (strips + 1) + 4 * strips;
    const size_t at = kind == 0 ? lists : (lists + 63) / 64 * 64;
    const size_t block = kind == 0 ? 64 : kind == 1 ? 32 : 4;
    const uint32_t head[] = {0x53424549, kind == 0 ? 1 : 2, SIDE * strips, SIDE, SIDE, SIDE, strips,
                             kind};
    tern_iebs m;

    check_case("%u blocks of %s", strips, tern_format_describe(format)->name);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, head, sizeof head);
    for (uint32_t i = 0; i <= strips; i++)
        words[11 + i] = i;
    const size_t size = at + strips * block;
    assert_true(size < MOST);
    assert_int_equal(tern_iebs_check(bytes, size, &m, NULL), TERN_OK);
    assert_int_equal(m.format, format);
    assert_int_equal(tern_iebs_bytes(&m), size);
    assert_int_equal((const uint8_t *)m.values - bytes, at);
    for (size_t i = lists; i < at; i++) {
        bytes[i] = 1;
        assert_int_equal(tern_iebs_check(bytes, size, &m, NULL), TERN_ERR_TENSOR_DATA);
        bytes[i] = 0;
    }
    assert_int_equal(tern_iebs_check(bytes, size + 64, &m, NULL), TERN_ERR_TENSOR_RANGE);
}

static void test_where_values_begin(void **state) {
    (void)state;
    for (uint32_t strips = 1; strips <= 20; strips++) { /* lists of 56 to 208 bytes */
        check_begin(TERN_FORMAT_F32, 0, strips);
        check_begin(TERN_FORMAT_F16, 1, strips);
        check_begin(TERN_FORMAT_I2_S, 2, strips);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Loads and writes. Returns the status of the first call that fails. */
static tern_status load_and_save(void) {
    tern_sparse_matrix m, copy;
    tern_status status = tern_sparse_load("memory", &m, NULL);
    if (status == TERN_OK)
        status = tern_sparse_save(&m, "copy", true, NULL);
    tern_sparse_free(&m);
    if (status == TERN_OK) {
        status = tern_sparse_new(9, 9, 4, 4, 3, &copy, NULL);
        tern_sparse_free(&copy);
    }
    return status;
}

static void test_memory(void **state) {
    uint32_t words[WORKED_WORDS];

    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    worked(words);
    put("memory", words, sizeof words);
    allocations_asked = 0;
    assert_int_equal(load_and_save(), TERN_OK);
    const size_t most = allocations_asked;
    size_t failed = 0;
    assert_true(most > 3);
    for (size_t n = 1; n <= most; n++) {
        const long live = allocations_live;
        check_case("allocation %zu", n);
        (void)unlink("copy");
        allocations_asked = 0;
        allocation_that_fails = n;
        const tern_status status = load_and_save();
        allocation_that_fails = 0;
        assert_true(status == TERN_OK || status == TERN_ERR_NOMEM);
        if (status == TERN_OK) /* the allocation was optional */
            check_file("copy", words, sizeof words);
        failed += status == TERN_ERR_NOMEM;
        assert_int_equal(allocations_live, live);
    }
    assert_true(failed > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked),       cmocka_unit_test(test_written),
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_other_values), cmocka_unit_test(test_where_values_begin),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("files of sparse blocks", tests, make_root, remove_root);
}
