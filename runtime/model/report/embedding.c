/* SPDX-License-Identifier: Apache-2.0 */

/* The vectors of texts that a model gives. */

#include <stdio.h>

#include "runtime/model/config/internal.h"
#include "runtime/model/model.h"
#include "tern/embed.h"

tern_pooling tern_model_pooling(const tern_model *model) {
    return model->config.pooling;
}

bool tern_model_ranks(const tern_model *model) {
    return model->config.ranks;
}

bool tern_model_continues(const tern_model *model) {
    return !model->config.arch->encodes;
}

/* True if the file lists n among the lengths of its vectors. */
static bool lists(const tern_model *m, uint32_t n) {
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.matryoshka_dimensions", m->config.arch->name);
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
    snprintf(key, sizeof key, "%s.is_matryoshka", model->config.arch->name);
    if (n == 0 || n > model->config.n_embd)
        return false;
    if (tern_gguf_bool(model->file, key, &any, NULL) != TERN_OK)
        any = false;
    return n == model->config.n_embd || any || lists(model, n);
}
