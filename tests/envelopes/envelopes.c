/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AC:5. Accuracy envelopes: how far each product of the kernel table is from a product of floats.
 * docs/numerics.md, "Accuracy", derives the limits and says what is compared with what. The program
 * uses the kernel library alone, through its public header.
 *
 *     tern-envelopes           every product that this machine runs (TERN_ISA restricts it)
 *     tern-envelopes --flip    negates one activation in each token, to show that this is noticed
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tern/kernels.h"

enum { TOKENS = 32, SHAPES = 3, DISTRIBUTIONS = 3 };

/* ---- random numbers ------------------------------------------------------------------------ */

/* splitmix64, as a float in [0, 1). */
static double unit(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static const char *const distribution_names[DISTRIBUTIONS] = {"binade", "uniform", "normal"};

/* binade: either sign, magnitude in [0.5, 1); uniform in [-1, 1); normal with deviation 1. */
static float activation(int distribution, uint64_t *state) {
    const double u = unit(state);
    const double v = unit(state);

    if (distribution == 0)
        return (float)((u < 0.5 ? -1 : 1) * (0.5 + v / 2));
    if (distribution == 1)
        return (float)(2 * u - 1);
    return (float)(sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
}

/* Random weights: -0.02, 0 and 0.02 with equal chances, or uniform in [-1, 1). Columns from `cols`
 * on are 0. */
static void random_weights(bool ternary, size_t rows, size_t cols, size_t stride, float *w,
                           uint64_t *state) {
    for (size_t i = 0; i < rows * stride; i++) {
        const double u = unit(state);
        const float value = ternary ? 0.02f * (float)((int)(3 * u) - 1) : (float)(2 * u - 1);
        w[i] = i % stride < cols ? value : 0.0f;
    }
}

/* y[tokens][rows] = W[rows][stride] * x[tokens][stride], in plain floats. */
static void matvec_f32(const float *w, const float *x, size_t rows, size_t stride, float *y) {
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t r = 0; r < rows; r++) {
            float sum = 0.0f;
            for (size_t k = 0; k < stride; k++)
                sum += w[r * stride + k] * x[t * stride + k];
            y[t * rows + r] = sum;
        }
}

/* ---- limits -------------------------------------------------------------------------------- */

typedef struct shape {
    size_t rows, cols;
} shape;

/*
 * Limits of a family of products, by distribution of the activations. `product` is the error of the
 * product alone, `total` the error including the rounding of the weights; 0: no limit.
 */
typedef struct envelope {
    const char *name;
    shape shapes[SHAPES];
    double product[DISTRIBUTIONS];
    double total[DISTRIBUTIONS];
} envelope;

/* Names of layouts or formats. The first that begins the layout's or the format's name applies. */
static const envelope envelopes[] = {
    {"tl1", {{256, 512}, {250, 500}}, {1e-5, 2e-5, 1e-4}, {1e-5, 2e-5, 1e-4}},
    {"tl2", {{512, 1024}, {500, 1000}, {333, 666}}, {1e-5, 2e-5, 1e-4}, {1e-5, 2e-5, 1e-4}},
    {"i2_s", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 1e-4}, {1e-5, 2e-5, 1e-4}},
    {"q8_0", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {3e-5, 4e-5, 6e-5}},
    {"q4_0", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {6e-3, 6e-3, 6e-3}},
    {"q5_0", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {14e-4, 14e-4, 14e-4}},
    {"q5_1", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {12e-4, 12e-4, 12e-4}},
    {"iq4_nl", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {5e-3, 5e-3, 5e-3}},
    {"mxfp4", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {23e-3, 23e-3, 23e-3}},
    {"nvfp4", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {12e-3, 12e-3, 12e-3}},
    {"q4_1", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {5e-3, 5e-3, 5e-3}},
    {"int4", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {5e-3, 5e-3, 5e-3}},
    {"int8", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {3e-5, 4e-5, 6e-5}},
    {"iq4_xs", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {5e-3, 5e-3, 5e-3}},
    {"q3_k", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {17e-3, 17e-3, 17e-3}},
    {"q2_k", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {6e-2, 6e-2, 6e-2}},
    {"q4_k", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {35e-4, 35e-4, 35e-4}},
    {"q5_k", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {83e-5, 83e-5, 83e-5}},
    {"q6_k", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {22e-5, 22e-5, 24e-5}},
    /* Q1_0 cannot hold 0, so its columns are not padded. */
    {"q1_0", {{128, 256}, {127, 384}, {100, 128}}, {1e-5, 2e-5, 4e-5}, {0.28, 0.28, 0.28}},
    {"q2_0", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {0.28, 0.28, 0.28}},
    {"pq2_0", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {0.28, 0.28, 0.28}},
    /* STQ1_0 holds 0 only in one column of four. */
    {"stq1_0", {{128, 256}, {127, 512}, {100, 256}}, {1e-5, 2e-5, 4e-5}, {0.21, 0.21, 0.21}},
    {"bf16", {{128, 256}, {127, 255}, {100, 200}}, {1e-11, 1e-11, 1e-11}, {4e-6, 4e-6, 4e-6}},
    {"f16", {{128, 256}, {127, 255}, {100, 200}}, {1e-11, 1e-11, 1e-11}, {1e-7, 1e-7, 1e-7}},
    {"f32", {{128, 256}, {127, 255}, {100, 200}}, {1e-11, 1e-11, 1e-11}, {1e-11, 1e-11, 1e-11}},
};

/* Products without an entry are exact in integers, so only their activations limit them. */
static const envelope by_token = {
    "", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 1e-4}, {0}};
static const envelope by_block = {
    "", {{128, 256}, {127, 255}, {100, 200}}, {1e-5, 2e-5, 4e-5}, {0}};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static const envelope *envelope_of(const tern_kernel_row *kernel) {
    for (size_t i = 0; i < sizeof envelopes / sizeof *envelopes; i++)
        if (begins(tern_layout_name(kernel->layout), envelopes[i].name) ||
            begins(tern_format_describe(kernel->format)->name, envelopes[i].name))
            return &envelopes[i];
    return tern_layout_input(kernel->layout) == TERN_INPUT_TOKEN ? &by_token : &by_block;
}

/* ---- one matrix ---------------------------------------------------------------------------- */

/* A matrix in a format and a layout, activations for it, and the results in floats. */
typedef struct trial {
    const tern_kernel_row *kernel; /* one of the kernels that read the layout */
    shape want;
    size_t cols; /* the next width from want.cols on that fits the format */
    float *w;    /* [rows][cols], as drawn */
    float *back; /* the same after quantizing */
    uint8_t *file;
    float *scales; /* one a row, for INT8 */
    void *packed;
    tern_matrix matrix;
    float *x; /* [TOKENS][cols] */
    int8_t *q;
    float *s, *d;
    int32_t *sum;
    tern_activations input;
    float *plain, *exact, *y; /* [TOKENS][rows]: from w, from back, from the kernel */
} trial;

typedef struct tally {
    int rows, failures;
    bool flip;
} tally;

static void *take(size_t bytes) {
    void *memory = aligned_alloc(TERN_ALIGN, (bytes + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN);

    if (memory == NULL) {
        fprintf(stderr, "tern-envelopes: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static void require(tern_status status, const trial *t, const tern_error *err) {
    if (status == TERN_OK)
        return;
    fprintf(stderr, "tern-envelopes: %s, %zu x %zu: %s\n", t->kernel->name, t->want.rows,
            t->want.cols, err->message);
    exit(1);
}

/* INT8 keeps the scales of its rows in a separate array. */
static bool quantize_weights(trial *t) {
    const tern_format format = t->kernel->format;
    const size_t rows = t->want.rows;
    bool lossless = false;
    tern_error err = {0};

    if (format == TERN_FORMAT_INT8) {
        t->scales = take(rows * sizeof *t->scales);
        require(tern_quantize_int8(t->w, rows, t->cols, true, (int8_t *)t->file, t->scales, &err),
                t, &err);
        return false;
    }
    require(tern_quantize_weights(format, t->w, rows, t->cols, t->file, &lossless, &err), t, &err);
    return lossless;
}

/* Quantizes random weights into the format. Ternary ones must come back unchanged. */
static void make_weights(trial *t, uint64_t *state) {
    const tern_format format = t->kernel->format;
    const bool ternary = tern_layout_input(t->kernel->layout) == TERN_INPUT_TOKEN;
    tern_error err = {0};
    uint64_t bytes = 0;

    for (t->cols = t->want.cols; tern_format_bytes(format, t->want.rows, t->cols, &bytes);)
        t->cols++;
    t->w = take(t->want.rows * t->cols * sizeof *t->w);
    t->back = take(t->want.rows * t->cols * sizeof *t->back);
    t->file = take(bytes);
    random_weights(ternary, t->want.rows, t->want.cols, t->cols, t->w, state);
    const bool lossless = quantize_weights(t);
    const float scale = tern_format_scale(format, t->file, t->want.rows, t->cols);
    for (size_t r = 0; r < t->want.rows; r++)
        tern_dequantize_row(format, t->file, t->cols, r, t->scales != NULL ? t->scales[r] : scale,
                            t->back + r * t->cols);
    if (ternary && !lossless)
        require(tern_fail(&err, TERN_ERR_ACCURACY, "ternary weights were changed"), t, &err);
}

static void pack_weights(trial *t) {
    const size_t bytes = tern_packed_bytes(t->kernel->layout, t->want.rows, t->cols);
    tern_error err = {0};

    t->matrix = (tern_matrix){.format = t->kernel->format,
                              .layout = t->kernel->layout,
                              .rows = t->want.rows,
                              .cols = t->cols,
                              .data = t->file};
    t->matrix.row_scale = t->scales;
    t->matrix.scale = tern_format_scale(t->kernel->format, t->file, t->want.rows, t->cols);
    if (t->kernel->layout == TERN_LAYOUT_ROWS)
        return;
    t->matrix.data = t->packed = take(bytes);
    require(tern_pack_rows(t->kernel->format, t->file, t->want.rows, t->cols, t->kernel->layout, 0,
                           t->want.rows, t->packed, &err),
            t, &err);
}

/* --flip adjusts the sums too, so that only the activation is wrong. */
static void quantize_activations(trial *t, uint64_t mask, bool flip) {
    const size_t stride = t->input.q_stride;
    const bool token = tern_layout_input(t->kernel->layout) == TERN_INPUT_TOKEN;
    const tern_op op = token ? TERN_OP_QUANTIZE_TOKEN : TERN_OP_QUANTIZE_BLOCK;
    const tern_kernel_row *quantize = tern_kernel_select(mask, op, TERN_FORMAT_NONE);

    for (size_t i = 0; i < TOKENS; i++) {
        const float *x = t->x + i * t->cols;
        int8_t *q = t->q + i * stride;
        if (token)
            quantize->fn.quantize_token(x, t->cols, q, t->s + i, t->sum + i);
        else
            quantize->fn.quantize_block(x, t->cols, q, t->d + i * t->input.d_stride,
                                        t->sum + i * t->input.d_stride);
        if (!flip)
            continue;
        t->sum[token ? i : i * t->input.d_stride] -= 2 * q[0];
        q[0] = (int8_t)-q[0];
    }
}

static void make_activations(trial *t) {
    const size_t q_stride = (t->cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const size_t blocks = (t->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t outputs = TOKENS * t->want.rows;

    t->x = take(TOKENS * t->cols * sizeof *t->x);
    t->q = take(TOKENS * q_stride);
    t->s = take(TOKENS * sizeof *t->s);
    t->d = take(TOKENS * blocks * sizeof *t->d);
    t->sum = take(TOKENS * blocks * sizeof *t->sum);
    t->plain = take(outputs * sizeof *t->plain);
    t->exact = take(outputs * sizeof *t->exact);
    t->y = take(outputs * sizeof *t->y);
    t->input = (tern_activations){.cols = t->cols,
                                  .x = t->x,
                                  .x_stride = t->cols,
                                  .q = t->q,
                                  .q_stride = q_stride,
                                  .s = t->s,
                                  .sum = t->sum,
                                  .d = t->d,
                                  .block_sum = t->sum,
                                  .d_stride = blocks};
}

static void free_trial(trial *t) {
    void *all[] = {t->w, t->back, t->file, t->scales, t->packed, t->x, t->q,
                   t->s, t->d,    t->sum,  t->plain,  t->exact,  t->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* The mean squared error of y, after scaling `reference` to variance 1. */
static double scaled_mse(const float *reference, const float *y, size_t n) {
    double sum = 0;
    double squares = 0;
    double mse = INFINITY;

    for (size_t i = 0; i < n; i++) {
        sum += (double)reference[i];
        squares += (double)reference[i] * (double)reference[i];
    }
    const double mean = sum / (double)n;
    const double variance = squares / (double)n - mean * mean;
    const tern_status status = tern_validate_accuracy(reference, y, n, INFINITY, &mse, NULL);
    return status == TERN_OK ? mse / variance : INFINITY;
}

static void judge(const trial *t, const tern_kernel_row *kernel, int distribution, const char *what,
                  double mse, double limit, tally *counts) {
    if (limit == 0 || mse <= limit)
        return;
    counts->failures++;
    fprintf(stderr,
            "tern-envelopes: %s, %zu x %zu, %s activations: mean squared error of the %s %.3g is "
            "above %.3g\n",
            kernel->name, t->want.rows, t->want.cols, distribution_names[distribution], what, mse,
            limit);
}

static void measure_row(trial *t, const tern_kernel_row *kernel, const envelope *limits,
                        int distribution, tally *counts) {
    const tern_tile all = {0, TOKENS, 0, t->want.rows};
    const size_t n = TOKENS * t->want.rows;

    kernel->fn.matmul(&t->matrix, &t->input, &all, t->y, t->want.rows);
    const double product = scaled_mse(t->exact, t->y, n);
    const double total = scaled_mse(t->plain, t->y, n);
    printf("%-34s %4zu x %-4zu %4zu  %-8s %9.2e %9.2e\n", kernel->name, t->want.rows, t->want.cols,
           t->cols, distribution_names[distribution], product, total);
    judge(t, kernel, distribution, "product", product, limits->product[distribution], counts);
    judge(t, kernel, distribution, "total", total, limits->total[distribution], counts);
    counts->rows++;
}

static bool is_product(const tern_kernel_row *kernel, uint64_t mask) {
    return (kernel->op == TERN_OP_GEMV || kernel->op == TERN_OP_GEMM) && kernel->fn.any != NULL &&
           (kernel->needs & ~mask) == 0 &&
           tern_layout_sparse_format(kernel->layout) == TERN_FORMAT_NONE; /* sums like dense ones */
}

static bool same_family(const tern_kernel_row *a, const tern_kernel_row *b) {
    return a->format == b->format && a->layout == b->layout;
}

/* Measures all kernels that read the format and the layout of `first`, on one matrix. */
static void measure_shape(const tern_kernel_row *first, shape want, uint64_t mask, tally *counts) {
    const envelope *limits = envelope_of(first);
    uint64_t state = want.rows * 4096 + want.cols;
    trial t = {.kernel = first, .want = want};
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    make_weights(&t, &state);
    pack_weights(&t);
    make_activations(&t);
    for (int d = 0; d < DISTRIBUTIONS; d++) {
        for (size_t i = 0; i < TOKENS * t.cols; i++)
            t.x[i] = i % t.cols < want.cols ? activation(d, &state) : 0.0f;
        matvec_f32(t.w, t.x, want.rows, t.cols, t.plain);
        matvec_f32(t.back, t.x, want.rows, t.cols, t.exact);
        if (tern_layout_input(first->layout) != TERN_INPUT_FLOAT)
            quantize_activations(&t, mask, counts->flip);
        for (size_t i = 0; i < count; i++)
            if (is_product(&kernels[i], mask) && same_family(&kernels[i], first))
                measure_row(&t, &kernels[i], limits, d, counts);
    }
    free_trial(&t);
}

/* True if floats can be quantized to the format. */
static bool has_quantizer(tern_format format) {
    const float zeros[2048] = {0};
    uint8_t file[2048 * 4 + 64];
    const tern_status status = tern_quantize_weights(format, zeros, 8, 256, file, NULL, NULL);

    return format == TERN_FORMAT_INT8 || status != TERN_ERR_TENSOR_TYPE;
}

int main(int argc, char **argv) {
    tally counts = {.flip = argc == 2 && strcmp(argv[1], "--flip") == 0};
    tern_error err = {0};
    uint64_t mask;
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    if (argc > 1 && !counts.flip) {
        fprintf(stderr, "usage: tern-envelopes [--flip]\n");
        return 2;
    }
    if (tern_cpu_mask(NULL, NULL, &mask, &err) != TERN_OK) {
        fprintf(stderr, "tern-envelopes: %s\n", err.message);
        return 1;
    }
    printf("%-34s %-11s held  %-8s   product     total\n", "row", "shape", "inputs");
    for (size_t i = 0; i < count; i++) {
        bool seen = !is_product(&kernels[i], mask);
        for (size_t j = 0; j < i && !seen; j++)
            seen = is_product(&kernels[j], mask) && same_family(&kernels[i], &kernels[j]);
        if (seen)
            continue;
        if (!has_quantizer(kernels[i].format)) {
            printf("%-34s not measured: floats cannot be quantized to %s\n", kernels[i].name,
                   tern_format_describe(kernels[i].format)->name);
            continue;
        }
        for (size_t s = 0; s < SHAPES && envelope_of(&kernels[i])->shapes[s].rows != 0; s++)
            measure_shape(&kernels[i], envelope_of(&kernels[i])->shapes[s], mask, &counts);
    }
    printf("%d measured, %d above their limit\n", counts.rows, counts.failures);
    return counts.failures == 0 && counts.rows > 0 ? 0 : 1;
}
