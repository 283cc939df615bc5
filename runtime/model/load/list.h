/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_LIST_H
#define TERN_RUNTIME_MODEL_LOAD_LIST_H

/*
 * The list by which a model is loaded. Every tensor that the model reads stands on it once, in the
 * order of its memory. An entry says what the tensor is, what it becomes, where it is read, by
 * which kernels, at which offset and in how many bytes. Each step of loading is one loop over the
 * list:
 *
 *   tern_load_list_make     which tensors; shapes and scales are checked      load/tensors.c
 *   tern_load_list_choose   layout and kernels of each matrix                 load/choose.c
 *   tern_load_list_arrange  where each is read, and offsets                   load/arrange.c
 *   tern_load_list_bind     the model's pointers                              load/bind.c
 *   tern_load_list_fill     small copies; a team packs and checks the rest    load/fill.c
 *   tern_load_list_check    what the memory holds now; kernels are tried      load/check.c
 *
 * A model without weights stops after the third step, a model whose image is mapped leaves out the
 * fifth. Sizes, the hash of the plan, replicas, the pages of the file that are given back and what
 * `tern inspect` shows are loops over the same list, so none of them can disagree with what is
 * loaded.
 */

#include "base/arena.h"
#include "base/hash64.h"
#include "kernels/import.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/files/gguf/reading.h"
#include "runtime/model/config/config.h"
#include "runtime/model/config/precision.h"
#include "runtime/model/load/equal_tensors.h"
#include "runtime/model/load/split.h"
#include "runtime/model/parts/head.h"
#include "runtime/model/parts/weight_set.h"
#include "runtime/model/tune/guard.h"
#include "runtime/model/tune/tune.h"
#include "threads/replica.h"
#include "threads/team.h"

/* The role of a tensor in the model. */
typedef enum tern_load_kind {
    TERN_LOAD_VECTOR,    /* gains of a norm, a bias: floats */
    TERN_LOAD_MATRIX,    /* read by products; all experts of a block are one */
    TERN_LOAD_EMBEDDING, /* a few rows are read for each token */
    TERN_LOAD_IMAGE      /* the int8 image that is made of the head */
} tern_load_kind;

/* The place where the model reads a tensor. */
typedef enum tern_load_place {
    TERN_LOAD_NOWHERE, /* nowhere: an image that this head does not get */
    TERN_LOAD_FILE,    /* in place, where the file is mapped */
    TERN_LOAD_COPY,    /* in the arena, as a copy: it is not aligned in the file */
    TERN_LOAD_MADE,    /* in the arena: widened, packed, or made dense */
    TERN_LOAD_EARLIER, /* where an earlier entry has the same bytes */
    TERN_LOAD_OTHER    /* where another model holds the same bytes (runtime/model/commons.h) */
} tern_load_place;

/* The check of the weights of a tensor. */
typedef enum tern_load_check {
    TERN_CHECK_NONE,  /* packing checks them, or they are checked already */
    TERN_CHECK_KEEP,  /* a job of its own */
    TERN_CHECK_DROP,  /* a job that also gives back the pages of the file */
    TERN_CHECK_BLOCKS /* a job for the values of sparse blocks */
} tern_load_check;

typedef struct tern_load_entry {
    tern_load_kind kind;
    const tern_gguf_tensor *tensor;
    union { /* by kind: members of the model */
        const float **vector;
        tern_linear *linear;
        tern_embedding *embedding;
        tern_head_image *image;
    } to;
    size_t rows, cols;  /* a vector has one row */
    tern_part part;     /* rows of a matrix that this rank has; all of them where it is alone */
    tern_format format; /* in the file */
    /* facts of the tensor, read once */
    float divisor;     /* divides every element of a vector */
    float scale;       /* of a matrix that has one, else 1 */
    bool is_ternary;   /* ternary, one scale for the matrix or for each row */
    bool differ;       /* the scales of the rows differ */
    float *row_scales; /* [rows] if they differ, until they are in the arena */
    tern_import how;   /* how ternary codes are read */
    /* set by tern_load_list_arrange */
    tern_load_place place;
    tern_load_check check;
    const struct tern_load_entry *earlier; /* TERN_LOAD_EARLIER */
    struct tern_load_entry *holder;        /* TERN_LOAD_OTHER: what has the bytes */
    uint64_t sample;                       /* of the bytes (equal_tensors.h) */
    size_t offset, bytes;                  /* of the arena, for all pieces; 0 bytes: none */
    /* protected by the lock of the commons */
    uint32_t readers; /* other models that read it here */
} tern_load_entry;

/* True if the matrix's scale, or those of its rows, are not part of its packed bytes. */
static inline bool tern_load_has_own_scale(const tern_load_entry *matrix) {
    return matrix->to.linear->form == TERN_INPUT_TOKEN || matrix->format == TERN_FORMAT_I2_S;
}

/* The bytes of a row of a tensor whose rows lie one after the other. */
static inline size_t tern_load_row_bytes(const tern_load_entry *e) {
    return (size_t)(e->tensor->bytes / e->rows);
}

/* True if all rows are there. */
static inline bool tern_load_is_whole(const tern_load_entry *e) {
    return e->part.end - e->part.begin == e->rows;
}

/* The rank's first row of a matrix in the file. */
static inline const uint8_t *tern_load_own_rows(const tern_load_entry *e) {
    return tern_load_is_whole(e) ? e->tensor->data
                                 : e->tensor->data + e->part.begin * tern_load_row_bytes(e);
}

/* True if the model that lists the entry has its bytes: others may read them there. */
static inline bool tern_load_holds(const tern_load_entry *e) {
    const bool here =
        e->place == TERN_LOAD_FILE || e->place == TERN_LOAD_COPY || e->place == TERN_LOAD_MADE;
    return here && e->kind != TERN_LOAD_VECTOR;
}

/* A part of an entry in the arena. Parts lie one after the other, each aligned. */
typedef struct tern_load_piece {
    const char *name; /* for the hash of the plan; NULL: the tensor's */
    size_t count, size;
} tern_load_piece;

enum { TERN_LOAD_PIECES = 4 };

/* Starts as zeros. Belongs to the model; the members that entries point at must not move. */
typedef struct tern_load_list {
    const tern_gguf *file;
    tern_load_entry *entries; /* [n] */
    size_t n;
    size_t bytes;     /* of the arena */
    tern_hash64 plan; /* hash of every piece and what it is made of */
    uint64_t saved;   /* bytes of matrices that are read where an equal one lies */
} tern_load_list;

/* The inputs that decide layouts and kernels. */
typedef struct tern_load_choice {
    tern_guard *guard;         /* selects kernels */
    tern_precision precision;  /* of activations; AUTO until it is settled */
    tern_layout ternary;       /* of ternary matrices; it changes no bit of a product */
    const tern_tuning *tuning; /* comes before the table; NULL: none */
    uint32_t tune_threads;     /* of the keys of `tuning` */
    uint64_t tune_stream;
} tern_load_choice;

/* The members of a model that its tensors fill. */
typedef struct tern_load_target {
    const tern_config *config;
    const tern_split *split;
    tern_layer *layers; /* [n_layer] */
    tern_weight_set *own;
    tern_head_image *image; /* NULL: the head gets none */
} tern_load_target;

/*
 * Lists the tensors that a model of that configuration reads, with the facts that are read of each
 * only once: how its codes are read, its scales. Free *list in any case. TERN_ERR_TENSOR_MISSING,
 * TERN_ERR_TENSOR_SHAPE, TERN_ERR_TENSOR_TYPE, TERN_ERR_TENSOR_DATA, TERN_ERR_TILES,
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_load_list_make(tern_load_list *list, const tern_gguf *file,
                                                const tern_reading *reading,
                                                const tern_load_target *target, tern_error *err);
void tern_load_list_free(tern_load_list *list);

/*
 * Chooses layout and kernels of every matrix, and whether the head gets an image. May be called
 * again with another *choice until the list is arranged. TERN_ERR_KERNEL: a tensor has no kernels;
 * TERN_ERR_NOMEM: no memory to try them; TERN_ERR_TENSOR_SHAPE: an expert does not begin with a
 * group of rows, as kernels read them.
 */
TERN_MUST_CHECK tern_status tern_load_list_choose(tern_load_list *list,
                                                  const tern_load_choice *choice, tern_error *err);

/*
 * Decides where each entry is read and where its pieces lie: sets places, offsets, list->bytes, the
 * hash of the plan, and the pointers that need no arena. `equal` (NULL: equality is not asked for)
 * knows which tensors have the same bytes; of a model that ranks share it is NULL. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_load_list_arrange(tern_load_list *list, const tern_equal *equal,
                                                   tern_error *err);

/* The matrix that products or lookups of an entry read. */
tern_matrix tern_load_form(const tern_load_entry *entry);

/* The rows of a loaded matrix or embedding. */
const void *tern_load_rows_of(const tern_load_entry *entry);

/* Sets the model's pointers, into an arena of list->bytes from `base` on. */
void tern_load_list_bind(tern_load_list *list, const uint8_t *base);

/* The bytes of the file that an entry with a copy of them has in the arena. */
size_t tern_load_copied(const tern_load_entry *entry);

/* Writes the pieces of an arranged entry to out[TERN_LOAD_PIECES]; returns how many there are. */
size_t tern_load_pieces(const tern_load_entry *entry, tern_load_piece *out);

/* The address of piece k in an arena that begins at `base`. */
const uint8_t *tern_load_piece_at(const tern_load_entry *entry, const uint8_t *base, size_t k);

/* Lists what is not packed as hot, with how its readers use it. Clears `hot` before.
 * TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_load_list_hot(const tern_load_list *list, tern_hot_list *hot,
                                               tern_error *err);

/*
 * Makes everything that lies in the arena, which begins at `base` and is bound, and checks all
 * weights of the file. The image of a head is made with kernels that the guard has tried.
 * TERN_ERR_TENSOR_DATA: the first wrong row of the first such tensor; TERN_ERR_KERNEL,
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_load_list_fill(tern_load_list *list, uint8_t *base,
                                                tern_guard *guard, tern_team *team,
                                                tern_error *err);

/*
 * Checks the vectors of a filled arena, and replaces kernels that do not multiply these weights as
 * the scalar ones do. TERN_ERR_TENSOR_DATA, TERN_ERR_KERNEL, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_load_list_check(tern_load_list *list, tern_guard *guard,
                                                 tern_error *err);

/* Reports why a tensor has no kernels: TERN_ERR_NOMEM if the guard had no memory to try them, else
 * TERN_ERR_KERNEL. */
TERN_MUST_CHECK tern_status tern_load_no_kernel(const tern_load_list *list,
                                                const tern_load_entry *entry,
                                                const tern_guard *guard, tern_error *err);

#endif
