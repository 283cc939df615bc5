/* SPDX-License-Identifier: Apache-2.0 */

/* How vectors of texts are made of hidden states, as files say it. */

#include <math.h>
#include <stdio.h>

#include "runtime/model/config_internal.h"
#include "runtime/model/model.h"

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

/* 4 says that a classifier follows, which makes a score of two texts. */
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

tern_pooling tern_model_pooling(const tern_model *model) {
    return model->config.pooling;
}

bool tern_model_continues(const tern_model *model) {
    return !model->config.arch->encodes;
}

/* Whether the file lists n among the lengths of its vectors. */
static bool lists(const tern_model *m, uint32_t n) {
    char key[TERN_KEY_BYTES];
    key_of(&m->config, "matryoshka_dimensions", key);
    const tern_gguf_value *list = tern_gguf_find(m->file, key);
    for (uint64_t i = 0; list != NULL && i < list->count; i++) {
        uint32_t length;
        if (tern_gguf_element_u32(list, i, &length) && length == n)
            return true;
    }
    return false;
}

bool tern_model_shortens(const tern_model *model, uint32_t n) {
    char key[TERN_KEY_BYTES];
    bool any = false;
    key_of(&model->config, "is_matryoshka", key);
    if (n == 0 || n > model->config.n_embd)
        return false;
    if (tern_gguf_bool(model->file, key, &any, NULL) != TERN_OK)
        any = false;
    return n == model->config.n_embd || any || lists(model, n);
}

void tern_embedding_normalize(const float *x, size_t n, float *out) {
    double squares = 0.0;
    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    const double length = sqrt(squares);
    for (size_t i = 0; i < n; i++)
        out[i] = length > 0.0 ? (float)((double)x[i] / length) : 0.0F;
}
