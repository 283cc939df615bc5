/* SPDX-License-Identifier: Apache-2.0 */
/* tern inspect: contents of a model file, the memory that it would take, and whether and how it
 * runs here. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tern/inspect.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/inspect/memory_plan.h"
#include "tools/inspect/metadata_values.h"
#include "tools/inspect/model_facts.h"
#include "tools/inspect/planned_weights.h"
#include "tools/load/loaded_json.h"
#include "tools/load/loader.h"
#include "tools/load/model_hint.h"
#include "tools/load/placement.h"

enum { MAX_TYPES = 64 };

/* Tensors of one type. */
typedef struct type_sum {
    const char *name; /* name of the type; static storage */
    tern_format format;
    uint64_t tensors, elements, bytes;
} type_sum;

typedef struct inspection {
    const options *o;
    const char *path;
    tern_model_params params;
    tern_gguf *file;
    type_sum types[MAX_TYPES]; /* in the order of first use */
    size_t n_types;
    tern_status status; /* of opening the model without its weights */
    tern_error why;     /* the reason if that failed */
    loaded l;           /* model is NULL if it failed */
    memory_plan plan;   /* valid if it succeeded */
} inspection;

static void count_types(inspection *n) {
    for (size_t i = 0; i < tern_gguf_tensor_count(n->file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(n->file, i);
        size_t k = 0;
        const char *name = tern_gguf_tensor_type(t);
        while (k < n->n_types && n->types[k].name != name)
            k++;
        if (k == MAX_TYPES)
            k--; /* more types than known formats: the last entry collects the rest */
        else if (k == n->n_types)
            n->types[n->n_types++] = (type_sum){.name = name, .format = tern_gguf_format(t)};
        n->types[k].tensors++;
        n->types[k].elements += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        n->types[k].bytes += t->bytes > 0 ? t->bytes : t->extent;
    }
}

/* Finds out everything about running the model that does not need its weights. */
static void try_model(inspection *n) {
    tern_model_params params = n->params;
    params.no_weights = true;
    loaded *l = &n->l;
    n->status = tern_model_open(n->path, &params, &l->model, &n->why);
    if (n->status != TERN_OK)
        return;
    loader_report_unused(l->model, n->path);
    loader_report_doubt(l->model, n->path);
    loader_report_activations(l->model, n->path);
    loader_report_dedup(n->o, l->model);
    loader_describe(n->o, l);
    tern_session_params session = tern_session_params_default();
    session.n_ctx = (uint32_t)options_integer(n->o, OPT_CONTEXT);
    session.kv = loader_kv_format(n->o);
    n->status = memory_plan_make(l->model, &session, planned_in_file(l->model), &n->plan, &n->why);
    n->plan.no_replicas = n->params.replicate ? tern_model_no_replicas(l->model) : NULL;
}

/* True for errors of the moment or of the options, which say nothing about the model. */
static bool says_nothing(tern_status status) {
    return status == TERN_ERR_ISA || status == TERN_ERR_NOMEM || status == TERN_ERR_IO ||
           status == TERN_ERR_CHANGED;
}

static bool runs_here(const inspection *n) {
    return n->status == TERN_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

static double mib(uint64_t bytes) {
    return (double)bytes / 1048576.0;
}

static void print_metadata(const inspection *n) {
    out_print("\nmetadata\n");
    for (size_t i = 0; i < tern_gguf_value_count(n->file); i++) {
        const tern_gguf_value *value = tern_gguf_value_at(n->file, i);
        tern_error key = {0}; /* makes the key printable */
        (void)tern_fail(&key, TERN_OK, "%.*s", (int)(value->key.size < 80 ? value->key.size : 80),
                        value->key.data);
        char text[512];
        value_text(value, text, sizeof text);
        out_print("  %-44s %s\n", key.message, text);
    }
}

/* Prints the files of a model that has several. */
static void print_parts(const inspection *n) {
    const size_t count = tern_gguf_part_count(n->file);
    for (size_t i = 0; count > 1 && i < count; i++) {
        const tern_gguf_part part = tern_gguf_part_at(n->file, i);
        out_print("%s  %s: %.1f MiB, %zu tensors\n", i == 0 ? "\nparts\n" : "", part.name,
                  mib(part.bytes), part.n_tensors);
    }
}

static void print_sidecar(const inspection *n) {
    size_t count;
    const char *list = tern_gguf_sidecar(n->file, &count);
    if (list != NULL)
        out_print("\nsparse layers  %zu tensors, from %s\n", count, list);
}

static void print_tensors(const inspection *n) {
    out_print("\ntensors\n");
    for (size_t i = 0; i < n->n_types; i++) {
        const type_sum *t = &n->types[i];
        out_print("  %-10s %5" PRIu64 " tensors %14" PRIu64 " weights %10.1f MiB%s\n", t->name,
                  t->tensors, t->elements, mib(t->bytes),
                  t->format == TERN_FORMAT_NONE ? "  (not supported)" : "");
    }
}

static void print_tokenizer(const loaded *l) {
    if (l->tokenizer == NULL) {
        out_print("\ntokenizer    none: %s\n", l->tokenizer_error.message);
        return;
    }
    const char *pre = tern_tokenizer_pre(l->tokenizer);
    const char *file = tern_tokenizer_file(l->tokenizer);
    const bool own = strcmp(file, l->info.path) == 0;
    out_print("\ntokenizer    %s%s%s, %zu tokens, chat format %s%s%s\n",
              tern_tokenizer_kind(l->tokenizer), pre[0] != '\0' ? ", pre-tokenizer " : "", pre,
              tern_tokenizer_size(l->tokenizer), tern_chat_format(l->tokenizer),
              own ? "" : ", from ", own ? "" : file);
}

static bool print_plan(const inspection *n) {
    const tern_model_info *m = &n->l.info;
    out_print(
        "\nmodel        %s %s: %u layers, %u wide, ffn %u, %u heads, %u key/value heads of %u, "
        "vocabulary %u, trained for %u positions\n",
        m->architecture, m->name, m->n_layer, m->n_embd, m->n_ff, m->n_head, m->n_head_kv,
        m->head_dim, m->n_vocab, m->n_ctx_train);
    print_tokenizer(&n->l);
    model_facts_print(n->l.model);
    out_print("\n");
    if (runs_here(n))
        memory_plan_print(&n->plan, m);
    out_print("read         %10.1f MiB  of weights for each token\n", mib(m->weight_bytes));
    out_print("activations  %s (precision %s)\n", tern_model_activation_forms(n->l.model),
              tern_model_activations(n->l.model));
    planned_print(n->l.model);
    out_print("\nkernels      (%s; choice: %s)\n", tern_model_isa(n->l.model),
              tern_model_choice(n->l.model));
    for (size_t i = 0; i < n->l.n_kernels; i++)
        out_print("  %s\n", n->l.kernels[i]->name);
    return placement_print(n->l.model);
}

static int print_text(const inspection *n) {
    const uint32_t version = tern_gguf_version(n->file);
    char container[32] = "IEBIN";
    if (version > 0)
        (void)snprintf(container, sizeof container, "GGUF v%" PRIu32, version);
    out_print("%s: %s, %.1f MiB, %zu values, %zu tensors\n", n->path, container,
              mib(tern_gguf_file_bytes(n->file)), tern_gguf_value_count(n->file),
              tern_gguf_tensor_count(n->file));
    print_parts(n);
    print_sidecar(n);
    print_metadata(n);
    print_tensors(n);
    if (n->l.model != NULL && !print_plan(n))
        return EXIT_FAILED;
    out_print("\nruns here    %s%s\n", runs_here(n) ? "yes" : "no: ", n->why.message);
    return runs_here(n) ? EXIT_DONE : EXIT_FAILED;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void set_key(json_t *object, tern_span key, json_t *value) {
    json_t *name = json_text(key.data, key.size);
    (void)json_object_add_new(object, name != NULL ? json_string_value(name) : "", value);
    json_decref(name);
}

static json_t *types_json(const inspection *n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n->n_types; i++) {
        const type_sum *t = &n->types[i];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:b}", "type", t->name, "tensors",
                            (json_int_t)t->tensors, "weights", (json_int_t)t->elements, "bytes",
                            (json_int_t)t->bytes, "supported", t->format != TERN_FORMAT_NONE));
    }
    return list;
}

static json_t *parts_json(const inspection *n) {
    json_t *list = json_array();
    for (size_t i = 0; i < tern_gguf_part_count(n->file); i++) {
        const tern_gguf_part part = tern_gguf_part_at(n->file, i);
        json_array_append_new(list, json_pack("{s:o, s:I, s:I}", "file",
                                              json_text(part.name, strlen(part.name)), "bytes",
                                              (json_int_t)part.bytes, "tensors",
                                              (json_int_t)part.n_tensors));
    }
    return list;
}

/* The list of sparse layers beside the file; JSON null if there is none. */
static json_t *sidecar_json(const inspection *n) {
    size_t count;
    const char *list = tern_gguf_sidecar(n->file, &count);
    return list == NULL ? json_null()
                        : json_pack("{s:o, s:I}", "file", json_text(list, strlen(list)), "tensors",
                                    (json_int_t)count);
}

static json_t *unused_json(const inspection *n) {
    const char *const *names;
    const size_t count = tern_model_unused(n->l.model, &names);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_text(names[i], strlen(names[i])));
    return list;
}

static bool add_model(const inspection *n, json_t *root) {
    const tern_model_info *m = &n->l.info;
    const tern_tokenizer *t = n->l.tokenizer;
    json_object_set_new(root, "architecture", json_string(m->architecture));
    json_object_set_new(root, "geometry",
                        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "n_layer",
                                  (int)m->n_layer, "n_embd", (int)m->n_embd, "n_ff", (int)m->n_ff,
                                  "n_head", (int)m->n_head, "n_head_kv", (int)m->n_head_kv,
                                  "head_dim", (int)m->head_dim, "n_vocab", (int)m->n_vocab,
                                  "n_ctx_train", (int)m->n_ctx_train));
    if (runs_here(n))
        json_object_set_new(root, "memory", memory_plan_json(&n->plan));
    json_object_set_new(root, "weights", planned_json(n->l.model));
    json_object_set_new(root, "parameters", json_integer((json_int_t)m->parameters));
    json_object_set_new(root, "bytes_per_token", json_integer((json_int_t)m->weight_bytes));
    json_object_set_new(root, "activation_forms",
                        json_string(tern_model_activation_forms(n->l.model)));
    json_set_activations(root, n->l.model);
    json_set_kernels(root, &n->l);
    json_object_set_new(root, "unused", unused_json(n));
    json_object_set_new(root, "runs_as", model_facts_json(n->l.model));
    const char *doubt = tern_model_doubt(n->l.model);
    if (doubt != NULL)
        json_object_set_new(root, "doubt", json_string(doubt));
    placement_set_json(root, n->l.model);
    if (t != NULL) {
        json_object_set_new(
            root, "tokenizer",
            json_pack("{s:s, s:s, s:I, s:s, s:o}", "kind", tern_tokenizer_kind(t), "pre",
                      tern_tokenizer_pre(t), "tokens", (json_int_t)tern_tokenizer_size(t),
                      "chat_format", tern_chat_format(t), "file",
                      json_text(tern_tokenizer_file(t), strlen(tern_tokenizer_file(t)))));
    }
    return placement_set_machine_json(root, n->l.model);
}

static int print_json(const inspection *n) {
    json_t *root = json_object();
    json_t *metadata = json_object();
    for (size_t i = 0; i < tern_gguf_value_count(n->file); i++) {
        const tern_gguf_value *value = tern_gguf_value_at(n->file, i);
        set_key(metadata, value->key, value_json(value));
    }
    json_object_set_new(root, "model", json_text(n->path, strlen(n->path)));
    json_object_set_new(root, "container",
                        json_string(tern_gguf_version(n->file) > 0 ? "gguf" : "iebin"));
    json_object_set_new(root, "version", json_integer(tern_gguf_version(n->file)));
    json_object_set_new(root, "file_bytes",
                        json_integer((json_int_t)tern_gguf_file_bytes(n->file)));
    json_object_set_new(root, "parts", parts_json(n));
    json_object_set_new(root, "sidecar", sidecar_json(n));
    json_object_set_new(root, "metadata", metadata);
    json_object_set_new(root, "tensors", types_json(n));
    if (n->l.model != NULL && !add_model(n, root)) {
        json_decref(root);
        return EXIT_FAILED;
    }
    json_object_set_new(root, "runs_here", json_boolean(runs_here(n)));
    json_object_set_new(root, "why", json_text(n->why.message, strlen(n->why.message)));
    const int status = json_print(root);
    return status == EXIT_DONE && !runs_here(n) ? EXIT_FAILED : status;
}

/* Opens the file, and the files beside it that belong to the model. */
static tern_status open_file(inspection *n, tern_error *err) {
    tern_status status = tern_gguf_open_shared(n->path, &n->params.dedup, &n->file, err);
    if (status == TERN_OK && !n->params.no_sidecar)
        status = tern_gguf_add_sidecar(n->file, err);
    if (status != TERN_OK)
        tern_gguf_close(&n->file);
    return status;
}

int cmd_inspect(const options *o) {
    loader_report_isas();
    char cache[PATH_MAX];
    inspection n = {.o = o, .path = loader_model_path(o, false)};
    tern_error err = {0};
    if (n.path == NULL)
        return EXIT_USAGE;
    if (params_read(o, cache, &n.params, &err) != TERN_OK) {
        (void)complain_error(&err);
        return EXIT_USAGE;
    }
    if (open_file(&n, &err) != TERN_OK)
        return complain_of_model(n.path, o->model_may_be_prompt, &err);
    count_types(&n);
    try_model(&n);
    int status;
    if (n.status != TERN_OK && placement_lack_node(&n.params, &n.why)) {
        (void)complain_error(&n.why);
        status = EXIT_USAGE;
    } else if (says_nothing(n.status)) {
        status = complain_error(&n.why);
    } else {
        status = options_switch(o, OPT_JSON) ? print_json(&n) : print_text(&n);
    }
    loader_close(&n.l);
    tern_gguf_close(&n.file);
    return status;
}
