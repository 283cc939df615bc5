/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/speed/sparsity.h"

#include <stdlib.h>

static const size_t sizes[SPARSITY_SIZES] = SPARSITY_GROUPS;

bool sparsity_open(sparsity *s, const tern_model *model) {
    tern_model_info info;
    tern_model_describe(model, &info);
    s->model = model;
    s->layers = calloc(info.n_layer, sizeof *s->layers);
    s->n_layer = s->layers != NULL ? info.n_layer : 0;
    return s->layers != NULL;
}

void sparsity_free(sparsity *s) {
    free(s->layers);
    *s = (sparsity){.n_layer = 0};
}

void sparsity_count(sparsity_layer *l, const int8_t *q, size_t cols) {
    for (size_t i = 0; i < cols; i++)
        l->zeros += q[i] == 0;
    l->values += cols;
    for (size_t size = 0; size < SPARSITY_SIZES; size++) {
        const size_t n = sizes[size];
        for (size_t i = 0; i + n <= cols; i += n) {
            unsigned any = 0;
            for (size_t j = 0; j < n; j++)
                any |= (unsigned char)q[i + j];
            l->groups[size]++;
            l->zero_groups[size] += any == 0;
        }
    }
}

static void see_product(void *user, const tern_linear *linear, const tern_activations *x,
                        size_t rows, const tern_product_routes *routes) {
    sparsity *s = user;
    (void)routes;
    tern_linear_info info;
    tern_linear_describe(s->model, linear, &info);
    if (info.stage != TERN_STAGE_DOWN || tern_layout_input(info.matrix.layout) == TERN_INPUT_FLOAT)
        return;
    for (size_t t = 0; t < rows; t++)
        sparsity_count(&s->layers[info.layer], x->q + t * x->q_stride, x->cols);
}

void sparsity_watch(tern_session *session, sparsity *s) {
    tern_session_observe(session, s != NULL ? see_product : NULL, s);
}

sparsity_layer sparsity_total(const sparsity *s) {
    sparsity_layer total = {.values = 0};
    for (size_t layer = 0; layer < s->n_layer; layer++) {
        const sparsity_layer *l = &s->layers[layer];
        total.values += l->values;
        total.zeros += l->zeros;
        for (size_t i = 0; i < SPARSITY_SIZES; i++) {
            total.groups[i] += l->groups[i];
            total.zero_groups[i] += l->zero_groups[i];
        }
    }
    return total;
}
