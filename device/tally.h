/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_TALLY_H
#define TERN_DEVICE_TALLY_H

/*
 * Which kernels the operations of a device have run. The device counts where it runs them, so that
 * nobody has to conclude it from what a pass should do. An operation counts each of its kernels
 * once, whatever it is divided into: the first lane of a team counts for all of them, and nothing
 * is shared or atomic. One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"

typedef struct tern_tally {
    const tern_kernel_row *table; /* all kernels */
    const tern_kernel_row **ran;  /* [n] those that have run, in the order of their first calls */
    size_t n;
    uint64_t *calls; /* of each kernel of the table */
} tern_tally;

/* Nothing has run yet. NULL: no memory. */
tern_tally *tern_tally_new(void);
void tern_tally_free(tern_tally **tally); /* NULL and a pointer to NULL are fine */

/* An operation runs a kernel of the table. NULL: nobody counts. */
static inline void tern_tally_count(tern_tally *t, const tern_kernel_row *kernel) {
    if (t != NULL && t->calls[kernel - t->table]++ == 0)
        t->ran[t->n++] = kernel;
}

#endif
