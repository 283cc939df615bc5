/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_H
#define TERN_KERNELS_H

/*
 * The kernel library (libtern-kernels): formats, packed matrices, and the contract of every
 * operation. This header with the six that it includes is all that there is to know;
 * tern_status_str, there, gives a status that a call refuses with (22, say) its text.
 *
 * How to use this library; examples/gemv.c is the whole of it on a page:
 *  1. tern_cpu_mask says what this machine can run. Once.
 *  2. tern_kernel_select gives a kernel of the table for an operation and a format. Keep it.
 *  3. Weights come in the layout of a file, or from floats with tern_quantize_weights. Unless the
 *     kernel's layout is ROWS, tern_pack_rows packs them. A tern_matrix describes the result.
 *  4. Activations are brought into the form that tern_layout_input names for the layout: FLOAT as
 *     they are, TOKEN by the kernel for QUANTIZE_TOKEN, BLOCK by QUANTIZE_BLOCK's. A
 *     tern_activations describes them.
 *  5. row->fn.matmul computes a rectangle of the output; the other operations are called alike.
 *
 * Results. For one operation and format all kernels return the same bits: integers are exact,
 * float parts follow the order fixed in docs/numerics.md. That supposes the floating-point mode
 * that a program starts with: round to nearest, denormals kept.
 *
 * Shapes. Matrices are W[rows][cols], cols contiguous: rows outputs, cols inputs. Sizes are in
 * elements unless they say bytes. The machine is little-endian.
 *
 * Ownership. Buffers are the caller's. Nothing allocates unless it says so, and no pointer is kept
 * when a call returns. Pointers that functions return are to static storage.
 *
 * Alignment. Packed matrices and int8 activations: TERN_ALIGN bytes. Everything else: what its type
 * asks for; data in the layout of a file: none, unless a matrix in layout ROWS points to it.
 * Operands do not overlap except where a contract says that one may be another.
 *
 * Threads. Any function and any kernel may run in any number of threads at once, as long as none of
 * them writes what another one reads or writes. A product is split by giving each thread its own
 * tern_tile of one output, packing by giving each its own row groups; no split changes a bit.
 *
 * Errors. Kernels check nothing and cannot fail: their preconditions stand here. What can fail
 * returns a tern_status, and leaves its out-parameters as they were unless it says otherwise; where
 * it takes a tern_error, that may be NULL.
 *
 * Initialisation. Nothing runs when the library is loaded. The first tern_cpu_mask asks cpuinfo
 * (which allocates) and executes each instruction set once, with a handler for SIGILL in place
 * meanwhile; later calls only read what was found. It is also the only function that looks at the
 * environment (TERN_ISA, TERN_DISABLE, TERN_PROCESSOR). There is no other global state but a
 * counter (tern_dequantize_calls).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/attend.h"
#include "tern/formats.h"
#include "tern/import.h"
#include "tern/processor.h"
#include "tern/sparse.h"
#include "tern/status.h"

TERN_API_BEGIN

/* ---- formats ------------------------------------------------------------------------------- */

/*
 * tern/formats.h, generated from the table kernels/formats.toml, lists formats and layouts.
 * I2_S has no blocks in the file: four codes a byte, one scale for the tensor at its end.
 * INT8 and INT4 are formats of this library, for matrices that are quantized in memory: INT8 is one
 * signed byte a weight with the scales outside (tern_matrix), a block of INT4 an f16 scale, a zero
 * point (0 .. 255), a byte of 0, and 16 bytes of nibbles ordered as Q4_0's: (code - zero) * scale.
 */
typedef enum tern_format {
#define TERN_FORMAT_ENUM(name, text, id, elements, bytes) TERN_FORMAT_##name,
    TERN_FORMAT_LIST(TERN_FORMAT_ENUM)
#undef TERN_FORMAT_ENUM
        TERN_FORMAT_COUNT,
    TERN_FORMAT_NONE = TERN_FORMAT_COUNT /* operations that have no weight format */
} tern_format;

typedef struct tern_format_info {
    const char *name;        /* lower case, as in the kernel table */
    uint32_t gguf_type;      /* tensor type id in a GGUF file */
    uint32_t block_elements; /* the contiguous dimension must be a multiple of this */
    uint32_t block_bytes;
} tern_format_info;

/* Facts about a format; NULL when format is not below TERN_FORMAT_COUNT. Static storage. */
const tern_format_info *tern_format_describe(tern_format format);

/* The format stored under a GGUF type id, or TERN_FORMAT_NONE. */
tern_format tern_format_from_gguf(uint32_t gguf_type);

/*
 * Bytes of a rows x cols matrix as a GGUF file stores it (for I2_S: rows*cols/4 + 32).
 * Returns TERN_ERR_TENSOR_SHAPE when rows or cols is 0, cols does not suit the format or the
 * product overflows; for ternary formats also when cols > 65535, for I2_S when rows*cols is not a
 * multiple of 128.
 */
TERN_MUST_CHECK tern_status tern_format_bytes(tern_format format, uint64_t rows, uint64_t cols,
                                              uint64_t *bytes);

/*
 * The scale that a matrix in the file's own layout has for all its weights: what a tern_matrix
 * wants as `scale`. I2_S keeps it after its codes; 1 for formats without one.
 */
float tern_format_scale(tern_format format, const void *file, size_t rows, size_t cols);

/* ---- layouts ------------------------------------------------------------------------------- */

/* How a kernel wants a matrix in memory: tern/formats.h in words, docs/formats.md in pictures. */
typedef enum tern_layout {
#define TERN_LAYOUT_ENUM(name, text, input) TERN_LAYOUT_##name,
    TERN_LAYOUT_LIST(TERN_LAYOUT_ENUM)
#undef TERN_LAYOUT_ENUM
        TERN_LAYOUT_COUNT
} tern_layout;

enum {
    TERN_ROW_GROUP = 16,    /* rows interleaved by the R16 layouts; unit of the row split */
    TERN_Q_PAD = 64,        /* int8 activation rows are zero-padded to a multiple of this */
    TERN_BLOCK = 32,        /* columns a block scale covers */
    TERN_LANES = 16,        /* virtual lanes of every float reduction */
    TERN_MANY_TOKENS = 32,  /* with this many, a gemm kernel may work in another order */
    TERN_ATTEND_CHUNK = 64, /* cache positions that attention handles before it merges: a page */
    TERN_ALIGN = 64         /* alignment of packed matrices and of arena allocations */
};

/* The forms of activations: which members of tern_activations a product reads. Bits of a set. */
typedef enum tern_input_form {
    TERN_INPUT_FLOAT = 1, /* x */
    TERN_INPUT_TOKEN = 2, /* q, s, sum: int8, one scale a token */
    TERN_INPUT_BLOCK = 4  /* q, d, block_sum: int8, one scale per 32 columns */
} tern_input_form;

/* Text of a layout; NULL when out of range. */
const char *tern_layout_name(tern_layout layout);

/* The form of activations that products over a layout read. `layout` is below the count. */
tern_input_form tern_layout_input(tern_layout layout);

/* True if matrices of the format can be packed into (or, for ROWS, used in place as) a layout. */
bool tern_layout_holds(tern_layout layout, tern_format format);

/* The layout of sparse blocks with values of the format, NONE when there is none; and its format,
 * TERN_FORMAT_NONE for layouts of other kinds. */
tern_layout tern_format_sparse_layout(tern_format format);
tern_format tern_layout_sparse_format(tern_layout layout);

/*
 * The layout in which products read a format unless another is asked for, as kernels.toml says;
 * NONE when the format has no products.
 */
tern_layout tern_format_layout(tern_format format);

/* ---- operands ------------------------------------------------------------------------------ */

/*
 * A weight matrix W[rows][cols] in the layout of the kernels that were selected for it. The view
 * borrows `data`, which the caller owns.
 */
typedef struct tern_matrix {
    tern_format format;
    tern_layout layout;
    size_t rows;
    size_t cols;
    float scale;            /* layouts that read TOKEN and INT8R16: of the matrix; else unused */
    const float *row_scale; /* [rows], or NULL; the same layouts: used instead of `scale` */
    const void *data; /* packed: 64-byte aligned; ROWS: aligned to the element (2 or 4 bytes) */
} tern_matrix;

/*
 * Activations of several tokens, in the forms that products read. A matmul reads only the members
 * that tern_layout_input names for its layout. Index t is the token, b = column / 32 the block.
 */
typedef struct tern_activations {
    size_t cols;
    const float *x;           /* [tokens][x_stride] */
    size_t x_stride;          /* >= cols, in elements */
    const int8_t *q;          /* [tokens][q_stride], 64-byte aligned rows, zero from cols on */
    size_t q_stride;          /* cols rounded up to a multiple of TERN_Q_PAD */
    const float *s;           /* [tokens] multiplier: q = round(x * s) */
    const int32_t *sum;       /* [tokens] sum of q */
    const float *d;           /* [tokens][d_stride] block scale: x ~ q * d */
    const int32_t *block_sum; /* [tokens][d_stride] sum of the block's q */
    size_t d_stride;          /* >= ceil(cols / 32) */
} tern_activations;

/* A rectangle of the output of a matmul: tokens [t0, t1), rows [r0, r1). r0 % 16 == 0. */
typedef struct tern_tile {
    size_t t0, t1;
    size_t r0, r1; /* r1 is a multiple of 16 or equals the matrix's row count */
} tern_tile;

/* ---- operations ---------------------------------------------------------------------------- */

/*
 * gemv, gemm: y[t][r] = sum_k W[r][k] * x[t][k] for one rectangle; y[t*y_stride + r].
 * gemv kernels are tuned for one token, gemm kernels for many; both accept any number.
 * w->layout equals the kernel's layout. Writes nothing outside the rectangle.
 */
typedef void tern_matmul_fn(const tern_matrix *w, const tern_activations *x, const tern_tile *tile,
                            float *y, size_t y_stride);

/*
 * quantize, per token (I2_S): amax = max(1e-5, max |x|), s = (float)(127.0 / amax),
 * q = clamp(rne(x*s), -128, 127), sum = sum of q. Writes q[0 .. n rounded up to 64), zeros from n.
 */
typedef void tern_quantize_token_fn(const float *x, size_t n, int8_t *q, float *s, int32_t *sum);

/*
 * quantize, per block of 32 (block formats): amax = max(1e-30, max |x| of the block),
 * d = amax / 127, q = clamp(rne(x * (127/amax)), -127, 127), block_sum = sum of the block's q.
 * Writes ceil(n/32) values of d and block_sum, and q as above. A short last block is zero-padded.
 */
typedef void tern_quantize_block_fn(const float *x, size_t n, int8_t *q, float *d,
                                    int32_t *block_sum);

/* rmsnorm: y[i] = (x[i] * (1 / sqrt(mean(x^2) + eps))) * g[i]. y may be x. */
typedef void tern_rmsnorm_fn(const float *x, const float *g, size_t n, float eps, float *y);

/*
 * layernorm: y[i] = ((x[i] - mean) * (1 / sqrt(variance + eps))) * g[i] + b[i], variance the mean
 * of (x - mean)^2. b may be NULL: then nothing is added. y may be x.
 */
typedef void tern_layernorm_fn(const float *x, const float *g, const float *b, size_t n, float eps,
                               float *y);

/*
 * rope: rotates x[0 .. 2*half) in place by the angles whose cosine and sine are c[half], s[half].
 * Format F32 only; the pairing is the kernel's: NORM (2i, 2i+1) or NEOX (i, i+half).
 */
typedef void tern_rope_fn(float *x, const float *c, const float *s, size_t half);

/* softmax: x[i] = exp(x[i] - max) / sum, in place. n >= 1. */
typedef void tern_softmax_fn(float *x, size_t n);

/* gate: y[i] = act(g[i]) * u[i]; act is the kernel's: silu(g) = g / (1 + exp(-g)), relu2(g) =
 * max(g,0)^2, gelu in its form with tanh. y may be g or u. */
typedef void tern_gate_fn(const float *g, const float *u, size_t n, float *y);

/* bias: y[i] = act(x[i] + b[i]), a bias and what follows it in one pass; act is the kernel's:
 * relu(z) = max(z, 0), relu2(z) = max(z, 0)^2, silu(z) = z / (1 + exp(-z)),
 * gelu(z) = z / (1 + exp(-1.59577 * (z + 0.044715 * z^3))), tanh. y may be x or b. */
typedef void tern_bias_fn(const float *x, const float *b, size_t n, float *y);

/* tanh: y[i] = tanh(x[i]), within 2.7e-7 of it, relatively; odd to the bit. round_...: y[i] = x[i]
 * in the kernel's precision of activations, as docs/numerics.md has it. y may be x. */
typedef void tern_tanh_fn(const float *x, size_t n, float *y);

/* add: x[i] += y[i]. */
typedef void tern_add_fn(float *x, const float *y, size_t n);

/*
 * hadamard: y = after * H(before * x), where H is the normalized Walsh-Hadamard transform
 * (Sylvester's order) of each `block` elements. before[n] and after[n] are factors, NULL: none.
 * block is a power of two, 16 or more; n is a multiple of it. y may be x.
 */
typedef void tern_hadamard_fn(const float *x, const float *before, const float *after, size_t n,
                              size_t block, float *y);

/* embed: one row of an embedding matrix in the file's own layout (ROWS). Not for I2_S. */
typedef void tern_embed_fn(const void *row, size_t n, float *y);

/*
 * store: float to the cache format. f32: copy; f16: round to nearest even; q8_0: ceil(n/32) blocks,
 * each d = (float16)(max |x| / 127), codes clamp(rne(x / d)) as docs/numerics.md has it, zeros
 * after a short last block.
 */
typedef void tern_store_fn(const float *x, size_t n, void *out);

/* ---- kernels ------------------------------------------------------------------------------- */

#define TERN_OP_LIST(X)                                                                            \
    X(GEMV, "gemv")                                                                                \
    X(GEMM, "gemm")                                                                                \
    X(QUANTIZE_TOKEN, "quantize_token")                                                            \
    X(QUANTIZE_BLOCK, "quantize_block")                                                            \
    X(RMSNORM, "rmsnorm")                                                                          \
    X(LAYERNORM, "layernorm")                                                                      \
    X(ROPE_NORM, "rope_norm")                                                                      \
    X(ROPE_NEOX, "rope_neox")                                                                      \
    X(ATTEND, "attend")                                                                            \
    X(SOFTMAX, "softmax")                                                                          \
    X(GATE_SILU, "gate_silu")                                                                      \
    X(GATE_RELU2, "gate_relu2")                                                                    \
    X(GATE_GELU, "gate_gelu")                                                                      \
    X(BIAS_RELU, "bias_relu")                                                                      \
    X(BIAS_RELU2, "bias_relu2")                                                                    \
    X(BIAS_SILU, "bias_silu")                                                                      \
    X(BIAS_GELU, "bias_gelu")                                                                      \
    X(BIAS_TANH, "bias_tanh")                                                                      \
    X(TANH, "tanh")                                                                                \
    X(ADD, "add")                                                                                  \
    X(EMBED, "embed")                                                                              \
    X(STORE, "store")                                                                              \
    X(GEMV_SPARSE, "gemv_sparse")                                                                  \
    X(HADAMARD, "hadamard")                                                                        \
    X(ROUND_INT8, "round_int8")                                                                    \
    X(ROUND_FP8, "round_fp8")                                                                      \
    X(ROUND_FP8_E5M2, "round_fp8_e5m2")                                                            \
    X(ROUND_FP16, "round_fp16")                                                                    \
    X(ROUND_BF16, "round_bf16")                                                                    \
    X(WATCH, "watch")                                                                              \
    X(RMSNORM_TOKEN, "rmsnorm_token")                                                              \
    X(GATE_QUICK, "gate_quick")

typedef enum tern_op {
#define TERN_OP_ENUM(name, text) TERN_OP_##name,
    TERN_OP_LIST(TERN_OP_ENUM)
#undef TERN_OP_ENUM
        TERN_OP_COUNT
} tern_op;

const char *tern_op_name(tern_op op);

/* The test that compares an operation's kernels with the reference; NULL for an unknown one. */
const char *tern_op_test(tern_op op);

typedef struct tern_kernel_row {
    const char *name; /* tern_<op>_<format>_<tile>_<isa>, unique */
    const char *isa;  /* name in the table: "scalar", "avx2", ... */
    tern_op op;
    tern_format format;
    tern_layout layout;
    uint64_t needs; /* feature bits of dispatch/cpu.h, all needed */
    uint32_t rows_tile, tokens_tile;
    union {                     /* NULL when it was not built for this architecture */
        void (*any)(void);      /* of several functions the first */
        tern_matmul_fn *matmul; /* GEMV, GEMM */
        tern_quantize_token_fn *quantize_token;
        tern_quantize_block_fn *quantize_block;
        tern_rmsnorm_fn *rmsnorm;
        tern_layernorm_fn *layernorm;
        tern_rope_fn *rope; /* ROPE_NORM, ROPE_NEOX */
        tern_attend_functions attend;
        tern_softmax_fn *softmax;
        tern_gate_fn *gate; /* GATE_SILU, GATE_RELU2, ... */
        tern_bias_fn *bias; /* BIAS_RELU, ... */
        tern_tanh_fn *tanh; /* TANH, ROUND_INT8, ... */
        tern_add_fn *add;
        tern_embed_fn *embed;
        tern_store_fn *store;
        tern_gemv_sparse_fn *gemv_sparse;
        tern_hadamard_fn *hadamard;
    } fn;
} tern_kernel_row;

/* A kernel that gave other bits than the scalar one of the same use, and where it was noticed. */
typedef struct tern_kernel_refusal {
    const tern_kernel_row *row;
    char where[96]; /* a tensor's name, or an operation's */
} tern_kernel_refusal;

/* All kernels in the table's order (preference order within an op and format). Static storage. */
const tern_kernel_row *tern_kernel_rows(size_t *count);

/* The kernel of that name, or NULL. */
const tern_kernel_row *tern_kernel_find(const char *name);

/*
 * First built kernel of the table for (op, format) whose needs are all in mask; NULL if none.
 * Products (GEMV, GEMM) are those of the format's default layout.
 */
const tern_kernel_row *tern_kernel_select(uint64_t mask, tern_op op, tern_format format);

/*
 * Like tern_kernel_select, for products over another layout that holds the format. A packed layout
 * may hold several formats; its kernels serve them all.
 */
const tern_kernel_row *tern_kernel_select_layout(uint64_t mask, tern_op op, tern_format format,
                                                 tern_layout layout);

/*
 * True if an operation over a format has a kernel of its own for a processor with these features:
 * any but a scalar one, which counts only where the features allow nothing else. False also for
 * operations that the format does not have, such as a product over TERN_FORMAT_NONE.
 */
bool tern_has_native_kernel(uint64_t mask, tern_op op, tern_format format);

/*
 * All three steps of an attend kernel, for one caller: all chunks that the last token sees, to out.
 * `states` takes tern_attend_state_bytes and is scratch, too.
 */
void tern_attend_all(const tern_kernel_row *row, const tern_attend_args *args, void *states,
                     float *out, size_t out_stride);

/* ---- packing ------------------------------------------------------------------------------- */

/* Bytes of the packed form of a rows x cols matrix; 0 on overflow and for layouts into which
 * nothing is packed. */
size_t tern_packed_bytes(tern_layout layout, size_t rows, size_t cols);

/*
 * Packs row groups [r0, r1) (r0 a multiple of 16) of a matrix in the file's own layout into `out`
 * (64-byte aligned, tern_packed_bytes bytes, zero pages are fine). Several threads may pack
 * disjoint groups of one matrix. The I2_S stream is read flat, so cols need not be a multiple
 * of 128 as long as rows*cols is.
 * TERN_ERR_TENSOR_DATA: a ternary code 3, at the row and column that `err` names.
 * TQ1_0 and TQ2_0 go to the ternary layouts if tern_ternary_row_scales says so, which is not
 * checked here: their scales are not packed. Q4_0R16 takes them all, scales included.
 */
TERN_MUST_CHECK tern_status tern_pack_rows(tern_format format, const void *file, size_t rows,
                                           size_t cols, tern_layout layout, size_t r0, size_t r1,
                                           void *out, tern_error *err);

/*
 * True if a matrix in the file's own layout is ternary with one scale for each row, and so suits
 * the ternary layouts: I2_S always, TQ1_0 and TQ2_0 when the scales of all blocks of each row are
 * the same bits (a block of zero weights suits any), other formats never. If so, and row_scale is
 * not NULL, writes row_scale[rows]; a row of zeros gets the scale of the first row that has one.
 */
bool tern_ternary_row_scales(tern_format format, const void *file, size_t rows, size_t cols,
                             float *row_scale);

/*
 * Inverse of tern_pack_rows for a whole matrix, into the file's layout (I2_S: code bytes only; TQ
 * from a ternary layout: the scale of the matrix or row, as f16, in every block).
 */
TERN_MUST_CHECK tern_status tern_unpack(const tern_matrix *packed, void *file, tern_error *err);

/*
 * Dequantizes row `row` of a matrix in the file's layout into y[cols]; `scale` is I2_S's. The hot
 * path never calls this; each call is counted, so that a test can prove it.
 */
void tern_dequantize_row(tern_format format, const void *file, size_t cols, size_t row, float scale,
                         float *y);
uint64_t tern_dequantize_calls(void);

/* ---- weights from floats ------------------------------------------------------------------- */

/*
 * Quantizes x[rows][cols] to the file's own layout: `file` takes tern_format_bytes bytes and may
 * have any alignment. The formulas are in docs/numerics.md. All formats but I2_S treat rows alone,
 * so a matrix may be cut into groups of rows. I2_S has one scale: a matrix whose values are all 0,
 * a or -a keeps them exactly; any other gets the mean magnitude as its scale, and its weights are
 * rounded.
 *
 * *lossless (may be NULL): whether dequantizing `file` gives x, value for value.
 * TERN_ERR_TENSOR_DATA: x has a NaN or an infinity, or a value too large for the format, at the
 * row and column that `err` names. TERN_ERR_TENSOR_SHAPE: as tern_format_bytes.
 * TERN_ERR_TENSOR_TYPE: there is no quantizer to this format.
 */
TERN_MUST_CHECK tern_status tern_quantize_weights(tern_format format, const float *x, size_t rows,
                                                  size_t cols, void *file, bool *lossless,
                                                  tern_error *err);

/*
 * Quantizes x[rows][cols] to codes[rows][cols] of TERN_FORMAT_INT8, with a scale for each row
 * (scales[rows], for tern_matrix.row_scale) or one for all (scales[1], for tern_matrix.scale):
 * the largest magnitude / 127. Errors as tern_quantize_weights.
 */
TERN_MUST_CHECK tern_status tern_quantize_int8(const float *x, size_t rows, size_t cols,
                                               bool by_row, int8_t *codes, float *scales,
                                               tern_error *err);

/*
 * The mean of (output - reference)^2 over n values, in double, into *mse (may be NULL).
 * TERN_ERR_ACCURACY when it is above the tolerance, or NaN; *mse is set then too.
 */
TERN_MUST_CHECK tern_status tern_validate_accuracy(const float *reference, const float *output,
                                                   size_t n, double tolerance, double *mse,
                                                   tern_error *err);

TERN_API_END

#endif
