/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of importance: what is accepted has sums that weights can follow. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "authoring/importance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const tern_importance *m) {
    if (m->n == 0)
        abort();
    for (size_t i = 0; i < m->n; i++) {
        const tern_importance_entry *e = &m->entries[i];
        float *w = calloc(e->cols, sizeof *w);
        if (w == NULL)
            continue;
        if (tern_importance_find(m, e->name) != e || !(e->rows > 0.0))
            abort();
        tern_importance_weights(e, w);
        for (size_t k = 0; k < e->cols; k++)
            if (!(w[k] > 0.0f) || !isfinite(w[k]))
                abort();
        free(w);
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
