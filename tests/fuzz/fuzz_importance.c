/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of importance. The sums of an accepted file can be used as weights. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "authoring/importance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All columns of a matrix must have a positive, finite weight. */
static void weigh(const tern_importance_entry *e, size_t cols, size_t matrix) {
    float *w = calloc(cols, sizeof *w);
    if (w == NULL)
        return;
    tern_importance_weights(e, cols, matrix, w);
    for (size_t k = 0; k < cols; k++)
        if (!(w[k] > 0.0f) || !isfinite(w[k]))
            abort();
    free(w);
}

static void touch(const tern_importance *m) {
    if (m->n == 0)
        abort();
    for (size_t i = 0; i < m->n; i++) {
        const tern_importance_entry *e = &m->entries[i];
        if (tern_importance_find(m, e->name) != e)
            abort();
        for (size_t k = 0; k < e->matrices && k < 3; k++)
            weigh(e, e->cols, k);
        if (e->matrices == 1 && e->cols % 2 == 0)
            weigh(e, e->cols / 2, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_importance m = {.n = 0};
    tern_error err = {0};
    const tern_status status = tern_importance_parse(data, size, "fuzz", &m, &err);
    if ((status == TERN_OK) != (m.n > 0) || (status != TERN_OK && err.message[0] == '\0'))
        abort();
    if (status == TERN_OK)
        touch(&m);
    tern_importance_free(&m);
    return 0;
}
