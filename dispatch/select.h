/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_SELECT_H
#define TERN_DISPATCH_SELECT_H

/* Selection, as pure functions: nothing here looks at the machine. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"

typedef struct tern_isa_info {
    const char *name, *arch;
    uint64_t needs;      /* bits of dispatch/cpu.h */
    bool built;          /* compiled for this architecture */
    bool (*proof)(void); /* executes the set's verbs; true when the results are right */
} tern_isa_info;

/* Instruction sets of the table, weakest first. Static storage. */
const tern_isa_info *tern_isas(size_t *count);

/* The use for which a caller needs a kernel. */
typedef struct tern_kernel_use {
    tern_op op;
    tern_format format; /* packed layouts: any that the layout holds */
    tern_layout layout;
} tern_kernel_use;

/* First kernel of `table` for the use that has code and whose needs are all in mask, or NULL. */
const tern_kernel_row *tern_select_kernel(const tern_kernel_row *table, size_t count, uint64_t mask,
                                          tern_kernel_use use);

/* The scalar kernel for (op, format), or NULL: the one that needs no feature. */
static inline const tern_kernel_row *tern_kernel_scalar(tern_op op, tern_format format) {
    return tern_kernel_select(0, op, format);
}

/* The strongest built instruction set whose needs are all in mask ("scalar" at least). */
const char *tern_isa_of_mask(uint64_t mask);

/* True if a kernel is one of the instruction set in use: any but a scalar one, which is only where
 * the mask allows no other set. */
bool tern_kernel_is_native(uint64_t mask, const tern_kernel_row *kernel);

/*
 * The mask that `isa` allows on a machine with these features. TERN_ERR_ISA for an unknown name
 * and for one that is not built or not in `features`; the message lists the valid names.
 */
TERN_MUST_CHECK tern_status tern_restrict_mask(uint64_t features, const char *isa, uint64_t *mask,
                                               tern_error *err);

/*
 * `features` without the instruction sets of a comma-separated list of the table's names. A set
 * goes with what it adds to the sets that it contains, so that "avx2" also takes AVX-512 away.
 * TERN_ERR_ISA for an unknown name, and for "scalar", which cannot be missed.
 */
TERN_MUST_CHECK tern_status tern_disable_isas(uint64_t features, const char *list, uint64_t *mask,
                                              tern_error *err);

#endif
