/* SPDX-License-Identifier: Apache-2.0 */

#include "device/tally.h"

#include <stdlib.h>

tern_tally *tern_tally_new(void) {
    size_t n;
    const tern_kernel_row *table = tern_kernel_rows(&n);
    tern_tally *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->table = table;
    t->ran = calloc(n, sizeof *t->ran);
    t->calls = calloc(n, sizeof *t->calls);
    if (t->ran == NULL || t->calls == NULL)
        tern_tally_free(&t);
    return t;
}

void tern_tally_free(tern_tally **tally) {
    if (tally == NULL || *tally == NULL)
        return;
    free((*tally)->ran);
    free((*tally)->calls);
    free(*tally);
    *tally = NULL;
}
