/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_H
#define TERN_DEVICE_H

/*
 * Devices: one table of functions for the processor, CUDA and Level Zero, with the operations of
 * kernels.h over several tokens at once. Every device returns the same bits (docs/numerics.md).
 * Passes of a model call the table of the processor or of CUDA (runtime/engine/forward).
 *
 * Pointers among an operation's operands are addresses on the device: memory of `alloc`, or an
 * element inside it. Only upload, download and gemv_block_sparse_f32 take host memory. Alignment
 * is that of kernels.h. Operations are queued on a stream, in order, and may run later; an error
 * that a device finds while it works is returned by a later call on the stream, by `stream_sync`
 * at the latest. A device and its streams are used by one thread at a time. Inside the library
 * the threads of a team share the work of one processor (device/lane.h).
 *
 * Functions that a device does not have return TERN_ERR_UNIMPLEMENTED; the caller then uses the
 * processor (tern_device_gemv_block_sparse_f32 below shows how).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"
#include "tern/status.h"

TERN_API_BEGIN

/* X(NAME, text): the text is what tern_device_open takes. */
#define TERN_DEVICE_LIST(X)                                                                        \
    X(CPU, "cpu")                                                                                  \
    X(CUDA, "cuda")                                                                                \
    X(LEVEL_ZERO, "level-zero")

typedef enum tern_device_kind {
#define TERN_DEVICE_ENUM(name, text) TERN_DEVICE_##name,
    TERN_DEVICE_LIST(TERN_DEVICE_ENUM)
#undef TERN_DEVICE_ENUM
        TERN_DEVICE_COUNT
} tern_device_kind;

typedef struct tern_device tern_device;
typedef struct tern_device_stream tern_device_stream;
typedef struct tern_device_recording tern_device_recording;

/* ---- operands ------------------------------------------------------------------------------ */

/* `rows` rows of n floats; row i starts at data + i*stride. */
typedef struct tern_device_rows {
    float *data;
    size_t stride; /* >= n, in elements */
    size_t n;
    size_t rows;
    bool own; /* false, but where threads share an operation (device/lane.h): each has these rows
                 for itself */
} tern_device_rows;

/*
 * One of several products over activations that are there: y[t][r] = w x[t] (* factor) (+ bias[r])
 * for all rows r of w and `tokens` tokens, each step rounded.
 */
typedef struct tern_device_product {
    const tern_matrix *w;
    tern_activations x;
    size_t tokens;
    float *y;
    size_t y_stride;     /* >= w->rows */
    const float *factor; /* one number; NULL: none. Not on CUDA */
    const float *bias;   /* [w->rows]; NULL: none */
    /* Rows of the kernel table that the processor takes for one token, and for more; NULL: the
     * first that fits. Other devices take their own. */
    const tern_kernel_row *gemv, *gemm;
} tern_device_product;

/* Destination of quantized activations; a token's row as tern_quantize_token_fn or _block_fn writes
 * it.
 */
typedef struct tern_device_quantized {
    int8_t *q;          /* [tokens][q_stride], 64-byte aligned rows */
    size_t q_stride;    /* at least n rounded up to a multiple of TERN_Q_PAD, a multiple of it */
    float *s;           /* quantize_token: [tokens] */
    int32_t *sum;       /* quantize_token: [tokens] */
    float *d;           /* quantize_block: [tokens][d_stride] */
    int32_t *block_sum; /* quantize_block: [tokens][d_stride] */
    size_t d_stride;    /* >= ceil(n / 32) */
} tern_device_quantized;

/*
 * Rotates the first 2*half floats of `heads` heads in each of `tokens` tokens, in place. op is
 * ROPE_NORM or ROPE_NEOX. Token t turns by the angles c[t*half ..], s[t*half ..].
 */
typedef struct tern_device_rope {
    tern_op op;
    float *x;       /* head h of token t: x + t*stride + h*dim */
    size_t stride;  /* >= heads * dim */
    const float *c; /* [tokens][half] */
    const float *s; /* [tokens][half] */
    size_t half, heads, tokens;
    size_t dim; /* of a head, >= 2*half */
} tern_device_rope;

/* A token's sequence, and its position there. */
typedef struct tern_device_place {
    uint32_t sequence;
    uint32_t position;
} tern_device_place;

/*
 * The keys, or the values, of one layer for any number of sequences: pages of TERN_ATTEND_CHUNK
 * positions. A head of a page is TERN_ATTEND_CHUNK rows of `dim` elements (a row of Q8_0 is whole
 * blocks). Position p of sequence s lies in page tables[s][p / TERN_ATTEND_CHUNK].
 */
typedef struct tern_device_pages {
    tern_format format;
    void *data;         /* head 0 of page 0 */
    size_t head_stride; /* from head to head, in bytes */
    size_t page_stride; /* from page to page, in bytes */
    const uint32_t *const *tables;
} tern_device_pages;

/* Writes `heads` heads of `tokens` tokens, keys or values, to where the tokens belong. */
typedef struct tern_device_store {
    tern_device_pages to;
    const float *x;              /* head h of token t: x + t*stride + h*dim */
    size_t stride;               /* >= heads * dim */
    const tern_device_place *at; /* [tokens] */
    size_t tokens, heads, dim;
} tern_device_store;

/* Neighbours in a sequence whose attention the processor computes together: they read the cache
 * once. */
enum { TERN_ATTEND_TOKENS = 16 };

/*
 * Causal attention of tokens of any number of sequences: token t sees positions 0 ..
 * at[t].position of its sequence, or the last ones of them. Heads as in tern_device_attend. Tokens
 * that follow each other in a sequence are best neighbours.
 */
typedef struct tern_device_attend_pages {
    tern_device_pages k, v;      /* of one format */
    const tern_device_place *at; /* [tokens] */
    const float *q;              /* head h of token t: q + t*q_stride + h*dim */
    size_t q_stride;
    size_t tokens, heads, kv_heads, dim;
    float scale;
    float cap;     /* of tern_attend_args; 0: none. Not on CUDA */
    size_t window; /* positions that a token sees, its own included; 0: all up to it */
    float *out;    /* as q */
    size_t out_stride;
    const float *sinks; /* [heads], of tern_attend_heads; NULL: none */
} tern_device_attend_pages;

/*
 * Looks whether numbers grew beyond what holds them: *note = code for each token with a row that
 * has an element not below `limit` in magnitude (a NaN is not), if code is the smaller one. Rows
 * [t*group, (t+1)*group) are those of token t.
 */
typedef struct tern_device_watch {
    tern_device_rows x;
    size_t group;
    float limit;  /* > 0; INFINITY: the rows are finite */
    bool squares; /* instead of the limit: rmsnorm can add up the squares of a row */
    uint32_t code;
    uint32_t *notes;             /* [sequences] */
    const tern_device_place *at; /* [tokens]; the token's note is notes[at[t].sequence] */
} tern_device_watch;

/*
 * Causal attention of `tokens` consecutive tokens, the first of which has `before` positions in
 * front of it: token t sees positions 0 .. before + t. Heads [g*group, (g+1)*group) of a token,
 * group = heads / kv_heads, read key/value head g.
 */
typedef struct tern_device_attend {
    tern_format format; /* of the cache; on CUDA F32 or F16 */
    const float *q;     /* head h of token t: q + t*q_stride + h*dim */
    size_t q_stride;
    const void *k;    /* position p of head g: element (g*kv_stride + p*dim) */
    const void *v;    /* likewise */
    size_t kv_stride; /* >= (before + tokens) * dim */
    size_t before, tokens, heads, kv_heads, dim;
    float scale;
    float *out; /* as q */
    size_t out_stride;
} tern_device_attend;

/* ---- the functions of a device ------------------------------------------------------------- */

/*
 * X(name, parameters). All return a tern_status; err may be NULL. No size may be 0. What an
 * operation writes overlaps nothing else that it reads or writes, but for what is said here.
 *
 * alloc          *memory = bytes of device memory, aligned to TERN_ALIGN at least.
 * free           memory of alloc, or NULL. Waits for nothing: synchronise first.
 * upload         returns when `from` may be reused; the copy itself is on the stream.
 * download       waits for the stream up to here, then `to` is filled.
 * upload_matrix  copies a packed or ROWS matrix; *to is it on the device. Release with free_matrix.
 * gemv, gemm     as tern_matmul_fn. TERN_ERR_KERNEL: no kernel for the matrix's format.
 * multiply       `count` products, none of which reads what another writes.
 * quantize_token, quantize_block, rmsnorm (y may be x), softmax (in place), add (x += y)
 *                as the function types of kernels.h, for each row.
 * layernorm      likewise, with gains g and biases b, which may be NULL; y may be x. Not on CUDA.
 * hadamard       as tern_hadamard_fn, for each row; before and after may be NULL, y may be x.
 *                Not on CUDA.
 * copy           y = x, bit for bit.
 * gate           op is GATE_SILU or GATE_RELU2; for each row; y may be g or u.
 * round          op is ROUND_INT8, ROUND_FP8, ...; y = x in another precision, for each row;
 *                y may be x.
 * embed          row ids[t] of a matrix in the file's layout (ROWS), times the factor, to row t of
 *                y; ids in range.
 * store          each row of x to a cache format, `stride` elements apart; on CUDA F32 or F16.
 * store_pages, attend_pages
 *                on CUDA F32 or F16.
 * record         from here on operations that are called with the stream are noted in place of
 *                being run: none that copies from or to the host, or waits. On CUDA alone.
 * end_record     *recording = what was noted; NULL where there was an error.
 * replay         runs what was noted, with the same operands; what these point to may have changed.
 * free_recording of end_record, or NULL. Waits for nothing: synchronise first.
 * gemv_block_sparse_f32
 *                y[r] of one token; all operands are host memory, on every device.
 */
#define TERN_DEVICE_OPS(X)                                                                         \
    X(alloc, (tern_device * d, size_t bytes, void **memory, tern_error *err))                      \
    X(free, (tern_device * d, void *memory, tern_error *err))                                      \
    X(stream_new, (tern_device * d, tern_device_stream * *stream, tern_error * err))               \
    X(stream_free, (tern_device * d, tern_device_stream * stream, tern_error * err))               \
    X(stream_sync, (tern_device * d, tern_device_stream * stream, tern_error * err))               \
    X(upload, (tern_device * d, tern_device_stream * stream, void *to, const void *from,           \
               size_t bytes, tern_error *err))                                                     \
    X(download, (tern_device * d, tern_device_stream * stream, void *to, const void *from,         \
                 size_t bytes, tern_error *err))                                                   \
    X(upload_matrix, (tern_device * d, tern_device_stream * stream, const tern_matrix *host,       \
                      tern_matrix *to, tern_error *err))                                           \
    X(free_matrix, (tern_device * d, tern_matrix * matrix, tern_error * err))                      \
    X(gemv, (tern_device * d, tern_device_stream * stream, const tern_matrix *w,                   \
             const tern_activations *x, const tern_tile *tile, float *y, size_t y_stride,          \
             tern_error *err))                                                                     \
    X(gemm, (tern_device * d, tern_device_stream * stream, const tern_matrix *w,                   \
             const tern_activations *x, const tern_tile *tile, float *y, size_t y_stride,          \
             tern_error *err))                                                                     \
    X(multiply, (tern_device * d, tern_device_stream * stream,                                     \
                 const tern_device_product *products, size_t count, tern_error *err))              \
    X(quantize_token, (tern_device * d, tern_device_stream * stream, const tern_device_rows *x,    \
                       const tern_device_quantized *out, tern_error *err))                         \
    X(quantize_block, (tern_device * d, tern_device_stream * stream, const tern_device_rows *x,    \
                       const tern_device_quantized *out, tern_error *err))                         \
    X(rmsnorm, (tern_device * d, tern_device_stream * stream, const tern_device_rows *x,           \
                const float *g, float eps, const tern_device_rows *y, tern_error *err))            \
    X(layernorm,                                                                                   \
      (tern_device * d, tern_device_stream * stream, const tern_device_rows *x, const float *g,    \
       const float *b, float eps, const tern_device_rows *y, tern_error *err))                     \
    X(hadamard, (tern_device * d, tern_device_stream * stream, const tern_device_rows *x,          \
                 const float *before, const float *after, size_t block, const tern_device_rows *y, \
                 tern_error *err))                                                                 \
    X(rope,                                                                                        \
      (tern_device * d, tern_device_stream * stream, const tern_device_rope *a, tern_error *err))  \
    X(attend, (tern_device * d, tern_device_stream * stream, const tern_device_attend *a,          \
               tern_error *err))                                                                   \
    X(softmax,                                                                                     \
      (tern_device * d, tern_device_stream * stream, const tern_device_rows *x, tern_error *err))  \
    X(gate, (tern_device * d, tern_device_stream * stream, tern_op op, const tern_device_rows *g,  \
             const tern_device_rows *u, const tern_device_rows *y, tern_error *err))               \
    X(add, (tern_device * d, tern_device_stream * stream, const tern_device_rows *x,               \
            const tern_device_rows *y, tern_error *err))                                           \
    X(copy, (tern_device * d, tern_device_stream * stream, const tern_device_rows *x,              \
             const tern_device_rows *y, tern_error *err))                                          \
    X(round, (tern_device * d, tern_device_stream * stream, tern_op op, const tern_device_rows *x, \
              const tern_device_rows *y, tern_error *err))                                         \
    X(watch,                                                                                       \
      (tern_device * d, tern_device_stream * stream, const tern_device_watch *a, tern_error *err)) \
    X(embed, (tern_device * d, tern_device_stream * stream, const tern_matrix *w,                  \
              const int32_t *ids, float factor, const tern_device_rows *y, tern_error *err))       \
    X(store, (tern_device * d, tern_device_stream * stream, tern_format format,                    \
              const tern_device_rows *x, void *out, size_t stride, tern_error *err))               \
    X(store_pages,                                                                                 \
      (tern_device * d, tern_device_stream * stream, const tern_device_store *a, tern_error *err)) \
    X(attend_pages, (tern_device * d, tern_device_stream * stream,                                 \
                     const tern_device_attend_pages *a, tern_error *err))                          \
    X(record, (tern_device * d, tern_device_stream * stream, tern_error * err))                    \
    X(end_record, (tern_device * d, tern_device_stream * stream,                                   \
                   tern_device_recording * *recording, tern_error * err))                          \
    X(replay, (tern_device * d, tern_device_stream * stream,                                       \
               const tern_device_recording *recording, tern_error *err))                           \
    X(free_recording, (tern_device * d, tern_device_recording * recording, tern_error * err))      \
    X(gemv_block_sparse_f32,                                                                       \
      (tern_device * d, const tern_block_sparse *w, const float *x, float *y, tern_error *err))

typedef struct tern_device_ops {
#define TERN_DEVICE_OP(name, parameters) tern_status(*name) parameters;
    TERN_DEVICE_OPS(TERN_DEVICE_OP)
#undef TERN_DEVICE_OP
    void (*close)(tern_device *d); /* releases the device; its memory and streams first */
} tern_device_ops;

/* Members that all devices have; read only. */
struct tern_device {
    const tern_device_ops *ops;
    tern_device_kind kind;
    char name[128];                      /* of the processor or accelerator */
    char note[TERN_ERROR_MESSAGE_BYTES]; /* "auto" only: why it is the processor; else empty */
};

/* ---- opening ------------------------------------------------------------------------------- */

/*
 * Opens "cpu", "cuda", "level-zero", or "auto" (also NULL): CUDA where it works, else the
 * processor, with the reason in (*device)->note. A device that is asked for by name and cannot be
 * had is an error: TERN_ERR_DEVICE with the reason; TERN_ERR_UNIMPLEMENTED for level-zero;
 * TERN_ERR_NAME for an unknown name.
 */
TERN_MUST_CHECK tern_status tern_device_open(const char *name, tern_device **device,
                                             tern_error *err);

/* Closes *device and sets it to NULL. NULL and a pointer to NULL are fine. */
void tern_device_close(tern_device **device);

/* The text of a kind ("cuda"); NULL when out of range. */
const char *tern_device_name(tern_device_kind kind);

/* The device that runs a kernel of the table: CUDA for its own, else the processor. */
tern_device_kind tern_device_of_row(const tern_kernel_row *row);

/*
 * y = W x (+ bias) on `device` (NULL: the processor), and on the processor where the device does
 * not implement it. The same bits as a dense F32 product whenever all x are finite.
 */
TERN_MUST_CHECK tern_status tern_device_gemv_block_sparse_f32(tern_device *device,
                                                              const tern_block_sparse *w,
                                                              const float *x, float *y,
                                                              tern_error *err);

TERN_API_END

#endif
