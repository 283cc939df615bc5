/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/device_operands.h"

#include <stdlib.h>
#include <string.h>

#include "bench/operands_internal.h"

enum { MEMORY = 8 }; /* pieces of device memory, at most */

struct tern_device_operands {
    tern_device *d;
    tern_device_stream *stream;
    const tern_device_case *c;
    tern_bench_operands *host;
    void *memory[MEMORY];
    size_t pieces;
    /* on the device, laid out as the host's, except that every part has a copy */
    float *in0, *in1;
    float *out; /* [tokens][parts][width of a part] */
    float *queries;
    int32_t *ids;
    tern_device_quantized quantized;
    tern_activations x;
    tern_matrix matrix;
    uint8_t *copies; /* [count][unit] */
    size_t unit, count, next;
};

/* ---- parts --------------------------------------------------------------------------------- */

/* Width of a row of the answer, or of the queries, of one part. */
static size_t part_width(const tern_device_operands *u) {
    const tern_bench_operands *o = u->host;

    return u->c->kernel.op == TERN_OP_ATTEND ? o->out_count / o->shape.tokens : o->out_count;
}

/* Copies the rows of one part for every part; the caller frees the result. NULL: no memory. */
static float *spread(const tern_device_operands *u, const float *part) {
    const size_t width = part_width(u), parts = u->c->parts, rows = u->host->out_count / width;
    float *all = tern_bench_zeroed(rows * parts * width * sizeof *all);

    for (size_t i = 0; all != NULL && i < rows * parts; i++)
        memcpy(all + i * width, part + i / parts * width, width * sizeof *all);
    return all;
}

/* Takes the rows of the first part; false when those of another part differ. */
static bool gather(const tern_device_operands *u, const float *all, float *part) {
    const size_t width = part_width(u), parts = u->c->parts, rows = u->host->out_count / width;
    bool same = true;

    for (size_t i = 0; i < rows * parts; i++) {
        float *row = part + i / parts * width;
        if (i % parts == 0)
            memcpy(row, all + i * width, width * sizeof *row);
        same = same && memcmp(row, all + i * width, width * sizeof *row) == 0;
    }
    return same;
}

/* ---- memory of the device ------------------------------------------------------------------ */

/* State while operands are made. After the first failure the functions below do nothing. */
typedef struct making {
    tern_device_operands *u;
    tern_status status;
    tern_error *err;
} making;

/* Allocates device memory; NULL after a failure. */
static void *take(making *m, size_t bytes) {
    tern_device_operands *u = m->u;
    void *memory = NULL;

    if (m->status == TERN_OK)
        m->status = u->d->ops->alloc(u->d, bytes, &memory, m->err);
    if (m->status == TERN_OK)
        u->memory[u->pieces++] = memory;
    return memory;
}

static void fill(making *m, void *memory, const void *from, size_t bytes) {
    if (m->status == TERN_OK)
        m->status = m->u->d->ops->upload(m->u->d, m->u->stream, memory, from, bytes, m->err);
}

/* Device memory with a copy of the bytes. */
static void *put(making *m, const void *from, size_t bytes) {
    void *memory = take(m, bytes);

    fill(m, memory, from, bytes);
    return memory;
}

/* Uploads the rows of one part once for every part. */
static void *put_spread(making *m, const float *part) {
    float *all = spread(m->u, part);
    void *memory = NULL;

    if (all != NULL)
        memory = put(m, all, m->u->host->out_count * m->u->c->parts * sizeof *all);
    else
        m->status = tern_fail(m->err, TERN_ERR_NOMEM, "no memory for the operands");
    free(all);
    return memory;
}

static void put_floats(making *m) {
    tern_device_operands *u = m->u;
    tern_bench_operands *o = u->host;

    tern_bench_restore(o, o->out);
    u->out = put_spread(m, o->out);
    if (u->c->kernel.op == TERN_OP_ATTEND)
        u->queries = put_spread(m, o->queries);
    u->in0 = put(m, o->in0, o->in_count * sizeof(float));
    u->in1 = put(m, o->in1, o->in_count * sizeof(float));
}

static void put_quantized(making *m) {
    tern_device_operands *u = m->u;
    const tern_bench_operands *o = u->host;
    tern_device_quantized *to = &u->quantized;

    to->q = put(m, o->q, o->q_bytes);
    to->s = to->d = put(m, o->d, o->scale_count * sizeof *o->d);
    to->sum = to->block_sum = put(m, o->sum, o->scale_count * sizeof *o->sum);
    to->q_stride = o->q_bytes;
    to->d_stride = o->scale_count;
    u->x = o->x;
    u->x.x = u->in0;
    u->x.q = to->q;
    u->x.s = u->x.d = to->d;
    u->x.sum = u->x.block_sum = to->sum;
}

/* Uploads copies of the weights, or of the caches of all heads one after the other. */
static void put_copies(making *m, size_t bytes) {
    tern_device_operands *u = m->u;
    const tern_bench_operands *o = u->host;
    const size_t parts = u->c->parts;

    u->matrix = o->matrix;
    u->unit = (parts * o->matrix_bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN;
    u->count = (bytes + u->unit - 1) / u->unit;
    u->copies = take(m, u->count * u->unit);
    for (size_t i = 0; m->status == TERN_OK && i < u->count * parts; i++)
        fill(m, u->copies + i / parts * u->unit + i % parts * o->matrix_bytes, o->matrix.data,
             o->matrix_bytes);
}

/* Uploads a matrix of one row, and the number of that row. */
static void put_row(making *m) {
    static const int32_t first = 0;
    tern_device_operands *u = m->u;
    const tern_bench_operands *o = u->host;

    u->ids = put(m, &first, sizeof first);
    u->matrix = (tern_matrix){.format = o->kernel->format,
                              .layout = o->kernel->layout,
                              .rows = 1,
                              .cols = o->shape.n,
                              .scale = 1.0f,
                              .data = put(m, o->file, o->file_bytes)};
}

static tern_status put_all(tern_device_operands *u, size_t bytes, tern_error *err) {
    making m = {.u = u, .status = TERN_OK, .err = err};

    put_floats(&m);
    put_quantized(&m);
    if (u->host->matrix_bytes > 0)
        put_copies(&m, bytes);
    if (u->c->kernel.op == TERN_OP_EMBED)
        put_row(&m);
    return m.status;
}

tern_status tern_device_operands_new(tern_device *d, tern_device_stream *stream,
                                     const tern_device_case *c, size_t bytes,
                                     tern_device_operands **out, tern_error *err) {
    tern_device_operands *u = *out = calloc(1, sizeof *u);

    if (u == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the operands");
    *u = (tern_device_operands){.d = d, .stream = stream, .c = c};
    u->host = tern_bench_operands_new(&c->kernel, &c->shape);
    if (u->host == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the operands");
    return put_all(u, bytes, err);
}

void tern_device_operands_free(tern_device_operands *u) {
    if (u == NULL)
        return;
    (void)u->d->ops->stream_sync(u->d, u->stream, NULL); /* the first error was reported */
    for (size_t i = 0; i < u->pieces; i++)
        (void)u->d->ops->free(u->d, u->memory[i], NULL);
    tern_bench_operands_free(u->host);
    free(u);
}

/* ---- calls --------------------------------------------------------------------------------- */

static uint8_t *next_copy(tern_device_operands *u) {
    uint8_t *copy = u->copies + u->next * u->unit;

    u->next = (u->next + 1) % u->count;
    return copy;
}

static tern_status multiply(tern_device_operands *u, tern_error *err) {
    const tern_device_ops *ops = u->d->ops;
    const tern_tile all = tern_bench_whole(u->host);

    u->matrix.data = next_copy(u);
    return (u->c->kernel.op == TERN_OP_GEMV ? ops->gemv : ops->gemm)(
        u->d, u->stream, &u->matrix, &u->x, &all, u->out, u->matrix.rows, err);
}

/* The keys of a head lie before its values, and both before the next head's. */
static tern_status attend(tern_device_operands *u, tern_error *err) {
    const tern_bench_shape *s = &u->c->shape;
    const size_t width = u->c->parts * part_width(u);
    const uint8_t *cache = next_copy(u);
    const tern_device_attend a = {.format = u->c->kernel.format,
                                  .q = u->queries,
                                  .q_stride = width,
                                  .k = cache,
                                  .v = cache + u->host->matrix_bytes / 2,
                                  .kv_stride = 2 * s->n * ATTEND_DIM,
                                  .before = s->n - s->tokens,
                                  .tokens = s->tokens,
                                  .heads = u->c->parts * ATTEND_GROUP,
                                  .kv_heads = u->c->parts,
                                  .dim = ATTEND_DIM,
                                  .scale = tern_bench_attention(u->host).scale,
                                  .out = u->out,
                                  .out_stride = width};

    return u->d->ops->attend(u->d, u->stream, &a, err);
}

/* One token, whose heads are the parts. */
static tern_status rope(tern_device_operands *u, tern_error *err) {
    const size_t n = u->c->shape.n;
    const tern_device_rope a = {.op = u->c->kernel.op,
                                .x = u->out,
                                .stride = u->c->parts * n,
                                .c = u->in1,
                                .s = u->in1 + n / 2,
                                .half = n / 2,
                                .heads = u->c->parts,
                                .tokens = 1,
                                .dim = n};

    return u->d->ops->rope(u->d, u->stream, &a, err);
}

tern_status tern_device_call(tern_device_operands *u, tern_error *err) {
    const tern_device_ops *ops = u->d->ops;
    const tern_op op = u->c->kernel.op;
    const size_t n = u->c->shape.n;
    const tern_device_rows a = {u->in0, n, n, 1, false}, b = {u->in1, n, n, 1, false};
    const tern_device_rows y = {u->out, n, n, 1, false};

    switch (op) {
    case TERN_OP_GEMV:
    case TERN_OP_GEMM:
        return multiply(u, err);
    case TERN_OP_ATTEND:
        return attend(u, err);
    case TERN_OP_QUANTIZE_TOKEN:
        return ops->quantize_token(u->d, u->stream, &a, &u->quantized, err);
    case TERN_OP_QUANTIZE_BLOCK:
        return ops->quantize_block(u->d, u->stream, &a, &u->quantized, err);
    case TERN_OP_RMSNORM:
        return ops->rmsnorm(u->d, u->stream, &a, u->in1, 1e-5f, &y, err);
    case TERN_OP_ROPE_NORM:
    case TERN_OP_ROPE_NEOX:
        return rope(u, err);
    case TERN_OP_SOFTMAX:
        return ops->softmax(u->d, u->stream, &y, err);
    case TERN_OP_GATE_SILU:
    case TERN_OP_GATE_RELU2:
        return ops->gate(u->d, u->stream, op, &a, &b, &y, err);
    case TERN_OP_ADD:
        return ops->add(u->d, u->stream, &y, &b, err);
    case TERN_OP_EMBED:
        return ops->embed(u->d, u->stream, &u->matrix, u->ids, 1.0f, &y, err);
    case TERN_OP_STORE:
        return ops->store(u->d, u->stream, u->c->kernel.format, &a, u->out, n, err);
    default:
        return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "%s: not measured", tern_op_name(op));
    }
}

/* ---- the answer ---------------------------------------------------------------------------- */

static tern_status fetch_quantized(tern_device_operands *u, tern_error *err) {
    const tern_device_ops *ops = u->d->ops;
    const tern_device_quantized *z = &u->quantized;
    const tern_bench_operands *o = u->host;
    const size_t bytes = o->scale_count * sizeof(float);
    const size_t scales = u->c->kernel.op == TERN_OP_QUANTIZE_TOKEN ? sizeof(float) : bytes;
    tern_status status = ops->download(u->d, u->stream, o->q, z->q, o->q_bytes, err);

    if (status == TERN_OK)
        status = ops->download(u->d, u->stream, o->d, z->d, scales, err);
    if (status == TERN_OK)
        status = ops->download(u->d, u->stream, o->sum, z->block_sum, scales, err);
    return status;
}

tern_status tern_device_right(tern_device_operands *u, bool *right, tern_error *err) {
    tern_bench_operands *o = u->host;
    const size_t bytes = o->out_count * u->c->parts * sizeof(float);
    const bool quantizes =
        u->c->kernel.op == TERN_OP_QUANTIZE_TOKEN || u->c->kernel.op == TERN_OP_QUANTIZE_BLOCK;
    float *all = tern_bench_zeroed(bytes);
    tern_status status;

    *right = true;
    if (all == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the answer");
    status = quantizes ? fetch_quantized(u, err)
                       : u->d->ops->download(u->d, u->stream, all, u->out, bytes, err);
    if (status == TERN_OK && !quantizes)
        *right = gather(u, all, o->out);
    if (status == TERN_OK)
        *right = tern_bench_right(o) && *right;
    free(all);
    return status;
}

double tern_device_bytes(const tern_device_operands *u) {
    return tern_bench_bytes(u->host) * (double)u->c->parts;
}

double tern_device_macs(const tern_device_operands *u) {
    return tern_bench_macs(u->host) * (double)u->c->parts;
}
