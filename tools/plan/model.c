/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plan/model.h"

#include <stdio.h>
#include <string.h>

#include "tern/inspect.h"
#include "tools/cli/kv_layers.h"

/* ---- from a file ----------------------------------------------------------------------------- */

static plan_part part_of(tern_stage stage) {
    switch (stage) {
    case TERN_STAGE_QKV:
        return PLAN_QKV;
    case TERN_STAGE_OUT:
        return PLAN_OUT;
    case TERN_STAGE_GATE_UP:
        return PLAN_GATE_UP;
    case TERN_STAGE_DOWN:
        return PLAN_DOWN;
    default:
        return PLAN_HEAD;
    }
}

/* Counts a matrix. The int8 image of a head is read in its place, and both are in memory. */
static void add_matrix(const tern_linear_info *l, plan_model *m) {
    const plan_part part = part_of(l->stage);
    const uint64_t used = l->experts > 0 ? l->bytes / l->experts * l->experts_used : l->bytes;
    const uint64_t weights = (uint64_t)l->matrix.rows * l->matrix.cols;
    m->kept[part] += l->bytes;
    m->read[part] = l->stage == TERN_STAGE_SCAN ? l->bytes : m->read[part] + used;
    if (l->stage != TERN_STAGE_SCAN)
        m->multiplied += l->experts > 0 ? weights / l->experts * l->experts_used : weights;
}

static uint64_t vector_bytes(const tern_model *model) {
    tern_planned_tensor t;
    uint64_t bytes = 0;
    for (size_t i = 0; tern_model_planned(model, i, &t); i++)
        if (strcmp(t.what, "vector") == 0)
            bytes += t.bytes + t.file_bytes;
    return bytes;
}

tern_status plan_model_of(const tern_model *model, tern_format kv, plan_model *out,
                          tern_error *err) {
    tern_session_params params = tern_session_params_default();
    tern_session_cache_size cache = {.bytes = 0};
    const tern_linear *linear;
    tern_model_info info;
    params.kv = kv;
    const tern_status status = tern_session_cache_bytes(model, &params, &cache, err);
    if (status != TERN_OK)
        return status;
    tern_model_describe(model, &info);
    const kept_layers kept = kept_layers_of(model, kv);
    *out = (plan_model){.n_layer = info.n_layer,
                        .n_embd = info.n_embd,
                        .n_ff = info.n_ff,
                        .n_head = info.n_head,
                        .n_head_kv = info.n_head_kv,
                        .head_dim = info.head_dim,
                        .n_vocab = info.n_vocab,
                        .n_expert = info.n_expert,
                        .n_used = info.n_expert_used,
                        .whole = vector_bytes(model),
                        .row = tern_model_kv_bytes(model, 1, kv) / kept.n,
                        .kv_layers = kept.n,
                        .states = kept.states,
                        .window_layers = cache.window_layers,
                        .window = cache.window_positions};
    (void)snprintf(out->name, sizeof out->name, "%s", info.name);
    for (size_t i = 0; (linear = tern_model_linear(model, i)) != NULL; i++) {
        tern_linear_info l;
        tern_linear_describe(model, linear, &l);
        add_matrix(&l, out);
    }
    return TERN_OK;
}

/* ---- by name --------------------------------------------------------------------------------- */

typedef struct geometry {
    const char *name, *description;
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab;
} geometry;

static const geometry geometries[] = {
    {"bitnet-2b", "30 layers of 2560, as BitNet b1.58 2B4T", 30, 2560, 6912, 20, 5, 128, 128256},
    {"8b", "36 layers of 4096, as Qwen 3 8B", 36, 4096, 12288, 32, 8, 128, 151936},
    {"27b", "62 layers of 5376, as Gemma 3 27B without windows", 62, 5376, 21504, 32, 16, 128,
     262144},
    {"70b", "80 layers of 8192, as Llama 3 70B", 80, 8192, 28672, 64, 8, 128, 128256},
    {"100b", "92 layers of 10240", 92, 10240, 27648, 80, 8, 128, 128256},
};
enum { N_GEOMETRIES = sizeof geometries / sizeof *geometries };

bool plan_geometry_at(size_t index, const char **name, const char **description) {
    if (index >= N_GEOMETRIES)
        return false;
    *name = geometries[index].name;
    *description = geometries[index].description;
    return true;
}

/* Bytes of so many ternary weights in all layers. */
static uint64_t ternary(const geometry *g, uint64_t rows, uint64_t cols) {
    return g->n_layer * rows * cols / 4;
}

static void describe(const geometry *g, plan_model *m) {
    const uint64_t q = (uint64_t)g->n_head * g->head_dim, kv = (uint64_t)g->n_head_kv * g->head_dim;
    const uint64_t head = (uint64_t)g->n_vocab * g->n_embd;
    *m = (plan_model){.n_layer = g->n_layer,
                      .n_embd = g->n_embd,
                      .n_ff = g->n_ff,
                      .n_head = g->n_head,
                      .n_head_kv = g->n_head_kv,
                      .head_dim = g->head_dim,
                      .n_vocab = g->n_vocab,
                      .row = 2 * kv * 2,
                      .kv_layers = g->n_layer};
    (void)snprintf(m->name, sizeof m->name, "%s", g->name);
    m->read[PLAN_QKV] = ternary(g, q + 2 * kv, g->n_embd);
    m->read[PLAN_OUT] = ternary(g, g->n_embd, q);
    m->read[PLAN_GATE_UP] = ternary(g, 2 * (uint64_t)g->n_ff, g->n_embd);
    m->read[PLAN_DOWN] = ternary(g, g->n_embd, g->n_ff);
    m->read[PLAN_HEAD] = head;
    memcpy(m->kept, m->read, sizeof m->kept);
    m->kept[PLAN_HEAD] = 3 * head;
    m->multiplied = 4 * (plan_read_bytes(m) - head) + head;
    m->whole = (2 * (uint64_t)g->n_layer + 1) * g->n_embd * sizeof(float);
}

tern_status plan_model_named(const char *name, plan_model *out, tern_error *err) {
    for (size_t i = 0; i < N_GEOMETRIES; i++)
        if (strcmp(geometries[i].name, name) == 0) {
            describe(&geometries[i], out);
            return TERN_OK;
        }
    return tern_fail(err, TERN_ERR_NAME,
                     "unknown geometry '%.64s'; `tern plan --list` shows those there are", name);
}

/* ---- sums ------------------------------------------------------------------------------------ */

uint64_t plan_cache_bytes(const plan_model *m, uint64_t position) {
    const uint64_t seen = position < m->window ? position : m->window;
    return m->row * ((m->kv_layers - m->window_layers) * position + m->window_layers * seen);
}

static uint64_t sum(const uint64_t parts[PLAN_PARTS]) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < PLAN_PARTS; i++)
        bytes += parts[i];
    return bytes;
}

uint64_t plan_read_bytes(const plan_model *m) {
    return sum(m->read);
}

uint64_t plan_kept_bytes(const plan_model *m) {
    return sum(m->kept) + m->whole;
}
