/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/eval/importance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tern/inspect.h"

/* Adds a row to the sums of a matrix. Rows come in the order of the text, so that the batch size
 * does not change a sum. */
static void add_row(tern_input_form form, const tern_activations *x, size_t t, size_t matrix,
                    tern_importance_entry *e) {
    double *squares = e->squares + matrix * e->cols;
    for (size_t i = 0; i < e->cols; i++) {
        double value = 0.0;
        if (form == TERN_INPUT_FLOAT)
            value = (double)x->x[t * x->x_stride + i];
        else if (form == TERN_INPUT_TOKEN)
            value = (double)x->q[t * x->q_stride + i] / (double)x->s[t];
        else
            value =
                (double)x->q[t * x->q_stride + i] * (double)x->d[t * x->d_stride + i / TERN_BLOCK];
        squares[i] += value * value;
    }
    e->rows[matrix] += 1.0;
}

/* The target of the session's observer. */
typedef struct collector {
    const tern_model *model;
    tern_importance *importance;
} collector;

static tern_importance_entry *entry_of(tern_importance *m, tern_span name) {
    for (size_t i = 0; i < m->n; i++)
        if (strlen(m->entries[i].name) == name.size &&
            memcmp(m->entries[i].name, name.data, name.size) == 0)
            return &m->entries[i];
    return NULL;
}

/* Adds the rows that were routed to each expert. */
static void add_routed(tern_input_form form, const tern_activations *x,
                       const tern_product_routes *routes, tern_importance_entry *e) {
    for (uint32_t expert = 0; expert < routes->experts; expert++)
        for (uint32_t i = routes->begins[expert]; i < routes->begins[expert + 1]; i++)
            add_row(form, x, routes->rows != NULL ? routes->rows[i] : i, expert, e);
}

static void observe(void *user, const tern_linear *linear, const tern_activations *x, size_t rows,
                    const tern_product_routes *routes) {
    const collector *c = user;
    tern_linear_info info;
    tern_linear_describe(c->model, linear, &info);
    const tern_input_form form = tern_layout_input(info.matrix.layout);
    tern_importance_entry *e = entry_of(c->importance, info.tensor);
    if (e != NULL && routes != NULL)
        add_routed(form, x, routes, e);
    for (size_t t = 0; e != NULL && routes == NULL && t < rows; t++)
        add_row(form, x, t, 0, e);
}

/* Adds an entry for each matrix of the blocks. */
static tern_status add_entries(const tern_model *model, tern_importance *m, tern_error *err) {
    const tern_linear *linear;
    for (size_t i = 0; (linear = tern_model_linear(model, i)) != NULL; i++) {
        char name[TERN_IMPORTANCE_NAME_BYTES];
        tern_linear_info info;
        tern_linear_describe(model, linear, &info);
        (void)snprintf(name, sizeof name, "%.*s", (int)info.tensor.size, info.tensor.data);
        if (info.stage != TERN_STAGE_HEAD && info.stage != TERN_STAGE_SCAN &&
            tern_importance_add(m, name, info.matrix.cols, info.experts > 0 ? info.experts : 1) ==
                NULL)
            return tern_fail(err, TERN_ERR_NOMEM, "no memory for the columns of %s", name);
    }
    return TERN_OK;
}

static tern_status run_windows(tern_session *session, const importance_params *p,
                               const int32_t *tokens, size_t windows, importance_progress *progress,
                               void *user, tern_error *err) {
    tern_status status = TERN_OK;
    int32_t *window = calloc(p->ctx, sizeof *window);
    if (window == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a window of %zu tokens", p->ctx);
    for (size_t w = 0; status == TERN_OK && w < windows; w++) {
        memcpy(window, tokens + w * p->ctx, p->ctx * sizeof *window);
        if (p->bos >= 0)
            window[0] = p->bos;
        status = tern_session_rewind(session, 0, err);
        if (status == TERN_OK)
            status = tern_session_eval(session, window, p->ctx, TERN_LOGITS_NONE, NULL, err);
        if (status == TERN_OK && progress != NULL)
            progress(w + 1, windows, user);
    }
    free(window);
    return status;
}

tern_status importance_run(tern_session *session, const importance_params *p, const int32_t *tokens,
                           size_t n, importance_progress *progress, void *user,
                           tern_importance *out, tern_error *err) {
    const size_t all = n / p->ctx;
    const size_t windows = p->max_windows > 0 && p->max_windows < all ? p->max_windows : all;
    collector c = {.model = tern_session_model(session), .importance = out};
    if (windows == 0)
        return tern_fail(err, TERN_ERR_ARG,
                         "%zu tokens are less than one window of %zu; --ctx N takes others", n,
                         p->ctx);
    tern_status status = add_entries(c.model, out, err);
    if (status != TERN_OK)
        return status;
    tern_session_observe(session, observe, &c);
    status = run_windows(session, p, tokens, windows, progress, user, err);
    tern_session_observe(session, NULL, NULL);
    out->chunks = (uint32_t)windows;
    out->chunk_tokens = (uint32_t)p->ctx;
    return status;
}
