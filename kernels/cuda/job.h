/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_CUDA_JOB_H
#define TERN_CUDA_JOB_H

/*
 * The argument that the host hands to a CUDA kernel: one struct by value, the same for all kernels,
 * so that one launch function and one emulator serve every kernel. C and C++.
 */

#include "kernels/grids.h"
#include "tern/device.h"
#include "tern/kernels.h"

enum {
    TERN_CUDA_WARP = 32,
    TERN_CUDA_THREADS = 256,      /* of a block, unless one of the following says otherwise */
    TERN_CUDA_ROW_THREADS = 1024, /* norms and codes of a row: there may be just one */
    TERN_CUDA_TILE_THREADS = 128, /* float products, and those of more than 16 rows a block */

    /* Attention. A warp takes a chunk of positions: many of few tokens, few of many tokens. */
    TERN_CUDA_ATTEND_THREADS = 512,
    TERN_CUDA_ATTEND_FEW_THREADS = 128,
    TERN_CUDA_ATTEND_QUERIES = 4,      /* heads of a group that a block of few threads may take */
    TERN_CUDA_ATTEND_STATES = 16,      /* warps * heads of a block */
    TERN_CUDA_ATTEND_FLOATS = 24 * 256 /* in shared memory: heads * (2 + chunks) rows of dim */
};

typedef struct tern_cuda_matmul {
    tern_matrix w;
    tern_activations x;
    tern_tile tile;
    float *y;
    size_t y_stride;
} tern_cuda_matmul;

/* Products that one launch computes, with the same kernel. A place of the grid's third dimension is
 * one of them. */
enum { TERN_CUDA_PRODUCTS = 4 };

typedef struct tern_cuda_quantize {
    tern_device_rows x;
    tern_device_quantized out;
} tern_cuda_quantize;

/* Checks that numbers stay below a limit. */
typedef struct tern_cuda_watch {
    tern_device_watch a; /* notes NULL: nobody asks */
    float limit;         /* of elements, where a.squares is set, too */
} tern_cuda_watch;

typedef struct tern_cuda_norm {
    tern_device_rows x;
    tern_device_rows more; /* x += more comes first; data NULL: nothing */
    const float *g;
    float eps;
    tern_device_rows y;
    tern_cuda_watch watch; /* of x */
} tern_cuda_norm;

/* A norm, and the codes of what it gives: token.x is norm.y. */
typedef struct tern_cuda_norm_token {
    tern_cuda_norm norm;
    tern_cuda_quantize token;
} tern_cuda_norm_token;

/* gates and add: y[i] = f(a[i], b[i]) */
typedef struct tern_cuda_elementwise {
    const float *a;
    const float *b;
    size_t n;
    float *y;
    tern_cuda_watch watch; /* of a */
} tern_cuda_elementwise;

typedef struct tern_cuda_round {
    tern_device_rows x, y;
} tern_cuda_round;

typedef struct tern_cuda_embed {
    tern_matrix w;
    const int32_t *ids;
    float factor;
    tern_device_rows y;
    tern_grid grid; /* of a format with one; a device has entries of its own */
} tern_cuda_embed;

/* Rows to a cache: one after the other in `out`, or where pages have them. */
typedef struct tern_cuda_store {
    tern_device_rows x;
    void *out;                   /* head 0 of page 0 */
    size_t stride;               /* from row to row, in elements */
    const tern_device_place *at; /* [x.rows / heads]; NULL: one after the other */
    const uint32_t *const *tables;
    size_t heads;       /* that a token has; its rows are the heads of one token after the other */
    size_t token;       /* from a token's first head to the next token's in x, in floats */
    size_t head_stride; /* in bytes, like the next */
    size_t page_stride;
    tern_cuda_watch watch; /* of x */
} tern_cuda_store;

/* Rotated heads, and a watch of what they become. */
typedef struct tern_cuda_rope {
    tern_device_rope a;
    tern_cuda_watch watch;
} tern_cuda_rope;

/* q and k, or keys and values, which one launch does beside each other: grid z is which. */
enum { TERN_CUDA_PAIR = 2 };

/* Attention over pages, or over positions that lie one after the other. */
typedef struct tern_cuda_attend {
    tern_device_attend_pages a; /* at NULL: token t sees before + t + 1 positions, page p is page p
                                   of each head */
    size_t before;
    bool is_whole;  /* rows of keys and values begin at multiples of 16 bytes, and dim is a multiple
                       of TERN_LANES */
    size_t queries; /* heads that a block takes: 1; of whole rows also TERN_CUDA_ATTEND_QUERIES */
} tern_cuda_attend;

typedef union tern_cuda_job {
    tern_cuda_matmul products[TERN_CUDA_PRODUCTS];
    tern_cuda_quantize quantize;
    tern_cuda_norm norm;
    tern_cuda_norm_token norm_token;
    tern_cuda_rope ropes[TERN_CUDA_PAIR];
    tern_cuda_attend attend;
    tern_device_rows softmax;
    tern_cuda_elementwise elementwise;
    tern_cuda_embed embed;
    tern_cuda_round round;
    tern_cuda_store stores[TERN_CUDA_PAIR];
    tern_cuda_watch watch;
} tern_cuda_job;

/* A kernel of the table as the module finds it. */
typedef struct tern_cuda_kernel {
    const char *name;
    tern_op op;
    tern_format format;
    tern_layout layout;
    uint32_t rows_tile, tokens_tile;
    const void *function; /* the __global__ function, as cudaLaunchKernel wants it */
} tern_cuda_kernel;

#ifdef __cplusplus
extern "C" {
#endif

/* The CUDA kernels of the table; defined by the generated gen/cuda/kernels.cu. */
extern const tern_cuda_kernel tern_cuda_kernels[];
extern const size_t tern_cuda_kernel_count;

#ifdef __cplusplus
}
#endif

#endif
