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
#include "runtime/model/config/precision.h"
#include "runtime/model/equal_tensors.h"
#include "runtime/model/load/jobs.h"
#include "runtime/model/parts/linear.h"
#include "runtime/model/tune/guard.h"
#include "runtime/model/tune/tune.h"
#include "tern/inspect.h"
#include "tern/kernels.h"
#include "threads/replica.h"
#include "threads/team.h"

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
 * it is kept on disk and used by others (runtime/model/image/image.h). `what` names it for the hash
 * of the plan.
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

#endif
