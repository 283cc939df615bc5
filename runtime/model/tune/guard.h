/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_GUARD_H
#define TERN_RUNTIME_MODEL_TUNE_GUARD_H

/*
 * Kernels are tried before they are used. Each is compared with the scalar kernel of the same use:
 * products on a few rows of the model's own weights, other operations on made-up numbers. A kernel
 * whose bits differ is refused, the refusal is recorded, and the next kernel of the table takes its
 * place. Each kernel is checked once; all checks together take milliseconds.
 */

#include "dispatch/select.h"

enum { TERN_GUARD_ROWS = 64, TERN_GUARD_REFUSALS = 16 };

typedef struct tern_guard {
    const tern_kernel_row *table; /* tern_kernel_rows, or a test's own */
    size_t count;
    uint64_t mask; /* features that kernels may use */
    const tern_kernel_row *sound[TERN_GUARD_ROWS];
    size_t n_sound;
    tern_kernel_refusal refused[TERN_GUARD_REFUSALS];
    size_t n_refused; /* at most TERN_GUARD_REFUSALS: then no kernel is accepted any more */
    bool no_memory;   /* a check lacked memory, so a function returned NULL */
} tern_guard;

/* A guard over the kernel table. */
tern_guard tern_guard_new(uint64_t mask);

/* The first kernel for this use that has not been refused; NULL when there is none. */
const tern_kernel_row *tern_guard_select(const tern_guard *guard, tern_kernel_use use);

/* The next such kernel of the table after `kernel`, which is of the same use. */
const tern_kernel_row *tern_guard_next(const tern_guard *guard, tern_kernel_use use,
                                       const tern_kernel_row *kernel);

/*
 * The first kernel for the product over *w that gives the scalar kernel's bits on the first rows of
 * the weights, whose data must be there. `preferred` (NULL: none) is tried before those of the
 * table. `where` names the tensor in the record. NULL: none is left, or there is no memory for the
 * check.
 */
const tern_kernel_row *tern_guard_product(tern_guard *guard, tern_op op, const tern_matrix *w,
                                          const tern_kernel_row *preferred, const char *where);

/* The same for an operation that is not a product; NULL as above. `sample` is a row of n elements
 * (EMBED), or NULL. */
const tern_kernel_row *tern_guard_operation(tern_guard *guard, tern_op op, tern_format format,
                                            const void *sample, size_t n);

#endif
