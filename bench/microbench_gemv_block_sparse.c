/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense against sparse products of one token, from memory: for f32, f16 and ternary weights, every
 * instruction set that this machine runs, and several shares of stored blocks.
 *   microbench_gemv_block_sparse [--check | --json] [--type f32|f16|i2_s] [ROWS COLS]
 * --check: small matrices, one product each; fails if results differ at all. At the end the program
 * prints the largest share at which sparse products are no slower (dispatch/sparse_limit.c).
 * --type: only one kind of weights, for a machine that is quiet for a minute only.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "bench/commit.h"
#include "dispatch/cpu.h"
#include "kernels/iebs.h"
#include "kernels/reference_fill.h"

enum { BLOCK_ROWS = 16, BLOCK_COLS = 64, MAX_COPIES = 1024 };

static const unsigned densities[] = {0, 10, 25, 40, 50, 60, 70, 75, 80, 85, 90, 95, 100};
enum { DENSITIES = sizeof densities / sizeof *densities, MAX_LIMITS = 64 };

/* The largest share of stored blocks at which a sparse product is no slower than a dense one. */
typedef struct limit {
    const char *isa;
    tern_format format;
    unsigned percent;
    bool ended; /* a larger share was slower */
} limit;

/* The measurement that was asked for, and its memory. */
typedef struct trial {
    size_t rows, cols;
    bool check; /* one product of each kind */
    bool json;
    tern_format format;
    float *weights, *x, *y, *want;
    int8_t *q;
    float s;
    int32_t sum;
    bool *stored;
    tern_activations input;
    limit limits[MAX_LIMITS];
    size_t n_limits, n_products;
} trial;

/* Bytes that exceed every cache, so that reading them all in turn always reads memory. */
static size_t beyond_caches(void) {
    const size_t least = (size_t)128 << 20, twice = 2 * (size_t)tern_cpu_cache_bytes();
    return twice > least ? twice : least;
}

/* A matrix in so many copies that no cache still holds a copy when its turn comes again. */
typedef struct copies {
    uint8_t *memory;
    size_t bytes, n, next;
    tern_matrix matrix;
} copies;

static void *take(size_t bytes) {
    void *memory = aligned_alloc(TERN_ALIGN, (bytes + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN);
    if (memory == NULL) {
        fprintf(stderr, "microbench_gemv_block_sparse: no memory for %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Fills `percent` of the blocks, chosen at random, with weights; all others are 0. */
static tern_iebs fill(trial *t, unsigned percent) {
    tern_iebs m = {.format = t->format,
                   .rows = (uint32_t)t->rows,
                   .cols = (uint32_t)t->cols,
                   .block_rows = BLOCK_ROWS,
                   .block_cols = BLOCK_COLS,
                   .scale = 1.0f};
    const size_t columns = tern_iebs_block_columns(&m);
    const size_t places = tern_iebs_block_rows(&m) * columns;
    uint64_t random = 1;
    for (size_t i = 0; i < places; i++) {
        t->stored[i] = tern_ref_random(&random) % 100 < percent;
        m.blocks += t->stored[i];
    }
    for (size_t i = 0; i < t->rows * t->cols; i++) {
        const size_t place = i / t->cols / BLOCK_ROWS * columns + i % t->cols / BLOCK_COLS;
        const int number = (int)(tern_ref_random(&random) >> 33) % 1001 - 500;
        const float weight = t->format == TERN_FORMAT_I2_S
                                 ? (float)(number % 3 > 0) - (float)(number % 3 < 0)
                                 : (float)number * 0x1p-9f;
        t->weights[i] = t->stored[place] ? weight : 0.0f;
    }
    if (percent > 0 && t->format == TERN_FORMAT_I2_S && t->stored[0])
        t->weights[0] = 1.0f;
    return m;
}

static void multiply_places(const trial *t, copies *c) {
    const size_t room = t->check ? c->bytes : beyond_caches();
    c->n = c->bytes > 0 && room / c->bytes > 1 ? room / c->bytes : 1;
    c->n = c->n > MAX_COPIES ? MAX_COPIES : c->n;
    uint8_t *memory = take(c->n * ((c->bytes + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN));
    for (size_t i = 0; i < c->n; i++)
        memcpy(memory + i * ((c->bytes + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN), c->memory,
               c->bytes);
    free(c->memory);
    c->memory = memory;
}

static copies sparse_copies(const trial *t, const tern_iebs *m) {
    copies c = {.bytes = (size_t)tern_iebs_bytes(m)};
    c.memory = take(c.bytes);
    tern_iebs_write(m, t->stored, t->weights, c.memory);
    c.matrix = (tern_matrix){.format = t->format,
                             .layout = tern_format_sparse_layout(t->format),
                             .rows = t->rows,
                             .cols = t->cols,
                             .scale = 1.0f};
    multiply_places(t, &c);
    return c;
}

static copies dense_copies(const trial *t) {
    const tern_layout layout = tern_format_layout(t->format);
    const size_t packed = tern_packed_bytes(layout, t->rows, t->cols);
    uint64_t bytes = 0;
    if (tern_format_bytes(t->format, t->rows, t->cols, &bytes) != TERN_OK)
        exit(EXIT_FAILURE);
    uint8_t *file = take((size_t)bytes);
    copies c = {.bytes = packed > 0 ? packed : (size_t)bytes};
    c.memory = packed > 0 ? take(packed) : file;
    if (tern_quantize_weights(t->format, t->weights, t->rows, t->cols, file, NULL, NULL) !=
            TERN_OK ||
        (packed > 0 && tern_pack_rows(t->format, file, t->rows, t->cols, layout, 0, t->rows,
                                      c.memory, NULL) != TERN_OK))
        exit(EXIT_FAILURE);
    c.matrix = (tern_matrix){
        .format = t->format, .layout = layout, .rows = t->rows, .cols = t->cols, .scale = 1.0f};
    if (packed > 0)
        free(file);
    multiply_places(t, &c);
    return c;
}

/* ---- products -------------------------------------------------------------------------------- */

/* Nanoseconds of a product: the fastest of several. */
static double measure(const trial *t, copies *c, const tern_kernel_row *kernel, float *y) {
    const tern_tile all = {0, 1, 0, t->rows};
    const size_t stride = (c->bytes + TERN_ALIGN) / TERN_ALIGN * TERN_ALIGN;
    const size_t rounds = t->check ? 1 : c->n < 12 ? 12 : c->n;
    double best = INFINITY;
    for (size_t i = 0; i < rounds; i++) {
        c->matrix.data = c->memory + c->next * stride;
        c->next = (c->next + 1) % c->n;
        const double begin = tern_clock_seconds();
        kernel->fn.matmul(&c->matrix, &t->input, &all, y, t->rows);
        const double seconds = tern_clock_seconds() - begin;
        best = seconds < best ? seconds : best;
    }
    return best * 1e9;
}

static double largest_difference(const trial *t) {
    double largest = 0.0;
    for (size_t r = 0; r < t->rows; r++)
        largest = fmax(largest, fabs((double)t->y[r] - (double)t->want[r]));
    return largest;
}

/* The dense kernel of the same set, or of the strongest set that runs. */
static const tern_kernel_row *dense_kernel(tern_format format, const char *isa, uint64_t mask) {
    const tern_layout layout = tern_format_layout(format);
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (kernels[i].op == TERN_OP_GEMV && kernels[i].layout == layout &&
            kernels[i].fn.any != NULL &&
            (layout != TERN_LAYOUT_ROWS || kernels[i].format == format) &&
            strcmp(kernels[i].isa, isa) == 0)
            return &kernels[i];
    return tern_kernel_select(mask, TERN_OP_GEMV, format);
}

/* Notes a share; they come in ascending order. A product that is 1 % slower still counts as
 * fast. */
static void note_limit(trial *t, const char *isa, unsigned percent, double faster) {
    size_t i = 0;
    while (i < t->n_limits &&
           (t->limits[i].format != t->format || strcmp(t->limits[i].isa, isa) != 0))
        i++;
    if (i == MAX_LIMITS)
        return;
    if (i == t->n_limits)
        t->limits[t->n_limits++] = (limit){.isa = isa, .format = t->format};
    t->limits[i].ended = t->limits[i].ended || faster < 0.99;
    t->limits[i].percent = t->limits[i].ended ? t->limits[i].percent : percent;
}

/* The separator before entry i of a JSON list; a table has none. */
static const char *comma(const trial *t, size_t i) {
    return t->json ? (i > 0 ? ",\n  " : "\n  ") : "";
}

static void print_begin(const trial *t) {
    if (t->json)
        printf("{\"tool\": \"microbench_gemv_block_sparse\", \"commit\": \"%s\", \"rows\": %zu, "
               "\"cols\": %zu, \"block\": [%d, %d],\n \"products\": [",
               TERN_COMMIT, t->rows, t->cols, BLOCK_ROWS, BLOCK_COLS);
    else
        printf("%zu x %zu weights in blocks of %d x %d; ns for each weight of the dense matrix\n"
               "%-5s %-11s %7s %9s %9s %8s %8s %8s %10s\n",
               t->rows, t->cols, BLOCK_ROWS, BLOCK_COLS, "type", "set", "stored%", "dense ns",
               "sparse ns", "GB/s", "GB/s", "faster", "largest d.");
}

/* Prints for every set the largest share of blocks at which a sparse product is no slower. */
static void print_end(const trial *t) {
    const char *form = t->json ? "%s{\"type\": \"%s\", \"isa\": \"%s\", \"no_slower_percent\": %u}"
                               : "%s%-5s %-11s no slower up to %u %% of the blocks\n";
    printf("%s", t->json ? "],\n \"limits\": [" : "");
    for (size_t i = 0; i < t->n_limits; i++)
        printf(form, comma(t, i), tern_format_describe(t->limits[i].format)->name, t->limits[i].isa,
               t->limits[i].percent);
    printf("%s", t->json ? "]}\n" : "");
}

/* Measures both products of every set at one density; false when their results differ. */
static bool compare(trial *t, unsigned percent, uint64_t mask) {
    const tern_iebs m = fill(t, percent);
    copies sparse = sparse_copies(t, &m), dense = dense_copies(t);
    const double weights = (double)t->rows * (double)t->cols;
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    bool same = true;
    for (size_t i = 0; i < count; i++) {
        const tern_kernel_row *kernel = &kernels[i];
        if (kernel->op != TERN_OP_GEMV || kernel->layout != sparse.matrix.layout ||
            kernel->fn.any == NULL || (kernel->needs & ~mask) != 0)
            continue;
        const double dense_ns =
            measure(t, &dense, dense_kernel(t->format, kernel->isa, mask), t->want);
        const double sparse_ns = measure(t, &sparse, kernel, t->y);
        const double difference = largest_difference(t);
        same = same && difference == 0.0;
        note_limit(t, kernel->isa, percent, dense_ns / sparse_ns);
        const char *form = t->json
                               ? "%s{\"type\": \"%s\", \"isa\": \"%s\", \"stored_percent\": %u, "
                                 "\"dense_ns\": %.4f, \"sparse_ns\": %.4f, \"dense_gbs\": %.2f, "
                                 "\"sparse_gbs\": %.2f, \"times_as_fast\": %.2f, "
                                 "\"largest_difference\": %.3g}"
                               : "%s%-5s %-11s %7u %9.4f %9.4f %8.2f %8.2f %8.2f %10.3g\n";
        printf(form, comma(t, t->n_products++), tern_format_describe(t->format)->name, kernel->isa,
               percent, dense_ns / weights, sparse_ns / weights, (double)dense.bytes / dense_ns,
               (double)sparse.bytes / sparse_ns, dense_ns / sparse_ns, difference);
    }
    free(sparse.memory);
    free(dense.memory);
    return same;
}

static void make_input(trial *t) {
    const size_t stride = (t->cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    uint64_t random = 7;
    t->weights = take(t->rows * t->cols * sizeof(float));
    t->stored = take(t->rows * t->cols / BLOCK_COLS + t->rows + t->cols);
    t->x = take(t->cols * sizeof(float));
    t->y = take(t->rows * sizeof(float));
    t->want = take(t->rows * sizeof(float));
    t->q = take(stride);
    for (size_t k = 0; k < t->cols; k++)
        t->x[k] = (float)((int)(tern_ref_random(&random) >> 33) % 2001 - 1000) * 0x1p-10f;
    tern_kernel_select(0, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE)
        ->fn.quantize_token(t->x, t->cols, t->q, &t->s, &t->sum);
    t->input = (tern_activations){.cols = t->cols,
                                  .x = t->x,
                                  .x_stride = t->cols,
                                  .q = t->q,
                                  .q_stride = stride,
                                  .s = &t->s,
                                  .sum = &t->sum};
}

static void free_input(trial *t) {
    void *const all[] = {t->weights, t->stored, t->x, t->y, t->want, t->q};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* The options, before the matrices are made. */
typedef struct question {
    bool check, json;
    tern_format formats[3];
    size_t n_formats, rows, cols;
} question;

/* Chooses the kinds of weights that --type names, or all without it; false if the name is
 * unknown. */
static bool choose_formats(question *q, const char *type) {
    static const tern_format known[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_I2_S};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (type == NULL || strcmp(type, tern_format_describe(known[i])->name) == 0)
            q->formats[q->n_formats++] = known[i];
    return q->n_formats > 0;
}

static bool understand(question *q, int argc, char **argv) {
    int i = 1;
    const char *type = NULL;
    *q = (question){.check = argc > 1 && strcmp(argv[1], "--check") == 0,
                    .json = argc > 1 && strcmp(argv[1], "--json") == 0};
    q->rows = q->check ? 64 : 2560;
    q->cols = q->check ? 320 : 6912;
    i += q->check || q->json;
    if (i + 1 < argc && strcmp(argv[i], "--type") == 0) {
        type = argv[i + 1];
        i += 2;
    }
    if (argc == i + 2) {
        q->rows = strtoul(argv[i], NULL, 10);
        q->cols = strtoul(argv[i + 1], NULL, 10);
    }
    return choose_formats(q, type) && (argc == i || argc == i + 2) && q->rows > 0 && q->cols > 0 &&
           q->rows <= 1 << 16 && q->cols <= 1 << 15 && q->rows * q->cols % 128 == 0;
}

int main(int argc, char **argv) {
    question q;
    uint64_t mask;
    bool same = true;
    if (!understand(&q, argc, argv)) {
        fprintf(stderr, "usage: microbench_gemv_block_sparse [--check | --json] "
                        "[--type f32|f16|i2_s] [ROWS COLS]\n"
                        "ROWS * COLS is a multiple of 128\n");
        return 2;
    }
    if (tern_cpu_mask(NULL, NULL, &mask, NULL) != TERN_OK)
        return EXIT_FAILURE;
    trial t = {.rows = q.rows, .cols = q.cols, .check = q.check, .json = q.json};
    make_input(&t);
    print_begin(&t);
    for (size_t f = 0; f < q.n_formats; f++) {
        t.format = q.formats[f];
        for (size_t i = 0; i < DENSITIES; i++)
            same = compare(&t, densities[i], mask) && same;
    }
    print_end(&t);
    free_input(&t);
    if (!same)
        fprintf(stderr, "microbench_gemv_block_sparse: results differ\n");
    return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
