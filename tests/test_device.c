/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: opening by name, the way back to the processor, and the processor as a device. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"
#include "kernels/reference.h"
#include "tests/device_case.h"

/* ---- opening ------------------------------------------------------------------------------- */

/* A device that cannot be had, whatever this machine has. */
static void hide_cuda(void) {
    setenv("TERN_CUDA_MODULE", "/nonexistent/libtern-cuda.so", 1);
}

static void test_names(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    assert_string_equal(tern_device_name(TERN_DEVICE_CUDA), "cuda");
    assert_null(tern_device_name(TERN_DEVICE_COUNT));
    assert_int_equal(tern_device_open("gpu", &d, &err), TERN_ERR_NAME);
    assert_string_equal(err.message, "unknown device 'gpu' (valid: auto, cpu, cuda, level-zero)");
    assert_null(d);
    assert_int_equal(tern_device_open("cpu", NULL, &err), TERN_ERR_NULL);
    assert_int_equal(tern_device_open("cpu", &d, &err), TERN_OK);
    assert_int_equal(d->kind, TERN_DEVICE_CPU);
    assert_string_equal(d->note, "");
    assert_true(strlen(d->name) > 0);
    tern_device_close(&d);
    assert_null(d);
    tern_device_close(&d);
    tern_device_close(NULL);
}

/* Asked for by name, a device that is not there is an error; "auto" goes on, and says why. */
static void test_fallback(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    hide_cuda();
    assert_int_equal(tern_device_open("cuda", &d, &err), TERN_ERR_DEVICE);
    assert_null(d);
    assert_non_null(strstr(err.message, "cuda: /nonexistent/libtern-cuda.so"));
    const char *const names[] = {"auto", NULL};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tern_device_open(names[i], &d, &err), TERN_OK);
        assert_int_equal(d->kind, TERN_DEVICE_CPU);
        assert_string_equal(d->note, err.message);
        assert_null(strchr(d->note, '\n'));
        tern_device_close(&d);
    }
}

/* A file that is no module, and one of the C library's that is none of tern's. */
static void test_foreign_modules(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    setenv("TERN_CUDA_MODULE", TERN_SOURCE_DIR "/README.md", 1);
    assert_int_equal(tern_device_open("cuda", &d, &err), TERN_ERR_DEVICE);
    assert_non_null(strstr(err.message, "README.md"));
    setenv("TERN_CUDA_MODULE", "libm.so.6", 1);
    assert_int_equal(tern_device_open("cuda", &d, &err), TERN_ERR_DEVICE);
    assert_string_equal(err.message, "cuda: libm.so.6 is no module of tern");
    hide_cuda();
}

/* ---- Level Zero ---------------------------------------------------------------------------- */

static void test_level_zero(void **state) {
    const tern_device_ops *ops = &tern_level_zero_ops;
    tern_device slot = {.ops = ops, .kind = TERN_DEVICE_LEVEL_ZERO};
    tern_device *d = NULL;
    tern_error err = {0};
    void *memory;
    tern_device_stream *stream;

    (void)state;
    assert_int_equal(tern_device_open("level-zero", &d, &err), TERN_ERR_UNIMPLEMENTED);
    assert_string_equal(err.message, "level-zero: open is not implemented");
    assert_null(d);
    const tern_status answers[] = {
        ops->alloc(&slot, 1, &memory, &err),
        ops->free(&slot, NULL, &err),
        ops->stream_new(&slot, &stream, &err),
        ops->stream_free(&slot, NULL, &err),
        ops->stream_sync(&slot, NULL, &err),
        ops->upload(&slot, NULL, NULL, NULL, 0, &err),
        ops->download(&slot, NULL, NULL, NULL, 0, &err),
        ops->upload_matrix(&slot, NULL, NULL, NULL, &err),
        ops->free_matrix(&slot, NULL, &err),
        ops->gemv(&slot, NULL, NULL, NULL, NULL, NULL, 0, &err),
        ops->gemm(&slot, NULL, NULL, NULL, NULL, NULL, 0, &err),
        ops->quantize_token(&slot, NULL, NULL, NULL, &err),
        ops->quantize_block(&slot, NULL, NULL, NULL, &err),
        ops->rmsnorm(&slot, NULL, NULL, NULL, 0.0f, NULL, &err),
        ops->rope(&slot, NULL, NULL, &err),
        ops->attend(&slot, NULL, NULL, &err),
        ops->softmax(&slot, NULL, NULL, &err),
        ops->gate(&slot, NULL, TERN_OP_GATE_SILU, NULL, NULL, 0, NULL, &err),
        ops->add(&slot, NULL, NULL, NULL, 0, &err),
        ops->embed(&slot, NULL, NULL, NULL, NULL, &err),
        ops->store(&slot, NULL, TERN_FORMAT_F32, NULL, NULL, 0, &err),
        ops->gemv_block_sparse_f32(&slot, NULL, NULL, NULL, &err),
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_int_equal(answers[i], TERN_ERR_UNIMPLEMENTED);
    /* every entry of the table has been asked: one pointer each, and close */
    assert_int_equal(sizeof answers / sizeof *answers + 1, sizeof *ops / sizeof ops->close);
    ops->close(&slot);
}

/* ---- block-sparse products ----------------------------------------------------------------- */

enum { SPARSE_ROWS = 37, SPARSE_COLS = 90 };

typedef struct sparse {
    tern_block_sparse w;
    uint32_t start[SPARSE_ROWS + 1];
    uint32_t column[SPARSE_ROWS * SPARSE_COLS];
    float blocks[64 * 4 * 4 * SPARSE_ROWS]; /* of any size below, with what lies past the edge */
    float dense[SPARSE_ROWS * SPARSE_COLS];
    float x[SPARSE_COLS];
    float bias[SPARSE_ROWS];
} sparse;

/* About half of the blocks of h x w; what lies past the matrix's edge is NaN, which must not be
 * read. */
static void sparse_fill(sparse *s, uint32_t h, uint32_t w, check_rng *rng) {
    uint32_t n = 0;

    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i * h < SPARSE_ROWS; i++) {
        for (uint32_t j = 0; j * w < SPARSE_COLS; j++) {
            if (check_below(rng, 2) == 0)
                continue;
            s->column[n] = j;
            assert_true((n + 1) * h * w <= sizeof s->blocks / sizeof *s->blocks);
            for (uint32_t e = 0; e < h * w; e++) {
                const uint32_t r = i * h + e / w;
                const uint32_t k = j * w + e % w;
                const bool inside = r < SPARSE_ROWS && k < SPARSE_COLS;
                s->blocks[n * h * w + e] = inside ? check_normal(rng) : (float)NAN;
                if (inside)
                    s->dense[r * SPARSE_COLS + k] = s->blocks[n * h * w + e];
            }
            n++;
        }
        s->start[i + 1] = n;
    }
    for (int k = 0; k < SPARSE_COLS; k++)
        s->x[k] = k % 7 == 0 ? -0.0f : check_normal(rng);
    for (int r = 0; r < SPARSE_ROWS; r++)
        s->bias[r] = check_normal(rng);
    s->w =
        (tern_block_sparse){SPARSE_ROWS, SPARSE_COLS, s->start, s->column, s->blocks, NULL, h, w};
    if (h == 16 && w == 16)
        s->w.block_rows = s->w.block_cols = 0; /* the usual size */
}

/* The dense product of the reference. */
static void sparse_expect(const sparse *s, float *want) {
    const tern_ref_matrix dense = {
        .format = TERN_FORMAT_F32, .file = s->dense, .rows = SPARSE_ROWS, .cols = SPARSE_COLS};
    const tern_activations x = {.cols = SPARSE_COLS, .x = s->x, .x_stride = SPARSE_COLS};
    const tern_tile all = {0, 1, 0, SPARSE_ROWS};

    tern_ref_matmul(&dense, &x, &all, want, SPARSE_ROWS);
    for (int r = 0; r < SPARSE_ROWS && s->w.bias != NULL; r++)
        want[r] += s->w.bias[r];
}

/* On the processor, on none, and on a device that does not implement it: the same. */
static void test_block_sparse(void **state) {
    static sparse s;
    tern_device slot = {.ops = &tern_level_zero_ops, .kind = TERN_DEVICE_LEVEL_ZERO};
    tern_device *cpu = NULL;
    tern_error err = {0};
    float want[SPARSE_ROWS];
    float y[SPARSE_ROWS];

    (void)state;
    assert_int_equal(tern_device_open("cpu", &cpu, &err), TERN_OK);
    tern_device *const devices[] = {cpu, NULL, &slot};
    static const uint32_t sizes[][2] = {{16, 16}, {4, 4},  {1, 1},   {8, 32}, {32, 8},
                                        {3, 5},   {1, 90}, {37, 16}, {64, 4}, {5, 100}};
    for (uint64_t seed = 0; seed < 80; seed++) {
        const uint32_t *size = sizes[seed % 10];
        check_rng rng = {seed};
        sparse_fill(&s, size[0], size[1], &rng);
        s.w.bias = seed % 4 < 2 ? s.bias : NULL;
        sparse_expect(&s, want);
        for (int i = 0; i < 3; i++) {
            check_case("block-sparse, blocks of %u x %u, seed %d, device %d", size[0], size[1],
                       (int)seed, i);
            memset(y, 0, sizeof y);
            assert_int_equal(tern_device_gemv_block_sparse_f32(devices[i], &s.w, s.x, y, &err),
                             TERN_OK);
            check_floats("y", want, y, SPARSE_ROWS);
        }
    }
    tern_device_close(&cpu);
}

static void test_block_sparse_refused(void **state) {
    static sparse s;
    check_rng rng = {3};
    tern_error err = {0};
    float y[SPARSE_ROWS];

    (void)state;
    sparse_fill(&s, 16, 16, &rng);
    assert_true(s.start[1] >= 2);
    s.column[0] = 6; /* 0 .. 5 are there */
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, s.x, y, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemv_block_sparse_f32: block 0 is out of place");
    s.column[0] = s.column[1];
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, s.x, y, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemv_block_sparse_f32: block 1 is out of place");
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, NULL, y, &err), TERN_ERR_ARG);
}

/* ---- the processor ------------------------------------------------------------------------- */

/* The same comparisons that the CUDA device has to pass. */
static void test_cpu(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    assert_int_equal(tern_device_open("cpu", &d, &err), TERN_OK);
    device_run r = device_run_new(d);
    device_check_copies(&r);
    assert_true(device_check_products(&r) > 100);
    device_check_quantize(&r);
    device_check_norms(&r);
    device_check_elementwise(&r);
    device_check_rope(&r);
    device_check_attend(&r);
    device_check_embed(&r);
    device_check_store(&r);
    device_run_free(&r);
    tern_device_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_fallback),
        cmocka_unit_test(test_foreign_modules),
        cmocka_unit_test(test_level_zero),
        cmocka_unit_test(test_block_sparse),
        cmocka_unit_test(test_block_sparse_refused),
        cmocka_unit_test(test_cpu),
    };
    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
