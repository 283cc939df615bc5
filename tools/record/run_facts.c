/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/run_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/sha256.h"
#include "base/word_list.h"
#include "bench/commit.h"
#include "receipts/facts.h"
#include "tern/inspect.h"
#include "tools/cli/kv_layers.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/load/loaded_json.h"

/* ---- files and model --------------------------------------------------------------------------
 */

/* Paths stay private: receipts contain only names, and digests identify the files. */
static json_t *base_name(const char *path) {
    const char *name = file_base_name(path);
    return json_text(name, strlen(name));
}

json_t *facts_files(const tern_model *model, char hex[RECEIPT_HEX]) {
    const tern_gguf *file = tern_model_file(model);
    tern_error err = {0};
    const size_t n = tern_gguf_part_count(file);
    json_t *list = json_array();
    tern_sha256 all;
    tern_sha256_start(&all);
    for (size_t i = 0; list != NULL && i < n; i++) {
        const tern_gguf_part part = tern_gguf_part_at(file, i);
        if (tern_gguf_part_sha256(file, i, hex, &err) != TERN_OK) {
            (void)complain_error(&err);
            json_decref(list);
            return NULL;
        }
        tern_sha256_add(&all, hex, RECEIPT_HEX - 1);
        json_array_append_new(list, json_pack("{s:o, s:I, s:s}", "path", base_name(part.name),
                                              "bytes", (json_int_t)part.bytes, "sha256", hex));
    }
    if (n > 1)
        tern_sha256_finish(&all, hex);
    return list;
}

static void set_count(json_t *object, const char *key, uint64_t value) {
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

/* Sets a key to the text of an option, if it has one. */
static void set_given(json_t *object, const char *key, const options *o, option_id id) {
    if (options_text(o, id) != NULL)
        json_object_set_new(object, key, json_string(options_text(o, id)));
}

bool facts_tokenizer(const tern_model *model, json_t **out) {
    const tern_tokenizer *t;
    char hex[RECEIPT_HEX];
    *out = NULL;
    if (tern_model_tokenizer(model, &t, NULL) != TERN_OK ||
        strcmp(tern_tokenizer_file(t), tern_gguf_name(tern_model_file(model))) == 0)
        return true;
    const char *path = tern_tokenizer_file(t);
    if (file_sha256(path, hex) != EXIT_DONE)
        return false;
    *out = json_pack("{s:o, s:s}", "path", base_name(path), "sha256", hex);
    return true;
}

/* Sets the adapters in use, if there are some, in the order in which they add up. */
static void set_adapters(json_t *root, const tern_model *model) {
    const tern_adapter_info *infos;
    const size_t n = tern_model_adapters(model, &infos);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (infos[i].scale != 0.0f)
            json_array_append_new(
                list, json_pack("{s:o, s:s, s:o}", "path", base_name(infos[i].path), "sha256",
                                infos[i].digest, "scale", json_real((double)infos[i].scale)));
    if (json_array_size(list) > 0)
        json_object_set_new(root, "adapters", list);
    else
        json_decref(list);
}

/* Sets how the model's files are read, and takes the tokenizer over, which may be NULL. */
static void set_reading(json_t *root, const loaded *l, const options *o, json_t *tokenizer) {
    json_object_set_new(root, "i2s_layout", json_string(options_text(o, OPT_I2S_LAYOUT)));
    set_given(root, "i2s_map", o, OPT_I2S_MAP);
    set_given(root, "tl_tiles", o, OPT_TL_TILES);
    if (options_switch(o, OPT_LONG_CONTEXT))
        json_object_set_new(root, "long_context", json_boolean(true));
    json_object_set_new(root, "pre_tokenizer",
                        json_string(l->tokenizer != NULL ? tern_tokenizer_pre(l->tokenizer) : ""));
    json_object_set_new(root, "pre_tokenizer_from",
                        json_string(options_text(o, OPT_PRE) != NULL ? "asked" : "model"));
    if (tokenizer != NULL)
        json_object_set_new(root, "tokenizer", tokenizer);
    set_adapters(root, l->model);
}

json_t *facts_opening(const loaded *l, const options *o) {
    json_t *tokenizer;
    if (!facts_tokenizer(l->model, &tokenizer))
        return NULL;
    json_t *root = json_pack("{s:o}", "model_path", base_name(l->info.path));
    set_reading(root, l, o, tokenizer);
    set_count(root, "vocab_size", l->info.n_vocab);
    set_count(root, "context_length", l->info.n_ctx_train);
    return root;
}

/* True if blocks have an expert that all tokens take, which files name so. */
static bool has_shared_expert(const tern_model *model) {
    static const char end[] = ".ffn_down_shexp.weight";
    const tern_linear *linear;
    for (size_t i = 0; (linear = tern_model_linear(model, i)) != NULL; i++) {
        tern_linear_info info;
        tern_linear_describe(model, linear, &info);
        const tern_span name = info.tensor;
        if (name.size >= sizeof end &&
            memcmp(name.data + name.size - strlen(end), end, strlen(end)) == 0)
            return true;
    }
    return false;
}

/* Matrices of a layer that keeps a state, its feed-forward part left out; others have 4. */
static uint64_t matrices_of_deltas(const tern_model *model, const kept_layers *kept) {
    uint64_t count = 0;
    const tern_linear *linear;
    for (size_t i = 0; (linear = tern_model_linear(model, i)) != NULL; i++) {
        tern_linear_info info;
        tern_linear_describe(model, linear, &info);
        count += info.stage == TERN_STAGE_QKV || info.stage == TERN_STAGE_OUT;
    }
    return (count - 4 * (uint64_t)kept->n) / kept->deltas;
}

json_t *facts_model(const loaded *l, const options *o, double *hash_seconds) {
    const tern_model_info *info = &l->info;
    const double start = tern_clock_seconds();
    char hex[RECEIPT_HEX];
    char type[16];
    json_t *tokenizer;
    json_t *files = facts_files(l->model, hex);
    if (files == NULL || !facts_tokenizer(l->model, &tokenizer)) {
        json_decref(files);
        return NULL;
    }
    *hash_seconds = tern_clock_seconds() - start;
    json_t *weights = facts_weights(l->model, type);
    json_t *root = json_object();
    json_object_set_new(root, "model_path", base_name(info->path));
    json_object_set_new(root, "sha256", json_string(hex));
    set_count(root, "file_bytes", info->file_bytes);
    json_object_set_new(root, "files", files);
    json_object_set_new(root, "architecture", json_string(info->architecture));
    json_object_set_new(root, "name", json_text(info->name, strlen(info->name)));
    json_object_set_new(root, "quantization_type", json_string(type));
    json_object_set_new(root, "weight_formats", weights);
    set_reading(root, l, o, tokenizer);
    set_count(root, "layers", info->n_layer);
    if (info->n_expert > 0)
        set_count(root, "experts", info->n_expert);
    if (has_shared_expert(l->model))
        set_count(root, "shared_experts", 1);
    const kept_layers kept = kept_layers_of(l->model, TERN_FORMAT_F16);
    if (kept.deltas > 0) {
        set_count(root, "delta_layers", kept.deltas);
        set_count(root, "delta_matrices", matrices_of_deltas(l->model, &kept));
    }
    set_count(root, "hidden_size", info->n_embd);
    set_count(root, "ffn_size", info->n_ff);
    set_count(root, "num_attention_heads", info->n_head);
    set_count(root, "num_key_value_heads", info->n_head_kv);
    set_count(root, "head_dim", info->head_dim);
    set_count(root, "vocab_size", info->n_vocab);
    set_count(root, "context_length", info->n_ctx_train);
    set_count(root, "parameters", info->parameters);
    set_count(root, "weight_bytes", info->weight_bytes);
    return root;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void operating_system(char *text, size_t size) {
    struct utsname name;
    if (uname(&name) != 0) {
        (void)snprintf(text, size, "unknown");
        return;
    }
    /* Only the version: the suffix of a distribution does not matter here. */
    (void)snprintf(text, size, "%s %.*s", name.sysname, (int)strspn(name.release, "0123456789."),
                   name.release);
}

static const char *architecture(void) {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other";
#endif
}

json_t *facts_machine(const tern_model *model) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *cpu = tern_cpu_name();
    char os[256];
    json_t *sets = json_array();
    for (size_t i = 0; tern_isa_name(i) != NULL; i++)
        if (tern_isa_runs(i, tern_model_features(model)))
            json_array_append_new(sets, json_string(tern_isa_name(i)));
    operating_system(os, sizeof os);
    return json_pack("{s:o, s:I, s:s, s:o, s:o}", "cpu", json_text(cpu, strlen(cpu)), "cores",
                     (json_int_t)(cores > 0 ? cores : 1), "architecture", architecture(), "os",
                     json_text(os, strlen(os)), "instruction_sets", sets);
}

static const char *compiler(void) {
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

/* Sets only "kernels" and "refused_kernels" of json_set_kernels. */
static void set_kernels(json_t *root, const loaded *l) {
    json_t *all = json_object();
    json_set_kernels(all, l);
    json_object_set(root, "kernels", json_object_get(all, "kernels"));
    json_object_set(root, "refused_kernels", json_object_get(all, "refused_kernels"));
    json_decref(all);
}

json_t *facts_measurement(const char *schema, const options *o, const loaded *l) {
    json_t *root = json_pack("{s:s, s:s, s:{s:s, s:s, s:o}, s:o}", "$schema", schema,
                             "schema_version", RECEIPT_VERSION, "origin", "kind", "measured",
                             "note", "", "not_recorded", json_array(), "timestamp", facts_now());
    set_kernels(root, l);
    const char *path = facts_compute_path(json_object_get(root, "kernels"));
    json_object_set_new(root, "compute_path", json_string(path));
    json_object_set_new(root, "backend",
                        json_string(tern_model_device(l->model) != NULL ? "cuda" : "cpu"));
    json_object_set_new(root, "deterministic", json_boolean(options_switch(o, OPT_DETERMINISTIC)));
    return root;
}

json_t *facts_versions(void) {
    return json_pack("{s:s, s:s, s:s, s:i}", "tern", tern_version(), "compiler", compiler(),
                     "commit", TERN_COMMIT, "numerics", TERN_NUMERICS_VERSION);
}

json_t *facts_environment(const receipt_run *run) {
    const char *cpu = tern_cpu_name();
    char os[256];
    operating_system(os, sizeof os);
    return json_pack("{s:s, s:o, s:o, s:s, s:s, s:s, s:o, s:o}", "BITNET_DETERMINISTIC",
                     options_switch(run->o, OPT_DETERMINISTIC) ? "1" : "0", "BITNET_SEED",
                     json_sprintf("%" PRIu64, run->request->sampling->seed), "RAYON_NUM_THREADS",
                     json_sprintf("%u", tern_session_threads(run->l->session)),
                     "BITNET_STRICT_MODE", options_switch(run->o, OPT_STRICT) ? "1" : "0",
                     "TERN_VERSION", tern_version(), "COMPILER", compiler(), "OS",
                     json_text(os, strlen(os)), "CPU_BRAND", json_text(cpu, strlen(cpu)));
}
