/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_KERNELS_ROW_TRIAL_H
#define TERN_TESTS_KERNELS_ROW_TRIAL_H

/* Shared parts of the tests of float kernels: kinds of numbers, lengths, the loop over kernels. */

#include "tern/kernels.h"
#include "tests/support/check.h"

typedef enum trial_kind {
    TRIAL_NORMAL,
    TRIAL_ANY,      /* every exponent */
    TRIAL_DENORMAL, /* below 2^-126 */
    TRIAL_TINY,     /* around the floor of quantization, 1e-5 */
    TRIAL_TIES,     /* multiples of 0.5 up to 127, so that products end in .5 */
    TRIAL_CONSTANT,
    TRIAL_ZERO,    /* of both signs */
    TRIAL_SPECIAL, /* with infinities and NaN among ordinary numbers */
    TRIAL_COUNT
} trial_kind;

/* n numbers of a kind, and a copy of the same bytes elsewhere. */
check_buffer trial_floats(size_t n, trial_kind kind, check_place place, check_rng *rng);
check_buffer trial_copy(const check_buffer *from, check_place place);

/* The subject of one comparison. */
typedef struct trial {
    const tern_kernel_row *kernel;
    size_t n;
    trial_kind kind;
    check_place place;
    check_rng rng;
} trial;

/*
 * Runs `check` for the runnable kernels of an operation, over all kinds of numbers, and over
 * lengths around the vector widths and those in use, times `multiple`.
 */
void trial_each(tern_op op, size_t multiple, void (*check)(trial *));

/*
 * The same in blocks of the kernel's format, up to 8192 elements. Checks draw any bytes, whatever
 * the kind, so two kinds are enough: they differ in their places.
 */
void trial_each_block(tern_op op, void (*check)(trial *));

/* y = op(a, b), by the reference if kernel is NULL. */
typedef void trial_binary(const tern_kernel_row *kernel, const float *a, const float *b, size_t n,
                          float *y);

/* Checks the operation out of place, in place of the first operand and, if `second`, of the
 * second. */
void trial_check_binary(trial *t, trial_binary *op, bool second);

#endif
