/* SPDX-License-Identifier: Apache-2.0 */
#include "receipts/accuracy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chacha.h"
#include "tern/inspect.h"

enum { SEED = 1 };

/* One matrix in one layout, its activations, and both products. */
typedef struct trial {
    const tern_model *model;
    const tern_linear *linear;
    tern_linear_info info;
    const void *file;   /* the matrix in its format's file layout */
    void *reordered;    /* owned; NULL if the file has that layout */
    tern_matrix matrix; /* of `rows` rows */
    void *packed;       /* owned; NULL if the model's own matrix is used */
    size_t rows, cols;
    float *x, *w, *expected, *got;
    int8_t *q;
    float *s, *d;
    int32_t *sum;
    tern_activations input;
} trial;

static void *take(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - TERN_ALIGN)
        return NULL;
    bytes = (bytes + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN;
    void *memory = aligned_alloc(TERN_ALIGN, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

static void trial_free(trial *t) {
    void *const all[] = {t->reordered, t->packed, t->x, t->w, t->expected,
                         t->got,       t->q,      t->s, t->d, t->sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Expands the first rows to floats, with tern_dequantize_row. */
static void expand(trial *t) {
    const tern_format format = t->matrix.format;
    const float one = tern_format_scale(format, t->file, t->info.matrix.rows, t->cols);
    const float *scales = t->info.matrix.row_scale;
    for (size_t r = 0; r < t->rows; r++)
        tern_dequantize_row(format, t->file, t->cols, r, scales != NULL ? scales[r] : one,
                            t->w + r * t->cols);
}

/* Uses the model's own matrix if it has the layout, else packs its first rows. */
static tern_status place(trial *t, tern_layout layout, tern_error *err) {
    t->matrix = t->info.matrix;
    t->matrix.rows = t->rows;
    t->matrix.layout = layout;
    if (layout == t->info.matrix.layout)
        return TERN_OK;
    t->packed = take(tern_packed_bytes(layout, t->rows, t->cols), 1);
    if (t->packed == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to measure accuracy");
    t->matrix.data = t->packed;
    return tern_pack_rows(t->matrix.format, t->file, t->rows, t->cols, layout, 0, t->rows,
                          t->packed, err);
}

/* ---- activations ----------------------------------------------------------------------------- */

static bool allocate(trial *t) {
    const size_t stride = (t->cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const size_t blocks = (t->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    t->x = take(ACCURACY_TOKENS * t->cols, sizeof *t->x);
    t->w = take(t->rows * t->cols, sizeof *t->w);
    t->expected = take(ACCURACY_TOKENS * t->rows, sizeof *t->expected);
    t->got = take(ACCURACY_TOKENS * t->rows, sizeof *t->got);
    t->q = take(ACCURACY_TOKENS * stride, 1);
    t->s = take(ACCURACY_TOKENS, sizeof *t->s);
    t->d = take(ACCURACY_TOKENS * blocks, sizeof *t->d);
    t->sum = take(ACCURACY_TOKENS * blocks, sizeof *t->sum);
    t->input = (tern_activations){.cols = t->cols,
                                  .x = t->x,
                                  .x_stride = t->cols,
                                  .q = t->q,
                                  .q_stride = stride,
                                  .s = t->s,
                                  .sum = t->sum,
                                  .d = t->d,
                                  .block_sum = t->sum,
                                  .d_stride = blocks};
    return t->x != NULL && t->w != NULL && t->expected != NULL && t->got != NULL && t->q != NULL &&
           t->s != NULL && t->d != NULL && t->sum != NULL;
}

/* Makes activations: random sign, magnitude in [0.5, 1), quantized as the layout needs them. */
static void make_activations(trial *t) {
    const tern_input_form form = tern_layout_input(t->matrix.layout);
    const tern_op op = form == TERN_INPUT_TOKEN ? TERN_OP_QUANTIZE_TOKEN : TERN_OP_QUANTIZE_BLOCK;
    const tern_kernel_row *quantize =
        tern_model_select(t->model, op, TERN_FORMAT_NONE, TERN_LAYOUT_NONE);
    tern_chacha random;
    tern_chacha_seed(&random, SEED);
    for (size_t i = 0; i < ACCURACY_TOKENS * t->cols; i++) {
        const double sign = tern_chacha_uniform(&random) < 0.5 ? -1.0 : 1.0;
        t->x[i] = (float)(sign * (0.5 + tern_chacha_uniform(&random) / 2));
    }
    for (size_t i = 0; i < ACCURACY_TOKENS; i++) {
        const float *x = t->x + i * t->cols;
        int8_t *q = t->q + i * t->input.q_stride;
        const size_t block = i * t->input.d_stride;
        if (form == TERN_INPUT_TOKEN)
            quantize->fn.quantize_token(x, t->cols, q, t->s + i, t->sum + i);
        else if (form == TERN_INPUT_BLOCK)
            quantize->fn.quantize_block(x, t->cols, q, t->d + block, t->sum + block);
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void multiply_floats(trial *t) {
    for (size_t i = 0; i < ACCURACY_TOKENS; i++) {
        for (size_t r = 0; r < t->rows; r++) {
            double sum = 0.0;
            for (size_t k = 0; k < t->cols; k++)
                sum += (double)t->w[r * t->cols + k] * (double)t->x[i * t->cols + k];
            t->expected[i * t->rows + r] = (float)sum;
        }
    }
}

/* The mean squared error of outputs that are scaled so that the expected ones have variance 1. */
static double scaled_error(const trial *t) {
    const size_t n = ACCURACY_TOKENS * t->rows;
    double sum = 0.0;
    double squares = 0.0;
    double mse = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)t->expected[i];
        squares += (double)t->expected[i] * (double)t->expected[i];
    }
    const double variance = squares / (double)n - sum / (double)n * (sum / (double)n);
    if (tern_validate_accuracy(t->expected, t->got, n, INFINITY, &mse, NULL) != TERN_OK)
        return (double)NAN;                   /* as one of the outputs is */
    return mse == 0.0 ? 0.0 : mse / variance; /* a matrix of zeros has error and variance 0 */
}

static double row_error(trial *t, const tern_kernel_row *kernel) {
    const tern_tile all = {0, ACCURACY_TOKENS, 0, t->rows};
    kernel->fn.matmul(&t->matrix, &t->input, &all, t->got, t->rows);
    return scaled_error(t);
}

double accuracy_tolerance(const char *name) {
    if (strcmp(name, "f32") == 0 || strcmp(name, "f16") == 0 || strcmp(name, "bf16") == 0)
        return 1e-11;
    /* Rows of weights that are not ternary may all be alike, so errors need not average out:
     * docs/numerics.md, "Accuracy of a model". */
    return strcmp(name, "i2s") == 0 ? 1e-5 : 1e-4;
}

/* Names of ternary products; NULL for other layouts. */
static const char *const ternary[TERN_LAYOUT_COUNT] = {
#define NAME(name, text, family, accuracy, devices) [TERN_LAYOUT_##name] = accuracy,
    TERN_TERNARY_LAYOUT_LIST(NAME)
#undef NAME
};

/* A sparse matrix has the name of the dense one. */
static const char *name_of(tern_layout layout, tern_format format) {
    const tern_format sparse = tern_layout_sparse_format(layout);
    const tern_layout dense = sparse != TERN_FORMAT_NONE ? tern_format_layout(sparse) : layout;
    return ternary[dense] != NULL ? ternary[dense] : tern_format_describe(format)->name;
}

static const tern_kernel_row *kernel_of(const tern_model *m, tern_op op, const tern_matrix *w) {
    return tern_model_select(m, op, w->format, w->layout);
}

static tern_status measure(trial *t, tern_layout layout, accuracy *out, tern_error *err) {
    tern_status status = tern_linear_weights(t->model, t->linear, &t->file, &t->reordered, err);
    if (status == TERN_OK) {
        status = allocate(t) ? place(t, layout, err)
                             : tern_fail(err, TERN_ERR_NOMEM, "no memory to measure accuracy");
    }
    if (status != TERN_OK)
        return status;
    const bool own = layout == t->info.matrix.layout;
    out->gemv = own ? t->info.gemv : kernel_of(t->model, TERN_OP_GEMV, &t->matrix);
    out->gemm = own ? t->info.gemm : kernel_of(t->model, TERN_OP_GEMM, &t->matrix);
    if (out->gemv == NULL || out->gemm == NULL) {
        return tern_fail(err, TERN_ERR_KERNEL, "no kernels to measure the accuracy of %s with",
                         tern_layout_name(layout));
    }
    expand(t);
    make_activations(t);
    multiply_floats(t);
    (void)snprintf(out->name, sizeof out->name, "%s", name_of(layout, t->matrix.format));
    out->tensor = t->info.tensor.data;
    out->tensor_size = t->info.tensor.size;
    out->tolerance = accuracy_tolerance(out->name);
    out->mse = fmax(row_error(t, out->gemv), row_error(t, out->gemm));
    out->passed = out->mse <= out->tolerance;
    return TERN_OK;
}

/* Measures a matrix in a layout unless that name was measured before. */
static tern_status add(const tern_model *model, const tern_linear *linear,
                       const tern_linear_info *info, tern_layout layout, accuracy *out, size_t *n,
                       tern_error *err) {
    const tern_matrix *m = &info->matrix;
    const char *name = name_of(layout, m->format);
    for (size_t i = 0; i < *n; i++)
        if (strcmp(out[i].name, name) == 0)
            return TERN_OK;
    if (*n == ACCURACY_MAX)
        return TERN_OK; /* more formats than exist */
    trial t = {.model = model,
               .linear = linear,
               .info = *info,
               .rows = m->rows < ACCURACY_ROWS ? m->rows : ACCURACY_ROWS,
               .cols = m->cols};
    const tern_status status = measure(&t, layout, &out[*n], err);
    trial_free(&t);
    *n += status == TERN_OK;
    return status;
}

static tern_status add_all(const tern_model *model, const tern_linear *linear,
                           const tern_linear_info *info, accuracy *out, size_t *n,
                           tern_error *err) {
    tern_status status = add(model, linear, info, info->matrix.layout, out, n, err);
    if (tern_layout_input(info->matrix.layout) == TERN_INPUT_TOKEN)
        for (int i = 0; status == TERN_OK && i < TERN_LAYOUT_COUNT; i++)
            if (ternary[i] != NULL)
                status = add(model, linear, info, (tern_layout)i, out, n, err);
    return status;
}

tern_status accuracy_measure(const tern_model *model, accuracy out[ACCURACY_MAX], size_t *n,
                             tern_error *err) {
    const tern_linear *linear;
    tern_status status = TERN_OK;
    *n = 0;
    for (size_t i = 0; status == TERN_OK && (linear = tern_model_linear(model, i)) != NULL; i++) {
        tern_linear_info info;
        tern_linear_describe(model, linear, &info);
        if (info.stage != TERN_STAGE_SCAN) /* only the head itself is measured, not its image */
            status = add_all(model, linear, &info, out, n, err);
    }
    return status;
}
