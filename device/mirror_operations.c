/* SPDX-License-Identifier: Apache-2.0 */

/* The operations of a mirror: those of the device, on the counterparts of their operands. */

#include "device/internal.h"
#include "device/mirror_internal.h"

/* The operands of a call. */
typedef struct call {
    tern_mirror *m;
    bool lost; /* an operand has no counterpart */
} call;

static call begin(tern_device *d) {
    return (call){.m = (tern_mirror *)d};
}

/* The counterpart of an operand; NULL of one that is left out. */
static void *at(call *c, const void *host) {
    void *device = host != NULL ? tern_mirror_at(c->m, host) : NULL;
    c->lost = c->lost || (host != NULL && device == NULL);
    return device;
}

static tern_device_rows rows_at(call *c, const tern_device_rows *x) {
    tern_device_rows rows = *x;
    rows.data = at(c, x->data);
    return rows;
}

static tern_matrix matrix_at(call *c, const tern_matrix *w) {
    tern_matrix matrix = *w;
    matrix.data = at(c, w->data);
    matrix.row_scale = at(c, w->row_scale);
    return matrix;
}

static tern_device_pages pages_at(call *c, const tern_device_pages *p) {
    tern_device_pages pages = *p;
    pages.data = at(c, p->data);
    pages.tables = at(c, (const void *)p->tables);
    return pages;
}

static tern_activations activations_at(call *c, const tern_activations *x) {
    tern_activations activations = *x;
    activations.x = at(c, x->x);
    activations.q = at(c, x->q);
    activations.s = at(c, x->s);
    activations.sum = at(c, x->sum);
    activations.d = at(c, x->d);
    activations.block_sum = at(c, x->block_sum);
    return activations;
}

static tern_device_quantized quantized_at(call *c, const tern_device_quantized *out) {
    tern_device_quantized quantized = *out;
    quantized.q = at(c, out->q);
    quantized.s = at(c, out->s);
    quantized.sum = at(c, out->sum);
    quantized.d = at(c, out->d);
    quantized.block_sum = at(c, out->block_sum);
    return quantized;
}

/* The device's kernel for an operation, looked up once. */
static const tern_kernel_row *kernel_of(tern_mirror *m, tern_op op, tern_format format,
                                        tern_layout layout) {
    for (size_t i = 0; i < m->n_kernels; i++) {
        const tern_mirror_kernel *k = &m->kernels[i];
        if (k->op == op && k->format == format && k->layout == layout)
            return k->kernel;
    }
    const tern_kernel_row *kernel = tern_device_kernel(m->base.kind, op, format, layout);
    if (m->n_kernels < TERN_MIRROR_KERNELS)
        m->kernels[m->n_kernels++] = (tern_mirror_kernel){op, format, layout, kernel};
    return kernel;
}

/* Counts what the device is about to run. */
static void note(const call *c, tern_op op, tern_format format, tern_layout layout) {
    const tern_kernel_row *kernel =
        c->lost || c->m->tally == NULL ? NULL : kernel_of(c->m, op, format, layout);
    if (kernel != NULL)
        tern_tally_count(c->m->tally, kernel);
}

static void note_plain(const call *c, tern_op op) {
    note(c, op, TERN_FORMAT_NONE, TERN_LAYOUT_NONE);
}

/* The status of the device's entry, called if all operands are there. */
#define ON_DEVICE(c, entry, ...)                                                                   \
    ((c).lost ? tern_fail(err, TERN_ERR_STATE, #entry ": an operand is not on the device")         \
              : (c).m->device->ops->entry((c).m->device, (c).m->stream, __VA_ARGS__, err))

static tern_status mirror_stream_sync(tern_device *d, tern_device_stream *stream, tern_error *err) {
    const tern_mirror *m = (const tern_mirror *)d;
    (void)stream;
    return m->device->ops->stream_sync(m->device, m->stream, err);
}

static void note_products(const call *c, const tern_device_product *products, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const tern_op op = products[i].tokens == 1 ? TERN_OP_GEMV : TERN_OP_GEMM;
        note(c, op, products[i].w->format, products[i].w->layout);
        if (products[i].bias != NULL)
            note_plain(c, TERN_OP_ADD);
    }
}

static tern_status mirror_multiply(tern_device *d, tern_device_stream *stream,
                                   const tern_device_product *products, size_t count,
                                   tern_error *err) {
    enum { MOST = 4 };
    tern_device_product there[MOST];
    tern_matrix matrices[MOST];
    call c = begin(d);
    (void)stream;
    if (count > MOST)
        return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "multiply: %zu products at once", count);
    for (size_t i = 0; i < count; i++) {
        matrices[i] = matrix_at(&c, products[i].w);
        there[i] = products[i];
        there[i].w = &matrices[i];
        there[i].x = activations_at(&c, &products[i].x);
        there[i].y = at(&c, products[i].y);
        there[i].factor = at(&c, products[i].factor);
        there[i].bias = at(&c, products[i].bias);
    }
    note_products(&c, products, count);
    return ON_DEVICE(c, multiply, there, count);
}

#define QUANTIZE(entry, op)                                                                        \
    static tern_status mirror_##entry(tern_device *d, tern_device_stream *stream,                  \
                                      const tern_device_rows *x, const tern_device_quantized *out, \
                                      tern_error *err) {                                           \
        call c = begin(d);                                                                         \
        const tern_device_rows rows = rows_at(&c, x);                                              \
        const tern_device_quantized to = quantized_at(&c, out);                                    \
        (void)stream;                                                                              \
        note_plain(&c, op);                                                                        \
        return ON_DEVICE(c, entry, &rows, &to);                                                    \
    }
QUANTIZE(quantize_token, TERN_OP_QUANTIZE_TOKEN)
QUANTIZE(quantize_block, TERN_OP_QUANTIZE_BLOCK)
#undef QUANTIZE

static tern_status mirror_rmsnorm(tern_device *d, tern_device_stream *stream,
                                  const tern_device_rows *x, const float *g, float eps,
                                  const tern_device_rows *y, tern_error *err) {
    call c = begin(d);
    const tern_device_rows from = rows_at(&c, x), to = rows_at(&c, y);
    const float *gains = at(&c, g);
    (void)stream;
    note_plain(&c, TERN_OP_RMSNORM);
    return ON_DEVICE(c, rmsnorm, &from, gains, eps, &to);
}

static tern_status mirror_rope(tern_device *d, tern_device_stream *stream,
                               const tern_device_rope *a, tern_error *err) {
    call c = begin(d);
    tern_device_rope there = *a;
    there.x = at(&c, a->x);
    there.c = at(&c, a->c);
    there.s = at(&c, a->s);
    (void)stream;
    note_plain(&c, a->op);
    return ON_DEVICE(c, rope, &there);
}

static tern_status mirror_gate(tern_device *d, tern_device_stream *stream, tern_op op,
                               const tern_device_rows *g, const tern_device_rows *u,
                               const tern_device_rows *y, tern_error *err) {
    call c = begin(d);
    const tern_device_rows gate = rows_at(&c, g), up = rows_at(&c, u), to = rows_at(&c, y);
    (void)stream;
    note_plain(&c, op);
    return ON_DEVICE(c, gate, op, &gate, &up, &to);
}

static tern_status mirror_add(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                              const tern_device_rows *y, tern_error *err) {
    call c = begin(d);
    const tern_device_rows sum = rows_at(&c, x), more = rows_at(&c, y);
    (void)stream;
    note_plain(&c, TERN_OP_ADD);
    return ON_DEVICE(c, add, &sum, &more);
}

/* Rows that are the caller's alone are sent: what takes the place of tokens. */
static tern_status mirror_copy(tern_device *d, tern_device_stream *stream,
                               const tern_device_rows *x, const tern_device_rows *y,
                               tern_error *err) {
    tern_mirror *m = (tern_mirror *)d;
    const bool close = x->stride == x->n && y->stride == y->n;
    call c = begin(d);
    (void)stream;
    if (close && tern_mirror_at(m, x->data) == NULL) {
        void *to = at(&c, y->data);
        return ON_DEVICE(c, upload, to, x->data, x->rows * x->n * sizeof *x->data);
    }
    const tern_device_rows from = rows_at(&c, x), to = rows_at(&c, y);
    return ON_DEVICE(c, copy, &from, &to);
}

static tern_status mirror_round(tern_device *d, tern_device_stream *stream, tern_op op,
                                const tern_device_rows *x, const tern_device_rows *y,
                                tern_error *err) {
    call c = begin(d);
    const tern_device_rows from = rows_at(&c, x), to = rows_at(&c, y);
    (void)stream;
    note_plain(&c, op);
    return ON_DEVICE(c, round, op, &from, &to);
}

static tern_status mirror_watch(tern_device *d, tern_device_stream *stream,
                                const tern_device_watch *a, tern_error *err) {
    call c = begin(d);
    tern_device_watch there = *a;
    there.x = rows_at(&c, &a->x);
    there.notes = at(&c, a->notes);
    there.at = at(&c, a->at);
    (void)stream;
    return ON_DEVICE(c, watch, &there);
}

static tern_status mirror_embed(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                                const int32_t *ids, float factor, const tern_device_rows *y,
                                tern_error *err) {
    call c = begin(d);
    const tern_matrix matrix = matrix_at(&c, w);
    const int32_t *numbers = at(&c, ids);
    const tern_device_rows to = rows_at(&c, y);
    (void)stream;
    note(&c, TERN_OP_EMBED, w->format, w->layout);
    return ON_DEVICE(c, embed, &matrix, numbers, factor, &to);
}

static tern_status mirror_store_pages(tern_device *d, tern_device_stream *stream,
                                      const tern_device_store *a, tern_error *err) {
    call c = begin(d);
    tern_device_store there = *a;
    there.to = pages_at(&c, &a->to);
    there.x = at(&c, a->x);
    there.at = at(&c, a->at);
    (void)stream;
    note(&c, TERN_OP_STORE, a->to.format, TERN_LAYOUT_NONE);
    return ON_DEVICE(c, store_pages, &there);
}

static tern_status mirror_attend_pages(tern_device *d, tern_device_stream *stream,
                                       const tern_device_attend_pages *a, tern_error *err) {
    call c = begin(d);
    tern_device_attend_pages there = *a;
    there.k = pages_at(&c, &a->k);
    there.v = pages_at(&c, &a->v);
    there.at = at(&c, a->at);
    there.q = at(&c, a->q);
    there.out = at(&c, a->out);
    there.sinks = at(&c, a->sinks);
    (void)stream;
    note(&c, TERN_OP_ATTEND, a->k.format, TERN_LAYOUT_NONE);
    return ON_DEVICE(c, attend_pages, &there);
}

static tern_status mirror_softmax(tern_device *d, tern_device_stream *stream,
                                  const tern_device_rows *x, tern_error *err) {
    call c = begin(d);
    const tern_device_rows rows = rows_at(&c, x);
    (void)stream;
    note_plain(&c, TERN_OP_SOFTMAX);
    return ON_DEVICE(c, softmax, &rows);
}

static tern_status mirror_layernorm(tern_device *d, tern_device_stream *stream,
                                    const tern_device_rows *x, const float *g, const float *b,
                                    float eps, const tern_device_rows *y, tern_error *err) {
    call c = begin(d);
    const tern_device_rows from = rows_at(&c, x), to = rows_at(&c, y);
    const float *gains = at(&c, g), *biases = at(&c, b);
    (void)stream;
    note_plain(&c, TERN_OP_LAYERNORM);
    return ON_DEVICE(c, layernorm, &from, gains, biases, eps, &to);
}

static tern_status mirror_hadamard(tern_device *d, tern_device_stream *stream,
                                   const tern_device_rows *x, const float *before,
                                   const float *after, size_t block, const tern_device_rows *y,
                                   tern_error *err) {
    call c = begin(d);
    const tern_device_rows from = rows_at(&c, x), to = rows_at(&c, y);
    const float *first = at(&c, before), *last = at(&c, after);
    (void)stream;
    note_plain(&c, TERN_OP_HADAMARD);
    return ON_DEVICE(c, hadamard, &from, first, last, block, &to);
}

const tern_device_ops tern_mirror_ops = {
    .stream_sync = mirror_stream_sync,
    .multiply = mirror_multiply,
    .quantize_token = mirror_quantize_token,
    .quantize_block = mirror_quantize_block,
    .rmsnorm = mirror_rmsnorm,
    .layernorm = mirror_layernorm,
    .hadamard = mirror_hadamard,
    .rope = mirror_rope,
    .softmax = mirror_softmax,
    .gate = mirror_gate,
    .add = mirror_add,
    .copy = mirror_copy,
    .round = mirror_round,
    .watch = mirror_watch,
    .embed = mirror_embed,
    .store_pages = mirror_store_pages,
    .attend_pages = mirror_attend_pages,
};
