/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/model_load.h"

#include <string.h>

#include "base/metrics.h"
#include "runtime/model/commons.h"
#include "runtime/model/model_image.h"
#include "runtime/model/model_replicas.h"
#include "runtime/model/strict.h"
#include "runtime/model/tune_model.h"
#include "threads/bind.h"
#include "threads/team.h"

/* The state that the steps of one loading share. */
typedef struct loading {
    tern_model *m;
    const tern_model_params *params;
    tern_precision wanted; /* of activations */
    uint32_t threads;
    tern_load_choice choice;
    tern_commons_look look;
    tern_equal equal;
    tern_team *team; /* NULL: no weights are loaded */
} loading;

tern_status tern_model_no_kernel(const tern_model *m, tern_op op, tern_error *err) {
    return m->guard.no_memory
               ? tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to try kernels for operation %s",
                           tern_gguf_name(m->file), tern_op_name(op))
               : tern_fail(err, TERN_ERR_KERNEL, "%s: no kernel for operation %s",
                           tern_gguf_name(m->file), tern_op_name(op));
}

/* ---- the list ------------------------------------------------------------------------------ */

static tern_status list_tensors(loading *l, tern_error *err) {
    tern_model *m = l->m;
    const bool imaged = !m->exact_head && !m->config.arch->encodes && m->config.logit_cap == 0.0f;
    const tern_load_target target = {.config = &m->config,
                                     .split = &m->split,
                                     .layers = m->layers,
                                     .own = &m->own,
                                     .image = imaged ? &m->image : NULL};
    return tern_load_list_make(&m->list, m->file, &m->reading, &target, err);
}

static tern_status choose(loading *l, tern_error *err) {
    return tern_load_list_choose(&l->m->list, &l->choice, err);
}

/* Settles the precision of activations for these weights. The definition of ternary weights
 * includes int8, so other wishes are refused for them. */
static tern_status settle_precision(loading *l, tern_error *err) {
    tern_model *m = l->m;
    if (tern_model_is_ternary(m)) {
        m->precision_refused = l->wanted != TERN_PRECISION_AUTO && l->wanted != TERN_PRECISION_INT8;
        return TERN_OK;
    }
    m->precision = tern_precision_settle(l->wanted, tern_model_forms(m));
    const tern_op op = tern_precision_op(m->precision);
    if (op != TERN_OP_COUNT) {
        m->kernels.round = tern_guard_operation(&m->guard, op, TERN_FORMAT_NONE, NULL, 0);
        if (m->kernels.round == NULL)
            return tern_model_no_kernel(m, op, err);
    }
    l->choice.precision = m->precision;
    return tern_precision_decodes(m->precision) ? choose(l, err) : TERN_OK;
}

static tern_status start_team(loading *l, tern_error *err) {
    return l->params->no_weights
               ? TERN_OK
               : tern_team_new_placed(l->threads, l->m->topology, &l->m->places, &l->team, err);
}

/*
 * Takes the tuner's choices in place of the table's. The tuner knows the processor's kernels only.
 */
static tern_status tune(loading *l, tern_error *err) {
    tern_model *m = l->m;
    const tern_model_params *p = l->params;
    tern_load_choice *c = &l->choice;
    if (!p->tune || m->mirror != NULL)
        return TERN_OK;
    c->tune_threads = l->team != NULL ? tern_team_size(l->team) : l->threads;
    c->tune_stream = tern_tune_stream_of(m);
    m->tune_threads = c->tune_threads;
    m->together = p->together;
    if (p->tune_later && p->cache != NULL && l->team != NULL &&
        (m->tune_folder = strdup(p->cache)) == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a folder's name");
    tern_tune_model(m, c->tune_threads, l->team, p->cache, p->tune_later);
    if (m->tuning.n == 0 && m->ternary == c->ternary)
        return TERN_OK;
    if (m->choice == TERN_CHOICE_TABLE)
        m->choice = TERN_CHOICE_TUNED;
    c->ternary = m->ternary;
    c->tuning = &m->tuning;
    return choose(l, err);
}

static tern_status arrange(loading *l, tern_error *err) {
    return tern_load_list_arrange(&l->m->list, tern_split_is(&l->m->split) ? NULL : &l->equal, err);
}

static tern_status plan_replicas(loading *l, tern_error *err) {
    return l->params->replicate
               ? tern_model_plan_replicas(l->m, l->params->replicate_limit, l->threads, err)
               : TERN_OK;
}

static tern_status check_strict(loading *l, tern_error *err) {
    return l->m->strict ? tern_strict_plan(l->m, l->params, err) : TERN_OK;
}

/* Refuses ways in which a rank beside others cannot read matrices. */
static tern_status check_ranks(const tern_model *m, const tern_model_params *p, tern_error *err) {
    const char *what = p->device != NULL && m->mirror != NULL     ? "another device"
                       : p->replicate                             ? "copies of hot weights"
                       : p->share != NULL                         ? "matrices of another model"
                       : p->n_adapters > 0                        ? "adapters"
                       : tern_config_delta_layers(&m->config) > 0 ? "delta nets"
                                                                  : NULL;
    return p->ranks == NULL || what == NULL
               ? TERN_OK
               : tern_fail(err, TERN_ERR_UNIMPLEMENTED, "%s: ranks cannot use %s",
                           tern_gguf_name(m->file), what);
}

/* ---- the weights --------------------------------------------------------------------------- */

/* True if it matters on which node weights lie. A mapped image lies where it was first read, so
 * none is used then. */
static bool has_places(const tern_model *m) {
    return m->topology->n_nodes > 1 || m->places.numa != TERN_NUMA_NONE;
}

/* Reserves the arena: a mapped image, or memory where the NUMA policy wants it. */
static tern_status reserve(loading *l, tern_error *err) {
    tern_model *m = l->m;
    if (!has_places(m))
        tern_model_find_image(m, l->params, l->team);
    if (m->loading.mapped)
        return TERN_OK;
    const tern_status status = tern_arena_new(m->list.bytes, true, &m->weights, err);
    if (status != TERN_OK)
        return status;
    const int refused =
        tern_place_memory(m->topology, &m->places, m->weights.base, m->weights.size);
    return tern_model_note_refusal(m, refused, &m->refused, err);
}

static tern_status fill(loading *l, tern_error *err) {
    tern_model *m = l->m;
    tern_load_list_bind(&m->list, m->weights.base);
    return m->loading.mapped
               ? TERN_OK
               : tern_load_list_fill(&m->list, m->weights.base, &m->guard, l->team, err);
}

static tern_status check(loading *l, tern_error *err) {
    return tern_load_list_check(&l->m->list, &l->m->guard, err);
}

/*
 * Gives back the file's pages of packed tensors, which are not read again, including those that
 * reading the scale after a matrix has mapped. If no matrix is read whole in the file, the only
 * reads left there are rows for tokens, and rows of the head that its image leaves undecided.
 */
static tern_status leave_file(loading *l, tern_error *err) {
    const tern_model *m = l->m;
    bool streamed = false;
    (void)err;
    for (size_t i = 0; i < m->list.n; i++) {
        const tern_load_entry *e = &m->list.entries[i];
        const bool is_matrix = e->kind == TERN_LOAD_MATRIX;
        const bool in_file = is_matrix && e->to.linear->in_file;
        streamed |= in_file && !(e->to.linear == &m->own.head && tern_head_is_imaged(&m->image));
        if (is_matrix ? !in_file : e->kind == TERN_LOAD_IMAGE && e->place != TERN_LOAD_NOWHERE)
            tern_gguf_drop_pages(m->file, e->tensor);
    }
    if (!streamed)
        tern_gguf_expect_parts(m->file);
    return TERN_OK;
}

static tern_status make_replicas(loading *l, tern_error *err) {
    return tern_model_make_replicas(l->m, l->params->replicate_limit, l->team, err);
}

static tern_status check_loaded(loading *l, tern_error *err) {
    const tern_status status = l->m->strict ? tern_strict_loaded(l->m, err) : TERN_OK;
    return status == TERN_OK ? tern_gguf_unchanged(l->m->file, err) : status;
}

/* ---- the steps ----------------------------------------------------------------------------- */

typedef tern_status step(loading *l, tern_error *err);

/* The steps, in order. A model without weights leaves out the second list. */
static step *const planning[] = {list_tensors, choose,  settle_precision, start_team,
                                 tune,         arrange, plan_replicas,    check_strict};
static step *const making[] = {fill, check, leave_file, make_replicas, check_loaded};

static tern_status run(loading *l, step *const *steps, size_t n, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        status = steps[i](l, err);
    return status;
}

static tern_status load(loading *l, tern_error *err) {
    tern_status status = run(l, planning, sizeof planning / sizeof *planning, err);
    if (status != TERN_OK || l->params->no_weights)
        return status;
    status = reserve(l, err);
    const double begin = tern_clock_seconds();
    if (status == TERN_OK)
        status = run(l, making, sizeof making / sizeof *making, err);
    l->m->loading.weights_seconds = tern_clock_seconds() - begin;
    return status;
}

/* Finds tensors that are equal in the file, and in models that it is opened beside. */
static tern_status find_equal(loading *l, tern_error *err) {
    const tern_status status =
        tern_commons_look_at(l->params->share, &l->m->reading, &l->look, err);
    return status == TERN_OK
               ? tern_equal_find(l->m->file, l->look.holders, l->look.n_holders, &l->equal, err)
               : status;
}

static tern_status enter(loading *l, tern_error *err) {
    l->m->loading.compared_bytes = l->equal.read;
    return l->params->no_weights ? TERN_OK : tern_commons_enter(l->m, &l->look, err);
}

tern_status tern_model_load(tern_model *m, const tern_model_params *params,
                            tern_precision precision, tern_error *err) {
    m->split = tern_split_of(params->ranks, &m->config);
    loading l = {.m = m,
                 .params = params,
                 .wanted = precision,
                 .threads = tern_model_threads(m, params->threads),
                 .choice = {.guard = &m->guard, .ternary = m->ternary}};
    tern_status status = check_ranks(m, params, err);
    if (status == TERN_OK)
        status = find_equal(&l, err);
    if (status == TERN_OK)
        status = load(&l, err);
    if (status == TERN_OK)
        status = enter(&l, err);
    tern_team_free(&l.team);
    m->runnable = status == TERN_OK && !params->no_weights;
    if (m->runnable)
        tern_model_keep_image(m);
    if (status == TERN_OK)
        tern_equal_drop_pages(&l.equal);
    tern_equal_free(&l.equal);
    tern_commons_look_end(&l.look, tern_model_dispose);
    return status;
}
