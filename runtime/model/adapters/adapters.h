/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_ADAPTERS_ADAPTERS_H
#define TERN_RUNTIME_MODEL_ADAPTERS_ADAPTERS_H

/*
 * The adapters of a model (tern/adapter.h): read from files and checked against the model when it
 * is opened, immutable from then on. Passes add their products (runtime/engine/forward/adapt.c);
 * engines keep the keys and values of different sets apart.
 */

#include "base/arena.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/model/config/config.h"
#include "runtime/model/parts/block.h"
#include "runtime/model/tune/guard.h"
#include "tern/adapter.h"

enum { TERN_ADAPTER_ROWS = 64 /* of B that lie together */ };

/*
 * An adapter's part of one matrix. B is stored in groups of TERN_ADAPTER_ROWS rows, the last one
 * perhaps of fewer, and in each group by columns: [rank][rows of the group].
 */
typedef struct tern_adapter_pair {
    tern_matrix a; /* [rank][columns] floats in the layout ROWS; data NULL: it has no part */
    tern_matrix b; /* [rows][rank] floats, in groups */
    float factor;  /* alpha / rank */
} tern_adapter_pair;

/* The rows of the group of B that begins with row `first`. */
static inline size_t tern_adapter_group(const tern_adapter_pair *pair, size_t first) {
    const size_t left = pair->b.rows - first;
    return left < TERN_ADAPTER_ROWS ? left : TERN_ADAPTER_ROWS;
}

/* Column k of that group. */
static inline const void *tern_adapter_column(const tern_adapter_pair *pair, size_t first,
                                              size_t k) {
    const size_t element = tern_format_describe(pair->b.format)->block_bytes;
    const size_t at = first * pair->b.cols + k * tern_adapter_group(pair, first);
    return (const uint8_t *)pair->b.data + at * element;
}

typedef struct tern_adapter {
    tern_adapter_pair *pairs; /* [n_layer * TERN_LAYER_LINEARS] by layer, then by the order of
                                 tern_block_matrix */
    tern_arena arena;         /* holds their data */
    char *path, *name;
} tern_adapter;

/* The adapters in use for a sequence, with their scales: ascending ids, no scale of 0. */
typedef struct tern_adapter_set {
    tern_adapter_use *uses; /* [n] */
    size_t n;
} tern_adapter_set;

/* Zeros: a model without adapters. */
typedef struct tern_adapters {
    tern_adapter *list;       /* [n] by id */
    tern_adapter_info *infos; /* [n] */
    size_t n;
    tern_adapter_set usual; /* where a request names none */
    size_t *first;          /* [n + 1] of each id: where its products with A begin in a row of all
                               of them, in floats; the last one is the length of the row */
    size_t matrix_at[TERN_LAYER_LINEARS]; /* offsets of the matrices in a tern_layer */
    const tern_kernel_row *gemv[TERN_FORMAT_COUNT], *gemm[TERN_FORMAT_COUNT];
    const tern_kernel_row *embed[TERN_FORMAT_COUNT]; /* makes floats of B */
} tern_adapters;

/* The model that adapters are read for. */
typedef struct tern_adapter_base {
    const tern_config *config;
    bool turned;       /* rows are rotated before matrices read them */
    tern_guard *guard; /* selects kernels */
    const char *name;  /* of its file, for messages */
} tern_adapter_base;

/*
 * Reads and checks n files. Free *out in any case. Errors name the file: those of tern_gguf_open,
 * TERN_ERR_CONFIG (not an adapter, another kind of adapter), TERN_ERR_ARCH (of another
 * architecture, or the model's matrices cannot have any), TERN_ERR_KEY_*, TERN_ERR_TENSOR_SHAPE,
 * _TYPE, _DATA, _MISSING (half of a pair, or a tensor that the model has no place for),
 * TERN_ERR_ARG (scales, too many files), TERN_ERR_KERNEL, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_adapters_open(const tern_adapter_base *base,
                                               const tern_adapter_file *files, size_t n,
                                               tern_adapters *out, tern_error *err);
void tern_adapters_free(tern_adapters *a);

/* Reads one open file into *out and its *info, but for path and scale; in read.c. */
TERN_MUST_CHECK tern_status tern_adapter_read(const tern_adapter_base *base, const tern_gguf *file,
                                              tern_adapter *out, tern_adapter_info *info,
                                              tern_error *err);

/* The index of a matrix of a layer in the order of tern_block_matrix. */
size_t tern_adapters_index(const tern_adapters *a, const tern_layer *layer,
                           const tern_linear *linear);

/* The part of matrix `index` of layer number `n`; NULL: the adapter has none. */
static inline const tern_adapter_pair *tern_adapter_pair_of(const tern_adapter *a, size_t n,
                                                            size_t index) {
    const tern_adapter_pair *pair = &a->pairs[n * TERN_LAYER_LINEARS + index];
    return pair->a.data != NULL ? pair : NULL;
}

/*
 * Makes a set of n uses, in any order; free its uses. TERN_ERR_ARG: there is no such adapter, it is
 * named twice, or a product of scale, alpha and 1 / rank is not finite; TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_adapter_set_make(const tern_adapters *a,
                                                  const tern_adapter_use *uses, size_t n,
                                                  tern_adapter_set *out, tern_error *err);

/* A hash of what the set adds; 0 of an empty one. */
uint64_t tern_adapter_set_hash(const tern_adapters *a, const tern_adapter_set *set);

/* out[32] = a name for keys and values that were computed with the set, of those that are named
 * space[32] (NULL: zeros) without adapters: the same name if the set is empty. */
void tern_adapter_set_space(const tern_adapters *a, const tern_adapter_set *set,
                            const uint8_t *space, uint8_t *out);

#endif
