/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/device_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- memory -------------------------------------------------------------------------------- */

void device_expect_ok(tern_status status, const tern_error *err) {
    if (status != TERN_OK)
        check_fail("status %d: %s", (int)status, err->message);
}

bool device_has_row(const device_run *r, tern_op op, tern_format format, tern_layout layout) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    const bool packed = layout != TERN_LAYOUT_ROWS && layout != TERN_LAYOUT_NONE;

    for (size_t i = 0; i < count; i++)
        if (tern_device_of_row(&kernels[i]) == r->d->kind && kernels[i].op == op &&
            kernels[i].layout == layout && (packed || kernels[i].format == format))
            return true;
    return false;
}

device_run device_run_new(tern_device *d) {
    device_run r = {d, NULL};

    DEVICE_CALL(&r, stream_new, &r.stream);
    return r;
}

void device_run_free(device_run *r) {
    DEVICE_CALL(r, stream_free, r->stream);
    r->stream = NULL;
}

void *device_put(const device_run *r, const void *from, size_t bytes) {
    void *memory = NULL;

    DEVICE_CALL(r, alloc, bytes, &memory);
    DEVICE_CALL(r, upload, r->stream, memory, from, bytes);
    return memory;
}

void device_get(const device_run *r, void *to, const void *from, size_t bytes) {
    DEVICE_CALL(r, download, r->stream, to, from, bytes);
}

void device_drop(const device_run *r, void *memory) {
    DEVICE_CALL(r, stream_sync, r->stream);
    DEVICE_CALL(r, free, memory);
}

void *device_put_buffer(const device_run *r, const check_buffer *b) {
    return device_put(r, b->data, b->bytes);
}

void device_expect_floats(const device_run *r, const char *what, const check_buffer *want,
                          void *memory) {
    check_buffer got = check_buffer_new(want->bytes, sizeof(float), CHECK_END);

    device_get(r, got.data, memory, want->bytes);
    check_floats(what, want->data, got.data, want->bytes / sizeof(float));
    device_drop(r, memory);
    check_buffer_free(&got);
}

static void expect_bytes(const device_run *r, const char *what, const check_buffer *want,
                         void *memory) {
    check_buffer got = check_buffer_new(want->bytes, 1, CHECK_END);

    device_get(r, got.data, memory, want->bytes);
    check_bytes(what, want->data, got.data, want->bytes);
    device_drop(r, memory);
    check_buffer_free(&got);
}

/* ---- copies -------------------------------------------------------------------------------- */

void device_check_copies(const device_run *r) {
    static const size_t sizes[] = {1, 63, 4096, (1u << 22) - 1, 1u << 22, 3 * (1u << 22) + 5};
    check_rng rng = {1};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        check_case("copy of %zu bytes", sizes[i]);
        check_buffer from = check_buffer_new(sizes[i], 1, CHECK_END);
        check_buffer kept = check_buffer_new(sizes[i], 1, CHECK_END);
        for (size_t b = 0; b < sizes[i]; b++)
            ((uint8_t *)from.data)[b] = (uint8_t)check_random(&rng);
        memcpy(kept.data, from.data, sizes[i]);
        void *memory = device_put_buffer(r, &from);
        memset(from.data, 0, sizes[i]); /* upload has returned, so this must not matter */
        expect_bytes(r, "bytes", &kept, memory);
        check_buffer_free(&from);
        check_buffer_free(&kept);
    }
}

/* ---- rows of floats ------------------------------------------------------------------------ */

typedef enum fill { NORMAL, ANY, DENORMAL, TIES, ZERO, SPECIAL, FILLS } fill;

static float number(fill kind, check_rng *rng) {
    static const float specials[] = {INFINITY, -INFINITY, NAN, 0.0f, 1.0f};
    const uint32_t pick = check_below(rng, 40);

    switch (kind) {
    case ANY:
        return check_any_finite(rng);
    case DENORMAL:
        return (float)check_below(rng, 1u << 23) * (check_below(rng, 2) ? 0x1p-149f : -0x1p-149f);
    case TIES:
        return 0.5f * (float)((int)check_below(rng, 509) - 254);
    case ZERO:
        return check_below(rng, 2) ? 0.0f : -0.0f;
    case SPECIAL:
        return pick < COUNT(specials) ? specials[pick] : check_normal(rng);
    default:
        return check_normal(rng);
    }
}

static check_buffer floats(size_t n, fill kind, float factor, check_rng *rng) {
    check_buffer b = check_buffer_new(n * sizeof(float), sizeof(float), CHECK_END);

    for (size_t i = 0; i < n; i++)
        ((float *)b.data)[i] = factor * number(kind, rng);
    return b;
}

static check_buffer copy_of(const check_buffer *from) {
    check_buffer b = check_buffer_new(from->bytes, sizeof(float), CHECK_END);

    memcpy(b.data, from->data, from->bytes);
    return b;
}

static const size_t lengths[] = {1,    2,    15,   16,   17,   31,   32,   33,   63,
                                 64,   65,   100,  127,  128,  255,  257,  1000, 2047,
                                 2048, 2049, 2560, 4099, 8192, 8195, 16501};

/* Rows of n floats with gaps between them, and no gap behind the last one. */
enum { ROWS = 3, GAP = 5 };

static size_t row_floats(size_t n) {
    return (ROWS - 1) * (n + GAP) + n;
}

static tern_device_rows rows_at(void *memory, size_t n) {
    return (tern_device_rows){.data = memory, .stride = n + GAP, .n = n, .rows = ROWS};
}

/* Calls `check` for every length and kind of number. */
static void each_length(const device_run *r, const char *what,
                        void (*check)(const device_run *, size_t, fill, check_rng *)) {
    for (size_t i = 0; i < COUNT(lengths); i++) {
        for (int kind = 0; kind < FILLS; kind++) {
            check_rng rng = {i * 16 + (size_t)kind};
            check_case("%s, %s, n = %zu, numbers %d", r->d->name, what, lengths[i], kind);
            check(r, lengths[i], (fill)kind, &rng);
        }
    }
}

static void check_rmsnorm(const device_run *r, size_t n, fill kind, check_rng *rng) {
    check_buffer x = floats(row_floats(n), kind, 1.0f, rng);
    check_buffer g = floats(n, NORMAL, 1.0f, rng);
    check_buffer want = copy_of(&x);
    void *memory = device_put_buffer(r, &x);
    void *weights = device_put_buffer(r, &g);
    void *twice = device_put_buffer(r, &x);
    const tern_device_rows same = rows_at(twice, n);
    const tern_device_rows rows = rows_at(memory, n);

    for (size_t t = 0; t < ROWS; t++) {
        float *row = (float *)want.data + t * (n + GAP);
        tern_ref_add(row, (const float *)x.data + t * (n + GAP), n);
        tern_ref_rmsnorm(row, g.data, n, 1e-5f, row);
    }
    DEVICE_CALL(r, add, r->stream, &rows, &same); /* and in place */
    DEVICE_CALL(r, rmsnorm, r->stream, &rows, weights, 1e-5f, &rows);
    device_expect_floats(r, "y", &want, memory);
    device_drop(r, weights);
    device_drop(r, twice);
    check_buffer_free(&x);
    check_buffer_free(&g);
    check_buffer_free(&want);
}

static void check_softmax(const device_run *r, size_t n, fill kind, check_rng *rng) {
    check_buffer x = floats(row_floats(n), kind, kind == NORMAL ? 9.0f : 1.0f, rng);
    check_buffer want = copy_of(&x);
    void *memory = device_put_buffer(r, &x);
    const tern_device_rows rows = rows_at(memory, n);

    for (size_t t = 0; t < ROWS; t++)
        tern_ref_softmax((float *)want.data + t * (n + GAP), n);
    DEVICE_CALL(r, softmax, r->stream, &rows);
    device_expect_floats(r, "x", &want, memory);
    check_buffer_free(&x);
    check_buffer_free(&want);
}

void device_check_norms(const device_run *r) {
    each_length(r, "rmsnorm", check_rmsnorm);
    each_length(r, "softmax", check_softmax);
}

/* ---- quantization -------------------------------------------------------------------------- */

/* Quantized results of the reference and of the device: q, then s or d, then the sums. */
typedef struct quantized {
    check_buffer want[3];
    void *memory[3];
} quantized;

static quantized quantized_new(const device_run *r, size_t q_stride, size_t d_stride) {
    quantized z;

    z.want[0] = check_buffer_new(ROWS * q_stride, TERN_ALIGN, CHECK_END);
    for (int i = 1; i < 3; i++)
        z.want[i] = check_buffer_new(ROWS * d_stride * sizeof(float), sizeof(float), CHECK_END);
    for (int i = 0; i < 3; i++)
        z.memory[i] = device_put_buffer(r, &z.want[i]);
    return z;
}

static void quantized_compare(const device_run *r, quantized *z) {
    expect_bytes(r, "q", &z->want[0], z->memory[0]);
    device_expect_floats(r, "scales", &z->want[1], z->memory[1]);
    expect_bytes(r, "sums", &z->want[2], z->memory[2]);
    for (int i = 0; i < 3; i++)
        check_buffer_free(&z->want[i]);
}

static size_t padded(size_t n) {
    return (n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
}

static void check_token(const device_run *r, size_t n, fill kind, check_rng *rng) {
    check_buffer x = floats(row_floats(n), kind, kind == DENORMAL ? 1e30f : 1.0f, rng);
    quantized z = quantized_new(r, padded(n), 1);
    void *memory = device_put_buffer(r, &x);
    const tern_device_rows rows = rows_at(memory, n);
    const tern_device_quantized out = {
        .q = z.memory[0], .q_stride = padded(n), .s = z.memory[1], .sum = z.memory[2]};

    for (size_t t = 0; t < ROWS; t++)
        tern_ref_quantize_token((const float *)x.data + t * (n + GAP), n,
                                (int8_t *)z.want[0].data + t * padded(n),
                                (float *)z.want[1].data + t, (int32_t *)z.want[2].data + t);
    DEVICE_CALL(r, quantize_token, r->stream, &rows, &out);
    quantized_compare(r, &z);
    device_drop(r, memory);
    check_buffer_free(&x);
}

static void check_block(const device_run *r, size_t n, fill kind, check_rng *rng) {
    const size_t d_stride = (n + TERN_BLOCK - 1) / TERN_BLOCK + 1;
    check_buffer x = floats(row_floats(n), kind, 1.0f, rng);
    quantized z = quantized_new(r, padded(n), d_stride);
    void *memory = device_put_buffer(r, &x);
    const tern_device_rows rows = rows_at(memory, n);
    const tern_device_quantized out = {.q = z.memory[0],
                                       .q_stride = padded(n),
                                       .d = z.memory[1],
                                       .block_sum = z.memory[2],
                                       .d_stride = d_stride};

    for (size_t t = 0; t < ROWS; t++)
        tern_ref_quantize_block(
            (const float *)x.data + t * (n + GAP), n, (int8_t *)z.want[0].data + t * padded(n),
            (float *)z.want[1].data + t * d_stride, (int32_t *)z.want[2].data + t * d_stride);
    DEVICE_CALL(r, quantize_block, r->stream, &rows, &out);
    quantized_compare(r, &z);
    device_drop(r, memory);
    check_buffer_free(&x);
}

/* The reference of check_sum_norm_token: x += more, y = rmsnorm(x), codes of y. */
static void sum_norm_and_codes(size_t n, const float *more, const float *g, float *x, float *y,
                               const quantized *z) {
    for (size_t t = 0; t < ROWS; t++) {
        float *sum = x + t * (n + GAP), *normed = y + t * (n + GAP);
        if (more != NULL)
            tern_ref_add(sum, more + t * (n + GAP), n);
        tern_ref_rmsnorm(sum, g, n, 1e-5f, normed);
        tern_ref_quantize_token(normed, n, (int8_t *)z->want[0].data + t * padded(n),
                                (float *)z->want[1].data + t, (int32_t *)z->want[2].data + t);
    }
}

/* A sum, its norm and the norm's codes in sequence, as layers call them, and the same with a step
 * in between or left out. A device may fuse them. */
static void check_sum_norm_token(const device_run *r, size_t n, fill kind, check_rng *rng) {
    const bool adds = n % 3 != 0, apart = n % 4 == 0;
    check_buffer x = floats(row_floats(n), kind, 1.0f, rng),
                 more = floats(row_floats(n), kind, 1.0f, rng);
    check_buffer g = floats(n, NORMAL, 1.0f, rng);
    check_buffer sum = copy_of(&x), want = copy_of(&x);
    quantized z = quantized_new(r, padded(n), 1);
    void *memory = device_put_buffer(r, &x), *y = device_put_buffer(r, &x);
    void *weights = device_put_buffer(r, &g), *added = device_put_buffer(r, &more);
    const tern_device_rows rows = rows_at(memory, n), to = rows_at(y, n), from = rows_at(added, n);
    const tern_device_quantized out = {
        .q = z.memory[0], .q_stride = padded(n), .s = z.memory[1], .sum = z.memory[2]};

    sum_norm_and_codes(n, adds ? more.data : NULL, g.data, sum.data, want.data, &z);
    if (adds)
        DEVICE_CALL(r, add, r->stream, &rows, &from);
    DEVICE_CALL(r, rmsnorm, r->stream, &rows, weights, 1e-5f, &to);
    if (apart)
        DEVICE_CALL(r, round, r->stream, TERN_OP_ROUND_FP16, &from, &from);
    DEVICE_CALL(r, quantize_token, r->stream, &to, &out);
    device_expect_floats(r, "y", &want, y);
    device_expect_floats(r, "x", &sum, memory);
    quantized_compare(r, &z);
    device_drop(r, weights);
    device_drop(r, added);
    check_buffer_free(&x);
    check_buffer_free(&more);
    check_buffer_free(&g);
    check_buffer_free(&sum);
    check_buffer_free(&want);
}

void device_check_quantize(const device_run *r) {
    each_length(r, "add, rmsnorm and quantize_token", check_sum_norm_token);
    each_length(r, "quantize_token", check_token);
    each_length(r, "quantize_block", check_block);
}

/* ---- operations on elements ---------------------------------------------------------------- */

static tern_device_rows one_row(float *data, size_t n) {
    return (tern_device_rows){.data = data, .stride = n, .n = n, .rows = 1};
}

static const struct {
    tern_op op;
    const char *name;
} pairs[] = {{TERN_OP_ADD, "sum"},        {TERN_OP_STORE, "copy"},
             {TERN_OP_GATE_SILU, "silu"}, {TERN_OP_GATE_RELU2, "relu2"},
             {TERN_OP_GATE_GELU, "gelu"}, {TERN_OP_GATE_QUICK, "quick"}};

/* The reference, row by row; `want` holds a. */
static void reference_pair(tern_op op, float *want, const float *b, size_t n) {
    for (size_t t = 0; t < ROWS; t++) {
        float *x = want + t * (n + GAP);
        const float *y = b + t * (n + GAP);
        if (op == TERN_OP_ADD)
            tern_ref_add(x, y, n);
        else if (op == TERN_OP_STORE)
            memcpy(x, y, n * sizeof *x);
        else
            tern_ref_gate(tern_ref_activation_of(op), x, y, n, x);
    }
}

static void call_pair(const device_run *r, tern_op op, const tern_device_rows *x,
                      const tern_device_rows *y) {
    if (op == TERN_OP_ADD)
        DEVICE_CALL(r, add, r->stream, x, y);
    else if (op == TERN_OP_STORE)
        DEVICE_CALL(r, copy, r->stream, y, x);
    else
        DEVICE_CALL(r, gate, r->stream, op, x, y, x);
}

static void check_pairs(const device_run *r, size_t n, fill kind, check_rng *rng) {
    check_buffer a = floats(row_floats(n), kind, 1.0f, rng);
    check_buffer b = floats(row_floats(n), (fill)check_below(rng, FILLS), 1.0f, rng);

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check_buffer want = copy_of(&a);
        void *x = device_put_buffer(r, &a);
        void *y = device_put_buffer(r, &b);
        const tern_device_rows left = rows_at(x, n), right = rows_at(y, n);
        reference_pair(pairs[i].op, want.data, b.data, n);
        call_pair(r, pairs[i].op, &left, &right);
        device_expect_floats(r, pairs[i].name, &want, x);
        device_drop(r, y);
        check_buffer_free(&want);
    }
    check_buffer_free(&a);
    check_buffer_free(&b);
}

void device_check_elementwise(const device_run *r) {
    each_length(r, "gates and add", check_pairs);
}

static void check_rounding(const device_run *r, size_t n, fill kind, check_rng *rng) {
    check_buffer x = floats(row_floats(n), kind, 1.0f, rng);

    for (tern_op op = TERN_OP_ROUND_INT8; op <= TERN_OP_ROUND_BF16; op++) {
        check_buffer want = copy_of(&x);
        void *memory = device_put_buffer(r, &x);
        const tern_device_rows rows = rows_at(memory, n);
        for (size_t t = 0; t < ROWS; t++)
            tern_ref_round(op, (const float *)x.data + t * (n + GAP), n,
                           (float *)want.data + t * (n + GAP));
        DEVICE_CALL(r, round, r->stream, op, &rows, &rows);
        device_expect_floats(r, tern_op_name(op), &want, memory);
        check_buffer_free(&want);
    }
    check_buffer_free(&x);
}

void device_check_rounding(const device_run *r) {
    each_length(r, "precisions of activations", check_rounding);
}

void device_check_exp(const device_run *r) {
    enum { POINTS = 1 << 16 };
    check_rng rng = {1};
    check_buffer x = check_buffer_new(POINTS * sizeof(float), sizeof(float), CHECK_END);
    check_buffer u = floats(POINTS, NORMAL, 1.0f, &rng);
    check_buffer want = check_buffer_new(x.bytes, sizeof(float), CHECK_END);

    check_case("%s, exp", r->d->name);
    for (size_t i = 0; i < POINTS; i++)
        ((float *)x.data)[i] = -90.0f + (float)i * (195.0f / POINTS);
    tern_ref_gate(TERN_REF_SILU, x.data, u.data, POINTS, want.data);
    void *g = device_put_buffer(r, &x);
    void *up = device_put_buffer(r, &u);
    const tern_device_rows left = one_row(g, POINTS), right = one_row(up, POINTS);
    DEVICE_CALL(r, gate, r->stream, TERN_OP_GATE_SILU, &left, &right,
                &right); /* in place, in the second operand */
    device_expect_floats(r, "y", &want, up);
    device_drop(r, g);
    check_buffer_free(&x);
    check_buffer_free(&u);
    check_buffer_free(&want);
}

/* ---- rope ---------------------------------------------------------------------------------- */

static void check_rope(const device_run *r, tern_op op, size_t half, size_t heads, size_t tokens) {
    const size_t dim = 2 * half + half % 2 * 3; /* the rest of a head stays as it is */
    const size_t stride = heads * dim + GAP;
    check_rng rng = {half * 64 + heads};
    check_buffer x = floats(tokens * stride, half % 3 == 0 ? ANY : NORMAL, 1.0f, &rng);
    check_buffer c = floats(tokens * half, NORMAL, 1.0f, &rng);
    check_buffer s = floats(tokens * half, NORMAL, 1.0f, &rng);
    check_buffer want = copy_of(&x);

    check_case("%s, %s, %zu pairs, %zu heads", r->d->name, tern_op_name(op), half, heads);
    const tern_device_rope args = {.op = op,
                                   .x = device_put_buffer(r, &x),
                                   .stride = stride,
                                   .c = device_put_buffer(r, &c),
                                   .s = device_put_buffer(r, &s),
                                   .half = half,
                                   .heads = heads,
                                   .tokens = tokens,
                                   .dim = dim};
    for (size_t t = 0; t < tokens; t++)
        for (size_t h = 0; h < heads; h++)
            tern_ref_rope(op == TERN_OP_ROPE_NORM ? TERN_REF_PAIR_NORM : TERN_REF_PAIR_NEOX,
                          (float *)want.data + t * stride + h * dim,
                          (const float *)c.data + t * half, (const float *)s.data + t * half, half);
    DEVICE_CALL(r, rope, r->stream, &args);
    device_expect_floats(r, "x", &want, args.x);
    device_drop(r, (void *)args.c);
    device_drop(r, (void *)args.s);
    check_buffer_free(&x);
    check_buffer_free(&c);
    check_buffer_free(&s);
    check_buffer_free(&want);
}

void device_check_rope(const device_run *r) {
    static const size_t halves[] = {1, 2, 15, 16, 17, 32, 64, 300};

    for (size_t i = 0; i < COUNT(halves); i++) {
        check_rope(r, TERN_OP_ROPE_NORM, halves[i], 1 + i % 4, 3);
        check_rope(r, TERN_OP_ROPE_NEOX, halves[i], 1 + i % 3, 2);
    }
}
