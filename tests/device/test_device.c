/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: opening by name, the way back to the processor, and the processor as a device. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"
#include "kernels/reference.h"
#include "tests/device/device_case.h"
#include "tests/kernels/sparse_case.h"
#include "tests/support/check.h"

/* ---- opening ------------------------------------------------------------------------------- */

/* Devices that cannot be had on any machine. */
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
    check_freed(tern_device_close, d);
    assert_null(d);
    tern_device_close(&d);
    tern_device_close(NULL);
}

/* A missing device that was asked for by name is an error. "auto" falls back and says why. */
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

/* A file that is not a module, and a library that is not one of tern's. */
static void test_foreign_modules(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    setenv("TERN_CUDA_MODULE", TERN_SOURCE_DIR "/README.md", 1);
    assert_int_equal(tern_device_open("cuda", &d, &err), TERN_ERR_DEVICE);
    assert_non_null(strstr(err.message, "README.md"));
    setenv("TERN_CUDA_MODULE", "libm.so.6", 1);
    assert_int_equal(tern_device_open("cuda", &d, &err), TERN_ERR_DEVICE);
    assert_string_equal(err.message, "cuda: libm.so.6 is not a module of tern");
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
        ops->multiply(&slot, NULL, NULL, 0, &err),
        ops->quantize_token(&slot, NULL, NULL, NULL, &err),
        ops->quantize_block(&slot, NULL, NULL, NULL, &err),
        ops->rmsnorm(&slot, NULL, NULL, NULL, 0.0f, NULL, &err),
        ops->layernorm(&slot, NULL, NULL, NULL, NULL, 0.0f, NULL, &err),
        ops->hadamard(&slot, NULL, NULL, NULL, NULL, 0, NULL, &err),
        ops->rope(&slot, NULL, NULL, &err),
        ops->attend(&slot, NULL, NULL, &err),
        ops->softmax(&slot, NULL, NULL, &err),
        ops->gate(&slot, NULL, TERN_OP_GATE_SILU, NULL, NULL, NULL, &err),
        ops->add(&slot, NULL, NULL, NULL, &err),
        ops->round(&slot, NULL, TERN_OP_ROUND_FP8, NULL, NULL, &err),
        ops->copy(&slot, NULL, NULL, NULL, &err),
        ops->watch(&slot, NULL, NULL, &err),
        ops->embed(&slot, NULL, NULL, NULL, 1.0f, NULL, &err),
        ops->store(&slot, NULL, TERN_FORMAT_F32, NULL, NULL, 0, &err),
        ops->store_pages(&slot, NULL, NULL, &err),
        ops->attend_pages(&slot, NULL, NULL, &err),
        ops->record(&slot, NULL, &err),
        ops->end_record(&slot, NULL, NULL, &err),
        ops->replay(&slot, NULL, NULL, &err),
        ops->free_recording(&slot, NULL, &err),
        ops->gemv_block_sparse_f32(&slot, NULL, NULL, NULL, &err),
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_int_equal(answers[i], TERN_ERR_UNIMPLEMENTED);
    /* Every entry of the table has been looked up, one pointer each, and then close. */
    assert_int_equal(sizeof answers / sizeof *answers + 1, sizeof *ops / sizeof ops->close);
    ops->close(&slot);
}

/* ---- block-sparse products ----------------------------------------------------------------- */

/* The processor, no device, and a device that does not implement it give the same result. */
static void test_block_sparse(void **state) {
    static sparse_case s;
    tern_device slot = {.ops = &tern_level_zero_ops, .kind = TERN_DEVICE_LEVEL_ZERO};
    tern_device *cpu = NULL;
    tern_error err = {0};
    float want[SPARSE_ROWS];
    float y[SPARSE_ROWS];

    (void)state;
    assert_int_equal(tern_device_open("cpu", &cpu, &err), TERN_OK);
    tern_device *const devices[] = {cpu, NULL, &slot};
    for (uint64_t seed = 0; seed < 8; seed++) {
        check_rng rng = {seed};
        sparse_fill(&s, seed % 2 ? 16 : 5, 16, &rng);
        s.w.bias = seed % 4 < 2 ? s.bias : NULL;
        sparse_expect(&s, want);
        for (int i = 0; i < 3; i++) {
            check_case("block-sparse, seed %d, device %d", (int)seed, i);
            memset(y, 0, sizeof y);
            assert_int_equal(tern_device_gemv_block_sparse_f32(devices[i], &s.w, s.x, y, &err),
                             TERN_OK);
            check_floats("y", want, y, SPARSE_ROWS);
        }
    }
    tern_device_close(&cpu);
}

static void test_block_sparse_refused(void **state) {
    static sparse_case s;
    check_rng rng = {3};
    tern_error err = {0};
    float y[SPARSE_ROWS];

    (void)state;
    sparse_fill(&s, 16, 16, &rng);
    assert_true(s.start[1] >= 2);
    s.start[0] = 1;
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, s.x, y, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemv_block_sparse_f32: the blocks are missing");
    s.start[0] = 0;
    /* Two whole rows of blocks have three starts; what lies behind them is not read. */
    static const uint32_t starts[] = {0, 0, 0, 5};
    const tern_block_sparse whole = {.rows = 32, .cols = 16, .start = starts};
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &whole, s.x, y, &err), TERN_OK);
    static const uint32_t falling[] = {0, 2, 1}, columns[] = {0, 1};
    tern_block_sparse w = s.w;
    w.rows = w.cols = 32;
    w.start = falling;
    w.column = columns;
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &w, s.x, y, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemv_block_sparse_f32: block row 1 ends before it starts");
    w = s.w;
    w.blocks = NULL;
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &w, s.x, y, &err), TERN_ERR_ARG);
    w = s.w;
    w.column = NULL;
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &w, s.x, y, &err), TERN_ERR_ARG);
    w = s.w;
    w.rows = 0;
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &w, s.x, y, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemv_block_sparse_f32: an operand is missing");
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, s.x, NULL, &err), TERN_ERR_ARG);
    s.column[0] = 6; /* valid columns are 0 .. 5 */
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, s.x, y, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemv_block_sparse_f32: block 0 is out of place");
    s.column[0] = s.column[1];
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, s.x, y, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemv_block_sparse_f32: block 1 is out of place");
    assert_int_equal(tern_device_gemv_block_sparse_f32(NULL, &s.w, NULL, y, &err), TERN_ERR_ARG);
}

/* ---- the processor ------------------------------------------------------------------------- */

/* A product in a layout that no kernel reads is refused by the names of both. */
static void test_products_without_kernel(void **state) {
    static const tern_op ops[] = {TERN_OP_GEMV, TERN_OP_GEMM};
    _Alignas(TERN_ALIGN) static float x[2 * TERN_Q_PAD], y[2 * TERN_ROW_GROUP];
    tern_device *cpu = NULL;
    tern_error err = {0};
    size_t refused = 0;
    uint64_t mask = 0;

    (void)state;
    assert_int_equal(tern_device_open("cpu", &cpu, &err), TERN_OK);
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, &err), TERN_OK);
    for (size_t i = 0; i < 2 * TERN_LAYOUT_COUNT; i++) {
        const tern_op op = ops[i % 2];
        const tern_matrix w = {.format = TERN_FORMAT_F32,
                               .layout = (tern_layout)(i / 2),
                               .rows = TERN_ROW_GROUP,
                               .cols = TERN_Q_PAD,
                               .data = x};
        const tern_device_product p = {.w = &w,
                                       .x = {.cols = TERN_Q_PAD, .x = x, .x_stride = TERN_Q_PAD},
                                       .tokens = 1 + i % 2,
                                       .y = y,
                                       .y_stride = TERN_ROW_GROUP};
        const bool there = tern_kernel_select_layout(mask, op, w.format, w.layout) != NULL;
        char wanted[80];
        if (there)
            continue;
        (void)snprintf(wanted, sizeof wanted, "cpu: no kernel for %s in layout %s",
                       tern_op_name(op), tern_layout_name(w.layout));
        assert_int_equal(cpu->ops->multiply(cpu, NULL, &p, 1, &err), TERN_ERR_KERNEL);
        assert_string_equal(err.message, wanted);
        refused++;
    }
    assert_in_range(refused, 1, 2 * TERN_LAYOUT_COUNT - 2);
    tern_device_close(&cpu);
}

/* Each operation without its operands, or of another kind, is refused by its name. */
static void test_missing_operands(void **state) {
    tern_device *cpu = NULL;
    tern_error err = {0};

    (void)state;
    assert_int_equal(tern_device_open("cpu", &cpu, &err), TERN_OK);
    const tern_device_ops *ops = cpu->ops;
#define REFUSES(begin, call)                                                                       \
    do {                                                                                           \
        err = (tern_error){0};                                                                     \
        if ((call) == TERN_OK || err.status == TERN_OK ||                                          \
            strncmp(err.message, begin, sizeof begin - 1) != 0)                                    \
            fail_msg(begin ": %d, '%s'", (int)err.status, err.message);                            \
    } while (0)
    REFUSES("gemv", ops->gemv(cpu, NULL, NULL, NULL, NULL, NULL, 0, &err));
    REFUSES("gemm", ops->gemm(cpu, NULL, NULL, NULL, NULL, NULL, 0, &err));
    REFUSES("multiply", ops->multiply(cpu, NULL, NULL, 0, &err));
    REFUSES("quantize_token", ops->quantize_token(cpu, NULL, NULL, NULL, &err));
    REFUSES("quantize_block", ops->quantize_block(cpu, NULL, NULL, NULL, &err));
    REFUSES("norm", ops->rmsnorm(cpu, NULL, NULL, NULL, 0.0f, NULL, &err));
    REFUSES("norm", ops->layernorm(cpu, NULL, NULL, NULL, NULL, 0.0f, NULL, &err));
    REFUSES("hadamard", ops->hadamard(cpu, NULL, NULL, NULL, NULL, 0, NULL, &err));
    REFUSES("rope", ops->rope(cpu, NULL, NULL, &err));
    REFUSES("attend", ops->attend(cpu, NULL, NULL, &err));
    REFUSES("softmax", ops->softmax(cpu, NULL, NULL, &err));
    REFUSES("gate", ops->gate(cpu, NULL, TERN_OP_GATE_SILU, NULL, NULL, NULL, &err));
    REFUSES("gate: not a gate", ops->gate(cpu, NULL, TERN_OP_ADD, NULL, NULL, NULL, &err));
    REFUSES("add", ops->add(cpu, NULL, NULL, NULL, &err));
    REFUSES("round", ops->round(cpu, NULL, TERN_OP_ROUND_FP8, NULL, NULL, &err));
    REFUSES("round: not a precision", ops->round(cpu, NULL, TERN_OP_ADD, NULL, NULL, &err));
    REFUSES("embed", ops->embed(cpu, NULL, NULL, NULL, 1.0f, NULL, &err));
    REFUSES("store", ops->store(cpu, NULL, TERN_FORMAT_F32, NULL, NULL, 0, &err));
    REFUSES("store_pages", ops->store_pages(cpu, NULL, NULL, &err));
    REFUSES("attend_pages", ops->attend_pages(cpu, NULL, NULL, &err));
    REFUSES("watch", ops->watch(cpu, NULL, NULL, &err));
#undef REFUSES
    tern_device_close(&cpu);
}

/* The processor passes the same comparisons as the CUDA device. */
static void test_cpu(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    assert_int_equal(tern_device_open("cpu", &d, &err), TERN_OK);
    device_run r = device_run_new(d);
    device_check_copies(&r);
    assert_true(device_check_products(&r) > 100);
    device_check_multiply(&r);
    device_check_quantize(&r);
    device_check_norms(&r);
    device_check_elementwise(&r);
    device_check_rope(&r);
    device_check_attend(&r);
    device_check_attend_long(&r);
    device_check_attend_prompt(&r);
    device_check_pages(&r);
    device_check_rounding(&r);
    device_check_embed(&r);
    device_check_store(&r);
    device_check_watch(&r);
    device_check_heads(&r);
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
        cmocka_unit_test(test_products_without_kernel),
        cmocka_unit_test(test_missing_operands),
        cmocka_unit_test(test_cpu),
    };
    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
