/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "runtime/model/commons.h"
#include "runtime/model/config/joined_matrices.h"
#include "runtime/model/model_image.h"
#include "runtime/model/model_load.h"
#include "runtime/model/model_replicas.h"
#include "runtime/model/model_together.h"
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

/* ---- everything else ------------------------------------------------------------------------ */

static tern_status select_kernels(tern_model *m, tern_error *err) {
    const tern_arch *a = m->config.arch;
    const struct {
        const tern_kernel_row **slot;
        tern_op op;
        tern_format format;
    } wanted[] = {
        {&m->kernels.quantize_token, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE},
        {&m->kernels.quantize_block, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE},
        {&m->kernels.rmsnorm, TERN_OP_RMSNORM, TERN_FORMAT_NONE},
        {&m->kernels.layernorm, TERN_OP_LAYERNORM, TERN_FORMAT_NONE},
        {&m->kernels.tanh, TERN_OP_TANH, TERN_FORMAT_NONE},
        {&m->kernels.hadamard, TERN_OP_HADAMARD, TERN_FORMAT_NONE},
        {&m->kernels.rope, a->rope, TERN_FORMAT_NONE},
        {&m->kernels.gate, m->config.gate, TERN_FORMAT_NONE},
        {&m->kernels.softmax, TERN_OP_SOFTMAX, TERN_FORMAT_NONE},
        {&m->kernels.add, TERN_OP_ADD, TERN_FORMAT_NONE},
#define CACHE_ROWS(format)                                                                         \
    {&m->kernels.attend[format], TERN_OP_ATTEND, format},                                          \
        {&m->kernels.store[format], TERN_OP_STORE, format}
        CACHE_ROWS(TERN_FORMAT_F32),
        CACHE_ROWS(TERN_FORMAT_F16),
        CACHE_ROWS(TERN_FORMAT_Q8_0),
#undef CACHE_ROWS
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].slot = tern_guard_operation(&m->guard, wanted[i].op, wanted[i].format, NULL, 0);
        if (*wanted[i].slot == NULL)
            return tern_model_no_kernel(m, wanted[i].op, err);
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

/* Notes a doubt if the shares of the codes of I2_S do not fit their usual meaning, unless the
 * caller gave the meaning. */
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

/* Settles what passes prefetch, now that it is known how many bytes a token reads. */
static void settle_fetch(tern_model *m, const tern_fetch *wish) {
    tern_model_info info;
    tern_model_describe(m, &info);
    m->fetch = tern_fetch_settle(wish, info.weight_bytes, tern_cpu_cache_bytes());
    m->fetching = tern_fetching_of(&m->fetch);
}

/* The state that the steps of opening a model share. */
typedef struct opening {
    tern_model *m;
    const char *path;
    const tern_model_params *params;
    tern_precision precision; /* of activations, as asked for */
} opening;

typedef tern_status step(opening *o, tern_error *err);

/* ---- what was asked for, whatever the file holds ---- */

static tern_status find_features(opening *o, tern_error *err) {
    uint64_t mask;
    const tern_status status = tern_cpu_mask(o->params->isa, o->params->disable, &mask, err);
    if (status == TERN_OK)
        o->m->guard = tern_guard_new(mask);
    return status;
}

static tern_status take_wishes(opening *o, tern_error *err) {
    const tern_model_params *p = o->params;
    tern_model *m = o->m;
    m->strict = p->strict;
    m->exact_head = p->exact_head;
    m->pre_asked = p->pre_tokenizer != NULL;
    m->places = p->places;
    m->choice = p->layout != NULL ? TERN_CHOICE_ASKED : TERN_CHOICE_TABLE;
    return find_layout(p->layout, &m->ternary, err);
}

static tern_status find_precision(opening *o, tern_error *err) {
    return tern_precision_find(o->params->activations, &o->precision, err);
}

static tern_status find_reading(opening *o, tern_error *err) {
    const tern_model_params *p = o->params;
    return tern_reading_init(&o->m->reading, p->i2s_order, p->i2s_map, p->tl_tiles, err);
}

static tern_status find_machine(opening *o, tern_error *err) {
    tern_model *m = o->m;
    tern_status status = tern_fetch_check(&o->params->fetch, err);
    if (status == TERN_OK)
        status = tern_topology_for(&m->places, &m->topology, err);
    return status == TERN_OK ? tern_places_check(m->topology, &m->places, err) : status;
}

/* ---- what the file says ---- */

static tern_status open_file(opening *o, tern_error *err) {
    tern_model *m = o->m;
    const tern_status status = tern_gguf_open_shared(o->path, &o->params->dedup, &m->file, err);
    return status == TERN_OK && !o->params->no_sidecar ? tern_gguf_add_sidecar(m->file, err)
                                                       : status;
}

static tern_status read_config(opening *o, tern_error *err) {
    tern_model *m = o->m;
    tern_status status = tern_config_read(m->file, &m->config, err);
    if (status == TERN_OK && o->params->long_context)
        status = tern_config_take_long(m->file, &m->config, err);
    return status == TERN_OK ? tern_joined_divide(m->file, &m->config, err) : status;
}

/* Reads the Hadamard transforms, the unknown keys and tensors, and the name. */
static tern_status read_rest(opening *o, tern_error *err) {
    tern_model *m = o->m;
    tern_status status = tern_hadamards_read(m->file, &m->config, &m->hadamards, err);
    if (status == TERN_OK)
        status = tern_unused_find(m->file, &m->config, &m->unused, err);
    return status == TERN_OK ? copy_name(m, err) : status;
}

/* ---- what runs it ---- */

static tern_status find_kernels(opening *o, tern_error *err) {
    tern_model *m = o->m;
    const tern_status status = select_kernels(m, err);
    return status == TERN_OK && o->params->device != NULL
               ? tern_model_open_device(m, o->params->device, err)
               : status;
}

static tern_status make_layers(opening *o, tern_error *err) {
    tern_model *m = o->m;
    doubt_codes(m);
    m->own.layers = m->layers = calloc(m->config.n_layer, sizeof *m->layers);
    return m->layers != NULL
               ? tern_model_use_kinds(m, err)
               : tern_fail(err, TERN_ERR_NOMEM, "no memory for %u layers", m->config.n_layer);
}

static tern_status open_tokenizer(opening *o, tern_error *err) {
    const tern_model_params *p = o->params;
    if (p->tune)
        tern_tune_cores(&o->m->guard, p->cache, !p->no_weights, o->m->topology);
    return tern_model_open_tokenizer(o->m, p, err);
}

static tern_status load_weights(opening *o, tern_error *err) {
    tern_model *m = o->m;
    const tern_status status = tern_model_load(m, o->params, o->precision, err);
    return status == TERN_OK && m->mirror != NULL && m->runnable ? tern_model_send_weights(m, err)
                                                                 : status;
}

static tern_status open_adapters(opening *o, tern_error *err) {
    const tern_adapter_base base = {.config = &o->m->config,
                                    .turned = o->m->hadamards.block > 0,
                                    .guard = &o->m->guard,
                                    .name = o->path};
    return o->params->n_adapters > 0
               ? tern_adapters_open(&base, o->params->adapters, o->params->n_adapters,
                                    &o->m->adapters, err)
               : TERN_OK;
}

static tern_status open_model(opening *o, tern_error *err) {
    static step *const steps[] = {find_features, take_wishes, find_precision, find_reading,
                                  find_machine,  open_file,   read_config,    read_rest,
                                  find_kernels,  make_layers, open_adapters,  open_tokenizer,
                                  load_weights};
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](o, err);
    if (status == TERN_OK)
        settle_fetch(o->m, &o->params->fetch);
    return status;
}

/* Opens a new model; *out is NULL if it cannot be opened. */
static tern_status open_new(const char *path, const tern_model_params *params, tern_model **out,
                            tern_error *err) {
    tern_model *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a model", path);
    m->users = 1;
    const double begin = tern_clock_seconds();
    opening o = {.m = m, .path = path, .params = params};
    const tern_status status = open_model(&o, err);
    m->loading.seconds = tern_clock_seconds() - begin;
    if (status == TERN_OK)
        *out = m;
    else
        tern_model_free(&m);
    return status;
}

/* True if the device is missing or cannot run this model, so that the processor may still do. */
static bool is_of_device(tern_status status) {
    return status == TERN_ERR_DEVICE || status == TERN_ERR_UNIMPLEMENTED ||
           status == TERN_ERR_KERNEL;
}

/* The parameters for a model on a device. Passes there use neither the tuner's choices, which are
 * the processor's, nor an image of the head, nor replicas. */
static tern_model_params on_device(const tern_model_params *params, const char *device) {
    tern_model_params p = *params;
    p.device = device;
    p.tune = false;
    p.exact_head = true;
    p.replicate = false;
    return p;
}

/* Opens a model with adapters for the processor, the only one that adds them. Another device may be
 * wished for (`any`), which is noted, but not asked for. */
static tern_status open_adapted(const char *path, const tern_model_params *here, bool wished,
                                bool any, tern_model **out, tern_error *err) {
    static const char why[] = "adapters are computed on the processor only";
    if (wished && here->strict)
        return tern_fail(err, TERN_ERR_STRICT, "%s: strict: %s", path, why);
    if (wished && !any)
        return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "%s: %s", path, why);
    const tern_status status = open_new(path, here, out, err);
    if (status == TERN_OK && wished)
        (void)snprintf((*out)->device_note, sizeof(*out)->device_note, "%s", why);
    return status;
}

static tern_status open_asked(const char *path, const tern_model_params *params, tern_model **out,
                              tern_error *err) {
    tern_model_params here = *params;
    tern_error reason = {0};
    here.device = NULL;
    const bool wished = params->device != NULL && strcmp(params->device, "cpu") != 0;
    const bool any = wished && strcmp(params->device, "auto") == 0;
    if (params->n_adapters > 0)
        return open_adapted(path, &here, wished, any, out, err);
    if (!wished || params->no_weights)
        return open_new(path, &here, out, err);
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

/* Like open_asked, but if a precision that is only a hint is not possible, the model's own is
 * taken. */
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
    const tern_model_params *p = params != NULL ? params : &defaults;
    tern_error failure = {0};
    tern_status status = open_hinted(path, p, out, &failure);
    if (p->ranks != NULL && !p->no_weights)
        status = tern_model_agree(*out, p->ranks, status, &failure);
    if (status == TERN_OK)
        return TERN_OK;
    tern_model_free(out);
    if (err != NULL)
        *err = failure;
    return status;
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
    if (tern_split_is(&model->split) && tern_ranks_check(model->split.ranks, err) != TERN_OK)
        return TERN_ERR_RANKS;
    tern_status status = tern_gguf_unchanged(model->file, err);
    if (status == TERN_OK && model->packed_image != NULL)
        status = tern_file_map_unchanged(model->packed_image, err);
    return status == TERN_OK ? tern_commons_unchanged(model, err) : status;
}

size_t tern_model_adapters(const tern_model *model, const tern_adapter_info **adapters) {
    *adapters = model->adapters.infos;
    return model->adapters.n;
}

tern_dedup_info tern_model_dedup(const tern_model *model) {
    return tern_gguf_dedup(model->file);
}

/* Frees what readers of its matrices do not need. */
static void leave_alone(tern_model *m) {
    tern_tokenizer_free(&m->tokenizer);
    tern_mirror_close(&m->mirror);
    tern_model_end_image(m);
    tern_model_free_replicas(m);
}

void tern_model_dispose(tern_model *m) {
    leave_alone(m);
    tern_model_release_weights(m);
    tern_load_list_free(&m->list);
    tern_topology_free(&m->topology);
    tern_tuning_free(&m->tuning);
    free(m->tune_folder);
    tern_unused_free(&m->unused);
    tern_hadamards_free(&m->hadamards);
    tern_adapters_free(&m->adapters);
    tern_gguf_close(&m->file);
    for (size_t i = 0; i < TERN_LAYER_KINDS; i++)
        free(m->frequency[i]);
    free(m->sources);
    free(m->layers);
    free(m->name);
    free(m);
}

void tern_model_free(tern_model **model) {
    tern_model *m = model != NULL ? *model : NULL;
    if (m == NULL)
        return;
    *model = NULL;
    tern_model_part(m);
    leave_alone(m);
    tern_commons_leave(m, tern_model_dispose);
}
