/* SPDX-License-Identifier: Apache-2.0 */

/* Reads how a model makes vectors of texts from hidden states. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/model/config/internal.h"
#include "tern/embed.h"

static const char *const names[] = {[TERN_POOLING_NONE] = "none",
                                    [TERN_POOLING_MEAN] = "mean",
                                    [TERN_POOLING_CLS] = "cls",
                                    [TERN_POOLING_LAST] = "last"};

enum { POOLINGS = sizeof names / sizeof *names };

const char *tern_pooling_name(tern_pooling pooling) {
    return names[pooling];
}

bool tern_pooling_find(const char *name, tern_pooling *out) {
    for (size_t i = 0; i < POOLINGS; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (tern_pooling)i;
            return true;
        }
    return false;
}

static void key_of(const tern_config *c, const char *suffix, char key[TERN_KEY_BYTES]) {
    snprintf(key, TERN_KEY_BYTES, "%s.%s", c->arch->name, suffix);
}

/* Type 4 is not supported: a classifier follows, which scores two texts. */
tern_status tern_config_pooling(const tern_gguf *file, tern_config *c, tern_error *err) {
    char key[TERN_KEY_BYTES];
    uint32_t number = TERN_POOLING_NONE;
    key_of(c, "pooling_type", key);
    if (tern_gguf_find(file, key) != NULL) {
        const tern_status status = tern_gguf_u32(file, key, &number, err);
        if (status != TERN_OK)
            return status;
    }
    if (number >= POOLINGS)
        return tern_fail(err, TERN_ERR_KEY_RANGE,
                         "%s: key %s is %u, which is not supported (1 mean, 2 cls, 3 last)",
                         tern_gguf_name(file), key, number);
    c->pooling = (tern_pooling)number;
    return TERN_OK;
}

void tern_embedding_normalize(const float *x, size_t n, float *out) {
    double squares = 0.0;
    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    const double length = sqrt(squares);
    for (size_t i = 0; i < n; i++)
        out[i] = length > 0.0 ? (float)((double)x[i] / length) : 0.0F;
}
