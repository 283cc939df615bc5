/* SPDX-License-Identifier: Apache-2.0 */
/* Part of device_case.h: matrix products. */

#include <string.h>

#include "kernels/reference.h"
#include "tests/device/device_case.h"
#include "tests/kernels/matmul_case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A format and the layout that it is packed in. */
typedef struct weights {
    tern_format format;
    tern_layout layout;
} weights;

/* A device has both products of a layout, or none. */
static bool has_products(const device_run *r, const weights *form) {
    const bool one = device_has_row(r, TERN_OP_GEMV, form->format, form->layout);

    if (one != device_has_row(r, TERN_OP_GEMM, form->format, form->layout))
        check_fail("only one of gemv and gemm of %s", tern_layout_name(form->layout));
    return one;
}

/* The case's activations on the device. */
static tern_activations put_activations(const device_run *r, const matmul_case *c) {
    tern_activations x = c->activations;

    x.x = device_put_buffer(r, &c->x);
    x.q = device_put_buffer(r, &c->q);
    x.s = device_put_buffer(r, &c->s);
    x.sum = device_put_buffer(r, &c->sum);
    x.d = device_put_buffer(r, &c->d);
    x.block_sum = device_put_buffer(r, &c->block_sum);
    return x;
}

static void drop_activations(const device_run *r, const tern_activations *x) {
    const void *const all[] = {x->x, x->q, x->s, x->sum, x->d, x->block_sum};

    for (size_t i = 0; i < COUNT(all); i++)
        device_drop(r, (void *)all[i]);
}

/* One rectangle; the canary around it must stay intact. */
static void check_product(const device_run *r, const matmul_case *c, const tern_matrix *w,
                          const tern_activations *x, bool many, tern_tile tile) {
    const size_t stride = c->rows + 5;
    check_buffer want =
        check_buffer_new(((c->tokens - 1) * stride + c->rows) * sizeof(float), 4, CHECK_END);
    const float *expected = c->expected.data;
    void *y = device_put_buffer(r, &want);

    for (size_t t = tile.t0; t < tile.t1; t++)
        memcpy((float *)want.data + t * stride + tile.r0, expected + t * c->rows + tile.r0,
               (tile.r1 - tile.r0) * sizeof(float));
    if (many)
        DEVICE_CALL(r, gemm, r->stream, w, x, &tile, y, stride);
    else
        DEVICE_CALL(r, gemv, r->stream, w, x, &tile, y, stride);
    device_expect_floats(r, many ? "y of gemm" : "y of gemv", &want, y);
    check_buffer_free(&want);
}

static void check_products(const device_run *r, const weights *form, const case_shape *shape,
                           case_kind kind) {
    const size_t rows = shape->rows, tokens = shape->tokens;
    check_rng rng = {rows * 1000003 + shape->cols * 1009 + (uint64_t)kind};
    tern_matrix w;

    if (!case_possible(form->format, rows, shape->cols))
        return;
    check_case("%s, %s in %s, %zu x %zu, %zu tokens, %s", r->d->name,
               tern_format_describe(form->format)->name, tern_layout_name(form->layout), rows,
               shape->cols, tokens, case_kind_name(kind));
    matmul_case c = case_new_layout(form->format, form->layout, shape, kind, CHECK_END, &rng);
    DEVICE_CALL(r, upload_matrix, r->stream, &c.matrix, &w);
    const tern_activations x = put_activations(r, &c);
    const tern_tile all = {0, tokens, 0, rows};
    const tern_tile part = {tokens / 2, tokens, rows > 16 ? 16 : 0, rows > 32 ? 32 : rows};
    check_product(r, &c, &w, &x, false, all);
    check_product(r, &c, &w, &x, true, all);
    check_product(r, &c, &w, &x, false, part);
    check_product(r, &c, &w, &x, true, part);
    drop_activations(r, &x);
    DEVICE_CALL(r, free_matrix, &w);
    case_free(&c);
}

/* Every shape with random numbers, and with some of the other kinds. Returns the number of
 * products. */
static size_t check_form(const device_run *r, const weights *form) {
    static const case_shape shapes[] = {{1, 128, 1},  {16, 128, 3},  {17, 256, 2},  {33, 384, 9},
                                        {40, 16, 5},  {15, 32, 4},   {7, 3, 2},     {20, 20, 3},
                                        {48, 768, 5}, {9, 1056, 17}, {18, 2304, 1}, {16, 2080, 6},
                                        {35, 24, 25}, {5, 1000, 11}, {70, 320, 40}, {3, 1301, 9}};
    size_t products = 0;

    for (size_t s = 0; s < COUNT(shapes); s++) {
        for (int kind = 0; kind < CASE_KIND_COUNT; kind++) {
            if (kind != CASE_RANDOM && ((size_t)kind + s) % 4 != 0)
                continue;
            check_products(r, form, &shapes[s], (case_kind)kind);
            products++;
        }
    }
    return products;
}

size_t device_check_products(const device_run *r) {
    static const tern_layout ternary[] = {
#define LAYOUT(NAME, ...) TERN_LAYOUT_##NAME,
        TERN_TERNARY_LAYOUT_LIST(LAYOUT)
#undef LAYOUT
    };
    size_t products = 0;

    for (int format = 0; format < TERN_FORMAT_COUNT; format++) {
        const weights form = {(tern_format)format, tern_format_layout((tern_format)format)};
        if (has_products(r, &form))
            products += check_form(r, &form);
    }
    for (size_t i = 1; i < COUNT(ternary); i++) {
        const weights form = {TERN_FORMAT_I2_S, ternary[i]};
        if (has_products(r, &form))
            products += check_form(r, &form);
    }
    return products;
}

void device_check_long_products(const device_run *r) {
    static const weights forms[] = {{TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16},
                                    {TERN_FORMAT_I2_S, TERN_LAYOUT_T5R16},
                                    {TERN_FORMAT_Q8_0, TERN_LAYOUT_Q8_0R16},
                                    {TERN_FORMAT_F16, TERN_LAYOUT_ROWS}};
    static const case_shape longest = {2, 65408, 1}, many = {1, 65408, 9}, wide = {16, 6912, 2};

    for (int kind = CASE_RANDOM; kind <= CASE_MIN_MIN; kind++) {
        for (size_t i = 0; i < COUNT(forms); i++) {
            if (forms[i].format != TERN_FORMAT_Q8_0)
                check_products(r, &forms[i], &longest, (case_kind)kind);
            check_products(r, &forms[i], &wide, (case_kind)kind);
        }
    }
    check_products(r, &forms[0], &many, CASE_MAX_MIN);
}

/* The case's product twice in one call, the second time with a bias. */
static void check_multiply(const device_run *r, const weights *form, const case_shape *shape) {
    const size_t rows = shape->rows, tokens = shape->tokens, stride = rows + 3;
    check_rng rng = {rows * 31 + tokens};
    tern_matrix w;

    check_case("%s, multiply %s, %zu x %zu, %zu tokens", r->d->name,
               tern_format_describe(form->format)->name, rows, shape->cols, tokens);
    matmul_case c =
        case_new_layout(form->format, form->layout, shape, CASE_RANDOM, CHECK_END, &rng);
    check_buffer want[2], bias = check_buffer_new(rows * sizeof(float), 4, CHECK_END);
    void *y[2];
    for (size_t i = 0; i < rows; i++)
        ((float *)bias.data)[i] = check_normal(&rng);
    for (size_t i = 0; i < 2; i++) {
        want[i] = check_buffer_new(((tokens - 1) * stride + rows) * sizeof(float), 4, CHECK_END);
        y[i] = device_put_buffer(r, &want[i]);
        for (size_t t = 0; t < tokens; t++) {
            float *row = (float *)want[i].data + t * stride;
            memcpy(row, (const float *)c.expected.data + t * rows, rows * sizeof *row);
            if (i == 1)
                tern_ref_add(row, bias.data, rows);
        }
    }
    DEVICE_CALL(r, upload_matrix, r->stream, &c.matrix, &w);
    const tern_activations x = put_activations(r, &c);
    void *on_device = device_put_buffer(r, &bias);
    const tern_device_product products[] = {
        {.w = &w, .x = x, .tokens = tokens, .y = y[0], .y_stride = stride},
        {.w = &w, .x = x, .tokens = tokens, .y = y[1], .y_stride = stride, .bias = on_device}};
    DEVICE_CALL(r, multiply, r->stream, products, COUNT(products));
    for (size_t i = 0; i < 2; i++) {
        device_expect_floats(r, i == 0 ? "y" : "y with a bias", &want[i], y[i]);
        check_buffer_free(&want[i]);
    }
    device_drop(r, on_device);
    drop_activations(r, &x);
    DEVICE_CALL(r, free_matrix, &w);
    check_buffer_free(&bias);
    case_free(&c);
}

/*
 * Products of different heights and two formats, more of the first than one launch takes. The
 * result equals that of separate calls of gemv or gemm.
 */
static void check_multiply_mixed(const device_run *r, size_t tokens) {
    static const size_t rows[] = {40, 16, 100, 7, 33, 16, 64};
    static const weights forms[] = {{TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16},
                                    {TERN_FORMAT_F16, TERN_LAYOUT_ROWS}};
    enum { N = COUNT(rows) };
    matmul_case c[N];
    tern_matrix w[N];
    check_buffer want[N];
    tern_device_product products[N];
    check_rng rng = {tokens};

    check_case("%s, multiply %d products, %zu tokens", r->d->name, N, tokens);
    for (size_t i = 0; i < N; i++) {
        const weights *form = &forms[i == N - 1];
        const case_shape shape = {rows[i], 256, tokens};
        c[i] = case_new_layout(form->format, form->layout, &shape, CASE_RANDOM, CHECK_END, &rng);
        DEVICE_CALL(r, upload_matrix, r->stream, &c[i].matrix, &w[i]);
        want[i] = check_buffer_new(tokens * rows[i] * sizeof(float), 4, CHECK_END);
        products[i] = (tern_device_product){.w = &w[i],
                                            .x = put_activations(r, &c[i]),
                                            .tokens = tokens,
                                            .y = device_put_buffer(r, &want[i]),
                                            .y_stride = rows[i]};
        memcpy(want[i].data, c[i].expected.data, tokens * rows[i] * sizeof(float));
    }
    DEVICE_CALL(r, multiply, r->stream, products, N);
    for (size_t i = 0; i < N; i++) {
        device_expect_floats(r, "y of one product among others", &want[i], products[i].y);
        drop_activations(r, &products[i].x);
        DEVICE_CALL(r, free_matrix, &w[i]);
        check_buffer_free(&want[i]);
        case_free(&c[i]);
    }
}

void device_check_multiply(const device_run *r) {
    static const weights forms[] = {{TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16},
                                    {TERN_FORMAT_Q8_0, TERN_LAYOUT_Q8_0R16},
                                    {TERN_FORMAT_F16, TERN_LAYOUT_ROWS}};
    static const case_shape shapes[] = {{33, 384, 1}, {40, 128, 5}, {16, 256, 2}};

    for (size_t i = 0; i < COUNT(forms); i++)
        for (size_t s = 0; s < COUNT(shapes); s++)
            check_multiply(r, &forms[i], &shapes[s]);
    check_multiply_mixed(r, 1);
    check_multiply_mixed(r, 11);
}
