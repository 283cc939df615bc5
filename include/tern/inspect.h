/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_INSPECT_H
#define TERN_INSPECT_H

/*
 * Details of a model and a session for programs that measure, check or explain: the
 * file, every matrix with its kernels, where the time of passes goes, what is multiplied. Nothing
 * here changes a result.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/device.h"
#include "tern/gguf.h"
#include "tern/tern.h"

TERN_API_BEGIN

/* ---- stages of a pass ------------------------------------------------------------------------ */

/* X(constant, name in tables and JSON, what it is), in the order of a pass. */
#define TERN_STAGE_LIST(X)                                                                         \
    X(START, "start", "wake the threads")                                                          \
    X(EMBED, "embed", "embedding, angles")                                                         \
    X(NORM, "norm", "residual, norm, quantize")                                                    \
    X(QKV, "qkv", "q, k, v")                                                                       \
    X(ROPE, "rope", "rope, store")                                                                 \
    X(ATTENTION, "attention", "attention")                                                         \
    X(ATTENDED, "attended", "sub-norm, quantize")                                                  \
    X(OUT, "out", "output projection")                                                             \
    X(GATE_UP, "gate_up", "gate, up")                                                              \
    X(ACTIVATION, "activation", "act(gate) * up, sub-norm, quantize")                              \
    X(DOWN, "down", "down projection")                                                             \
    X(HEAD, "head", "all of the head")                                                             \
    X(SCAN, "scan", "int8 scan of the head")                                                       \
    X(ROWS, "rows", "exact rows of the head")                                                      \
    X(ALONE, "alone", "one thread: choice of a token, checks")

typedef enum tern_stage {
#define TERN_STAGE_CONSTANT(constant, name, what) TERN_STAGE_##constant,
    TERN_STAGE_LIST(TERN_STAGE_CONSTANT)
#undef TERN_STAGE_CONSTANT
        TERN_STAGE_COUNT
} tern_stage;

/* `stage` is below the count. Static storage. */
const char *tern_stage_name(tern_stage stage);
const char *tern_stage_what(tern_stage stage);

/* ---- the matrices of a model ----------------------------------------------------------------- */

/* The file that the model was opened from, owned by the model. */
const tern_gguf *tern_model_file(const tern_model *model);

/* Threads that a session wants which asks for `threads`: 0 leaves it to the machine. */
uint32_t tern_model_threads(const tern_model *model, uint32_t threads);

/* Why ternary matrices have that layout where no single choice says otherwise: the figures of the
 * probe of layouts (docs/tuning.md). Empty: there was none. Valid as long as the model. */
const char *tern_model_layout_reason(const tern_model *model);

/* The device on which passes run, by its own name; NULL: the processor. Owned by the model. */
const char *tern_model_device(const tern_model *model);

/* The reason why device "auto" chose the processor; else empty. Owned by the model. */
const char *tern_model_device_note(const tern_model *model);

/* Bytes of the weights there; 0 on the processor. */
uint64_t tern_model_device_bytes(const tern_model *model);

/* How threads and memory were asked to be placed. */
tern_places tern_model_places(const tern_model *model);

/* The prefetching in use; `hint` holds the outcome of AUTO. */
tern_fetch tern_model_fetch(const tern_model *model);

/* Why a model that was opened with `replicate` has no copies of its hot weights, in a few words;
 * NULL: it has some. Static storage. */
const char *tern_model_no_replicas(const tern_model *model);

/* The features that the model's kernels may use: bits of the needs of kernels. */
uint64_t tern_model_features(const tern_model *model);

/* Like tern_kernel_select_layout with these features, without the kernels of tern_model_refusals.
 */
const tern_kernel_row *tern_model_select(const tern_model *model, tern_op op, tern_format format,
                                         tern_layout layout);

/*
 * Checks the params that say how ternary tensors are read (i2s_order, i2s_map, tl_tiles):
 * TERN_ERR_ARG names the wrong one. tern_model_open calls this itself.
 */
TERN_MUST_CHECK tern_status tern_reading_check(const tern_model_params *params, tern_error *err);

/* A matrix of a model and what multiplies by it, owned by the model. */
typedef struct tern_linear tern_linear;

/*
 * Matrix number i of the model: those of all layers, one layer after the other, then the head, then
 * the head's int8 image if it has one; NULL past the last one.
 */
const tern_linear *tern_model_linear(const tern_model *model, size_t i);

typedef struct tern_linear_info {
    tern_span tensor;                /* its name in the file */
    tern_stage stage;                /* QKV, OUT, GATE_UP, DOWN, HEAD, or SCAN: the image */
    uint32_t layer;                  /* n_layer of the model: the head, and its image */
    tern_matrix matrix;              /* without data in a model without weights */
    const tern_kernel_row *gemv;     /* multiplies by one token */
    const tern_kernel_row *gemm;     /* by several; of no use for SCAN */
    uint64_t bytes;                  /* that one multiplication reads: of experts, with all */
    uint32_t experts, experts_used;  /* so many matrices of experts as one, of which a token takes
                                        so many; 0: a plain matrix */
    const char *choice;              /* where layout and kernels come from, as tern_model_choice */
    const tern_kernel_row *table[2]; /* gemv and gemm that the table's order prefers; NULL: none */
} tern_linear_info;

/* `linear` is the model's, or what an observer of one of its sessions was shown. */
void tern_linear_describe(const tern_model *model, const tern_linear *linear,
                          tern_linear_info *out);

/*
 * The weights of a matrix as its format has them in files: *bytes lies in the model's file, or in
 * *made where the file has the codes in another order; free(*made), which is NULL otherwise.
 * Where the rows of an I2_S matrix have scales of their own, these are in its row_scale.
 * `linear` is not a scan. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_linear_weights(const tern_model *model, const tern_linear *linear,
                                                const void **bytes, void **made, tern_error *err);

/* ---- the list by which a model is loaded ----------------------------------------------------- */

/* A tensor of the list. Texts are static, or the model's. */
typedef struct tern_planned_tensor {
    tern_span tensor;    /* its name in the file */
    const char *type;    /* there: "i2_s" */
    const char *what;    /* "vector", "matrix", "embedding", or "image": what the head's becomes */
    const char *place;   /* from where it is read: "file", "memory" that it was packed or copied to,
                            "equal": where an earlier one with the same bytes is read, "shared": in
                            the model that this one shares with */
    tern_layout layout;  /* NONE: of a vector */
    uint64_t rows, cols; /* a vector has one row */
    const tern_kernel_row *gemv, *gemm; /* that multiply by it; NULL: none do */
    uint64_t file_bytes;                /* that stay in use where the file is mapped; rows in blocks
                                           that only tokens look up do not count */
    uint64_t offset, bytes; /* of the memory: tern_model_info.packed_bytes in all. 0 bytes: none */
} tern_planned_tensor;

/*
 * Entry i of the list by which the model was loaded, or without weights would be: each tensor that
 * is read, once, in the order of its memory. False past the last one.
 */
bool tern_model_planned(const tern_model *model, size_t i, tern_planned_tensor *out);

/* ---- what a model computes, and who says so ---------------------------------------------------
 */

/* One choice among those in which models differ: the activation, norms, rope, the tokenizer. */
typedef struct tern_model_fact {
    const char *name; /* "activation"; static storage */
    const char
        *from;      /* "file", "architecture": files of it mean that, "guess": numbers of another
                       model or a usual value stand in; also "asked for", "another file". Static */
    char text[160]; /* "silu" */
} tern_model_fact;

/* Writes at most `capacity` facts, in a fixed order; returns how many there are, fewer than 24. */
size_t tern_model_facts(const tern_model *model, tern_model_fact *facts, size_t capacity);

/* ---- where the time of passes goes ----------------------------------------------------------- */

/*
 * Time by stage and by thread. No moment is left out or counted twice: between tern_stages_begin
 * and the end of the last pass, work and wait of all stages add up to the same time for each
 * thread. Stages belong to one caller at a time. It frees them when no session is watched any more.
 */
typedef struct tern_stages tern_stages;

/* Nanoseconds that never go back; asked by all threads at once. */
typedef uint64_t tern_stage_clock(void *user);

/* Stages for this number of threads, at least 1. `user` must outlive them. TERN_ERR_NULL, _ARG,
 * _NOMEM. */
TERN_MUST_CHECK tern_status tern_stages_new(uint32_t threads, tern_stage_clock *clock, void *user,
                                            tern_stages **out, tern_error *err);
void tern_stages_free(tern_stages **stages); /* NULL and *NULL are fine */

/* Forgets everything; what passes from now on is measured. */
void tern_stages_begin(tern_stages *stages);

/* Nanoseconds of a stage, the mean of the threads; not during a pass. */
double tern_stages_work(const tern_stages *stages, tern_stage stage);
double tern_stages_wait(const tern_stages *stages, tern_stage stage);

/*
 * From here on the passes of a session are measured; NULL ends that, at no cost but a look at the
 * pointer. TERN_ERR_ARG: the stages are not of tern_session_threads threads.
 */
TERN_MUST_CHECK tern_status tern_session_watch(tern_session *session, tern_stages *stages,
                                               tern_error *err);

/* ---- what is multiplied ---------------------------------------------------------------------- */

/* Which expert reads which rows: expert e reads choices begins[e] to begins[e + 1] - 1, those of
 * one expert in the order of the tokens. Choice i is row rows[i], or where rows is NULL row i. */
typedef struct tern_product_routes {
    uint32_t experts;
    const uint32_t *begins; /* [experts + 1] */
    const uint32_t *rows;
} tern_product_routes;

/*
 * Shown what goes into a product of one or several rows, before it is made, by one thread, while
 * others may already make it: it must only look. x has the form that tern_layout_input names for
 * the matrix. A row is a token, or where experts read x what one of them has for a token; routes is
 * NULL where the matrix has none.
 */
typedef void tern_product_observer(void *user, const tern_linear *linear, const tern_activations *x,
                                   size_t rows, const tern_product_routes *routes);

/* From here on the observer is shown the products of layers and head; NULL ends that. Scans of the
 * head are not shown. */
void tern_session_observe(tern_session *session, tern_product_observer *observer, void *user);

/* Matrices that several open models read at one place, in bytes of memory. */
typedef struct tern_sharing {
    uint64_t shared_bytes; /* of the model's matrices, those that another model reads, too */
    uint64_t saved_bytes;  /* that all models which share take less than each would take alone */
} tern_sharing;

void tern_model_sharing(const tern_model *model, tern_sharing *out);

TERN_API_END

#endif
