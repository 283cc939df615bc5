/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/model.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "runtime/model/config/joined_matrices.h"
#include "runtime/model/model_image.h"
#include "runtime/model/model_replicas.h"
#include "runtime/model/on_device.h"
#include "runtime/model/strict.h"
#include "runtime/model/tune/cores.h"
#include "runtime/model/tune_model.h"
#include "runtime/text/tokenizer/tokenizer.h"
#include "threads/bind.h"
#include "threads/team.h"

tern_model_params tern_model_params_default(void) {
    return (tern_model_params){.isa = NULL};
}

/* Why an operation has no kernel. */
static tern_status no_kernel(const tern_model *m, tern_op op, tern_error *err) {
    return m->guard.no_memory
               ? tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to try kernels for operation %s",
                           tern_gguf_name(m->file), tern_op_name(op))
               : tern_fail(err, TERN_ERR_KERNEL, "%s: no kernel for operation %s",
                           tern_gguf_name(m->file), tern_op_name(op));
}

/* ---- weights ------------------------------------------------------------------------------- */

/* A matrix of a block: checked where it is not packed, listed for replicas. */
static tern_status load_matrix(tern_loader *l, const char *name, uint32_t experts, size_t rows,
                               size_t cols, tern_linear *out, tern_error *err) {
    tern_status status = experts > 0 ? tern_load_experts(l, name, experts, rows, cols, out, err)
                                     : tern_load_linear(l, name, rows, cols, out, err);
    if (status == TERN_OK && tern_linear_is_in_file(out) && !out->checked)
        status = tern_loader_check_unpacked(l, name, false, err);
    return status ? status : tern_loader_note_linear(l, out, TERN_HEAT_ONCE, err);
}

static tern_status load_layer(tern_loader *l, const tern_config *c, uint32_t n, tern_layer *out,
                              tern_error *err) {
    const tern_block_sizes sizes = tern_config_block(c);
    size_t count;
    const tern_block_tensor *tensors = tern_block_tensors(&count);
    for (size_t i = 0; i < count; i++) {
        const tern_block_tensor *t = &tensors[i];
        const size_t rows = tern_block_length(&sizes, t->rows);
        const size_t cols = tern_block_length(&sizes, t->columns);
        char name[64];
        if (!tern_block_has(c->arch, t))
            continue;
        snprintf(name, sizeof name, "blk.%u.%s", n, t->name);
        const tern_status status = t->kind == TERN_BLOCK_MATRIX
                                       ? load_matrix(l, name, t->routed ? c->n_expert : 0, rows,
                                                     cols, tern_layer_matrix(out, t), err)
                                       : tern_load_vector(l, name, cols, t->kind == TERN_BLOCK_BIAS,
                                                          1.0f, tern_layer_vector(out, t), err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* The image of the same head in the model that this one shares with; NULL: none. */
static const tern_head_image *shared_image(const tern_model *m) {
    return m->shared != NULL && tern_head_is_imaged(&m->shared->image) &&
                   m->shared->own.head.matrix.data == m->own.head.matrix.data
               ? &m->shared->image
               : NULL;
}

/* A head without image. Where an equal matrix is read in its place, the file's is read once. */
static tern_status check_head(tern_loader *l, const tern_linear *head, const char *name,
                              tern_error *err) {
    const bool elsewhere = head->matrix.data != head->tensor->data;
    return tern_linear_is_in_file(head) && !head->checked
               ? tern_loader_check_unpacked(l, name, elsewhere, err)
               : TERN_OK;
}

/* What is added to the embedding of tokens, and the norm of the sum. */
static tern_status load_encoder(tern_loader *l, tern_model *m, tern_error *err) {
    const tern_config *c = &m->config;
    tern_weight_set *w = &m->own;
    tern_status s;
    if (!c->arch->encodes)
        return TERN_OK;
    if ((s = tern_load_embedding(l, "position_embd.weight", c->n_ctx, c->n_embd, &w->positions,
                                 err)) ||
        (s = tern_load_embedding(l, "token_types.weight", c->n_types, c->n_embd, &w->types, err)) ||
        (s = tern_loader_check_unpacked(l, "position_embd.weight", false, err)) ||
        (s = tern_loader_check_unpacked(l, "token_types.weight", false, err)) ||
        (s = tern_load_vector(l, "token_embd_norm.weight", c->n_embd, false, 1.0f, &w->embd_norm,
                              err)))
        return s;
    return tern_load_vector(l, "token_embd_norm.bias", c->n_embd, false, 1.0f, &w->embd_norm_bias,
                            err);
}

static tern_status load_head(tern_loader *l, tern_model *m, tern_error *err) {
    const tern_config *c = &m->config;
    const bool own =
        !c->arch->embedding_head && tern_gguf_find_tensor(l->file, "output.weight") != NULL;
    const char *name = own ? "output.weight" : "token_embd.weight";
    tern_status s;
    if ((s = tern_load_embedding(l, "token_embd.weight", c->n_vocab, c->n_embd, &m->own.embedding,
                                 err)) ||
        (s = load_encoder(l, m, err)) ||
        (s = tern_load_vector(l, "output_norm.weight", c->n_embd, c->arch->encodes,
                              c->logit_divisor, &m->own.output_norm, err)))
        return s;
    s = tern_load_linear(l, name, c->n_vocab, c->n_embd, &m->own.head, err);
    if (s == TERN_OK && !m->exact_head && !c->arch->encodes)
        s = tern_load_head_image(l, &m->own.head, shared_image(m), &m->image, err);
    const bool imaged = tern_head_is_imaged(&m->image);
    if (s == TERN_OK && !imaged)
        s = check_head(l, &m->own.head, name, err);
    if (s == TERN_OK && own) /* rows are read where they lie, a few for each token */
        s = tern_loader_check_unpacked(l, "token_embd.weight", true, err);
    const tern_heat heat = imaged ? TERN_HEAT_SOME : TERN_HEAT_ONCE;
    return s ? s : tern_loader_note_linear(l, &m->own.head, heat, err);
}

static tern_status load_all(tern_loader *l, tern_model *m, tern_error *err) {
    tern_hot_clear(l->hot);
    tern_equal_restart(l->equal);
    for (uint32_t n = 0; n < m->config.n_layer; n++) {
        const tern_status status = load_layer(l, &m->config, n, &m->layers[n], err);
        if (status != TERN_OK)
            return status;
    }
    return load_head(l, m, err);
}

static tern_status plan_again(tern_loader *l, tern_model *m, tern_error *err) {
    l->bytes = 0;
    tern_hash64_start(&l->pieces);
    return load_all(l, m, err);
}

/* What a wish for a precision of activations means for these weights; plans again where matrices
 * become others. Ternary weights have int8 in their definition. */
static tern_status settle_precision(tern_loader *l, tern_model *m, tern_precision wanted,
                                    tern_error *err) {
    if (tern_model_is_ternary(m)) {
        m->precision_refused = wanted != TERN_PRECISION_AUTO && wanted != TERN_PRECISION_INT8;
        return TERN_OK;
    }
    m->precision = tern_precision_settle(wanted, tern_model_forms(m));
    l->precision = m->precision;
    const tern_op op = tern_precision_op(m->precision);
    if (op != TERN_OP_COUNT) {
        m->rows.round = tern_guard_operation(&m->guard, op, TERN_FORMAT_NONE, NULL, 0);
        if (m->rows.round == NULL)
            return no_kernel(m, op, err);
    }
    return tern_precision_decodes(m->precision) ? plan_again(l, m, err) : TERN_OK;
}

/* Plans again with what the tuner has chosen, if it has chosen anything. */
static tern_status tune(tern_model *m, const tern_model_params *params, tern_loader *l,
                        uint32_t threads, tern_error *err) {
    l->tune_threads = l->team != NULL ? tern_team_size(l->team) : threads;
    l->tune_stream = tern_tune_stream_of(m);
    m->tune_threads = l->tune_threads;
    m->together = params->together;
    if (params->tune_later && params->cache != NULL && l->team != NULL &&
        (m->tune_folder = strdup(params->cache)) == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a folder's name");
    tern_tune_model(m, l->tune_threads, l->team, params->cache, params->tune_later);
    if (m->tuning.n == 0 && m->ternary == l->ternary)
        return TERN_OK;
    if (m->choice == TERN_CHOICE_TABLE)
        m->choice = TERN_CHOICE_TUNED;
    l->ternary = m->ternary;
    l->tuning = &m->tuning;
    return plan_again(l, m, err);
}

/* Everything that an image of the arena holds. */
static tern_status pack_weights(tern_loader *l, tern_model *m, tern_error *err) {
    l->stage = TERN_LOAD_FILL;
    tern_status status = load_all(l, m, err);
    if (status == TERN_OK)
        status = tern_load_jobs_run(&l->jobs, l->team, err);
    tern_load_jobs_free(&l->jobs); /* an error may have left some */
    tern_arena_rewind(l->arena);
    return status;
}

/*
 * What was packed is not read again: its pages go, also those that reading the scale after a matrix
 * has mapped. Where no matrix is read whole in the file, what is left there are rows for tokens,
 * and rows of the head that its image leaves open.
 */
static void leave_file(const tern_model *m) {
    const tern_linear *linear;
    bool streamed = false;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++) {
        const bool in_file = linear->matrix.data == linear->tensor->data;
        streamed |= in_file && !(linear == &m->own.head && tern_head_is_imaged(&m->image));
        if (!in_file)
            tern_gguf_drop_pages(m->file, linear->tensor);
    }
    if (!streamed)
        tern_gguf_expect_parts(m->file);
}

static tern_status fill_weights(tern_loader *l, tern_model *m, const tern_model_params *params,
                                tern_error *err) {
    const double begin = tern_clock_seconds();
    tern_status status = m->loading.mapped ? TERN_OK : pack_weights(l, m, err);
    l->stage = TERN_LOAD_USE;
    if (status == TERN_OK)
        status = load_all(l, m, err);
    if (status == TERN_OK)
        leave_file(m);
    if (status == TERN_OK)
        status = tern_model_make_replicas(m, params->replicate_limit, l->team, err);
    if (status == TERN_OK && m->strict)
        status = tern_strict_loaded(m, err);
    if (status == TERN_OK)
        status = tern_gguf_unchanged(m->file, err);
    m->loading.weights_seconds = tern_clock_seconds() - begin;
    return status;
}

/* Whether it matters on which node weights lie. A mapped image lies where it was first read. */
static bool has_places(const tern_model *m) {
    return m->topology->n_nodes > 1 || m->places.numa != TERN_NUMA_NONE;
}

/* The arena, where the NUMA policy wants it. */
static tern_status reserve_weights(tern_model *m, size_t bytes, tern_error *err) {
    const tern_status status = tern_arena_new(bytes, true, &m->weights, err);
    if (status != TERN_OK)
        return status;
    const int refused =
        tern_place_memory(m->topology, &m->places, m->weights.base, m->weights.size);
    return tern_model_note_refusal(m, refused, &m->refused, err);
}

/* Adds up the memory, fills it, or maps it filled, and takes it into use: tern_load_stage. */
static tern_status load_beside(tern_model *m, const tern_model_params *params, tern_equal *equal,
                               tern_precision precision, tern_error *err) {
    const uint32_t threads = tern_model_threads(m, params->threads);
    tern_loader loader = {.file = m->file,
                          .guard = &m->guard,
                          .arena = &m->weights,
                          .reading = &m->reading,
                          .equal = equal,
                          .ternary = m->ternary,
                          .hot = params->replicate ? &m->replicas.hot : NULL,
                          .stage = TERN_LOAD_PLAN};
    tern_hash64_start(&loader.pieces);
    tern_status status = load_all(&loader, m, err);
    if (status == TERN_OK)
        status = settle_precision(&loader, m, precision, err);
    if (status == TERN_OK && !params->no_weights)
        status = tern_team_new_placed(threads, m->topology, &m->places, &loader.team, err);
    if (status == TERN_OK && params->tune && m->mirror == NULL) /* of the processor's kernels */
        status = tune(m, params, &loader, threads, err);
    m->packed = loader.bytes;
    if (status == TERN_OK && params->replicate)
        status = tern_model_plan_replicas(m, params->replicate_limit, threads, err);
    if (status == TERN_OK && m->strict)
        status = tern_strict_plan(m, params, err);
    if (status == TERN_OK && !params->no_weights) {
        if (!has_places(m))
            tern_model_find_image(m, params, &loader);
        if (!m->loading.mapped)
            status = reserve_weights(m, loader.bytes, err);
        if (status == TERN_OK)
            status = fill_weights(&loader, m, params, err);
    }
    tern_team_free(&loader.team);
    if (params->no_weights)
        return status;
    if (status == TERN_OK)
        tern_model_keep_image(m);
    m->runnable = status == TERN_OK;
    return status;
}

static tern_status load_weights(tern_model *m, const tern_model_params *params,
                                tern_precision precision, tern_error *err) {
    tern_equal equal;
    tern_status status = tern_equal_find(m->file, &m->reading, params->share, &equal, err);
    if (status == TERN_OK && params->share != NULL) {
        m->shared = params->share;
        (void)atomic_fetch_add(&m->shared->users, 1);
    }
    if (status == TERN_OK)
        status = load_beside(m, params, &equal, precision, err);
    if (status == TERN_OK) {
        m->equal_bytes = equal.bytes;
        tern_equal_drop_pages(&equal);
    }
    tern_equal_free(&equal);
    return status;
}

/* ---- everything else ------------------------------------------------------------------------ */

static tern_status select_rows(tern_model *m, tern_error *err) {
    const tern_arch *a = m->config.arch;
    const struct {
        const tern_kernel_row **slot;
        tern_op op;
        tern_format format;
    } wanted[] = {
        {&m->rows.quantize_token, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE},
        {&m->rows.quantize_block, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE},
        {&m->rows.rmsnorm, TERN_OP_RMSNORM, TERN_FORMAT_NONE},
        {&m->rows.layernorm, TERN_OP_LAYERNORM, TERN_FORMAT_NONE},
        {&m->rows.hadamard, TERN_OP_HADAMARD, TERN_FORMAT_NONE},
        {&m->rows.rope, a->rope, TERN_FORMAT_NONE},
        {&m->rows.gate, m->config.gate, TERN_FORMAT_NONE},
        {&m->rows.softmax, TERN_OP_SOFTMAX, TERN_FORMAT_NONE},
        {&m->rows.add, TERN_OP_ADD, TERN_FORMAT_NONE},
#define CACHE_ROWS(format)                                                                         \
    {&m->rows.attend[format], TERN_OP_ATTEND, format},                                             \
        {&m->rows.store[format], TERN_OP_STORE, format}
        CACHE_ROWS(TERN_FORMAT_F32),
        CACHE_ROWS(TERN_FORMAT_F16),
        CACHE_ROWS(TERN_FORMAT_Q8_0),
#undef CACHE_ROWS
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].slot = tern_guard_operation(&m->guard, wanted[i].op, wanted[i].format, NULL, 0);
        if (*wanted[i].slot == NULL)
            return no_kernel(m, wanted[i].op, err);
    }
    return TERN_OK;
}

static tern_status copy_name(tern_model *m, tern_error *err) {
    tern_span name = {.data = "", .size = 0};
    (void)tern_gguf_string(m->file, "general.name", &name, NULL);
    m->name = strndup(name.data, name.size);
    return m->name != NULL ? TERN_OK
                           : tern_fail(err, TERN_ERR_NOMEM, "no memory for the model's name");
}

tern_status tern_model_use_kinds(tern_model *m, tern_error *err) {
    const tern_config *c = &m->config;
    tern_status status = TERN_OK;
    for (uint32_t n = 0; n < c->n_layer; n++)
        m->layers[n].kind = tern_config_kind_of(c, n);
    for (uint32_t i = 0; status == TERN_OK && i < c->n_kinds; i++)
        if (m->frequency[i] == NULL)
            status = tern_config_frequencies(m->file, c, &c->kinds[i], &m->frequency[i], err);
    return status;
}

/* What codes of I2_S mean is asked of their shares, unless it was said. */
static void doubt_codes(tern_model *m) {
    const tern_code_shares shares = tern_code_shares_count(m->file);
    if (m->reading.map_given || !tern_code_shares_doubt(&shares, m->doubt))
        m->doubt[0] = '\0';
}

/* The layout of ternary matrices by its name; NULL means the usual one. */
static tern_status find_layout(const char *name, tern_layout *out, tern_error *err) {
    char known[128] = "";
    size_t used = 0;

    *out = tern_format_layout(TERN_FORMAT_I2_S);
    if (name == NULL)
        return TERN_OK;
    for (int l = 0; l < TERN_LAYOUT_COUNT; l++) {
        const tern_layout layout = (tern_layout)l;
        if (!tern_layout_holds(layout, TERN_FORMAT_I2_S))
            continue;
        if (strcmp(tern_layout_name(layout), name) == 0) {
            *out = layout;
            return TERN_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 tern_layout_name(layout));
    }
    return tern_fail(err, TERN_ERR_NAME, "unknown layout of ternary matrices '%s' (one of %s)",
                     name, known);
}

/* What is asked for ahead, now that it is known what a token reads. */
static void settle_fetch(tern_model *m, const tern_fetch *wish) {
    tern_model_info info;
    tern_model_describe(m, &info);
    m->fetch = tern_fetch_settle(wish, info.weight_bytes, tern_cpu_cache_bytes());
    m->fetching = tern_fetching_of(&m->fetch);
}

static tern_status open_model(const char *path, const tern_model_params *params, tern_model *m,
                              tern_error *err) {
    uint64_t mask;
    tern_precision precision;
    tern_status s = tern_cpu_mask(params->isa, params->disable, &mask, err);
    if (s != TERN_OK)
        return s;
    m->guard = tern_guard_new(mask);
    m->strict = params->strict;
    m->exact_head = params->exact_head;
    m->pre_asked = params->pre_tokenizer != NULL;
    m->places = params->places;
    m->choice = params->layout != NULL ? TERN_CHOICE_ASKED : TERN_CHOICE_TABLE;
    if ((s = find_layout(params->layout, &m->ternary, err)) ||
        (s = tern_precision_find(params->activations, &precision, err)) ||
        (s = tern_reading_init(&m->reading, params->i2s_order, params->i2s_map, params->tl_tiles,
                               err)) ||
        (s = tern_fetch_check(&params->fetch, err)) ||
        (s = tern_topology_for(&m->places, &m->topology, err)) ||
        (s = tern_places_check(m->topology, &m->places, err)))
        return s; /* what was asked for cannot be, whatever the file holds */
    if ((s = tern_gguf_open_shared(path, &params->dedup, &m->file, err)) ||
        (s = params->no_sidecar ? TERN_OK : tern_gguf_add_sidecar(m->file, err)) ||
        (s = tern_config_read(m->file, &m->config, err)) ||
        (s = params->long_context ? tern_config_take_long(m->file, &m->config, err) : TERN_OK) ||
        (s = tern_joined_divide(m->file, &m->config, err)) ||
        (s = tern_hadamards_read(m->file, &m->config, &m->hadamards, err)) ||
        (s = tern_unused_find(m->file, &m->config, &m->unused, err)) || (s = copy_name(m, err)) ||
        (s = select_rows(m, err)) ||
        (s = params->device != NULL ? tern_model_open_device(m, params->device, err) : TERN_OK))
        return s;
    doubt_codes(m);
    m->own.layers = m->layers = calloc(m->config.n_layer, sizeof *m->layers);
    if (m->layers == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %u layers", m->config.n_layer);
    s = tern_model_use_kinds(m, err);
    if (s != TERN_OK)
        return s;
    if (params->tune)
        tern_tune_cores(&m->guard, params->cache, !params->no_weights, m->topology);
    s = tern_model_open_tokenizer(m, params, err);
    if (s != TERN_OK)
        return s;
    s = load_weights(m, params, precision, err);
    if (s == TERN_OK && m->mirror != NULL && m->runnable)
        s = tern_model_send_weights(m, err);
    if (s == TERN_OK)
        settle_fetch(m, &params->fetch);
    return s;
}

/* A new model; *out is NULL where it cannot be opened. */
static tern_status open_new(const char *path, const tern_model_params *params, tern_model **out,
                            tern_error *err) {
    tern_model *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a model", path);
    atomic_init(&m->users, 1);
    const double begin = tern_clock_seconds();
    const tern_status status = open_model(path, params, m, err);
    m->loading.seconds = tern_clock_seconds() - begin;
    if (status == TERN_OK)
        *out = m;
    else
        tern_model_free(&m);
    return status;
}

/* Whether a device is not there, or not for this model, and the processor may be. */
static bool is_of_device(tern_status status) {
    return status == TERN_ERR_DEVICE || status == TERN_ERR_UNIMPLEMENTED ||
           status == TERN_ERR_KERNEL;
}

/* What is asked for with a device: passes there read neither choices of the tuner, which are the
 * processor's, nor images of the head, nor replicas. */
static tern_model_params on_device(const tern_model_params *params, const char *device) {
    tern_model_params p = *params;
    p.device = device;
    p.tune = false;
    p.exact_head = true;
    p.replicate = false;
    return p;
}

static tern_status open_asked(const char *path, const tern_model_params *params, tern_model **out,
                              tern_error *err) {
    tern_model_params here = *params;
    tern_error reason = {0};
    here.device = NULL;
    if (params->device == NULL || strcmp(params->device, "cpu") == 0 || params->no_weights)
        return open_new(path, &here, out, err);
    const bool any = strcmp(params->device, "auto") == 0;
    const tern_model_params there = on_device(params, any ? "cuda" : params->device);
    tern_status status = open_new(path, &there, out, any ? &reason : err);
    if (!any || !is_of_device(status)) {
        if (any && status != TERN_OK && err != NULL)
            *err = reason;
        return status;
    }
    status = open_new(path, &here, out, err);
    if (status == TERN_OK)
        (void)snprintf((*out)->device_note, sizeof(*out)->device_note, "%s", reason.message);
    return status;
}

/* As open_asked; where a precision that is only a hint cannot be, the model's own is taken. */
static tern_status open_hinted(const char *path, const tern_model_params *params, tern_model **out,
                               tern_error *err) {
    tern_model_params own = *params;
    tern_error reason = {0};
    if (!params->activations_hint || params->activations == NULL)
        return open_asked(path, params, out, err);
    own.activations = NULL;
    const tern_status status = open_asked(path, params, out, &reason);
    if (status != TERN_ERR_STRICT && !is_of_device(status)) {
        if (status != TERN_OK && err != NULL)
            *err = reason;
        return status;
    }
    const tern_status second = open_asked(path, &own, out, err);
    if (second == TERN_OK) {
        (*out)->precision_refused = tern_model_is_ternary(*out);
        (void)snprintf((*out)->precision_note, sizeof(*out)->precision_note,
                       "activations keep their precision: %.200s", reason.message);
    }
    return second;
}

tern_status tern_model_open(const char *path, const tern_model_params *params, tern_model **out,
                            tern_error *err) {
    const tern_model_params defaults = tern_model_params_default();
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL,
                         "tern_model_open needs a path and a place for the model");
    return open_hinted(path, params != NULL ? params : &defaults, out, err);
}

tern_status tern_model_note_refusal(const tern_model *m, int error, int *refused, tern_error *err) {
    if (error && tern_model_must_bind(m))
        return tern_fail(err, TERN_ERR_STRICT,
                         "strict: the system does not bind threads or memory as asked for: %s",
                         strerror(error));
    if (*refused == 0)
        *refused = error;
    return TERN_OK;
}

const tern_topology *tern_model_topology(const tern_model *m) {
    return m->topology;
}

tern_status tern_model_unchanged(const tern_model *model, tern_error *err) {
    const tern_status status = tern_gguf_unchanged(model->file, err);
    return status == TERN_OK && model->packed_image != NULL
               ? tern_file_map_unchanged(model->packed_image, err)
               : status;
}

tern_dedup_info tern_model_dedup(const tern_model *model) {
    return tern_gguf_dedup(model->file);
}

static void free_model(tern_model *m) {
    tern_tokenizer_free(&m->tokenizer);
    tern_mirror_close(&m->mirror);
    tern_model_release_weights(m);
    tern_model_free_replicas(m);
    tern_topology_free(&m->topology);
    tern_tuning_free(&m->tuning);
    free(m->tune_folder);
    tern_unused_free(&m->unused);
    tern_hadamards_free(&m->hadamards);
    tern_gguf_close(&m->file);
    for (size_t i = 0; i < TERN_LAYER_KINDS; i++)
        free(m->frequency[i]);
    free(m->layers);
    free(m->name);
    free(m);
}

void tern_model_free(tern_model **model) {
    tern_model *m = model != NULL ? *model : NULL;
    if (m == NULL)
        return;
    *model = NULL;
    while (m != NULL && atomic_fetch_sub(&m->users, 1) == 1) {
        tern_model *shared = m->shared;
        free_model(m);
        m = shared;
    }
}
