/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_KERNELS_MATMUL_CASE_H
#define TERN_TESTS_KERNELS_MATMUL_CASE_H

/*
 * One matrix product: weights in the file's layout and packed, activations in every form, and the
 * reference's result. Every buffer lies between guard pages.
 */

#include "kernels/reference.h"
#include "kernels/reference_fill.h"
#include "tests/support/check.h"

#define CASE_KIND_LIST(X)                                                                          \
    X(RANDOM)  /* as in models */                                                                  \
    X(MAX_MAX) /* largest code everywhere, largest activation everywhere */                        \
    X(MIN_MAX) /* smallest code, largest activation */                                             \
    X(MAX_MIN) /* largest code, most negative activation (I2_S: -128) */                           \
    X(MIN_MIN)                                                                                     \
    X(ONE_HOT)     /* one activation a token, random weights */                                    \
    X(ZEROS)       /* all activations zero, of both signs */                                       \
    X(ALTERNATING) /* largest and smallest in turn, in both operands */                            \
    X(EXTREME)     /* every exponent from denormal to overflow */

typedef enum case_kind {
#define CASE_KIND_ENUM(name) CASE_##name,
    CASE_KIND_LIST(CASE_KIND_ENUM)
#undef CASE_KIND_ENUM
        CASE_KIND_COUNT
} case_kind;

const char *case_kind_name(case_kind kind);

typedef struct matmul_case {
    tern_format format;
    size_t rows, cols, tokens;
    float scale;
    size_t x_stride, q_stride, d_stride;
    check_buffer file, packed, row_scale, x, q, s, sum, d, block_sum, expected;
    tern_activations activations;
    tern_matrix matrix; /* packed, or the file itself for ROWS */
} matmul_case;

/* True if the format can hold a matrix of this shape. */
bool case_possible(tern_format format, size_t rows, size_t cols);

typedef struct case_shape {
    size_t rows, cols, tokens;
} case_shape;

/* True if products over the layout read the matrix's scale or row_scale. */
bool case_has_outer_scale(tern_layout layout);

/* Makes the file and the activations, packs, and computes expected[tokens][rows]. */
matmul_case case_new_layout(tern_format format, tern_layout layout, const case_shape *shape,
                            case_kind kind, check_place place, check_rng *rng);

/* The same in the format's default layout. */
matmul_case case_new(tern_format format, size_t rows, size_t cols, size_t tokens, case_kind kind,
                     check_place place, check_rng *rng);
void case_free(matmul_case *c);

/* Packs again after the file has changed. A file that cannot be packed fails the test. */
void case_pack(matmul_case *c);

/* The same, but returns false if the file is no longer valid (a ternary code 3). */
bool case_repack(const matmul_case *c, tern_error *err);

/* The case's weights for the reference. */
tern_ref_matrix case_reference(const matmul_case *c);

/*
 * Runs `fn` on one rectangle of an output between guard pages. Fails unless the rectangle equals
 * the reference's and everything around it is untouched.
 */
void case_check_tile(const matmul_case *c, tern_matmul_fn *fn, tern_tile tile, check_place place);

#endif
