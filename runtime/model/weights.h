/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_WEIGHTS_H
#define TERN_RUNTIME_MODEL_WEIGHTS_H

/*
 * From the tensors of a file to what kernels read: float vectors, matrices in the layout of the
 * kernels that were selected for them, embedding rows in the file's own layout.
 */

#include "base/arena.h"
#include "base/hash64.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/files/gguf/reading.h"
#include "runtime/model/equal.h"
#include "runtime/model/load_jobs.h"
#include "runtime/model/precision.h"
#include "runtime/model/tune/guard.h"
#include "runtime/model/tune/tune.h"
#include "tern/inspect.h"
#include "tern/kernels.h"
#include "threads/replica.h"
#include "threads/team.h"

/* One linear map: the matrix, the kernels that multiply by it, an optional bias[rows]. */
struct tern_linear {
    tern_matrix matrix;
    const tern_kernel_row *gemv;
    const tern_kernel_row *gemm;
    tern_input_form form;
    const float *bias;              /* NULL: none */
    const tern_gguf_tensor *tensor; /* where it came from */
    bool checked;        /* the weights are those of an equal matrix, which are checked there */
    uint32_t experts;    /* 0: one matrix; else as many, one after the other, as many rows each */
    size_t expert_bytes; /* from one to the next */
};

/* The matrix of one expert. */
static inline tern_matrix tern_linear_expert(const tern_linear *linear, size_t expert) {
    tern_matrix m = linear->matrix;
    m.rows /= linear->experts;
    m.data = (const uint8_t *)m.data + expert * linear->expert_bytes;
    if (m.row_scale != NULL)
        m.row_scale += expert * m.rows;
    return m;
}

/* The matrix that one product multiplies by, for who measures: its data does not count. */
static inline tern_matrix tern_linear_one(const tern_linear *linear) {
    return linear->experts > 0 ? tern_linear_expert(linear, 0) : linear->matrix;
}

/* Whether the matrix is read as the file has it: in place, or copied. INT4 becomes blocks first,
 * and of sparse blocks rows are made. */
static inline bool tern_linear_is_in_file(const tern_linear *linear) {
    return linear->matrix.layout == TERN_LAYOUT_ROWS && linear->matrix.format != TERN_FORMAT_INT4 &&
           linear->tensor->type != TERN_GGUF_SPARSE_TYPE;
}

/* Whether products decode the matrix, in blocks, to meet floats; the tuner knows no such products.
 */
static inline bool tern_matrix_is_decoded(const tern_matrix *matrix) {
    return matrix->layout == TERN_LAYOUT_ROWS &&
           tern_format_layout(matrix->format) != TERN_LAYOUT_ROWS;
}

/*
 * The kernel for `tokens` tokens at once: that of gemv for one, of gemm from two on. Let a pass
 * read b bytes of w weights at B bytes a second, and multiply at V weights a second with gemv, at
 * G(n) weights times tokens with a gemm tile of n. n tokens take n * max(b / B, w / V) by gemv,
 * max(b / B, n * w / G(n)) by gemm. Both terms of gemm are smaller from n = 2 on where G(2) >= V,
 * which holds because a tile unpacks a weight once for all of its tokens. Passes of more tokens
 * than a tile has are gemm's own affair: its template knows in which order they are taken
 * (TERN_MANY_TOKENS).
 */
static inline const tern_kernel_row *tern_linear_row(const tern_linear *linear, size_t tokens) {
    return tokens == 1 ? linear->gemv : linear->gemm;
}

/* An embedding matrix, read row by row in the file's own layout. */
typedef struct tern_embedding {
    const uint8_t *data;
    size_t row_bytes;
    const tern_kernel_row *row;
} tern_embedding;

/*
 * The same calls load a model's tensors up to three times. What packing fills in is what an image
 * on disk holds, so a mapped image skips TERN_LOAD_FILL.
 */
typedef enum tern_load_stage {
    TERN_LOAD_PLAN, /* add up the bytes of the arena and check shapes; of the data only scales of
                       ternary tensors are read, which decide layouts */
    TERN_LOAD_FILL, /* write what is small, note down as jobs what is large; all of it is checked */
    TERN_LOAD_USE   /* the arena holds everything: check it and choose what runs on it */
} tern_load_stage;

/* What tensors are needed from a file and where their memory comes from. */
typedef struct tern_loader {
    const tern_gguf *file;
    tern_guard *guard; /* selects kernels and checks them on the weights */
    tern_arena *arena; /* sized by TERN_LOAD_PLAN */
    tern_team *team;
    tern_load_stage stage;
    tern_load_jobs jobs;         /* of TERN_LOAD_FILL; the owner runs and frees them */
    const tern_reading *reading; /* of ternary tensors in the file */
    tern_equal *equal;           /* where its bytes are already; NULL: not asked */
    tern_precision precision;    /* of activations; AUTO while the first plan is made */
    tern_layout ternary;         /* layout of ternary matrices; it changes no bit of a product */
    const tern_tuning *tuning;   /* choices that come before the table's; NULL: none */
    uint32_t tune_threads;       /* of their keys */
    uint64_t tune_stream;
    size_t bytes;
    tern_hot_list *hot; /* gets what is not packed, by its readers; NULL: not wanted */
    tern_hash64 pieces; /* planning: of every piece and what it is made of; started by the owner */
} tern_loader;

/*
 * count * size bytes of the arena, or only their sum in TERN_LOAD_PLAN (*out stays NULL then). What
 * is taken must be made from the file alone, not from the instruction set or the number of threads:
 * it is kept on disk and used by others (runtime/model/image.h). `what` names it for the hash of
 * the plan.
 */
TERN_MUST_CHECK tern_status tern_loader_take(tern_loader *loader, const char *what, size_t count,
                                             size_t size, void **out, tern_error *err);

/*
 * Copies the F32 (or F16, BF16) vector `name` of n elements into the arena; *out is set in
 * TERN_LOAD_USE, with every element divided by `divisor`. A missing tensor leaves it NULL when
 * `optional`. Every element must be finite.
 */
TERN_MUST_CHECK tern_status tern_load_vector(tern_loader *loader, const char *name, size_t n,
                                             bool optional, float divisor, const float **out,
                                             tern_error *err);

/*
 * Layout and kernels of *linear, whose matrix has a shape and its usual layout: the tuner's, or
 * the table's, NULL where it has none.
 */
void tern_loader_choose(const tern_loader *loader, tern_linear *linear);

/* Loads the matrix `name` of rows x cols: selects kernels for its format, and packs it if they
 * read it packed. */
TERN_MUST_CHECK tern_status tern_load_linear(tern_loader *loader, const char *name, size_t rows,
                                             size_t cols, tern_linear *out, tern_error *err);

/*
 * The same for n matrices of rows x cols in one tensor, n >= 1. They are one matrix of n * rows
 * rows to everything but products (tern_linear_expert). TERN_ERR_TENSOR_SHAPE also where kernels
 * read rows in groups and none begins with each matrix, TERN_ERR_TENSOR_TYPE where a type's bytes
 * cannot be cut between them.
 */
TERN_MUST_CHECK tern_status tern_load_experts(tern_loader *loader, const char *name, uint32_t n,
                                              size_t rows, size_t cols, tern_linear *out,
                                              tern_error *err);

/*
 * Has the threads that pack check a loaded matrix that is not packed (weight_check.h), in
 * TERN_LOAD_FILL. `drop`: what was read of the file for it is given back.
 */
TERN_MUST_CHECK tern_status tern_loader_check_unpacked(tern_loader *loader, const char *name,
                                                       bool drop, tern_error *err);

/* Lists a loaded matrix as hot where it was not packed. */
TERN_MUST_CHECK tern_status tern_loader_note_linear(tern_loader *loader, const tern_linear *linear,
                                                    tern_heat heat, tern_error *err);

/* The embedding rows of `name`, in place. */
TERN_MUST_CHECK tern_status tern_load_embedding(tern_loader *loader, const char *name, size_t rows,
                                                size_t cols, tern_embedding *out, tern_error *err);

/* Row r of a float matrix, whose layout is ROWS; r may be its number of rows. */
static inline const uint8_t *tern_float_row(const tern_matrix *m, size_t r) {
    return (const uint8_t *)m->data + r * m->cols * tern_format_describe(m->format)->block_bytes;
}

/* Bytes that one multiplication by the matrix reads. */
uint64_t tern_linear_bytes(const tern_linear *linear);

#endif
