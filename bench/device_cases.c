/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/device_cases.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Sizes of BitNet b1.58 2B4T. */
enum {
    WIDTH = 2560,
    FEED = 6912,
    KV_WIDTH = 640,
    VOCABULARY = 128256,
    KV_HEADS = 5,
    HEADS = 20,
    HEAD_DIM = 128,
    LARGE = 16384 /* side of a matrix whose product takes much longer than a launch */
};

/* Sizes of a check: tails in every dimension, and attention over two pages. */
enum {
    SMALL_ROWS = 52,
    SMALL_COLS = 160,
    SMALL_TOKENS = 13,
    SMALL_POSITIONS = 150,
    SMALL_ROW = 224
};

typedef struct weights {
    tern_format format;
    tern_layout layout;
} weights;

static const weights ternary[] = {{TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16},
                                  {TERN_FORMAT_I2_S, TERN_LAYOUT_T5R16}};
/* Formats whose products are also measured with the many tokens of a prompt. */
static const weights many[] = {{TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16},
                               {TERN_FORMAT_I2_S, TERN_LAYOUT_T5R16},
                               {TERN_FORMAT_Q4_0, TERN_LAYOUT_Q4_0R16},
                               {TERN_FORMAT_Q8_0, TERN_LAYOUT_Q8_0R16},
                               {TERN_FORMAT_F16, TERN_LAYOUT_ROWS}};

/* Operations over a row of n elements. `parts`: how many such rows (heads) one call has. */
static const struct {
    tern_op op;
    tern_format format;
    size_t n, parts;
} rows[] = {
    {TERN_OP_ADD, TERN_FORMAT_NONE, 16, 1}, /* measures the cost of a launch */
    {TERN_OP_ADD, TERN_FORMAT_NONE, WIDTH, 1},
    {TERN_OP_RMSNORM, TERN_FORMAT_NONE, WIDTH, 1},
    {TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, WIDTH, 1},
    {TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, FEED, 1},
    {TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE, FEED, 1},
    {TERN_OP_SOFTMAX, TERN_FORMAT_NONE, VOCABULARY, 1},
    {TERN_OP_GATE_RELU2, TERN_FORMAT_NONE, FEED, 1},
    {TERN_OP_GATE_SILU, TERN_FORMAT_NONE, FEED, 1},
    {TERN_OP_ROPE_NEOX, TERN_FORMAT_NONE, HEAD_DIM, HEADS + KV_HEADS},
    {TERN_OP_STORE, TERN_FORMAT_F16, KV_WIDTH, 1},
    {TERN_OP_EMBED, TERN_FORMAT_F16, WIDTH, 1},
};

typedef struct list {
    tern_device_case *cases;
    size_t count;
    bool small;
} list;

static void name_case(tern_device_case *c) {
    const tern_bench_shape *s = &c->shape;
    const tern_format_info *format = tern_format_describe(c->kernel.format);
    char name[32] = "", shape[64];

    if (c->kernel.layout == TERN_LAYOUT_T2R16 || c->kernel.layout == TERN_LAYOUT_T5R16)
        (void)snprintf(name, sizeof name, "/%s", tern_layout_name(c->kernel.layout));
    else if (format != NULL)
        (void)snprintf(name, sizeof name, "/%s", format->name);
    if (s->rows > 0 && s->tokens > 1)
        (void)snprintf(shape, sizeof shape, "%zux%zux%zu", s->rows, s->cols, s->tokens);
    else if (s->rows > 0)
        (void)snprintf(shape, sizeof shape, "%zux%zu", s->rows, s->cols);
    else if (s->tokens > 1)
        (void)snprintf(shape, sizeof shape, "%zux%zu", s->n, s->tokens);
    else
        (void)snprintf(shape, sizeof shape, "%zu", s->n);
    (void)snprintf(c->name, sizeof c->name, "%s%s/%s", tern_op_name(c->kernel.op), name, shape);
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The smallest number of columns from n on that is a multiple of the format's blocks. */
static size_t whole_blocks(tern_format format, size_t n) {
    const tern_format_info *info = tern_format_describe(format);
    const size_t block = info != NULL ? info->block_elements : 1;

    return (n + block - 1) / block * block;
}

static void shrink(tern_device_case *c) {
    tern_bench_shape *s = &c->shape;

    s->rows = smaller(s->rows, SMALL_ROWS);
    s->cols = smaller(s->cols, whole_blocks(c->kernel.format, SMALL_COLS));
    s->tokens = smaller(s->tokens, SMALL_TOKENS);
    s->n = smaller(s->n, c->kernel.op == TERN_OP_ATTEND ? SMALL_POSITIONS : SMALL_ROW);
}

/* Cases that have the same small shape are added once. */
static void add(list *l, const tern_device_case *wanted) {
    tern_device_case c = *wanted;

    if (l->small)
        shrink(&c);
    name_case(&c);
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->cases[i].name, c.name) == 0)
            return;
    if (l->count < TERN_DEVICE_CASES)
        l->cases[l->count++] = c;
}

static void add_product(list *l, const weights *w, size_t height, size_t width, size_t tokens) {
    const tern_op op = tokens == 1 ? TERN_OP_GEMV : TERN_OP_GEMM;

    add(l, &(tern_device_case){.kernel = {.op = op, .format = w->format, .layout = w->layout},
                               .shape = {.rows = height, .cols = width, .tokens = tokens},
                               .parts = 1});
}

static void add_gemv(list *l) {
    static const struct {
        size_t rows, cols;
    } shapes[] = {{KV_WIDTH, WIDTH}, {WIDTH, WIDTH}, {FEED, WIDTH}, {WIDTH, FEED}, {LARGE, LARGE}};
    static const weights head = {TERN_FORMAT_F16, TERN_LAYOUT_ROWS};

    for (size_t i = 0; i < COUNT(ternary); i++)
        for (size_t s = 0; s < COUNT(shapes); s++)
            add_product(l, &ternary[i], shapes[s].rows, shapes[s].cols, 1);
    for (tern_format f = 0; f < TERN_FORMAT_COUNT; f++) {
        const weights w = {f, tern_format_layout(f)};
        if (w.layout == TERN_LAYOUT_NONE || tern_layout_input(w.layout) == TERN_INPUT_TOKEN)
            continue;
        add_product(l, &w, FEED, WIDTH, 1);
        add_product(l, &w, WIDTH, FEED, 1);
    }
    add_product(l, &head, VOCABULARY, WIDTH, 1);
}

static void add_gemm(list *l) {
    static const size_t tokens[] = {8, 64, 512};

    for (size_t i = 0; i < COUNT(many); i++)
        for (size_t t = 0; t < COUNT(tokens); t++)
            add_product(l, &many[i], FEED, WIDTH, tokens[t]);
}

/* Attention of the last `tokens` of n positions. */
static void add_attend(list *l, size_t n, size_t tokens) {
    add(l, &(tern_device_case){.kernel = {.op = TERN_OP_ATTEND, .format = TERN_FORMAT_F16},
                               .shape = {.n = n, .tokens = tokens},
                               .parts = KV_HEADS});
}

size_t tern_device_cases(bool small, tern_device_case *cases) {
    list l = {.cases = cases, .small = small};

    for (size_t i = 0; i < COUNT(rows); i++)
        add(&l, &(tern_device_case){.kernel = {.op = rows[i].op,
                                               .format = rows[i].format,
                                               .layout = rows[i].op == TERN_OP_EMBED
                                                             ? TERN_LAYOUT_ROWS
                                                             : TERN_LAYOUT_NONE},
                                    .shape = {.n = rows[i].n, .tokens = 1},
                                    .parts = rows[i].parts});
    add_gemv(&l);
    add_attend(&l, 128, 1);
    add_attend(&l, 1024, 1);
    add_attend(&l, 4096, 1);
    add_attend(&l, 512, 512);
    add_gemm(&l);
    return l.count;
}
