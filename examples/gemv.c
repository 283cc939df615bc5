/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ternary matrix times a vector with libtern-kernels, compared with a plain product of floats.
 * Valid as C11 and as C++17. CMakeLists.txt beside it uses find_package; without CMake:
 *
 *     cc gemv.c $(pkg-config --cflags --libs tern-kernels) -o gemv
 */
#include <stdio.h>
#include <stdlib.h>

#include <tern/kernels.h>

enum { ROWS = 1000, COLS = 2560 };

static void *take(size_t bytes) {
    void *memory = aligned_alloc(TERN_ALIGN, (bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN);
    if (memory == NULL)
        exit(1);
    return memory;
}

static void check(tern_status status, const tern_error *err) {
    if (status == TERN_OK)
        return;
    fprintf(stderr, "gemv: %s: %s\n", tern_status_str(status), err->message);
    exit(1);
}

/* Returns the mean squared error over the variance of y; docs/numerics.md derives 1.55e-5. */
static double compare_with_floats(const float *w, const float *x, const float *y) {
    static tern_error err;
    float *plain = (float *)take(sizeof(float) * ROWS);
    double variance = 0, mse = 0;
    for (size_t r = 0; r < ROWS; r++) {
        double dot = 0;
        for (size_t k = 0; k < COLS; k++)
            dot += (double)w[r * COLS + k] * x[k];
        plain[r] = (float)dot;
        variance += dot * dot / ROWS;
    }
    check(tern_validate_accuracy(plain, y, ROWS, 3e-5 * variance, &mse, &err), &err);
    return mse / variance;
}

int main(void) {
    static tern_error err;
    float *w = (float *)take(sizeof(float) * ROWS * COLS);
    float *x = (float *)take(sizeof(float) * COLS);
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++)
        w[i] = 0.02f * (float)(rand() % 3 - 1);
    for (size_t k = 0; k < COLS; k++)
        x[k] = 2 * (float)rand() / (float)RAND_MAX - 1;

    /* Select the kernels that this machine runs best. */
    uint64_t mask;
    check(tern_cpu_mask(NULL, NULL, &mask, &err), &err);
    const tern_kernel_row *gemv = tern_kernel_select(mask, TERN_OP_GEMV, TERN_FORMAT_I2_S);
    const tern_kernel_row *quantize =
        tern_kernel_select(mask, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE);

    /*
     * Pack the weights: from floats to the file's format, then to the layout that the kernel reads.
     */
    uint64_t file_bytes;
    check(tern_format_bytes(TERN_FORMAT_I2_S, ROWS, COLS, &file_bytes), &err);
    void *file = take((size_t)file_bytes);
    void *packed = take(tern_packed_bytes(gemv->layout, ROWS, COLS));
    check(tern_quantize_weights(TERN_FORMAT_I2_S, w, ROWS, COLS, file, NULL, &err), &err);
    check(tern_pack_rows(TERN_FORMAT_I2_S, file, ROWS, COLS, gemv->layout, 0, ROWS, packed, &err),
          &err);
    static tern_matrix matrix; /* static: members that are not set are zero, in C and in C++ */
    matrix.format = TERN_FORMAT_I2_S;
    matrix.layout = gemv->layout;
    matrix.rows = ROWS;
    matrix.cols = COLS;
    matrix.scale = tern_format_scale(TERN_FORMAT_I2_S, file, ROWS, COLS);
    matrix.data = packed;

    /* Quantize the vector: int8 and one scale. COLS is a multiple of TERN_Q_PAD already. */
    static tern_activations input;
    int8_t *q = (int8_t *)take(COLS);
    float s;
    int32_t sum;
    quantize->fn.quantize_token(x, COLS, q, &s, &sum);
    input.cols = input.q_stride = COLS;
    input.q = q;
    input.s = &s;
    input.sum = &sum;

    /* Run: token 0, all rows. */
    const tern_tile tile = {0, 1, 0, ROWS};
    float *y = (float *)take(sizeof(float) * ROWS);
    gemv->fn.matmul(&matrix, &input, &tile, y, ROWS);
    printf("%s, tern %s\n", gemv->name, tern_version());
    printf("mean squared error %.2e of the variance\n", compare_with_floats(w, x, y));
    return 0;
}
