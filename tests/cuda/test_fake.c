/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA device on a fake runtime: each call of the runtime fails in turn, and every time the
 * error comes back with CUDA's words and nothing is left alive.
 */
#include <stdio.h>
#include <string.h>

#include "tests/cuda/emulate.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/device/device_case.h"
#include "tests/support/check.h"

static tern_status open_fake(tern_device **d, tern_error *err) {
    return tern_cuda_open(&tern_fake_cuda, tern_cuda_kernels, tern_cuda_kernel_count, d, err);
}

static void expect_nothing_alive(void) {
    const tern_fake_counts c = tern_fake_look();

    if (c.misuse != NULL)
        check_fail("misuse: %s", c.misuse);
    if (c.memory + c.pinned + c.streams + c.events + c.recordings != 0)
        check_fail("alive: %u memory, %u pinned, %u streams, %u events, %u recordings", c.memory,
                   c.pinned, c.streams, c.events, c.recordings);
}

/* ---- opening ------------------------------------------------------------------------------- */

static void test_open(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    tern_fake_reset();
    assert_int_equal(open_fake(&d, &err), TERN_OK);
    assert_int_equal(d->kind, TERN_DEVICE_CUDA);
    assert_string_equal(d->name, "emulated device");
    tern_device_close(&d);
    expect_nothing_alive();
}

static void test_no_device(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};

    (void)state;
    tern_fake_reset();
    tern_fake_device(0, 9, 0);
    assert_int_equal(open_fake(&d, &err), TERN_ERR_DEVICE);
    assert_null(d);
    assert_string_equal(err.message,
                        "cuda: no device: no CUDA-capable device is detected (error 100)");
    expect_nothing_alive();
}

/* One version below the oldest device that the module has code for, and that device itself. */
static void test_old_device(void **state) {
    enum { MIN = TERN_CUDA_CAPABILITY_MIN };
    static const int old[][2] = {{3, 5}, {6, 2}, {(MIN - 1) / 10, (MIN - 1) % 10}};
    static const int good[][2] = {{MIN / 10, MIN % 10}, {8, 0}, {9, 0}, {12, 1}};
    tern_device *d = NULL;
    tern_error err = {0};
    char least[32];

    (void)state;
    (void)snprintf(least, sizeof least, "%d.%d is the least", MIN / 10, MIN % 10);
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        tern_fake_reset();
        tern_fake_device(1, old[i][0], old[i][1]);
        assert_int_equal(open_fake(&d, &err), TERN_ERR_DEVICE);
        assert_non_null(strstr(err.message, least));
        expect_nothing_alive();
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tern_fake_reset();
        tern_fake_device(1, good[i][0], good[i][1]);
        assert_int_equal(open_fake(&d, &err), TERN_OK);
        tern_device_close(&d);
    }
}

/* ---- failures ------------------------------------------------------------------------------ */

enum { N = 40, ROWS = 20, COLS = 128, BIG = 2 * (1 << 22) + 100 };

/* The caller's objects. The steps release nothing, so that finish() does it after any error. */
typedef struct work {
    tern_device *d;
    tern_device_stream *stream;
    float *x, *y;
    void *big;
    tern_matrix matrix;
    tern_device_recording *recording;
} work;

static const uint8_t *codes(void) { /* a packed matrix with all weights 0 */
    static _Alignas(64) uint8_t bytes[2 * 8 * 64];
    memset(bytes, 0x55, sizeof bytes);
    return bytes;
}

/* x += y on two rows with a number between them, so that each row is launched alone. */
static tern_status add(const work *w, tern_error *err) {
    const tern_device_rows x = {.data = w->x, .stride = N / 2, .n = N / 2 - 1, .rows = 2};
    const tern_device_rows y = {.data = w->y, .stride = N / 2, .n = N / 2 - 1, .rows = 2};

    return w->d->ops->add(w->d, w->stream, &x, &y, err);
}

/* Records x += y, then runs it twice. */
static tern_status add_recorded(work *w, tern_error *err) {
    const tern_device_ops *ops = w->d->ops;
    tern_status status = ops->record(w->d, w->stream, err);

    if (status != TERN_OK)
        return status;
    status = add(w, err);
    const tern_status end =
        ops->end_record(w->d, w->stream, &w->recording, status == TERN_OK ? err : NULL);
    if (status != TERN_OK || end != TERN_OK)
        return status != TERN_OK ? status : end;
    for (int i = 0; status == TERN_OK && i < 2; i++)
        status = ops->replay(w->d, w->stream, w->recording, err);
    return status;
}

/* Opens, allocates, uploads, runs and downloads. Stops at the first error. */
static tern_status steps(work *w, float *result, tern_error *err) {
    static uint8_t big[BIG];
    static const float scales[ROWS];
    const tern_matrix host = {TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16, ROWS, COLS, 1.0f, scales,
                              codes()};
    const tern_device_ops *ops;
    float ones[N];
    tern_status status = open_fake(&w->d, err);

    for (int i = 0; i < N; i++)
        ones[i] = 1.0f;
    if (status != TERN_OK)
        return status;
    ops = w->d->ops;
    if ((status = ops->stream_new(w->d, &w->stream, err)) != TERN_OK ||
        (status = ops->alloc(w->d, sizeof ones, (void **)&w->x, err)) != TERN_OK ||
        (status = ops->alloc(w->d, sizeof ones, (void **)&w->y, err)) != TERN_OK ||
        (status = ops->alloc(w->d, BIG, &w->big, err)) != TERN_OK ||
        (status = ops->upload_matrix(w->d, w->stream, &host, &w->matrix, err)) != TERN_OK ||
        (status = ops->upload(w->d, w->stream, w->big, big, BIG, err)) != TERN_OK ||
        (status = ops->upload(w->d, w->stream, w->x, ones, sizeof ones, err)) != TERN_OK ||
        (status = ops->upload(w->d, w->stream, w->y, ones, sizeof ones, err)) != TERN_OK ||
        (status = add(w, err)) != TERN_OK || (status = add_recorded(w, err)) != TERN_OK ||
        (status = ops->download(w->d, w->stream, big, w->big, BIG, err)) != TERN_OK ||
        (status = ops->download(w->d, w->stream, result, w->x, sizeof ones, err)) != TERN_OK)
        return status;
    return ops->stream_sync(w->d, w->stream, err);
}

/* Cleans up as a caller would, whatever happened before: every call is made, and any may fail. */
static tern_status finish(work *w, tern_error *err) {
    tern_status first = TERN_OK;

    if (w->d == NULL)
        return TERN_OK;
    const tern_device_ops *ops = w->d->ops;
    if (w->stream != NULL)
        first = ops->stream_sync(w->d, w->stream, err);
    const tern_status others[] = {ops->free_recording(w->d, w->recording, err),
                                  ops->free(w->d, w->x, err),
                                  ops->free(w->d, w->y, err),
                                  ops->free(w->d, w->big, err),
                                  ops->free_matrix(w->d, &w->matrix, err),
                                  ops->stream_free(w->d, w->stream, err)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        first = first != TERN_OK ? first : others[i];
    tern_device_close(&w->d);
    return first;
}

static void test_without_failure(void **state) {
    work w = {0};
    tern_error err = {0};
    float result[N] = {0};

    (void)state;
    tern_fake_reset();
    assert_int_equal(steps(&w, result, &err), TERN_OK);
    assert_int_equal(finish(&w, &err), TERN_OK);
    for (int i = 0; i < N; i++)
        assert_true(result[i] == (i % (N / 2) < N / 2 - 1 ? 4.0f : 1.0f));
    assert_int_equal(tern_fake_look().launches, 4); /* two of them recorded, and run twice */
    expect_nothing_alive();
}

/* Fails unless the message has CUDA's text for this error. */
static void expect_message(const tern_error *err, int error) {
    const char *text = tern_fake_cuda.error_text(error);

    if (strncmp(err->message, "cuda: ", 6) != 0 || strstr(err->message, text) == NULL)
        check_fail("the message says: %s", err->message);
}

/* Calls whose failure cannot be reported: those of tern_device_close. */
static unsigned long calls_of_close(void) {
    tern_device *d = NULL;
    tern_error err = {0};

    tern_fake_reset();
    assert_int_equal(open_fake(&d, &err), TERN_OK);
    const unsigned long before = tern_fake_look().calls;
    tern_device_close(&d);
    return tern_fake_look().calls - before;
}

static void fail_each_call(int error, tern_status expected) {
    work w = {0};
    tern_error err = {0};
    float result[N];
    const unsigned long silent = calls_of_close();

    tern_fake_reset();
    assert_int_equal(steps(&w, result, &err), TERN_OK);
    assert_int_equal(finish(&w, &err), TERN_OK);
    const unsigned long total = tern_fake_look().calls;
    assert_true(total > 40);
    for (unsigned long call = 1; call <= total; call++) {
        check_case("call %d of the runtime fails with %d", (int)call, error);
        memset(&w, 0, sizeof w);
        memset(&err, 0, sizeof err);
        tern_fake_reset();
        tern_fake_fail(call, error);
        tern_status status = steps(&w, result, &err);
        const tern_status end = finish(&w, status == TERN_OK ? &err : NULL);
        status = status == TERN_OK ? end : status;
        assert_int_equal(status, call > total - silent ? TERN_OK : expected);
        if (call <= total - silent)
            expect_message(&err, error);
        expect_nothing_alive();
    }
}

static void test_failures(void **state) {
    (void)state;
    fail_each_call(719, TERN_ERR_DEVICE);
    fail_each_call(TERN_CUDA_NO_MEMORY, TERN_ERR_NOMEM);
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* Senseless operands are refused before anything is launched. */
static void test_refused(void **state) {
    tern_device *d = NULL;
    tern_error err = {0};
    float number = 0.0f;
    void *memory = &number;
    tern_device_stream *stream = NULL;
    const tern_device_rows good = {.data = &number, .stride = 1, .n = 1, .rows = 1};
    const tern_device_rows overlapping = {.data = &number, .stride = 1, .n = 2, .rows = 1};
    const tern_tile tile = {0, 1, 0, 16};
    const tern_matrix rows = {TERN_FORMAT_I2_S, TERN_LAYOUT_ROWS, 16, 128, 1.0f, NULL, &number};
    const tern_matrix absent = {TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16, 16, 128, 1.0f, NULL, NULL};
    const int8_t q = 0;
    const int32_t sum = 0;
    const tern_activations x = {.cols = 128, .q = &q, .q_stride = 128, .s = &number, .sum = &sum};
    const tern_activations floats = {.cols = 128, .x = &number, .x_stride = 128};
    const tern_device_watch blind = {.x = good, .group = 1, .limit = 1.0f};
    tern_activations narrow = x;

    (void)state;
    tern_fake_reset();
    narrow.cols = 64;
    assert_int_equal(open_fake(&d, &err), TERN_OK);
    const tern_device_ops *ops = d->ops;
    assert_int_equal(ops->stream_new(d, &stream, &err), TERN_OK);
    assert_int_equal(ops->alloc(d, 0, &memory, &err), TERN_ERR_ARG);
    assert_int_equal(ops->softmax(d, stream, &overlapping, &err), TERN_ERR_ARG);
    assert_int_equal(ops->gemv(d, stream, &rows, &floats, &tile, &number, 16, &err),
                     TERN_ERR_KERNEL);
    assert_string_equal(err.message, "cuda: no kernel for gemv of i2_s in layout rows");
    assert_int_equal(ops->gemv(d, stream, &absent, &x, &tile, &number, 16, &err), TERN_ERR_ARG);
    assert_int_equal(ops->gemm(d, stream, &rows, &narrow, &tile, &number, 16, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "gemm: 128 columns meet 64 activations");
    assert_int_equal(ops->store(d, stream, TERN_FORMAT_Q8_0, &good, &number, 1, &err),
                     TERN_ERR_KERNEL);
    assert_string_equal(err.message, "cuda: no kernel for store of q8_0");
    assert_int_equal(ops->gate(d, stream, TERN_OP_ADD, &good, &good, &good, &err), TERN_ERR_ARG);
    assert_int_equal(ops->watch(d, stream, &blind, &err), TERN_ERR_ARG);
    assert_int_equal(ops->gemv_block_sparse_f32(d, NULL, NULL, NULL, &err), TERN_ERR_UNIMPLEMENTED);
    assert_int_equal(ops->hadamard(d, NULL, NULL, NULL, NULL, 1, NULL, &err), TERN_ERR_UNIMPLEMENTED);
    assert_int_equal(ops->layernorm(d, NULL, NULL, NULL, NULL, 0.0f, NULL, &err), TERN_ERR_UNIMPLEMENTED);
    assert_int_equal(tern_fake_look().launches, 0);
    assert_int_equal(ops->stream_free(d, stream, &err), TERN_OK);
    tern_device_close(&d);
    expect_nothing_alive();
}

/* ---- the emulator itself ------------------------------------------------------------------- */

/* Every CUDA kernel of the table is in the module exactly once, with the table's facts. */
static void test_table(void **state) {
    size_t count;
    size_t found = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (tern_device_of_row(&kernels[i]) != TERN_DEVICE_CUDA)
            continue;
        assert_null(kernels[i].fn.any);
        for (size_t k = 0; k < tern_cuda_kernel_count; k++) {
            const tern_cuda_kernel *kernel = &tern_cuda_kernels[k];
            if (strcmp(kernel->name, kernels[i].name) != 0)
                continue;
            found++;
            assert_int_equal(kernel->op, kernels[i].op);
            assert_int_equal(kernel->format, kernels[i].format);
            assert_int_equal(kernel->layout, kernels[i].layout);
            assert_int_equal(kernel->tokens_tile, kernels[i].tokens_tile);
            assert_non_null(kernel->function);
        }
    }
    assert_int_equal(found, tern_cuda_kernel_count);
    assert_true(found >= 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),           cmocka_unit_test(test_open),
        cmocka_unit_test(test_no_device),       cmocka_unit_test(test_old_device),
        cmocka_unit_test(test_without_failure), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("CUDA device on a fake runtime", tests, NULL, NULL);
}
