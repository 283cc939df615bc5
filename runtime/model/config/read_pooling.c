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
                                    [TERN_POOLING_LAST] = "last",
                                    [TERN_POOLING_RANK] = "rank"};

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

/* A head of several labels is a classifier: its numbers are not how well two texts fit together. */
static tern_status check_labels(const tern_gguf *file, const tern_config *c, tern_error *err) {
    char key[TERN_KEY_BYTES];
    key_of(c, "classifier.output_labels", key);
    const tern_gguf_value *labels = tern_gguf_find(file, key);
    if (labels == NULL || labels->count == 1)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_KEY_RANGE,
                     "%s: key %s has %llu labels: a head that scores pairs has one",
                     tern_gguf_name(file), key, (unsigned long long)labels->count);
}

/* The head is known by its last matrix. Files of some programs have it and do not name type 4. */
static tern_status read_head(const tern_gguf *file, uint32_t number, tern_config *c,
                             tern_error *err) {
    c->ranks = c->arch->encodes && tern_gguf_find_tensor(file, TERN_RANK_OUT) != NULL;
    if (c->ranks && number == TERN_POOLING_NONE)
        c->pooling = TERN_POOLING_RANK;
    if (c->ranks)
        return check_labels(file, c, err);
    return number != TERN_POOLING_RANK
               ? TERN_OK
               : tern_fail(err, TERN_ERR_TENSOR_MISSING,
                           "%s: key %s.pooling_type is 4 (rank), and %s", tern_gguf_name(file),
                           c->arch->name,
                           c->arch->encodes ? "tensor " TERN_RANK_OUT " is missing"
                                            : "only encoders are supported with that");
}

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
                         "%s: key %s is %u, which is not supported (1 mean, 2 cls, 3 last, 4 rank)",
                         tern_gguf_name(file), key, number);
    c->pooling = (tern_pooling)number;
    return read_head(file, number, c, err);
}

void tern_embedding_normalize(const float *x, size_t n, float *out) {
    double squares = 0.0;
    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    const double length = sqrt(squares);
    for (size_t i = 0; i < n; i++)
        out[i] = length > 0.0 ? (float)((double)x[i] / length) : 0.0F;
}
