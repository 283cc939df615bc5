/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/model_replicas.h"

#include <stdlib.h>
#include <string.h>

tern_status tern_model_plan_replicas(tern_model *m, uint64_t limit, uint32_t threads,
                                     tern_error *err) {
    tern_model_replicas *r = &m->replicas;
    tern_place *places = calloc(threads, sizeof *places);
    if (places == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to place %u threads", threads);
    tern_status status = tern_load_list_hot(&m->list, &r->hot, err);
    if (status == TERN_OK)
        status = tern_place_threads(m->topology, &m->places, threads, places, err);
    if (status == TERN_OK) {
        r->bytes = tern_hot_choose(&r->hot, limit);
        r->n = r->bytes > 0 ? tern_replica_nodes(m->topology, places, threads) : 0;
    }
    free(places);
    return status;
}

/* ---- what the workers of a node read --------------------------------------------------------- */

typedef struct finder {
    const tern_model_replicas *replicas;
    uint32_t node;
} finder;

static const void *find(const finder *f, const void *data) {
    return tern_replica_find(&f->replicas->hot, &f->replicas->copies, f->node, data);
}

static void move_vector(const finder *f, const float **vector) {
    *vector = find(f, *vector);
}

static void move_linear(const finder *f, tern_linear *linear) {
    linear->matrix.data = find(f, linear->matrix.data);
    if (linear->factor != NULL)
        move_vector(f, &linear->factor);
}

static void move_layer(const finder *f, tern_layer *l) {
    size_t count;
    const tern_block_tensor *tensors = tern_block_tensors(&count);
    for (size_t i = 0; i < count; i++)
        if (tensors[i].kind == TERN_BLOCK_MATRIX)
            move_linear(f, tern_layer_matrix(l, &tensors[i]));
        else
            move_vector(f, tern_layer_vector(l, &tensors[i]));
}

/*
 * Makes the weights of a node: the model's, with pointers to the node's copies where it has them.
 */
static tern_status make_set(const tern_model *m, uint32_t node, tern_weight_set *out,
                            tern_error *err) {
    const uint32_t n = m->config.n_layer;
    const finder f = {.replicas = &m->replicas, .node = node};
    tern_layer *layers = calloc(n, sizeof *layers);
    if (layers == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %u layers", n);
    memcpy(layers, m->layers, n * sizeof *layers);
    for (uint32_t i = 0; i < n; i++)
        move_layer(&f, &layers[i]);
    *out = m->own;
    out->layers = layers;
    out->embedding.data = find(&f, out->embedding.data);
    move_vector(&f, &out->output_norm);
    out->positions.data = find(&f, out->positions.data);
    out->types.data = find(&f, out->types.data);
    move_vector(&f, &out->embd_norm);
    move_vector(&f, &out->embd_norm_bias);
    move_linear(&f, &out->head);
    return TERN_OK;
}

/* Makes the sets of the nodes that have a replica, and counts these nodes in r->n. */
static tern_status make_sets(tern_model *m, tern_error *err) {
    tern_model_replicas *r = &m->replicas;
    tern_status status = TERN_OK;
    r->sets = calloc(r->copies.n_nodes, sizeof *r->sets);
    r->n = 0;
    if (r->sets == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for replicas on %u nodes",
                         r->copies.n_nodes);
    for (uint32_t node = 0; status == TERN_OK && node < r->copies.n_nodes; node++)
        if (r->copies.arenas[node].base != NULL) {
            status = make_set(m, node, &r->sets[node], err);
            r->n++;
        }
    return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* These parts of the file will hardly be read again. */
static void drop_sources(const tern_model *m) {
    const tern_hot_list *hot = &m->replicas.hot;
    for (size_t i = 0; i < hot->n; i++)
        if (hot->pieces[i].chosen && hot->pieces[i].in_file)
            tern_gguf_drop_range(m->file, hot->pieces[i].data, hot->pieces[i].bytes);
}

/* Notes that nodes lack a replica. That costs only speed, so it is an error only where places are
 * demanded. */
static tern_status note_problem(tern_model *m, tern_error *err) {
    const tern_error *problem = &m->replicas.copies.problem;
    if (problem->status != TERN_OK && tern_model_must_bind(m))
        return tern_fail(err, TERN_ERR_STRICT, "strict: %s", problem->message);
    m->loading.replica_problem = *problem;
    return tern_model_note_refusal(m, m->replicas.copies.refused, &m->refused, err);
}

tern_status tern_model_make_replicas(tern_model *m, uint64_t limit, tern_team *team,
                                     tern_error *err) {
    tern_model_replicas *r = &m->replicas;
    if (r->n == 0)
        return TERN_OK;
    tern_status status = tern_load_list_hot(&m->list, &r->hot, err);
    if (status != TERN_OK)
        return status;
    r->bytes = tern_hot_choose(&r->hot, limit);
    status = tern_replicas_new(&r->hot, r->bytes, m->topology, &m->places, team, &r->copies, err);
    if (status == TERN_OK)
        status = note_problem(m, err);
    if (status == TERN_OK)
        status = make_sets(m, err);
    if (status == TERN_OK && r->n > 0)
        drop_sources(m);
    return status;
}

void tern_model_free_replicas(tern_model *m) {
    tern_model_replicas *r = &m->replicas;
    for (uint32_t i = 0; r->sets != NULL && i < r->copies.n_nodes; i++)
        free((void *)(uintptr_t)r->sets[i].layers);
    free(r->sets);
    tern_replicas_free(&r->copies);
    tern_hot_free(&r->hot);
    *r = (tern_model_replicas){.n = 0};
}
