/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a model's tokenizer. */

#include <stdlib.h>

#include "runtime/model/model.h"
#include "runtime/text/tokenizer/tokenizer.h"

/* A tokenizer from another file must not make tokens that the model has no weights for. */
static tern_status adopt(tern_model *m, const char *path, const char *pre, tern_error *err) {
    tern_tokenizer *t = NULL;
    const tern_status status = tern_tokenizer_open(path, pre, &t, err);
    if (status != TERN_OK)
        return status;
    const size_t tokens = tern_tokenizer_size(t);
    if (tokens > m->config.n_vocab) {
        tern_tokenizer_free(&t);
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: %zu tokens for a model of %u, %s", path,
                         tokens, m->config.n_vocab, tern_gguf_name(m->file));
    }
    tern_tokenizer_complete(t, m->file, m->config.arch->name);
    m->tokenizer = t;
    return TERN_OK;
}

static tern_status open_any(tern_model *m, const tern_model_params *params, tern_error *err) {
    if (params->tokenizer != NULL)
        return adopt(m, params->tokenizer, params->pre_tokenizer, err);
    const tern_status status = tern_tokenizer_new(
        m->file, m->config.arch->name, params->pre_tokenizer, &m->tokenizer, &m->tokenizer_error);
    if (status != TERN_OK && status != TERN_ERR_TOKENIZER_MISSING)
        return tern_fail(err, status, "%s", m->tokenizer_error.message);
    char *beside = status != TERN_OK ? tern_tokenizer_beside(tern_gguf_name(m->file)) : NULL;
    if (beside != NULL) /* nobody asked for it: if it is unusable, the model has none */
        (void)adopt(m, beside, NULL, &m->tokenizer_error);
    free(beside);
    return TERN_OK;
}

tern_status tern_model_open_tokenizer(tern_model *m, const tern_model_params *params,
                                      tern_error *err) {
    const tern_status status = open_any(m, params, err);
    return status == TERN_OK && m->tokenizer != NULL && params->chat_format != NULL
               ? tern_tokenizer_set_chat_format(m->tokenizer, params->chat_format, err)
               : status;
}
