/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/index.h"

void tern_vocabulary_free(tern_vocabulary **vocabulary) {
    if (vocabulary == NULL || *vocabulary == NULL)
        return;
    tern_vocabulary *v = *vocabulary;
    *vocabulary = NULL;
    tern_json_free(&v->json);
    tern_json_free(&v->config);
    for (size_t i = 0; i < v->n_templates; i++)
        free(v->templates[i].own);
    free(v->own_template);
    free(v->file);
    free(v->tokens);
    free(v->types);
    free(v->outside);
    free(v->scores);
    free(v->merges);
    free(v->added);
    free(v->made);
    free(v->charsmap);
    free(v);
}

tern_span tern_vocabulary_template(const tern_vocabulary *v, const char *name) {
    for (size_t i = 0; i < v->n_templates; i++)
        if (tern_spans_equal(v->templates[i].name, (tern_span){name, strlen(name)}))
            return v->templates[i].text;
    return (tern_span){"", 0};
}

tern_status tern_vocabulary_rank_scores(const tern_vocabulary *v, float *scores, tern_error *err) {
    tern_span_index index;
    if (!tern_span_index_init(&index, v->n_tokens))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for scores", v->file);
    for (size_t i = 0; i < v->n_tokens; i++) {
        scores[i] = 0.0f;
        if (v->tokens[i].size > 0)
            (void)tern_span_index_add(&index, v->tokens, i);
    }
    for (size_t rank = v->n_merges; rank-- > 0;) { /* backwards, so that the first one stays */
        const tern_merge *m = &v->merges[rank];
        const int32_t made = tern_span_index_find(&index, v->tokens, m->left, m->right);
        if (made >= 0)
            scores[made] = -(float)rank;
    }
    tern_span_index_free(&index);
    return TERN_OK;
}
